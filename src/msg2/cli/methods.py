"""Methods and their options, as commands take them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from msg2.cli import console
from msg2.cli.reading import given
from msg2.errors import InputError
from msg2.inference import METHODS, method_and_options
from msg2.options import PrecisionOptions

_PAPER = PrecisionOptions()

Method = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(METHODS)}.")]
Delta = Annotated[
    str | None,
    typer.Option(
        metavar="X|auto",
        help="δ: purity above which a step comes first. msg2: auto, from the data; always-before: in every video.",
    ),
]
Alpha = Annotated[
    float | None, typer.Option(metavar="X", help=f"α: cost of one Boolean operation. msg2: {_PAPER.alpha}.")
]
Recency = Annotated[
    float | None,
    typer.Option(metavar="X", help=f"λ: weight kept per step in between; 1: no weights. msg2: {_PAPER.recency}."),
]
Literals = Annotated[
    str | None,
    typer.Option(
        metavar="N|none",
        help=f"Steps in a precondition. msg2: {_PAPER.max_literals}; another or none: the paper's greedy search.",
    ),
]


def method_options(
    method: str, delta: str | None, alpha: float | None, recency: float | None, max_literals: str | None
) -> dict[str, Any]:
    """The options that were given, checked against the method: one that it does not have is a usage error."""
    with console.usage():
        options = given({"delta": _number(delta, float, "auto", "--delta"), "alpha": alpha, "recency": recency})
        if max_literals is not None:
            limit = _number(max_literals, int, "none", "--max-literals")
            options["max_literals"] = None if limit == "none" else limit
        method_and_options(method, options)
    return options


def _number(text: str | None, kind: type[float] | type[int], word: str, option: str) -> float | str | None:
    """The number in `text`; `word` (and nothing at all) stays as it is."""
    if text is None or text == word:
        return text
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{option} is {text!r}, it must be a number or {word!r}") from None
