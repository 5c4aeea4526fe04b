"""`msg2 simulate`: noisy demonstrations of a task whose true graph is known."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console, flags
from msg2.cli.flags import argument, option, output_option, switch
from msg2.errors import InputError
from msg2.metrics.graph_scores import violation_rate
from msg2.simulation import household_world, household_worlds, random_world
from msg2.simulation import simulate as simulate_world
from msg2.simulation.label_noise import NoiseOptions
from msg2.simulation.random_worlds import RandomWorldOptions
from msg2.simulation.simulation_files import write_simulation
from msg2.simulation.simulator import SimulationOptions


@flags.takes_fields(NoiseOptions, "rates", [rate.name for rate in fields(NoiseOptions)], panel="Noise")
@flags.takes_fields(RandomWorldOptions, "shape", ("steps", "depth", "or_rate"), prefix="random: ")
def simulate(
    name: Annotated[
        str | None,
        argument(
            "WORLD",
            "A household world (make-coffee), or random; without it, they are listed.",
            autocompletion=lambda: [*(world.name.lower().replace(" ", "-") for world in household_worlds()), "random"],
        ),
    ] = None,
    output: Annotated[Path | None, output_option("OUT", "Folder to write to.")] = None,
    videos: Annotated[int | None, option("N", "Demonstrations.")] = None,
    seed: Annotated[int, option("N", "Everything follows from it.", min=0)] = 0,
    features: Annotated[bool, switch("--features", "Also what videos show and say, as OUT/features.")] = False,
    *,
    shape: flags.GivenOptions,
    rates: flags.GivenOptions,
) -> None:
    """A noisy world with its true graph: OUT/steps.csv are the labels, OUT/truth.json is the graph.

    OUT/truth/performed.csv is the same table of what was really performed, labelled or not. `msg2 run OUT` goes on
    from there.

    Example: `msg2 simulate "Make Coffee" -o coffee --unlabelled 0.4`
    """
    if name is None:
        if output is not None:
            raise typer.BadParameter("say which WORLD to simulate; without -o they are listed")
        rows = [(w.name, len(w.graph.steps), len(w.graph.edges())) for w in household_worlds()]
        console.print_table(["world", "steps", "edges"], rows)
        return
    if output is None:
        raise typer.BadParameter("say where to write with -o OUT")
    with console.usage_errors():
        noise = NoiseOptions(**rates)
        options = SimulationOptions(noise=noise, **({} if videos is None else {"videos": videos}))
        if name == "random":
            chosen = random_world(RandomWorldOptions(**shape), seed)
        elif shape:
            raise InputError(f"{', '.join('--' + key.replace('_', '-') for key in shape)} go with random worlds")
        else:
            chosen = household_world(name.replace("-", " "))  # shells complete a word without spaces
    simulation = simulate_world(chosen, options, seed)
    written = write_simulation(output, simulation, seed, features=features)
    rate = violation_rate(simulation.task, simulation.graph)
    console.print_line(
        f"{len(simulation.task)} videos of '{chosen.name}'; {rate:.1%} of the labels violate the true graph."
    )
    console.print_line("\n".join(map(str, written)))
