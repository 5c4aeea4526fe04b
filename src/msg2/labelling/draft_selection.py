"""Which drafts count for the graph beside labels: those that make held-out labels more probable.

Graphs are learned from some of the labelled videos, without drafts and with those of at least some confidence. Drafts
count where the labels of the other videos are more probable under the graph that has them, by a paired t-test:
mean(d) > t₀.₉₅ sd(d) / √n for the n differences d of log p.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msg2.arrays import FloatArray
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.inference import infer
from msg2.task import Task, Video

CONFIDENCES = (0.7, 0.5, 0.3)
"""Drafts of at least one of these may count."""
NO_DRAFTS = 1.0
"""No draft is as sure as this."""
_LEVEL = 0.95
"""Of the one-sided test."""


def choose_confidence(parts: Sequence[tuple[Task, Sequence[Video]]]) -> float:
    """Choose from which confidence on drafts count for the graph.

    Parameters
    ----------
    parts : sequence of (Task, sequence of Video)
        Labels of some videos and the drafts that follow from them, and the labels of videos that had no part in that.

    Returns
    -------
    float
        The one under which held-out labels are most probable, presence and order together and order alone;
        `NO_DRAFTS` where no drafts make both more probable.
    """
    alone = _held_out_fit(parts, NO_DRAFTS)
    gains = {least: _held_out_fit(parts, least) - alone for least in CONFIDENCES}
    better = [least for least in CONFIDENCES if all(map(_is_positive, gains[least].T))]
    return max(better, key=lambda least: float(gains[least].sum()), default=NO_DRAFTS)


def _held_out_fit(parts: Sequence[tuple[Task, Sequence[Video]]], least: float) -> FloatArray:
    """log p of each held-out video, and of the order of its steps alone; shape (n, 2)."""
    found = []
    for task, held_out in parts:
        likelihood = SequenceLikelihood(infer(task.with_sure_drafts(least).with_first_labels()))
        found += [(likelihood.log_probability(one), likelihood.order_log_probability(one)) for one in held_out]
    return np.array(found)


def _is_positive(differences: FloatArray) -> bool:
    """Whether the mean is above zero by a one-sided t-test."""
    from scipy.stats import t

    count = len(differences)
    return bool(differences.mean() > t.ppf(_LEVEL, count - 1) * differences.std(ddof=1) / np.sqrt(count))
