"""How good forecasts are further ahead than the next step: what comes within k steps, and how long until then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from msg2.assist import Ranker, endings, outlook, waiting
from msg2.assist.calibration import Prediction, reliability
from msg2.experiments.tables import Cell, Table
from msg2.graph import SubtaskGraph
from msg2.options import ForecastOptions
from msg2.task import Step, Task

HORIZONS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Look:
    """At one place of a video, k = `horizon` steps ahead.

    `found` is the share of the steps that came within k which were among as many most probable ones (None: none came);
    `judged` has each step that was left, with its probability and whether it came.
    """

    horizon: int
    found: float | None
    judged: Sequence[Prediction]


def looks(ranker: Ranker, training: Task, test: Task) -> Iterator[Look]:
    """Ahead from every place of the test videos, their ends included."""
    ends = cache(endings(SubtaskGraph(training.name, training.steps, {}), training))  # many videos begin alike
    rank = cache(ranker)
    for video in test:
        sequence = video.sequence()
        for place in range(min(len(sequence) + 1, len(training.steps))):
            for horizon in HORIZONS:
                coming = sequence[place : place + horizon]
                within = outlook(rank, sequence[:place], horizon, ends).within
                best = list(within)[: len(coming)]
                found = len({*best} & {*coming}) / len(coming) if coming else None
                yield Look(horizon, found, _judged(within, coming))


def covered(training: Task, test: Task) -> Iterator[bool]:
    """Whether the seconds to each step of the test videos are in the interval that the training videos give."""
    wait_for = waiting(training)
    for video in test:
        last: Step | None = None
        until = 0.0
        for segment in video.with_first_labels().segments:
            expected = wait_for(last, segment.step)
            if expected is None or segment.start is None or segment.end is None:
                break
            yield expected.low <= max(0.0, segment.start - until) <= expected.high
            last, until = segment.step, segment.end


def tables(found: Mapping[str, Sequence[Look]], times: Sequence[bool]) -> list[Table]:
    """What was found ahead by each ranker, and how many times were in the interval."""
    rows: list[list[Cell]] = []
    for row, seen in found.items():
        for horizon in HORIZONS:
            here = [look for look in seen if look.horizon == horizon]
            shares = [look.found for look in here if look.found is not None]
            judged = reliability([one for look in here for one in look.judged])
            rows.append([row, horizon, 100 * fmean(shares) if shares else None, 100 * judged.ece, judged.log_loss])
    low, high = ForecastOptions().interval
    share = f"{100 * fmean(times):.1f} % of {len(times)}" if times else "None"
    return [
        Table(
            "Further ahead",
            ["ranker", "steps ahead", "found, percent", "calibration error, percent", "log loss"],
            rows,
            [
                "First split. Of the steps that come within k, the share that is among as many most probable ones; "
                "the error and the log loss are of the probabilities of every step that is left to come within k.",
                f"{share} gaps between steps are as long as the {100 * (high - low):.0f} % interval of the training "
                "videos says.",
            ],
        )
    ]


def _judged(within: Mapping[Step, float], coming: Sequence[Step]) -> list[Prediction]:
    """Each probability, whether its step came, and the probability of what was the case."""
    return [Prediction(p, float(n in coming), p if n in coming else 1 - p) for n, p in within.items()]
