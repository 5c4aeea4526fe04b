"""What went wrong: steps that started before their precondition held, and steps that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from typing import Any

from msg2.assist.progress import unknown_step, unmet_clauses
from msg2.errors import shortened
from msg2.graph import Formula, SubtaskGraph, always, negation
from msg2.task import Segment, Step, Task, Video


@dataclass(frozen=True, slots=True)
class Mistake:
    """One occurrence of a step that started before its precondition held.

    `start` is in seconds (None without times), `position` the place of the segment in its video (1 is the first),
    `unmet` the clauses of the precondition that did not hold, `completed` what had been completed, sorted.
    """

    video: str
    step: Step
    start: float | None
    position: int
    unmet: tuple[Formula, ...]
    completed: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; formulas as in a graph file."""
        return {
            "video": self.video,
            "step": self.step,
            "start": self.start,
            "position": self.position,
            "unmet": [clause.to_json() for clause in self.unmet],
            "completed": list(self.completed),
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A step that a video never shows although it shows steps that are impossible without it, `needed_by`."""

    video: str
    step: Step
    needed_by: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class StepTotal:
    """One step over all videos: segments, those that started too early, and videos that skipped it."""

    step: Step
    occurrences: int
    violations: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Report:
    """What `check` found, in the order of videos and time; `totals` has every step of the graph."""

    videos: int
    mistakes: tuple[Mistake, ...]
    skipped: tuple[Skipped, ...]
    totals: tuple[StepTotal, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return {
            "videos": self.videos,
            "mistakes": [mistake.to_json() for mistake in self.mistakes],
            "skipped": [{**asdict(skipped), "needed_by": list(skipped.needed_by)} for skipped in self.skipped],
            "totals": [asdict(total) for total in self.totals],
        }


def check(graph: SubtaskGraph, seen: Video | Task) -> Report:
    """Every segment of `seen` against the precondition of its step, and the steps that were skipped.

    With times, completed are the steps with a segment that ended no later than this one starts (`Segment.before`);
    without, all earlier ones. Every occurrence of a repeated step is checked. A step that the graph does not have is
    an `InputError`.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> report = check(graph, Video("v1", [Segment("fry", 3, 9), Segment("dip", 0, 2)]))
    >>> [(mistake.step, mistake.unmet) for mistake in report.mistakes]
    [('dip', (<Formula whisk>,))]
    >>> report.skipped
    (Skipped(video='v1', step='whisk', needed_by=('dip', 'fry')),)
    """
    videos = (seen,) if isinstance(seen, Video) else seen.videos
    impossible = {name: _impossible_without(name, graph) for name in graph.steps}
    mistakes = tuple(mistake for video in videos for mistake in _mistakes(graph, video))
    skipped = tuple(found for video in videos for found in _skipped(video, impossible))
    occurrences = Counter(segment.step for video in videos for segment in video.segments)
    violations = Counter(mistake.step for mistake in mistakes)
    absences = Counter(found.step for found in skipped)
    totals = tuple(StepTotal(n, occurrences[n], violations[n], absences[n]) for n in graph.steps)
    return Report(len(videos), mistakes, skipped, totals)


def _mistakes(graph: SubtaskGraph, video: Video) -> Iterator[Mistake]:
    known = set(graph.steps)
    for position, (segment, completed) in enumerate(_completions(video), start=1):
        if segment.step not in known:
            raise unknown_step(segment.step, graph, where=f"video {shortened(video.id)}")
        unmet = unmet_clauses(graph.precondition(segment.step), completed)
        if unmet:
            yield Mistake(video.id, segment.step, segment.start, position, unmet, tuple(sorted(completed)))


def _completions(video: Video) -> Iterator[tuple[Segment, Set[Step]]]:
    """Each segment with the steps completed when it starts."""
    timed = video.timed
    completed: set[Step] = set()
    running: list[Segment] = []
    for segment in video.segments:  # sorted by start: what is before this one is before all later ones
        completed.update(earlier.step for earlier in running if not timed or earlier.before(segment))
        running = [earlier for earlier in running if timed and not earlier.before(segment)]
        yield segment, frozenset(completed)
        running.append(segment)


def _skipped(video: Video, impossible: Mapping[Step, tuple[Step, ...]]) -> Iterator[Skipped]:
    shown = {segment.step for segment in video.segments}
    for name, without in impossible.items():
        if name not in shown and not shown.isdisjoint(without):
            yield Skipped(video.id, name, tuple(filter(shown.__contains__, without)))


def _impossible_without(missing: Step, graph: SubtaskGraph) -> tuple[Step, ...]:
    """The steps that cannot be done in any way once `missing` is left out, in the order of the graph.

    One branch of an OR can stand in for another, so a step is lost only if its precondition cannot hold while all
    that is already lost stays undone.
    """
    lost = {missing: False}
    for name in graph.steps:  # parents come first: steps are sorted by layer
        formula = graph.precondition(name)
        if not formula.support.isdisjoint(lost) and always(negation(formula.given(lost))):
            lost[name] = False
    return tuple(lost)[1:]
