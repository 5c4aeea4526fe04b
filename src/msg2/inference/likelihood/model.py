"""The model: a demonstration is a sequence of choices. Which step is begun next, of those that are still to come?

Under a strict partial order the next step is one of the eligible ones, all alike, or, with a small probability ε, any:

    p(s) = (1 − ε) · [s eligible] / |eligible| + ε / |open|

Open are the steps of the video that are still to come. A step is eligible when none of those that must come before it
is open; what the video never shows was skipped, or done and not labelled, and keeps nobody waiting. Neither does a step
that is late: once a step that needed it has been begun, people go on as if it had been done. Steps that overlap were
begun in either order: when one is begun, the other is neither open nor done.

What holds of a step is kept as a set of choices: another order is compared with all choices in a few operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.inference.likelihood.bit_sets import BitSet, to_bit_sets, to_flags, union
from msg2.inference.likelihood.run_variants import Variants

Disjunction: TypeAlias = tuple[int, frozenset[int]]
"""A step, and steps of which one must come before it: b comes after a or c."""


@dataclass(frozen=True, eq=False)
class ChoiceEvents:
    """E choices in V variants of runs of N steps, ordered by variant; where only one step is left, it is none.

    `video`, `step`, `open_count` (E,): whose choice it is, what is begun, and among how many. `weight` (V,): the videos
    of each variant. The choices, of each step, at which it is `now` begun, is `open` (begun now or later, and after
    this one has ended), and was `begun`, and ended, earlier.
    """

    video: NDArray[np.intp]
    step: NDArray[np.intp]
    open_count: NDArray[np.int16]
    weight: NDArray[np.int64]
    now: tuple[BitSet, ...]
    open: tuple[BitSet, ...]
    begun: tuple[BitSet, ...]

    @staticmethod
    def from_variants(variants: Variants) -> ChoiceEvents:
        """Collect the choices of every variant.

        >>> from msg2.sequences import Sequences
        >>> from msg2.task import Segment, Task, Video
        >>> task = Task("tea", ["boil", "pour"], [Video("v", [Segment("boil"), Segment("pour")])])
        >>> events = ChoiceEvents.from_variants(Variants.from_sequences(Sequences.from_task(task)))
        >>> to_flags(events.open, len(events)).tolist()
        [[1], [1]]
        """
        video, step = np.nonzero(variants.shown)
        start, end = variants.start[video, step], variants.end[video, step]
        starts, ends = variants.start[video].T, variants.end[video].T
        earlier, later = ends <= start, starts >= end
        now = step == np.arange(len(variants.steps))[:, None]
        still_open, count = later | now, later.sum(axis=0, dtype=np.int16) + np.int16(1)
        telling = count > 1
        sets = (to_bit_sets(flags[:, telling]) for flags in (now, still_open, earlier))
        kept, numbers = np.unique(video[telling], return_inverse=True)
        return ChoiceEvents(numbers, step[telling], count[telling], variants.weight[kept], *sets)

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
        """Find what is eligible under an order."""
        none, everywhere = np.zeros_like(relation), (1 << len(self)) - 1
        free = EligibleSteps(none, frozenset(), self.open, self.open, everywhere, self.open_count)
        return free.eligible_under(relation, disjunctions, self)

    def none_begun(self, steps: frozenset[int]) -> BitSet:
        """Find the choices before which none of the steps has been begun, and one of them is still to come."""
        return union(self.open, steps) & ~union(self.begun, steps)


@dataclass(frozen=True, eq=False)
class EligibleSteps:
    """What is eligible under a `relation` and under the `disjunctions` that steps need one of.

    The choices, of each step, at which it is eligible, `steps`, and keeps others waiting, `blocking`; those at which
    what was begun is eligible, `hit`; and how many are eligible, `count` (E,).
    """

    relation: Relation
    disjunctions: frozenset[Disjunction]
    blocking: tuple[BitSet, ...]
    steps: tuple[BitSet, ...]
    hit: BitSet
    count: NDArray[np.int16]

    def eligible_under(
        self, other: Relation, disjunctions: frozenset[Disjunction], events: ChoiceEvents
    ) -> EligibleSteps:
        """Find what is eligible under another order; only what can differ is computed."""
        differs = self.relation != other
        affected = {step for step, _ in self.disjunctions ^ disjunctions}
        affected.update(_where(differs.any(axis=0)))
        blocking, steps, hit = list(self.blocking), list(self.steps), self.hit
        for source in _where(differs.any(axis=1)):
            after = _where(other[source])
            blocking[source] = events.open[source] & ~union(events.begun, after)
            if blocking[source] != self.blocking[source]:
                affected.update(after, _where(self.relation[source]))
        changed = []
        for column in affected:
            blocked = union(blocking, _where(other[:, column]))
            for _, group in (one for one in disjunctions if one[0] == column):
                blocked |= events.none_begun(group)
            steps[column] = events.open[column] & ~blocked
            if steps[column] != self.steps[column]:
                hit = (hit & ~events.now[column]) | (steps[column] & events.now[column])
                changed.append(column)
        count = self.count
        if changed:
            more = _count_sets([steps[one] & ~self.steps[one] for one in changed], len(events))
            count = count + more - _count_sets([self.steps[one] & ~steps[one] for one in changed], len(events))
        return EligibleSteps(other, disjunctions, tuple(blocking), tuple(steps), hit, count)

    def eligible_count_where_hit(self) -> NDArray[np.int16]:
        """Count the eligible steps at each choice, shape (E,); 0 where what was begun was not one of them."""
        return np.asarray(self.count * to_flags([self.hit], len(self.count))[0])


def _where(flags: NDArray[np.bool_]) -> list[int]:
    return flags.nonzero()[0].tolist()


def _count_sets(sets: Sequence[BitSet], size: int) -> NDArray[np.int16] | int:
    """To how many of the sets each choice belongs, shape (E,)."""
    some = [one for one in sets if one]
    return np.asarray(to_flags(some, size).sum(axis=0, dtype=np.int16)) if some else 0
