"""`msg2 experiment`: the paper's tables and ours."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.reading import given
from msg2.drawing.plots import dots_plot
from msg2.errors import InputError
from msg2.experiments import EXPERIMENTS
from msg2.experiments.provenance import provenance
from msg2.experiments.tables import kept_plot
from msg2.files import write_together
from msg2.options import ExperimentOptions


def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An experiment, or list.")],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", envvar="MSG2_DATA", help="Folder with the annotation sets.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write NAME.md, NAME.json and a chart or plots there."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes, for an experiment that takes long.")
    ] = None,
    text_encoder: Annotated[
        str | None,
        typer.Option(metavar="words|PATH", help="Of texts: hashed words (default), or a sentence encoder's folder."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="For figures: a CrossTask task, or a world, to search in.")
    ] = None,
    step: Annotated[
        str | None, typer.Option(metavar="NAME", help="For figures: the step whose precondition is searched for.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The paper's sizes, for a GPU.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small part, to see that it runs.")] = False,
) -> None:
    """The paper's tables and ours, each as Markdown and JSON, with a chart.

    One that takes hours keeps what it has measured in DIR, and goes on from there when it is started again.

    Example: `msg2 experiment next-step --data datasets -o results`
    """
    if name == "list":
        rows = [(key, one.shows, one.needs or "nothing") for key, one in EXPERIMENTS.items()]
        console.say_table(["experiment", "shows", "needs"], rows)
        return
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    chosen = EXPERIMENTS[name]
    if chosen.needs is not None:
        if data is None:
            raise typer.BadParameter(f"{name} needs the annotations of {chosen.needs}: give their folder with --data")
        if not (data / chosen.needs).is_dir():
            raise InputError(f"there is no folder {chosen.needs!r} in it", where=data, hint="see the docs on data sets")
    if jobs is not None and not chosen.long:
        raise typer.BadParameter(f"{name} has no --jobs: it is done in minutes")
    if full and not chosen.full:
        raise typer.BadParameter(f"{name} has no --full")
    if not chosen.of_a_step and (task is not None or step is not None):
        raise typer.BadParameter(f"{name} has no {'--step' if task is None else '--task'}")
    options = replace(ExperimentOptions.for_a_look() if quick else ExperimentOptions(), full=full, folder=output)
    options = replace(options, **given({"jobs": jobs, "text_encoder": text_encoder, "task": task, "step": step}))
    with console.without_remarks(), console.cells(name) as report:
        result = chosen.run(data, options, report)
    if output is not None:
        made_with = provenance(data / chosen.needs if data is not None and chosen.needs is not None else None)
        numbers = json.dumps({**result.to_json(), "made with": made_with}, ensure_ascii=False, indent=1) + "\n"
        write_together({output / f"{name}.md": result.to_markdown(), output / f"{name}.json": numbers})
        if any(result.chart.values()):
            drawn = partial(dots_plot, result.chart, f"{chosen.shows[0].upper()}{chosen.shows[1:]}")
            kept_plot(output / f"{name}.svg", drawn, console.tell)
    console.say(result.to_markdown())
