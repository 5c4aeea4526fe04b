"""`msg2 features`: videos, or only their captions -> feature store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.shared_options import READING, EngineName, read_tasks
from msg2.errors import InputError
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.media.feature_store import open_store
from msg2.media.video_decoding import FrameOptions
from msg2.media.video_files import require_video_files

_OPTIONS = ExtractionOptions()

Captions = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", rich_help_panel=READING,
        help="Folder of captions (.vtt, .srt); by default those beside the videos.",
    ),
]  # fmt: skip
FrameEncoder = Annotated[
    str,
    typer.Option(
        metavar="descriptors|none|PATH", rich_help_panel=READING,
        help="How frames become vectors: classical descriptors, which need no model; not at all; or a CLIP model, by "
        "its folder or its name on the Hugging Face hub, such as openai/clip-vit-base-patch32.",
    ),
]  # fmt: skip
TextEncoderName = Annotated[
    str | None,
    typer.Option(
        metavar="words|PATH", rich_help_panel=READING,
        help="How sentences become vectors: hashed words, which need no model, or a sentence encoder or CLIP model, by "
        "its folder or name. (default: CLIP where frames go through it, else words)",
    ),
]  # fmt: skip
SpeechModel = Annotated[
    str | None,
    typer.Option(
        "--speech", metavar="MODEL", rich_help_panel=READING,
        help="Listen to videos without captions: a Whisper model for faster-whisper, by its name (base) or folder.",
    ),
]  # fmt: skip
PhraseModel = Annotated[
    str | None,
    typer.Option(
        "--phrases", metavar="MODEL", rich_help_panel=READING,
        help="Keep verb phrases (crack egg into bowl) instead of sentences: a spaCy model, by its name or folder.",
    ),
]  # fmt: skip
VideoJobs = Annotated[int, typer.Option(metavar="N", min=1, help="Videos that are worked on at a time.")]


def features(
    videos: Annotated[
        Path, typer.Argument(metavar="VIDEOS", help="A folder of videos, or only of captions; or one file.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="Folder for the features.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="DATA", help="Only videos that are labelled here; missing ones are listed.")
    ] = None,
    captions: Captions = None,
    frame_encoder: FrameEncoder = _OPTIONS.frame_encoder,
    text_encoder: TextEncoderName = _OPTIONS.text_encoder,
    speech: SpeechModel = _OPTIONS.speech_model,
    phrases: PhraseModel = _OPTIONS.phrase_model,
    keep_sentences: Annotated[
        bool, typer.Option("--keep-sentences", help="With --phrases: keep sentences that have no phrase, too.")
    ] = _OPTIONS.keep_sentences,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="From one frame to the next.")
    ] = _OPTIONS.frames.every,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Which captions, where there are several; and what is spoken.")
    ] = _OPTIONS.language,
    jobs: VideoJobs = 1,
    engine: EngineName = "local",
) -> None:
    """What is seen and said in videos, as vectors: one file per video, checked whenever it is used.

    A file belongs to the video whose id is its name without suffix or stands at its end, as in
    `40567_0TiNZJum-bk.mp4` or `French toast [0TiNZJum-bk].en.vtt`. Run again, the command does only what is new or has
    changed. A video that fails is told at the end; the others are kept.

    Example: `msg2 features videos --labels steps.csv -o features --jobs 2`
    """
    with console.usage_errors():
        if keep_sentences and phrases is None:
            raise InputError("--keep-sentences goes with --phrases")
        options = ExtractionOptions(
            frame_encoder, text_encoder, speech, phrases, keep_sentences, language, FrameOptions(every)
        )
    wanted = None if labels is None else [video.id for task in read_tasks(labels) for video in task]
    found = require_video_files(videos, captions, wanted, language)
    with console.progress_bar("encoding videos") as progress:
        results = extract_features(found, output, options, jobs=jobs, engine=engine, progress=progress)
    store = open_store(output)
    counts = [sum(getattr(entry, what) for entry in store.entries.values()) for what in ("frames", "sentences")]
    console.print_table(
        ["videos", "done before", "frames", "sentences", "frame encoder", "text encoder", "store"],
        [
            (
                len(store.entries), sum(one.unchanged for one in results), *counts,
                store.encoders.frames or "none", store.encoders.sentences, output,
            )
        ],
    )  # fmt: skip
    failures = [one.failure for one in results if one.failure is not None]
    if failures:
        console.print_line("\nfailed\n" + "\n".join(failures))
        what = f"{len(failures)} of {len(found)} videos have no features"
        raise InputError(what, where=videos, hint="mend or remove these files and run the command again")
