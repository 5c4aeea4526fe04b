"""Forecasts in one call: the steps that are left, when they come, what comes within k steps, and whether any comes.

With any ranker p, the probability that step n comes within k steps is the sum over the places j ≤ k of

    P(n at place j) = Σ_path p(path) · (1 − p_end(done + path)) · p(n | done + path),   |path| = j − 1

over the most probable paths of each length (a beam); where the beam holds all of them, it is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from msg2.assist.conditional_logit import (
    ChoiceSets,
    ConditionalLogit,
    ObservedChoices,
    best_penalty,
    fit_conditional_logit,
)
from msg2.assist.contexts import StepIndices, encode_contexts
from msg2.assist.following import task_of_graph
from msg2.assist.learned_forecaster import PENALTIES, k_fold_split, step_indices, training_sequences
from msg2.assist.rankers import DEFAULT_RANKER, LEARNED_RANKER, RANKERS, RankedStep, Ranker, make_ranker, next_steps
from msg2.assist.time_left import WaitingTime, fit_waiting_times
from msg2.errors import require
from msg2.graph import SubtaskGraph
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

EndProbability: TypeAlias = Callable[[Sequence[Step]], float]
"""From the steps done so far, in order, to the probability that no other step comes."""

BEAM_WIDTH = 200
"""Paths that are followed at once; more make probabilities several steps ahead exact."""


@dataclass(frozen=True, slots=True)
class Lookahead:
    """What comes within `horizon` steps."""

    horizon: int
    within: dict[Step, float]  # the probability of each step that is left, the most probable first
    end_probability: float  # that fewer steps come (and not all are done)
    path: tuple[Step, ...]  # the most probable next steps, in order, if so many come
    path_probability: float  # how probable they then are


def look_ahead(
    ranker: Ranker, done: Sequence[Step], horizon: int, end_probability: EndProbability | None = None
) -> Lookahead:
    """Forecast the next `horizon` steps; without an end probability, steps come until all are done."""
    require(horizon >= 1, f"horizon is {horizon}, it must be 1 or more")
    within: defaultdict[Step, float] = defaultdict(float)
    beam: list[_StepPath] = [_StepPath((), 1.0, 1.0)]
    for _ in range(horizon):
        longer = []
        for path in beam:
            before = (*done, *path.steps)
            goes_on = 1.0 if end_probability is None else 1.0 - end_probability(before)
            for name, probability in ranker(before).items():
                weight = path.weight * goes_on * probability
                within[name] += weight
                longer.append(_StepPath((*path.steps, name), weight, path.probability * probability))
        if not longer:  # all steps are done
            break
        beam = _keep_most_probable(longer)
    best = min(beam, key=lambda path: (-round(path.probability, 9), path.steps))
    ranked = dict(sorted(within.items(), key=lambda item: -item[1]))
    ended = max(0.0, 1.0 - sum(path.weight for path in beam))
    return Lookahead(horizon, ranked, ended, best.steps, best.probability)


@dataclass(frozen=True, slots=True)
class _StepPath:
    """Steps ahead; `weight` is their probability, `probability` the one they have if as many steps come."""

    steps: tuple[Step, ...]
    weight: float
    probability: float


def _keep_most_probable(paths: Sequence[_StepPath]) -> list[_StepPath]:
    """The most probable paths, with the weight of all."""
    if len(paths) <= BEAM_WIDTH:
        return list(paths)
    beam = sorted(paths, key=lambda path: (-path.weight, path.steps))[:BEAM_WIDTH]
    scale = sum(path.weight for path in paths) / max(sum(path.weight for path in beam), np.finfo(float).tiny)
    return [_StepPath(path.steps, path.weight * scale, path.probability) for path in beam]


@dataclass(frozen=True, slots=True, eq=False)
class EndForecaster:
    """An `EndProbability`: called with the steps done so far, it tells how probably they were all."""

    graph: SubtaskGraph
    model: ConditionalLogit | None
    """Of going on (candidate 0) and of ending (candidate 1); without any video None: then nothing ends."""

    def __call__(self, done: Sequence[Step]) -> float:
        """Before the first step nothing ends; a step that the graph does not have is an `InputError`."""
        prefix = step_indices(done, self.graph)
        if not prefix or self.model is None:
            return 0.0
        return float(np.exp(self.model.log_probabilities(_end_choice_sets([prefix], self.graph))[0, 1]))

    def to_json(self) -> dict[str, object]:
        """Plain values that give the same probabilities elsewhere."""
        return {"steps": list(self.graph.steps), "terms": None if self.model is None else self.model.terms.tolist()}


def fit_end_probability(graph: SubtaskGraph, task: Demonstrations) -> EndForecaster:
    """Learn whether what was done so far was all: by a logistic regression on what was done, how long ago, and last."""
    sequences = training_sequences(graph, task_of_graph(graph, task))
    if not sequences:
        return EndForecaster(graph, None)
    trials = (
        (_end_choices(others, graph), _end_choices(held_out, graph))
        for held_out, others in k_fold_split(sequences)
        if len(sequences) > 1
    )
    no_weights = np.zeros(0)
    penalty, start = best_penalty(trials, no_weights, PENALTIES)
    return EndForecaster(graph, fit_conditional_logit(_end_choices(sequences, graph), penalty, no_weights, start))


def _end_choices(sequences: Sequence[StepIndices], graph: SubtaskGraph) -> ObservedChoices:
    """After every step but the last nothing ended (candidate 0), after the last one it did (candidate 1)."""
    prefixes = [sequence[: index + 1] for sequence in sequences for index in range(len(sequence))]
    ended = [index + 1 == len(sequence) for sequence in sequences for index in range(len(sequence))]
    return ObservedChoices(_end_choice_sets(prefixes, graph), np.array(ended, dtype=np.intp))


def _end_choice_sets(prefixes: Sequence[StepIndices], graph: SubtaskGraph) -> ChoiceSets:
    context = encode_contexts(prefixes, len(graph.steps)).context
    return ChoiceSets(context, np.zeros((len(prefixes), 2, 0)), np.ones((len(prefixes), 2), dtype=np.bool_))


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

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        steps = []
        for ranked in self.steps:
            step: dict[str, object] = {
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
        value: dict[str, object] = {"task": self.task, "done": list(self.done), "ranker": self.ranker, "next": steps}
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
    task: Demonstrations | None = None,
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
    task : Task or anything that `msg2.infer` takes, optional
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
    videos = None if task is None else task_of_graph(graph, task)
    name = ranker or (DEFAULT_RANKER if videos is None else LEARNED_RANKER)
    rank = make_ranker(name, graph, videos)
    ranking = tuple(next_steps(graph, done, rank))
    if not RANKERS[name].calibrated:
        ranking = tuple(replace(ranked, probability=None) for ranked in ranking)
    waiting_times = None
    if videos is not None:
        waiting_time, last = fit_waiting_times(videos), done[-1] if done else None
        waiting_times = {ranked.step: waiting_time(last, ranked.step) for ranked in ranking}
    ahead = None
    if horizon is not None:
        ahead = look_ahead(rank, done, horizon, None if videos is None else fit_end_probability(graph, videos))
    return NextStepForecast(graph.task, tuple(done), name, ranking, waiting_times, ahead)
