"""The paper's method, MSG² (Sec. 4.2, App. B): the precondition of highest regularised precision, layer by layer.

J(f) = E_{D_n}[w · f(c)] / E_c[f(c)] − α C(f)                                                    (Eqs. ilp-new, jours)

with recency weights w = max(0.1, λ^{gap−1}). The mean is over the videos in which the target has a completed
predecessor; E_c is uniform over all completion vectors; C counts Boolean operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import TRUE, all_of, any_of, step
from msg2.inference.layers import Layers, closure, layers, order_notes
from msg2.inference.learnt import SAME, Candidate, Learnt, ranked
from msg2.options import PrecisionOptions
from msg2.task import Step

_FLOOR = 0.1
"""The least recency weight (App. B.b)."""
_KEPT = 8
"""Candidates kept per step: the chosen one and the nearest alternatives."""


def learn(evidence: Evidence, options: PrecisionOptions) -> Learnt:
    """Preconditions of all steps; `options.delta` is a number here."""
    order = _Order.of(evidence, options)
    found = order.layers
    candidates: dict[Step, list[Candidate]] = {}
    for index in np.argsort(found.depth, kind="stable"):
        if found.depth[index] > 0:
            rounds = _rounds(evidence, order, int(index), options, _KEPT)
            candidates[evidence.steps[index]] = ranked(list(chain.from_iterable(rounds)), _KEPT)
    chosen = {name: considered[0].formula for name, considered in candidates.items()}
    return Learnt(chosen, candidates, order_notes(found.critical, found.ignored, evidence.before))


Outcome: TypeAlias = Literal["goes on", "found", "no better"]
"""Of a round: its best candidate is better than all before, is so for the last time, is not."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the search for a precondition: its best candidates, the best one first, and what came of it."""

    candidates: tuple[Candidate, ...]
    outcome: Outcome


def search_trace(evidence: Evidence, name: Step, options: PrecisionOptions, most: int) -> list[Round]:
    """The search for the precondition of a step, round by round, with at most `most` candidates of each.

    `options.delta` is a number here. The greedy search begins with the null precondition, the two-literal rule with
    single steps; each round has candidates of one literal more. A step of the lowest layer is not searched for: it has
    no rounds.

    >>> from msg2.task import Segment, Task, Video
    >>> task = Task("t", "abc", [Video(v, map(Segment, v)) for v in ("abc", "bac")])
    >>> for found in search_trace(Evidence.of(task), "c", PrecisionOptions(delta=0.9), most=2):
    ...     print(found.outcome, [(str(one.formula), round(one.score, 2)) for one in found.candidates])
    goes on [('a', 1.7), ('b', 1.7)]
    found [('a & b', 2.6), ('a | b', 1.13)]
    """
    order, index = _Order.of(evidence, options), evidence.steps.index(name)
    if order.layers.depth[index] == 0:
        return []
    rounds = [ranked(found, most) for found in _rounds(evidence, order, index, options, most) if found]
    highest = accumulate((found[0].score for found in rounds), max, initial=-np.inf)
    better = [found[0].score > before + SAME for found, before in zip(rounds, highest, strict=False)]
    outcomes: list[Outcome] = ["goes on" if one else "no better" for one in better]
    outcomes[len(better) - 1 - better[::-1].index(True)] = "found"
    return [Round(tuple(found), outcome) for found, outcome in zip(rounds, outcomes, strict=True)]


@dataclass(frozen=True, slots=True)
class _Order:
    """The layers of the steps, and which are on one path (steps, steps) where such pairs are excluded; else None."""

    layers: Layers
    relatives: NDArray[np.bool_] | None

    @staticmethod
    def of(evidence: Evidence, options: PrecisionOptions) -> _Order:
        if options.delta == "auto":
            raise ValueError("delta is still to be chosen: see msg2.inference.choice")
        found = layers(evidence.before, options.delta)
        below = closure(found.critical) if options.exclude_relatives else None
        return _Order(found, None if below is None else below | below.T)


def _rounds(
    evidence: Evidence, order: _Order, index: int, options: PrecisionOptions, kept: int
) -> list[list[Candidate]]:
    """The candidates for a step by the round of the search; of each round, the best `kept` are surely there."""
    gap = evidence.rows(index).gap
    gap = gap[gap.any(axis=1)]  # videos in which the target has a completed predecessor
    recency = Recency.of(options, int(gap.max(initial=1)))
    target = Target(evidence.steps, gap, order.layers.lower(index), recency, options.alpha)
    if options.max_literals != 2:
        return _greedy(target, options.max_literals)
    direct = order.layers.direct(index)
    barred = direct[:, None] == target.lower[None, :]
    if order.relatives is not None:
        barred |= order.relatives[np.ix_(direct, target.lower)]
    return _two_literals(target, direct, barred, kept)


