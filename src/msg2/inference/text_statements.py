"""A written procedure beside recordings: whose steps are which, and what the text then says of their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msg2.formats.written_procedure import SAME_WORDS, read_procedure, word_overlap
from msg2.inference.likelihood.score import NameEncoder
from msg2.inference.likelihood.statements import OrderStatements
from msg2.task import Step
from msg2.text import join_names, short_repr


@dataclass(frozen=True, slots=True)
class MatchedText:
    """What a text says of the steps of recordings, and how its steps were matched with them, to be confirmed."""

    statements: OrderStatements
    notes: tuple[str, ...]


def match_text(text: str | Path, steps: Sequence[Step], encoder: NameEncoder | None = None) -> MatchedText:
    """Read a procedure and match its steps with those of recordings, the most alike first; the notes tell how."""
    procedure, steps = read_procedure(text), sorted(steps)
    alike = np.array([[word_overlap(own, name) for name in steps] for own in procedure.steps])
    if encoder is not None:
        vectors = encoder([*procedure.steps, *steps]).astype(np.float64)
        alike = np.maximum(alike, vectors[: len(procedure.steps)] @ vectors[len(procedure.steps) :].T)
    names: dict[Step, Step] = {}
    for place in np.argsort(-np.round(alike, 9), axis=None, kind="stable").tolist():
        own, name = procedure.steps[place // len(steps)], steps[place % len(steps)]
        if alike.flat[place] >= SAME_WORDS and own not in names and name not in names.values():
            names[own] = name
    taken = [
        f"{short_repr(own)} of the text is taken for {short_repr(name)}"
        for own, name in names.items()
        if own.casefold() != name.casefold()
    ]
    alone = [own for own in procedure.steps if own not in names]
    silent = [name for name in steps if name not in names.values()]
    notes = [
        *taken,
        *([f"no video shows {join_names(alone)} of the text: rename what is called otherwise"] if alone else []),
        *([f"the text does not have {join_names(silent)}"] if silent else []),
    ]
    order = frozenset((names[a], names[b]) for a, b in procedure.order if a in names and b in names)
    return MatchedText(OrderStatements("text", frozenset(names.values()), order), tuple(notes))
