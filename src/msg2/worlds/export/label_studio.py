"""Tasks as pre-annotated Label Studio tasks, so that labels can be corrected where people annotate.

All labels of a video are one prediction, which annotators see and correct. Label Studio marks sound in seconds, and
pictures in frames: without a frame rate the labels lie along the video's sound ("Video timeline segmentation"); with
one they are timeline labels of its frames, the first of which is 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import quoteattr

from msg2.errors import InputError, shortened
from msg2.options import ExportOptions
from msg2.task import Segment, Task, Video

_MODEL = "msg2"


def as_label_studio(tasks: Iterable[Task], options: ExportOptions) -> str:
    """`tasks` as JSON for Label Studio's import.

    `data` has the URL of the `video`, its `id`, the name of the `task` and, where it is stated, the `fps`. A label's
    `score` is its confidence, its `meta` text the source.
    """
    rate: dict[str, Any] = {} if options.fps is None else {"fps": options.fps}
    imported: list[dict[str, Any]] = [
        {
            "data": {"video": options.media_of(video.id), "id": video.id, "task": task.name, **rate},
            "predictions": [{"model_version": _MODEL, "result": _regions(video, options)}],
        }
        for task in tasks
        for video in task
    ]
    return json.dumps(imported, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def labelling_interface(tasks: Iterable[Task], options: ExportOptions) -> str:
    """The labelling interface (XML) of the project into which `as_label_studio` is imported, with all steps as labels.

    >>> print(labelling_interface([Task("toast", ["fry"], [])], ExportOptions(fps=30)), end="")
    <View>
      <TimelineLabels name="step" toName="video">
        <Label value="fry"/>
      </TimelineLabels>
      <Video name="video" value="$video" frameRate="30"/>
    </View>
    """
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


def _regions(video: Video, options: ExportOptions) -> list[dict[str, Any]]:
    return [
        {
            "id": f"s{number}",
            **_place(video, segment, options.fps),
            **({} if segment.confidence is None else {"score": segment.confidence}),
            **({} if segment.source is None else {"meta": {"text": [segment.source]}}),
        }
        for number, segment in enumerate(video.segments, start=1)
    ]


def _place(video: Video, segment: Segment, fps: float | None) -> dict[str, Any]:
    """What is labelled, from when to when: seconds of the sound, or the frames that the segment touches."""
    if segment.start is None or segment.end is None:
        what = f"video {shortened(video.id)} has no times, which Label Studio needs"
        raise InputError(what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
    if fps is None:
        value = {"start": segment.start, "end": segment.end, "channel": 0, "labels": [segment.step]}
        return {"from_name": "step", "to_name": "audio", "type": "labels", "value": value}
    first = math.floor(segment.start * fps + 1e-6) + 1  # 1e-6: a border that was computed from frames is one
    frames = {"start": first, "end": max(first, math.ceil(segment.end * fps - 1e-6))}
    return {
        "from_name": "step",
        "to_name": "video",
        "type": "timelinelabels",
        "value": {"ranges": [frames], "timelinelabels": [segment.step]},
    }
