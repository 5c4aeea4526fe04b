"""`msg2 demo` and `msg2 simulate`: tasks whose true graph is known."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.reading import given
from msg2.errors import InputError
from msg2.files import write_together
from msg2.media.store import Encoders, write_store
from msg2.options import SEED, DemoOptions, FeatureOptions, NoiseOptions, RandomWorldOptions, WorldOptions
from msg2.pipeline import demo as run_demo
from msg2.worlds import Simulation, as_table, random_world, simulated_features, violation_rate, world, worlds
from msg2.worlds import simulate as simulate_world

_DEMO = DemoOptions()


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Folder for the files of the demonstration.")
    ] = Path(_DEMO.folder),
) -> None:
    """The whole system on an embedded world, ending in a page that opens.

    Noisy demonstrations of a household task are simulated, its subtask graph is learnt from their labels, compared with
    the true one, and drawn.

    Example: `msg2 demo -o my-demo`
    """
    with console.without_remarks():
        made = run_demo(output, _DEMO)
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
    console.say(f"compared {made.comparison}\npage     {made.page.resolve()}")


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
) -> None:
    """A noisy world with its true graph: OUT/steps.csv are the labels, OUT/truth.json is the graph.

    OUT/performed.csv is the same table of what was really performed, labelled or not.

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
    store = output / "features"
    if features:
        _write_features(store, simulation, seed)
    elif store.exists():
        raise InputError("holds the features of another simulation", where=store, hint="add --features, or remove it")
    files = {
        output / "steps.csv": as_table([simulation.task]),
        output / "performed.csv": as_table([simulation.performed]),
        output / "truth.json": simulation.graph.dumps(),
    }
    write_together(files)
    rate = violation_rate(simulation.task, simulation.graph)
    console.say(f"{len(simulation.task)} videos of '{chosen.name}'; {rate:.1%} of the labels violate the true graph.")
    console.say("\n".join(map(str, [*files, *([store] if features else [])])))


def _write_features(folder: Path, simulation: Simulation, seed: int) -> None:
    options, task = FeatureOptions(), simulation.task.name
    found = simulated_features(simulation, options, seed)
    versions = {package: version(package) for package in ("msg2", "numpy")}
    encoders = Encoders("simulated", "simulated", options.width, options.width, versions)
    write_store(folder, {(task, video): features for video, features in found.items()}, encoders)
