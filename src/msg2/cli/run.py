"""`msg2 run`: the whole pipeline, from labels and features to graphs before and after, and a page."""

from pathlib import Path
from typing import Annotated

from msg2 import pipeline
from msg2.cli import console, flags
from msg2.cli import features as video_flags
from msg2.cli.flags import option, output_option
from msg2.cli.states import EncoderName, VariantName
from msg2.media.feature_extraction import ExtractionOptions
from msg2.metrics import GraphScores

_RUN, _EXTRACTION = pipeline.RunOptions(), ExtractionOptions()
SCORES = "accuracy", "spoc", "compatibility", "edge f1"


def run(
    data: flags.Data,
    output: Annotated[Path, output_option("OUT", "Folder; with many tasks, of folders.")],
    features: Annotated[Path | None, option("FOLDER", "A feature store, or vectors (default: DATA/features).")] = None,
    labels: Annotated[Path | None, option("TABLE", "The labels, where DATA are the videos.")] = None,
    steps: Annotated[Path | None, option("FILE", "Names of the steps, where labels are to be drafted.")] = None,
    captions: video_flags.Captions = None,
    frame_encoder: video_flags.FrameEncoder = _EXTRACTION.frame_encoder,
    text_encoder: video_flags.TextEncoderName = _EXTRACTION.text_encoder,
    speech: video_flags.SpeechModel = _EXTRACTION.speech_model,
    phrases: video_flags.PhraseModel = _EXTRACTION.phrase_model,
    audio: video_flags.Audio = False,
    motion: video_flags.Motion = False,
    fps: video_flags.Fps = None,
    jobs: video_flags.VideoJobs = 1,
    truth: Annotated[Path | None, option("GRAPH", "The true graph, for scores (default: DATA/truth.json).")] = None,
    task: flags.TaskName = None,
    variant: VariantName = _RUN.variant,
    encoder: EncoderName = _RUN.encoder,
    epochs: Annotated[int | None, option("N", "Of the training of states (default: the variant's).", min=1)] = None,
    method: flags.MethodName = _RUN.method,
    settings: flags.Settings = None,
    seed: flags.Seed = _RUN.seed,
) -> None:
    """The whole pipeline: features, the state predictor, the labels filled in, the graph before and after, a page.

    DATA are labels, with features or videos beside them as `msg2 simulate` leaves them; or videos, with --labels; or
    labels alone, with --captions; or narrated videos or captions alone: their labels are drafted, as `msg2 label` does.
    Interrupted and given again, the command goes on. --set also takes the options of the state model.

    Examples: `msg2 run videos --labels steps.csv -o result`,
    `msg2 run steps.csv --features features -o result --variant paper --method msg2 --set heads=8`
    """
    flags.usage_error_if(features and (captions or labels), "--features excludes --captions and --labels")
    flags.usage_error_if(steps and (features or labels), "--steps excludes --features and --labels")
    state_settings, others = flags.split_state_settings(settings)
    inference = flags.parse_settings(method, others)
    options = pipeline.RunOptions(variant, encoder, epochs, state_settings, method, seed)
    with console.usage_errors():
        options.state_changes()
        extraction = ExtractionOptions(frame_encoder, text_encoder, speech, phrases, audio=audio, motion=motion)
    with console.training_bar("running", "video or epoch") as progress:
        runs = pipeline.run(
            data, labels, output, steps=steps, features=features, fps=fps, captions=captions, truth=truth,
            task=task, options=options, extraction=extraction, jobs=jobs, progress=progress, **inference,
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
