"""What is in the data, and what looks wrong with it: the facts behind `msg2 describe`, every label kept."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from msg2.errors import shortened
from msg2.options import ReadOptions, SurveyOptions
from msg2.readers.registry import found_in, reader_of
from msg2.readers.sources import Source
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True)
class TaskSurvey:
    """The facts of one task."""

    task: str
    videos: int
    steps: int
    segments: int
    coverage: float
    """Share of the task's steps that a video has, mean of the videos."""
    videos_with_step: Mapping[Step, float]
    """Share of the videos that have the step."""
    timed_videos: int
    narrated_videos: int
    repeats: int
    """Segments of a step that the video has had before."""
    videos_with_repeats: int
    overlaps: int
    """Segments that start before an earlier one of the video has ended."""
    videos_with_overlaps: int
    zero_length: int
    """Timed segments that end when they start."""
    videos_with_one_segment: int
    videos_without_segments: int
    never: tuple[Step, ...]
    """Steps that never occur."""
    lookalikes: tuple[tuple[Step, ...], ...]
    """Groups of names that differ only by case, spaces or Unicode form."""
    median_seconds: float | None
    """Length of a timed segment, median."""
    median_last_end: float | None
    """When the last label of a timed video ends, in seconds, median; the longest is `longest_last_end`."""
    longest_last_end: float | None
    findings: tuple[str, ...]
    """What looks wrong, in words."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class Survey:
    """The facts of all tasks in some data; `format` is what it was recognised as."""

    format: str
    tasks: tuple[TaskSurvey, ...]
    unsorted: Mapping[str, int]
    """File -> rows with times that start before the row above them of the same video."""
    findings: tuple[str, ...]
    """What looks wrong with the data as a whole; each task has its own besides."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return dataclasses.asdict(self)


def survey(
    path: str | Path,
    options: SurveyOptions | None = None,
    order: Literal["file", "time"] | None = None,
    tier: str | None = None,
    fps: float | None = None,
) -> Survey:
    """What is in a file or folder. CaptainCook4D data is looked at in the order of time, unless `order` says not."""
    source = Source.at(path)
    reader = reader_of(source)
    if "order" in reader.TAKES and order is None:
        order = "time"
    found = found_in(source, reader, ReadOptions(repeats="keep", order=order, tier=tier, fps=fps))
    names = lookalikes(task.name for task in found.tasks)
    findings = [f"task names that look the same: {_listed(group)}" for group in names]
    if found.unsorted:
        rows, files = sum(found.unsorted.values()), len(found.unsorted)
        findings.append(f"{_many(rows, 'row')} in {_many(files, 'file')} not in time order; they were sorted")
    tasks = tuple(task_survey(task, options) for task in found.tasks)
    return Survey(reader.READS, tasks, found.unsorted, tuple(findings))


def task_survey(task: Task, options: SurveyOptions | None = None) -> TaskSurvey:
    """The facts of one task.

    >>> from msg2.task import Segment
    >>> task_survey(Task("toast", ["flip", "Flip "], [Video("v1", [Segment("flip", 3, 3)])])).findings[1]
    "names that look the same: 'Flip ', 'flip'"
    """
    present = Counter(step for video in task for step in video.sequence())
    repeats = [len(video.segments) - len(video.sequence()) for video in task]
    overlaps = [_overlaps(video) for video in task]
    lengths = [s.end - s.start for video in task for s in video.segments if s.start is not None and s.end is not None]
    sizes = Counter(len(video.segments) for video in task)
    ends = [end for video in task if (end := _last_end(video)) is not None]
    facts = TaskSurvey(
        task=task.name,
        videos=len(task),
        steps=len(task.steps),
        segments=sum(len(video.segments) for video in task),
        coverage=sum(present.values()) / max(1, len(task) * len(task.steps)),
        videos_with_step={step: present[step] / max(1, len(task)) for step in task.steps},
        timed_videos=len(ends),
        narrated_videos=sum(bool(video.sentences) for video in task),
        repeats=sum(repeats),
        videos_with_repeats=sum(map(bool, repeats)),
        overlaps=sum(overlaps),
        videos_with_overlaps=sum(map(bool, overlaps)),
        zero_length=lengths.count(0),
        videos_with_one_segment=sizes[1],
        videos_without_segments=sizes[0],
        never=tuple(step for step in task.steps if not present[step]),
        lookalikes=lookalikes(task.steps),
        median_seconds=_median(lengths) if lengths else None,
        median_last_end=_median(ends) if ends else None,
        longest_last_end=max(ends, default=None),
        findings=(),
    )
    return dataclasses.replace(
        facts, findings=(*_findings(facts), *_time_findings(task, ends, options or SurveyOptions()))
    )


def lookalikes(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of names that differ only by case, spaces or Unicode form.

    >>> lookalikes(["flip bread", "Flip  bread", "fry"])
    (('Flip  bread', 'flip bread'),)
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault("".join(unicodedata.normalize("NFKC", name).split()).casefold(), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _findings(facts: TaskSurvey) -> list[str]:
    found = []
    if facts.never:
        found.append(f"steps that never occur: {_listed(facts.never)}")
    found += [f"names that look the same: {_listed(group)}" for group in facts.lookalikes]
    if 0 < facts.timed_videos < facts.videos - facts.videos_without_segments:
        found.append(f"only {facts.timed_videos} of {_many(facts.videos, 'video')} have times")
    for count, words in (
        (facts.videos_without_segments, "no label at all"),
        (facts.videos_with_one_segment, "only one label, which says nothing about order"),
    ):
        if count:
            found.append(f"{_many(count, 'video')} with {words}")
    if facts.zero_length:
        found.append(f"{_many(facts.zero_length, 'label')} of no length")
    return found


def _time_findings(task: Task, ends: list[float], options: SurveyOptions) -> list[str]:
    """Frames, milliseconds or minutes taken for seconds betray themselves by the size of the numbers."""
    if not ends:
        return []
    found = []
    whole = all(float(s.start or 0).is_integer() and float(s.end or 0).is_integer() for v in task for s in v.segments)
    usual = _median(ends)
    if whole and usual > options.frames_hours * 3600:
        found.append(f"the times may be frames, not seconds: all are whole numbers, a video ends at {usual:g}")
    late = sum(end > options.long_video_hours * 3600 for end in ends)
    if late:
        found.append(f"{_many(late, 'video')} with labels after more than {options.long_video_hours:g} hours")
    odd = sum(end > options.odd_ratio * usual for end in ends) if usual else 0
    if odd:
        found.append(f"{_many(odd, 'video')} over {options.odd_ratio:g} times longer than usual: another unit of time?")
    return found


def _median(values: list[float]) -> float:
    return 2 * median(value / 2 for value in values)  # halves, whose sum stays finite for any finite times


def _overlaps(video: Video) -> int:
    count, latest = 0, 0.0
    for segment in video.segments:
        if segment.start is None or segment.end is None:
            return 0
        count += segment.start < latest
        latest = max(latest, segment.end)
    return count


def _last_end(video: Video) -> float | None:
    return max((segment.end for segment in video.segments if segment.end is not None), default=None)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(names: Iterable[str]) -> str:
    shown = [shortened(name, 40) for name in names]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
