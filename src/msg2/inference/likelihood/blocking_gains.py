"""What it gains to keep a step waiting: the estimates that tell which moves of the search are worth trying.

At a choice at which a step b is open, k other steps are eligible. If b were kept waiting and not eligible,

    another orderly choice would be one of k, not of k + 1:    log p rises
    the choice of b itself would be disorderly:                log p falls to log (ε / |open|)

(both averaged over what is believed of the video's ε). With all other steps as they are, log p of an order thus is
about a sum over the choices at which b is kept waiting, whatever it waits for. So what b may wait for is compared by
sums, without scoring each. A sum is exact where it changes one choice of a video.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.inference.likelihood.bit_sets import BitSet, to_flags
from msg2.inference.likelihood.model import ChoiceEvents
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder

Gains: TypeAlias = NDArray[np.float32]
"""Differences of log p, in nats; or flags as numbers."""


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
        """Draw choices."""
        stride = -(-len(events) // max(most, 1))
        chosen: NDArray[np.intp] | slice = slice(None)
        weight = events.weight.astype(np.float64)
        if stride > 1:
            chosen = np.flatnonzero(events.video % stride == 0)
            weight *= weight.sum() / weight[::stride].sum()
        video, is_open, begun = (
            events.video[chosen],
            _dense(events.open, chosen, events),
            _dense(events.begun, chosen, events),
        )
        not_begun = 1 - begun
        return ChoiceSample(
            chosen, video, events.step[chosen], weight[video].astype(np.float32),
            is_open, begun, not_begun, not_begun - is_open * not_begun,
        )  # fmt: skip


def _dense(sets: Sequence[BitSet], chosen: NDArray[np.intp] | slice, events: ChoiceEvents) -> Gains:
    return to_flags(sets, len(events))[:, chosen].astype(np.float32)


@dataclass(frozen=True, eq=False)
class BlockingGains:
    """Of N steps at the E choices of a sample, shape (N, E) each, as numbers: where a step keeps others waiting
    (`blocking`) and is `eligible`; and the `gain` in nats if it is kept waiting rather than eligible, 0 where it is not
    open. `relation` (N, N) is the order.
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
            _dense(sets, chosen, scorer.events) for sets in (order.eligible.steps, order.eligible.blocking)
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
    def blocking_at_all(self) -> Gains:
        """Where a step, or one that comes before it, keeps others waiting."""
        above = self.relation.T | np.eye(len(self.relation), dtype=np.bool_)
        return (above.astype(np.float32) @ self.blocking > 0).astype(np.float32)

    @cached_property
    def worth(self) -> Gains:
        """[a, b]: how much a is worth as one of several alternatives that b waits for, shape (N, N).

        It is the share of the choices of b at which a was begun, and the share of what b gains by waiting that is left.
        """
        now, reward = np.minimum(self.gain, 0), np.maximum(self.gain, 0)
        enough = self.choices.begun @ now.T / np.minimum(now.sum(axis=1), -1e-6)
        return np.asarray(enough + self.choices.not_begun @ reward.T / np.maximum(reward.sum(axis=1), 1e-6))

    @cached_property
    def if_removed(self) -> Gains:
        """[a, b]: by how much log p rises if b no longer waits for a, shape (N, N)."""
        only = self.choices.open * (self.relation.T.astype(np.float32) @ self.blocking == 1)
        return np.asarray(-(self.blocking @ (self.gain * only).T))
