"""`msg2 run`: the whole pipeline, from labels and features to graphs before and after, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2 import pipeline
from msg2.cli import console
from msg2.cli.features import Captions, FrameEncoder, PhraseModel, SpeechModel, TextEncoderName, VideoJobs
from msg2.cli.shared_options import Data, MethodName, Seed, Settings, TaskName, parse_settings
from msg2.cli.states import EncoderName, VariantName
from msg2.media.feature_extraction import ExtractionOptions
from msg2.pipeline import RunOptions, TaskRun
from msg2.states.configuration import get_variant

_RUN, _EXTRACTION = RunOptions(), ExtractionOptions()


def run(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Folder; with many tasks, of folders.")],
    features: Annotated[
        Path | None, typer.Option(metavar="STORE", help="The feature store of the videos (default: DATA/features).")
    ] = None,
    labels: Annotated[Path | None, typer.Option(metavar="TABLE", help="The labels, where DATA are the videos.")] = None,
    steps: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the steps: DATA is only narrated, labels are drafted.")
    ] = None,
    captions: Captions = None,
    frame_encoder: FrameEncoder = _EXTRACTION.frame_encoder,
    text_encoder: TextEncoderName = _EXTRACTION.text_encoder,
    speech: SpeechModel = _EXTRACTION.speech_model,
    phrases: PhraseModel = _EXTRACTION.phrase_model,
    jobs: VideoJobs = 1,
    truth: Annotated[
        Path | None, typer.Option(metavar="GRAPH", help="The true graph, to score against (default: DATA/truth.json).")
    ] = None,
    task: TaskName = None,
    variant: VariantName = _RUN.variant,
    encoder: EncoderName = _RUN.encoder,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Of the training of states.")] = _RUN.epochs,
    method: MethodName = _RUN.method,
    settings: Settings = None,
    seed: Seed = _RUN.seed,
) -> None:
    """The whole pipeline: features, the state predictor, the labels filled in, the graph before and after, a page.

    DATA are labels, with features or videos beside them as `msg2 simulate` leaves them; or videos, with --labels; or
    labels alone, with --captions; or narrated videos or captions alone: their labels are drafted, as `msg2 label` does.
    Interrupted and given again, the command goes on.

    Example: `msg2 run videos --labels steps.csv -o result`
    """
    if features is not None and (captions is not None or labels is not None):
        raise typer.BadParameter("--features excludes --captions and --labels")
    if steps is not None and (features is not None or labels is not None):
        raise typer.BadParameter("--steps excludes --features and --labels")
    inference = parse_settings(method, settings)
    with console.usage_errors():
        get_variant(variant)
    options = RunOptions(variant=variant, encoder=encoder, epochs=epochs, method=method, seed=seed)
    extraction = ExtractionOptions(frame_encoder, text_encoder, speech, phrases)
    with console.stop_between_epochs("video or epoch") as interruptible, console.progress_bar("running") as show:
        runs = pipeline.run(
            data, labels, output, steps=steps, features=features, captions=captions, truth=truth, task=task,
            options=options, extraction=extraction, jobs=jobs, progress=interruptible(show), **inference,
        )  # fmt: skip
    print_runs(runs)


def print_runs(done: list[TaskRun]) -> None:
    """What runs have made: labels added, the graphs before and after with their scores, and the files."""
    rows = []
    for one in done:
        right = "" if one.additions is None else console.format_percent(one.additions.precision)
        for name, graph in (("before", one.before), ("after", one.after)):
            found = one.scores.get(name)
            scores = () if found is None else (found.accuracy, found.spoc, found.compatibility, found.edges.f1)
            added = (one.added, right) if name == "after" else ("", "")
            shown = map(console.format_percent, scores) if scores else [""] * 4
            rows.append((graph.task, name, *added, len(graph.edges()), *shown))
    columns = ["task", "graph", "labels added", "right", "edges", "accuracy", "spoc", "compatibility", "edge f1"]
    console.print_table(columns, rows)
    for one in done:
        console.print_note(f"{one.filled.name}: {one.note}")
    for one in done:
        console.print_line("")
        for kind, path in one.files.items():
            console.print_line(f"{kind:8} {path}")
