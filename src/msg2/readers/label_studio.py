"""Label Studio: its JSON or JSON-MIN export; regions in time of videos, sound and time series are steps.

Labels on the timeline of a video are frames, counted from 1; the rate is `--fps`, else the task's `fps` (which the
`frameRate` of a labelling interface may refer to), else what a tracked box says (`framesCount`, `duration`). Other
regions are in seconds. Where nobody has annotated a task, what was predicted for it is read.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msg2.errors import InputError
from msg2.options import ReadOptions
from msg2.readers.documents import fitting_files, member, the_file
from msg2.readers.found import Found, Labels, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source
from msg2.readers.wording import counted
from msg2.task import Segment

READS = "a Label Studio export (JSON)"
TAKES = ("fps",)

_MEDIA = ("video", "audio", "timeseries", "ts", "csv", "url")
_SUFFIXES = re.compile(r"\.(mp4|m4v|webm|mkv|mov|avi|mpe?g|ogv|wav|mp3|m4a|flac|ogg|opus|csv|tsv|json)", re.IGNORECASE)
_UPLOADED = re.compile(r"[0-9a-f]{8}-")
"""What Label Studio puts before the name of an uploaded file."""
_log = logging.getLogger(__name__)


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, is an export."""
    return bool(fitting_files(source, _is_export))


def read(source: Source, options: ReadOptions) -> Found:
    """One task per `task` in the data of the items, else one, named after the file."""
    file = the_file(source, _is_export)
    labels: Labels = {}
    others: Counter[str] = Counter()
    for position, item in enumerate(file.document):
        where = f"{file.path}, $[{position}]"
        data = item.get("data", item)
        task = data.get("task")
        key = (task if task and isinstance(task, str) else file.stem, _video(data, item))
        if key in labels:
            raise InputError("is the second item of its video", where=where, hint="keep one item per video")
        labels[key] = list(_segments(item, options.fps, where, others))
    if others:
        _log.warning("%s: results that are no regions in time, not read: %s", file.path, counted(others))
    return Found.of(tasks_of(labels), {file.path.name: unsorted_rows(labels)})


def _is_export(document: Any) -> bool:
    return isinstance(document, list) and bool(document) and all(map(_is_item, document))


def _is_item(item: Any) -> bool:
    """Whether this is a task with its annotations, or one of JSON-MIN, where the regions lie in the task."""
    if not isinstance(item, dict):
        return False
    if isinstance(item.get("data"), dict):
        return "annotations" in item or "predictions" in item
    return "id" in item and ("annotator" in item or "annotation_id" in item)


def _video(data: dict[str, Any], item: dict[str, Any]) -> str:
    """Its `id` in the data, else the name of the media file without suffix and what uploading added, else a number."""
    if data is not item and isinstance(data.get("id"), str) and data["id"]:
        return str(data["id"])
    texts = {key: value for key, value in data.items() if isinstance(value, str) and value and key != "task"}
    path = next((texts[key] for key in _MEDIA if key in texts), next(iter(texts.values()), ""))
    with suppress(ValueError):  # an address that is none is a name
        parts = urlsplit(path) if "://" in path or path.startswith("/") else None
        if parts is not None:
            path = parse_qs(parts.query).get("d", [parts.path])[0]  # ?d= names a local file
    name = PurePosixPath(path).name
    if "/data/upload/" in path:
        name = _UPLOADED.sub("", name, count=1)
    suffix = PurePosixPath(name).suffix
    return (name.removesuffix(suffix) if _SUFFIXES.fullmatch(suffix) else name) or str(item.get("id", ""))


