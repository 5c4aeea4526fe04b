"""The narration of labelled videos, from a folder of captions or from a feature store.

Phrases that are said around each step more often than elsewhere, ranked by their log-likelihood ratio G².
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from msg2.errors import InputError
from msg2.formats.captions import caption_files, name_finder, read_fragments, read_sentences
from msg2.media.feature_store import is_feature_store, open_store
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.progress import Progress, no_progress
from msg2.task import Sentence, Step, Task, Video

NarrationReader: TypeAlias = Callable[[str, str], Sequence[Sentence]]
"""(task, video) -> what is said in it."""


def add_narration(
    tasks: Sequence[Task], source: Path, phrase_model: str | None = None, *, progress: Progress = no_progress
) -> list[Task]:
    """Add to the videos of tasks what is said in them."""
    read = _stored_narration(source) if is_feature_store(source) else _captions(source, phrase_model)
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


def _captions(folder: Path, phrase_model: str | None) -> NarrationReader:
    files = caption_files(folder)
    find_name = name_finder(files)
    extractor = None if phrase_model is None else VerbPhraseExtractor(phrase_model)

    def read(task: str, video: str) -> Sequence[Sentence]:
        name = find_name(video)
        if name is None:
            return ()
        file = files[name]
        return read_sentences(file) if extractor is None else extractor.extract_timed(read_fragments(file))

    return read


AROUND_SECONDS = 10.0
"""Seconds before a step begins and after it ends that count as around it, unless told otherwise."""


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
    """How many times as often as phrases in general it is said around the step."""
    g2: float
    """Twice the log-likelihood ratio of "it is said more, or less, often here" to "the step is all one to it"."""


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
            around = [sentence.text.casefold() for sentence in _sentences_near(video, step, seconds)]
            near[step].update(around)
            videos[step].update(set(around))
    return {step: _rank_phrases(near[step], times, videos[step]) for step in task.steps}


def _sentences_near(video: Video, step: Step, seconds: float) -> Iterator[Sentence]:
    spans = [
        (segment.start - seconds, segment.end + seconds)
        for segment in video.segments
        if segment.step == step and segment.start is not None and segment.end is not None
    ]
    for sentence in video.sentences:
        if any(start <= sentence.end and sentence.start <= end for start, end in spans):
            yield sentence


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
