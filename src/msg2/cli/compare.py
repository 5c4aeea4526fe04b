"""`msg2 compare`: what two graphs agree and differ in."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from msg2 import drawing, formats, metrics
from msg2.cli import console, flags
from msg2.cli.flags import argument, option, output_option
from msg2.formats.run_selection import compare_runs
from msg2.graph import TRUE, Formula
from msg2.text import join_names

_MOST_TOLD = 30
"""Differences between groups that are printed, at most."""


@flags.reads_data("overlap", "order")
def compare(
    first: Annotated[Path, argument("A|DATA", "A graph file; with --by, data.")],
    reading: flags.GivenOptions,
    second: Annotated[Path | None, argument("B", "Another one of the same task; by default, that of --truth.")] = None,
    truth: Annotated[Path | None, option("GRAPH", "The true graph, or one of CaptainCook4D: who is right?")] = None,
    output: Annotated[Path | None, output_option("FILE", "Also draw A: blue is only in A, red only in B.")] = None,
    by: Annotated[str | None, option("COLUMN|CONDITION", "Compare runs of DATA, such as those of start<2012.")] = None,
    task: flags.TaskName = None,
    json: flags.Json = False,
) -> None:
    """Tell what two graphs agree and differ in: kinds of pairs, optional steps, preconditions, what must follow, loops.

    Of two methods, of two data sets, before and after a constraint, drawn and learnt; neither counts as the truth,
    unless it is given as `--truth`. A pair is of the kind *needs* (the later step needs the earlier one), *after* (it
    comes after it, where both are done), *exclusive* (a run never does both) or *free*.

    With --by, groups of runs are compared: which steps they do, do again, and in which order. Fisher's exact test says
    what chance would give, corrected for the number of comparisons (Benjamini and Hochberg). A group is the runs with a
    value of a column, or those that meet a condition, as `msg2 describe --where` takes it.

    Examples: `msg2 compare before.json after.json`, `msg2 compare log.xes --by "start<2012-06-01"`,
    `msg2 compare graph.json drawn.json -o differences.svg`,
    `msg2 compare one.json other.json --truth truth.json`
    """
    if by is not None:
        flags.refuse("graphs, without --by", b=second, truth=truth, output=output)
        with console.progress_bar("comparing"):
            differences = compare_runs(first, by, task, **reading)
        if json:
            console.print_json({"differences": [asdict(each) for each in differences]})
            return
        told = [each.to_english() for each in differences if each.corrected <= metrics.SIGNIFICANT]
        console.print_line(*told[:_MOST_TOLD])
        more = f"; the {_MOST_TOLD} largest are told, --json has all" if len(told) > _MOST_TOLD else ""
        console.print_line(f"{len(told)} of {len(differences)} comparisons differ by more than chance{more}.")
        return
    flags.refuse("--by", task=task, **reading)
    other = second or truth
    if other is None:
        raise typer.BadParameter("say what to compare with: B, or --truth")
    one, two = formats.read_graph(first), formats.read_graph(other)
    true = formats.read_graph(truth) if second is not None and truth is not None else None
    with console.progress_bar("comparing"):
        result = metrics.compare_graphs(one, two, true)
    if output is not None:
        drawing.show(one, output, compare=metrics.match_step_names(two, one, called=("second graph", "first graph")))
    if json:
        console.print_json(result.to_json())
        return
    stems = first.stem, "truth" if second is None else second.stem
    _print_comparison(result, *(("A", "B") if stems[0] == stems[1] else stems))
    if output is not None:
        console.print_line(str(output))


def _print_comparison(result: metrics.GraphComparison, one: str, two: str) -> None:
    for name, alone in ((one, result.steps_in_first), (two, result.steps_in_second)):
        if alone:
            console.print_line(f"Steps only in {name}, which are left out here: {join_names(alone)}.")
    counts = [
        (kind, each.first, each.second, each.both)
        for kind, each in result.kinds.items()
        if kind != "together" or each.first or each.second
    ]
    console.print_table(["pairs", one, two, "both"], counts)
    console.print_line(f"The graphs agree on {console.format_probability(result.agreement)} % of the pairs of steps.")
    _print_edges(result, one, two)
    for each in result.preconditions:
        console.print_line(f"\n{each.step} needs\n  {one}: {_formula(each.first)}\n  {two}: {_formula(each.second)}")
    only = {f"only in {one}": result.optional_in_first, f"only in {two}": result.optional_in_second}
    optional = {"in both": result.optional_in_both, **only}
    if any(optional.values()):
        told = (f"Optional {where}: {', '.join(names)}." for where, names in optional.items() if names)
        console.print_line("", *told)
    for name, said in ((one, result.said_in_first), (two, result.said_in_second)):
        console.print_line(*(f"Only in {name}: {text}." for text in said))
    if result.right_in_first is not None and result.right_in_second is not None:
        first, second = map(console.format_probability, (result.right_in_first, result.right_in_second))
        console.print_line(f"\nOf the pairs, {one} has {first} % as in the truth, {two} {second} %.")


def _print_edges(result: metrics.GraphComparison, one: str, two: str) -> None:
    """The edges that differ; of the pairs that only follow from them, the number."""
    if result.edges:
        judged = result.right_in_first is not None
        rows = [(e.before, e.after, e.first, e.second, *([e.truth] if judged else [])) for e in result.edges]
        console.print_line("")
        console.print_table(["before", "after", one, two, *(["truth"] if judged else [])], rows)
    if following := len(result.pairs) - len(result.edges):
        they = ("pair differs", "follows", "it") if following == 1 else ("pairs differ", "follow", "them")
        console.print_line("{} more {}, which {} from other steps: --json lists {}.".format(following, *they))


def _formula(formula: Formula) -> str:
    return "nothing" if formula == TRUE else formula.to_english()
