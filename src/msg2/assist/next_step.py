"""The next step (App. C): p_{t+1}[n] ∝ e_t[n] · (1 − c_t[n]) · ρ^Δ[n].

A step can follow when it is eligible and not yet completed, and it is the more likely the more recently it became
eligible. A `Ranker` is anything that answers this question, so that graphs, policies and counts are scored alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msg2.assist.run_state import RunState, RunStateTracker
from msg2.graph import Formula, SubtaskGraph
from msg2.graph.formula import unmet_clauses
from msg2.task import Step, Task
from msg2.validation import require

RHO = 0.9
"""ρ: discount per step since a step became eligible."""

Ranker: TypeAlias = Callable[[Sequence[Step]], Mapping[Step, float]]
"""From the steps done so far, in order, to the probability of each step that is left."""


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
    """Rank the steps that are left, as `next_steps`, for many questions about one graph.

    Parameters
    ----------
    tracker : RunStateTracker
        Of the graph.
    done : sequence of Step
        The steps done so far, in order.
    ranker : Ranker, optional
        As in `next_steps`.
    k : int, optional
        How many steps, at most.

    Returns
    -------
    list of RankedStep
    """
    graph, state = tracker.graph, tracker.state_after(done)
    weights = (ranker or _recency(tracker, RHO))(done)
    left = sorted((name for name in graph.steps if name not in state.completed), key=lambda name: -weights[name])
    return [
        RankedStep(
            name,
            rank,
            None if ranker is None else weights[name],
            state.waited.get(name),
            unmet_clauses(graph.precondition(name), state.completed),
            tuple(sorted(state.completed & (graph.partners(name) | graph.order_successors(name)))),
            tuple(sorted(graph.awaited(name, state.completed))),
        )
        for rank, name in enumerate(left[:k], start=1)
    ]


def recency(graph: SubtaskGraph, rho: float = RHO) -> Ranker:
    """The ranker of App. C: of the eligible steps, the one that became eligible last.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    rho : float
        ρ, above 0 and at most 1.

    Returns
    -------
    Ranker

    Raises
    ------
    InputError
        For another ρ.
    """
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
    """Probabilities of the steps that are left, in proportion to a weight.

    Parameters
    ----------
    graph : SubtaskGraph
        Its steps.
    state : RunState
        What is completed and eligible.
    weight : callable
        From an eligible step to its weight; steps that are not eligible have the probability 0.

    Returns
    -------
    dict of Step to float
        Where nothing is eligible, all that is left is equally probable.
    """
    left = [name for name in graph.steps if name not in state.completed]
    return _normalize({name: weight(name) if name in state.eligible else 0.0 for name in left})


def bigram(task: Task) -> Ranker:
    """A baseline without any graph: counts of "b directly after a" in `task`, of the steps not yet done.

    p(b | a) ∝ #(a → b) + #(b) / (1 + Σ #), with a = START for the first step: where a pair was never seen, the
    share of the videos' labels that are b decides.

    >>> from msg2.task import Segment, Video
    >>> task = Task("t", "abc", [Video("v", [Segment("a"), Segment("b"), Segment("c")])])
    >>> best = bigram(task)(["a"])
    >>> max(best, key=best.get)
    'b'
    """
    pairs: Counter[tuple[Step | None, Step]] = Counter()
    for video in task:
        sequence = video.sequence()
        pairs.update(zip((None, *sequence), sequence, strict=False))
    single = Counter(step for video in task for step in video.sequence())
    total = 1 + single.total()

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        last, completed = (done[-1] if done else None), set(done)
        left = [name for name in task.steps if name not in completed]
        return _normalize({name: pairs[last, name] + single[name] / total for name in left})

    return probabilities_after


def _normalize(weights: Mapping[Step, float]) -> dict[Step, float]:
    """`weights` with the sum 1; all equal where they are all 0."""
    total = sum(weights.values())
    return {name: weight / total if total else 1 / len(weights) for name, weight in weights.items()}
