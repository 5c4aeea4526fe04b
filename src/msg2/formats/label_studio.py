"""Label Studio: its JSON, JSON-MIN or CSV exports are read, pre-annotated tasks are written for its import.

Labels on the timeline of a video are frames, counted from 1; their rate is `--fps`, else the task's `fps`, else what a
tracked box says. Other regions are in seconds. Where nobody has annotated a task, its predictions are read. All labels
of a video are written as one prediction: along its sound, or with a frame rate, as timeline labels of its frames.
"""

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import quoteattr

from msg2.errors import InputError
from msg2.formats.json_files import JsonItem, list_items, member, member_items, member_span, parse_json
from msg2.formats.reading import LabelCollector, ReadOptions, WriteOptions, file_reader, files_where, timed_segment
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_records
from msg2.task import PREDICTED, Segment, Task, Video
from msg2.text import join_counts, short_repr

_ENDS = ("start", "end")
_MEDIA = ("video", "audio", "timeseries", "ts", "csv", "url")
_SUFFIXES = re.compile(r"\.(mp4|m4v|webm|mkv|mov|avi|mpe?g|ogv|wav|mp3|m4a|flac|ogg|opus|csv|tsv|json)", re.IGNORECASE)
_UPLOADED = re.compile(r"[0-9a-f]{8}-")  # what Label Studio puts before the name of an uploaded file
_MODEL = "msg2"  # the `model_version` of predictions that msg2 has written
_log = logging.getLogger(__name__)

# -- reading --------------------------------------------------------------------------------------------------


