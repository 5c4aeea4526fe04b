"""`msg2 sweep`: what δ does to a graph."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import option, output_option
from msg2.drawing.plots import sweep_plot
from msg2.errors import MissingExtraError
from msg2.files import write_together
from msg2.inference import sweep as sweep_delta
from msg2.inference.delta import SweepPoint
from msg2.inference.inference import SWEPT_METHOD, keep_tasks_with_two_videos
from msg2.progress import LOGGER, prefix_messages


@flags.reads_data("repeats", "overlap", "order", "tier", "fps")
def sweep(
    data: flags.Data,
    output: Annotated[Path, output_option("OUT", "CSV file, or a folder for sweep.csv.")],
    reading: flags.GivenOptions,
    method: Annotated[str, option("NAME", "A method with a δ.", autocompletion=flags.complete_method)] = SWEPT_METHOD,
    settings: flags.Settings = None,
    task: flags.TaskName = None,
    seed: flags.Seed = 0,
) -> None:
    """Edges and fit against δ, as a table (CSV) and, beside it, a plot (SVG).

    A higher δ asks for more agreement before a step counts as coming first, so it gives fewer edges. `fit` is the mean
    log-likelihood of a label in held-out videos: `--set delta=auto` takes the δ where it is highest. A sweep is for
    methods that have a δ: `msg2`, the paper's, which is the default here, and `always-before`. `likelihood` has none.

    Example: `msg2 sweep steps.csv -o sweep.csv`
    """
    options = flags.parse_settings(method, settings, delta="auto")
    flags.usage_error_if(options.pop("delta") != "auto", "every delta is tried: leave out --set delta")
    tasks = flags.read_tasks(data, task, **reading)
    table = output / "sweep.csv" if output.is_dir() or not output.suffix else output
    plot = table.with_suffix(".svg")
    flags.refuse_clashes([table, plot], data)
    tasks = keep_tasks_with_two_videos(tasks, data)
    with console.progress_bar("sweeping") as show:
        sweeps = [
            (each.name, sweep_delta(each, method, seed=seed, progress=prefix_messages(show, each.name), **options))
            for each in tasks
        ]
    title = f"{method}: {tasks[0].name if len(tasks) == 1 else f'{len(tasks)} tasks'}"
    contents: dict[Path, str | bytes] = {table: flags.fields_as_csv(SweepPoint, sweeps)}
    try:
        contents[plot] = sweep_plot([points for _, points in sweeps], title)
    except MissingExtraError as missing:
        LOGGER.warning("no plot: %s", missing)
    write_together(contents)
    for name, points in sweeps:
        rows = [(p.delta, p.edges, f"{p.held:.4f}", f"{p.fit:.4f}", p.chosen) for p in points]
        console.print_table([field.name for field in fields(SweepPoint)], rows, title=name)
    console.print_line("  ".join(str(path) for path in contents))
