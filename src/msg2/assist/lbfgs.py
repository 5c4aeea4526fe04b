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

from msg2.assist.line_search import LinePoint, Objective, find_step
from msg2.sequences import FloatArray

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
    """Find a local minimum, which is the only one if the function is convex."""
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
