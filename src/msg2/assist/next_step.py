"""What comes next (App. C): p_{t+1}[n] ∝ e_t[n] · (1 − c_t[n]) · ρ^Δ[n].

A step can follow when it is eligible and not yet completed, and it is the more likely the more recently it became
eligible. A `Ranker` is anything that answers this question, so that graphs, policies and counts are scored alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msg2.assist.progress import Progress, ProgressOf, unmet_clauses
from msg2.graph import Formula, SubtaskGraph
from msg2.options import NextStepOptions
from msg2.task import Step, Task

Ranker: TypeAlias = Callable[[Sequence[Step]], Mapping[Step, float]]
"""From the steps done so far, in order, to the probability of each step that is left."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A step that is left, how likely it is next, and why.

    `waited` is the number of steps done since it first became eligible (None: never); `unmet` are the clauses of its
    precondition that do not hold yet.
    """

    step: Step
    probability: float
    waited: int | None
    unmet: tuple[Formula, ...]

    @property
    def eligible(self) -> bool:
        """Whether the precondition of the step holds."""
        return not self.unmet


def next_steps(graph: SubtaskGraph, done: Sequence[Step] = (), ranker: Ranker | None = None) -> list[Ranked]:
    """The steps that are left, the most probable first; equals in the order of the graph (layer, then name).

    `ranker` says how probable they are, by default `recency`. Where nothing is eligible, all that is left is equally
    probable.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> [(ranked.step, ranked.probability, ranked.eligible) for ranked in next_steps(graph, done=["whisk"])]
    [('dip', 1.0, True), ('fry', 0.0, False)]
    """
    progress = ProgressOf(graph)(done)
    probability = (ranker or recency(graph))(done)
    ranking = [
        Ranked(n, probability[n], progress.waited.get(n), unmet_clauses(graph.precondition(n), progress.completed))
        for n in graph.steps
        if n not in progress.completed
    ]
    return sorted(ranking, key=lambda ranked: -ranked.probability)


def recency(graph: SubtaskGraph, options: NextStepOptions | None = None) -> Ranker:
    """The ranker of App. C: of the eligible steps, the one that became eligible last."""
    progress_of, rho = ProgressOf(graph), (options or NextStepOptions()).rho

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        progress = progress_of(done)
        # Only ratios count: measured from the freshest step, ρ^Δ of a long video does not vanish altogether.
        freshest = min((progress.waited[name] for name in progress.eligible - progress.completed), default=0)
        return probabilities(graph, progress, lambda name: float(rho ** (progress.waited[name] - freshest)))

    return probabilities_after


def probabilities(graph: SubtaskGraph, progress: Progress, weight: Callable[[Step], float]) -> dict[Step, float]:
    """Probabilities of the steps that are left: in proportion to `weight` for those that are eligible, else 0.

    Where nothing is eligible, all that is left is equally probable.
    """
    left = [name for name in graph.steps if name not in progress.completed]
    return _normalised({name: weight(name) if name in progress.eligible else 0.0 for name in left})


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
        return _normalised({name: pairs[last, name] + single[name] / total for name in left})

    return probabilities_after


def _normalised(weights: Mapping[Step, float]) -> dict[Step, float]:
    """`weights` with the sum 1; all equal where they are all 0."""
    total = sum(weights.values())
    return {name: weight / total if total else 1 / len(weights) for name, weight in weights.items()}
