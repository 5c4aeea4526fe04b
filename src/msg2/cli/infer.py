"""`msg2 infer`: graphs from data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from msg2.cli import console
from msg2.cli.constraint_options import ConstraintsFile, Forbid, Require, read_constraints
from msg2.cli.data_options import Data, EngineName, TaskName, record_reading, takes_reading_options
from msg2.cli.generated_options import GivenOptions
from msg2.cli.method_options import Seed, parse_method_options, takes_method_options
from msg2.cli.output_files import as_csv, refuse_clashes
from msg2.errors import InputError
from msg2.files import safe_names, write_together
from msg2.formats import read_sequences
from msg2.formats.reading import choose_task
from msg2.graph import SubtaskGraph
from msg2.graph.explanation import demonstrations
from msg2.inference import DEFAULT_METHOD, find_method, run_inference_on_all
from msg2.inference.bootstrap import DEFAULT_SAMPLES, choose_samples
from msg2.inference.result import Statistic
from msg2.media.encoders import text_encoder
from msg2.sequences import Sequences

MOST_RULES = 20
"""Rules of a graph that are printed; the others are counted."""

TaskJobs = Annotated[
    int, typer.Option(metavar="N", min=1, help="Files, tasks or samples that are worked on at the same time.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help=f"Learn again from N samples of the videos: how probable is each edge? With --confidence: "
        f"{DEFAULT_SAMPLES}.",
    ),
]
Confidence = Annotated[
    float | None, typer.Option(metavar="P", min=0, max=1, help="Keep what holds in this share of the samples at least.")
]


@takes_method_options()
@takes_reading_options("repeats", "overlap", "order", "tier", "fps", "draft_confidence")
def infer(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Graph file, or folder for many tasks.")
    ],
    method: str = DEFAULT_METHOD,
    task: TaskName = None,
    seed: Seed = 0,
    jobs: TaskJobs = 1,
    engine: EngineName = "local",
    stats: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write purities and search scores as a CSV table.")
    ] = None,
    require: Require = None,
    forbid: Forbid = None,
    knowledge: ConstraintsFile = None,
    confidence: Confidence = None,
    samples: Samples = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="words|PATH", help="likelihood: what step names suggest, by shared words or an encoder."),
    ] = None,
    *,
    reading: GivenOptions,
    given: GivenOptions,
) -> None:
    """Learn the subtask graph of every task in DATA.

    OUT is one graph file; where DATA holds many tasks, a folder with one file per task. The rules of a single graph are
    printed, with `--samples` also how sure each is; `msg2 explain` lists every edge.

    Which method? The default, which is the best or level nearly everywhere, and has no threshold to choose.

    Examples: `msg2 infer steps.csv -o graph.json`, `msg2 infer log.xes -o graph.json --absent skipped`,
    `msg2 infer steps.csv -o graph.json --method msg2 --delta 0.9`
    """
    options = parse_method_options(method, given)
    with console.usage_errors():
        choose_samples(samples, confidence)
    with console.progress_bar("reading") as progress:
        tasks = read_sequences(data, engine=engine, jobs=jobs, progress=progress, **reading)
    tasks = tasks if task is None else [choose_task(tasks, task, data)]
    paths = _output_paths(tasks, output, data)
    refuse_clashes([*paths, *([] if stats is None else [stats])], data)
    if names is not None and not find_method(method).reads_names:
        raise typer.BadParameter(f"the method {method!r} does not read the names of the steps: leave out --names")
    settings: dict[str, Any] = {
        "seed": seed,
        "constraints": read_constraints(require, forbid, knowledge, tasks),
        "samples": samples,
        "confidence": confidence,
        "names": None if names is None else text_encoder(names),
        **options,
    }
    with console.progress_bar("learning") as progress:
        results = list(run_inference_on_all(tasks, method, jobs=jobs, engine=engine, progress=progress, **settings))
    contents = {
        path: record_reading(result.graph, reading).dumps() for path, result in zip(paths, results, strict=True)
    }
    if stats is not None:
        contents[stats] = as_csv(Statistic, ((result.graph.task, result.statistics()) for result in results))
    write_together(contents)
    rows = [_summary(result.graph, path) for path, result in zip(paths, results, strict=True)]
    console.print_table(list(rows[0]), [list(row.values()) for row in rows])
    if len(results) == 1:
        _print_rules(results[0].graph, paths[0])


def _print_rules(graph: SubtaskGraph, path: Path) -> None:
    rules = graph.explain().splitlines() or ["no rule: the steps may come in any order"]
    console.print_line("")
    for rule in rules[:MOST_RULES]:
        console.print_line(rule)
    if len(rules) > MOST_RULES:
        console.print_line(f"… and {len(rules) - MOST_RULES} more rules; every edge: msg2 explain {path}")
    if "bootstrap" in graph.method:
        samples = graph.method["bootstrap"]["samples"]
        console.print_line(f"(%: of the {samples} samples that say exactly this)")


def _output_paths(tasks: Sequence[Sequences], output: Path, data: Path) -> list[Path]:
    if len(tasks) == 1 and not output.is_dir():
        return [output]
    if output.suffix == ".json" and not output.is_dir():
        raise InputError(
            f"holds {len(tasks)} tasks, {output} can hold only one graph",
            where=data,
            hint="give a folder as OUT, or choose one task with --task",
        )
    return [output / f"{name}.json" for name in safe_names([task.name for task in tasks])]


def _summary(graph: SubtaskGraph, path: Path) -> dict[str, object]:
    """Column: value of one graph; which columns there are depends on what the method tells and takes."""
    row: dict[str, object] = {
        "task": graph.task, demonstrations(graph): len(graph.method["videos"]), "steps": len(graph.steps),
        "edges": len(graph.edges()),
    }  # fmt: skip
    if "model" in graph.method:  # it tells what is needed from what only comes first, and what may be left out
        after = sum(edge.kind == "after" for edge in graph.edges())
        row |= {"after": after, "exclusive": len(graph.exclusive), "optional": len(graph.optional)}
    if "delta" in graph.method["options"]:
        delta = graph.method["options"]["delta"]
        chosen = " (chosen)" if "delta_chosen" in graph.method else ""
        row["delta"] = "" if delta is None else f"{delta:g}{chosen}"
    return {**row, "file": path}
