"""The model of order: a video is a sequence of choices. Which step begins next, of those that are still to come?

It is one of the *eligible* steps, all alike; with a small probability ε it is disorderly, any *open* step:

    p(s)         = (1 − ε) · [s eligible] / |eligible| + ε / |open|
    log p(video) = log Σ_j share_j · Π_choices p(choice | ε_j)

A step is eligible if no step that must come before it is open; a step that is late (its successor has begun) or never
shown keeps nobody waiting. Of steps that overlap, neither is open or done when the other begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.sequences import FloatArray, Variants

BitSet: TypeAlias = int
"""A set of numbers from 0 to E − 1: bit e is 1 where e belongs to it."""
Disjunction: TypeAlias = tuple[int, frozenset[int]]
"""A step, and steps of which one must come before it: b comes after a or c."""


def to_flags(sets: Sequence[BitSet], size: int) -> NDArray[np.uint8]:
    """Make a row of zeros and ones of each set, shape (sets, E)."""
    width = -(-size // 8)
    joined = b"".join([bits.to_bytes(width, "little") for bits in sets])
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(len(sets), width)
    return np.unpackbits(packed, axis=1, count=size, bitorder="little")


def union(sets: Sequence[BitSet], members: Iterable[int]) -> BitSet:
    """Join some of the sets."""
    return reduce(or_, map(sets.__getitem__, members), 0)


@dataclass(frozen=True, eq=False)
class ChoiceEvents:
    """E choices in V variants of runs of N steps, ordered by variant; the last step of a run is no choice."""

    video: NDArray[np.intp]  # (E,): the variant of each choice
    step: NDArray[np.intp]  # (E,): the step that begins
    open_count: NDArray[np.int16]  # (E,): the number of steps to choose from
    first: NDArray[np.intp]  # (V,): the first choice of each variant
    weight: NDArray[np.int64]  # (V,): the videos of each variant
    now: tuple[BitSet, ...]  # for each step, the choices at which it begins
    open: tuple[BitSet, ...]  # the choices at which it begins, or begins later, after this one has ended
    begun: tuple[BitSet, ...]  # the choices at which it has begun and ended

    @staticmethod
    def from_variants(variants: Variants) -> ChoiceEvents:
        """Collect the choices of every variant."""
        video, step = np.nonzero(variants.shown)
        start, end = variants.start[video, step], variants.end[video, step]
        earlier, later = start >= variants.end[video].T, end <= variants.start[video].T
        now = step == np.arange(len(variants.steps))[:, None]
        count = later.sum(axis=0, dtype=np.int16) + np.int16(1)
        telling = count > 1
        packed = (np.packbits(flags[:, telling], axis=1, bitorder="little") for flags in (now, later | now, earlier))
        sets = (tuple(int.from_bytes(row.tobytes(), "little") for row in rows) for rows in packed)
        kept, first, numbers = np.unique(video[telling], return_index=True, return_inverse=True)
        return ChoiceEvents(numbers, step[telling], count[telling], first, variants.weight[kept], *sets)

    def eligible_under(
        self, relation: Relation, disjunctions: frozenset[Disjunction], near: EligibleSteps | None = None
    ) -> EligibleSteps:
        """Find what is eligible under an order; only what can differ from a `near` order, or from none, is computed."""
        if near is None:
            none, everywhere = np.zeros_like(relation), (1 << len(self.step)) - 1
            near = EligibleSteps(none, frozenset(), self.open, self.open, everywhere, self.open_count)
        differs = near.relation != relation
        other_ors = {step for step, _ in near.disjunctions ^ disjunctions}
        affected = other_ors.union(differs.any(axis=0).nonzero()[0].tolist())
        sources: set[int] = set()  # steps that keep others waiting at other choices
        blocking, steps, hit, count = list(near.blocking), list(near.steps), near.hit, near.count
        for source in differs.any(axis=1).nonzero()[0].tolist():
            after = relation[source].nonzero()[0].tolist()
            blocking[source] = self.open[source] & ~union(self.begun, after)
            if blocking[source] != near.blocking[source]:
                sources.add(source)
                affected.update(after, near.relation[source].nonzero()[0].tolist())
        gained, lost = [], []
        for column in affected:
            changed = sources.union(differs[:, column].nonzero()[0].tolist())
            blocked = union(blocking, (a for a in changed if relation[a, column]))
            # It is eligible where it was and none of these blocks it, and where only these did.
            kept, released = near.steps[column], union(near.blocking, (a for a in changed if near.relation[a, column]))
            if column in other_ors:
                kept, released = 0, self.open[column]
            freed = self.open[column] & ~kept & released & ~blocked
            for before in relation[:, column].nonzero()[0].tolist():
                if not freed:
                    break
                freed &= ~blocking[before]
            for _, group in (owned for owned in disjunctions if owned[0] == column):
                # It waits while none of the group has begun and one of them is still to come.
                freed &= ~union(self.open, group) | union(self.begun, group)
            steps[column] = (kept & ~blocked) | freed
            if steps[column] != near.steps[column]:
                hit = (hit & ~self.now[column]) | (steps[column] & self.now[column])
                gained.append(steps[column] & ~near.steps[column])
                lost.append(near.steps[column] & ~steps[column])
        for sign, sets in ((np.int16(1), gained), (np.int16(-1), lost)):
            if some := [bits for bits in sets if bits]:
                count = count + sign * to_flags(some, len(self.step)).sum(axis=0, dtype=np.int16)
        return EligibleSteps(relation, disjunctions, tuple(blocking), tuple(steps), hit, count)


@dataclass(frozen=True, eq=False)
class EligibleSteps:
    """The steps that are eligible under an order of pairs and ORs."""

    relation: Relation
    disjunctions: frozenset[Disjunction]
    blocking: tuple[BitSet, ...]  # for each step, the choices at which it keeps others waiting
    steps: tuple[BitSet, ...]  # for each step, the choices at which it is eligible
    hit: BitSet  # the choices at which the step that begins is eligible
    count: NDArray[np.int16]  # (E,): the number of eligible steps


def log_sum_exp(logs: FloatArray) -> FloatArray:
    """log Σ exp of every row, shape (rows, J) -> (rows,); scipy's own takes longer than all the rest of a score."""
    highest = logs.max(axis=1, initial=-np.inf)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))
