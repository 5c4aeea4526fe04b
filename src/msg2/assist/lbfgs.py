"""L-BFGS: the least value of a smooth function of many variables, from its gradient.

    x ← x − t H ∇f(x),        H ≈ (∇²f)⁻¹ from the last few changes of x and ∇f (Nocedal's two-loop recursion)

Constants and stopping rules are those of the Fortran program L-BFGS-B, which SciPy has too: the iterates are the same,
and the core of msg2 does without the 140 megabytes of SciPy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from msg2.arrays import FloatArray
from msg2.assist.line_search import LinePoint, Objective, find_step

_MEMORY = 10
"""Changes that H is made of."""
_MAX_ITERATIONS = 500


class _Change(NamedTuple):
    """By how much an iteration changed x and the gradient, and the reciprocal of their product."""

    x: FloatArray
    gradient: FloatArray
    reciprocal: float


def minimize_lbfgs(
    objective: Objective, start: FloatArray, value_tolerance: float = 2.2e-9, gradient_tolerance: float = 1e-5
) -> FloatArray:
    """Find a local minimum, which is the only one if the function is convex.

    Parameters
    ----------
    objective : callable
        From a point of shape (n,) to the value and the gradient of shape (n,) there.
    start : array of shape (n,)
        Where the search begins.
    value_tolerance : float
        The search ends when an iteration changes the value by less than this share (of 1, where the value is smaller).
    gradient_tolerance : float
        It also ends when no partial derivative is larger.

    Returns
    -------
    array of shape (n,)

    >>> minimize_lbfgs(lambda x: (float((x - 1) @ (x - 1)), 2 * (x - 1)), np.array([5.0, 3.0])).round(6).tolist()
    [1.0, 1.0]
    """
    x, here = start, LinePoint(0.0, *objective(start))
    memory: deque[_Change] = deque(maxlen=_MEMORY)
    for iteration in range(_MAX_ITERATIONS):
        if np.abs(here.gradient).max(initial=0) <= gradient_tolerance:
            break
        direction = -_newton_step(memory, here.gradient)
        there = find_step(objective, x, direction, here, 1.0 if iteration else 1 / float(np.linalg.norm(direction)))
        if there is None:
            if not memory:
                break
            memory.clear()  # and go on along the gradient
            continue
        change, change_of_gradient = there.step * direction, there.gradient - here.gradient
        product = float(change @ change_of_gradient)
        if product > np.finfo(float).eps * abs(float(change @ here.gradient)):  # else the function is not convex here
            memory.append(_Change(change, change_of_gradient, 1 / product))
        gain, size = here.value - there.value, max(abs(here.value), abs(there.value), 1.0)
        x, here = x + change, there
        if gain <= value_tolerance * size:
            break
    return x


def _newton_step(memory: Sequence[_Change], gradient: FloatArray) -> FloatArray:
    """H ∇f, by the two-loop recursion."""
    step, shares = gradient, []
    for change in reversed(memory):
        share = change.reciprocal * float(change.x @ step)
        step = step - share * change.gradient
        shares.append(share)
    if memory:
        last = memory[-1]
        step = step / (last.reciprocal * float(last.gradient @ last.gradient))
    for change, share in zip(memory, reversed(shares), strict=True):
        step = step + (share - change.reciprocal * float(change.gradient @ step)) * change.x
    return step
