"""`msg2 compare`: what two graphs agree and differ in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2 import drawing, metrics
from msg2.cli import console
from msg2.cli.data_options import Json
from msg2.formats import read_graph
from msg2.graph import TRUE, Formula
from msg2.metrics import GraphComparison


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A graph file.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one, of the same steps.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also draw A, with what only A has in blue and only B in red."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what two graphs agree and differ in: the kind of every pair of steps, optional steps, preconditions.

    A pair is of the kind *needs* (the later step needs the earlier one), *after* (it comes after it, where both are
    done), *exclusive* (a run never does both) or *free*, directly or through other steps.

    Examples: `msg2 compare graph.json truth.json`, `msg2 compare graph.json truth.json -o differences.svg`
    """
    one, two = read_graph(first), read_graph(second)
    found = metrics.compare_graphs(one, two)
    if output is not None:
        drawing.show(one, output, compare=metrics.match_step_names(two, one))
    if json:
        console.print_json(found.to_json())
        return
    _say(found, *(("A", "B") if first.stem == second.stem else (first.stem, second.stem)))
    if output is not None:
        console.print_line(str(output))


def _say(found: GraphComparison, one: str, two: str) -> None:
    counts = [(kind, each.first, each.second, each.both) for kind, each in found.kinds.items()]
    console.print_table(["pairs", one, two, "both"], counts)
    if found.pairs:
        rows = [(pair.before, pair.after, pair.first, pair.second) for pair in found.pairs]
        console.print_line("")
        console.print_table(["before", "after", one, two], rows)
    if found.preconditions:
        console.print_line("")
        needs = [(each.step, _formula(each.first), _formula(each.second)) for each in found.preconditions]
        console.print_table(["step that needs", one, two], needs)
    only = {f"only in {one}": found.optional_in_first, f"only in {two}": found.optional_in_second}
    for where, names in {"in both": found.optional_in_both, **only}.items():
        if names:
            console.print_line(f"Optional {where}: {', '.join(names)}.")
    console.print_line(f"The graphs agree on {console.format_percent(found.agreement)} % of the pairs of steps.")


def _formula(formula: Formula) -> str:
    return "nothing" if formula == TRUE else str(formula)
