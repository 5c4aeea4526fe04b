"""What every writer of labels takes and returns: the options, and the contents of the files to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from msg2.errors import require
from msg2.files import FileContent
from msg2.formats.source import Source
from msg2.task import Task, Video


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Labels written for other tools."""

    media: str = "{video}.mp4"
    """Where the tool finds a video: a path or URL, with the id of the video for `{video}`."""
    fps: float | None = None
    """Frames per second, for Label Studio: labels in frames of the picture; None: in seconds along the sound."""
    original: Source | None = None
    """The data from which the labels are: what else its ELAN documents hold is kept in those that are written."""

    guard: bool = False
    """Tables of text: an apostrophe before names that a spreadsheet would run as a formula (= + - @)."""

    def __post_init__(self) -> None:
        require(self.fps is None or 0 < self.fps < float("inf"), f"fps is {self.fps}, it must be a number above 0")

    def media_url(self, video: str) -> str:
        """The path or URL of the video with the id `video`."""
        return self.media.replace("{video}", video)


def guard_names(task: Task) -> Task:
    """The task with an apostrophe before every name that a spreadsheet would take for a formula.

    >>> from msg2.task import Segment, Video
    >>> guard_names(Task("t", ["=1+1", "fry"], [Video("v", [Segment("=1+1"), Segment("fry")])])).steps
    ("'=1+1", 'fry')
    """
    videos = [
        Video(
            _guard(video.id),
            [replace(s, step=_guard(s.step), source=s.source and _guard(s.source)) for s in video.segments],
            video.sentences,
        )
        for video in task
    ]
    return Task(_guard(task.name), map(_guard, task.steps), videos, task.absent)


def _guard(name: str) -> str:
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


FileContents: TypeAlias = Mapping[Path, FileContent]
"""File -> what is to be written to it."""
Writer: TypeAlias = Callable[[Sequence[Task], Path, WriteOptions], FileContents]
"""Makes the files of some tasks; the path is that of the first or only one."""
