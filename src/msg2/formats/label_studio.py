"""Label Studio: its JSON, JSON-MIN or CSV exports are read, pre-annotated tasks are written for its import.

Labels on the timeline of a video are frames, counted from 1; their rate is `--fps`, else the task's `fps`, else what a
tracked box says. Other regions are in seconds. Where nobody has annotated a task, its predictions are read. All labels
of a video are written as one prediction: along its sound, or with a frame rate, as timeline labels of its frames.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import quoteattr

from msg2.errors import InputError
from msg2.formats.json_files import JsonItem, list_items, member, member_items, member_span, only_file, parse_json
from msg2.formats.reading import (
    FileContents,
    Reader,
    ReadOptions,
    ReadResult,
    SegmentsByVideo,
    WriteOptions,
    timed_segment,
)
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


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per `task` in the data of the items, else one, named after the file."""
    file = only_file(_exports(source), source)
    labels: SegmentsByVideo = {}
    others: Counter[str] = Counter()
    for where, item in _items(file):
        data = item.get("data", item)
        task = data.get("task")
        key = (task if task and isinstance(task, str) else file.stem, _video_id(data, item))
        if key in labels and not options.every_annotator:
            hint = "keep one item per video; `msg2 describe` shows how far annotators agree"
            raise InputError("is the second item of its video", where=where, hint=hint)
        labels.setdefault(key, []).extend(_segments(item, options, where, others))
    if others:
        _log.warning("%s: results that are no regions in time, not read: %s", file.path, join_counts(others))
    return ReadResult.from_labels(labels, file.path.name)


def _exports(source: Source) -> list[Source]:
    return [file for file in source.files_or_self if _is_export(file.document) or _is_min_item(first_cells(file))]


def _items(file: Source) -> Iterator[tuple[str, JsonItem]]:
    """The items of an export, each with its place; a row of a table is one of JSON-MIN, its regions JSON in a cell."""
    if file.document is not None:
        yield from ((f"{file.path}, $[{position}]", item) for position, item in enumerate(file.document))
        return
    for line, row in read_records(file, ("id",)):
        parsed = {name: parse_json(cell, file, line) for name, cell in row.items() if cell.startswith("[{")}
        yield file.row(line), {**row, **parsed}


def _is_export(document: object) -> bool:
    return isinstance(document, list) and bool(document) and all(map(_is_item, document))


def _is_item(item: object) -> bool:
    """Whether this is a task with its annotations, or one of JSON-MIN, where the regions lie in the task."""
    if isinstance(item, dict) and isinstance(item.get("data"), dict):
        return "annotations" in item or "predictions" in item
    return isinstance(item, dict) and _is_min_item(item)


def _is_min_item(keys: Collection[str]) -> bool:
    return "id" in keys and ("annotator" in keys or "annotation_id" in keys)


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
    results = list(_results(item, where, options.every_annotator))
    rate = options.fps or _frame_rate(item, [result for result, _, _ in results])
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
            ranges = member_items(value, "ranges", dict, f"{at}.value")
            frames = [member_span(span, _ENDS, path) for path, span in ranges if span.get("enabled") is not False]
            spans = [((start - 1) / rate, end / rate) for start, end in frames]
        else:
            spans = [member_span(value, _ENDS, f"{at}.value")]
        for _, step in list_items(names, str, f"{at}.value"):
            for start, end in spans:
                yield replace(timed_segment(step, start, end, at), **predicted)


def _is_sound(value: JsonItem, item: JsonItem) -> bool:
    """Whether labels are on sound: they may also be on words, which are counted by characters, or on boxes."""
    return "start" in value and not {"text", "startOffset"} & value.keys() and "text" not in item.get("data", item)


def _results(item: JsonItem, where: str, every_annotator: bool) -> Iterator[tuple[JsonItem, str, JsonItem]]:
    """The regions of an item, with the path to each, and the confidence and source of those that have them."""
    if "data" not in item:
        own = {"source": _annotator(item.get("annotator"))} if every_annotator else {}
        for key, regions in item.items():
            for position, region in enumerate(regions if isinstance(regions, list) else ()):
                if isinstance(region, dict):
                    yield {"type": key, "value": region}, f"{where}.{key}[{position}]", own
        return
    annotations = _objects(item, "annotations", where)
    kept = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    truth = [annotation for annotation in kept if annotation.get("ground_truth")]
    chosen = (kept if every_annotator else truth) or kept or _objects(item, "predictions", where)
    if len(chosen) > 1 and not (every_annotator and kept):
        hint = "keep one of them, or mark one as ground truth; `msg2 describe` shows how far they agree"
        raise InputError(f"has {len(chosen)} annotations, which may not agree", where=where, hint=hint)
    for annotation in chosen:
        at = f"{where}.{'annotations' if kept else 'predictions'}"
        for path, result in member_items(annotation, "result", dict, at):
            made = {"source": _annotator(annotation.get("completed_by"))} if every_annotator else {}
            yield result, path, made if kept else _prediction_fields(annotation, result)


def _annotator(value: object) -> str | None:
    """Who made an annotation: an address or a number, which may also be written as text or lie in an object."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return str(value) if value or value == 0 else None


def _objects(item: JsonItem, key: str, where: str) -> list[JsonItem]:
    return [value for _, value in member_items({key: item.get(key) or []}, key, dict, where)]


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
    """The labels of tasks as JSON for Label Studio's import.

    `data` has the URL of the `video`, its `id`, the name of the `task` and, where it is stated, the `fps`. A label's
    `score` is its confidence, its `meta` text the source.
    """
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
    sync, rate = (' sync="audio"', "") if options.fps is None else ("", f' frameRate="{options.fps:g}"')
    lines = [
        "<View>",
        f'  <{kind} name="step" toName="{seen}">',
        *(f"    <Label value={quoteattr(step)}/>" for step in steps),
        f"  </{kind}>",
        f'  <Video name="video" value="$video"{sync}{rate}/>',
        *(['  <Audio name="audio" value="$video" sync="video"/>'] if options.fps is None else []),
        "</View>",
    ]
    return "\n".join(lines) + "\n"


def _regions(video: Video, fps: float | None) -> Iterator[JsonItem]:
    """What is labelled, from when to when: seconds of the sound, or the frames that the segment touches."""
    for number, segment in enumerate(video.segments, start=1):
        if segment.start is None or segment.end is None:
            what = f"video {short_repr(video.id)} has no times, which Label Studio needs"
            raise InputError(what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
        if fps is None:
            seen, kind = "audio", "labels"
            span: JsonItem = {"start": segment.start, "end": segment.end, "channel": 0}
        else:
            seen, kind = "video", "timelinelabels"
            first = math.floor(segment.start * fps + 1e-6) + 1  # 1e-6: a border that was computed from frames is one
            span = {"ranges": [{"start": first, "end": max(first, math.ceil(segment.end * fps - 1e-6))}]}
        region: JsonItem = {"id": f"s{number}", "from_name": "step", "to_name": seen, "type": kind}
        region["value"] = {**span, kind: [segment.step]}
        if segment.confidence is not None:
            region["score"] = segment.confidence
        if segment.source is not None:
            region["meta"] = {"text": [segment.source]}
        yield region


def _write_label_studio(tasks: Sequence[Task], path: Path, options: WriteOptions) -> FileContents:
    return {path: to_label_studio(tasks, options), path.with_suffix(".xml"): labelling_interface(tasks, options)}


WRITERS = {".label-studio.json": _write_label_studio}
"""Suffix -> what writes it."""


READER = Reader("a Label Studio export (JSON, CSV)", lambda source: bool(_exports(source)), read, ("JSON", "text"))
