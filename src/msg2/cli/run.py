"""`msg2 run`: the whole way, from labels and features to graphs before and after, and a page."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.features import (
    Captions,
    FrameEncoder,
    Jobs,
    PhraseModel,
    SpeechModel,
    TextEncoder,
    found_recordings,
    make_store,
)
from msg2.cli.learning import Seed
from msg2.cli.methods import Delta, Method, method_options
from msg2.cli.reading import Data, TaskName, read_tasks
from msg2.cli.states import Encoder, Variant
from msg2.cli.training import between_epochs, task_folders
from msg2.errors import InputError, shortened
from msg2.graph import SubtaskGraph
from msg2.media.store import open_store
from msg2.options import ExtractionOptions, RunOptions
from msg2.pipeline import Run, Sources, state_prediction
from msg2.pipeline import run as run_task
from msg2.readers import read_graph
from msg2.remarks import LOGGER
from msg2.states.variants import variant as known_variant
from msg2.task import Task

_RUN, _EXTRACTION = RunOptions(), ExtractionOptions()


def run(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Folder; with many tasks, of folders.")],
    features: Annotated[
        Path | None, typer.Option(metavar="STORE", help="The feature store of the videos (default: DATA/features).")
    ] = None,
    labels: Annotated[Path | None, typer.Option(metavar="TABLE", help="The labels, where DATA are the videos.")] = None,
    captions: Captions = None,
    frame_encoder: FrameEncoder = _EXTRACTION.frame_encoder,
    text_encoder: TextEncoder = _EXTRACTION.text_encoder,
    speech: SpeechModel = _EXTRACTION.speech,
    phrases: PhraseModel = _EXTRACTION.phrases,
    jobs: Jobs = 1,
    truth: Annotated[
        Path | None, typer.Option(metavar="GRAPH", help="The true graph, to score against (default: DATA/truth.json).")
    ] = None,
    task: TaskName = None,
    variant: Variant = _RUN.variant,
    encoder: Encoder = _RUN.encoder,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Of the training of states.")] = _RUN.epochs,
    method: Method = _RUN.method,
    delta: Delta = None,
    seed: Seed = _RUN.seed,
) -> None:
    """The whole way: features, the state predictor, the labels filled in, the graph before and after, a page.

    DATA are labels, with features or videos beside them as `msg2 simulate` leaves them; or videos, with --labels; or
    labels alone, with --captions. Interrupted and given again, the command goes on.

    Example: `msg2 run videos --labels steps.csv -o result`
    """
    if features is not None and (captions is not None or labels is not None):
        raise typer.BadParameter("--features excludes --captions and --labels")
    options = method_options(method, delta, None, None, None)
    with console.usage():
        known_variant(variant)
    sources = Sources.at(data) if labels is None else Sources(labels, None, data, None, None)
    tasks = read_tasks(sources.labels, task, repeats="keep")
    trues = _truths(truth or sources.truth, tasks)
    performed = {} if sources.performed is None else _by_name(read_tasks(sources.performed, repeats="keep"))
    state_prediction()
    known, videos = features or sources.features, sources.videos or captions
    if known is not None:
        store = open_store(known)
    elif videos is not None:
        extraction = ExtractionOptions(frame_encoder, text_encoder, speech, phrases)
        wanted = [video.id for one in tasks for video in one]
        found = found_recordings(videos, captions, wanted, None)
        for dealt in make_store(found, output / "features", extraction, jobs):
            if dealt.failure is not None:
                LOGGER.warning("%s has no features: %s", dealt.video, dealt.failure)
        store = open_store(output / "features")
    else:
        hint = "give videos with --labels, a store with --features, or captions with --captions"
        raise InputError("there are neither features nor videos beside the labels", where=data, hint=hint)
    chosen = RunOptions(variant=variant, encoder=encoder, epochs=epochs, method=method, seed=seed)
    folders = dict(zip([one.name for one in tasks], task_folders(tasks, output), strict=True))
    done = []
    with between_epochs() as check:
        for one in state_prediction().trained.trainable(tasks, store):
            with console.without_remarks() if len(tasks) > 1 else nullcontext(), console.bar(one.name) as show:

                def report(epoch: int, of: int, news: str, show: object = show) -> None:
                    show(epoch, of, news)  # type: ignore[operator]
                    check()

                done.append(
                    run_task(
                        one, store, folders[one.name], chosen,
                        truth=trues.get(one.name), performed=performed.get(one.name), media=sources.videos,
                        report=report, **options,
                    )
                )  # fmt: skip
    say_runs(done)


def say_runs(done: list[Run]) -> None:
    """What runs have made: labels added, the graphs before and after with their scores, and the files."""
    rows = []
    for one in done:
        right = "" if one.additions is None else console.percent(one.additions.precision)
        for name, graph in (("before", one.before), ("after", one.after)):
            found = one.scores.get(name)
            scores = () if found is None else (found.accuracy, found.spoc, found.compatibility, found.edges.f1)
            added = (one.added, right) if name == "after" else ("", "")
            rows.append(
                (graph.task, name, *added, len(graph.edges()), *(map(console.percent, scores) if scores else [""] * 4))
            )
    columns = ["task", "graph", "labels added", "right", "edges", "accuracy", "spoc", "compatibility", "edge f1"]
    console.say_table(columns, rows)
    for one in done:
        console.say("")
        for kind, path in one.files.items():
            console.say(f"{kind:8} {path}")


def _truths(path: Path | None, tasks: list[Task]) -> dict[str, SubtaskGraph]:
    """Task -> its true graph: a graph file of the only task, or of the one of its name; or a folder of such files."""
    if path is None:
        return {}
    found = [read_graph(file) for file in sorted(path.glob("*.json"))] if path.is_dir() else [read_graph(path)]
    if len(found) == len(tasks) == 1:
        return {tasks[0].name: found[0]}
    by_name = {graph.task: graph for graph in found}
    if not by_name.keys() & {task.name for task in tasks}:
        what = f"is about {shortened(found[0].task)}, which is no task of the data" if found else "holds no graph"
        raise InputError(what, where=path, hint="name one graph file, or a folder with one per task")
    return by_name


def _by_name(tasks: list[Task]) -> dict[str, Task]:
    return {task.name: task for task in tasks}