def _segments(item: dict[str, Any], fps: float | None, where: str, others: Counter[str]) -> Iterator[Segment]:
    results = list(_results(item, where))
    rate = fps or _stated_rate(item, [result for result, _, _ in results])
    for result, at, predicted in results:
        value = member(result, "value", dict, at)
        kinds = ("timelinelabels", "timeserieslabels", *(["labels"] if _is_sound(value, item) else []))
        names = next((value[kind] for kind in kinds if isinstance(value.get(kind), list)), None)
        if names is None:
            others[str(result.get("type"))] += 1
            continue
        if "ranges" in value:
            if rate is None:
                hint = "say how many frames of the videos make a second: --fps 24 (what the interface was set to)"
                raise InputError("is labelled in frames, and does not say how long they are", where=where, hint=hint)
            spans = [((start - 1) / rate, end / rate) for start, end in _ranges(value, f"{at}.value")]
        else:
            spans = [_span(value, f"{at}.value")]
        for position in range(len(names)):
            step = member(names, position, str, f"{at}.value")
            for start, end in spans:
                segment = timed_segment(step, start, end, at)
                yield replace(segment, **predicted)


def _is_sound(value: dict[str, Any], item: dict[str, Any]) -> bool:
    """Whether labels are on sound: they may also be on words, which are counted by characters, or on boxes."""
    return "start" in value and not {"text", "startOffset"} & value.keys() and "text" not in item.get("data", item)


def _results(item: dict[str, Any], where: str) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """The regions of an item, with the path to each, and the confidence and source of predicted ones."""
    if "data" not in item:
        for key, regions in item.items():
            for position, region in enumerate(regions if isinstance(regions, list) else ()):
                if isinstance(region, dict):
                    yield {"type": key, "value": region}, f"{where}.{key}[{position}]", {}
        return
    kept = [one for one in item.get("annotations") or () if isinstance(one, dict) and not one.get("was_cancelled")]
    truth = [one for one in kept if one.get("ground_truth")]
    chosen = truth or kept or [one for one in item.get("predictions") or () if isinstance(one, dict)]
    if len(chosen) > 1:
        hint = "keep one of them, or mark one as ground truth"
        raise InputError(f"has {len(chosen)} annotations, which may not agree", where=where, hint=hint)
    for one in chosen:
        at = f"{where}.{'annotations' if kept else 'predictions'}.result"
        results = member(one, "result", list, at.removesuffix(".result"))
        for position in range(len(results)):
            result = member(results, position, dict, at)
            yield result, f"{at}[{position}]", {} if kept else _predicted(one, result)


def _predicted(prediction: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """How sure a prediction is of a region, and where it is from: msg2 notes that itself, others have predicted it."""
    score: Any = result.get("score", prediction.get("score"))
    meta = result.get("meta")
    confidence = float(score) if type(score) in (int, float) and 0 <= score <= 1 else None
    notes = meta.get("text") if isinstance(meta, dict) else None
    own = next((note for note in notes if isinstance(note, str)), None) if isinstance(notes, list) else None
    ours = prediction.get("model_version") == "msg2"
    return {"confidence": confidence, "source": own if ours else "predicted"}


def _ranges(value: dict[str, Any], where: str) -> Iterator[tuple[float, float]]:
    ranges = member(value, "ranges", list, where)
    for position in range(len(ranges)):
        span = member(ranges, position, dict, f"{where}.ranges")
        if span.get("enabled") is not False:
            yield _span(span, f"{where}.ranges[{position}]")


def _span(value: dict[str, Any], where: str) -> tuple[float, float]:
    start, end = member(value, "start", (int, float), where), member(value, "end", (int, float), where)
    try:
        return float(start), float(end)
    except OverflowError:
        raise InputError("has a time that is too large", where=where) from None


def _stated_rate(item: dict[str, Any], results: list[dict[str, Any]]) -> float | None:
    """Frames per second, where the item or one of its results states it."""
    stated = [item.get("data", item).get("fps")]
    for value in (result["value"] for result in results if isinstance(result.get("value"), dict)):
        frames, seconds = value.get("framesCount"), value.get("duration")
        if isinstance(frames, int) and isinstance(seconds, (int, float)) and 0 < frames < 10**9 and seconds > 0:
            stated.append(frames / seconds)
    return next((rate for rate in stated if type(rate) in (int, float) and 0 < rate <= 100_000), None)
