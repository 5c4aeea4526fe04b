"""What the user knows beforehand: `--require "A<B"`, `--forbid "A<<B"`, and a file of such relations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from msg2.inference import Constraints, constraints
from msg2.sequences import Sequences
from msg2.task import Task

Require: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--require", metavar="A<B", help="Step B needs A; A<<B: A comes first where both are done. May be repeated."
    ),
]
Forbid: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="A<B", help="Step B does not need A; A<<B: nor has A to come first. May be repeated."
    ),
]
ConstraintsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--knowledge",
        metavar="FILE",
        help="A table of kind (require, forbid, require-order, forbid-order), before, after[, weight].",
    ),
]


def read_constraints(
    require: Sequence[str] | None, forbid: Sequence[str] | None, file: Path | None, tasks: Sequence[Task | Sequences]
) -> Constraints:
    """Collect all constraints that were given; a text without a sign is a mistake in the command itself."""
    for option, texts in (("--require", require), ("--forbid", forbid)):
        for text in texts or ():
            if "<" not in text:
                raise typer.BadParameter(f"{option} is {text!r}, it must be two steps with a '<' or '<<' in between")
    return constraints.read_constraints(tasks, require=require or (), forbid=forbid or (), file=file)
