"""Filling in the steps that nobody labelled (App. A): annotated labels are never changed.

A step that a video's labels lack entirely is added at its first predicted completion. The paper reads the state at a
step from where the next one stands, since labels tend to end early; at the last step there is no next one. With an
evidence model a step can also be added where there is most evidence of it, each at a moment of its own. Which steps are
added, and how sure that is, is told by `fill_calibration`; the paper adds all whose score reaches a threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from msg2.errors import InputError
from msg2.sequences import FloatArray, IntArray
from msg2.states.configuration import FillOptions
from msg2.states.fill_calibration import FillCalibration
from msg2.states.prediction import StatePrediction
from msg2.task import PREDICTED, Segment, Step, Task, Video


def fill_labels(
    task: Task,
    predictions: Iterable[StatePrediction],
    options: FillOptions,
    calibration: FillCalibration | None = None,
) -> Task:
    """Add the predicted labels to the videos of a task."""
    by_video = {prediction.video: prediction for prediction in predictions}
    return task.with_videos(
        fill_video(video, by_video[video.id], task.steps, options, calibration) if video.id in by_video else video
        for video in task
    )


def fill_scores(prediction: StatePrediction, options: FillOptions) -> FloatArray:
    """The log-odds, by the model, that each step is in the video at all; the higher, the sooner it is added."""
    if prediction.presence is not None:
        return prediction.presence
    return np.asarray(prediction.scores.max(axis=0, initial=-np.inf) - (options.threshold or 0.0))


def fill_video(
    video: Video,
    prediction: StatePrediction,
    steps: tuple[Step, ...],
    options: FillOptions,
    calibration: FillCalibration | None = None,
) -> Video:
    """Add a segment, with the `source` "predicted", for every absent step that was probably done."""
    if not len(prediction.time):
        return video
    annotated, scores = set(video.sequence()), fill_scores(prediction, options)
    if calibration is None:
        confidences, wanted = expit(scores), scores >= 0
    else:
        confidences = calibration.confidence(scores)
        wanted = confidences >= options.confidence
    borders = [first_completion(prediction.scores[:, number], prediction.kind, options) for number in range(len(steps))]
    if calibration is None and prediction.presence is None:  # the highest score may not count where states are read
        wanted &= np.array([border is not None for border in borders])
    chosen = [number for number, name in enumerate(steps) if wanted[number] and name not in annotated]
    spans = _moments(prediction, chosen) if options.read_at == "seen" else {
        number: _stretch(prediction, borders[number]) for number in chosen
    }  # fmt: skip
    added = [Segment(steps[number], *span, float(confidences[number]), PREDICTED) for number, span in spans.items()]
    return Video(video.id, [*video.segments, *added], video.sentences)


def _stretch(prediction: StatePrediction, border: int | None) -> tuple[float, float]:
    """Start and end, in seconds, of a step whose completion is first seen at a border; None: not before the last.

    It lasts from the border before that one: what lies there, labelled or not, overlaps with it, and so nothing more is
    said about order than is known.
    """
    last = len(prediction.time) - 1 if border is None else border
    return float(prediction.time[last - 1]) if last else 0.0, float(prediction.time[last])


def _moments(prediction: StatePrediction, steps: Sequence[int]) -> dict[int, tuple[float, float]]:
    """A moment of its own for each of these steps, in seconds, such that there is most evidence in all."""
    if prediction.seen is None:
        what = "the model has no evidence model: it cannot say when a step was seen"
        raise InputError(what, hint="use read-at next")
    time, evidence = prediction.seen
    moments, place = np.unique(time, return_inverse=True)
    most = np.full((len(moments), len(steps)), -np.inf)
    np.maximum.at(most, place, evidence[:, steps])
    found = zip(*(indices.tolist() for indices in linear_sum_assignment(most, maximize=True)), strict=True)
    return {steps[which]: (float(moments[moment]),) * 2 for moment, which in sorted(found, key=lambda pair: pair[1])}


def first_completion(scores: FloatArray, kind: IntArray, options: FillOptions) -> int | None:
    """Find the first border where a step is completed."""
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
