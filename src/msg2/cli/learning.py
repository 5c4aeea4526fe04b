"""`msg2 infer`: graphs from data."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from msg2.cli import console
from msg2.cli.knowledge import Forbid, KnowledgeFile, Require, known
from msg2.cli.methods import Alpha, Delta, Literals, Method, Recency, method_options
from msg2.cli.outputs import as_csv, refuse_clashes
from msg2.cli.reading import (
    Data,
    Fps,
    Order,
    Overlap,
    Repeats,
    TaskName,
    Tier,
    given,
    read_tasks,
    with_reading,
)
from msg2.errors import InputError
from msg2.files import safe_names, write_together
from msg2.graph import SubtaskGraph
from msg2.inference import DEFAULT, METHODS, Knowledge, study
from msg2.inference.confidence import Each
from msg2.inference.learnt import Statistic
from msg2.media.engines import Died, in_processes
from msg2.media.text import text_encoder
from msg2.options import BootstrapOptions
from msg2.remarks import LOGGER, kept_remarks
from msg2.task import Task

_ENDED = "a process that was learning has been ended from outside"
_FEWER = "it may have run out of memory: take fewer --jobs"

Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Seed of the folds with which δ auto is chosen, and of --samples.")
]
Jobs = Annotated[
    int, typer.Option(metavar="N", min=1, help="Tasks (of one task: samples) that are learnt at the same time.")
]
Samples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help=f"Learn again from N samples of the videos: how probable is each edge? With --confidence: "
        f"{BootstrapOptions().samples}.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(metavar="P", min=0, max=1, help="Keep what holds in this share of the samples at least."),
]


def infer(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Graph file, or folder for many tasks.")
    ],
    method: Method = DEFAULT.method,
    task: TaskName = None,
    delta: Delta = None,
    alpha: Alpha = None,
    recency: Recency = None,
    max_literals: Literals = None,
    seed: Seed = DEFAULT.seed,
    jobs: Jobs = DEFAULT.jobs,
    stats: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write purities and search scores as a CSV table.")
    ] = None,
    require: Require = None,
    forbid: Forbid = None,
    knowledge: KnowledgeFile = None,
    confidence: Confidence = None,
    samples: Samples = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="words|PATH", help="likelihood: what step names suggest, by shared words or an encoder."),
    ] = None,
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
    tier: Tier = None,
    fps: Fps = None,
) -> None:
    """Learn the subtask graph of every task in DATA.

    OUT is one graph file; where DATA holds many tasks, a folder with one file per task.

    Example: `msg2 infer steps.csv -o graph.json --delta 0.9`
    """
    options = method_options(method, delta, alpha, recency, max_literals)
    reading = given({"repeats": repeats, "overlap": overlap, "order": order, "tier": tier, "fps": fps})
    tasks = read_tasks(data, task, **reading)
    paths = _paths(tasks, output, data)
    refuse_clashes([*paths, *([] if stats is None else [stats])], data)
    told = known(require, forbid, knowledge, tasks)
    bootstrap = None
    if samples is not None or confidence is not None:
        with console.usage():
            bootstrap = BootstrapOptions(**given({"samples": samples, "confidence": confidence}))
    if names is not None and not METHODS[method].reads_names:
        raise typer.BadParameter(f"the method {method!r} does not read the names of the steps: leave out --names")
    encoder = None if names is None else text_encoder(names)
    settings = {"seed": seed, "bootstrap": bootstrap, "names": encoder, **options}
    learn = partial(_learn, method=method, told=told, settings=settings, with_statistics=stats is not None)
    if len(tasks) == 1:
        with console.status("learning") as report:
            results = [learn(tasks[0], report=report, each=partial(_samples, jobs))]
    else:
        results = list(console.progress(_each(learn, tasks, jobs), "learning", len(tasks)))
    for result in results:
        for level, message in result.messages:
            LOGGER.log(level, message)
    contents = {path: with_reading(result.graph, reading).dumps() for path, result in zip(paths, results, strict=True)}
    if stats is not None:
        contents[stats] = as_csv(Statistic, ((result.graph.task, result.statistics) for result in results))
    write_together(contents)
    console.say_table(
        ["task", "videos", "steps", "edges", "delta", "file"],
        [_summary(result.graph, path) for path, result in zip(paths, results, strict=True)],
    )


@dataclass(frozen=True, slots=True)
class _Result:
    graph: SubtaskGraph
    statistics: list[Statistic]
    messages: list[tuple[int, str]]


def _learn(
    task: Task,
    method: str,
    told: Knowledge,
    settings: dict[str, Any],
    with_statistics: bool,
    report: Callable[[str], None] | None = None,
    each: Each | None = None,
) -> _Result:
    with kept_remarks() as collected:
        found = study(task, method, knowledge=told.about(task.steps), report=report, each=each, **settings)
    return _Result(found.graph, list(found.statistics()) if with_statistics else [], collected.kept)


def _samples(jobs: int, sample: Callable[[int], SubtaskGraph], numbers: Sequence[int]) -> Iterator[SubtaskGraph]:
    """As `map`, in processes."""
    found = dict(in_processes(sample, numbers, min(jobs, os.cpu_count() or 1)))
    for number in numbers:
        graph = found[number]
        if isinstance(graph, Died):
            raise InputError(_ENDED, hint=_FEWER)
        yield graph


def _each(learn: partial[_Result], tasks: Sequence[Task], jobs: int) -> Iterator[_Result]:
    """The results in the order of the tasks, whatever the number of processes."""
    if jobs == 1:
        yield from map(learn, tasks)
        return
    workers = min(jobs, len(tasks), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        ours = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the workers inherit it: an interrupt is told once
        results = [pool.submit(learn, task) for task in tasks]
        signal.signal(signal.SIGINT, ours)
        try:
            for result in results:
                yield result.result()
        except BrokenProcessPool:
            raise InputError(_ENDED, hint=_FEWER) from None
        except BaseException:
            for worker in multiprocessing.active_children():  # else the pool waits until they are done
                worker.terminate()
            raise


def _paths(tasks: Sequence[Task], output: Path, data: Path) -> list[Path]:
    if len(tasks) == 1 and not output.is_dir():
        return [output]
    if output.suffix == ".json" and not output.is_dir():
        raise InputError(
            f"holds {len(tasks)} tasks, {output} can hold only one graph",
            where=data,
            hint="give a folder as OUT, or choose one task with --task",
        )
    return [output / f"{name}.json" for name in safe_names([task.name for task in tasks])]


def _summary(graph: SubtaskGraph, path: Path) -> tuple[object, ...]:
    delta = graph.method["options"].get("delta")
    chosen = " (chosen)" if "delta_chosen" in graph.method else ""
    shown = "" if delta is None else f"{delta:g}{chosen}"
    return graph.task, len(graph.method["videos"]), len(graph.steps), len(graph.edges()), shown, path
