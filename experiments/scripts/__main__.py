"""`python -m experiments.scripts`: a text-to-text model that orders steps by their names.

It is fine-tuned on scripts that people wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from experiments.scripts.script_options import ScriptOptions
from msg2.cli import console
from msg2.cli.app import main
from msg2.cli.flags import Data, TaskName, read_tasks
from msg2.errors import InputError, optional_dependency
from msg2.files import safe_names, write_together
from msg2.task import Task

_DEFAULT = ScriptOptions()
_DOING = "ordering steps with a model of scripts"

app = typer.Typer(
    name="python -m experiments.scripts",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=console.finish,
    help="Order steps by their names alone, with a T5 model of scripts; no video has a part in it.\n\n"
    "Example: `python -m experiments.scripts order steps.csv --model model -o graph.json`",
)


@app.callback()
def _collect_messages() -> None:
    console.keep_logs()


@app.command()
def train(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Scripts in the proScript format: JSON Lines.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Folder for the model.")],
    base: Annotated[
        str, typer.Option(metavar="NAME|PATH", help="A T5 checkpoint: its folder, or its name on the Hugging Face hub.")
    ] = _DEFAULT.base,
    epochs: Annotated[int, typer.Option(metavar="N", help="Passes over the scripts.")] = _DEFAULT.epochs,
    batch: Annotated[int, typer.Option(metavar="N", help="Scripts per step.")] = _DEFAULT.batch,
    learning_rate: Annotated[float, typer.Option(metavar="X", help="Of Adam.")] = _DEFAULT.learning_rate,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything random follows from it.")] = _DEFAULT.seed,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="auto: a GPU where there is one.")
    ] = _DEFAULT.device,
) -> None:
    """Fine-tune a T5 model on scripts: from a scenario and its unordered events to their partial order.

    A training that was interrupted goes on when the same command is given again, and ends as if it never had been.
    MODEL then is a T5 model as any other, and --base a folder needs no network.

    Example: `python -m experiments.scripts train proscript/train.jsonl -o model --base google-t5/t5-large`
    """
    with console.usage_errors():
        options = ScriptOptions(
            base=base, epochs=epochs, batch=batch, learning_rate=learning_rate, seed=seed, device=device
        )
    from experiments.scripts.proscript import read_scripts

    scripts = read_scripts(files)
    with optional_dependency(_DOING, "video"):
        from experiments.scripts import script_training
    with console.training_bar("training") as progress:
        card = script_training.train(scripts, output, options, progress)
    columns = ["scripts", "edges", "epochs", "first loss", "last loss", "model"]
    edges = sum(len(script.edges) for script in scripts)
    console.print_table(columns, [(len(scripts), edges, len(card.losses), card.losses[0], card.losses[-1], output)])


@app.command()
def order(
    data: Data,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="What `python -m experiments.scripts train` made, or any T5 model by folder or name."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Graph file, or folder for many tasks.")
    ],
    task: TaskName = None,
    beams: Annotated[
        int, typer.Option(metavar="N", help="Orders that are followed at the same time.")
    ] = _DEFAULT.beams,
) -> None:
    """Order the steps of every task in DATA by their names; the videos in it are not looked at.

    The model can only write edges between the given steps that close no circle.

    Example: `python -m experiments.scripts order steps.csv --model model -o graph.json`
    """
    with console.usage_errors():
        options = ScriptOptions(beams=beams)
    tasks = read_tasks(data, task)
    paths = _output_paths(tasks, output)
    if any(path.exists() and path.samefile(data) for path in paths):
        raise InputError("is the data, the result would replace it", where=output, hint="choose another output")
    with optional_dependency(_DOING, "video"):
        from experiments.scripts.script_model import ScriptModel
    held = ScriptModel(model)
    graphs = []
    with console.progress_bar("ordering") as progress:
        for number, one in enumerate(tasks):
            progress(number, len(tasks), one.name)
            graphs.append(held.graph(one, options))
    write_together({path: graph.dumps() for path, graph in zip(paths, graphs, strict=True)})
    rows = [(g.task, len(g.steps), len(g.edges()), path) for g, path in zip(graphs, paths, strict=True)]
    console.print_table(["task", "steps", "edges", "graph"], rows)


def _output_paths(tasks: Sequence[Task], output: Path) -> list[Path]:
    """The graph file of the only task, or one per task."""
    if len(tasks) == 1 and not output.is_dir():
        return [output]
    if output.suffix == ".json" and not output.is_dir():
        what = f"one graph file cannot hold {len(tasks)} tasks"
        raise InputError(what, where=output, hint="give a folder as OUT, or choose one task with --task")
    return [output / f"{name}.json" for name in safe_names([task.name for task in tasks])]


if __name__ == "__main__":
    main(app, "scripts")
