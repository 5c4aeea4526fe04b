"""The search of MSG² for the precondition of a step, traced round by round."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np

from msg2.inference.msg2 import Msg2Options, build_layers, search_rounds
from msg2.inference.result import TIE_TOLERANCE, Candidate, rank_candidates
from msg2.sequences import Sequences
from msg2.task import Step

RoundOutcome: TypeAlias = Literal["goes on", "found", "no better"]
"""Of a round: its best candidate is better than all before, is so for the last time, is not."""


@dataclass(frozen=True, slots=True)
class SearchRound:
    """One round of the search for a precondition: its best candidates, the best one first, and what came of it."""

    candidates: tuple[Candidate, ...]
    outcome: RoundOutcome


def search_trace(sequences: Sequences, name: Step, options: Msg2Options, most: int) -> list[SearchRound]:
    """Trace the search for the precondition of a step, round by round.

    The greedy search begins with the null precondition, the two-literal rule with single steps; each round has
    candidates of one literal more.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    name : str
        The step.
    options : Msg2Options
        δ is a number here.
    most : int
        Candidates of each round, at most.

    Returns
    -------
    list of SearchRound
        Empty for a step of the lowest layer, which is not searched for.

    >>> from msg2.task import Segment, Task, Video
    >>> task = Task("t", "abc", [Video(v, map(Segment, v)) for v in ("abc", "bac")])
    >>> for found in search_trace(Sequences.from_task(task), "c", Msg2Options(delta=0.9), most=2):
    ...     print(found.outcome, [(str(one.formula), round(one.score, 2)) for one in found.candidates])
    goes on [('a', 1.7), ('b', 1.7)]
    found [('a & b', 2.6), ('a | b', 1.13)]
    """
    layers, index = build_layers(sequences.before, options.delta), sequences.steps.index(name)
    if layers.depth[index] == 0:
        return []
    rounds = [rank_candidates(found, most) for found in search_rounds(sequences, layers, index, options, most) if found]
    highest = accumulate((found[0].score for found in rounds), max, initial=-np.inf)
    better = [found[0].score > before + TIE_TOLERANCE for found, before in zip(rounds, highest, strict=False)]
    outcomes: list[RoundOutcome] = ["goes on" if one else "no better" for one in better]
    outcomes[len(better) - 1 - better[::-1].index(True)] = "found"
    return [SearchRound(tuple(found), outcome) for found, outcome in zip(rounds, outcomes, strict=True)]
