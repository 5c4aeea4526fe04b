"""Predict the state of every step in a video, and fill in the steps that nobody labelled (App. A).

Scores are read at the borders of the labelled segments. Annotated labels never change; a step that the labels of a
video lack is added at its first predicted completion. The paper reads the state at a step where the next one stands,
since labels tend to end early. With an evidence model, a step can also be added where there is most evidence of it.
`fill_calibration` says which steps are added; the paper adds all whose score reaches a threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from msg2.errors import InputError
from msg2.sequences import FloatArray, IntArray
from msg2.states.configuration import FillOptions, SamplingOptions
from msg2.states.dataset import FRAME, StateDataset, Tokens, collate
from msg2.states.loss_and_optimizer import single_thread
from msg2.states.network import StateModel
from msg2.task import PREDICTED, Segment, Step, Task, Video

if TYPE_CHECKING:
    from msg2.states.fill_calibration import FillCalibration

BATCH_VIDEOS = 16  # videos that are predicted at a time


@dataclass(frozen=True, slots=True, eq=False)
class StatePrediction:
    """The M borders of one video's labels in the order of time, and the score of each of N steps there."""

    video: str
    kind: IntArray  # shape (M,): START or END
    time: FloatArray  # shape (M,), seconds
    step: IntArray  # shape (M,): whose border it is
    scores: FloatArray  # shape (M, N): ŝ
    state: IntArray  # shape (M, N): the states by the labels
    labelled: NDArray[np.bool_]  # shape (N,): the steps that the labels hold, hidden ones included
    seen: tuple[FloatArray, FloatArray] | None
    """Shapes (L,) and (L, N): moments in seconds, and the evidence of each step there; with an evidence model."""
    presence: FloatArray | None  # shape (N,): log-odds that a step is in the video; with a co-occurrence model
    hidden: NDArray[np.bool_]  # shape (N,): the labelled steps whose labels were hidden from the model


def predict_states(
    model: StateModel,
    dataset: StateDataset,
    numbers: Sequence[int],
    options: SamplingOptions,
    *,
    hidden: Sequence[int] | None = None,
) -> Iterator[StatePrediction]:
    """Predict the states of every step in some videos; with the seed `hidden`, some of their labels are hidden."""
    return predict_tokens(model, dataset, ((number, dataset.tokens(number, options, hidden)) for number in numbers))


@torch.no_grad()
def predict_tokens(
    model: StateModel, dataset: StateDataset, sampled: Iterable[tuple[int, Tokens]]
) -> Iterator[StatePrediction]:
    """Predict the states of every step from tokens that were sampled before."""
    model.eval()
    remaining = iter(sampled)
    while part := list(islice(remaining, BATCH_VIDEOS)):
        numbers, sampled_tokens = zip(*part, strict=True)
        batch = collate(dataset, numbers, sampled_tokens).to(dataset.frames.device)
        with single_thread(not model.options.context):
            output = model(batch, *dataset.vectors)
        for row, (number, tokens) in enumerate(part):
            length = len(tokens.kind)
            scores, evidence, presence = (
                None if tensor is None else tensor[row, :length].cpu().double().numpy()
                for tensor in (output.scores, output.evidence, output.presence)
            )
            assert scores is not None
            border = tokens.kind != FRAME
            yield StatePrediction(
                dataset.videos[number].video, tokens.kind[border], tokens.time[border], tokens.step[border],
                scores[border], tokens.state[border], tokens.labelled,
                None if evidence is None else (tokens.time, evidence), None if presence is None else presence[-1],
                tokens.dropped,
            )  # fmt: skip


def fill_labels(
    task: Task, predictions: Iterable[StatePrediction], options: FillOptions, calibration: FillCalibration | None = None
) -> Task:
    """Add the predicted labels to the videos of a task."""
    videos = {video.id: video for video in task}
    for prediction in predictions:
        video = videos[prediction.video]
        videos[prediction.video] = fill_video(video, prediction, task.steps, options, calibration)
    return task.with_videos(videos.values())


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
    confidences = expit(scores) if calibration is None else calibration.confidence(scores)
    wanted = scores >= 0 if calibration is None else confidences >= options.confidence
    borders = [first_completion(prediction.scores[:, number], prediction.kind, options) for number in range(len(steps))]
    if calibration is None and prediction.presence is None:  # the highest score may not count where states are read
        wanted &= np.array([border is not None for border in borders])
    chosen = [number for number, name in enumerate(steps) if wanted[number] and name not in annotated]
    if options.read_at == "seen":
        spans = _moments(prediction, chosen)
    else:
        spans = {number: _stretch(prediction, borders[number]) for number in chosen}
    added = [Segment(steps[number], *span, float(confidences[number]), PREDICTED) for number, span in spans.items()]
    return Video(video.id, [*video.segments, *added], video.sentences)


def _stretch(prediction: StatePrediction, border: int | None) -> tuple[float, float]:
    """Start and end of a step, from the border before its completion: what overlaps has no known order."""
    last = len(prediction.time) - 1 if border is None else border
    return float(prediction.time[last - 1]) if last else 0.0, float(prediction.time[last])


def _moments(prediction: StatePrediction, steps: Sequence[int]) -> dict[int, tuple[float, float]]:
    """A moment of its own for each of these steps, in seconds, such that there is most evidence in all."""
    if prediction.seen is None:
        raise InputError("the model has no evidence model: it cannot say when a step was seen", hint="use read-at next")
    time, evidence = prediction.seen
    moments, row = np.unique(time, return_inverse=True)
    most = np.full((len(moments), len(steps)), -np.inf)
    np.maximum.at(most, row, evidence[:, steps])
    columns, rows = linear_sum_assignment(most.T, maximize=True)
    return {steps[column]: (float(moments[row]),) * 2 for column, row in zip(columns, rows, strict=True)}


def first_completion(scores: FloatArray, kind: IntArray, options: FillOptions) -> int | None:
    """Find the first border where a step is completed."""
    if options.read_at == "next":  # at a start where the next step starts, at an end where it ends; or at the last one
        later = np.full(len(kind), len(kind) - 1)
        for each in np.unique(kind):
            borders = np.flatnonzero(kind == each)
            later[borders[:-1]] = borders[1:]
        scores = scores[later]
    completed = np.flatnonzero(scores >= (options.threshold or 0.0))
    return int(completed[0]) if len(completed) else None
