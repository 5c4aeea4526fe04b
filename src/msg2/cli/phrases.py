"""`msg2 phrases`: what is said around each step."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.features import PhraseModel
from msg2.cli.reading import Data, TaskName, read_tasks
from msg2.drawing.spoken import spoken_page
from msg2.errors import InputError
from msg2.files import write_whole
from msg2.media.around import Said, said_around
from msg2.media.manifest import NAME
from msg2.media.phrases import Phrases
from msg2.media.store import open_store
from msg2.options import PhraseOptions, SpokenOptions
from msg2.readers.captions import caption_files, name_finder, pieces_in, sentences_in
from msg2.task import Sentence, Step, Task, Video

_OPTIONS = SpokenOptions()
_SHOWN = 3
"""Phrases per step on the terminal."""

Found = Sequence[tuple[Task, Mapping[Step, Sequence[Said]]]]


def phrases(
    data: Data,
    spoken: Annotated[
        Path, typer.Argument(metavar="SPOKEN", help="A folder of captions, or a store made by `msg2 features`.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A page (.html) or a table (.csv).")
    ] = None,
    model: PhraseModel = None,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Before and after a step that count as around it.")
    ] = _OPTIONS.seconds,
    task: TaskName = None,
) -> None:
    """What is said around each step, and more often there than elsewhere: verb phrases, or sentences as they are.

    Example: `msg2 phrases crosstask_release transcripts --phrases en_core_web_sm -o spoken.html`
    """
    if output is not None and output.suffix.lower() not in _WRITERS:
        raise typer.BadParameter(f"-o {output} must end in {' or '.join(_WRITERS)}")
    stored = (spoken / NAME).exists()
    if stored and model is not None:
        raise typer.BadParameter("--phrases goes with captions; a store keeps what it was made with")
    tasks = read_tasks(data, task, repeats="keep")
    told = _narrated(tasks, _stored(spoken) if stored else _captioned(spoken, model))
    if not told:
        raise InputError("none of the labelled videos has narration here", where=spoken)
    found = [(one, said_around(one, seconds)) for one in told]
    for one, around in found:
        rows = [(step, *(_short(said) for said in [*around[step], None, None, None][:_SHOWN])) for step in one.steps]
        console.say_table(["step", "said most tellingly", "then", "then"], rows, title=one.name)
    if output is not None:
        write_whole(output, _WRITERS[output.suffix.lower()](found, seconds))
        console.say(f"\nwritten  {output}")


def _short(said: Said | None) -> str:
    return "" if said is None else f"{said.phrase} ({said.near}/{said.times})"


Narration = Callable[[str, str], Sequence[Sentence]]
"""(task, video) -> what is said in it."""


def _stored(folder: Path) -> Narration:
    store = open_store(folder)

    def told(task: str, video: str) -> Sequence[Sentence]:
        found = store.features(task, video)
        if found is None:
            return ()
        if len(found.sentences) and not found.texts:
            raise InputError("keeps no texts", where=folder, hint="make the features again, from videos or captions")
        times = found.sentence_times.tolist()
        return [Sentence(text, start, end) for text, (start, end) in zip(found.texts, times, strict=True)]

    return told


def _captioned(folder: Path, model: str | None) -> Narration:
    files = caption_files(folder)
    name_of = name_finder(files)
    extractor = None if model is None else Phrases(model, PhraseOptions())

    def told(task: str, video: str) -> Sequence[Sentence]:
        name = name_of(video)
        if name is None:
            return ()
        return sentences_in(files[name]) if extractor is None else extractor.of(pieces_in(files[name]))

    return told


def _narrated(tasks: Iterable[Task], told: Narration) -> list[Task]:
    """The tasks that have narration, with what is said in their videos."""
    pairs = [(task, video) for task in tasks for video in task]
    videos: dict[str, list[Video]] = {task.name: [] for task, _ in pairs}
    for task, video in console.progress(pairs, "reading narration", len(pairs)):
        videos[task.name].append(Video(video.id, video.segments, told(task.name, video.id)))
    heard = {name for name, found in videos.items() if any(video.sentences for video in found)}
    return [task.with_videos(videos[task.name]) for task in tasks if task.name in heard]


def _table(found: Found, _: float) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["task", "step", "phrase", "videos", "around", "in_all", "times_as_often", "g2"])
    for task, around in found:
        for step, said in around.items():
            for one in said:
                row = (one.phrase, one.videos, one.near, one.times, f"{one.lift:.4g}", f"{one.surprise:.4g}")
                writer.writerow([task.name, step, *row])
    return text.getvalue()


_WRITERS: Mapping[str, Callable[[Found, float], str]] = {
    ".html": lambda found, seconds: spoken_page(found, seconds, _OPTIONS.listed),
    ".csv": _table,
}
