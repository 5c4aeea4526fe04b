"""Rankers, by name: how likely each step is to come next.

A `Ranker` is anything that answers this question, so that graphs, policies and counts are scored alike; `RANKERS` has
them all.

The paper's rule, recency (App. C): p_{t+1}[n] ∝ e_t[n] · (1 − c_t[n]) · ρ^Δ[n]. A step can follow when it is eligible
and not yet completed, and it is the more likely the more recently it became eligible.

GRProp, graph reward propagation (Sohn et al., 2018; Sec. 5.2): follow the gradient of the reward through the graph.

Completion x_n ∈ {0, 1} is made differentiable by softening the graph. With p_n the softened precondition of step n,

    progress       x̃_n = x_n if n is completed, else λ_or p_n + (1 − λ_or) x_n        (p_n = 1 without precondition)
    OR             p(a | b | …)     = Σ_k softmax(w_or a)_k a_k
    AND            p(a & b & ¬c …)  = ζ(mean(a, b, …) − w_and Σ p(c)),   ζ(z) = log(1 + exp(β_and z)) / β_and
    reward         U = Σ_n r_n x̃_n,   r_n = λ^Δ[n]
    policy         π(n) ∝ exp(T ∂U/∂x_n)   over the steps that are eligible and not completed

A step is worth its own reward and a share of the reward of everything it helps to open up. What is negated is read
from the completion x itself: only a completed step blocks. Δ is the number of steps since n first became eligible; a
step that has never been eligible has the full reward. Formulas may nest: the rules apply from the inside out.

The equations follow a public implementation of the policy, with these departures: a single step as precondition is
taken as it is (no ζ), an AND of negations alone starts from 1, and a completed step counts exactly 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from msg2.assist.following import RunState, RunStateTracker, task_of_graph
from msg2.errors import InputError, require
from msg2.formats import to_task
from msg2.graph import Formula, SubtaskGraph
from msg2.graph.formula import unmet_clauses
from msg2.plugins import Registry
from msg2.task import Step, Task

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

RHO = 0.9
"""ρ: discount per step since a step became eligible."""

Ranker: TypeAlias = Callable[[Sequence[Step]], Mapping[Step, float]]
"""From the steps done so far, in order, to the probability of each step that is left, or may be done again."""


@dataclass(frozen=True, slots=True)
class RankedStep:
    """A step that is left, how likely it is next, and why."""

    step: Step
    rank: int
    """Its place among the steps that are left; the most likely one has 1."""
    probability: float | None
    """None where steps are only ranked: a rule says which comes sooner, not how often."""
    waited: int | None
    """Number of steps done since it first became eligible; None: never."""
    unmet: tuple[Formula, ...]
    """The clauses of its precondition that do not hold yet."""
    ruled_out_by: tuple[Step, ...] = ()
    """What has been done that it should have preceded, or that a run does in its place."""
    awaited: tuple[Step, ...] = ()
    """What should come before it, if done, and is still to come: the step is eligible but not due."""
    again: bool = False
    """Whether it has been done already, and may be done again."""

    @property
    def eligible(self) -> bool:
        """Whether the precondition of the step holds and nothing rules it out."""
        return not self.unmet and not self.ruled_out_by


def next_steps(graph: SubtaskGraph, done: Sequence[Step] = (), ranker: Ranker | None = None) -> list[RankedStep]:
    """Rank the steps that are left.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    done : sequence of Step
        The steps done so far, in order.
    ranker : Ranker, optional
        How probable each step is; by default steps are ranked by `recency`, without probabilities.

    Returns
    -------
    list of RankedStep
        The most probable first; equals in the order of the graph (layer, then name).

    Raises
    ------
    InputError
        For a step that the graph does not have.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> [(ranked.rank, ranked.step, ranked.eligible) for ranked in next_steps(graph, done=["whisk"])]
    [(1, 'dip', True), (2, 'fry', False)]
    """
    return rank_steps(RunStateTracker(graph), done, ranker)


def rank_steps(
    tracker: RunStateTracker, done: Sequence[Step], ranker: Ranker | None = None, k: int | None = None
) -> list[RankedStep]:
    """Rank the steps that are left, as `next_steps`, for many questions about one graph."""
    graph, state = tracker.graph, tracker.state_after(done)
    weights = (ranker or _recency(tracker, RHO))(done)
    possible = [name for name in graph.steps if name not in state.completed or weights.get(name, 0.0) > 0]
    left = sorted(possible, key=lambda name: -weights.get(name, 0.0))
    return [
        RankedStep(
            name,
            rank,
            None if ranker is None else weights.get(name, 0.0),
            state.waited.get(name),
            unmet_clauses(graph.precondition(name), state.completed),
            tuple(sorted(state.completed & graph.ruled_out_by(name))) if name not in state.completed else (),
            tuple(sorted(graph.awaited(name, state.completed))) if name not in state.completed else (),
            name in state.completed,
        )
        for rank, name in enumerate(left[:k], start=1)
    ]


def recency(graph: SubtaskGraph, rho: float = RHO) -> Ranker:
    """The ranker of App. C: of the eligible steps, the one that became eligible last."""
    require(0 < rho <= 1, f"rho is {rho}, it must be above 0 and at most 1")
    return _recency(RunStateTracker(graph), rho)


def _recency(tracker: RunStateTracker, rho: float) -> Ranker:
    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        state = tracker.state_after(done)
        # Only ratios count: measured from the freshest step, ρ^Δ of a long video does not vanish altogether.
        freshest = min((state.waited[name] for name in state.eligible - state.completed), default=0)
        return eligible_probabilities(tracker.graph, state, lambda name: float(rho ** (state.waited[name] - freshest)))

    return probabilities_after


def eligible_probabilities(graph: SubtaskGraph, state: RunState, weight: Callable[[Step], float]) -> dict[Step, float]:
    """Probabilities of the steps that are left, in proportion to a weight."""
    left = [name for name in graph.steps if name not in state.completed]
    return _normalize({name: weight(name) if name in state.eligible else 0.0 for name in left})


def bigram(task: Demonstrations) -> Ranker:
    """A baseline without any graph: counts of "b directly after a" in `task`, of the steps not yet done.

    p(b | a) ∝ #(a → b) + #(b) / (1 + Σ #), with a = START for the first step: where a pair was never seen, the
    share of the videos' labels that are b decides. Steps that some video does again may always come.
    """
    videos = task if isinstance(task, Task) else to_task(task, repeats="keep")
    pairs: Counter[tuple[Step | None, Step]] = Counter()
    single: Counter[Step] = Counter()
    again: set[Step] = set()
    for video in videos:
        sequence = [segment.step for segment in video.segments]
        pairs.update(zip((None, *sequence), sequence, strict=False))
        counts = Counter(sequence)
        single.update(counts)
        again.update(name for name, times in counts.items() if times > 1)
    total = 1 + single.total()

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        last, completed = (done[-1] if done else None), set(done) - again
        left = [name for name in videos.steps if name not in completed]
        return _normalize({name: pairs[last, name] + single[name] / total for name in left})

    return probabilities_after


def _normalize(weights: Mapping[Step, float]) -> dict[Step, float]:
    """`weights` with the sum 1; all equal where they are all 0."""
    total = sum(weights.values())
    return {name: weight / total if total else 1 / len(weights) for name, weight in weights.items()}


DISCOUNT = 0.9
"""λ: reward lost per step since the precondition of a step was satisfied. The other values are those of a public
implementation of the policy."""
TEMPERATURE = 200.0
"""T: how sharply the policy prefers the steepest reward."""
OR_SHARE = 0.8
"""λ_or: share of its precondition in the progress of an incomplete step; the rest is its completion."""
OR_SHARPNESS = 2.0
"""w_or: sharpness of the softened OR; 0 is the mean, infinity the maximum."""
AND_SHARPNESS = 8.0
"""β_and: sharpness of the softened AND's lower bound at 0."""
NEGATIVE_WEIGHT = 3.0
"""w_and: how strongly a completed step blocks an AND that negates it."""


