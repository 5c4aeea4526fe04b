"""The score of an order: log p(choices | order, noise) + log p(order).

An order is a partial order of pairs, and ORs: steps that come after one of several. Scores of neighbouring orders share
nearly all of their work: only the choices whose probability changes are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, transitive_closure
from msg2.inference.likelihood.likelihood_options import LikelihoodOptions
from msg2.inference.likelihood.model import ChoiceEvents, Disjunction, EligibleSteps
from msg2.inference.likelihood.noise import NoiseModel, choice_log_probabilities
from msg2.inference.likelihood.prior import OrderPrior
from msg2.inference.likelihood.run_variants import Variants
from msg2.sequences import FloatArray

Places: TypeAlias = Sequence[int]
"""Indices of steps."""


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """A partial order with its disjunctions, its noise and its score.

    `table_row` (E,) is the row of the scorer's table of log-probabilities for each of the E choices;
    `video_log_likelihoods` (V, J) are log p of each variant at each noise level, `weight` (V,) its videos; `prior` is
    log p(order).
    """

    eligible: EligibleSteps
    table_row: NDArray[np.intp]
    noise: NoiseModel
    video_log_likelihoods: FloatArray
    weight: NDArray[np.int64]
    prior: float

    @property
    def relation(self) -> Relation:
        """The order, shape (N, N)."""
        return self.eligible.relation

    @property
    def disjunctions(self) -> frozenset[Disjunction]:
        """The ORs."""
        return self.eligible.disjunctions

    @cached_property
    def score(self) -> float:
        """log p(choices | order, noise) + log p(order), in nats; higher is better."""
        return self.noise.log_likelihood(self.video_log_likelihoods, self.weight) + self.prior

    def covering_pairs(self) -> Relation:
        """The pairs that do not follow from others, shape (N, N)."""
        return self._covering_pairs

    def free_pairs(self) -> Relation:
        """The pairs [a, b] that can be added: a does not come after b, through pairs or ORs; shape (N, N)."""
        return np.asarray(~self.relation & ~self.reachable.T & ~np.eye(len(self.relation), dtype=np.bool_))

    @cached_property
    def _covering_pairs(self) -> Relation:
        reach = self.relation.astype(np.float32)
        return np.asarray(self.relation & (reach @ reach == 0))

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

    def without_pairs(self, before: Places, after: Places) -> Relation:
        """Return the order without one of its covering pairs, for each of K of them."""
        relations = np.repeat(self.relation[None], len(before), axis=0)
        relations[range(len(before)), before, after] = False
        return relations

    def with_pairs(self, before: Places, after: Places) -> Relation:
        """Return the order with one more pair and all that follows from it, for each of K pairs."""
        return _add_pairs(self.relation, self.relation.T[before], self.relation[after], before, after)

    def with_reversed_pairs(self, before: Places, after: Places) -> Relation:
        """Return the order with one of its covering pairs the other way round, for each of K of them."""
        above, below, pairs = self.relation.T[after], self.relation[before], range(len(before))
        above[pairs, before] = below[pairs, after] = False
        return _add_pairs(self.without_pairs(before, after), above, below, after, before)


def needed_disjunctions(relation: Relation, disjunctions: Iterable[Disjunction]) -> frozenset[Disjunction]:
    """Leave out the ORs of which an alternative must come first anyway."""
    return frozenset((owner, group) for owner, group in disjunctions if not relation[[*group], owner].any())


def _add_pairs(
    relation: Relation, above: Relation, below: Relation, before: Places, after: Places
) -> NDArray[np.bool_]:
    """The relation with each of K pairs, given what is above and below them, shape (K, N)."""
    pairs = range(len(before))
    above[pairs, before] = below[pairs, after] = True
    return relation | (above[:, :, None] & below[:, None, :])


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
        table = choice_log_probabilities(np.array(options.levels), len(variants.steps))
        return OrderScorer(
            ChoiceEvents.from_variants(variants),
            OrderPrior.from_counts(variants.before, similarity),
            options,
            table.reshape(-1, len(options.levels)),
        )

    def score(self, relation: Relation, disjunctions: frozenset[Disjunction] = frozenset()) -> ScoredOrder:
        """Score an order while nothing is known about the noise: all levels alike."""
        noise, eligible = NoiseModel.uniform(self.options.levels), self.events.eligible_under(relation, disjunctions)
        table_row = self.table_row(eligible)
        video_log_likelihoods = np.zeros((0, len(noise.levels)))
        if len(table_row):
            video_log_likelihoods = np.add.reduceat(self.log_probabilities[table_row], self.events.first, axis=0)
        prior = float(self.prior.log_probability(relation, disjunctions))
        return ScoredOrder(eligible, table_row, noise, video_log_likelihoods, self.events.weight, prior)

    def refit_noise(self, order: ScoredOrder) -> ScoredOrder:
        """Estimate the noise that is most probable under the order."""
        return replace(order, noise=order.noise.fit(order.video_log_likelihoods, order.weight))

    def count_disorderly(self, order: ScoredOrder) -> int:
        """Count the choices of all videos that are not eligible under the order."""
        orderly = order.eligible.eligible_count_where_hit() > 0
        return int(self.events.weight[self.events.video[~orderly]].sum())

    def move_to(
        self, order: ScoredOrder, relation: Relation, disjunctions: frozenset[Disjunction] | None = None
    ) -> ScoredOrder:
        """Score another order with the same noise; only the choices whose probability changes are looked at."""
        disjunctions = order.disjunctions if disjunctions is None else disjunctions
        eligible = order.eligible.eligible_under(relation, disjunctions, self.events)
        table_row = self.table_row(eligible)
        changed = np.flatnonzero(table_row != order.table_row)
        video_log_likelihoods = order.video_log_likelihoods
        if len(changed):
            videos = self.events.video[changed]
            first = np.flatnonzero(np.concatenate(([True], videos[1:] != videos[:-1])))
            video_log_likelihoods = video_log_likelihoods.copy()
            rise = self.log_probabilities[table_row[changed]] - self.log_probabilities[order.table_row[changed]]
            video_log_likelihoods[videos[first]] += np.add.reduceat(rise, first, axis=0)
        prior = float(self.prior.log_probability(relation, disjunctions))
        return ScoredOrder(eligible, table_row, order.noise, video_log_likelihoods, order.weight, prior)

    def table_row(self, eligible: EligibleSteps) -> NDArray[np.intp]:
        """Look up the row of `log_probabilities` of each choice, shape (E,)."""
        size = len(eligible.relation) + 1
        return np.asarray(self.events.open_count * np.intp(size) + eligible.eligible_count_where_hit())
