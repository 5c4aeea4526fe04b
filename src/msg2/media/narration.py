"""What is said in videos: captions (WebVTT, SRT) and transcripts (JSON) as they are, else recognised speech.

`read_narration` is the one way from the files of a video to its sentences. `read_transcripts` does so for all videos of
a folder, `add_narration` for those of labelled tasks, also from a feature store. `phrases_around_steps` finds what is
said around each step more often than elsewhere, ranked by the log-likelihood ratio G².

A JSON transcript is that of Whisper ({"segments": [{"start", "end", "text"}, …]}) or a list of such pieces, where
"duration" may stand for "end".
"""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msg2.errors import InputError
from msg2.formats.captions import caption_files, name_finder, read_fragments, read_sentences
from msg2.formats.conversion import Demonstrations, to_tasks_with_repeats
from msg2.formats.json_files import parse_json
from msg2.formats.source import Source
from msg2.media.feature_store import is_feature_store, open_store
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.media.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Sentence, Step, Task, Video

_log = logging.getLogger(__name__)
_TRANSCRIPT_HINT = 'a transcript is {"segments": [{"start": 1.5, "end": 3.0, "text": "…"}, …]}'


class Narration(NamedTuple):
    """What is said in a video, and where that comes from: "captions", "speech, en", or None."""

    sentences: tuple[Sentence, ...] = ()
    source: str | None = None


def read_narration(
    files: VideoFiles,
    recognizer: SpeechRecognizer | None = None,
    phrases: VerbPhraseExtractor | None = None,
    *,
    exact: bool = False,
) -> Narration:
    """Read what is said in a video; captions are preferred to speech.

    With `exact`, times are as exact as possible: those of single words, where they are known. With `phrases`, verb
    phrases replace the sentences.
    """
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
        return Narration()
    return Narration(sentences if phrases is None else phrases.extract_timed(sentences), source)


def _read_json_transcript(file: Source) -> tuple[Sentence, ...]:
    """A transcript as Whisper and others write it."""
    document: object = parse_json(file.read_text(), file)
    pieces = document.get("segments") if isinstance(document, Mapping) else document
    if not isinstance(pieces, Sequence) or isinstance(pieces, str):
        raise InputError("is not a transcript", where=file.path, hint=_TRANSCRIPT_HINT)
    return tuple(_parse_piece(piece, f"{file.path}, piece {number}") for number, piece in enumerate(pieces, start=1))


def _parse_piece(piece: object, where: str) -> Sentence:
    if not isinstance(piece, Mapping) or not isinstance(piece.get("text"), str):
        raise InputError("has no text", where=where, hint=_TRANSCRIPT_HINT)
    start, end, duration = (piece.get(name) for name in ("start", "end", "duration"))
    if end is None and isinstance(start, int | float) and isinstance(duration, int | float):
        end = start + duration
    if not isinstance(start, int | float) or not isinstance(end, int | float) or not 0 <= start <= end:
        raise InputError("has no times", where=where, hint=_TRANSCRIPT_HINT)
    return Sentence(" ".join(piece["text"].split()), float(start), float(end))


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
    if len(silent) == len(spoken):
        hint = None if speech_model else "put captions beside the videos, or name a speech model with --speech"
        raise InputError("none of the videos has narration", where=path, hint=hint)
    if silent:
        _log.warning("%d of %d videos have no narration and get no draft", len(silent), len(spoken))
    return spoken


def _transcript_files(source: Source) -> tuple[VideoFiles, ...]:
    """The JSON transcripts in a folder without videos, or a single one."""
    files = source.files if source.is_folder else (source,)
    if any(file.path.suffix.lower() in MEDIA_SUFFIXES for file in files):
        return ()
    return tuple(VideoFiles(file.stem, None, file.path) for file in files if file.path.suffix.lower() == ".json")


_recognizer = lru_cache(maxsize=1)(SpeechRecognizer)
"""Loaded once in each process, and only where a video has no captions."""


def _read_or_recognize(video: VideoFiles, speech_model: str | None, exact: bool) -> tuple[Sentence, ...]:
    recognizer = _recognizer(speech_model) if speech_model and video.captions is None else None
    return read_narration(video, recognizer, exact=exact).sentences


NarrationReader: TypeAlias = Callable[[str, str], Sequence[Sentence]]  # (task, video) -> what is said in it


