"""Sets of choices as bits of Python's integers: for some thousands of them, faster than arrays of flags or of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

BitSet: TypeAlias = int
"""A set of numbers from 0 to E − 1: bit e is 1 where e belongs to it."""


def to_bit_sets(flags: NDArray[np.bool_]) -> tuple[BitSet, ...]:
    """Make a set of each row of flags, shape (rows, E)."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return tuple(int.from_bytes(row.tobytes(), "little") for row in packed)


def to_flags(sets: Sequence[BitSet], size: int) -> NDArray[np.uint8]:
    """Make a row of zeros and ones of each set."""
    width = -(-size // 8)
    joined = b"".join([one.to_bytes(width, "little") for one in sets])
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(len(sets), width)
    return np.unpackbits(packed, axis=1, count=size, bitorder="little")


def union(sets: Sequence[BitSet], members: Iterable[int]) -> BitSet:
    """Join some of the sets."""
    joined = 0
    for member in members:
        joined |= sets[member]
    return joined
