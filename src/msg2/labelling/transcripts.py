"""What is said in every video: captions (WebVTT, SRT) and transcripts (JSON) as they are, else speech is recognised.

A JSON transcript is that of Whisper ({"segments": [{"start", "end", "text"}, …]}) or a list of such pieces, where
"duration" may stand for "end".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from msg2.errors import InputError
from msg2.formats.captions import read_fragments, read_sentences
from msg2.formats.json_files import parse_json
from msg2.formats.source import Source
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Sentence

_log = logging.getLogger(__name__)
_HINT = 'a transcript is {"segments": [{"start": 1.5, "end": 3.0, "text": "…"}, …]}'


def read_transcripts(
    path: str | Path,
    *,
    captions: str | Path | None = None,
    speech_model: str | None = None,
    exact: bool = False,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> dict[str, tuple[Sentence, ...]]:
    """Read, or hear, what is said in all videos of a folder."""
    source = Source.at(path)
    files = [*source.files, source] if not source.is_folder else list(source.files)
    media = [file for file in files if file.path.suffix.lower() in MEDIA_SUFFIXES]
    documents = [file for file in files if file.path.suffix.lower() == ".json" and not media]
    if documents:
        return {file.stem: read_transcript(file) for file in documents}
    try:
        found = find_video_files(path, captions=captions).found
    except InputError as error:
        raise error.at(path, hint="give a folder of videos, captions (.vtt, .srt) or transcripts (.json)") from None
    work = partial(_sentences, speech_model=speech_model, exact=exact)
    heard = {}
    for video, sentences in zip(found, parallel_map(work, found, jobs, engine), strict=True):
        heard[video.video] = sentences
        progress(len(heard), len(found), video.video)
    silent = [name for name, sentences in heard.items() if not sentences]
    if len(silent) == len(heard):
        hint = None if speech_model else "put captions beside the videos, or name a speech model with --speech"
        raise InputError("none of the videos has narration", where=path, hint=hint)
    if silent:
        _log.warning("%d of %d videos have no narration and get no draft", len(silent), len(heard))
    return heard


_recognizer = lru_cache(maxsize=1)(SpeechRecognizer)
"""Loaded once in each process, and only where a video has no captions."""


def _sentences(video: VideoFiles, speech_model: str | None, exact: bool) -> tuple[Sentence, ...]:
    if video.captions is not None:
        file = Source.at(video.captions)
        return read_fragments(file) if exact else read_sentences(file)
    if video.media is not None and speech_model:
        transcript = _recognizer(speech_model).transcribe(video.media)
        return transcript.words if exact else transcript.sentences
    return ()


def read_transcript(file: Source) -> tuple[Sentence, ...]:
    """Read a JSON transcript, as Whisper and others write it."""
    document = parse_json(file.read_text(), file)
    pieces = document.get("segments") if isinstance(document, Mapping) else document
    if not isinstance(pieces, Sequence) or isinstance(pieces, str):
        raise InputError("is not a transcript", where=file.path, hint=_HINT)
    return tuple(_piece(piece, f"{file.path}, piece {number}") for number, piece in enumerate(pieces, start=1))


def _piece(piece: Any, where: str) -> Sentence:
    if not isinstance(piece, Mapping) or not isinstance(piece.get("text"), str):
        raise InputError("has no text", where=where, hint=_HINT)
    start = piece.get("start")
    end = piece.get("end")
    if end is None and isinstance(start, int | float) and isinstance(piece.get("duration"), int | float):
        end = start + piece["duration"]
    if not isinstance(start, int | float) or not isinstance(end, int | float) or not 0 <= start <= end:
        raise InputError("has no times", where=where, hint=_HINT)
    return Sentence(" ".join(piece["text"].split()), float(start), float(end))
