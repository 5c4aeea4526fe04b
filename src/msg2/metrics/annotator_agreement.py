"""How far two people agree on the labels of the same videos: Cohen's kappa, κ = (p_o − p_e) / (1 − p_e).

p_o is the share on which they agree, p_e the share on which they would by chance, each labelling as often as they do.
*Presence*: does a video show a step? Every video counts once. *Time*: is a step going on at this moment? Every second
counts, from 0 to the last label of either in that video; it is computed exactly, not on a grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from msg2.sequences import FloatArray
from msg2.task import Step, Task, Video

_Spans: TypeAlias = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Agreement on one step, or on all; a kappa is None where chance alone would make both agree on everything."""

    step: Step
    first: int
    """Videos in which the first person has it, as `second` in which the second has, and `both` both."""
    second: int
    both: int
    presence_kappa: float | None
    time_kappa: float | None
    """None also where labels have no times."""


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement of two people over the videos that both labelled: step by step, and over all steps together."""

    videos: int
    overall: StepAgreement
    steps: tuple[StepAgreement, ...]


def cohen_kappa(table: FloatArray) -> float | None:
    """Cohen's kappa of a table of counts or durations.

    Parameters
    ----------
    table : array of shape (categories, categories)
        How much the first put in the category of the row, and the second in that of the column.

    Returns
    -------
    float or None
        None where there is nothing to count, or chance alone would make them agree on everything.

    >>> cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    0.4
    """
    if not table.sum():
        return None
    shares = table / table.sum()
    expected = float(shares.sum(axis=0) @ shares.sum(axis=1))
    return None if expected > 1 - 1e-12 else round((float(np.trace(shares)) - expected) / (1 - expected), 12)


def annotator_agreement(first: Task, second: Task) -> AnnotatorAgreement:
    """Compare two people's labels of the same videos.

    Parameters
    ----------
    first, second : Task
        The labels of each; only videos that are in both count, also those in which one of them found nothing.

    Returns
    -------
    AnnotatorAgreement
    """
    others = {video.id: video for video in second}
    pairs = [(video, others[video.id]) for video in first if video.id in others]
    steps = sorted({*first.steps, *second.steps})
    longest = max((segment.end or 0.0 for pair in pairs for video in pair for segment in video.segments), default=0.0)
    timed = longest > 0 and all(a.is_timed and b.is_timed for a, b in pairs)
    presence = [_total(_presence_table(a, b, name) for a, b in pairs) for name in steps]
    time = [_total(_time_table(a, b, name, longest) for a, b in pairs) for name in steps] if timed else []
    rows = (_agreement(name, presence[i], time[i] if timed else None) for i, name in enumerate(steps))
    overall = _agreement("", _total(presence), _total(time) if timed else None)
    return AnnotatorAgreement(len(pairs), overall, tuple(rows))


def _total(tables: Iterable[FloatArray]) -> FloatArray:
    return sum(tables, np.zeros((2, 2)))


def _agreement(name: Step, presence: FloatArray, time: FloatArray | None) -> StepAgreement:
    first, second, both = (int(number) for number in (presence[1].sum(), presence[:, 1].sum(), presence[1, 1]))
    return StepAgreement(name, first, second, both, cohen_kappa(presence), None if time is None else cohen_kappa(time))


def _presence_table(first: Video, second: Video, name: Step) -> FloatArray:
    table = np.zeros((2, 2))
    table[int(bool(_spans(first, name))), int(bool(_spans(second, name)))] = 1
    return table


def _time_table(first: Video, second: Video, name: Step, unit: float) -> FloatArray:
    """The time, in units of so many seconds, in which the step goes on for neither, one or both of the two."""
    table = np.zeros((2, 2))
    ends = [segment.end or 0.0 for video in (first, second) for segment in video.segments]
    spans = [_spans(video, name) for video in (first, second)]
    for begin, end in pairwise(sorted({0.0, *ends, *(bound for each in spans for span in each for bound in span)})):
        middle = begin / 2 + end / 2
        cell = [int(any(start <= middle < stop for start, stop in each)) for each in spans]
        table[cell[0], cell[1]] += end / unit - begin / unit
    return table


def _spans(video: Video, name: Step) -> _Spans:
    return [(segment.start or 0.0, segment.end or 0.0) for segment in video.segments if segment.step == name]
