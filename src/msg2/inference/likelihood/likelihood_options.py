"""How the search of `likelihood` goes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from msg2.options import Count, Positive, ShareBelowOne, options_class

_Levels = Annotated[tuple[Annotated[float, Field(ge=1e-12, lt=1)], ...], Field(min_length=1)]


@options_class
class LikelihoodOptions:
    """`likelihood`: how the search goes; none of it is a threshold of what is found."""

    absent: Literal["auto", "unknown", "skipped"] = "auto"
    """A video lacks a step: its label may be missing ("unknown"), or it was not done ("skipped", as in event logs)."""
    levels: _Levels = (
        0.0001,
        0.02,
        0.05,
        0.1,
        0.2,
        0.4,
    )
    """Probabilities of a disorderly choice; the share of videos at each level is learned."""
    starts: tuple[ShareBelowOne, ...] = (0.95, 0.8)
    """The search starts from the pairs that more than this share of the videos order alike, and from no order."""
    candidates: Count = 12
    """Pairs to add, to remove and to reverse whose score is computed in each round: those that promise most."""
    alternatives: Count = 24
    """Steps that are tried as alternatives in what a step needs: those that come before it most often."""
    rounds: Count = 1_000
    """Rounds of moves of one climb, at most."""
    scout_labels: Count = 8_000
    """Of more labels, about so many, of whole videos, serve for the first climbs, and to say what moves promise."""
    search_labels: Count = 20_000
    """Of more labels, about so many, of whole videos, serve for the last climb; rates are estimated from all."""
    tolerance: Positive = 0.01
    """Nats that a round of moves, or a new estimate of the noise, must gain for the search to go on."""
