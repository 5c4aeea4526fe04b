"""`msg2 explain`: every edge of a graph, and how sure it is."""

from typing import Annotated

import typer

from msg2.cli import console, flags
from msg2.cli.flags import option, switch
from msg2.formats import read_graph
from msg2.graph import RelatedPair, related_pairs
from msg2.graph.explanation import all_rules
from msg2.options import fields_to_json


def explain(
    graph: flags.GraphFile,
    step: Annotated[str | None, option("NAME", "Only this step: in words, and the edges from and to it.")] = None,
    json: flags.Json = False,
    csv: Annotated[bool, switch("--csv", "Print a table as CSV and nothing else on stdout.")] = False,
) -> None:
    """List every edge of a graph with its kind, support and confidence, the surest first; then its other rules.

    The kind is *needs* (the second step needs the first), *after* (it comes after it, where both are done),
    *exclusive* (a run never does both) or *together* (both mostly happen at the same time). For and against are the
    videos that show it so and those that show it otherwise. Confidence is the percentage of the samples that say the
    same where the graph was learned with `--samples`, else that of the videos; weak edges come after the others.

    Examples: `msg2 explain graph.json`, `msg2 explain graph.json --step "flip bread"`,
    `msg2 explain graph.json --csv > edges.csv`
    """
    flags.usage_error_if(json and csv, "--json and --csv are two ways to print it: choose one")
    known = read_graph(graph)
    words = [] if step is None else known.explain(step).splitlines()
    pairs = [pair for pair in related_pairs(known) if step is None or step in (pair.before, pair.after)]
    if csv:
        typer.echo(flags.fields_as_csv(RelatedPair, [(known.task, pairs)]), nl=False)
    elif json:
        of_step = {} if step is None else {"step": step, "explanation": words}
        console.print_json({"task": known.task, **of_step, "edges": [fields_to_json(pair) for pair in pairs]})
    else:
        console.print_line(*words)
        if pairs:
            columns = ["before", "after", "kind", "for", "against", "confidence", "note"]
            console.print_table(columns, [_row(pair) for pair in pairs])
        else:
            console.print_line(f"Nothing relates {'two of its steps' if step is None else 'it to another step'}.")
        if others := [rule.text for rule in all_rules(known) if not rule.of_pair and step is None]:
            console.print_line("", *others)


def _row(pair: RelatedPair) -> tuple[object, ...]:
    sure = "N/A" if pair.confidence is None else f"{console.format_probability(pair.confidence)} %"
    note = f"weak: {pair.doubt}" if pair.weak else ""
    if pair.kind == "together":
        before = round((pair.share or 0) * (pair.together or 0))
        note = f"{before} before, {(pair.together or 0) - before} after"
    return pair.before, pair.after, pair.kind, pair.supporting, pair.opposing, sure, note