def _read(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    """Read one task per `task` in the data of the items, else one, named after the file."""
    others: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for where, item in _items(file):
        data = item.get("data", item)
        task = data.get("task")
        task, video = task if task and isinstance(task, str) else file.stem, _video_id(data, item)
        if (task, video) in seen and not options.every_annotator:
            hint = "keep one item per video; `msg2 describe` shows how far annotators agree"
            raise InputError("is the second item of its video", where=where, hint=hint)
        seen.add((task, video))
        labels.video(file, video, task).extend(_segments(item, options, where, others))
    if others:
        _log.warning("%s: results that are no regions in time, not read: %s", file.path, join_counts(others))


def _is_export(file: Source) -> bool:
    items = file.document or [dict.fromkeys(first_cells(file))]
    return isinstance(items, list) and all(map(_is_item, items))


def _is_item(item: object) -> bool:
    """Whether this is a task with its annotations, or one of JSON-MIN, where the regions lie in the task."""
    if not isinstance(item, dict):
        return False
    is_task = isinstance(item.get("data"), dict) and not item.keys().isdisjoint(("annotations", "predictions"))
    return is_task or ("id" in item and not item.keys().isdisjoint(("annotator", "annotation_id")))


def _items(file: Source) -> Iterator[tuple[str, JsonItem]]:
    """The items of an export, each with its place; a row of a table is one of JSON-MIN, its regions JSON in a cell."""
    if file.document is not None:
        yield from ((f"{file.path}, $[{position}]", item) for position, item in enumerate(file.document))
        return
    for line, row in read_records(file, "id"):
        parsed = {name: parse_json(cell, file, line) for name, cell in row.items() if cell.startswith("[{")}
        yield file.row(line), {**row, **parsed}


def _video_id(data: JsonItem, item: JsonItem) -> str:
    """Its `id` in the data, else the name of the media file without suffix and what uploading added, else a number."""
    if data is not item and isinstance(data.get("id"), str) and data["id"]:
        return str(data["id"])
    texts = {key: value for key, value in data.items() if isinstance(value, str) and value and key != "task"}
    path = next((texts[key] for key in _MEDIA if key in texts), next(iter(texts.values()), ""))
    if "://" in path or path.startswith("/"):
        with suppress(ValueError):  # an address that is none is a name
            parts = urlsplit(path)
            path = parse_qs(parts.query).get("d", [parts.path])[0]  # ?d= names a local file
    name = PurePosixPath(path).name
    if "/data/upload/" in path:
        name = _UPLOADED.sub("", name, count=1)
    suffix = PurePosixPath(name).suffix
    return (name.removesuffix(suffix) if _SUFFIXES.fullmatch(suffix) else name) or str(item.get("id", ""))


def _segments(item: JsonItem, options: ReadOptions, where: str, others: Counter[str]) -> Iterator[Segment]:
    annotations, are_predicted = _choose_annotations(item, where, options.every_annotator)
    path = f"{where}.{'predictions' if are_predicted else 'annotations'}"
    results = [(at, result, made) for made in annotations for at, result in member_items(made, "result", dict, path)]
    rate = options.fps or _frame_rate(item, [result for _, result, _ in results])
    for at, result, annotation in results:
        value = member(result, "value", dict, at)
        # Labels may be on sound, but also on words, which are counted by characters, or on boxes.
        is_text = {"text", "startOffset"} & value.keys() or "text" in item.get("data", item)
        kinds = ("timelinelabels", "timeserieslabels", *(["labels"] if "start" in value and not is_text else []))
        if (names := next((value[kind] for kind in kinds if isinstance(value.get(kind), list)), None)) is None:
            others[str(result.get("type"))] += 1
            continue
        if "ranges" in value:
            if rate is None:
                hint = "say how many frames of the videos make a second: --fps 24 (what the interface was set to)"
                raise InputError("is labelled in frames, and does not say how long they are", where=where, hint=hint)
            ranges = member_items(value, "ranges", dict, f"{at}.value")
            frames = [member_span(span, _ENDS, inside) for inside, span in ranges if span.get("enabled") is not False]
            spans = [((start - 1) / rate, end / rate) for start, end in frames]
        else:
            spans = [member_span(value, _ENDS, f"{at}.value")]
        origin: JsonItem = {"source": _annotator(annotation.get("completed_by"))} if options.every_annotator else {}
        origin = _prediction_fields(annotation, result) if are_predicted else origin
        for _, step in list_items(names, str, f"{at}.value"):
            for start, end in spans:
                yield replace(timed_segment(step, start, end, at), **origin)


def _choose_annotations(item: JsonItem, where: str, every_annotator: bool) -> tuple[list[JsonItem], bool]:
    """The annotations of an item that count, and whether they are predictions; the regions of JSON-MIN are one."""
    if "data" not in item:
        lists = {key: value for key, value in item.items() if isinstance(value, list)}
        regions = [{"type": key, "value": r} for key, value in lists.items() for r in value if isinstance(r, dict)]
        return [{"result": regions, "completed_by": item.get("annotator")}], False
    annotations, predictions = (
        [value for _, value in member_items({key: item.get(key) or []}, key, dict, where)]
        for key in ("annotations", "predictions")
    )
    kept = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    truth = [annotation for annotation in kept if annotation.get("ground_truth")]
    chosen = (kept if every_annotator else truth) or kept or predictions
    if len(chosen) > 1 and not (every_annotator and kept):
        hint = "keep one of them, or mark one as ground truth; `msg2 describe` shows how far they agree"
        raise InputError(f"has {len(chosen)} annotations, which may not agree", where=where, hint=hint)
    return chosen, not kept


def _annotator(value: object) -> str | None:
    """Who made an annotation: an address or a number, which may also be written as text or lie in an object."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return str(value) if value or value == 0 else None


def _prediction_fields(prediction: JsonItem, result: JsonItem) -> JsonItem:
    """How sure a prediction is of a region, and where it is from: msg2 notes that itself, others have predicted it."""
    score: Any = result.get("score", prediction.get("score"))
    confidence = float(score) if type(score) in (int, float) and 0 <= score <= 1 else None
    if prediction.get("model_version") != _MODEL:
        return {"confidence": confidence, "source": PREDICTED}
    notes = meta.get("text") if isinstance(meta := result.get("meta"), dict) else None
    own = next((note for note in notes if isinstance(note, str)), None) if isinstance(notes, list) else None
    return {"confidence": confidence, "source": own}


def _frame_rate(item: JsonItem, results: list[JsonItem]) -> float | None:
    """Frames per second, where the item or one of its results states it."""
    stated = [item.get("data", item).get("fps")]
    for value in (result["value"] for result in results if isinstance(result.get("value"), dict)):
        frames, seconds = value.get("framesCount"), value.get("duration")
        if isinstance(frames, int) and isinstance(seconds, (int, float)) and 0 < frames < 10**9 and seconds > 0:
            stated.append(frames / seconds)
    return next((rate for rate in stated if type(rate) in (int, float) and 0 < rate <= 100_000), None)


# -- writing --------------------------------------------------------------------------------------------------


def to_label_studio(tasks: Iterable[Task], options: WriteOptions) -> str:
    """Write the labels of tasks as JSON for Label Studio's import; a label's `meta` text is its source."""
    rate: JsonItem = {} if options.fps is None else {"fps": options.fps}
    imported: list[JsonItem] = [
        {
            "data": {"video": options.media_url(video.id), "id": video.id, "task": task.name, **rate},
            "predictions": [{"model_version": _MODEL, "result": list(_regions(video, options.fps))}],
        }
        for task in tasks
        for video in task
    ]
    return json.dumps(imported, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def labelling_interface(tasks: Iterable[Task], options: WriteOptions) -> str:
    """The labelling interface of the project into which the text of `to_label_studio` is imported."""
    steps = sorted({step for task in tasks for step in task.steps})
    kind, seen = ("Labels", "audio") if options.fps is None else ("TimelineLabels", "video")
    extra = ' sync="audio"' if options.fps is None else f' frameRate="{options.fps:g}"'
    labels = "".join(f"    <Label value={quoteattr(step)}/>\n" for step in steps)
    video = f'  <Video name="video" value="$video"{extra}/>\n'
    audio = '  <Audio name="audio" value="$video" sync="video"/>\n' if options.fps is None else ""
    return f'<View>\n  <{kind} name="step" toName="{seen}">\n{labels}  </{kind}>\n{video}{audio}</View>\n'


def _regions(video: Video, fps: float | None) -> Iterator[JsonItem]:
    """What is labelled, from when to when: seconds of the sound, or the frames that the segment touches."""
    seen, kind = ("audio", "labels") if fps is None else ("video", "timelinelabels")
    for number, segment in enumerate(video.segments, start=1):
        if segment.start is None or segment.end is None:
            what = f"video {short_repr(video.id)} has no times, which Label Studio needs"
            raise InputError(what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
        span: JsonItem = {"start": segment.start, "end": segment.end, "channel": 0}
        if fps is not None:
            first = math.floor(segment.start * fps + 1e-6) + 1  # 1e-6: a border that was computed from frames is one
            span = {"ranges": [{"start": first, "end": max(first, math.ceil(segment.end * fps - 1e-6))}]}
        region: JsonItem = {"id": f"s{number}", "from_name": "step", "to_name": seen, "type": kind}
        region["value"] = {**span, kind: [segment.step]}
        if segment.confidence is not None:
            region["score"] = segment.confidence
        if segment.source is not None:
            region["meta"] = {"text": [segment.source]}
        yield region


def _write(tasks: Sequence[Task], path: Path, options: WriteOptions) -> dict[Path, str]:
    return {path: to_label_studio(tasks, options), path.with_suffix(".xml"): labelling_interface(tasks, options)}


WRITERS = {".label-studio.json": _write}
READER = file_reader("a Label Studio export (JSON, CSV)", files_where(_is_export), _read, single=True)
