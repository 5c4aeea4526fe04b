"""`msg2 features`: captions -> feature store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.media.narration import narration_job
from msg2.media.store import open_store
from msg2.media.text import text_encoder
from msg2.options import TextOptions


def features(
    captions: Annotated[Path, typer.Argument(metavar="CAPTIONS", help="A folder of WebVTT files, or one of them.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="Folder for the features.")],
    encoder: Annotated[
        str,
        typer.Option(
            metavar="words|PATH",
            help="How sentences become vectors: hashed words, which need no model, or a sentence encoder for "
            "transformers, by its folder or its name on the Hugging Face hub.",
        ),
    ] = TextOptions().encoder,
) -> None:
    """What is said in videos, as vectors: one file per video, checked whenever it is used.

    A caption file belongs to the video whose id is the file's name without suffix, or follows an underscore at its end
    (`40567_0TiNZJum-bk.vtt` to `0TiNZJum-bk`). Run again, the command does only what is new or has changed.

    Example: `msg2 features transcripts -o features`
    """
    with console.status(encoder):
        job = narration_job(captions, output, text_encoder(encoder))
    for _ in console.progress(job.run(), "encoding captions", len(job.pending)):
        pass
    entries = open_store(output).manifest.entries
    console.say_table(
        ["videos", "done before", "sentences", "encoder", "width", "store"],
        [(len(entries), len(job.done), sum(e.sentences for e in entries), job.encoder.name, job.encoder.width, output)],
    )
