"""Hill climbing to the partial order under which demonstrations are most probable.

The score of an order is log p(choices | order, noise) + log p(order). A move adds, removes or reverses one pair; moves
are tried in the order of what they promise, and the best one that raises the score is taken, until none does. Then the
noise is estimated again, and the search goes on while that helps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.bits import Bits, unpack_bits
from msg2.inference.likelihood.model import ChoiceEvents, Disjunction, EligibleSteps
from msg2.inference.likelihood.noise import NoiseModel, choice_log_probabilities
from msg2.inference.likelihood.prior import OrderPrior
from msg2.inference.relations import Relation
from msg2.sequences import Sequences
from msg2.validation import require

Gains: TypeAlias = NDArray[np.float32]
"""Differences of log p, in nats."""

_MIN_GAIN = 1e-6
"""A smaller rise of the score is none (nats)."""


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """`likelihood`: how the search goes; none of it is a threshold of what is found."""

    absent: Literal["auto", "unknown", "skipped"] = "auto"
    """A video lacks a step: its label may be missing ("unknown"), or it was not done ("skipped", as in event logs)."""
    levels: tuple[float, ...] = (0.0001, 0.02, 0.05, 0.1, 0.2, 0.4)
    """Probabilities of a disorderly choice; the share of videos at each level is learned."""
    starts: tuple[float, ...] = (0.95, 0.8)
    """The search starts from the pairs that more than this share of the videos order alike, and from no order."""
    candidates: int = 12
    """Pairs to add, to remove and to reverse whose score is computed before each move: those that promise most."""
    max_moves: int = 10_000
    """Moves of one climb, at most."""
    search_videos: int = 120
    """Of more videos, so many serve for the climbs from all starts; the last climb is with all of them."""
    tolerance: float = 0.01
    """Nats that a new estimate of the noise, or an OR, must gain for the search to go on."""
    min_alone: int = 2
    """Times that each of several alternatives must have been enough without the others: once may be disorder."""

    def __post_init__(self) -> None:
        levels, starts = self.levels, self.starts
        require(
            len(levels) > 0 and all(1e-12 <= level < 1 for level in levels),
            f"levels is {levels}, it must be one or more numbers from 1e-12 to below 1",
        )
        require(all(0 <= share < 1 for share in starts), f"starts is {starts}, it must be numbers from 0 to below 1")
        for name in ("candidates", "max_moves", "search_videos", "min_alone"):
            value = getattr(self, name)
            require(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        require(0 < self.tolerance < float("inf"), f"tolerance is {self.tolerance}, it must be a number above 0")


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """A partial order with its disjunctions, its noise and its score.

    `table_row` (E,) is the row of the search's table of log-probabilities for each of the E choices;
    `video_log_likelihoods` (V, J) are log p of each video at each noise level; `prior` is log p(order).
    """

    eligible: EligibleSteps
    table_row: NDArray[np.intp]
    noise: NoiseModel
    video_log_likelihoods: FloatArray
    prior: float

    @property
    def relation(self) -> Relation:
        """The order, shape (N, N)."""
        return self.eligible.relation

    @cached_property
    def score(self) -> float:
        """log p(choices | order, noise) + log p(order), in nats; higher is better."""
        return self.noise.log_likelihood(self.video_log_likelihoods) + self.prior

    @cached_property
    def covering_pairs(self) -> NDArray[np.bool_]:
        """The pairs that do not follow from others, shape (N, N)."""
        reach = self.relation.astype(np.float32)
        covers: NDArray[np.bool_] = self.relation & (reach @ reach == 0)
        return covers

    def disjunctions(self, step: int) -> list[frozenset[int]]:
        """Return the groups of steps of which this step needs one each, sorted."""
        return sorted((group for owner, group in self.eligible.disjunctions if owner == step), key=sorted)

    def without_pair(self, before: int, after: int) -> Relation:
        """Return the order without one of its covering pairs.

        Parameters
        ----------
        before, after : int
            Indices of the steps.

        Returns
        -------
        array of shape (N, N)
        """
        relation = self.relation.copy()
        relation[before, after] = False
        return relation

    def with_pair(self, before: int, after: int) -> Relation:
        """Return the order with one more pair, and all that follows from it.

        Parameters
        ----------
        before, after : int
            Indices of the steps.

        Returns
        -------
        array of shape (N, N)
        """
        return _add_pair(self.relation, before, after)

    def with_reversed_pair(self, before: int, after: int) -> Relation:
        """Return the order with one of its covering pairs the other way round.

        Parameters
        ----------
        before, after : int
            Indices of the steps.

        Returns
        -------
        array of shape (N, N)
        """
        return _add_pair(self.without_pair(before, after), after, before)


def _add_pair(relation: Relation, before: int, after: int) -> Relation:
    above, below = relation[:, before].copy(), relation[after].copy()
    above[before] = below[after] = True
    return relation | np.outer(above, below)


@dataclass(frozen=True, eq=False)
class HillClimbing:
    """Climbs from an order to a better one, until no move raises the score.

    `log_probabilities` is a table of log p of a choice, shape (rows, J), one row for each number of open and of
    eligible steps.
    """

    events: ChoiceEvents
    prior: OrderPrior
    options: LikelihoodOptions
    log_probabilities: FloatArray

    @staticmethod
    def from_sequences(
        sequences: Sequences, options: LikelihoodOptions, similarity: FloatArray | None = None
    ) -> HillClimbing:
        """Prepare a search among the orders of the steps of `sequences`.

        Parameters
        ----------
        sequences : Sequences
            The videos.
        options : LikelihoodOptions
            How the search goes.
        similarity : array of shape (N, N), optional
            How alike the names of the steps are; as in `OrderPrior`.

        Returns
        -------
        HillClimbing
        """
        table = choice_log_probabilities(np.array(options.levels), len(sequences.steps))
        return HillClimbing(
            ChoiceEvents.from_sequences(sequences),
            OrderPrior.from_sequences(sequences, similarity),
            options,
            table.reshape(-1, len(options.levels)),
        )

    @cached_property
    def stride(self) -> int:
        """Of many choices, one in so many estimates gains as long as any move helps; at the end all of them do."""
        return max(1, len(self.events.first) // self.options.search_videos)

    def climb(self, relation: Relation) -> ScoredOrder:
        """Climb from `relation`: every move, and every new estimate of the noise, raises the score."""
        order = self.refit_noise(self.score_order(relation))
        stride = self.stride
        for _ in range(self.options.max_moves):
            better = self._best_move(order, stride)
            if better is None and stride > 1:
                stride, better = 1, order
            elif better is None:
                refitted = self.refit_noise(order)
                if refitted.score - order.score < self.options.tolerance:
                    return refitted
                better = refitted
            order = better
        return order

    def score_order(self, relation: Relation) -> ScoredOrder:
        """Score an order while nothing is known about the noise: all levels alike."""
        noise, eligible = NoiseModel.uniform(self.options.levels), self.events.eligible_under(relation)
        table_row = self.table_row(eligible)
        video_log_likelihoods = np.zeros((0, len(noise.levels)))
        if len(table_row):
            video_log_likelihoods = np.add.reduceat(self.log_probabilities[table_row], self.events.first, axis=0)
        prior = self.prior.log_probability(relation)
        return ScoredOrder(eligible, table_row, noise, video_log_likelihoods, prior)

    def refit_noise(self, order: ScoredOrder) -> ScoredOrder:
        """Estimate the noise that is most probable under the order."""
        return replace(order, noise=order.noise.fit(order.video_log_likelihoods))

    def move_to(
        self, order: ScoredOrder, relation: Relation, disjunctions: frozenset[Disjunction] | None = None
    ) -> ScoredOrder:
        """Score another order with the same noise; only the choices whose probability changes are looked at.

        Parameters
        ----------
        order : ScoredOrder
            Where the move starts.
        relation : array of shape (N, N)
            Where it leads.
        disjunctions : frozenset, optional
            The ORs there; by default those of `order`.

        Returns
        -------
        ScoredOrder
        """
        disjunctions = order.eligible.disjunctions if disjunctions is None else disjunctions
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
        prior = self.prior.log_probability(relation, disjunctions)
        return ScoredOrder(eligible, table_row, order.noise, video_log_likelihoods, prior)

    def table_row(self, eligible: EligibleSteps) -> NDArray[np.intp]:
        """Look up the row of `log_probabilities` of each choice, shape (E,)."""
        size = len(eligible.relation) + 1
        return np.asarray(self.events.open_count * np.intp(size) + eligible.eligible_count_where_hit())

    def _best_move(self, order: ScoredOrder, stride: int) -> ScoredOrder | None:
        """The best move, if it raises the score; moves that promise less than another one brings are not tried."""
        best, least = None, order.score + _MIN_GAIN
        for promise, relation in self._promising_moves(order, stride):
            if best is not None and order.score + promise < best.score:
                break
            candidate = self.move_to(order, relation)
            if candidate.score > (least if best is None else best.score):
                best = candidate
        return best

    def _promising_moves(self, order: ScoredOrder, stride: int) -> list[tuple[float, Relation]]:
        """By how much the score would rise if the pair stood alone, and where the move leads; the best first."""
        added, removed = self._estimate_gains(order, stride)
        free = ~order.relation & ~order.relation.T & ~np.eye(len(order.relation), dtype=np.bool_)
        moves: list[tuple[float, Relation]] = []
        kinds = (
            (added, free, order.with_pair),
            (removed, order.covering_pairs, order.without_pair),
            (removed + added.T, order.covering_pairs, order.with_reversed_pair),
        )
        for gain, pairs, move in kinds:
            places = np.argwhere(pairs)
            for chosen in np.argsort(-gain[pairs], kind="stable")[: self.options.candidates]:
                before, after = places[chosen].tolist()
                relation = move(before, after)
                promise = float(gain[before, after]) + self.prior.log_probability(relation) - order.prior
                moves.append((promise, relation))
        return sorted(moves, key=lambda move: -move[0])

    def _estimate_gains(self, order: ScoredOrder, stride: int) -> tuple[Gains, Gains]:
        """Shape (N, N) twice: the rise of log p(choices) if [a, b] is added, and if it is removed.

        That a step may be late is left aside. One choice in `stride` speaks for all.
        """
        blocked, unblocked = self.blocking_gains(order, stride)
        blocking = self.to_dense(order.eligible.blocking, stride)
        return stride * (blocking @ blocked.T), stride * (blocking @ unblocked.T)

    def blocking_gains(self, order: ScoredOrder, stride: int) -> tuple[Gains, Gains]:
        """Compute how log p of each choice changes if a step becomes blocked, and if it no longer is.

        Where b becomes blocked, one step less is eligible, and b itself is begun against the rule; where it is no
        longer blocked (one step only kept it waiting), one more is.

        Parameters
        ----------
        order : ScoredOrder
            The order as it is.
        stride : int
            One choice in so many is looked at.

        Returns
        -------
        tuple of two arrays of shape (N, E / stride)
            In nats.
        """
        events, noise = self.events, order.noise
        rate = (noise.posterior(order.video_log_likelihoods) @ noise.levels)[events.video[::stride]]
        floor = rate / events.open_count[::stride]
        count = order.eligible.count[::stride]
        hit = order.table_row[::stride] % (len(order.relation) + 1) > 0

        def log_probability(eligible: NDArray[np.int16]) -> FloatArray:
            return np.asarray(np.log((1 - rate) / np.maximum(eligible, 1) + floor))

        current = np.where(hit, log_probability(count), np.log(floor))
        blocking, now = self.to_dense(order.eligible.blocking, stride), (events.step[::stride], np.arange(len(count)))
        only = self.to_dense(events.open, stride) * (order.relation.T.astype(np.float32) @ blocking == 1)
        fewer = np.where(hit, log_probability(count - 1) - current, 0).astype(np.float32)
        blocked = self.to_dense(order.eligible.steps, stride) * fewer
        blocked[now] = np.where(hit, np.log(floor) - current, 0)
        unblocked = only * np.where(hit, log_probability(count + 1) - current, 0).astype(np.float32)
        unblocked[now] = only[now] * (log_probability(count + 1) - current)
        return blocked, unblocked

    def to_dense(self, bits: Bits, stride: int) -> Gains:
        """Unpack bits to numbers.

        Parameters
        ----------
        bits : array of shape (N, ⌈E / 64⌉)
            One bit for each choice.
        stride : int
            One choice in so many is unpacked.

        Returns
        -------
        array of shape (N, E / stride)
        """
        return unpack_bits(bits, len(self.events))[:, ::stride].astype(np.float32)
