"""What every reader and writer takes and returns: options, tasks, contents; and helpers that make tasks of labels."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field

from msg2.errors import InputError, errors_at, require
from msg2.files import FileContent
from msg2.formats.columns import format_columns
from msg2.formats.source import Source
from msg2.options import Probability, options_class
from msg2.sequences import Sequences
from msg2.task import Segment, Step, Task, Video
from msg2.text import join_names, short_repr

_log = logging.getLogger(__name__)
Ties: TypeAlias = Literal["unknown", "file"]
MOST_BAD_ROWS = 0.05
"""Share of the rows of a file that may be set aside; with more, the file is refused."""
_FAULTS_TOLD = 5
"""Rows that were set aside of which it is said what is wrong."""
_PART = re.compile(r"part[-_.]\w*\d", re.IGNORECASE)
"""How the files of one large table are called by those who write it in parts: part-0.parquet, part-00001-….csv."""


@options_class
class ReadOptions:
    """How files become tasks."""

    repeats: Literal["first", "keep"] = "first"
    """Count the first of repeated labels, or keep all."""
    overlap: Literal["unordered", "start"] = "unordered"
    """Overlaps have no order, or that of their start."""
    ties: Ties = "unknown"
    """Equal instants have no order, or that of the file."""
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
    columns: Annotated[str | None, BeforeValidator(format_columns)] = None
    """Tables: roles, as in video=File,step=Action."""
    object: str | None = None
    """OCEL: the type of object whose runs are read."""
    strict: bool = False
    """Refuse a file for one bad row."""
    keep: tuple[str, ...] = ()
    """Columns of tables and attributes of XES whose value in each run is kept."""


def task_of_file(file: Source, source: Source) -> str:
    """What a table without a column for the task is about: what its file is named after; parts, what the folder is."""
    return source.stem if file.path != source.path and _PART.match(file.path.name) else file.stem


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A format of labels that can be read."""

    description: str  # what it reads, in words
    can_read: Callable[[Source], object]
    """Whether a source is in the format, by its content: something true, such as the files that are."""
    read: Callable[[Source, ReadOptions], ReadResult]
    """Reads the tasks in a source that `can_read` accepts, every label kept."""


INSTANTS = "a label with a start and no end is an instant: labels are in the order of their starts"
"""What is assumed of such a label."""


