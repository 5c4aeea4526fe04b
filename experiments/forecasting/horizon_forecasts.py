"""How good forecasts are further ahead than the next step: what comes within k steps, and how long until then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from experiments.result_tables import Table, Value
from msg2.assist import Ranker
from msg2.assist.forecasting import fit_end_probability, look_ahead
from msg2.assist.time_left import INTERVAL, fit_waiting_times
from msg2.graph import SubtaskGraph
from msg2.metrics.calibration import NextStepPrediction, score_calibration
from msg2.task import Step, Task

HORIZONS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class HorizonForecast:
    """A forecast at one place of a video, k = `horizon` steps ahead."""

    horizon: int
    hit_share: float | None
    """Of the steps that came within k, the share among as many most probable ones; None: none came."""
    steps: Sequence[NextStepPrediction]


def horizon_forecasts(ranker: Ranker, training: Task, test: Task) -> Iterator[HorizonForecast]:
    """Ahead from every place of the test videos, their ends included.

    Parameters
    ----------
    ranker : Ranker
        How probable each next step is.
    training : Task
        The training videos.
    test : Task
        The test videos.

    Yields
    ------
    HorizonForecast
        One per place and horizon.
    """
    ends = cache(
        fit_end_probability(SubtaskGraph(training.name, training.steps, {}), training)
    )  # many videos begin alike
    rank = cache(ranker)
    for video in test:
        sequence = video.sequence()
        for place in range(min(len(sequence) + 1, len(training.steps))):
            for horizon in HORIZONS:
                coming = sequence[place : place + horizon]
                within = look_ahead(rank, sequence[:place], horizon, ends).within
                best = list(within)[: len(coming)]
                found = len({*best} & {*coming}) / len(coming) if coming else None
                yield HorizonForecast(horizon, found, _score_steps(within, coming))


def gaps_within_interval(training: Task, test: Task) -> Iterator[bool]:
    """Whether the seconds to each step of the test videos are in the interval that the training videos give.

    Parameters
    ----------
    training : Task
        The training videos.
    test : Task
        The test videos.

    Yields
    ------
    bool
        One per gap before a step of the test videos.
    """
    wait_for = fit_waiting_times(training)
    for video in test:
        last: Step | None = None
        until = 0.0
        for segment in video.with_first_labels().segments:
            expected = wait_for(last, segment.step)
            if expected is None or segment.start is None or segment.end is None:
                break
            yield expected.low <= max(0.0, segment.start - until) <= expected.high
            last, until = segment.step, segment.end


def horizon_tables(found: Mapping[str, Sequence[HorizonForecast]], times: Sequence[bool]) -> list[Table]:
    """What was found ahead by each ranker, and how many times were in the interval.

    Parameters
    ----------
    found : mapping
        Forecasts by the name of the ranker.
    times : sequence
        Whether each gap was in the interval.

    Returns
    -------
    list[Table]
        One table.
    """
    rows: list[list[Value]] = []
    for row, seen in found.items():
        for horizon in HORIZONS:
            here = [look for look in seen if look.horizon == horizon]
            shares = [look.hit_share for look in here if look.hit_share is not None]
            judged = score_calibration([one for look in here for one in look.steps])
            rows.append(
                [
                    row,
                    horizon,
                    100 * fmean(shares) if shares else None,
                    100 * judged.expected_calibration_error,
                    judged.log_loss,
                ]
            )
    low, high = INTERVAL
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


def _score_steps(within: Mapping[Step, float], coming: Sequence[Step]) -> list[NextStepPrediction]:
    """Each probability, whether its step came, and the probability of what was the case."""
    return [NextStepPrediction(p, float(n in coming), p if n in coming else 1 - p) for n, p in within.items()]
