"""What every reader and writer takes and returns: options, tasks, contents; and helpers that make tasks of labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar

from pydantic import Field

from msg2.errors import InputError, errors_at, require
from msg2.files import FileContent
from msg2.formats.columns import parse_columns
from msg2.formats.json_files import only_file
from msg2.formats.source import FileKind, Source
from msg2.options import Probability, options_class
from msg2.task import Absent, Segment, Step, Task, Video
from msg2.text import join_names, short_repr

_PART = re.compile(r"part[-_.]\w*\d", re.IGNORECASE)
"""How the files of one large table are called by those who write it in parts: part-0.parquet, part-00001-….csv."""


@options_class
class ReadOptions:
    """How files become tasks."""

    repeats: Literal["first", "keep"] = "first"
    """Count the first of repeated labels, or keep all."""
    overlap: Literal["unordered", "start"] = "unordered"
    """Overlaps have no order, or that of their start."""
    order: Literal["file", "time"] | None = None
    """CaptainCook4D: order of the file, or of time."""
    tier: str | None = None
    """ELAN: the tier of the steps, if several are in use."""
    fps: Annotated[float, Field(gt=0, le=100_000)] | None = None
    """CVAT, Label Studio: frames per second of the videos."""
    draft_confidence: Probability = 0.0
    """Leave out drafts of labels below this confidence."""
    every_annotator: bool = False
    """Read the labels of all annotators of a video, with the annotator as their source; by default, one is chosen."""
    columns: str | None = None
    """Tables: roles, as in video=File,step=Action."""

    def __post_init__(self) -> None:
        parse_columns(self.columns)


def task_of_file(file: Source, source: Source) -> str:
    """What a table without a column for the task is about: what its file is named after; parts, what the folder is."""
    is_part = file.path != source.path and _PART.match(file.path.name)
    return source.stem if is_part else file.stem


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A format of labels that can be read."""

    description: str  # what it reads, in words
    can_read: Callable[[Source], bool]  # whether a source is in the format, by its content
    read: Callable[[Source, ReadOptions], ReadResult]
    """Reads the tasks in a source that `can_read` accepts, every label kept."""
    kinds: tuple[FileKind, ...] = ()  # the kinds of single files in which the format may come; folders may always


def json_reader(
    description: str, matches: Callable[[object], bool], read: Callable[[Source, ReadOptions], ReadResult]
) -> Reader:
    """The reader of a format that is one JSON document, in a file or as the only one of its kind in a folder."""

    def files(source: Source) -> list[Source]:
        return [file for file in source.files_or_self if matches(file.document)]

    return Reader(
        description, lambda source: bool(files(source)),
        lambda source, options: read(only_file(files(source), source), options), ("JSON",),
    )  # fmt: skip


INSTANTS = "a label with a start and no end is an instant: labels are in the order of their starts"
"""What is assumed of such a label."""


@dataclass(slots=True)
class ReadNotes:
    """What a reader assumed where a file leaves it open, and which columns it did not use."""

    assumptions: dict[str, None] = field(default_factory=dict)
    """In words, each once, in the order in which they were noted."""
    unused: set[str] = field(default_factory=set)

    def add(self, assumptions: Iterable[str], unused: Iterable[str] = ()) -> None:
        """Note what was assumed of a file."""
        self.assumptions |= dict.fromkeys(assumptions)
        self.unused.update(unused)


