"""What is said in videos: captions (WebVTT, SRT) and transcripts (JSON) as they are, else recognised speech.

A JSON transcript is that of Whisper ({"segments": [{"start", "end", "text"}, …]}) or a list of such pieces, where
"duration" may stand for "end".
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from pathlib import Path

from msg2.errors import InputError, require
from msg2.formats.captions import caption_files, name_finder, read_fragments, read_sentences
from msg2.formats.conversion import Demonstrations, to_tasks_with_repeats
from msg2.formats.feature_store import FeatureStore, is_feature_store, open_store
from msg2.formats.json_files import parse_json
from msg2.formats.source import Source
from msg2.formats.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Sentence, Task, Video

_log = logging.getLogger(__name__)
_TRANSCRIPT_HINT = 'a transcript is {"segments": [{"start": 1.5, "end": 3.0, "text": "…"}, …]}'


def read_narration(
    files: VideoFiles,
    recognizer: SpeechRecognizer | None = None,
    phrases: VerbPhraseExtractor | None = None,
    *,
    exact: bool = False,
) -> tuple[tuple[Sentence, ...], str | None]:
    """Read what is said in a video (`exact`: by word), and where that comes from: "captions", "speech, en", or None."""
    exact = exact or phrases is not None
    source: str | None = "captions"
    if files.captions is not None:
        file = Source.at(files.captions)
        is_json = file.path.suffix.lower() == ".json"
        sentences = _read_json_transcript(file) if is_json else read_fragments(file) if exact else read_sentences(file)
    elif files.media is not None and recognizer is not None:
        transcript = recognizer.transcribe(files.media)
        sentences = transcript.words if exact else transcript.sentences
        source = transcript.language and f"speech, {transcript.language}"
    else:
        return (), None
    return sentences if phrases is None else phrases.extract_timed(sentences), source


def _read_json_transcript(file: Source) -> tuple[Sentence, ...]:
    """Read a transcript as Whisper and others write it."""
    document: object = parse_json(file.read_text(), file)
    pieces = document.get("segments") if isinstance(document, Mapping) else document
    if not isinstance(pieces, list):
        raise InputError("is not a transcript", where=file.path, hint=_TRANSCRIPT_HINT)
    sentences = []
    for number, piece in enumerate(pieces, start=1):
        try:
            start, text = float(piece["start"]), " ".join(piece["text"].split())
            end = float(piece["end"] if piece.get("end") is not None else start + piece["duration"])
        except (AttributeError, KeyError, TypeError, ValueError):
            start, end = 0.0, -1.0
        require(0 <= start <= end, f"piece {number} is not a text with times", where=file.path, hint=_TRANSCRIPT_HINT)
        sentences.append(Sentence(text, start, end))
    return tuple(sentences)


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
    """Read, or recognise, what is said in all videos of a folder."""
    videos = _transcript_files(Source.at(path))
    try:
        videos = videos or find_video_files(path, captions=captions).found
    except InputError as error:
        raise error.at(path, hint="give a folder of videos, captions (.vtt, .srt) or transcripts (.json)") from None
    read = partial(_read_or_recognize, speech_model=speech_model, exact=exact)
    spoken = {}
    for video, sentences in zip(videos, parallel_map(read, videos, jobs, engine), strict=True):
        spoken[video.video] = sentences
        progress(len(spoken), len(videos), video.video)
    silent = [name for name, sentences in spoken.items() if not sentences]
    hint = None if speech_model else "put captions beside the videos, or name a speech model with --speech"
    require(len(silent) != len(spoken), "none of the videos has narration", where=path, hint=hint)
    if silent:
        _log.warning("%d of %d videos have no narration and get no draft", len(silent), len(spoken))
    return spoken


def _transcript_files(source: Source) -> tuple[VideoFiles, ...]:
    """Find the JSON transcripts in a folder without videos, or a single one."""
    if any(file.path.suffix.lower() in MEDIA_SUFFIXES for file in source.files_or_self):
        return ()
    files = (file for file in source.files_or_self if file.path.suffix.lower() == ".json")
    return tuple(VideoFiles(file.stem, None, file.path) for file in files)


_recognizer = lru_cache(maxsize=1)(SpeechRecognizer)
"""Loaded once in each process, and only where a video has no captions."""


def _read_or_recognize(video: VideoFiles, speech_model: str | None, exact: bool) -> tuple[Sentence, ...]:
    recognizer = _recognizer(speech_model) if speech_model and video.captions is None else None
    return read_narration(video, recognizer, exact=exact)[0]


def add_narration(
    data: Demonstrations, source: Path, phrase_model: str | None = None, *, progress: Progress = no_progress
) -> list[Task]:
    """Add to the videos of tasks what is said in them, from a folder of captions or from a feature store."""
    tasks = to_tasks_with_repeats(data)
    stored = is_feature_store(source)
    read = partial(_read_stored, open_store(source)) if stored else _captions_reader(source, phrase_model)
    total, done = sum(map(len, tasks)), count(1)
    narrated = []
    for task in tasks:
        videos = []
        for video in task:
            videos.append(Video(video.id, video.segments, read(task.name, video.id)))
            progress(next(done), total, task.name)
        if any(video.sentences for video in videos):
            narrated.append(task.with_videos(videos))
    require(narrated, "none of the labelled videos has narration here", where=source)
    return narrated


def _read_stored(store: FeatureStore, task: str, video: str) -> Sequence[Sentence]:
    """Read what is said in a video from a feature store."""
    if (features := store.features(task, video)) is None:
        return ()
    if len(features.sentences) and not features.texts:
        raise InputError("keeps no texts", where=store.folder, hint="make the features again, from videos or captions")
    return list(map(Sentence, features.texts, *features.sentence_times.T.tolist()))


def _captions_reader(folder: Path, phrase_model: str | None) -> Callable[[str, str], Sequence[Sentence]]:
    """Return a function that reads what is said in a video from a folder of captions."""
    files = caption_files(folder)
    find_name = name_finder(files)
    phrases = None if phrase_model is None else VerbPhraseExtractor(phrase_model)

    def read(task: str, video: str) -> Sequence[Sentence]:
        name = find_name(video)
        return () if name is None else read_narration(VideoFiles(video, None, files[name].path), None, phrases)[0]

    return read