@dataclass(slots=True)
class ReadNotes:
    """What was assumed where the data leaves it open, in words, each once; unused columns; rows that were set aside."""

    options: ReadOptions = field(default_factory=ReadOptions)
    assumptions: dict[str, None] = field(default_factory=dict)
    unused: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    """What is wrong with the rows that were set aside."""
    attributes: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    """Column -> task and video -> its first value there, for the columns to keep."""

    def add(self, assumptions: Iterable[str], unused: Iterable[str] = ()) -> None:
        """Add what was noted of a file."""
        self.assumptions |= dict.fromkeys(assumptions)
        self.unused.update(name for name in unused if name not in self.options.keep)

    def set_aside(self, faults: Sequence[InputError], rows: int) -> None:
        """Note that some rows are not read; where they are too many, or none may be, refuse the first one."""
        if faults and (self.options.strict or len(faults) > MOST_BAD_ROWS * rows):
            raise faults[0]
        self.faults += (str(fault).splitlines()[0] for fault in faults)

    def log(self, path: Path) -> None:
        """Log the notes."""
        if self.unused:
            _log.warning("%s: columns that are not used: %s", path, join_names(sorted(self.unused)))
        if self.assumptions:
            _log.warning("%s: assumed: %s", path, "; ".join(self.assumptions))
        if self.faults:
            told = "; ".join(fault.replace(f"{path}, ", "") for fault in self.faults[:_FAULTS_TOLD])
            more = f"; and {len(self.faults) - _FAULTS_TOLD} more" if len(self.faults) > _FAULTS_TOLD else ""
            _log.warning(
                "%s: bad rows that are set aside (--strict refuses them), %d in all: %s%s",
                path,
                len(self.faults),
                told,
                more,
            )


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The tasks in some data, every label kept, and how many rows of which file were not in time order."""

    tasks: Sequence[Task]
    unsorted: Mapping[str, int]
    """File -> how many of its rows start before the row above them of the same video."""
    notes: ReadNotes = field(default_factory=ReadNotes)


class LabelCollector:
    """Collects the labels of the files of one format, video by video."""

    def __init__(self, task: str, ties: Ties = "unknown") -> None:
        self.task = task  # its name, where the files name none
        self.ties = ties  # whether equal instants are in the order in which they are added
        self.steps: dict[str, set[Step]] = defaultdict(set)  # by task, those that may never occur
        self.notes = ReadNotes()
        self.timed = True  # or only the order of the labels counts, which is that of the file
        self._videos: dict[tuple[str, str], tuple[Source, list[Segment]]] = {}  # (task, video) -> file, segments

    def video(self, file: Source, video: str, task: str | None = None) -> list[Segment]:
        """The segments of a video so far, for more to be added; a video that another file has is refused."""
        key = (self.task if task is None else task, video)
        require(all(key), "the name of the video or of the task is empty")
        own_file, segments = self._videos.setdefault(key, (file, []))
        if own_file != file:
            what = f"the video {short_repr(video)} of task {short_repr(key[0])} is in another file as well"
            raise InputError(what, where=file.path, hint="give every video one file, or put all rows in one table")
        return segments

    def result(self) -> ReadResult:
        """The tasks of all labels, and how many labels are not in time order."""
        unsorted: Counter[str] = Counter()
        for file, segments in self._videos.values():
            late = [b for a, b in pairwise(segments) if (b.start or 0) < (a.start or 0) and a.source == b.source]
            unsorted[file.path.name] += len(late)
        return ReadResult(self.tasks(), unsorted, self.notes)

    def tasks(self) -> list[Task]:
        """The tasks of all labels."""
        videos: dict[str, list[Video]] = defaultdict(list)
        for (task, video), (_, segments) in self._videos.items():
            if not self.timed:
                segments = [Segment(segment.step) for segment in segments]
            elif self.ties == "file":
                segments = separate_ties(segments)
            if any(s.start is not None and (s.confidence is not None or s.source is not None) for s in segments):
                # The file does not decide the order of segments of the same step and times: the surest comes first.
                segments.sort(key=lambda s: (0 if s.confidence is None else -1 - s.confidence, s.source or ""))
            videos[task].append(Video(video, segments))
            self.steps[task].update(segment.step for segment in segments)
        return [Task(task, self.steps[task], videos[task]) for task in videos]


def separate_ties(segments: Iterable[Segment]) -> list[Segment]:
    """Put equal instants in their order, as little apart as numbers can be."""
    ties: Counter[float] = Counter()
    separate = []
    for segment in segments:
        if segment.start is not None and segment.start == segment.end:
            time = segment.start + ties[segment.start] * math.ulp(segment.start)
            ties[segment.start] += 1
            segment = replace(segment, start=time, end=time)
        separate.append(segment)
    return separate


FileFinder: TypeAlias = Callable[[Source], Sequence[Source]]  # finds the files of a format in a folder, or the file
FileReader: TypeAlias = Callable[[Source, ReadOptions, LabelCollector], None]  # adds the labels of one file


def files_where(matches: Callable[[Source], object]) -> FileFinder:
    """A function that finds the files directly in a folder that match, or the file itself."""
    return lambda source: [file for file in source.files_or_self if matches(file)]


def file_reader(description: str, find: FileFinder, read: FileReader, *, single: bool = False) -> Reader:
    """The reader of a format whose files can be read one by one; `single`: there may only be one of them."""

    def read_files(source: Source, options: ReadOptions) -> ReadResult:
        labels, files = LabelCollector(source.stem, options.ties), find(source)
        if single and len(files) > 1:
            names = " and ".join(file.path.name for file in files)
            raise InputError(f"the folder holds {names}", where=source.path, hint="choose one of these files")
        for file in files:
            with errors_at(file.path):
                read(file, options, labels)
        return labels.result()

    return Reader(description, find, read_files)


def timed_segment(step: Step, start: float, end: float, where: str, source: str | None = None) -> Segment:
    """A segment with times."""
    with errors_at(where):
        try:
            return Segment(step, float(start), float(end), None, source)
        except OverflowError:
            raise InputError("has a time that is too large") from None


def parse_frame(text: str) -> int:
    """The number of a frame of a video."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InputError(f"the frame {short_repr(text)} is not a whole number")
    return int(text)


TaskT = TypeVar("TaskT", Task, Sequences)


def choose_task(tasks: Sequence[TaskT], name: str | None, where: str | Path) -> TaskT:
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

    def guard(name: str) -> str:
        return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name

    videos = []
    for video in task:
        segments = [replace(s, step=guard(s.step), source=s.source and guard(s.source)) for s in video.segments]
        videos.append(Video(guard(video.id), segments, video.sentences))
    return Task(guard(task.name), map(guard, task.steps), videos, task.absent)


Writer: TypeAlias = Callable[[Sequence[Task], Path, WriteOptions], Mapping[Path, FileContent]]
"""Makes the files of some tasks, path -> what is to be written to it; it gets the path of the first or only one."""
