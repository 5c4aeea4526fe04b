"""The score of an order, log p(choices | order, noise) + log p(order), and estimates of what a change would gain.

An order is a partial order of pairs, and ORs: steps that come after one of several. Before any video was looked at,

    log p(order) = Σ_steps −log C(n, r) − Σ_ORs log 2 N C(N − 1, k)

of every step, how many (r) of the n steps that usually precede it must do so is drawn first, all numbers alike; then
which, all alike or, where names have a say, p(set) ∝ Π exp(similarity). See `docs/likelihood.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import comb, inf, log
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.inference.likelihood.choices import ChoiceEvents, Disjunction, EligibleSteps, log_sum_exp, to_flags
from msg2.sequences import FloatArray, Variants
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.inference.likelihood.learner import LikelihoodOptions

NameEncoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""n texts -> vectors of shape (n, width) and length 1, or 0 where a text says nothing."""
PairMove: TypeAlias = Literal["add", "remove", "reverse"]
Gains: TypeAlias = NDArray[np.float32]
"""Differences of log p, in nats; or flags as numbers."""
MIN_GAIN = 1e-6
"""A smaller rise of the score is none (nats)."""
_NOISE_ROUNDS = 50
"""Rounds in which the noise is estimated, at most."""


def name_similarity(steps: Sequence[Step], encoder: NameEncoder) -> NDArray[np.float64]:
    """Measure how alike the names of two steps are, in standard deviations from the mean; shape (N, N)."""
    vectors = encoder(list(steps)).astype(np.float64)
    cosines = vectors @ vectors.T
    others = ~np.eye(len(steps), dtype=np.bool_)
    if not others.any() or cosines[others].std() < 1e-6:
        return np.zeros(cosines.shape)
    # Rounded: what is equally alike ties in any order of the steps.
    return np.asarray(np.round((cosines - cosines[others].mean()) / cosines[others].std(), 6) * others)


class PairWeights(NamedTuple):
    """What is known of pairs [a, b] beforehand: how alike the names are, and what statements gain; None: nothing."""

    similarity: FloatArray | None = None
    stated: FloatArray | None = None
    belief: float = 0.0
    """How far the statements take the place of counting how many steps come before each."""


NO_WEIGHTS = PairWeights()


@dataclass(frozen=True, eq=False)
class OrderPrior:
    """The prior of partial orders of N steps."""

    usual: NDArray[np.bool_]  # (N, N): [a, b] if a precedes b in most videos that order them
    similarity: FloatArray | None  # (N, N): how much the names suggest that b needs a
    cost: FloatArray  # (N, N + 1): cost of saying which r of its usual predecessors a step needs, names left aside
    unusual_cost: float  # extra cost of a pair against the usual order
    stated: FloatArray | None  # (N, N): what statements add to log p of an order with that pair

    @staticmethod
    def from_counts(
        before: NDArray[np.int64],
        similarity: FloatArray | None = None,
        stated: FloatArray | None = None,
        belief: float = 0.0,
    ) -> OrderPrior:
        """Make the prior for N steps."""
        usual, size = before > before.T, len(before)
        alike = np.zeros(usual.shape) if similarity is None else similarity
        # log Σ Π exp(similarity) over all sets of r usual predecessors; log C(n, r) where names are left aside.
        cost = np.full((size, size + 1), -np.inf)
        cost[:, 0] = 0.0
        for row, weight in zip(usual, alike, strict=True):
            with_it = np.logaddexp(cost[:, 1:], cost[:, :-1] + weight[:, None])
            cost[:, 1:] = np.where(row[:, None], with_it, cost[:, 1:])
        if belief > 0:
            cost = np.where(np.isfinite(cost), (1 - belief) * cost, cost)
        return OrderPrior(usual, alike if alike.any() else None, cost, float(np.log(max(size, 1))), stated)

    def log_probability(self, relations: NDArray[np.bool_], disjunctions: Iterable[Disjunction] = ()) -> FloatArray:
        """Compute log p(order), of one order or of many."""
        size, usual = len(self.usual), relations & self.usual
        cost = self.pair_cost(usual.sum(axis=-2), relations.sum(axis=-2)).sum(axis=-1)
        if self.similarity is not None:
            cost -= (usual * self.similarity).sum(axis=(-2, -1))
        if self.stated is not None:
            # Less the most that any order could gain, so that it stays a cost.
            most = np.maximum(np.maximum(self.stated, self.stated.T), 0).sum() / 2
            cost = cost + most - (relations * self.stated).sum(axis=(-2, -1))
        for owner, group in disjunctions:
            cost = cost + or_cost(len(group), size) * ~relations[..., [*group], owner].any(axis=-1)
        return np.asarray(-cost)

    def pair_cost(self, usual: NDArray[np.intp], every: NDArray[np.intp], step: int | None = None) -> FloatArray:
        """Tell what it costs that one step, or each of all, has so many predecessors; names left aside."""
        owner = np.arange(len(self.usual)) if step is None else step
        return np.asarray(self.cost[owner, usual] + (every - usual) * self.unusual_cost)


