"""How well a state model predicts which steps are completed: of hidden labels, or against what was performed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.metrics.completion import Completion, completion, performed_video
from msg2.states.prediction import StatePrediction
from msg2.states.token_sampling import COMPLETED
from msg2.task import Step, Task

EVALUATION_DRAWS = 10
"""How often labels of the held-out videos are hidden, where nobody knows what was performed; the seeds are 0, 1, …"""


def hidden_completion(predictions: Iterable[StatePrediction], threshold: float) -> Completion:
    """Score the steps whose labels were hidden from the model, at the borders of the other labels.

    Parameters
    ----------
    predictions : iterable of StatePrediction
        With hidden labels.
    threshold : float
        b: a step is predicted to be completed where ŝ ≥ b.

    Returns
    -------
    Completion
        Over all videos, borders and hidden steps.
    """
    pairs = [(each.scores[:, each.hidden], each.state[:, each.hidden] == COMPLETED) for each in predictions]
    return _pool(pairs, threshold)


def true_completion(
    predictions: Iterable[StatePrediction], steps: tuple[Step, ...], performed: Task, threshold: float
) -> Completion:
    """Score all steps, at the borders of all labels; a step is completed from the end of its first performance on.

    Parameters
    ----------
    predictions : iterable of StatePrediction
        Of videos that `performed` holds.
    steps : tuple of str
        The steps of the model, N.
    performed : Task
        What was really performed.
    threshold : float
        b: a step is predicted to be completed where ŝ ≥ b.

    Returns
    -------
    Completion
        Over all videos, borders and steps.

    Raises
    ------
    InputError
        Where `performed` lacks a video.
    """
    truth = {video.id: video for video in performed}
    pairs = []
    for each in predictions:
        segments = performed_video(truth, each.video).with_first_labels().segments
        ends = {segment.step: segment.end for segment in segments}
        end = np.array([np.inf if (last := ends.get(step)) is None else last for step in steps])
        pairs.append((each.scores, end <= each.time[:, None]))
    return _pool(pairs, threshold)


def _pool(pairs: Iterable[tuple[FloatArray, NDArray[np.bool_]]], threshold: float) -> Completion:
    scores, completed = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for some, true in pairs:
        scores.append(some.ravel())
        completed.append(true.ravel())
    return completion(np.concatenate(scores), np.concatenate(completed), threshold)
