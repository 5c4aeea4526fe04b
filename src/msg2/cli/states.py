"""`msg2 states`: train the state predictor, fill in the steps that nobody labelled, evaluate and draw it."""

from pathlib import Path
from typing import Annotated

import typer

from msg2 import states
from msg2.cli import console, flags
from msg2.cli.app import PlainGroup
from msg2.cli.flags import argument, option, output_option, switch
from msg2.drawing.plots import FIGURE_SUFFIXES
from msg2.errors import errors_at, require
from msg2.files import write_whole
from msg2.formats import read_graph
from msg2.formats.feature_store import open_store
from msg2.formats.reading import WriteOptions, choose_task
from msg2.formats.registry import WRITERS, match_suffix, write
from msg2.formats.source import Source
from msg2.pipeline import plot_completion
from msg2.progress import LOGGER
from msg2.states.configuration import VARIANT, VARIANTS, FillOptions, StateModelOptions, TrainingOptions, get_variant
from msg2.task import PREDICTED, Task
from msg2.text import short_repr

_HELP = "The state predictor: labels and features in, completed labels out."
app = typer.Typer(cls=PlainGroup, subcommand_metavar="COMMAND", no_args_is_help=True, help=_HELP)

FeaturesPath = Annotated[Path, option("STORE", "The feature store of the videos.", "--features")]
ModelPath = Annotated[Path, argument("MODEL", "Folder of a model, or of a folder per task.")]
VariantName = Annotated[str, option("NAME", f"One of {', '.join(VARIANTS)}.", autocompletion=lambda: list(VARIANTS))]
_ENCODER = (
    "The transformer: a checkpoint by name or folder, or a size without weights such as t5-small "
    f"(default: that of the variant; the paper's is {StateModelOptions().encoder})."
)
EncoderName = Annotated[str | None, option("NAME|PATH|SIZE", _ENCODER)]
_TRAINING = "epochs", "batch", "learning_rate", "patience", "seed", "device"
_FILLING = "confidence", "uncalibrated", "threshold", "read_at"
_takes_fill_options = flags.takes_fields(FillOptions, "options", _FILLING, panel="Filling in")


@app.command()
@flags.reads_data()
@flags.takes_fields(TrainingOptions, "given", _TRAINING, make=dict, panel="Training")
def train(
    data: flags.Data,
    features: FeaturesPath,
    output: Annotated[Path, output_option("OUT", "Folder for the model or models.")],
    given: flags.GivenOptions,
    reading: flags.GivenOptions,
    task: flags.TaskName = None,
    variant: VariantName = VARIANT,
    encoder: EncoderName = None,
    settings: flags.Settings = None,
    tensorboard: Annotated[bool, switch("--tensorboard", "Also write curves to OUT/tensorboard.")] = False,
) -> None:
    """Train a model per task; where DATA holds many tasks, a folder per task.

    A training that was interrupted goes on when the same command is given again, and ends as if it never had been.
    OUT/log.csv has a line per validation. Nothing is downloaded, unless the variant or --encoder names a checkpoint
    on the Hugging Face hub. Confidences are calibrated on hidden labels, but for the paper's variants: for one with a
    transformer, or with the labels of other steps, three more models are trained for that; `--set calibrate=no` (or
    yes) decides.

    Example: `msg2 states train steps.csv --features features -o model`
    """
    state_settings, others = flags.split_state_settings(settings)
    changes = {**({} if encoder is None else {"encoder": encoder}), **given, **state_settings}
    with console.usage_errors():
        require(not others, f"there is no option {others and others[0]!r}", hint="`--set help` lists the options")
        get_variant(variant).options(**changes)
    tasks, store = flags.read_tasks(data, task, **reading), open_store(features)
    with console.training_bar("training") as progress:
        trainings = states.train_tasks(
            tasks, store, output, variant=variant, tensorboard=tensorboard, progress=progress, **changes
        )  # fmt: skip
    rows = []
    for trained in trainings:
        card, calibration = trained.card, trained.calibration
        best = int(card.best["epoch"]), console.format_percent(card.best.get("accuracy"))
        note = calibration and calibration.note
        error = console.format_percent(None if calibration is None or note else calibration.error)
        rows.append((trained.task, trained.videos, card.epoch, *best, error, trained.folder))
        if note:
            LOGGER.warning("%s: %s", trained.task, note)
    columns = ["task", "videos", "epochs", "best epoch", "hidden steps right", "calibration error", "model"]
    console.print_table(columns, rows)


