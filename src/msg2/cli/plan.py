"""`msg2 plan`: the most probable ways from what is done to a goal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.assist import Assistant
from msg2.assist.planning import Plan
from msg2.cli import console
from msg2.cli.shared_options import GivenOptions, GraphFile, Json, read_as_recorded, reads_data, refuse
from msg2.formats import read_graph


@reads_data("overlap", "order")
def plan(
    graph: GraphFile,
    goal: Annotated[str, typer.Option(metavar="STEP", help="The step that the plan ends with.")],
    done: Annotated[list[str] | None, typer.Option(metavar="STEP", help="A step that is done, in order.")] = None,
    length: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Steps of the plan, the goal included."),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many plans.")] = 3,
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="Videos that say how probable each way is.")] = None,
    json: Json = False,
    *,
    reading: GivenOptions,
) -> None:
    """The most probable sequences of steps that respect the graph, from what is done to a goal.

    Without --data they are the shortest ones, and have no probabilities.

    Example: `msg2 plan graph.json --goal "serve" --done "boil water" --data steps.csv`
    """
    if data is None:
        refuse("--data", **reading)
    learned = read_graph(graph)
    videos = None if data is None else read_as_recorded(learned, data, **{"repeats": "keep", **reading})
    with console.progress_bar("planning"):
        assistant = Assistant(learned, videos)
        for name in done or ():
            assistant.accept(name)
        plans = assistant.plan(goal, length, k)
    if json:
        console.print_json(
            {"task": learned.task, "goal": goal, "done": done or [], "plans": [p.to_json() for p in plans]}
        )
        return
    _print_plans(plans)


def _print_plans(plans: list[Plan]) -> None:
    for number, one in enumerate(plans, start=1):
        share = "" if one.probability is None else f"  ({console.format_probability(one.probability)} %)"
        console.print_line(f"{number}. {', then '.join(one.steps)}{share}")
    if not all(one.exact for one in plans):
        console.print_note("There are too many ways to try them all: better ones may have been missed.")