@dataclass(frozen=True, slots=True)
class Recency:
    """The weight of a gap, w = max(0.1, λ^{gap−1}), as a sum of drops: w(gap) = Σ_k drop_k · [0 < gap ≤ k].

    Sums of weights over videos thus are counts of videos times drops: exact, whatever the order of summation. There
    are only as many `levels` (k, drop_k) as w has values.
    """

    levels: tuple[tuple[int, float], ...]
    of_each: bool
    """AND takes the smaller and OR the larger of two weights; else the other way round (see `PrecisionOptions`)."""

    @staticmethod
    def of(options: PrecisionOptions, longest: int) -> Recency:
        """Weights up to the longest gap in the data.

        >>> Recency.of(PrecisionOptions(recency=0.5), 2).levels
        ((1, 0.5), (2, 0.5))
        """
        weight = np.maximum(_FLOOR, options.recency ** np.arange(longest, dtype=np.float64))
        drop = -np.diff(weight, append=0.0)
        levels = tuple((int(k) + 1, float(drop[k])) for k in np.flatnonzero(drop))
        return Recency(levels, options.recency_rule == "each")

    def both(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Gap of a conjunction, row by row: 0 where it is not satisfied."""
        joined = np.maximum(one, other) if self.of_each else np.minimum(one, other)
        return np.where((one > 0) & (other > 0), joined, np.int32(0))

    def either(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Gap of a disjunction, row by row: 0 where it is not satisfied."""
        joined = np.minimum(one, other) if self.of_each else np.maximum(one, other)
        return np.where((one > 0) & (other > 0), joined, np.maximum(one, other))


@dataclass(frozen=True, slots=True)
class Target:
    """The step whose precondition is sought: its gaps (videos, steps), the steps of `lower` layers, weights and α."""

    steps: tuple[Step, ...]
    gap: NDArray[np.int32]
    lower: NDArray[np.intp]
    recency: Recency
    alpha: float

    def objective(self, gaps: NDArray[np.int32], chance: float, operations: int) -> NDArray[np.float64]:
        """J of formulas whose gaps are the columns of `gaps` (videos, formulas) and whose E_c[f] is `chance`."""
        weights = np.zeros(gaps.shape[1])
        for level, drop in self.recency.levels:
            weights += drop * ((gaps > 0) & (gaps <= level)).sum(axis=0)
        return weights / len(gaps) / chance - self.alpha * operations


def _two_literals(
    target: Target, direct: NDArray[np.intp], barred: NDArray[np.bool_], kept: int
) -> list[list[Candidate]]:
    """p; p & q and p | q for direct critical predecessors p and lower steps q: scores 2w, 4w − α, (4/3)w − α.

    `smaller` sums the smaller weight of p and q over the videos that have both, `crossed` the sum of the two.
    """
    lower, videos = target.lower, len(target.gap)
    first = np.searchsorted(lower, direct)  # places of the p among the lower steps
    gap = np.ascontiguousarray(target.gap[:, lower].T)  # (lower steps, videos)
    smaller, crossed, single = np.zeros(barred.shape), np.zeros(barred.shape), np.zeros(len(lower))
    completed = _packed(gap > 0)
    for level, drop in target.recency.levels:
        recent = _packed((gap > 0) & (gap <= level))
        single += drop * np.bitwise_count(recent).sum(axis=1, dtype=np.int64)
        for row, p in enumerate(first):
            smaller[row] += drop * _shared(recent[p], recent)
            if not target.recency.of_each:
                crossed[row] += drop * (_shared(recent[p], completed) + _shared(completed[p], recent))
    conjunction = smaller if target.recency.of_each else crossed - smaller
    disjunction = single[first][:, None] + single[None, :] - conjunction
    scores = np.stack([4 * conjunction / videos, (4 / 3) * disjunction / videos]) - target.alpha
    scores[:, barred] = -np.inf
    literal = [step(target.steps[index]) for index in lower]
    join = (all_of, any_of)
    pairs = [
        Candidate(join[kind]([literal[first[row]], literal[q]]), float(scores[kind, row, q]))
        for kind, row, q in _best(scores, kept)
    ]
    return [[Candidate(literal[p], 2 * float(single[p]) / videos) for p in first], pairs]


def _packed(marks: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Marks (steps, videos) as bits of words, shape (steps, words)."""
    octets = np.packbits(marks, axis=1)
    padded = np.zeros((octets.shape[0], -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def _shared(one: NDArray[np.uint64], many: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of videos marked in `one` (words,) and in each row of `many` (steps, words)."""
    counts: NDArray[np.int64] = np.bitwise_count(one & many).sum(axis=1, dtype=np.int64)
    return counts


def _best(scores: NDArray[np.float64], kept: int) -> NDArray[np.intp]:
    """Indices of the best scores, shape (n, dimensions): enough for `kept` formulas, and all ties of the best."""
    flat = scores.ravel()
    wanted = min(2 * kept, int(np.isfinite(flat).sum()))  # p & q and q & p may both be there
    if wanted == 0:
        return np.empty((0, scores.ndim), dtype=np.intp)
    least = min(np.partition(flat, -wanted)[-wanted], flat.max() - SAME)
    return np.argwhere((scores >= least) & np.isfinite(scores))


def _greedy(target: Target, max_literals: int | None) -> list[list[Candidate]]:
    """The paper's search: from the null precondition, add the operation and step that raise J most, until none does.

    A new step occurs nowhere else in the formula, so E_c[f & x] = E_c[f] / 2 and E_c[f | x] = (1 + E_c[f]) / 2.
    """
    lower, steps, recency = target.lower, target.steps, target.recency
    columns = target.gap[:, lower]
    best, gap, chance = Candidate(TRUE, 1.0), np.ones(len(columns), dtype=np.int32), 1.0
    rounds = [[best]]
    for operations in range(min(len(lower), max_literals or len(lower))):
        grown = [(all_of, recency.both(gap[:, None], columns) if operations else columns, chance / 2)]
        if operations:
            grown.append((any_of, recency.either(gap[:, None], columns), (1 + chance) / 2))
        new = {
            join([best.formula, step(steps[x])]): (float(score), gaps[:, column], p)
            for join, gaps, p in grown
            for column, (x, score) in enumerate(zip(lower, target.objective(gaps, p, operations), strict=True))
            if steps[x] not in best.formula.support
        }
        candidates = [Candidate(formula, score) for formula, (score, _, _) in new.items()]
        rounds.append(candidates)
        if (winner := ranked(candidates, 1)[0]).score <= best.score + SAME:
            break
        best, (_, gap, chance) = winner, new[winner.formula]
    return rounds
