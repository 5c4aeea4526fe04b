"""`msg2 states`: train the state predictor, fill in the steps that nobody labelled, evaluate and draw it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from msg2.cli import console
from msg2.cli.reading import Data, Json, TaskName, given, read_tasks
from msg2.cli.training import between_epochs, curves, following, task_folders
from msg2.drawing.timeline import FORMATS, INFERRED, in_order, timeline
from msg2.errors import InputError, shortened
from msg2.files import write_whole
from msg2.media.store import open_store
from msg2.options import VARIANT, FillOptions, StateModelOptions, TrainingOptions
from msg2.pipeline import state_prediction
from msg2.readers import read_graph
from msg2.readers.registry import the_task
from msg2.states.variants import VARIANTS
from msg2.states.variants import variant as known_variant
from msg2.task import Task
from msg2.worlds.export import SUFFIXES, suffix_of, write

if TYPE_CHECKING:
    from msg2.states.trained import Trained

_TRAINING = TrainingOptions()
_log = logging.getLogger(__name__)

app = typer.Typer(no_args_is_help=True, help="The state predictor: labels and features in, completed labels out.")

Features = Annotated[Path, typer.Option("--features", metavar="STORE", help="The feature store of the videos.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a model, or of a folder per task.")]
Variant = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(VARIANTS)}.")]
Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|PATH|SIZE",
        help="The transformer: a checkpoint by name or folder, or a size without weights such as t5-small "
        f"(default: that of the variant; the paper's is {StateModelOptions().encoder}).",
    ),
]
Device = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="auto: a GPU where there is one.")]
Threshold = Annotated[
    float | None,
    typer.Option(metavar="X", help="A step is completed where its score is at least this. Paper: 0; witness: 0.5."),
]
ReadAt = Annotated[
    Literal["next", "same", "seen"] | None,
    typer.Option(help="A step's state is read at the next border (paper), at its own, or when it was seen (witness)."),
]


@app.command()
def train(
    data: Data,
    features: Features,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Folder for the model or models.")],
    task: TaskName = None,
    variant: Variant = VARIANT,
    encoder: Encoder = None,
    epochs: Annotated[int, typer.Option(metavar="N", help="Passes over the training videos.")] = _TRAINING.epochs,
    batch: Annotated[int, typer.Option(metavar="N", help="Videos per step.")] = _TRAINING.batch,
    learning_rate: Annotated[float, typer.Option(metavar="X", help="Of Adam.")] = _TRAINING.learning_rate,
    patience: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after so many validations without a better one.")
    ] = _TRAINING.patience,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Everything random follows from it.")] = _TRAINING.seed,
    device: Device = _TRAINING.device,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write the curves for TensorBoard: OUT/tensorboard.")
    ] = False,
) -> None:
    """Train a model per task; where DATA holds many tasks, a folder per task.

    A training that was interrupted goes on when the same command is given again, and ends as if it never had been.
    OUT/log.jsonl has a line per validation.

    Example: `msg2 states train steps.csv --features features -o model --variant witness --epochs 60`
    """
    with console.usage():
        known_variant(variant)
        options = TrainingOptions(
            epochs=epochs, batch=batch, learning_rate=learning_rate, patience=patience, seed=seed, device=device
        )
    tasks = read_tasks(data, task)
    store, states = open_store(features), state_prediction()
    chosen = states.trained.options_for(variant, store, **given({"encoder": encoder}))
    folders = dict(zip([one.name for one in tasks], task_folders(tasks, output), strict=True))
    rows = []
    with between_epochs() as check:
        for one in states.trained.trainable(tasks, store):
            folder, seen = folders[one.name], states.trained.footage_of(one, store, chosen[0])
            with console.bar(one.name) as show, curves(folder if tensorboard else None) as draw:
                report = following(show, draw, check)
                card = states.training.train(
                    seen, folder, model=chosen[0], sampling=chosen[1], training=options, report=report
                )
            best = int(card.best["epoch"]), console.percent(card.best.get("accuracy"))
            rows.append((one.name, len(seen), card.epoch, *best, folder))
    console.say_table(["task", "videos", "epochs", "best epoch", "hidden steps right", "model"], rows)


@app.command()
def fill(
    model: Model,
    data: Data,
    features: Features,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILLED.csv", help=f"The completed labels: {' '.join(SUFFIXES)}.")
    ],
    threshold: Threshold = None,
    read_at: ReadAt = None,
) -> None:
    """Add the steps that were done but not labelled: annotated rows stay, added ones have `source` predicted.

    Only steps that a video's labels lack entirely are added; `confidence` says how sure the model is.

    Example: `msg2 states fill model steps.csv --features features -o filled.csv`
    """
    with console.usage():
        options = FillOptions(threshold, read_at)
    if output.exists() and output.samefile(data):
        raise InputError("is the data, the result would replace it", where=output, hint="choose another output")
    suffix_of(output)
    tasks = read_tasks(data, repeats="keep")
    filled = {name: ready.filled(options) for name, ready in _ready(model, tasks, features, data)}
    done = [filled.get(task.name, task) for task in tasks]
    written = write(done, output)
    for name, task in filled.items():
        console.say_table(["step", "videos with label", "added", "mean confidence"], _counted(task), name)
    added = sum(segment.source == INFERRED for task in done for video in task for segment in video.segments)
    labels = sum(len(video.segments) for task in tasks for video in task)
    console.say(f"\n{added} labels added to {labels} in {sum(map(len, tasks))} videos: {console.files(written)}")


@app.command()
def evaluate(
    model: Model,
    data: Data,
    features: Features,
    truth: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="What was really performed, as a table of steps.")
    ] = None,
    threshold: Threshold = None,
    read_at: ReadAt = None,
    json: Json = False,
) -> None:
    """How well a model tells which steps are completed, in videos that it was not trained on.

    Up to a quarter of their labels is hidden, several times, and asked for. With the truth, all steps are asked for,
    and the labels that `fill` adds are counted: precision is the share that was really performed, recall the share of
    the unlabelled steps that was found.

    Example: `msg2 states evaluate model coffee/steps.csv --features coffee/features --truth coffee/truth/performed.csv`
    """
    with console.usage():
        options = FillOptions(threshold, read_at)
    tasks = read_tasks(data)
    true = None if truth is None else read_tasks(truth, repeats="keep")
    found: dict[str, Any] = {}
    for name, ready in _ready(model, tasks, features, data):
        performed = true if true is None else true[0] if len(true) == 1 else the_task(true, name, str(truth))
        try:
            found[name] = ready.measured(performed, options)
        except InputError as error:
            raise InputError(error.what, where=truth or data, hint=error.hint) from None
    if json:
        console.say_json({"tasks": found})
        return
    columns = ["accuracy", "auc", *([] if truth is None else ["precision", "recall"])]
    for name, parts in found.items():
        rows = [(part, *(console.percent(scores[column]) for column in columns)) for part, scores in parts.items()]
        console.say_table(["percent", *columns], rows, name)


@app.command()
def plot(
    model: Model,
    data: Data,
    features: Features,
    video: Annotated[str, typer.Option(metavar="ID", help="The video to draw.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=f"{' or '.join(FORMATS)}.")],
    task: TaskName = None,
    graph: Annotated[Path | None, typer.Option(metavar="GRAPH", help="Rows in the order of this graph.")] = None,
    threshold: Threshold = None,
    read_at: ReadAt = None,
) -> None:
    """When each step of a video was completed: labelled steps in green, inferred ones in red.

    Example: `msg2 states plot model steps.csv --features features --video v00001 -o v00001.svg`
    """
    with console.usage():
        options = FillOptions(threshold, read_at)
        if output.suffix.lower() not in FORMATS:
            raise InputError(f"{output.name} must end in {' or '.join(FORMATS)}")
    tasks = [one for one in read_tasks(data, task, repeats="keep") if any(v.id == video for v in one)]
    if len(tasks) != 1:
        what = f"{'no' if not tasks else 'more than one'} task has a video {shortened(video)}"
        raise InputError(what, where=data, hint="choose a --video of the data" if not tasks else "choose a --task")
    seen = next(one for one in tasks[0] if one.id == video)
    ((_, trained),) = _ready(model, [tasks[0].with_videos([seen])], features, data)
    (done,) = trained.filled(options)
    clip = trained.footage.clips[0]
    last = max([0.0, *clip.frame_times[-1:].tolist(), *(s.end for s in done.segments if s.end is not None)])
    steps = in_order(done, trained.task.steps) if graph is None else read_graph(graph).steps
    write_whole(output, timeline(done, steps, last, suffix=output.suffix.lower()))
    console.say(str(output))


def _ready(model: Path, tasks: Sequence[Task], features: Path, data: Path) -> Iterator[tuple[str, Trained]]:
    """(task, its model ready to read it) for the tasks that have one; a single model is for the only task there is."""
    states = state_prediction()
    folders, store = states.trained.model_folders(model), open_store(features)
    if len(folders) == len(tasks) == 1:
        folders = {tasks[0].name: next(iter(folders.values()))}
    if not folders.keys() & {task.name for task in tasks}:
        listed = ", ".join(shortened(name, 30) for name in sorted(folders)[:10])
        raise InputError("there is no model of a task in it", where=data, hint=f"there are models of {listed}")
    for task in tasks:
        if task.name in folders:
            yield task.name, states.trained.trained(folders[task.name], task, store)
        else:
            _log.warning("%s: left out, there is no model of it", task.name)


def _counted(task: Task) -> list[tuple[object, ...]]:
    """A row per step: its name, videos with a label of it, labels added, and their mean confidence."""
    rows: list[tuple[object, ...]] = []
    for step in task.steps:
        found = [segment for video in task for segment in video.with_first_labels().segments if segment.step == step]
        sure = [segment.confidence or 0.0 for segment in found if segment.source == INFERRED]
        mean = f"{100 * sum(sure) / len(sure):.0f} %" if sure else ""
        rows.append((step, len(found) - len(sure), len(sure), mean))
    return rows