@cache
def or_cost(count: int, steps: int) -> float:
    """Cost of an OR of k steps: log 2 N C(N − 1, k), for its existence, the step it belongs to and its members."""
    return log(2 * steps * comb(steps - 1, count)) if count < steps else inf


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """A partial order of N steps, its ORs, its noise and its score."""

    relation: Relation
    disjunctions: frozenset[Disjunction]
    eligible: EligibleSteps
    table_row: NDArray[np.intp]  # (E,): the row of each choice in the scorer's table of log-probabilities
    noise: FloatArray  # (J,): the share of videos at each level of ε
    video_log_likelihoods: FloatArray  # (V, J): log p of each variant at each level
    weight: NDArray[np.int64]  # (V,): the videos of each variant
    prior: float  # log p(order)

    @cached_property
    def score(self) -> float:
        """log p(choices | order, noise) + log p(order), in nats; higher is better."""
        logs = np.log(self.noise)  # the Dirichlet prior of the shares is worth one video in all
        videos = float(self.weight @ log_sum_exp(self.video_log_likelihoods + logs))
        return videos + float(logs.sum() / len(logs)) + self.prior

    @cached_property
    def covering_pairs(self) -> Relation:
        """The pairs that do not follow from others, shape (N, N)."""
        reach = self.relation.astype(np.float32)
        return np.asarray(self.relation & (reach @ reach == 0))

    @cached_property
    def free_pairs(self) -> Relation:
        """The pairs [a, b] that can be added: a does not come after b, through pairs or ORs; shape (N, N)."""
        return np.asarray(~self.relation & ~self.reachable.T & ~np.eye(len(self.relation), dtype=np.bool_))

    @cached_property
    def reachable(self) -> Relation:
        """[a, b] where b is after a, through needed steps or alternatives, shape (N, N)."""
        if not self.disjunctions:
            return self.relation
        reach = self.relation.copy()
        for step, group in self.disjunctions:
            above, below = np.asarray(reach[:, [*group]].any(axis=1)), reach[step].copy()
            above[[*group]] = below[step] = True
            reach[above] |= below
        return reach

    def clauses(self, step: int) -> tuple[frozenset[int], ...]:
        """What a step waits for: one step of each clause; the single steps first, then the ORs."""
        singles = self.covering_pairs[:, step].nonzero()[0].tolist()
        ors = sorted((group for owner, group in self.disjunctions if owner == step), key=sorted)
        return (*(frozenset({single}) for single in singles), *ors)

    def move_pairs(self, kind: PairMove, before: Sequence[int], after: Sequence[int]) -> NDArray[np.bool_]:
        """Add, remove or reverse one pair, with all that follows from it, for each of K pairs; shape (K, N, N)."""
        relations = np.repeat(self.relation[None], len(before), axis=0)
        pairs = range(len(before))
        if kind == "add":
            above, below = self.relation.T[before], self.relation[after]
        else:
            relations[pairs, before, after] = False
            if kind == "remove":
                return relations
            above, below = self.relation.T[after], self.relation[before]
            above[pairs, before] = below[pairs, after] = False
            before, after = after, before
        above[pairs, before] = below[pairs, after] = True
        return relations | (above[:, :, None] & below[:, None, :])