def grprop(graph: SubtaskGraph) -> Ranker:
    """The GRProp policy as a ranker; where nothing is eligible, all steps that are left are equal."""
    tracker = RunStateTracker(graph)

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        state = tracker.state_after(done)
        completion = np.array([name in state.completed for name in graph.steps], dtype=np.float64)
        rewards = np.array([DISCOUNT ** state.waited.get(name, 0) for name in graph.steps])
        _, slope = softened_reward(graph, completion, rewards)
        logits = dict(zip(graph.steps, (TEMPERATURE * slope).tolist(), strict=True))
        highest = max((logits[name] for name in state.eligible - state.completed), default=0.0)
        return eligible_probabilities(graph, state, lambda name: math.exp(logits[name] - highest))

    return probabilities_after


def softened_reward(
    graph: SubtaskGraph, completion: NDArray[np.float64], rewards: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """U and its gradient ∂U/∂x."""
    size = len(graph.steps)
    raw = {n: _Soft(float(x), unit) for n, x, unit in zip(graph.steps, completion, np.eye(size), strict=True)}
    soft: dict[Step, _Soft] = {}
    for name in graph.steps:  # parents come first: steps are sorted by layer
        own = raw[name]
        if own.value >= 1:
            soft[name] = own
            continue
        before = _soften(graph.precondition(name), soft, raw)
        soft[name] = _Soft(
            OR_SHARE * before.value + (1 - OR_SHARE) * own.value, OR_SHARE * before.slope + (1 - OR_SHARE) * own.slope
        )
    reward = sum(r * soft[name].value for name, r in zip(graph.steps, rewards.tolist(), strict=True))
    slopes = np.array([soft[name].slope for name in graph.steps]).reshape(size, size)
    return float(reward), rewards @ slopes


@dataclass(frozen=True, slots=True)
class _Soft:
    """A softened truth value and its slope, the gradient with respect to x, shape (steps,)."""

    value: float
    slope: NDArray[np.float64]


def _soften(formula: Formula, soft: Mapping[Step, _Soft], raw: Mapping[Step, _Soft]) -> _Soft:
    """The softened `formula`; steps take their values from `soft`, and from `raw` under a negation."""
    size = len(raw)
    match formula.kind:
        case "true":
            return _Soft(1.0, np.zeros(size))
        case "step":
            return soft[formula.name]
        case "not":
            inner = _soften(formula.operands[0], raw, raw)
            return _Soft(1 - inner.value, -inner.slope)
        case "all":
            positive = [_soften(o, soft, raw) for o in formula.operands if o.kind != "not"]
            negated = [_soften(o.operands[0], raw, raw) for o in formula.operands if o.kind == "not"]
            z, slope = 1.0, np.zeros(size)  # an AND of nothing holds
            if positive:
                z = sum(part.value for part in positive) / len(positive)
                slope = np.mean([part.slope for part in positive], axis=0)
            for part in negated:
                z, slope = z - NEGATIVE_WEIGHT * part.value, slope - NEGATIVE_WEIGHT * part.slope
            rising = np.exp(-np.logaddexp(0, -AND_SHARPNESS * z))  # ζ'(z), without overflow
            return _Soft(float(np.logaddexp(0, AND_SHARPNESS * z)) / AND_SHARPNESS, rising * slope)
        case "any":
            parts = [_soften(operand, soft, raw) for operand in formula.operands]
            values, slopes = np.array([p.value for p in parts]), np.array([p.slope for p in parts])
            weights = np.exp(OR_SHARPNESS * (values - values.max()))
            weights /= weights.sum()
            mean = float(weights @ values)
            return _Soft(mean, (weights * (1 + OR_SHARPNESS * (values - mean))) @ slopes)


# -- rankers by name ---------------------------------------------------------------------------------------------------


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


def _learned(graph: SubtaskGraph, task: Task) -> Ranker:
    from msg2.assist.learned_forecaster import fit_forecaster  # which builds on this module

    return fit_forecaster(graph, task)


def _accept_plugin(name: str, value: object) -> Mapping[str, RankerFactory]:
    require(isinstance(value, RankerFactory), "it is no msg2.assist.RankerFactory")
    return {name: cast(RankerFactory, value)}


RANKERS: Registry[RankerFactory] = Registry("msg2.rankers", _accept_plugin, {
    "recency": RankerFactory(lambda graph, task: recency(graph)),
    "grprop": RankerFactory(lambda graph, task: grprop(graph)),
    "bigram": RankerFactory(lambda graph, task: bigram(task), needs_graph=False, needs_videos=True),
    "learned": RankerFactory(_learned, needs_videos=True),
})  # fmt: skip
"""All rankers by name, those of plug-ins included."""
DEFAULT_RANKER = "recency"
"""Of a graph alone."""
LEARNED_RANKER = "learned"
"""The default of a graph with videos."""


def graph_rankers() -> tuple[str, ...]:
    """The rankers that need a graph only."""
    return tuple(name for name, factory in RANKERS.items() if not factory.needs_videos)


def make_ranker(name: str, graph: SubtaskGraph, task: Demonstrations | None = None) -> Ranker:
    """Make the ranker of this name; some learn from videos."""
    if name not in RANKERS:
        usable = graph_rankers() if task is None else tuple(RANKERS)
        raise InputError(f"there is no ranker {name!r}", hint=f"there are {', '.join(usable)}")
    if task is None and RANKERS[name].needs_videos:
        hint = f"without any, there are {', '.join(graph_rankers())}"
        raise InputError(f"the ranker {name!r} learns from videos", hint=hint)
    videos = Task(graph.task, graph.steps, []) if task is None else task_of_graph(graph, task)
    return RANKERS[name].make(graph, videos)
