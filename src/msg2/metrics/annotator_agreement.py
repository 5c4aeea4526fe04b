"""How far two people agree on the labels of the same videos: Cohen's kappa, κ = (p_o − p_e) / (1 − p_e).

*Presence*: does a video show a step? Every video counts once. *Time*: is a step going on? Every second counts, from 0
to the last label of either person in that video, exactly and not on a grid.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from msg2.sequences import FloatArray
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Agreement on one step, or on all; a kappa is None where chance alone would make both agree on everything."""

    step: Step
    first: int  # videos in which the first person has it, as `second` in which the second has, and `both` both
    second: int
    both: int
    presence_kappa: float | None
    time_kappa: float | None  # none also where labels have no times


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
    presence, time = np.zeros((2, len(steps), 2, 2))
    for a, b in pairs:
        for number, name in enumerate(steps):
            presence[number, int(name in a.sequence()), int(name in b.sequence())] += 1
            if timed:
                time[number] += _time_table(a, b, name, longest)
    overall = _agreement("", presence.sum(axis=0), time.sum(axis=0))
    return AnnotatorAgreement(len(pairs), overall, tuple(map(_agreement, steps, presence, time)))


def _agreement(name: Step, presence: FloatArray, time: FloatArray) -> StepAgreement:
    first, second, both = (int(number) for number in (presence[1].sum(), presence[:, 1].sum(), presence[1, 1]))
    return StepAgreement(name, first, second, both, cohen_kappa(presence), cohen_kappa(time))


def _time_table(first: Video, second: Video, name: Step, unit: float) -> FloatArray:
    """The time, in units of so many seconds, in which the step goes on for neither, one or both of the two."""
    table = np.zeros((2, 2))
    ends = [segment.end or 0.0 for video in (first, second) for segment in video.segments]
    spans = [
        [(segment.start or 0.0, segment.end or 0.0) for segment in video.segments if segment.step == name]
        for video in (first, second)
    ]
    for begin, end in pairwise(sorted({0.0, *ends, *(bound for each in spans for span in each for bound in span)})):
        middle = begin / 2 + end / 2
        cell = [int(any(start <= middle < stop for start, stop in each)) for each in spans]
        table[cell[0], cell[1]] += end / unit - begin / unit
    return table
