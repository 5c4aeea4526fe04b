"""`msg2 plan`: the most probable ways from what is done to a goal."""

from pathlib import Path
from typing import Annotated

from msg2.assist import Assistant
from msg2.cli import console, flags
from msg2.cli.flags import option
from msg2.formats import read_graph


@flags.reads_data("overlap", "order")
def plan(
    graph: flags.GraphFile,
    goal: Annotated[str, option("STEP", "The step that the plan ends with.")],
    reading: flags.GivenOptions,
    done: Annotated[list[str] | None, option("STEP", "A step that is done, in order.")] = None,
    length: Annotated[int | None, option("N", "Steps of the plan, the goal included.", min=1)] = None,
    k: Annotated[int, option("N", "How many plans.", "-k", min=1)] = 3,
    data: Annotated[Path | None, option("DATA", "Videos that say how probable each way is.")] = None,
    json: flags.Json = False,
) -> None:
    """The most probable sequences of steps that respect the graph, from what is done to a goal.

    Without --data they are the shortest ones, and have no probabilities.

    Example: `msg2 plan graph.json --goal "serve" --done "boil water" --data steps.csv`
    """
    learned = read_graph(graph)
    videos = flags.read_if_given(learned, data, reading, repeats="keep")
    with console.progress_bar("planning"):
        assistant = Assistant(learned, videos)
        for name in done or ():
            assistant.accept(name)
        plans = assistant.plan(goal, length, k)
    if json:
        ways = [way.to_json() for way in plans]
        console.print_json({"task": learned.task, "goal": goal, "done": done or [], "plans": ways})
        return
    for number, way in enumerate(plans, start=1):
        share = "" if way.probability is None else f"  ({console.format_probability(way.probability)} %)"
        console.print_line(f"{number}. {', then '.join(way.steps)}{share}")
    if not all(way.exact for way in plans):
        console.print_note("There are too many ways to try them all: better ones may have been missed.")
