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
    """Measure how alike the names of two steps are.

    Parameters
    ----------
    steps : sequence of str
        N names.
    encoder : callable
        Turns texts into vectors.

    Returns
    -------
    array of shape (N, N)
        Cosines, as deviations from their mean in units of their standard deviation; 0 on the diagonal.

    >>> from msg2.media.text_encoders import HashedWords
    >>> similarity = name_similarity(["cut onion", "fry onion", "boil water"], HashedWords())
    >>> bool(similarity[0, 1] > similarity[0, 2])
    True
    """
    vectors = encoder(list(steps)).astype(np.float64)
    cosines = vectors @ vectors.T
    others = ~np.eye(len(steps), dtype=np.bool_)
    if not others.any() or cosines[others].std() < 1e-6:
        return np.zeros(cosines.shape)
    # Rounded: what is equally alike ties in any order of the steps.
    return np.asarray(np.round((cosines - cosines[others].mean()) / cosines[others].std(), 6) * others)


def log_subset_weights(similarity: NDArray[np.float64], usual: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Sum Π exp(similarity) over all sets of r usual predecessors of a step.

    Parameters
    ----------
    similarity : array of shape (N, N)
        How much the names speak for needing a step.
    usual : array of shape (N, N)
        [a, b] where a usually precedes b.

    Returns
    -------
    array of shape (N, N + 1)
        Logarithms of the sums for r = 0 … N; −∞ where there are fewer than r predecessors.

    The elementary symmetric polynomials, one predecessor after the other. Without similarities they are log C(n, r).

    >>> usual = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> np.exp(log_subset_weights(np.zeros((3, 3)), usual)[2]).round().tolist()
    [1.0, 2.0, 1.0, 0.0]
    """
    size = len(usual)
    logs = np.full((size, size + 1), -np.inf)
    logs[:, 0] = 0.0
    for before in range(size):
        with_it = np.logaddexp(logs[:, 1:], logs[:, :-1] + similarity[before][:, None])
        logs[:, 1:] = np.where(usual[before][:, None], with_it, logs[:, 1:])
    return logs
