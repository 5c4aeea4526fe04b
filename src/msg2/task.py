"""What was seen: segments of steps in videos of a task.

The types validate and sort what they are given, are immutable, and never read files. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from msg2.errors import InputError
from msg2.text import short_repr

PREDICTED = "predicted"
"""The `source` of the labels that were added."""
DRAFT = "draft"
"""The `source` of labels that a person is still to accept, move or reject."""


Step: TypeAlias = str
"""A step is its name, verbatim: never parsed, stripped or case-folded."""
Absent: TypeAlias = Literal["unknown", "skipped"]
"""What it means that a video does not show a step: it may only lack a label, or it was not done."""


def demonstrations_noun(absent: object) -> str:
    """What people call the demonstrations: those of an event log, where what is absent was skipped, are runs.

    >>> demonstrations_noun("skipped"), demonstrations_noun("unknown")
    ('runs', 'videos')
    """
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
        if not self.step:
            raise InputError("a step has an empty name")
        if (self.start is None) != (self.end is None):
            raise InputError(f"step {short_repr(self.step)} has a start or an end, but not both")
        if self.start is not None and self.end is not None:
            for name, value in (("start", self.start), ("end", self.end)):
                if not math.isfinite(value):
                    raise InputError(f"step {short_repr(self.step)} has the {name} {value}, not a number of seconds")
            if self.start < 0:
                raise InputError(f"step {short_repr(self.step)} starts at {self.start:g}, before the video does")
            if self.end < self.start:
                raise InputError(
                    f"step {short_repr(self.step)} ends at {self.end:g}, before its start at {self.start:g}"
                )
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
        if not id:
            raise InputError("a video has an empty id")
        ordered = tuple(segments)
        timed = {segment.is_timed for segment in ordered}
        if len(timed) > 1:
            raise InputError(
                f"video {short_repr(id)} has times on some of its segments only",
                hint="give start and end on every row, or on none",
            )
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


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """Many demonstrations of one task. Steps are sorted by name and videos by id: their order means nothing.

    `absent` says what a missing label means: "skipped", the step was not done, as in an event log; or "unknown".

    >>> task = Task("toast", ["flip", "fry"], [Video("v1", [Segment("fry"), Segment("flip")])])
    >>> task.steps, len(task)
    (('flip', 'fry'), 1)
    >>> task
    <Task 'toast': 1 videos, 2 steps, 2 labels>
    """

    name: str
    steps: tuple[Step, ...]
    videos: tuple[Video, ...]
    absent: Absent = "unknown"

    def __init__(self, name: str, steps: Iterable[Step], videos: Iterable[Video], absent: Absent = "unknown") -> None:
        ordered_steps, ordered_videos = tuple(sorted(steps)), tuple(sorted(videos, key=lambda v: v.id))
        for kind, names in (("step", ordered_steps), ("video", [video.id for video in ordered_videos])):
            for first, second in pairwise(names):
                if first == second:
                    raise InputError(f"task {short_repr(name)} has the {kind} {short_repr(first)} twice")
        known = set(ordered_steps)
        for video in ordered_videos:
            for segment in video.segments:
                if segment.step not in known:
                    raise InputError(
                        f"video {short_repr(video.id)} has the step {short_repr(segment.step)}, "
                        f"which is not among the steps of task {short_repr(name)}"
                    )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "steps", ordered_steps)
        object.__setattr__(self, "videos", ordered_videos)
        object.__setattr__(self, "absent", absent)

    def __len__(self) -> int:
        return len(self.videos)

    def __iter__(self) -> Iterator[Video]:
        return iter(self.videos)

    def __repr__(self) -> str:
        labels = sum(len(video.segments) for video in self.videos)
        return f"<Task {self.name!r}: {len(self.videos)} videos, {len(self.steps)} steps, {labels} labels>"

    def with_videos(self, videos: Iterable[Video]) -> Task:
        """The same task and steps with other videos."""
        return Task(self.name, self.steps, videos, self.absent)

    def with_first_labels(self) -> Task:
        """Only the first segment of each step in each video."""
        return self.with_videos(video.with_first_labels() for video in self.videos)

    def order_by_start(self) -> Task:
        """Order overlapping segments by their start; see `Video.order_by_start`."""
        return self.with_videos(video.order_by_start() for video in self.videos)