SegmentsByVideo: TypeAlias = dict[tuple[str, str], list[Segment]]
"""(task, video) -> its segments in the order of the file."""
StepsByTask: TypeAlias = Mapping[str, Iterable[Step]]
"""Task -> steps that it has, whether they occur in its labels or not."""
_NO_STEPS: StepsByTask = {}


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The tasks in some data, by name, every label kept, and how many rows of which file were not in time order."""

    tasks: Sequence[Task]
    unsorted: Mapping[str, int]
    """File -> how many of its rows start before the row above them of the same video; files with none are left out."""
    assumptions: tuple[str, ...] = ()  # what was assumed where the data leaves it open, in words
    unused: tuple[str, ...] = ()  # columns that were not used

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(sorted(self.tasks, key=lambda task: task.name)))
        object.__setattr__(self, "unsorted", {file: rows for file, rows in self.unsorted.items() if rows})

    @staticmethod
    def from_labels(labels: SegmentsByVideo, file: str, steps: StepsByTask = _NO_STEPS) -> ReadResult:
        """The result of a reader that reads one file."""
        return ReadResult(build_tasks(labels, steps), {file: count_unsorted(labels)})

    @staticmethod
    def from_files(labels_by_file: Iterable[tuple[Source, SegmentsByVideo]]) -> ReadResult:
        """The result of a reader that reads many files; a video that is in two of them is refused."""
        labels: SegmentsByVideo = {}
        unsorted: dict[str, int] = {}
        for file, own in labels_by_file:
            merge_labels(labels, own, str(file.path))
            unsorted[file.path.name] = count_unsorted(own)
        return ReadResult(build_tasks(labels), unsorted)


def timed_segment(step: Step, start: float, end: float, where: str, source: str | None = None) -> Segment:
    """A segment with times."""
    with errors_at(where):
        try:
            return Segment(step, float(start), float(end), None, source)
        except OverflowError:
            raise InputError("has a time that is too large") from None


def parse_frame(text: str, where: str | None = None) -> int:
    """The number of a frame of a video."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InputError(f"the frame {short_repr(text)} is not a whole number", where=where)
    return int(text)


def count_unsorted(labels: SegmentsByVideo) -> int:
    """How many timed segments start before the one above them of the same video."""
    return sum(
        above.start is not None
        and below.start is not None
        and below.start < above.start
        and above.source == below.source
        for segments in labels.values()
        for above, below in pairwise(segments)
    )


def build_tasks(labels: SegmentsByVideo, steps: StepsByTask = _NO_STEPS, absent: Absent = "unknown") -> list[Task]:
    """The tasks to which some labels belong."""
    videos: dict[str, list[Video]] = {}
    seen: dict[str, set[Step]] = {}
    for (task, video), segments in labels.items():
        videos.setdefault(task, []).append(Video(video, _break_ties(segments)))
        seen.setdefault(task, set()).update(segment.step for segment in segments)
    return [Task(task, seen[task].union(steps.get(task, ())), videos[task], absent) for task in videos]


def _break_ties(segments: list[Segment]) -> list[Segment]:
    """`segments`, those of the same step and times in an order that the file does not decide: surest first."""
    if all(s.start is None or (s.confidence is None and s.source is None) for s in segments):
        return segments
    return sorted(segments, key=lambda s: (0 if s.confidence is None else -1 - s.confidence, s.source or ""))


def merge_labels(labels: SegmentsByVideo, more: SegmentsByVideo, where: str) -> None:
    """Add the labels of another file to `labels`, in place."""
    for (task, video), segments in more.items():
        if (task, video) in labels:
            what = f"the video {short_repr(video)} of task {short_repr(task)} is in another file as well"
            raise InputError(what, where=where, hint="give every video one file, or put all rows in one table")
        labels[task, video] = segments


class _Named(Protocol):
    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)


def choose_task(tasks: Sequence[NamedT], name: str | None, where: str | Path) -> NamedT:
    """The task of that name (exactly, else case-folded and stripped), or the only one."""
    fitting = [task for task in tasks if name in (None, task.name)]
    if name is not None and not fitting:
        fitting = [task for task in tasks if task.name.strip().casefold() == name.strip().casefold()]
    if len(fitting) == 1:
        return fitting[0]
    hint = "choose one of: " + join_names((task.name for task in (fitting or tasks)), most=20, limit=30)
    what = f"holds {len(fitting)} tasks" if fitting else f"holds no task {short_repr(name or '')}"
    if fitting and name is not None:
        what += f" that could be {short_repr(name)}"
    raise InputError(what, where=where, hint=hint)


def apply_options(task: Task, options: ReadOptions) -> Task:
    """The task with its drafts and its repeated and overlapping segments treated as the options say."""
    if options.draft_confidence > 0:
        task = task.with_sure_drafts(options.draft_confidence)
    if options.repeats == "first":
        task = task.with_first_labels()
    return task.order_by_start() if options.overlap == "start" else task


# -- writing ----------------------------------------------------------------------------------------------------


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
    """The task with an apostrophe before every name that a spreadsheet would take for a formula."""
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


FileContents: TypeAlias = Mapping[Path, FileContent]  # file -> what is to be written to it
Writer: TypeAlias = Callable[[Sequence[Task], Path, WriteOptions], FileContents]
"""Makes the files of some tasks; the path is that of the first or only one."""
