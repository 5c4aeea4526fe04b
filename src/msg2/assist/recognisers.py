"""How a recogniser errs, as people have it: a table of steps by steps, with a column for what it does not report."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np

from msg2.assist.belief import Confusion
from msg2.errors import InputError, require
from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Step
from msg2.text import short_repr

ConfusionSource: TypeAlias = FloatArray | str | PathLike[str]
"""An array, rows and columns in the order of the graph's steps; or a CSV file whose first row and column name them."""
_SMOOTHING = 0.5
"""Added to every count: what has not been seen yet may happen."""


def load_confusion(source: ConfusionSource, graph: SubtaskGraph) -> Confusion:
    """Read a table of confusions; counts and shares serve alike.

    Its last column says how often a step is not reported at all; a last row, how often something is reported where
    nothing is done.
    """
    if isinstance(source, str | PathLike):
        counts = _read(Path(source), graph.steps)
    else:
        try:
            counts = np.asarray(source, dtype=float)
        except (TypeError, ValueError):
            raise InputError("the confusions must be numbers, steps by steps") from None
    size = len(graph.steps)
    if counts.shape not in ((size, size + 1), (size + 1, size + 1)):
        what = f"the confusions have the shape {counts.shape}, {size} steps take {size} rows and {size + 1} columns"
        raise InputError(what, hint="the last column is for what is not reported")
    require(bool(np.isfinite(counts).all() and (counts >= 0).all()), "the confusions must be numbers of 0 or more")
    if len(counts) == size:  # of what is reported where nothing is done, nothing is known: as often wrong as in steps
        right, total = float(np.trace(counts)), float(counts.sum())
        counts = np.vstack([counts, [*[(total - right) / size**2] * size, right / size]])
    weight = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    smoothed = counts + _SMOOTHING * weight / (weight + size) / (size + 1)
    return Confusion(smoothed / smoothed.sum(axis=1, keepdims=True))


def _read(path: Path, steps: tuple[Step, ...]) -> FloatArray:
    """Read a CSV file; its steps may be in any order."""
    import csv

    try:
        rows = [row for row in csv.reader(path.read_text("utf-8-sig").splitlines()) if row]
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as a table of confusions ({type(error).__name__})", where=path) from None
    require(len(rows) > 1, "has no rows", where=path)
    columns = [name.strip() for name in rows[0][1:-1]]
    table = {row[0].strip(): row[1:] for row in rows[1:]}
    for name in steps:
        require(name in columns and name in table, f"lacks the step {short_repr(name)}", where=path)
    order = [columns.index(name) for name in steps]
    others = [name for name in table if name not in steps]
    require(len(others) <= 1, f"has rows that are no steps: {', '.join(map(short_repr, others[:3]))}", where=path)
    try:
        return np.array([[float(table[n][c]) for c in [*order, -1]] for n in [*steps, *others]])
    except (ValueError, IndexError):
        raise InputError("has a cell that is no number", where=path) from None
