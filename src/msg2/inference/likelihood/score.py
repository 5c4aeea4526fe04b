"""The score of an order, log p(choices | order, noise) + log p(order), and estimates of what a change would gain.

An order is a partial order of pairs, and ORs: steps that come after one of several. What is likely about it before any
video was looked at:

    log p(order) = Σ_steps −log C(n, r) − Σ_ORs log 2 N C(N − 1, k)

Of every step, how many of the n steps that usually precede it must do so, r, is drawn first, all numbers alike; then
which, all alike. A step mostly needs nearly everything that usually precedes it (mix, serve) or next to nothing (chop),
and both are cheap to say. If names have a say (off by default), steps that speak of the same thing are more likely to
depend on each other: of all sets of r predecessors, p(set) ∝ Π exp(similarity).

Scores of neighbouring orders share nearly all of their work: only choices whose probability changes are looked at.

Which changes are worth scoring is estimated. At a choice at which a step b is open, k other steps are eligible. If b
were kept waiting and not eligible,

    another orderly choice would be one of k, not of k + 1:    log p rises
    the choice of b itself would be disorderly:                log p falls to log (ε / |open|)

(both averaged over what is believed of the video's ε). With all other steps as they are, log p of an order thus is
about a sum over the choices at which b is kept waiting, whatever it waits for. So what b may wait for is compared by
sums, without scoring each. A sum is exact where it changes one choice of a video.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import comb, inf, log
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, transitive_closure
from msg2.inference.likelihood.choices import (
    ChoiceEvents,
    Disjunction,
    EligibleSteps,
    NoiseModel,
    to_flags,
)
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

# -- the prior ------------------------------------------------------------------------------------------------------


def name_similarity(steps: Sequence[Step], encoder: NameEncoder) -> NDArray[np.float64]:
    """Measure how alike the names of two steps are, in standard deviations from the mean; shape (N, N)."""
    vectors = encoder(list(steps)).astype(np.float64)
    cosines = vectors @ vectors.T
    others = ~np.eye(len(steps), dtype=np.bool_)
    if not others.any() or cosines[others].std() < 1e-6:
        return np.zeros(cosines.shape)
    # Rounded: what is equally alike ties in any order of the steps.
    return np.asarray(np.round((cosines - cosines[others].mean()) / cosines[others].std(), 6) * others)


def log_subset_weights(similarity: NDArray[np.float64], usual: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Sum Π exp(similarity) over all sets of r usual predecessors of a step; log C(n, r) where names are left aside."""
    size = len(usual)
    logs = np.full((size, size + 1), -np.inf)
    logs[:, 0] = 0.0
    for before in range(size):
        with_it = np.logaddexp(logs[:, 1:], logs[:, :-1] + similarity[before][:, None])
        logs[:, 1:] = np.where(usual[before][:, None], with_it, logs[:, 1:])
    return logs


@dataclass(frozen=True, eq=False)
class OrderPrior:
    """The prior of partial orders of N steps.

    `usual` (N, N) is [a, b] where a precedes b in most videos that order them; `similarity` (N, N) how much the names
    speak for needing a of them; `cost` (N, N + 1) what it costs to say which r of them b needs, names left aside;
    `unusual_cost` what a pair against the usual order costs besides.
    """

    usual: NDArray[np.bool_]
    similarity: FloatArray | None
    cost: FloatArray
    unusual_cost: float

    @staticmethod
    def from_counts(before: NDArray[np.int64], similarity: FloatArray | None = None) -> OrderPrior:
        """Make the prior for N steps."""
        usual = before > before.T
        cost = log_subset_weights(np.zeros(usual.shape) if similarity is None else similarity, usual)
        told = similarity if similarity is not None and similarity.any() else None
        return OrderPrior(usual, told, cost, float(np.log(max(len(usual), 1))))

    def log_probability(
        self, relations: NDArray[np.bool_], disjunctions: Iterable[Disjunction] = frozenset()
    ) -> FloatArray:
        """Compute log p(order), of one order or of many."""
        size = len(self.usual)
        usual = relations & self.usual
        cost = self.pair_cost(usual.sum(axis=-2), relations.sum(axis=-2)).sum(axis=-1)
        if self.similarity is not None:
            cost -= (usual * self.similarity).sum(axis=(-2, -1))
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


