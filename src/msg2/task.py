"""What was seen: segments of steps in videos of a task; of very many videos, as arrays of labels.

The types validate and sort what they are given, are immutable, and never read files. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from msg2.errors import InputError
from msg2.text import name_fault, short_repr

if TYPE_CHECKING:  # NumPy is imported by the methods that need it, since `import msg2` is to be quick
    import numpy as np
    from numpy.typing import NDArray

PREDICTED = "predicted"
"""The `source` of the labels that were added."""
DRAFT = "draft"
"""The `source` of labels that a person is still to accept, move or reject."""
LLM = "llm"
"""The same, of those that a language model has drafted."""


Step: TypeAlias = str
"""A step is its name, verbatim: never parsed, stripped or case-folded."""
Absent: TypeAlias = Literal["unknown", "skipped"]
"""What it means that a video does not show a step: it may only lack a label, or it was not done."""


def demonstrations_noun(absent: object) -> str:
    """What people call the demonstrations: those of an event log, where what is absent was skipped, are runs."""
    return "runs" if absent == "skipped" else "videos"


@dataclass(frozen=True, slots=True)
class Segment:
    """One labelled occurrence of a step; `start` and `end` are seconds, or both None where only order is known.

    >>> Segment("flip bread", 61.5, 70.0).is_timed
    True
    """

    step: Step
    start: float | None = None
    end: float | None = None
    confidence: float | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if fault := name_fault(self.step):
            raise InputError(f"a step has {fault}")
        if (self.start is None) != (self.end is None):
            raise InputError(f"step {short_repr(self.step)} has a start or an end, but not both")
        if self.start is not None and self.end is not None:
            for name, value in (("start", self.start), ("end", self.end)):
                if not math.isfinite(value):
                    raise InputError(f"step {short_repr(self.step)} has the {name} {value}, not a number of seconds")
            if self.start < 0:
                raise InputError(f"step {short_repr(self.step)} starts at {self.start:g}, before the video does")
            if self.end < self.start:
                what = f"ends at {self.end:g}, before its start at {self.start:g}"
                raise InputError(f"step {short_repr(self.step)} {what}")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise InputError(f"step {short_repr(self.step)} has the confidence {self.confidence}, not in 0 … 1")

    @property
    def is_timed(self) -> bool:
        """Whether the segment has times."""
        return self.start is not None

    def before(self, other: Segment) -> bool:
        """Whether this timed segment ends no later than `other` starts.

        Overlapping segments say nothing about order, and neither do two instants at the same time.

        >>> Segment("a", 0, 5).before(Segment("b", 5, 9)), Segment("a", 0, 5).before(Segment("b", 4, 9))
        (True, False)
        """
        if self.start is None or self.end is None or other.start is None or other.end is None:
            raise ValueError("before() compares timed segments")
        return self.end <= other.start and not other.end <= self.start


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of narration with its time in seconds.

    >>> Sentence("now flip the bread", 60.0, 62.5).text
    'now flip the bread'
    """

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Video:
    """The labels of one video (or one demonstration, case, recording).

    Timed segments are sorted by (start, end, step). Untimed segments keep their order, which is their order in time.

    >>> Video("v1", [Segment("b", 5, 6), Segment("a", 0, 2)]).sequence()
    ('a', 'b')
    """

    id: str
    segments: tuple[Segment, ...]
    sentences: tuple[Sentence, ...] = ()

    def __init__(self, id: str, segments: Iterable[Segment], sentences: Iterable[Sentence] = ()) -> None:
        if fault := name_fault(id):
            raise InputError(f"a video has {fault}" if id else "a video has an empty id")
        ordered = tuple(segments)
        timed = {segment.is_timed for segment in ordered}
        if len(timed) > 1:
            what = f"video {short_repr(id)} has times on some of its segments only"
            raise InputError(what, hint="give start and end on every row, or on none")
        if True in timed:
            ordered = tuple(sorted(ordered, key=lambda s: (s.start, s.end, s.step)))
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "segments", ordered)
        object.__setattr__(self, "sentences", tuple(sorted(sentences, key=lambda s: (s.start, s.end, s.text))))

    @property
    def is_timed(self) -> bool:
        """Whether the segments have times (a video without segments counts as timed)."""
        return all(segment.is_timed for segment in self.segments)

    def sequence(self) -> tuple[Step, ...]:
        """The steps in the order of their first start, each once."""
        return tuple(dict.fromkeys(segment.step for segment in self.segments))

    def with_first_labels(self) -> Video:
        """The same video with the first segment of each step only (App. A, Preprocessing)."""
        first: dict[Step, Segment] = {}
        for segment in self.segments:
            first.setdefault(segment.step, segment)
        return self if len(first) == len(self.segments) else Video(self.id, first.values(), self.sentences)

    def order_by_start(self) -> Video:
        """Cut every segment where a later one starts; those that start together stay unordered.

        >>> video = Video("v", [Segment("a", 0, 9), Segment("b", 0, 9), Segment("c", 4, 9)])
        >>> [segment.end for segment in video.order_by_start().segments]
        [4, 4, 9]
        """
        cut: list[Segment] = []
        following: float | None = None
        for segment, later in zip(reversed(self.segments), [None, *reversed(self.segments)], strict=False):
            if segment.start is None or segment.end is None:
                return self
            if later is not None and later.start is not None and later.start > segment.start:
                following = later.start
            cut.append(segment if following is None else replace(segment, end=min(segment.end, following)))
        return Video(self.id, cut, self.sentences)


