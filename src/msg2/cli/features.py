"""`msg2 features`: videos, or only their captions, or vectors of your own -> feature store."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from msg2.cli import console, flags
from msg2.cli.app import PlainGroup
from msg2.cli.flags import argument, option, output_option, switch
from msg2.errors import InputError
from msg2.formats.feature_import import import_features
from msg2.formats.feature_store import open_store
from msg2.formats.video_files import require_video_files
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.media.video_decoding import FrameOptions

_OPTIONS = ExtractionOptions()

_reading = partial(option, rich_help_panel=flags.READING)
_FRAMES = (
    "How frames become vectors: classical descriptors, which need no model; not at all; or a CLIP model, by its folder "
    "or its name on the Hugging Face hub, such as openai/clip-vit-base-patch32."
)
_TEXTS = (
    "How sentences become vectors: hashed words, which need no model, or a sentence encoder or CLIP model, by its "
    "folder or name. (default: CLIP where frames go through it, else words)"
)
_SPEECH = "Listen to videos without captions: a Whisper model for faster-whisper, by its name (base) or folder."
_PHRASES = "Keep verb phrases (crack egg into bowl) instead of sentences: a spaCy model, by its name or folder."
_CAPTIONS = "Folder of captions (.vtt, .srt); by default those beside the videos."
Captions = Annotated[Path | None, _reading("DIR", _CAPTIONS)]
FrameEncoder = Annotated[str, _reading("descriptors|none|PATH", _FRAMES)]
TextEncoderName = Annotated[str | None, _reading("words|PATH", _TEXTS)]
SpeechModel = Annotated[str | None, _reading("MODEL", _SPEECH, "--speech")]
PhraseModel = Annotated[str | None, _reading("MODEL", _PHRASES, "--phrases")]
Audio = Annotated[bool, _reading(None, "Also encode the sound around each frame (log-mel energies).", "--audio")]
Motion = Annotated[bool, _reading(None, "Also encode the motion before each frame (differences).", "--motion")]
Fps = Annotated[float | None, _reading("N", "Rows per second of vectors of your own, where their files do not say.")]
VideoJobs = Annotated[int, option("N", "Videos that are worked on at a time.", min=1)]


class _FeaturesGroup(PlainGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `msg2 features VIDEOS` for `msg2 features extract VIDEOS`."""
        is_named = args[:1] and args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else ["extract", *args])


_HELP = """What is seen and said in videos, as vectors: a feature store.

`msg2 features VIDEOS` is short for `msg2 features extract VIDEOS`; `msg2 features import` takes vectors of your own.

Examples: `msg2 features videos --labels steps.csv -o features`, `msg2 features import clip --fps 2 -o features`
"""
app = typer.Typer(cls=_FeaturesGroup, subcommand_metavar="VIDEOS | COMMAND", add_completion=False, help=_HELP)


@app.command("import")
def import_vectors(
    folder: Annotated[Path, argument("FOLDER", "A file per video: .npy, .npz, .h5 or .pt.")],
    output: Annotated[Path, output_option("STORE", "Folder for the features.")],
    fps: Annotated[float | None, option("N", "Rows per second, where the files do not say.")] = None,
) -> None:
    """Vectors that you have made yourself, at any rate: frames, sentences, audio, motion.

    A file has the name of its video and holds one array, (rows, width), or several by name: `frames`, `sentences`,
    `audio`, `motion`. Instead, each may lie in a folder of that name. `times` or `fps` in a file say when its rows are,
    `audio_times` those of `audio`.

    Example: `msg2 features import clip --fps 2 -o features`
    """
    with console.progress_bar("reading"):
        store = import_features(folder, output, fps)
    counts = [sum(getattr(entry, what) for entry in store.entries.values()) for what in ("frames", "sentences")]
    widths = store.encoders.frame_width, store.encoders.sentence_width
    others = " ".join(store.encoders.streams) or "none"
    columns = ["videos", "frames", "sentences", "frame width", "sentence width", "other streams", "store"]
    console.print_table(columns, [(len(store.entries), *counts, *widths, others, output)])


@app.command("extract")
def extract(
    videos: Annotated[Path, argument("VIDEOS", "A folder of videos, or only of captions; or one file.")],
    output: Annotated[Path, output_option("STORE", "Folder for the features.")],
    labels: Annotated[Path | None, option("DATA", "Only the videos labelled here; missing ones are listed.")] = None,
    captions: Captions = None,
    frame_encoder: FrameEncoder = _OPTIONS.frame_encoder,
    text_encoder: TextEncoderName = _OPTIONS.text_encoder,
    speech: SpeechModel = _OPTIONS.speech_model,
    phrases: PhraseModel = _OPTIONS.phrase_model,
    keep_sentences: Annotated[
        bool, switch("--keep-sentences", "With --phrases: keep sentences that have no phrase, too.")
    ] = _OPTIONS.keep_sentences,
    every: Annotated[float, option("SECONDS", "From one frame to the next.")] = _OPTIONS.frames.every,
    language: Annotated[
        str | None, option("CODE", "Which captions, where there are several; and what is spoken.")
    ] = _OPTIONS.language,
    audio: Audio = False,
    motion: Motion = False,
    jobs: VideoJobs = 1,
    engine: flags.EngineName = "local",
) -> None:
    """What is seen and said in videos, as vectors: one file per video, checked whenever it is used.

    A file belongs to the video whose id is its name without suffix or stands at its end, as in
    `40567_0TiNZJum-bk.mp4` or `French toast [0TiNZJum-bk].en.vtt`. Run again, the command does only what is new or has
    changed. A video that fails is told at the end; the others are kept.

    Example: `msg2 features videos --labels steps.csv -o features --jobs 2`
    """
    if phrases is None:
        flags.refuse("--phrases", keep_sentences=keep_sentences)
    models = frame_encoder, text_encoder, speech, phrases
    with console.usage_errors():
        options = ExtractionOptions(*models, keep_sentences, language, FrameOptions(every), audio, motion)
    wanted = None if labels is None else [video.id for task in flags.read_tasks(labels) for video in task]
    files = require_video_files(videos, captions, wanted, language)
    with console.progress_bar("encoding videos") as progress:
        results = extract_features(files, output, options, jobs=jobs, engine=engine, progress=progress)
    store = open_store(output)
    counts = [sum(getattr(entry, what) for entry in store.entries.values()) for what in ("frames", "sentences")]
    encoders = store.encoders.frames or "none", store.encoders.sentences
    row = len(store.entries), sum(result.unchanged for result in results), *counts, *encoders, output
    columns = ["videos", "done before", "frames", "sentences", "frame encoder", "text encoder", "store"]
    console.print_table(columns, [row])
    failures = [result.failure for result in results if result.failure is not None]
    if failures:
        console.print_line("\nfailed\n" + "\n".join(failures))
        what = f"{len(failures)} of {len(files)} videos have no features"
        raise InputError(what, where=videos, hint="mend or remove these files and run the command again")
