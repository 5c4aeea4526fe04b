"""The paper's method, MSG² (Sec. 4.2, App. B): the precondition of highest regularised precision, layer by layer.

    purity(n → m) = #(n before m) / (#(n before m) + #(m before n)); n is critical for m when it exceeds δ

The depth of a step is its longest path of critical steps; a precondition may only use steps of lower depth. It has the
highest J(f) = E_{D_n}[w · f(c)] / E_c[f(c)] − α C(f) (Eqs. ilp-new, jours) with recency w = max(0.1, λ^{gap−1}):
the mean is over the videos in which the target has a completed predecessor, E_c is uniform, C counts operations.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from msg2.graph import TRUE, all_of, any_of, step
from msg2.graph.closure import break_cycles, depths, transitive_closure
from msg2.inference.delta import Delta
from msg2.inference.result import TIE_TOLERANCE, Candidate, LearnedPreconditions, rank_candidates
from msg2.options import Count, NonNegative, options_class
from msg2.sequences import Sequences
from msg2.task import Step


@dataclass(frozen=True)
class Layers:
    """The steps sorted into layers by which step is critical for which."""

    critical: NDArray[np.bool_]  # (steps, steps), acyclic: [n, m] if n is critical for m
    depth: NDArray[np.int64]  # (steps,)
    ignored: int  # 0, or the number of videos up to which the order of a pair was ignored to break cycles


def build_layers(before: NDArray[np.int64], delta: Delta) -> Layers:
    """Sort steps into layers."""
    critical, ignored = break_cycles(purity(before) > float(delta), before + before.T)
    return Layers(critical, depths(critical), ignored)


def purity(before: NDArray[np.int64]) -> NDArray[np.float64]:
    """Transition purity, shape (steps, steps); 0 for pairs that are never ordered.

    >>> purity(np.array([[0, 3], [1, 0]])).tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    together = before + before.T
    share = np.zeros(before.shape)
    np.divide(before, together, out=share, where=together > 0)
    return share


def order_notes(critical: NDArray[np.bool_], ignored: int, before: NDArray[np.int64]) -> list[str]:
    """Say what a user should know about an order: cycles that were broken, or that there is none at all."""
    notes = []
    if ignored:
        notes.append(f"the videos' orders run in a circle; pairs ordered in at most {ignored} videos were ignored")
    if before.any() and not critical.any():
        notes.append("no precondition was found: no step comes before another often enough (δ)")
    return notes


@options_class
class Msg2Options:
    """The paper's search (`msg2`); symbols as in App. B."""

    delta: Delta = "auto"
    """δ: a step is critical for another when its transition purity is above this."""
    alpha: NonNegative = 0.2
    """α: cost of one Boolean operation."""
    recency: Annotated[float, Field(gt=0, le=1)] = 0.7
    """λ: weight kept per completed step in between; 1 switches recency off."""
    recency_rule: Literal["each", "satisfied"] = "each"
    """Weight of a formula: from each literal's own recency (minimum for AND, maximum for OR), or from the moment the
    formula became satisfied (the paper's text)."""
    max_literals: Count | None = 2
    """2 is the two-literal rule; none (or another number) is the paper's literal greedy search."""
    exclude_relatives: bool = False
    """Two-literal rule: the second literal may not be an ancestor or descendant of the first."""


_FLOOR = 0.1
"""The least recency weight (App. B.b)."""
_KEPT = 8
"""Candidates kept per step: the chosen one and the nearest alternatives."""


def learn(sequences: Sequences, options: Msg2Options) -> LearnedPreconditions:
    """Learn preconditions by the paper's search, layer by layer, with the best candidates of every step."""
    layers = build_layers(sequences.before, options.delta)
    candidates: dict[Step, list[Candidate]] = {}
    for index in np.argsort(layers.depth, kind="stable"):
        if layers.depth[index] > 0:
            rounds = search_rounds(sequences, layers, int(index), options, _KEPT)
            candidates[sequences.steps[index]] = rank_candidates(list(chain.from_iterable(rounds)), _KEPT)
    chosen = {name: considered[0].formula for name, considered in candidates.items()}
    notes = order_notes(layers.critical, layers.ignored, sequences.before)
    return LearnedPreconditions(chosen, candidates, notes=notes)


def search_rounds(
    sequences: Sequences, layers: Layers, index: int, options: Msg2Options, kept: int
) -> list[list[Candidate]]:
    """Search for the precondition of a step, round by round; each round has candidates of one literal more."""
    run, gap = sequences.observations(index)
    gap = np.repeat(gap, np.where(gap.any(axis=1), sequences.weight[run], 0), axis=0)  # where any step was completed
    lower = np.flatnonzero(layers.depth < layers.depth[index])
    target = SearchTarget(sequences.steps, gap, lower, options)
    if options.max_literals != 2:
        return _search_greedily(target, options.max_literals)
    direct = np.flatnonzero(layers.critical[:, index] & (layers.depth == layers.depth[index] - 1))
    barred = direct[:, None] == lower[None, :]
    if options.exclude_relatives:  # ancestors and descendants, by paths of critical steps
        below = transitive_closure(layers.critical)
        barred |= (below | below.T)[np.ix_(direct, lower)]
    return _search_two_literals(target, direct, barred, kept)


