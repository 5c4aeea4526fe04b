"""Names of steps from a file: a plain list, a text with one step per line (as on wikiHow), or a graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from msg2.errors import InputError
from msg2.formats.graph_file import read_graph
from msg2.formats.source import Source
from msg2.task import Step
from msg2.text import short_repr

_BULLET = re.compile(r"^(?:(?:step\s*)?\d+\s*[.):]\s*|step\s+\d+\s+|[-*•–]\s+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StepList:
    """Names of steps in the order of the file, and what was done to the lines."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for place, step in enumerate(self.steps):
            if step in self.steps[:place]:
                raise InputError(f"the step {short_repr(step)} is listed twice")
        if not self.steps:
            raise InputError("lists no step", hint="write one step per line")


def read_steps(path: str | Path) -> StepList:
    """Read names of steps; numbers and bullets in front of them are left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "steps.txt")
    ...     _ = path.write_text("1. Whisk the eggs\\n2. Dip the bread\\n")
    ...     read_steps(path).steps
    ('Whisk the eggs', 'Dip the bread')
    """
    source = Source.at(path)
    if source.is_folder:
        raise InputError("is a folder, not a list of steps", where=path)
    if source.is_json:
        return StepList(read_graph(path).steps, ("the steps and their order are those of a graph",))
    if {"video", "step"} <= {cell.strip().lower() for cell in re.split(r"[,;\t]", next(source.lines(), ""))}:
        hint = "write one step per line, or give the table with --labels"
        raise InputError("is a table of labels, not a list of steps", where=path, hint=hint)
    lines = [" ".join(line.split()) for line in source.lines()]
    listed = [line for line in lines if line and not line.startswith("#")]
    names = [_BULLET.sub("", line).rstrip(".") for line in listed]
    changed = sum(name != line.rstrip(".") for name, line in zip(names, listed, strict=True))
    notes = (f"numbers or bullets were left out in {changed} lines of {Path(path).name}",) if changed else ()
    try:
        return StepList(tuple(name for name in names if name), notes)
    except InputError as error:
        raise error.at(path) from None