# -- the score ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """A partial order of pairs (N, N), its ORs, its noise and its score.

    `table_row` (E,) is the row of the scorer's table of log-probabilities for each of the E choices;
    `video_log_likelihoods` (V, J) are log p of each variant at each noise level, `weight` (V,) its videos; `prior` is
    log p(order).
    """

    relation: Relation
    disjunctions: frozenset[Disjunction]
    eligible: EligibleSteps
    table_row: NDArray[np.intp]
    noise: NoiseModel
    video_log_likelihoods: FloatArray
    weight: NDArray[np.int64]
    prior: float

    @cached_property
    def score(self) -> float:
        """log p(choices | order, noise) + log p(order), in nats; higher is better."""
        return self.noise.log_likelihood(self.video_log_likelihoods, self.weight) + self.prior

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
        edges = self.relation.copy()
        for step, group in self.disjunctions:
            edges[[*group], step] = True
        return transitive_closure(edges)

    @property
    def is_cyclic(self) -> bool:
        """Whether a step comes after itself, through pairs and ORs."""
        return bool(self.reachable.diagonal().any())

    def disjunctions_of(self, step: int) -> list[frozenset[int]]:
        """Return the groups of steps of which this step needs one each, sorted."""
        return sorted((group for owner, group in self.disjunctions if owner == step), key=sorted)

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


def needed_disjunctions(relation: Relation, disjunctions: Iterable[Disjunction]) -> frozenset[Disjunction]:
    """Leave out the ORs of which an alternative must come first anyway."""
    return frozenset((owner, group) for owner, group in disjunctions if not relation[[*group], owner].any())


@dataclass(frozen=True, eq=False)
class OrderScorer:
    """Scores orders of the same choices.

    `log_probabilities` is a table of log p of a choice, shape (rows, J), one row for each number of open and of
    eligible steps.
    """

    events: ChoiceEvents
    prior: OrderPrior
    options: LikelihoodOptions
    log_probabilities: FloatArray

    @staticmethod
    def from_variants(
        variants: Variants, options: LikelihoodOptions, similarity: FloatArray | None = None
    ) -> OrderScorer:
        """Prepare to score orders of the steps of `variants`."""
        events, prior = ChoiceEvents.from_variants(variants), OrderPrior.from_counts(variants.before, similarity)
        levels, count = np.array(options.levels), np.arange(len(variants.steps) + 1)
        by_rule = np.where(count > 0, 1 / np.maximum(count, 1), 0.0)
        # log p of a choice by the number of open and of eligible steps; none is eligible where it is disorderly.
        table = np.log(by_rule[None, :, None] * (1 - levels) + levels / np.maximum(count, 1)[:, None, None])
        return OrderScorer(events, prior, options, table.reshape(-1, len(levels)))

    def score(self, relation: Relation, disjunctions: frozenset[Disjunction] = frozenset()) -> ScoredOrder:
        """Score an order while nothing is known about the noise: all levels alike."""
        levels = self.options.levels
        noise = NoiseModel(np.array(levels), np.full(len(levels), 1 / len(levels)))
        eligible = self.events.eligible_under(relation, disjunctions)
        table_row = self._table_row(eligible)
        video_log_likelihoods = np.zeros((0, len(levels)))
        if len(table_row):
            video_log_likelihoods = np.add.reduceat(self.log_probabilities[table_row], self.events.first, axis=0)
        prior = float(self.prior.log_probability(relation, disjunctions))
        return ScoredOrder(
            relation, disjunctions, eligible, table_row, noise, video_log_likelihoods, self.events.weight, prior
        )

    def refit_noise(self, order: ScoredOrder) -> ScoredOrder:
        """Estimate the noise that is most probable under the order."""
        return replace(order, noise=order.noise.fit(order.video_log_likelihoods, order.weight))

    def count_disorderly(self, order: ScoredOrder) -> int:
        """Count the choices of all videos that are not eligible under the order."""
        disorderly = order.table_row % (len(order.relation) + 1) == 0
        return int(self.events.weight[self.events.video[disorderly]].sum())

    def move_to(
        self, order: ScoredOrder, relation: Relation, disjunctions: frozenset[Disjunction] | None = None
    ) -> ScoredOrder:
        """Score another order with the same noise; only the choices whose probability changes are looked at."""
        disjunctions = order.disjunctions if disjunctions is None else disjunctions
        eligible = order.eligible.eligible_under(relation, disjunctions, self.events)
        table_row = self._table_row(eligible)
        changed = np.flatnonzero(table_row != order.table_row)
        video_log_likelihoods = order.video_log_likelihoods
        if len(changed):
            videos = self.events.video[changed]
            first = np.flatnonzero(np.concatenate(([True], videos[1:] != videos[:-1])))
            video_log_likelihoods = video_log_likelihoods.copy()
            rise = self.log_probabilities[table_row[changed]] - self.log_probabilities[order.table_row[changed]]
            video_log_likelihoods[videos[first]] += np.add.reduceat(rise, first, axis=0)
        prior = float(self.prior.log_probability(relation, disjunctions))
        return ScoredOrder(
            relation, disjunctions, eligible, table_row, order.noise, video_log_likelihoods, order.weight, prior
        )

    def _table_row(self, eligible: EligibleSteps) -> NDArray[np.intp]:
        """The row of `log_probabilities` of each choice, shape (E,): by the number of open and of eligible steps.

        As if none was eligible where what was begun was not one of them.
        """
        size, count = len(eligible.relation) + 1, eligible.count
        return np.asarray(self.events.open_count * np.intp(size) + count * to_flags([eligible.hit], len(count))[0])


# -- estimates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ChoiceSample:
    """E choices of N steps that speak for all: whole videos, evenly spread, as numbers.

    `chosen` says which of all choices they are; `video`, `step` and `weight` (E,) whose each is, what is begun and for
    how many videos it stands. Shape (N, E): where a step is `open`, was `begun` earlier, or was `not_begun`, and where
    it is `absent`, not begun and never will be.
    """

    chosen: NDArray[np.intp] | slice
    video: NDArray[np.intp]
    step: NDArray[np.intp]
    weight: Gains
    open: Gains
    begun: Gains
    not_begun: Gains
    absent: Gains

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
            is_open, begun, not_begun, not_begun - is_open * not_begun,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BlockingGains:
    """What N steps would gain by waiting, at the E choices of a sample; shape (N, E) each, as numbers.

    `blocking`: where a step keeps others waiting; `eligible`: where it is eligible; `gain`: the nats gained if it is
    kept waiting rather than eligible, 0 where it is not open. `relation` (N, N) is the order.
    """

    choices: ChoiceSample
    relation: Relation
    blocking: Gains
    eligible: Gains
    gain: Gains

    @staticmethod
    def estimate(scorer: OrderScorer, order: ScoredOrder, choices: ChoiceSample) -> BlockingGains:
        """Estimate the gains at some of the choices."""
        chosen, step = choices.chosen, choices.step
        belief = order.noise.posterior(order.video_log_likelihoods)[choices.video]
        row, size = order.table_row[chosen], len(order.relation) + 1
        empty, hit = row - row % size, row % size > 0
        now = scorer.log_probabilities[row]

        def rise(count: NDArray[np.integer]) -> Gains:
            """By how much log p of each choice rises if so many steps are eligible, what is begun among them."""
            change = scorer.log_probabilities[empty + count] - now
            return np.asarray(np.log((belief * np.exp(change)).sum(axis=1)), dtype=np.float32)

        count = order.eligible.count[chosen]
        eligible, blocking = (
            to_flags(sets, len(scorer.events.step))[:, chosen].astype(np.float32)
            for sets in (order.eligible.steps, order.eligible.blocking)
        )
        fewer, more = np.where(hit, rise(np.maximum(count - 1, 1)), 0), rise(np.minimum(count + 1, size - 1))
        gain = np.where(eligible > 0, fewer, np.where(hit, -more, 0))
        gain[step, np.arange(len(step))] = np.where(hit, rise(np.zeros_like(count)), -more)
        gain *= choices.open * choices.weight
        return BlockingGains(choices, order.relation, blocking, eligible, gain)

    @cached_property
    def if_added(self) -> Gains:
        """[a, b]: by how much log p rises if b waits for a as well, shape (N, N); late steps are left aside."""
        return np.asarray(self.blocking @ (self.gain * self.eligible).T)

    @cached_property
    def if_removed(self) -> Gains:
        """[a, b]: by how much log p rises if b no longer waits for a, shape (N, N)."""
        only = self.choices.open * (self.relation.T.astype(np.float32) @ self.blocking == 1)
        return np.asarray(-(self.blocking @ (self.gain * only).T))

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
        """[a, b]: how much a is worth as one of several alternatives that b waits for, shape (N, N).

        It is the share of the choices of b at which a was begun, and the share of what b gains by waiting that is left.
        """
        now, reward = np.minimum(self.gain, 0), np.maximum(self.gain, 0)
        enough = self.choices.begun @ now.T / np.minimum(now.sum(axis=1), -1e-6)
        return np.asarray(enough + self.choices.not_begun @ reward.T / np.maximum(reward.sum(axis=1), 1e-6))