@app.command()
@flags.reads_data()
@_takes_fill_options
def fill(
    model: ModelPath,
    data: flags.Data,
    features: FeaturesPath,
    output: Annotated[Path, output_option("FILLED.csv", f"The completed labels: {' '.join(WRITERS)}.")],
    options: FillOptions,
    reading: flags.GivenOptions,
) -> None:
    """Add the steps that were done but not labelled: annotated rows stay, added ones have `source` predicted.

    Only steps that a video's labels lack entirely are added. `confidence` is the probability that the step was done,
    calibrated on hidden labels; with too few of them to tell, nothing is added.

    Example: `msg2 states fill model steps.csv --features features -o filled.csv`
    """
    flags.refuse_clashes([output], data)
    match_suffix(output)
    tasks = flags.read_tasks(data, repeats="keep", **reading)
    with errors_at(data), console.progress_bar("filling in"):
        filled = states.fill_tasks(model, tasks, open_store(features), options)
    completed = [filled.get(task.name, task) for task in tasks]
    written = write(completed, output, WriteOptions(original=Source.of_data(data)))
    for name, task in filled.items():
        console.print_table(["step", "videos with label", "added", "mean confidence"], _count_labels(task), name)
    added = sum(segment.source == PREDICTED for task in completed for video in task for segment in video.segments)
    labels = sum(task.labels for task in tasks)
    videos = sum(map(len, tasks))
    console.print_line(f"\n{added} labels added to {labels} in {videos} videos: {console.format_paths(written)}")


@app.command()
@flags.reads_data()
@_takes_fill_options
def evaluate(
    model: ModelPath,
    data: flags.Data,
    features: FeaturesPath,
    options: FillOptions,
    reading: flags.GivenOptions,
    truth: Annotated[Path | None, option("TABLE", "What was really performed, as a table of steps.")] = None,
    json: flags.Json = False,
) -> None:
    """How well a model tells which steps are completed, in videos that it was not trained on.

    Up to a quarter of their labels is hidden, several times, and asked for. With the truth, all steps are asked for,
    and the labels that `fill` adds are counted: precision is the share that was really performed, recall the share of
    the unlabelled steps that was found.

    Example: `msg2 states evaluate model coffee/steps.csv --features coffee/features --truth coffee/truth/performed.csv`
    """
    tasks = flags.read_tasks(data, **reading)
    true = None if truth is None else flags.read_tasks(truth, repeats="keep")
    scores = {}
    with errors_at(data), console.progress_bar("evaluating"):
        for name, trained in states.load_trained_models(model, tasks, open_store(features)):
            performed = true if true is None else true[0] if len(true) == 1 else choose_task(true, name, str(truth))
            with errors_at(truth or data):
                scores[name] = trained.evaluate(performed, options)
    if json:
        console.print_json({"tasks": scores})
        return
    columns = ["accuracy", "auc", *([] if truth is None else ["precision", "recall"])]
    for name, parts in scores.items():
        rows = [(part, *(console.format_percent(shares[c]) for c in columns)) for part, shares in parts.items()]
        console.print_table(["percent", *columns], rows, name)


@app.command()
@flags.reads_data()
@_takes_fill_options
def plot(
    model: ModelPath,
    data: flags.Data,
    features: FeaturesPath,
    video: Annotated[str, option("ID", "The video to draw.")],
    output: Annotated[Path, output_option("FILE", f"{' or '.join(FIGURE_SUFFIXES)}.")],
    options: FillOptions,
    reading: flags.GivenOptions,
    task: flags.TaskName = None,
    graph: Annotated[Path | None, option("GRAPH", "Rows in the order of this graph.")] = None,
) -> None:
    """When each step of a video was completed: labelled steps in green, inferred ones in red.

    Example: `msg2 states plot model steps.csv --features features --video v00001 -o v00001.svg`
    """
    is_figure = output.suffix.lower() in FIGURE_SUFFIXES
    flags.usage_error_if(not is_figure, f"{output.name} must end in {' or '.join(FIGURE_SUFFIXES)}")
    tasks = flags.read_tasks(data, task, repeats="keep", **reading)
    tasks = [task for task in tasks if any(labelled.id == video for labelled in task)]
    what = f"{'no' if not tasks else 'more than one'} task has a video {short_repr(video)}"
    require(len(tasks) == 1, what, where=data, hint="choose a --video of the data" if not tasks else "choose a --task")
    with errors_at(data), console.progress_bar("drawing"):
        steps, suffix = None if graph is None else read_graph(graph).steps, output.suffix.lower()
        content = plot_completion(model, tasks[0], video, open_store(features), options, steps=steps, suffix=suffix)
    write_whole(output, content)
    console.print_line(str(output))


def _count_labels(task: Task) -> list[tuple[object, ...]]:
    """A row per step: its name, videos with a label of it, labels added, and their mean confidence."""
    rows: list[tuple[object, ...]] = []
    for step in task.steps:
        segments = [segment for video in task for segment in video.with_first_labels().segments if segment.step == step]
        confidences = [segment.confidence or 0.0 for segment in segments if segment.source == PREDICTED]
        mean = f"{100 * sum(confidences) / len(confidences):.0f} %" if confidences else ""
        rows.append((step, len(segments) - len(confidences), len(confidences), mean))
    return rows
