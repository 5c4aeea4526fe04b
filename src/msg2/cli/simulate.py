"""`msg2 simulate`: noisy demonstrations of a task whose true graph is known."""

from pathlib import Path
from typing import Annotated

import typer

from msg2 import metrics, simulation
from msg2.cli import console, flags
from msg2.cli.flags import argument, option, output_option, switch
from msg2.errors import InputError
from msg2.simulation.simulated_features import write_simulation

_WORLD = "A household world (make-coffee), or random; without it, they are listed."


def _complete_world() -> list[str]:
    return [*(world.name.lower().replace(" ", "-") for world in simulation.household_worlds()), "random"]


@flags.takes_fields(simulation.NoiseOptions, "noise", panel="Noise")
@flags.takes_fields(simulation.RandomWorldOptions, "shape", ("steps", "depth", "or_rate"), make=dict, prefix="random: ")
def simulate(
    noise: simulation.NoiseOptions,
    shape: flags.GivenOptions,
    name: Annotated[str | None, argument("WORLD", _WORLD, autocompletion=_complete_world)] = None,
    output: Annotated[Path | None, output_option("OUT", "Folder to write to.")] = None,
    videos: Annotated[int | None, option("N", "Demonstrations.")] = None,
    seed: Annotated[int, option("N", "Everything follows from it.", min=0)] = 0,
    features: Annotated[bool, switch("--features", "Also what videos show and say, as OUT/features.")] = False,
) -> None:
    """A noisy world with its true graph: OUT/steps.csv are the labels, OUT/truth.json is the graph.

    OUT/truth/performed.csv is the same table of what was really performed, labelled or not. `msg2 run OUT` goes on
    from there.

    Example: `msg2 simulate "Make Coffee" -o coffee --unlabelled 0.4`
    """
    if name is None:
        flags.usage_error_if(output, "say which WORLD to simulate; without -o they are listed")
        graphs = {world.name: world.graph for world in simulation.household_worlds()}
        rows = [(world, len(graph.steps), len(graph.edges())) for world, graph in graphs.items()]
        console.print_table(["world", "steps", "edges"], rows)
        return
    if output is None:
        raise typer.BadParameter("say where to write with -o OUT")
    with console.usage_errors():
        options = simulation.SimulationOptions(noise=noise, **({} if videos is None else {"videos": videos}))
        if name == "random":
            chosen = simulation.random_world(simulation.RandomWorldOptions(**shape), seed)
        elif shape:
            raise InputError(f"{', '.join('--' + key.replace('_', '-') for key in shape)} go with random worlds")
        else:
            chosen = simulation.household_world(name.replace("-", " "))  # shells complete a word without spaces
    simulated = simulation.simulate(chosen, options, seed)
    written = write_simulation(output, simulated, seed, features=features)
    rate = metrics.violation_rate(simulated.task, simulated.graph)
    videos_of = f"{len(simulated.task)} videos of '{chosen.name}'"
    console.print_line(f"{videos_of}; {rate:.1%} of the labels violate the true graph.", *map(str, written))
