"""Flags packed as bits of 64-bit words: many of them are compared in one operation."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = NDArray[np.uint64]
"""One bit for each of E flags, shape (…, ⌈E / 64⌉); bits beyond E are 0."""


def pack_bits(flags: NDArray[np.bool_]) -> Bits:
    """Pack flags of shape (rows, E) to bits of shape (rows, ⌈E / 64⌉)."""
    rows, size = flags.shape
    padded = np.zeros((rows, -(-size // 64) * 64), dtype=np.bool_)
    padded[:, :size] = flags
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack_bits(bits: Bits, size: int) -> NDArray[np.uint8]:
    """Unpack bits to zeros and ones.

    Parameters
    ----------
    bits : array of shape (…, ⌈E / 64⌉)
        As `pack_bits` makes them.
    size : int
        E, the number of flags in a row.

    Returns
    -------
    array of shape (…, E)

    >>> unpack_bits(pack_bits(np.array([[True, False, True]])), 3).tolist()
    [[1, 0, 1]]
    """
    return np.unpackbits(bits.view(np.uint8), axis=-1, count=size, bitorder="little")
