"""The narration of labelled videos, from a folder of captions or from a feature store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from msg2.errors import InputError
from msg2.formats.caption_files import caption_files, name_finder, read_fragments, read_sentences
from msg2.media.feature_store import is_feature_store, open_store
from msg2.media.verb_phrases.extractor import VerbPhraseExtractor
from msg2.progress import Progress, no_progress
from msg2.task import Sentence, Task, Video

NarrationReader: TypeAlias = Callable[[str, str], Sequence[Sentence]]
"""(task, video) -> what is said in it."""


def add_narration(
    tasks: Sequence[Task], source: Path, phrase_model: str | None = None, *, progress: Progress = no_progress
) -> list[Task]:
    """Add to the videos of tasks what is said in them.

    Parameters
    ----------
    tasks : sequence of Task
        The labelled videos.
    source : Path
        A folder of captions, or a feature store that keeps texts.
    phrase_model : str, optional
        A spaCy model, by name or folder, that extracts verb phrases from captions; by default sentences stay whole.
    progress : Progress
        Is told after every video.

    Returns
    -------
    list of Task
        Those of which at least one video has narration.

    Raises
    ------
    InputError
        Where no labelled video has narration, or the store keeps no texts.
    """
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
