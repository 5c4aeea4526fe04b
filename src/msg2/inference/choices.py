"""A demonstration as a sequence of choices: at every moment, which step is begun, of those that are still to come?

Under a strict partial order the next step is one of the eligible ones, all alike, or, with a small probability ε, any:

    p(s) = (1 − ε) · [s eligible] / |eligible| + ε / |open|

Open are the steps of the video that are not begun yet. A step is eligible when none of those that must come before it
is still waiting; what the video never shows was skipped, or done and not labelled, and keeps nobody waiting. Neither
does a step that is late: once a step that needed it has been begun, people go on as if it had been done.

What holds of a step is kept as one bit a choice: another order is compared with all choices in a few operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence

Relation: TypeAlias = NDArray[np.bool_]
"""Shape (N, N), transitive: [a, b] where a must come before b."""

Alternatives: TypeAlias = tuple[int, frozenset[int]]
"""A step, and steps of which one must come before it."""

Bits: TypeAlias = NDArray[np.uint64]
"""One bit for each of the E choices, shape (…, ⌈E / 64⌉); bits beyond E are 0."""


@dataclass(frozen=True, eq=False)
class Choices:
    """E choices in V videos of N steps, ordered by video; moments at which one step only is left say nothing.

    `video`, `step`, `open_count` (E,): whose choice it is, what is begun, and among how many. Bits of each step: where
    it is `now` begun, is `open`, keeps others `waiting` (all that is open, but for what begins at the same
    moment), and was `begun` earlier.
    """

    video: NDArray[np.intp]
    step: NDArray[np.intp]
    open_count: NDArray[np.int16]
    now: Bits
    open: Bits
    waiting: Bits
    begun: Bits

    @staticmethod
    def of(evidence: Evidence) -> Choices:
        """The choices of the first labels of every video.

        >>> from msg2.task import Segment, Task, Video
        >>> task = Task("tea", ["boil", "pour"], [Video("v", [Segment("boil"), Segment("pour")])])
        >>> choices = Choices.of(Evidence.of(task))
        >>> unpacked(choices.open, len(choices)).tolist()
        [[1], [1]]
        """
        firsts = evidence.of_first_labels()
        order = np.lexsort((firsts.step, firsts.start, firsts.video))
        video, step, start = firsts.video[order], firsts.step[order], firsts.start[order, None]
        begins = np.full((len(firsts.videos), len(firsts.steps)), np.nan)
        begins[video, step] = start[:, 0]
        every = begins[video]
        with np.errstate(invalid="ignore"):
            still_open, begun = every >= start, every < start
        now = step[:, None] == np.arange(len(firsts.steps))
        waiting = still_open & (every != start) | now
        telling = still_open.sum(axis=1) > 1
        bits = (packed(flags[telling].T) for flags in (now, still_open, waiting, begun))
        numbers = np.unique(video[telling], return_inverse=True)[1]
        return Choices(numbers, step[telling], still_open[telling].sum(axis=1, dtype=np.int16), *bits)

    def __len__(self) -> int:
        return len(self.video)

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Where each video's choices begin, shape (V,)."""
        return np.flatnonzero(np.diff(self.video, prepend=-1))

    def under(self, relation: Relation) -> Eligible:
        """What is eligible under `relation`."""
        none = np.zeros_like(relation)
        free = Eligible(none, frozenset(), self.waiting, self.open, np.bitwise_or.reduce(self.now), self.open_count)
        return free.under(relation, frozenset(), self)

    def before(self, steps: frozenset[int]) -> Bits:
        """Where none of the steps has been begun, and one of them is still to come."""
        chosen = [*steps]
        return np.asarray(np.bitwise_or.reduce(self.waiting[chosen]) & ~np.bitwise_or.reduce(self.begun[chosen]))


@dataclass(frozen=True, eq=False)
class Eligible:
    """What is eligible under a `relation` and under the `alternatives` that steps need one of.

    Bits of each step: where it is eligible, `steps`, and where it keeps others waiting, `keeping`. The bits where what
    was begun is eligible, `hit`, and how many are, `count` (E,).
    """

    relation: Relation
    alternatives: frozenset[Alternatives]
    keeping: Bits
    steps: Bits
    hit: Bits
    count: NDArray[np.int16]

    def under(self, other: Relation, alternatives: frozenset[Alternatives], choices: Choices) -> Eligible:
        """The same under others; only what can differ is computed."""
        differs = self.relation != other
        keeping, affected = self.keeping.copy(), differs.any(axis=0)
        affected[[step for step, _ in self.alternatives ^ alternatives]] = True
        for source in np.flatnonzero(differs.any(axis=1)):
            late = np.bitwise_or.reduce(choices.begun[other[source]])
            keeping[source] = choices.waiting[source] & ~late
            if not np.array_equal(keeping[source], self.keeping[source]):
                affected |= self.relation[source] | other[source]
        steps, hit, count = self.steps.copy(), self.hit.copy(), self.count
        columns = np.flatnonzero(affected)
        for column in columns:
            blocked = np.bitwise_or.reduce(keeping[other[:, column]])
            for _, group in (one for one in alternatives if one[0] == column):
                blocked = blocked | choices.before(group)
            steps[column] = choices.open[column] & ~blocked
            hit = (hit & ~choices.now[column]) | (steps[column] & choices.now[column])
        changed = columns[(steps[columns] != self.steps[columns]).any(axis=1)]
        if len(changed):
            count = count + _sum(steps[changed], len(choices)) - _sum(self.steps[changed], len(choices))
        return Eligible(other, alternatives, keeping, steps, hit, count)

    def by_rule(self) -> NDArray[np.int16]:
        """Among how many what was begun was eligible, shape (E,); 0 where it was not."""
        return np.asarray(self.count * unpacked(self.hit, len(self.count)))


def packed(flags: NDArray[np.bool_]) -> Bits:
    """Flags of shape (rows, E) as bits."""
    rows, size = flags.shape
    padded = np.zeros((rows, -(-size // 64) * 64), dtype=np.bool_)
    padded[:, :size] = flags
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpacked(bits: Bits, size: int) -> NDArray[np.uint8]:
    """Bits of shape (…, ⌈E / 64⌉) as zeros and ones of shape (…, E).

    >>> unpacked(packed(np.array([[True, False, True]])), 3).tolist()
    [[1, 0, 1]]
    """
    return np.unpackbits(bits.view(np.uint8), axis=-1, count=size, bitorder="little")


def _sum(bits: Bits, size: int) -> NDArray[np.int16]:
    """How many of the rows have each bit, shape (E,)."""
    return np.asarray(unpacked(bits, size).sum(axis=0, dtype=np.int16))
