"""Filling in the steps that nobody labelled (App. A): annotated labels are never changed.

A step that a video's labels lack entirely is added at its first predicted completion. The paper reads the state at a
step from where the next one stands, since labels tend to end early; at the last step there is no next one. With an
evidence model a step can also be added where there is most evidence of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from msg2.arrays import FloatArray, IntArray
from msg2.errors import InputError
from msg2.states.configuration import FillOptions
from msg2.states.prediction import StatePrediction
from msg2.task import PREDICTED, Segment, Step, Task, Video


def fill_labels(task: Task, predictions: Iterable[StatePrediction], options: FillOptions) -> Task:
    """Add the predicted labels to the videos of a task.

    Parameters
    ----------
    task : Task
        The annotated labels.
    predictions : iterable of StatePrediction
        Of the videos to which labels are added.
    options : FillOptions
        Each with a value; see `FillOptions.for_model`.

    Returns
    -------
    Task
        The annotated and the predicted labels.
    """
    by_video = {prediction.video: prediction for prediction in predictions}
    return task.with_videos(
        fill_video(video, by_video[video.id], task.steps, options) if video.id in by_video else video for video in task
    )


def fill_video(video: Video, prediction: StatePrediction, steps: tuple[Step, ...], options: FillOptions) -> Video:
    """Add a segment, with the `source` "predicted", for every absent step that is predicted to be completed.

    Its confidence is σ(ŝ - threshold) where that is highest; where the model predicts whether a step is there at all,
    it is the probability of that, and steps below one half are not added.

    Parameters
    ----------
    video : Video
        With its annotated labels.
    prediction : StatePrediction
        Of this video.
    steps : tuple of str
        The steps of the model.
    options : FillOptions
        Each with a value.

    Returns
    -------
    Video
        With the predicted labels.
    """
    annotated = set(video.sequence())
    added = []
    for number, name in enumerate(steps):
        interval = None if name in annotated else _predicted_interval(prediction, number, options)
        if interval is not None:
            highest = float(prediction.scores[:, number].max()) - (options.threshold or 0.0)
            odds = highest if prediction.presence is None else float(prediction.presence[number])
            added.append(Segment(name, *interval, 1 / (1 + math.exp(-odds)), PREDICTED))
    return Video(video.id, [*video.segments, *added], video.sentences)


def _predicted_interval(prediction: StatePrediction, step: int, options: FillOptions) -> tuple[float, float] | None:
    """Start and end, in seconds, of a step that is predicted to be completed; None where it is not.

    It lasts from the border before its first completion to the border of that: what lies there, labelled or not,
    overlaps with it, and so nothing more is said about order than is known. With "seen" it is the moment with most
    evidence.
    """
    border = first_completion(prediction.scores[:, step], prediction.kind, options)
    if prediction.presence is not None and len(prediction.time):
        border = None if prediction.presence[step] < 0 else len(prediction.time) - 1 if border is None else border
    if border is None:
        return None
    if options.read_at == "seen":
        if prediction.seen_at is None:
            what = "the model has no evidence model: it cannot say when a step was seen"
            raise InputError(what, hint="use read-at next")
        return float(prediction.seen_at[step]), float(prediction.seen_at[step])
    return float(prediction.time[border - 1]) if border else 0.0, float(prediction.time[border])


def first_completion(scores: FloatArray, kind: IntArray, options: FillOptions) -> int | None:
    """Find the first border where a step is completed.

    Parameters
    ----------
    scores : array of shape (M,)
        The scores of the step at the borders.
    kind : array of shape (M,)
        START or END.
    options : FillOptions
        Each with a value.

    Returns
    -------
    int or None
        The index of the border; None where the step is never completed.

    >>> first_completion(np.array([-2.0, -1.0, 0.5, 1.0]), np.array([2, 3, 2, 3]), FillOptions(0.0, "same"))
    2
    >>> first_completion(np.array([-2.0, -1.0, 0.5, 1.0]), np.array([2, 3, 2, 3]), FillOptions(0.0, "next"))
    0
    """
    if options.read_at == "next":
        scores = scores[_next_borders(kind)]
    completed = np.flatnonzero(scores >= (options.threshold or 0.0))
    return int(completed[0]) if len(completed) else None


def _next_borders(kind: IntArray) -> IntArray:
    """Shape (M,): for every start the next step's start, for every end the next step's end; for the last, the end."""
    later = np.full(len(kind), len(kind) - 1)
    for each in np.unique(kind):
        borders = np.flatnonzero(kind == each)
        later[borders[:-1]] = borders[1:]
    return later
