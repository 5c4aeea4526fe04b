"""Checks of options: what is not as required is an `InputError` that says how it must be."""

from __future__ import annotations

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
    require(0 <= value <= 1, f"{name} is {value}, it must be between 0 and 1")
