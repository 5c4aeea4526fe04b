"""How far to go along a direction of descent: the line search of Moré and Thuente (1994).

With f(t) for the function at x + t d, a step t is found that meets the strong Wolfe conditions

    f(t) ≤ f(0) + μ t f'(0)        and        |f'(t)| ≤ η |f'(0)|

Two steps bound an interval that contains such a t; cubic and quadratic interpolation say where in it to try next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msg2.sequences import FloatArray

Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""From a point of shape (n,) to the value and the gradient of shape (n,) there."""

_DECREASE, _CURVATURE = 1e-3, 0.9
"""μ and η."""
_NARROW = 0.1
"""The search ends with an interval that is shorter than this share of its upper end."""
_MAX_TRIALS = 20


class LinePoint(NamedTuple):
    """A step along a line, and the value and the gradient where it leads."""

    step: float
    value: float
    gradient: FloatArray


class _TrialStep(NamedTuple):
    """t, f(t) and f'(t)."""

    step: float
    value: float
    slope: float

    def tilted(self, slope: float) -> _TrialStep:
        """The same for f plus a line of this slope."""
        return _TrialStep(self.step, self.value + slope * self.step, self.slope + slope)


class _Interval(NamedTuple):
    """The step with the least value so far, and the other end; `bracketed` once a good step is known to lie inside."""

    best: _TrialStep
    other: _TrialStep
    bracketed: bool


def find_step(
    objective: Objective, x: FloatArray, direction: FloatArray, start: LinePoint, step: float
) -> LinePoint | None:
    """Find a step that lowers a function, and its slope, enough."""
    origin = _TrialStep(0.0, start.value, float(start.gradient @ direction))
    interval = _Interval(origin, origin, False)
    least, most = 0.0, 5 * step  # where the next trial may lie
    width = width_before = math.inf
    demanded = _DECREASE * origin.slope
    seeks_decrease = True  # until a step is low enough and not downhill any more
    for _ in range(_MAX_TRIALS):
        value, gradient = objective(x + step * direction)
        trial = _TrialStep(step, value, float(gradient @ direction))
        excess = value - (origin.value + step * demanded)
        seeks_decrease = seeks_decrease and not (excess <= 0 <= trial.slope)
        is_good = excess <= 0 and abs(trial.slope) <= -_CURVATURE * origin.slope
        if is_good or (interval.bracketed and (not least < step < most or most - least <= _NARROW * most)):
            return LinePoint(step, value, gradient)
        tilt = demanded if seeks_decrease and excess > 0 and value <= interval.best.value else 0.0
        interval, step = _narrow(interval, trial, tilt, least, most)
        best, other, bracketed = interval
        if bracketed:
            if abs(other.step - best.step) >= 0.66 * width_before:  # interpolation is too slow: bisect
                step = (best.step + other.step) / 2
            width_before, width = width, abs(other.step - best.step)
            least, most = min(best.step, other.step), max(best.step, other.step)
        else:
            least, most = step + 1.1 * (step - best.step), step + 4 * (step - best.step)
        if bracketed and (not least < step < most or most - least <= _NARROW * most):
            step = best.step
    return None


def _narrow(interval: _Interval, trial: _TrialStep, tilt: float, least: float, most: float) -> tuple[_Interval, float]:
    """The interval that a trial leaves, and the next step; both for f minus a line of the slope `tilt`."""
    best, other, trial = (each.tilted(-tilt) for each in (interval.best, interval.other, trial))
    bracketed, turns = interval.bracketed, trial.slope * best.slope < 0
    onwards = most if trial.step > best.step else least
    cubic = _cubic_minimum(best, trial)
    if trial.value > best.value:
        quadratic = _quadratic_minimum(best, trial)
        step = cubic if abs(cubic - best.step) <= abs(quadratic - best.step) else (cubic + quadratic) / 2
        bracketed = True
    elif turns:
        step = max(_secant_zero(best, trial), cubic, key=lambda each: abs(each - trial.step))
        bracketed = True
    elif abs(trial.slope) < abs(best.slope):
        ahead = (cubic - trial.step) * (trial.step - best.step) > 0
        candidates = _secant_zero(best, trial), cubic if ahead else onwards
        if bracketed:
            near = min(candidates, key=lambda each: abs(each - trial.step))
            limit = trial.step + 0.66 * (other.step - trial.step)
            step = min(limit, near) if trial.step > best.step else max(limit, near)
        else:
            step = min(max(max(candidates, key=lambda each: abs(each - trial.step)), least), most)
    else:
        step = _cubic_minimum(other, trial) if bracketed else onwards
    if trial.value > best.value:
        other = trial
    else:
        best, other = trial, best if turns else other
    return _Interval(best.tilted(tilt), other.tilted(tilt), bracketed), step


def _cubic_minimum(one: _TrialStep, two: _TrialStep) -> float:
    """Where the cubic with the values and slopes of two trials has its minimum; NaN for one that has none."""
    theta = 3 * (one.value - two.value) / (two.step - one.step) + one.slope + two.slope
    squared = theta**2 - one.slope * two.slope
    root = math.copysign(math.sqrt(squared), one.step - two.step) if squared > 0 else math.nan
    denominator = 2 * root - two.slope + one.slope
    return two.step + (root - two.slope + theta) / denominator * (one.step - two.step) if denominator else math.nan


def _quadratic_minimum(one: _TrialStep, two: _TrialStep) -> float:
    """Where the parabola through two values, with the slope at the first, has its minimum."""
    length = two.step - one.step
    return one.step + one.slope / ((one.value - two.value) / length + one.slope) / 2 * length


def _secant_zero(one: _TrialStep, two: _TrialStep) -> float:
    """Where the slope would be zero if it were linear."""
    return two.step + two.slope / (two.slope - one.slope) * (one.step - two.step)
