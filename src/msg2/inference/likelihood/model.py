"""The model: a demonstration is a sequence of choices. Which step is begun next, of those that are still to come?

Under a strict partial order the next step is one of the eligible ones, all alike, or, with a small probability ε, any:

    p(s) = (1 − ε) · [s eligible] / |eligible| + ε / |open|

Open are the steps of the video that are still to come. A step is eligible when none of those that must come before it
is open; what the video never shows was skipped, or done and not labelled, and keeps nobody waiting. Neither does a step
that is late: once a step that needed it has been begun, people go on as if it had been done. Steps that overlap were
begun in either order: when one is begun, the other is neither open nor done.

What holds of a step is kept as one bit a choice: another order is compared with all choices in a few operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.inference.bits import Bits, pack_bits, unpack_bits
from msg2.inference.likelihood.run_variants import Variants
from msg2.inference.relations import Relation

Disjunction: TypeAlias = tuple[int, frozenset[int]]
"""A step, and steps of which one must come before it: b comes after a or c."""


@dataclass(frozen=True, eq=False)
class ChoiceEvents:
    """E choices in V variants of runs of N steps, ordered by variant; where only one step is left, it is none.

    `video`, `step`, `open_count` (E,): whose choice it is, what is begun, and among how many. `weight` (V,): the videos
    of each variant. Bits of each step: where it is `now` begun, is `open` (begun now or later, and after this one has
    ended), and was `begun`, and ended, earlier.
    """

    video: NDArray[np.intp]
    step: NDArray[np.intp]
    open_count: NDArray[np.int16]
    weight: NDArray[np.int64]
    now: Bits
    open: Bits
    begun: Bits

    @staticmethod
    def from_variants(variants: Variants) -> ChoiceEvents:
        """Collect the choices of every variant.

        >>> from msg2.sequences import Sequences
        >>> from msg2.task import Segment, Task, Video
        >>> task = Task("tea", ["boil", "pour"], [Video("v", [Segment("boil"), Segment("pour")])])
        >>> events = ChoiceEvents.from_variants(Variants.from_sequences(Sequences.from_task(task)))
        >>> unpack_bits(events.open, len(events)).tolist()
        [[1], [1]]
        """
        video, step = np.nonzero(variants.shown)
        start, end = variants.start[video, step], variants.end[video, step]
        starts, ends = variants.start[video].T, variants.end[video].T
        earlier, later = ends <= start, starts >= end
        now = step == np.arange(len(variants.steps))[:, None]
        still_open, count = later | now, later.sum(axis=0, dtype=np.int16) + np.int16(1)
        telling = count > 1
        bits = (pack_bits(flags[:, telling]) for flags in (now, still_open, earlier))
        kept, numbers = np.unique(video[telling], return_inverse=True)
        return ChoiceEvents(numbers, step[telling], count[telling], variants.weight[kept], *bits)

    def __len__(self) -> int:
        return len(self.video)

    @property
    def videos(self) -> int:
        """How many videos there are in all; those with one step only are not among them."""
        return int(self.weight.sum())

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Where each video's choices begin, shape (V,)."""
        return np.flatnonzero(np.diff(self.video, prepend=-1))

    def eligible_under(self, relation: Relation, disjunctions: frozenset[Disjunction]) -> EligibleSteps:
        """Find what is eligible under an order.

        Parameters
        ----------
        relation : array of shape (N, N)
            The order, transitive.
        disjunctions : frozenset of Disjunction
            Its ORs.

        Returns
        -------
        EligibleSteps
        """
        none, hit = np.zeros_like(relation), np.bitwise_or.reduce(self.now, axis=0)
        free = EligibleSteps(none, frozenset(), self.open, self.open, hit, self.open_count)
        return free.eligible_under(relation, disjunctions, self)

    def none_begun(self, steps: frozenset[int]) -> Bits:
        """Mark the choices before which none of the steps has been begun, and one of them is still to come."""
        chosen = [*steps]
        return np.asarray(np.bitwise_or.reduce(self.open[chosen]) & ~np.bitwise_or.reduce(self.begun[chosen]))


@dataclass(frozen=True, eq=False)
class EligibleSteps:
    """What is eligible under a `relation` and under the `disjunctions` that steps need one of.

    Bits of each step: where it is eligible, `steps`, and where it keeps others waiting, `blocking`. The bits where what
    was begun is eligible, `hit`, and how many are, `count` (E,).
    """

    relation: Relation
    disjunctions: frozenset[Disjunction]
    blocking: Bits
    steps: Bits
    hit: Bits
    count: NDArray[np.int16]

    def eligible_under(
        self, other: Relation, disjunctions: frozenset[Disjunction], events: ChoiceEvents
    ) -> EligibleSteps:
        """Find what is eligible under another order; only what can differ is computed.

        Parameters
        ----------
        other : array of shape (N, N)
            The other order, transitive.
        disjunctions : frozenset of Disjunction
            The ORs there.
        events : ChoiceEvents
            The same events.

        Returns
        -------
        EligibleSteps
        """
        differs = self.relation != other
        blocking, affected = self.blocking.copy(), differs.any(axis=0)
        affected[[step for step, _ in self.disjunctions ^ disjunctions]] = True
        for source in np.flatnonzero(differs.any(axis=1)):
            late = np.bitwise_or.reduce(events.begun[other[source]])
            blocking[source] = events.open[source] & ~late
            if not np.array_equal(blocking[source], self.blocking[source]):
                affected |= self.relation[source] | other[source]
        steps, hit, count = self.steps.copy(), self.hit.copy(), self.count
        columns = np.flatnonzero(affected)
        for column in columns:
            blocked = np.bitwise_or.reduce(blocking[other[:, column]])
            for _, group in (one for one in disjunctions if one[0] == column):
                blocked = blocked | events.none_begun(group)
            steps[column] = events.open[column] & ~blocked
            hit = (hit & ~events.now[column]) | (steps[column] & events.now[column])
        changed = columns[(steps[columns] != self.steps[columns]).any(axis=1)]
        if len(changed):
            count = count + _count_bits(steps[changed], len(events)) - _count_bits(self.steps[changed], len(events))
        return EligibleSteps(other, disjunctions, blocking, steps, hit, count)

    def eligible_count_where_hit(self) -> NDArray[np.int16]:
        """Count the eligible steps at each choice, shape (E,); 0 where what was begun was not one of them."""
        return np.asarray(self.count * unpack_bits(self.hit, len(self.count)))


def _count_bits(bits: Bits, size: int) -> NDArray[np.int16]:
    """How many of the rows have each bit, shape (E,)."""
    return np.asarray(unpack_bits(bits, size).sum(axis=0, dtype=np.int16))
