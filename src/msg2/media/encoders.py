"""Encoders: n things, such as images or texts -> n vectors; the cosine of two vectors is their similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.media.video_features import l2_normalize

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Encoder(Protocol[T_contra]):
    """Turns n things into float32 vectors of shape (n, width), each of length 1 (or 0, where a text says nothing)."""

    @property
    def name(self) -> str:
        """Says which encoder this is: the same name and width, the same vectors."""

    @property
    def width(self) -> int:
        """Length of a vector."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> version, of every package that has a part in the numbers."""

    def __call__(self, items: Sequence[T_contra], /) -> NDArray[np.float32]:
        """Encode things: vectors of shape (n, width)."""


def encode_in_batches(
    encode: Callable[[list[T]], NDArray[np.float32]], items: Sequence[T], size: int, width: int
) -> NDArray[np.float32]:
    """Encode things batch by batch, and scale their vectors to length 1.

    Parameters
    ----------
    encode : callable
        Makes vectors of shape (n, width) of at most `size` things.
    items : sequence
        The things.
    size : int
        Things in a batch.
    width : int
        Length of a vector.

    Returns
    -------
    array of shape (things, width)
        Their vectors.
    """
    vectors = np.zeros((len(items), width))
    for first in range(0, len(items), size):
        vectors[first : first + size] = encode(list(items[first : first + size]))
    return l2_normalize(vectors).astype(np.float32)
