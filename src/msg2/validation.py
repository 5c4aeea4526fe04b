"""Checks of options: what is not as required is an `InputError` that says how it must be."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import TypeGuard

from msg2.errors import InputError


def require(condition: bool, message: str) -> None:
    """Raise an `InputError` unless a condition holds.

    Parameters
    ----------
    condition : bool
        What must hold.
    message : str
        What is wrong where it does not: "alpha is -1, it must be a number from 0 up".
    """
    if not condition:
        raise InputError(message)


def require_probability(name: str, value: float) -> None:
    """Raise an `InputError` unless a value is between 0 and 1.

    Parameters
    ----------
    name : str
        Of the option.
    value : float
        Its value.
    """
    require(is_finite(value) and 0 <= value <= 1, f"{name} is {value}, it must be between 0 and 1")


def require_count(name: str, value: int | None) -> None:
    """Raise an `InputError` unless a value is a whole number from 1 up, or None.

    Parameters
    ----------
    name : str
        Of the option.
    value : int or None
        Its value.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(value is None or (whole and value >= 1), f"{name} is {value!r}, it must be a whole number from 1 up")


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value is a number, of NumPy too, and neither infinite nor NaN nor true or false."""
    return type(value) is not bool and isinstance(value, Real) and isfinite(value)
