"""`msg2 demo` and `msg2 simulate`: tasks whose true graph is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.reading import given
from msg2.cli.run import say_runs
from msg2.cli.training import between_epochs
from msg2.errors import InputError
from msg2.options import SEED, DemoOptions, NoiseOptions, RandomWorldOptions, RenderOptions, WorldOptions
from msg2.pipeline import Run, write_simulation
from msg2.pipeline import demo as run_demo
from msg2.worlds import random_world, violation_rate, world, worlds
from msg2.worlds import simulate as simulate_world

_DEMO = DemoOptions()


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Folder for the files of the demonstration.")
    ] = Path(_DEMO.folder),
) -> None:
    """The whole system on an embedded world, ending in a page that opens.

    Noisy demonstrations of a household task are simulated, with what is seen and said in them. Its subtask graph is
    learnt from the labels; the steps that nobody labelled are filled in, and it is learnt again. Both are compared with
    the true one, and drawn.

    Example: `msg2 demo -o my-demo`
    """
    with console.without_remarks(), between_epochs() as check, console.bar("learning to see steps") as show:

        def report(epoch: int, of: int, news: str) -> None:
            show(epoch, of, news)
            check()

        made = run_demo(output, _DEMO, report)
    console.say(
        f"'{_DEMO.world}': {made.videos} simulated videos with missing, swapped and wrong labels; "
        f"{made.violation_rate:.0%} of the labels violate the true graph."
    )
    delta = made.graph.method["options"]["delta"]
    console.say(f"\nLearnt from the labels alone (msg2, its δ = {delta:g} chosen from them):")
    for name, formula in made.graph.preconditions.items():
        console.say(f"  {name}  needs  {formula.words()}")
    console.say("\nAgainst the true graph, percent:")
    console.say_table(
        ["method", "accuracy", "spoc", "compatibility", "edge f1"],
        [
            (name, *map(console.percent, (s.accuracy, s.spoc, s.compatibility, s.edges.f1)))
            for name, s in made.scores.items()
        ],
    )
    console.say(f"\nlabels   {made.table}\ngraph    {made.graph_file}\ntruth    {made.truth_file}")
    console.say(f"compared {made.comparison}")
    if made.run is None:
        extra = "fills in the steps that nobody labelled, and learns again"
        console.say(f"page     {made.page.resolve()}")
        console.tell(f"With pip install 'msg2[states]', the demonstration also {extra}.")
        return
    console.say(f"\n{_filled_in(made.run)}")
    say_runs([made.run])


def _filled_in(run: Run) -> str:
    assert run.additions is not None
    found = run.additions
    return (
        f"State prediction added {found.added} labels, {found.right} of them of steps that were really done; "
        f"the annotators had left out {found.missing}:"
    )


def simulate(
    name: Annotated[
        str | None, typer.Argument(metavar="WORLD", help="A household world, or random; without it, they are listed.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Folder to write to.")] = None,
    videos: Annotated[int | None, typer.Option(metavar="N", help="Demonstrations.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything follows from it.")] = SEED,
    steps: Annotated[int | None, typer.Option(metavar="N", help="random: number of steps.")] = None,
    depth: Annotated[int | None, typer.Option(metavar="N", help="random: layer of the deepest step.")] = None,
    or_rate: Annotated[
        float | None, typer.Option(metavar="P", help="random: share of preconditions with an OR.")
    ] = None,
    skipped: Annotated[float | None, typer.Option(metavar="P", help="Step really not done.")] = None,
    unlabelled: Annotated[float | None, typer.Option(metavar="P", help="Step done, but not labelled.")] = None,
    swapped: Annotated[float | None, typer.Option(metavar="P", help="Neighbours swapped by the editor.")] = None,
    repeated: Annotated[float | None, typer.Option(metavar="P", help="Step done once more, later.")] = None,
    mislabelled: Annotated[float | None, typer.Option(metavar="P", help="Label of another step.")] = None,
    overlapping: Annotated[
        float | None, typer.Option(metavar="P", help="Step starts before the last one ends.")
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Also what the videos show and say, as a feature store: OUT/features.")
    ] = False,
    render: Annotated[
        bool,
        typer.Option(
            "--render", help="Also the videos themselves, drawn, with captions and (with espeak-ng) sound: OUT/videos."
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="--render: videos that are drawn at a time.")
    ] = None,
) -> None:
    """A noisy world with its true graph: OUT/steps.csv are the labels, OUT/truth.json is the graph.

    OUT/truth/performed.csv is the same table of what was really performed, labelled or not. `msg2 run OUT` goes the
    whole way from there.

    Example: `msg2 simulate "Make Coffee" -o coffee --unlabelled 0.4`
    """
    if name is None:
        if output is not None:
            raise typer.BadParameter("say which WORLD to simulate; without -o they are listed")
        rows = [(w.name, len(w.graph.steps), len(w.graph.edges())) for w in worlds()]
        console.say_table(["world", "steps", "edges"], rows)
        return
    if output is None:
        raise typer.BadParameter("say where to write with -o OUT")
    rates = {
        "skipped": skipped, "unlabelled": unlabelled, "swapped": swapped,
        "repeated": repeated, "mislabelled": mislabelled, "overlapping": overlapping,
    }  # fmt: skip
    shape = {"steps": steps, "depth": depth, "or_rate": or_rate}
    if jobs is not None and not render:
        raise typer.BadParameter("--jobs goes with --render")
    with console.usage():
        noise = replace(NoiseOptions(), **given(rates))
        options = replace(WorldOptions(noise=noise), **given({"videos": videos}))
        if name == "random":
            chosen = random_world(replace(RandomWorldOptions(), **given(shape)), seed)
        elif given(shape):
            raise InputError(f"{', '.join('--' + key.replace('_', '-') for key in given(shape))} go with random worlds")
        else:
            chosen = world(name)
    simulation = simulate_world(chosen, options, seed)
    drawn = RenderOptions(jobs=jobs or 1) if render else None
    with console.bar("drawing videos") as show:
        written = write_simulation(output, simulation, seed, features=features, render=drawn, report=show)
    rate = violation_rate(simulation.task, simulation.graph)
    console.say(f"{len(simulation.task)} videos of '{chosen.name}'; {rate:.1%} of the labels violate the true graph.")
    console.say("\n".join(map(str, written)))
