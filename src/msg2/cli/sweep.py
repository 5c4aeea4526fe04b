"""`msg2 sweep`: what δ does to a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.learning import Seed
from msg2.cli.methods import Alpha, Literals, Method, Recency, method_options
from msg2.cli.outputs import as_csv, refuse_clashes
from msg2.cli.reading import Data, Fps, Order, Overlap, Repeats, TaskName, Tier, read_tasks, with_enough_videos
from msg2.drawing.plots import sweep_plot
from msg2.errors import MissingExtraError
from msg2.files import write_together
from msg2.inference import DEFAULT, SweepPoint
from msg2.inference import sweep as sweep_delta
from msg2.remarks import LOGGER


def sweep(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="CSV file, or a folder for sweep.csv.")],
    method: Method = DEFAULT.method,
    task: TaskName = None,
    alpha: Alpha = None,
    recency: Recency = None,
    max_literals: Literals = None,
    seed: Seed = DEFAULT.seed,
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
    tier: Tier = None,
    fps: Fps = None,
) -> None:
    """Edges and fit against δ, as a table (CSV) and, beside it, a plot (SVG).

    A higher δ asks for more agreement before a step counts as coming first, so it gives fewer edges. `fit` is the mean
    log-likelihood of a label in held-out videos: `--delta auto` takes the δ where it is highest.

    Example: `msg2 sweep steps.csv -o sweep.csv`
    """
    options = method_options(method, "auto", alpha, recency, max_literals)
    tasks = read_tasks(data, task, overlap=overlap, repeats=repeats, order=order, tier=tier, fps=fps)
    table = output / "sweep.csv" if output.is_dir() or not output.suffix else output
    plot = table.with_suffix(".svg")
    refuse_clashes([table, plot], data)
    tasks = with_enough_videos(tasks, data)
    with console.status("sweeping") as report:
        tried = [
            (one.name, sweep_delta(one, method, seed=seed, report=partial(_report_task, report, one.name), **options))
            for one in tasks
        ]
    title = f"{method}: {tasks[0].name if len(tasks) == 1 else f'{len(tasks)} tasks'}"
    contents: dict[Path, str | bytes] = {table: as_csv(SweepPoint, tried)}
    try:
        contents[plot] = sweep_plot([points for _, points in tried], title)
    except MissingExtraError as missing:
        LOGGER.warning("no plot: %s", missing)
    write_together(contents)
    for name, points in tried:
        rows = [(p.delta, p.edges, f"{p.held:.4f}", f"{p.fit:.4f}", p.chosen) for p in points]
        console.say_table([field.name for field in fields(SweepPoint)], rows, title=name)
    console.say("  ".join(str(path) for path in contents))


def _report_task(report: Callable[[str], None], task: str, news: str) -> None:
    report(f"{task}, {news}")
