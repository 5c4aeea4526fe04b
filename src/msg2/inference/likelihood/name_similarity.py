"""What the names of the steps suggest: which of those that usually precede a step it may really need.

Steps that speak of the same thing are more likely to depend on each other. Their similarity changes only *which* of the
usual predecessors are needed, not how many: of all sets of r of them, p(set) ∝ Π exp(similarity). Off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.task import Step

NameEncoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""n texts -> vectors of shape (n, width) and length 1, or 0 where a text says nothing."""


def name_similarity(steps: Sequence[Step], encoder: NameEncoder) -> NDArray[np.float64]:
    """Measure how alike the names of two steps are."""
    vectors = encoder(list(steps)).astype(np.float64)
    cosines = vectors @ vectors.T
    others = ~np.eye(len(steps), dtype=np.bool_)
    if not others.any() or cosines[others].std() < 1e-6:
        return np.zeros(cosines.shape)
    # Rounded: what is equally alike ties in any order of the steps.
    return np.asarray(np.round((cosines - cosines[others].mean()) / cosines[others].std(), 6) * others)


def log_subset_weights(similarity: NDArray[np.float64], usual: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Sum Π exp(similarity) over all sets of r usual predecessors of a step."""
    size = len(usual)
    logs = np.full((size, size + 1), -np.inf)
    logs[:, 0] = 0.0
    for before in range(size):
        with_it = np.logaddexp(logs[:, 1:], logs[:, :-1] + similarity[before][:, None])
        logs[:, 1:] = np.where(usual[before][:, None], with_it, logs[:, 1:])
    return logs