@dataclass(frozen=True)
class SearchTarget:
    """The step whose precondition is sought: its gaps (videos, steps), and the steps of `lower` layers."""

    steps: tuple[Step, ...]
    gap: NDArray[np.int32]
    lower: NDArray[np.intp]
    options: Msg2Options

    @cached_property
    def levels(self) -> list[tuple[int, np.float64]]:
        """The weight of a gap, w = max(0.1, λ^{gap−1}), as a sum of drops: w(gap) = Σ_k drop_k · [0 < gap ≤ k]."""
        # Sums of weights over videos are counts of videos times drops: exact, whatever the order of summation.
        weight = np.maximum(_FLOOR, self.options.recency ** np.arange(self.gap.max(initial=1), dtype=np.float64))
        drop = -np.diff(weight, append=0.0)
        return [(int(k) + 1, drop[k]) for k in np.flatnonzero(drop)]

    def join(self, one: NDArray[np.int32], other: NDArray[np.int32], both: bool) -> NDArray[np.int32]:
        """Compute the gap of a conjunction (`both`) or disjunction, row by row: 0 where it is not satisfied."""
        larger = np.maximum(one, other)
        # With a recency of each, AND takes the smaller and OR the larger weight; else it is the other way round.
        joined = larger if (self.options.recency_rule == "each") == both else np.minimum(one, other)
        return np.where((one > 0) & (other > 0), joined, 0 if both else larger)

    def objective(self, gaps: NDArray[np.int32], chance: float, operations: int) -> NDArray[np.float64]:
        """Compute J of several formulas."""
        weights = np.zeros(gaps.shape[1])
        for level, drop in self.levels:
            weights += drop * ((gaps > 0) & (gaps <= level)).sum(axis=0)
        return weights / len(gaps) / chance - self.options.alpha * operations


def _search_two_literals(
    target: SearchTarget, direct: NDArray[np.intp], barred: NDArray[np.bool_], kept: int
) -> list[list[Candidate]]:
    """Score p, p & q and p | q (2w, 4w − α, (4/3)w − α) for direct critical predecessors p and lower steps q."""
    # `smaller` sums the smaller weight of p and q over the videos that have both, `crossed` the sum of the two.
    lower, options, videos = target.lower, target.options, len(target.gap)
    first = np.searchsorted(lower, direct)  # places of the p among the lower steps
    gap = np.ascontiguousarray(target.gap[:, lower].T)  # (lower steps, videos)
    smaller, crossed, single = np.zeros(barred.shape), np.zeros(barred.shape), np.zeros(len(lower))
    exact = np.float32 if videos < 2**24 else np.float64  # for counts of videos
    completed: NDArray[np.floating] = (gap > 0).astype(exact)
    for level, drop in target.levels:
        recent = completed * (gap <= level)
        single += drop * recent.sum(axis=1)
        smaller += drop * (recent[first] @ recent.T)
        if options.recency_rule == "satisfied":
            crossed += drop * (recent[first] @ completed.T + completed[first] @ recent.T)
    conjunction = smaller if options.recency_rule == "each" else crossed - smaller
    disjunction = single[first][:, None] + single[None, :] - conjunction
    scores = np.stack([4 * conjunction / videos, (4 / 3) * disjunction / videos]) - options.alpha
    scores[:, barred] = -np.inf
    literal = [step(target.steps[index]) for index in lower]
    join = (all_of, any_of)
    pairs = [
        Candidate(join[kind]([literal[first[row]], literal[q]]), float(scores[kind, row, q]))
        for kind, row, q in _best_indices(scores, kept)
    ]
    return [[Candidate(literal[p], 2 * float(single[p]) / videos) for p in first], pairs]


def _best_indices(scores: NDArray[np.float64], kept: int) -> NDArray[np.intp]:
    """Indices of the best scores, shape (n, dimensions): enough for `kept` formulas, and all ties of the best."""
    flat = scores.ravel()
    wanted = min(2 * kept, int(np.isfinite(flat).sum()))  # p & q and q & p may both be there
    if wanted == 0:
        return np.empty((0, scores.ndim), dtype=np.intp)
    least = min(np.partition(flat, -wanted)[-wanted], flat.max() - TIE_TOLERANCE)
    return np.argwhere((scores >= least) & np.isfinite(scores))


def _search_greedily(target: SearchTarget, max_literals: Count | None) -> list[list[Candidate]]:
    """The paper's search: from the null precondition, add the operation and step that raise J most, until none does."""
    # A new step occurs nowhere else in the formula, so E_c[f & x] = E_c[f] / 2 and E_c[f | x] = (1 + E_c[f]) / 2.
    lower, steps = target.lower, target.steps
    columns = target.gap[:, lower]
    best, gap, chance = Candidate(TRUE, 1.0), np.ones(len(columns), dtype=np.int32), 1.0
    rounds = [[best]]
    for operations in range(min(len(lower), max_literals or len(lower))):
        grown = [(all_of, target.join(gap[:, None], columns, both=True) if operations else columns, chance / 2)]
        if operations:
            grown.append((any_of, target.join(gap[:, None], columns, both=False), (1 + chance) / 2))
        new = {
            join([best.formula, step(steps[x])]): (float(score), gaps[:, column], p)
            for join, gaps, p in grown
            for column, (x, score) in enumerate(zip(lower, target.objective(gaps, p, operations), strict=True))
            if steps[x] not in best.formula.steps
        }
        candidates = [Candidate(formula, score) for formula, (score, _, _) in new.items()]
        rounds.append(candidates)
        if (winner := rank_candidates(candidates, 1)[0]).score <= best.score + TIE_TOLERANCE:
            break
        best, (_, gap, chance) = winner, new[winner.formula]
    return rounds