@dataclass(frozen=True, eq=False)
class OrderScorer:
    """Scores orders of the same choices; `log_probabilities` (rows, J) is by the number of open and eligible steps."""

    events: ChoiceEvents
    prior: OrderPrior
    options: LikelihoodOptions
    log_probabilities: FloatArray
    together: Relation  # (N, N): pairs that mostly come at the same time, which are in no order

    @staticmethod
    def from_variants(variants: Variants, options: LikelihoodOptions, weights: PairWeights = NO_WEIGHTS) -> OrderScorer:
        """Prepare to score orders of the steps of `variants`."""
        events, prior = ChoiceEvents.from_variants(variants), OrderPrior.from_counts(variants.before, *weights)
        levels, count = np.array(options.levels), np.arange(len(variants.steps) + 1)
        by_rule = np.where(count > 0, 1 / np.maximum(count, 1), 0.0)
        # log p of a choice by the number of open and of eligible steps; none is eligible where it is disorderly.
        table = np.log(by_rule[None, :, None] * (1 - levels) + levels / np.maximum(count, 1)[:, None, None])
        return OrderScorer(events, prior, options, table.reshape(-1, len(levels)), variants.mostly_together)

    def score(
        self, relation: Relation, disjunctions: frozenset[Disjunction] = frozenset(), near: ScoredOrder | None = None
    ) -> ScoredOrder:
        """Score an order by what differs from a `near` order, with its noise; without one, all levels are alike."""
        events, logs = self.events, self.log_probabilities
        eligible = events.eligible_under(relation, disjunctions, None if near is None else near.eligible)
        # The row of each choice; as if none was eligible at disorderly ones.
        orderly = to_flags([eligible.hit], len(eligible.count))[0]
        table_row = np.asarray(events.open_count * np.intp(len(relation) + 1) + eligible.count * orderly)
        if near is None:
            levels = len(self.options.levels)
            noise, of_videos = np.full(levels, 1 / levels), np.zeros((0, levels))
            if len(table_row):
                of_videos = np.add.reduceat(logs[table_row], events.first, axis=0)
        else:
            noise, of_videos = near.noise, near.video_log_likelihoods
            changed = np.flatnonzero(table_row != near.table_row)
            if len(changed):
                videos = events.video[changed]
                first = np.flatnonzero(np.concatenate(([True], videos[1:] != videos[:-1])))
                rise = logs[table_row[changed]] - logs[near.table_row[changed]]
                of_videos = of_videos.copy()
                of_videos[videos[first]] += np.add.reduceat(rise, first, axis=0)
        prior = float(self.prior.log_probability(relation, disjunctions))
        return ScoredOrder(relation, disjunctions, eligible, table_row, noise, of_videos, events.weight, prior)

    def refit_noise(self, order: ScoredOrder) -> ScoredOrder:
        """Estimate the noise that is most probable under the order (EM, which never lowers the score)."""
        logs, shares, before = order.video_log_likelihoods, order.noise, -np.inf
        likelihoods = np.exp(logs - logs.max(axis=1, initial=-np.inf, keepdims=True))
        for _ in range(_NOISE_ROUNDS):
            of_video = likelihoods @ shares
            total = float(order.weight @ np.log(of_video) + np.log(shares).sum() / len(shares))
            if total - before < 1e-4:
                break
            counts = shares * ((order.weight / of_video) @ likelihoods) + 1 / len(shares)
            shares, before = counts / counts.sum(), total
        return replace(order, noise=shares)

    def count_disorderly(self, order: ScoredOrder) -> int:
        """Count the choices of all videos that are not eligible under the order."""
        disorderly = order.table_row % (len(order.relation) + 1) == 0
        return int(self.events.weight[self.events.video[disorderly]].sum())

    def improve(
        self, order: ScoredOrder, relation: Relation, disjunctions: Iterable[Disjunction]
    ) -> ScoredOrder | None:
        """Score another order, without the ORs of which an alternative must come first anyway; None if no higher."""
        needed = frozenset((owner, group) for owner, group in disjunctions if not relation[[*group], owner].any())
        candidate = self.score(relation, needed, order)
        is_higher = candidate.score > order.score + MIN_GAIN
        return candidate if is_higher and not candidate.reachable.diagonal().any() else None


