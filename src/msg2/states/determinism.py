"""Reproducible results: seeds for PyTorch, and sums in one order.

With several threads the last digits of a sum depend on how many cores there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def single_thread(wanted: bool = True) -> Iterator[None]:
    """Let PyTorch work with one thread, where that is `wanted`: small models are also faster so."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_seed(*numbers: int) -> int:
    """Return a seed for PyTorch, which takes 64 bits, from numbers of any size from 0 up."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1
