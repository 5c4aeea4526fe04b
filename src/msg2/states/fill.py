"""The steps that nobody labelled, added to the labels (App. A): annotated rows are never changed.

A step that a video's labels lack entirely is added at its first predicted completion. The paper reads the state at a
step from where the next one stands, since labels tend to end early; at the last step there is no next one. A model with
witnesses can also say when it saw the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from msg2.errors import InputError
from msg2.options import FillOptions
from msg2.states.reading import Reading
from msg2.states.sampling import Floats, Ints
from msg2.task import Segment, Step, Task, Video

PREDICTED = "predicted"
"""The `source` of the labels that were added."""


def filled(task: Task, readings: Iterable[Reading], options: FillOptions) -> Task:
    """`task` with the predicted labels added to the videos that were read; every option has a value."""
    found = {reading.video: reading for reading in readings}
    return task.with_videos(
        filled_video(video, found[video.id], task.steps, options) if video.id in found else video for video in task
    )


def filled_video(video: Video, reading: Reading, steps: tuple[Step, ...], options: FillOptions) -> Video:
    """`video` with a segment, its `source` "predicted", for every absent step that `reading` sees completed.

    Its confidence is σ(ŝ - threshold) where that is highest; where the model says whether a step is there at all, it is
    the probability of that, and steps below one half are not added.
    """
    annotated = set(video.sequence())
    added = []
    for number, name in enumerate(steps):
        moment = None if name in annotated else _moment(reading, number, options)
        if moment is not None:
            highest = float(reading.scores[:, number].max()) - (options.threshold or 0.0)
            odds = highest if reading.presence is None else float(reading.presence[number])
            added.append(Segment(name, *moment, 1 / (1 + math.exp(-odds)), PREDICTED))
    return Video(video.id, [*video.segments, *added], video.sentences)


def _moment(reading: Reading, step: int, options: FillOptions) -> tuple[float, float] | None:
    """Start and end of a step that is completed by the reading.

    It lasts from the border before its first completion to the border of that: what lies there, labelled or not,
    overlaps with it, and so nothing more is said about order than is known. With "seen" it is the moment when most was
    seen of it.
    """
    border = first_completion(reading.scores[:, step], reading.kind, options)
    if reading.presence is not None and len(reading.time):
        border = None if reading.presence[step] < 0 else len(reading.time) - 1 if border is None else border
    if border is None:
        return None
    if options.read_at == "seen":
        if reading.seen_at is None:
            raise InputError("the model has no witness: it cannot say when a step was seen", hint="use read-at next")
        return float(reading.seen_at[step]), float(reading.seen_at[step])
    return float(reading.time[border - 1]) if border else 0.0, float(reading.time[border])


def first_completion(scores: Floats, kind: Ints, options: FillOptions) -> int | None:
    """The first of M borders of these kinds where a step of these scores (M,) is completed, or None.

    >>> first_completion(np.array([-2.0, -1.0, 0.5, 1.0]), np.array([2, 3, 2, 3]), FillOptions(0.0, "same"))
    2
    >>> first_completion(np.array([-2.0, -1.0, 0.5, 1.0]), np.array([2, 3, 2, 3]), FillOptions(0.0, "next"))
    0
    """
    if options.read_at == "next":
        scores = scores[_of_the_next_step(kind)]
    completed = np.flatnonzero(scores >= (options.threshold or 0.0))
    return int(completed[0]) if len(completed) else None


def _of_the_next_step(kind: Ints) -> Ints:
    """Shape (M,): for every start the next step's start, for every end the next step's end; for the last, the end."""
    later = np.full(len(kind), len(kind) - 1)
    for one in np.unique(kind):
        places = np.flatnonzero(kind == one)
        later[places[:-1]] = places[1:]
    return later