def add_narration(
    data: Demonstrations, source: Path, phrase_model: str | None = None, *, progress: Progress = no_progress
) -> list[Task]:
    """Add to the videos of tasks what is said in them, from a folder of captions or from a feature store."""
    tasks = to_tasks_with_repeats(data)
    read = _stored_narration(source) if is_feature_store(source) else _captions_reader(source, phrase_model)
    total, done = sum(map(len, tasks)), 0
    narrated = []
    for task in tasks:
        videos = []
        for video in task:
            videos.append(Video(video.id, video.segments, read(task.name, video.id)))
            done += 1
            progress(done, total, task.name)
        if any(video.sentences for video in videos):
            narrated.append(task.with_videos(videos))
    if not narrated:
        raise InputError("none of the labelled videos has narration here", where=source)
    return narrated


def _stored_narration(folder: Path) -> NarrationReader:
    store = open_store(folder)

    def read(task: str, video: str) -> Sequence[Sentence]:
        features = store.features(task, video)
        if features is None:
            return ()
        if len(features.sentences) and not features.texts:
            raise InputError("keeps no texts", where=folder, hint="make the features again, from videos or captions")
        times = features.sentence_times.tolist()
        return [Sentence(text, start, end) for text, (start, end) in zip(features.texts, times, strict=True)]

    return read


def _captions_reader(folder: Path, phrase_model: str | None) -> NarrationReader:
    files = caption_files(folder)
    find_name = name_finder(files)
    phrases = None if phrase_model is None else VerbPhraseExtractor(phrase_model)

    def read(task: str, video: str) -> Sequence[Sentence]:
        name = find_name(video)
        if name is None:
            return ()
        return read_narration(VideoFiles(video, None, files[name].path), None, phrases).sentences

    return read


AROUND_SECONDS = 10.0  # seconds before a step begins and after it ends that count as around it, unless told otherwise


@dataclass(frozen=True, slots=True)
class PhraseStatistics:
    """How often a phrase is said around a step, and elsewhere."""

    phrase: str
    near: int
    """Times it is said around the step."""
    times: int
    """Times it is said at all."""
    videos: int
    """In which it is said around the step."""
    lift: float
    """How much more often it is said around the step than phrases in general."""
    g2: float
    """Twice the log-likelihood ratio of "its frequency here differs" to "the step makes no difference"."""


def phrases_around_steps(task: Task, seconds: float = AROUND_SECONDS) -> dict[Step, list[PhraseStatistics]]:
    """Find the phrases that are said more often around a step than elsewhere.

    They are ranked by G² = 2 Σ O ln(O / E) over the four cells, around or not and this phrase or another.
    """
    times: Counter[str] = Counter()
    near: Mapping[Step, Counter[str]] = defaultdict(Counter)
    videos: Mapping[Step, Counter[str]] = defaultdict(Counter)
    for video in task:
        times.update(sentence.text.casefold() for sentence in video.sentences)
        for step in video.sequence():
            spans = [
                (segment.start - seconds, segment.end + seconds)
                for segment in video.segments
                if segment.step == step and segment.start is not None and segment.end is not None
            ]
            around = [
                sentence.text.casefold()
                for sentence in video.sentences
                if any(start <= sentence.end and sentence.start <= end for start, end in spans)
            ]
            near[step].update(around)
            videos[step].update(set(around))
    return {step: _rank_phrases(near[step], times, videos[step]) for step in task.steps}


def _rank_phrases(near: Counter[str], times: Counter[str], videos: Counter[str]) -> list[PhraseStatistics]:
    around, everywhere = near.total(), times.total()
    ranked = []
    for phrase, count in near.items():
        lift = (count / times[phrase]) / (around / everywhere)
        if lift > 1:
            g2 = _g2(count, times[phrase] - count, around - count, everywhere - around - times[phrase] + count)
            ranked.append(PhraseStatistics(phrase, count, times[phrase], videos[phrase], lift, g2))
    return sorted(ranked, key=lambda phrase: (-round(phrase.g2, 9), phrase.phrase))


def _g2(a: int, b: int, c: int, d: int) -> float:
    """G² of the table ((a, b), (c, d)): observed counts against those of rows and columns that are independent."""
    total, sums = a + b + c + d, ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    return 2 * sum(count * math.log(count * total / (row * column)) for count, row, column in sums if count)