@dataclass(frozen=True, repr=False, eq=False)
class Task:
    """Many demonstrations of one task. Steps are sorted by name and videos by id: their order means nothing.

    `absent` says what a missing label means: "skipped", the step was not done, as in an event log; or "unknown". A task
    of very many labels keeps them as arrays (`from_columns`) and makes its videos when they are asked for.

    >>> task = Task("toast", ["flip", "fry"], [Video("v1", [Segment("fry"), Segment("flip")])])
    >>> task.steps, len(task)
    (('flip', 'fry'), 1)
    >>> task
    <Task 'toast': 1 videos, 2 steps, 2 labels>
    """

    name: str
    steps: tuple[Step, ...]
    absent: Absent
    _labels: tuple[Video, ...] | LabelColumns

    def __init__(self, name: str, steps: Iterable[Step], videos: Iterable[Video], absent: Absent = "unknown") -> None:
        ordered_steps, ordered_videos = tuple(sorted(steps)), tuple(sorted(videos, key=lambda v: v.id))
        for kind, names in (("step", ordered_steps), ("video", [video.id for video in ordered_videos])):
            for first, second in pairwise(names):
                if first == second:
                    raise InputError(f"task {short_repr(name)} has the {kind} {short_repr(first)} twice")
        for kind, name_ in (("task", name or "?"), *(("step", step) for step in ordered_steps)):
            if fault := name_fault(name_):
                raise InputError(f"a {kind} has {fault}")
        known = set(ordered_steps)
        for video in ordered_videos:
            for segment in video.segments:
                if segment.step not in known:
                    stranger = f"video {short_repr(video.id)} has the step {short_repr(segment.step)}"
                    raise InputError(f"{stranger}, which is not among the steps of task {short_repr(name)}")
        self.__dict__.update(name=name, steps=ordered_steps, absent=absent, _labels=ordered_videos)

    @staticmethod
    def from_columns(name: str, steps: Sequence[Step], columns: LabelColumns, absent: Absent = "unknown") -> Task:
        """Make a task of labels in arrays.

        Parameters
        ----------
        name : str
            Of the task.
        steps : sequence of Step
            Sorted, each once.
        columns : LabelColumns
            The labels; times are finite, none is negative and no label ends before it starts.
        absent : "unknown" or "skipped"
            What a missing label means.

        Returns
        -------
        Task
        """
        task = object.__new__(Task)
        task.__dict__.update(name=name, steps=tuple(steps), absent=absent, _labels=columns)
        return task

    @cached_property
    def videos(self) -> tuple[Video, ...]:
        """The videos by id; those of arrays are made at the first time."""
        return self._labels if isinstance(self._labels, tuple) else tuple(self)

    @property
    def is_columnar(self) -> bool:
        """Whether the labels are kept as arrays: names and times only, without sources, confidences and narration."""
        return isinstance(self._labels, LabelColumns)

    @property
    def columns(self) -> LabelColumns:
        """The labels as arrays."""
        labels = self._labels
        return labels if isinstance(labels, LabelColumns) else LabelColumns.from_videos(labels, self.steps)

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Video]:
        """The videos; those of arrays are made one at a time, and not kept."""
        if isinstance(self._labels, tuple) or "videos" in self.__dict__:
            return iter(self.videos)
        return self._labels.make_videos(self.steps)

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Task) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return self.name, self.steps, self.videos, self.absent

    def __repr__(self) -> str:
        return f"<Task {self.name!r}: {len(self)} videos, {len(self.steps)} steps, {self.labels} labels>"

    @property
    def labels(self) -> int:
        """How many labels the videos have."""
        labels = self._labels
        return len(labels.step) if isinstance(labels, LabelColumns) else sum(len(video.segments) for video in labels)

    def with_videos(self, videos: Iterable[Video]) -> Task:
        """The same task and steps with other videos."""
        return Task(self.name, self.steps, videos, self.absent)

    def split(self, videos: int) -> Iterator[Task]:
        """The same task in parts of so many videos.

        >>> [len(part) for part in Task("tea", [], [Video(name, []) for name in "abc"]).split(2)]
        [2, 1]
        """
        for low in range(0, len(self), videos):
            yield self.select(range(low, min(low + videos, len(self))))

    def sample(self, most: int) -> Task:
        """At most so many videos, evenly spread over all.

        >>> Task("tea", [], [Video(name, []) for name in "abcd"]).sample(2).videos[1].id
        'c'
        """
        return self if len(self) <= most else self.select([place * len(self) // most for place in range(most)])

    def select(self, places: Sequence[int]) -> Task:
        """The videos at some places, which ascend; what is kept as arrays stays so."""
        if isinstance(self._labels, LabelColumns):
            return Task.from_columns(self.name, self.steps, self._labels.select(places), self.absent)
        return self.with_videos(self.videos[place] for place in places)

    def with_first_labels(self) -> Task:
        """Only the first segment of each step in each video."""
        if isinstance(self._labels, LabelColumns):
            return Task.from_columns(self.name, self.steps, self._labels.first_labels(len(self.steps)), self.absent)
        return self.with_videos(video.with_first_labels() for video in self.videos)

    def with_sure_drafts(self, least: float) -> Task:
        """Leave out drafts of a confidence below `least`, and the videos that have no label then.

        >>> task = Task("tea", ["boil"], [Video("v", [Segment("boil", 1, 2, 0.4, DRAFT)])])
        >>> len(task.with_sure_drafts(0.5)), len(task.with_sure_drafts(0.3))
        (0, 1)
        """

        def is_sure(segment: Segment) -> bool:
            return segment.source not in (DRAFT, LLM) or (segment.confidence or 0.0) >= least

        sure = [Video(video.id, filter(is_sure, video.segments), video.sentences) for video in self.videos]
        return self.with_videos(video for video in sure if video.segments)

    def order_by_start(self) -> Task:
        """Order overlapping segments by their start; see `Video.order_by_start`."""
        cut = self.with_videos(video.order_by_start() for video in self)
        if not isinstance(self._labels, LabelColumns):
            return cut
        columns = replace(cut.columns, began=self._labels.began)
        return Task.from_columns(self.name, self.steps, columns, self.absent)


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumns:
    """The labels of many videos as arrays, sorted by video, start, end and step; without times, they count from 0."""

    videos: tuple[str, ...]  # ids, sorted
    video: NDArray[np.int32]
    step: NDArray[np.int32]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    is_timed: bool = True
    began: NDArray[np.int64] | None = None
    """Where the data has dates: when each video began, in microseconds since 1970; `NO_DATE` without labels."""
    NO_DATE: ClassVar[int] = -(2**63)

    def __len__(self) -> int:
        return len(self.videos)

    @staticmethod
    def from_videos(videos: Sequence[Video], steps: Sequence[Step]) -> LabelColumns:
        """The labels of videos."""
        import numpy as np

        column = {name: index for index, name in enumerate(steps)}
        flat = [
            (row, column[s.step], *((s.start, s.end) if s.is_timed else (position, position + 1)))
            for row, video in enumerate(videos)
            for position, s in enumerate(video.segments)
        ]
        row, which, start, end = np.array(flat, dtype=np.float64).reshape(len(flat), 4).T
        names, is_timed = tuple(video.id for video in videos), all(video.is_timed for video in videos)
        return LabelColumns(names, row.astype(np.int32), which.astype(np.int32), start, end, is_timed)

    def first_labels(self, steps: int) -> LabelColumns:
        """Keep the first label of each step in each video; `steps` is how many there are."""
        import numpy as np

        shown = self.video * np.int64(steps) + self.step
        if np.bincount(shown, minlength=1).max() <= 1:
            return self
        first = np.sort(np.unique(shown, return_index=True)[1])
        video, start, end = self.video[first], self.start[first], self.end[first]
        if not self.is_timed:  # count anew
            place = np.arange(len(video)) - np.searchsorted(video, video)
            start, end = place.astype(np.float64), place + 1.0
        return LabelColumns(self.videos, video, self.step[first], start, end, self.is_timed, self.began)

    def select(self, places: Sequence[int]) -> LabelColumns:
        """The labels of some of the videos, whose places ascend."""
        import numpy as np

        names = tuple(self.videos[place] for place in places)
        low, high = (np.searchsorted(self.video, np.array(places, np.int32), side) for side in ("left", "right"))
        length = high - low
        own = np.arange(length.sum()) + np.repeat(low - np.cumsum(length) + length, length)
        video = np.repeat(np.arange(len(names), dtype=np.int32), length)
        began = None if self.began is None else self.began[list(places)]
        return LabelColumns(names, video, self.step[own], self.start[own], self.end[own], self.is_timed, began)

    def make_videos(self, steps: Sequence[Step]) -> Iterator[Video]:
        """Make the videos, one after the other; `steps` are the names of the steps."""
        import numpy as np

        borders = np.searchsorted(self.video, np.arange(len(self.videos) + 1)).tolist()
        for name, (low, high) in zip(self.videos, pairwise(borders), strict=True):
            names = [steps[index] for index in self.step[low:high].tolist()]
            times = (self.start[low:high].tolist(), self.end[low:high].tolist()) if self.is_timed else ()
            yield Video(name, map(Segment, names, *times))
