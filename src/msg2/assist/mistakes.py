"""What went wrong: steps that started before their precondition held, and steps that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from msg2.assist.run_state import unknown_step_error
from msg2.graph import Formula, SubtaskGraph, is_tautology, negation
from msg2.graph.formula import unmet_clauses
from msg2.json_values import fields_to_json
from msg2.task import Segment, Step, Task, Video
from msg2.text import short_repr


@dataclass(frozen=True, slots=True)
class Mistake:
    """One occurrence of a step that started before its precondition held."""

    video: str
    step: Step
    start: float | None
    """Seconds; None without times."""
    position: int
    """Of the segment in its video; 1 is the first."""
    unmet: tuple[Formula, ...]
    """The clauses of the precondition that did not hold."""
    completed: tuple[Step, ...]
    """What had been completed, sorted."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; formulas as in a graph file."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class SkippedStep:
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
class CheckReport:
    """What `check` found, in the order of videos and time; `totals` has every step of the graph."""

    videos: int
    mistakes: tuple[Mistake, ...]
    skipped: tuple[SkippedStep, ...]
    totals: tuple[StepTotal, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return fields_to_json(self)

    def marks(self) -> dict[Step, str]:
        """A short note for every step that went wrong, as `msg2.drawing.show` puts them on the graph."""
        marks = {}
        for total in self.totals:
            notes = [f"{total.violations} of {total.occurrences} too early"] if total.violations else []
            times = "once" if total.skipped == 1 else f"{total.skipped} times"
            notes += [f"skipped {times}"] if total.skipped else []
            if notes:
                marks[total.step] = ", ".join(notes)
        return marks


def check(graph: SubtaskGraph, data: Video | Task) -> CheckReport:
    """Check every segment against the precondition of its step, and find the steps that were skipped.

    With times, completed are the steps with a segment that ended no later than this one starts (`Segment.before`);
    without, all earlier ones. Every occurrence of a repeated step is checked.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    data : Video or Task
        One video, or all videos of a task.

    Returns
    -------
    CheckReport

    Raises
    ------
    InputError
        For a step that the graph does not have.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> report = check(graph, Video("v1", [Segment("fry", 3, 9), Segment("dip", 0, 2)]))
    >>> [(mistake.step, mistake.unmet) for mistake in report.mistakes]
    [('dip', (<Formula whisk>,))]
    >>> report.skipped
    (SkippedStep(video='v1', step='whisk', needed_by=('dip', 'fry')),)
    """
    videos = (data,) if isinstance(data, Video) else data.videos
    impossible = {name: _impossible_without(name, graph) for name in graph.steps}
    mistakes = tuple(mistake for video in videos for mistake in _find_mistakes(graph, video))
    skipped = tuple(step for video in videos for step in _find_skipped(video, impossible))
    occurrences = Counter(segment.step for video in videos for segment in video.segments)
    violations = Counter(mistake.step for mistake in mistakes)
    absences = Counter(step.step for step in skipped)
    totals = tuple(StepTotal(n, occurrences[n], violations[n], absences[n]) for n in graph.steps)
    return CheckReport(len(videos), mistakes, skipped, totals)


def _find_mistakes(graph: SubtaskGraph, video: Video) -> Iterator[Mistake]:
    steps = set(graph.steps)
    for position, (segment, completed) in enumerate(_completions(video), start=1):
        if segment.step not in steps:
            raise unknown_step_error(segment.step, graph, where=f"video {short_repr(video.id)}")
        unmet = unmet_clauses(graph.precondition(segment.step), completed)
        if unmet:
            yield Mistake(video.id, segment.step, segment.start, position, unmet, tuple(sorted(completed)))


def _completions(video: Video) -> Iterator[tuple[Segment, Set[Step]]]:
    """Each segment with the steps completed when it starts."""
    timed = video.is_timed
    completed: set[Step] = set()
    running: list[Segment] = []
    for segment in video.segments:  # sorted by start: what is before this one is before all later ones
        completed.update(earlier.step for earlier in running if not timed or earlier.before(segment))
        running = [earlier for earlier in running if timed and not earlier.before(segment)]
        yield segment, frozenset(completed)
        running.append(segment)


def _find_skipped(video: Video, impossible: Mapping[Step, tuple[Step, ...]]) -> Iterator[SkippedStep]:
    shown = {segment.step for segment in video.segments}
    for name, without in impossible.items():
        if name not in shown and not shown.isdisjoint(without):
            yield SkippedStep(video.id, name, tuple(filter(shown.__contains__, without)))


def _impossible_without(missing: Step, graph: SubtaskGraph) -> tuple[Step, ...]:
    """The steps that cannot be done in any way once `missing` is left out, in the order of the graph.

    One branch of an OR can stand in for another, so a step is lost only if its precondition cannot hold while all
    that is already lost stays undone.
    """
    lost = {missing: False}
    for name in graph.steps:  # parents come first: steps are sorted by layer
        formula = graph.precondition(name)
        if not formula.steps.isdisjoint(lost) and is_tautology(negation(formula.substitute(lost))):
            lost[name] = False
    return tuple(lost)[1:]