@dataclass(frozen=True, eq=False)
class ChoiceSample:
    """E choices of N steps that stand for all: whole videos, evenly spread."""

    chosen: NDArray[np.intp] | slice  # which of all choices they are
    video: NDArray[np.intp]  # (E,): the variant of each choice
    step: NDArray[np.intp]  # (E,): the step that begins
    weight: Gains  # (E,): how many videos each choice stands for
    open: Gains  # (N, E): 1 where a step is open
    not_begun: Gains  # (N, E): 1 where it has not begun
    absent: Gains  # (N, E): 1 where it has not begun and never will

    @staticmethod
    def draw(events: ChoiceEvents, most: int) -> ChoiceSample:
        """Draw about so many choices."""
        size = len(events.step)
        stride = -(-size // max(most, 1))
        chosen: NDArray[np.intp] | slice = slice(None)
        weight = events.weight.astype(np.float64)
        if stride > 1:
            chosen = np.flatnonzero(events.video % stride == 0)
            weight *= weight.sum() / weight[::stride].sum()
        video = events.video[chosen]
        is_open, begun = (to_flags(sets, size)[:, chosen].astype(np.float32) for sets in (events.open, events.begun))
        not_begun = 1 - begun
        return ChoiceSample(
            chosen, video, events.step[chosen], weight[video].astype(np.float32),
            is_open, not_begun, not_begun - is_open * not_begun,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BlockingGains:
    """What N steps would gain by waiting, at the E choices of a sample; moves are compared by sums of these."""

    choices: ChoiceSample
    relation: Relation
    blocking: Gains  # (N, E): 1 where a step keeps others waiting
    eligible: Gains  # (N, E): 1 where it is eligible
    gain: Gains  # (N, E): nats gained if it has to wait, 0 where it is not open; negative if it begins here

    @staticmethod
    def estimate(scorer: OrderScorer, order: ScoredOrder, choices: ChoiceSample) -> BlockingGains:
        """Estimate the gains at some of the choices."""
        chosen, step = choices.chosen, choices.step
        weighed = order.video_log_likelihoods + np.log(order.noise)
        belief = np.exp(weighed - log_sum_exp(weighed)[:, None])[choices.video]  # p(level | variant)
        row, size = order.table_row[chosen], len(order.relation) + 1
        empty, hit = row - row % size, row % size > 0
        now = scorer.log_probabilities[row]

        count = order.eligible.count[chosen]
        eligible, blocking = (
            to_flags(sets, len(scorer.events.step))[:, chosen].astype(np.float32)
            for sets in (order.eligible.steps, order.eligible.blocking)
        )
        # By how much log p of each choice rises if one step fewer is eligible, one more, or what is begun is not.
        counts = np.maximum(count - 1, 1), np.minimum(count + 1, size - 1), np.zeros_like(count)
        fewer, more, without = (
            np.log((belief * np.exp(scorer.log_probabilities[empty + own] - now)).sum(axis=1)).astype(np.float32)
            for own in counts
        )
        gain = np.where(eligible > 0, np.where(hit, fewer, 0), np.where(hit, -more, 0))
        gain[step, np.arange(len(step))] = np.where(hit, without, -more)
        gain *= choices.open * choices.weight
        return BlockingGains(choices, order.relation, blocking, eligible, gain)

    @cached_property
    def blocking_at_all(self) -> Gains:
        """Where a step, or one that comes before it, keeps others waiting."""
        above = self.relation.T | np.eye(len(self.relation), dtype=np.bool_)
        return (above.astype(np.float32) @ self.blocking > 0).astype(np.float32)

    @cached_property
    def lost(self) -> Gains:
        """What each step loses at the choices at which it was begun and should have waited, shape (N,)."""
        return np.asarray(-(np.minimum(self.gain, 0) * (self.choices.open - self.eligible)).sum(axis=1))

    @cached_property
    def worth(self) -> Gains:
        """[a, b]: how much a is worth as one of several alternatives that b waits for, shape (N, N)."""
        # The share of the choices of b at which a was begun, and the share of what b gains by waiting that is left.
        now, reward = np.minimum(self.gain, 0), np.maximum(self.gain, 0)
        enough = (1 - self.choices.not_begun) @ now.T / np.minimum(now.sum(axis=1), -1e-6)
        return np.asarray(enough + self.choices.not_begun @ reward.T / np.maximum(reward.sum(axis=1), 1e-6))
