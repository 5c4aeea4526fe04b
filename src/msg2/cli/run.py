"""`msg2 run`: the whole pipeline, from labels and features to graphs before and after, and a page."""

from pathlib import Path
from typing import Annotated

from msg2 import pipeline
from msg2.cli import console, flags
from msg2.cli.features import Captions, FrameEncoder, PhraseModel, SpeechModel, TextEncoderName, VideoJobs
from msg2.cli.flags import option, output_option
from msg2.cli.states import EncoderName, VariantName
from msg2.media.feature_extraction import ExtractionOptions
from msg2.metrics import GraphScores
from msg2.states.configuration import get_variant

_RUN, _EXTRACTION = pipeline.RunOptions(), ExtractionOptions()
SCORES = "accuracy", "spoc", "compatibility", "edge f1"


def run(
    data: flags.Data,
    output: Annotated[Path, output_option("OUT", "Folder; with many tasks, of folders.")],
    features: Annotated[Path | None, option("STORE", "The features of the videos (default: DATA/features).")] = None,
    labels: Annotated[Path | None, option("TABLE", "The labels, where DATA are the videos.")] = None,
    steps: Annotated[Path | None, option("FILE", "Names of the steps, where labels are to be drafted.")] = None,
    captions: Captions = None,
    frame_encoder: FrameEncoder = _EXTRACTION.frame_encoder,
    text_encoder: TextEncoderName = _EXTRACTION.text_encoder,
    speech: SpeechModel = _EXTRACTION.speech_model,
    phrases: PhraseModel = _EXTRACTION.phrase_model,
    jobs: VideoJobs = 1,
    truth: Annotated[Path | None, option("GRAPH", "The true graph, for scores (default: DATA/truth.json).")] = None,
    task: flags.TaskName = None,
    variant: VariantName = _RUN.variant,
    encoder: EncoderName = _RUN.encoder,
    epochs: Annotated[int, option("N", "Of the training of states.", min=1)] = _RUN.epochs,
    method: flags.MethodName = _RUN.method,
    settings: flags.Settings = None,
    seed: flags.Seed = _RUN.seed,
) -> None:
    """The whole pipeline: features, the state predictor, the labels filled in, the graph before and after, a page.

    DATA are labels, with features or videos beside them as `msg2 simulate` leaves them; or videos, with --labels; or
    labels alone, with --captions; or narrated videos or captions alone: their labels are drafted, as `msg2 label` does.
    Interrupted and given again, the command goes on.

    Example: `msg2 run videos --labels steps.csv -o result`
    """
    flags.usage_error_if(features and (captions or labels), "--features excludes --captions and --labels")
    flags.usage_error_if(steps and (features or labels), "--steps excludes --features and --labels")
    inference = flags.parse_settings(method, settings)
    with console.usage_errors():
        get_variant(variant)
    options = pipeline.RunOptions(variant=variant, encoder=encoder, epochs=epochs, method=method, seed=seed)
    extraction = ExtractionOptions(frame_encoder, text_encoder, speech, phrases)
    with console.training_bar("running", "video or epoch") as progress:
        runs = pipeline.run(
            data, labels, output, steps=steps, features=features, captions=captions, truth=truth, task=task,
            options=options, extraction=extraction, jobs=jobs, progress=progress, **inference,
        )  # fmt: skip
    print_runs(runs)


def print_runs(done: list[pipeline.TaskRun]) -> None:
    """What runs have made: labels added, the graphs before and after with their scores, and the files."""
    rows = []
    for made in done:
        right = "" if made.additions is None else console.format_percent(made.additions.precision)
        before, after = (format_scores(made.scores.get(name)) for name in ("before", "after"))
        rows.append((made.before.task, "before", "", "", len(made.before.edges()), *before))
        rows.append((made.after.task, "after", made.added, right, len(made.after.edges()), *after))
    console.print_table(["task", "graph", "labels added", "right", "edges", *SCORES], rows)
    for made in done:
        console.print_note(f"{made.filled.name}: {made.note}")
    for made in done:
        console.print_line("", *(f"{kind:8} {path}" for kind, path in made.files.items()))


def format_scores(scores: GraphScores | None) -> list[str]:
    """What stands in the columns `SCORES`."""
    if scores is None:
        return [""] * len(SCORES)
    return [*map(console.format_percent, (scores.accuracy, scores.spoc, scores.compatibility, scores.edges.f1))]
