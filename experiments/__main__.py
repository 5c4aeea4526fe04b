"""`python -m experiments NAME`: the paper's tables and ours."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import EXPERIMENTS
from experiments.experiment_options import ExperimentOptions
from experiments.provenance import provenance
from experiments.result_tables import save_plot
from msg2.cli import console
from msg2.cli.app import main
from msg2.drawing.plots import dot_plot
from msg2.errors import InputError
from msg2.files import write_together
from msg2.progress import quiet_logs

app = typer.Typer(
    name="python -m experiments",
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
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
    held_out: Annotated[
        bool, typer.Option("--held-out", help="For kinds: the set that is run once, when nothing is changed any more.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's sizes, for a GPU.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small part, to see that it runs.")] = False,
) -> None:
    """The paper's tables and ours, each as Markdown and JSON, with a chart.

    One that takes hours keeps what it has measured in DIR, and goes on from there when it is started again.

    Example: `python -m experiments next-step --data datasets -o results`
    """
    console.keep_logs()
    if name == "list":
        rows = [(key, known.summary, known.dataset or "nothing") for key, known in EXPERIMENTS.items()]
        console.print_table(["experiment", "shows", "needs"], rows)
        return
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    chosen = EXPERIMENTS[name]
    if chosen.dataset is not None:
        if data is None:
            raise typer.BadParameter(f"{name} needs the annotations of {chosen.dataset}: give their folder with --data")
        if not (data / chosen.dataset).is_dir():
            what = f"there is no folder {chosen.dataset!r} in it"
            raise InputError(what, where=data, hint="see the docs on data sets")
    if jobs is not None and not chosen.resumable:
        raise typer.BadParameter(f"{name} has no --jobs: it is done in minutes")
    if full and not chosen.full:
        raise typer.BadParameter(f"{name} has no --full")
    if held_out and not chosen.held_out:
        raise typer.BadParameter(f"{name} has no --held-out")
    if not chosen.takes_step and (task is not None or step is not None):
        raise typer.BadParameter(f"{name} has no {'--step' if task is None else '--task'}")
    sizes = ExperimentOptions.for_quick_look() if quick else ExperimentOptions()
    options = replace(sizes, full=full, held_out=held_out, folder=output)
    given: dict[str, Any] = {"jobs": jobs, "text_encoder": text_encoder, "task": task, "step": step}
    options = replace(options, **{name: value for name, value in given.items() if value is not None})
    with quiet_logs(), console.progress_bar(name) as progress:
        result = chosen.run(data, options, progress)
    if output is not None:
        made_with = provenance(data / chosen.dataset if data is not None and chosen.dataset is not None else None)
        numbers = json.dumps({**result.to_json(), "made with": made_with}, ensure_ascii=False, indent=1) + "\n"
        stem = f"{name}-held-out" if held_out else name
        write_together({output / f"{stem}.md": result.to_markdown(), output / f"{stem}.json": numbers})
        if any(result.chart.values()):
            title = f"{chosen.summary[0].upper()}{chosen.summary[1:]}"
            save_plot(output / f"{stem}.svg", partial(dot_plot, result.chart, title))
    console.print_line(result.to_markdown())
    console.finish()


if __name__ == "__main__":
    main(app, "experiments")
