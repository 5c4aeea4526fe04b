"""Forecasts in one call: a ranker by its name, the steps that are left, when they come, and what comes after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msg2.assist.grprop import grprop
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.lookahead import Lookahead, fit_end_probability, look_ahead
from msg2.assist.next_step import RankedStep, Ranker, bigram, next_steps, recency
from msg2.assist.waiting_times import WaitingTime, fit_waiting_times
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.task import Step, Task


@dataclass(frozen=True, slots=True)
class RankerFactory:
    """A way to rank next steps: `make(graph, task)`, and which of the two it needs."""

    make: Callable[[SubtaskGraph, Task], Ranker]
    needs_graph: bool = True
    needs_videos: bool = False

    @property
    def calibrated(self) -> bool:
        """Whether its numbers are probabilities, or only rank the steps: videos alone tell how often a step is next."""
        return self.needs_videos


RANKERS: Mapping[str, RankerFactory] = {
    "recency": RankerFactory(lambda graph, task: recency(graph)),
    "grprop": RankerFactory(lambda graph, task: grprop(graph)),
    "bigram": RankerFactory(lambda graph, task: bigram(task), needs_graph=False, needs_videos=True),
    "learned": RankerFactory(fit_forecaster, needs_videos=True),
}
"""All rankers, by name."""
DEFAULT_RANKER = "recency"
"""Of a graph alone."""
LEARNED_RANKER = "learned"
"""The default of a graph with videos."""
GRAPH_RANKERS = tuple(name for name, factory in RANKERS.items() if not factory.needs_videos)
"""Rankers that need a graph only."""


def make_ranker(name: str, graph: SubtaskGraph, task: Task | None = None) -> Ranker:
    """Make the ranker of this name.

    Parameters
    ----------
    name : str
        A key of `RANKERS`.
    graph : SubtaskGraph
        What the steps need.
    task : Task, optional
        Videos to learn from; some rankers need them.

    Returns
    -------
    Ranker

    Raises
    ------
    InputError
        For a name that is unknown, or a ranker that needs videos without any.
    """
    usable = GRAPH_RANKERS if task is None else tuple(RANKERS)
    if name not in RANKERS:
        raise InputError(f"there is no ranker {name!r}", hint=f"there are {', '.join(usable)}")
    if name not in usable:
        raise InputError(f"the ranker {name!r} learns from videos", hint=f"without any, there are {', '.join(usable)}")
    return RANKERS[name].make(graph, task if task is not None else Task(graph.task, graph.steps, []))


@dataclass(frozen=True, slots=True)
class NextStepForecast:
    """What comes after the steps `done`, the most probable step first.

    The steps have probabilities where the ranker is `calibrated`; so do the steps of the lookahead in JSON.
    """

    task: str
    done: tuple[Step, ...]
    ranker: str
    steps: tuple[RankedStep, ...]
    waiting_times: Mapping[Step, WaitingTime | None] | None
    """Seconds until each step comes (None where videos have no times); None without videos."""
    lookahead: Lookahead | None
    """What comes within the horizon, by the numbers of the ranker; None without one."""

    @property
    def calibrated(self) -> bool:
        """Whether the numbers of the ranker are probabilities."""
        return RANKERS[self.ranker].calibrated

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        steps = []
        for ranked in self.steps:
            step: dict[str, Any] = {
                "step": ranked.step,
                "rank": ranked.rank,
                "probability": ranked.probability,
                "eligible": ranked.eligible,
                "unmet": [clause.to_json() for clause in ranked.unmet],
                "ruled_out_by": list(ranked.ruled_out_by),
                "awaited": list(ranked.awaited),
            }
            if self.lookahead is not None:
                step["within"] = self.lookahead.within.get(ranked.step, 0.0) if self.calibrated else None
            if self.waiting_times is not None:
                time = self.waiting_times[ranked.step]
                step["seconds"] = None if time is None else asdict(time)
            steps.append(step)
        value: dict[str, Any] = {"task": self.task, "done": list(self.done), "ranker": self.ranker, "next": steps}
        if self.lookahead is not None:
            value |= {
                "horizon": self.lookahead.horizon,
                "ends": self.lookahead.end_probability if self.calibrated else None,
                "path": list(self.lookahead.path),
                "path_probability": self.lookahead.path_probability if self.calibrated else None,
            }
        return value


def forecast(
    graph: SubtaskGraph,
    done: Sequence[Step] = (),
    ranker: str | None = None,
    task: Task | None = None,
    horizon: int | None = None,
) -> NextStepForecast:
    """Forecast the steps that are left.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    done : sequence of Step
        The steps done so far, in order.
    ranker : str, optional
        A key of `RANKERS`; by default `learned` where there are videos, else `recency`, which ranks only.
    task : Task, optional
        Videos to learn from: the ranker, the seconds until a step comes, and whether any comes.
    horizon : int, optional
        How many steps to look ahead.

    Returns
    -------
    NextStepForecast

    Raises
    ------
    InputError
        For an unknown step or ranker, or a ranker that needs videos without any.

    >>> forecast(SubtaskGraph("t", "abc", {}), done=["a"], horizon=2).lookahead.path
    ('b', 'c')
    """
    name = ranker or (DEFAULT_RANKER if task is None else LEARNED_RANKER)
    rank = make_ranker(name, graph, task)
    ranking = tuple(next_steps(graph, done, rank))
    if not RANKERS[name].calibrated:
        ranking = tuple(replace(ranked, probability=None) for ranked in ranking)
    waiting_times = None
    if task is not None:
        waiting_time, last = fit_waiting_times(task), done[-1] if done else None
        waiting_times = {ranked.step: waiting_time(last, ranked.step) for ranked in ranking}
    ahead = None
    if horizon is not None:
        ahead = look_ahead(rank, done, horizon, None if task is None else fit_end_probability(graph, task))
    return NextStepForecast(graph.task, tuple(done), name, ranking, waiting_times, ahead)
