"""A method that only the tests know, with options of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from msg2.inference import METHODS, Method, register


@dataclass(frozen=True)
class ToyOptions:
    """Of a method that only the tests know."""

    patience: float | Literal["endless"] = 0.5
    """How long it waits for the kettle, in minutes."""
    polite: bool = False
    """Whether it asks first."""
    manner: Literal["slow", "quick"] = "slow"
    """How it goes about it."""
    stops: tuple[float, ...] = (0.1, 0.25)
    """Where it pauses."""


@contextmanager
def toy_method() -> Iterator[str]:
    """Register the method for a while; yields its name."""
    register("toy", Method(ToyOptions, METHODS["msgi"].learn, "Learns nothing, politely."))
    try:
        yield "toy"
    finally:
        del METHODS["toy"]
