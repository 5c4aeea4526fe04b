"""What went wrong: needs that were not met, steps in the wrong order, both of an exclusive pair, steps left out.

A mistake has a probability, from the videos that the graph was learned from (see `msg2.assist.rule_probabilities`).
Overlapping steps are in no order, and what may only lack a label is not seen, which is no mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.absence import absent_meaning
from msg2.assist.rule_probabilities import RuleProbabilities
from msg2.assist.run_state import unknown_step_error
from msg2.assist.sequence_likelihood import SequenceLikelihood, earlier_pairs
from msg2.graph import Formula, SubtaskGraph, any_of, step
from msg2.options import fields_to_json
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Absent, Segment, Step, Task, Video
from msg2.text import short_repr

MistakeKind: TypeAlias = Literal["need", "order", "exclusive", "left out", "repeated"]
ACCUSED = 0.5
"""A video is accused of a mistake from this probability on."""
_VIDEOS_AT_ONCE = 2_000
"""Videos that a process checks before it tells what it has found."""
_MOST_REMEMBERED = 100_000
"""Runs whose mistakes are remembered, for those that run alike."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that went wrong in a video.

    - `need`: the step was done without what it needs, `unmet`, which was never done;
    - `order`: the step came too late, after the steps in `unmet` that it should have preceded;
    - `exclusive`: the step was done although one in `unmet` had been done, and a run does only one of them;
    - `left out`: the step is required, or one of several of which one is, and was not done;
    - `repeated`: the step was done again, which is unusual.
    """

    video: str
    step: Step
    kind: MistakeKind
    probability: float
    """That it is a mistake, and not just another way to do the task."""
    unmet: tuple[Formula, ...]
    start: float | None
    """Seconds; None without times, and for a step that was not done."""
    position: int | None
    """Of the segment in its video, 1 is the first; None for a step that was not done."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; formulas as in a graph file."""
        return fields_to_json(self)

    def to_english(self) -> str:
        """Say what went wrong, in a few words."""
        what = " and ".join(clause.to_english() for clause in self.unmet)
        match self.kind:
            case "need":
                return f"'{self.step}' without {what}"
            case "order":
                return f"'{self.step}' after {what}"
            case "exclusive":
                return f"'{self.step}' as well as {what}"
            case "left out":
                return f"without {what}" if self.unmet else f"without '{self.step}'"
            case "repeated":
                return f"'{self.step}' again"


@dataclass(frozen=True, slots=True)
class StepTotal:
    """One step over all videos: segments, mistakes when it was done, and videos that left it out."""

    step: Step
    occurrences: int
    mistakes: int
    left_out: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found, in the order of videos and time; `totals` has every step of the graph.

    `not_seen` has what a video does not show although it should, where labels may be missing: no mistake is claimed.
    `fit` is log p of each video under the graph, in nats.
    """

    videos: int
    mistakes: tuple[Mistake, ...]
    not_seen: tuple[Mistake, ...]
    totals: tuple[StepTotal, ...]
    fit: Mapping[str, float]

    @property
    def accused(self) -> tuple[str, ...]:
        """The videos with at least one mistake that is more probable than not."""
        return tuple(dict.fromkeys(one.video for one in self.mistakes if one.probability >= ACCUSED))

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return fields_to_json(self) | {"accused": list(self.accused)}

    def marks(self) -> dict[Step, str]:
        """A short note for every step that went wrong, as `msg2.drawing.show` puts them on the graph."""
        marks = {}
        for total in self.totals:
            notes = [f"{total.mistakes} of {total.occurrences} wrong"] if total.mistakes else []
            times = "once" if total.left_out == 1 else f"{total.left_out} times"
            notes += [f"left out {times}"] if total.left_out else []
            if notes:
                marks[total.step] = ", ".join(notes)
        return marks


def check(
    graph: SubtaskGraph,
    data: Video | Task,
    absent: Absent | None = None,
    *,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> CheckReport:
    """Find what went wrong in each video.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need, in which order they come, and the evidence for it.
    data : Video or Task
        One video, or all videos of a task. Repetitions count where the data keep them.
    absent : "unknown" or "skipped", optional
        Whether a step without a label may only lack the label; by default as the graph was learned, else as the data
        say.
    jobs : int
        Processes that share the videos.
    engine : str
        Whose processes; see `msg2.parallel.ENGINES`.
    progress : Progress
        Is told how many videos are checked.

    Returns
    -------
    CheckReport

    Raises
    ------
    InputError
        For a step that the graph does not have.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> report = check(graph, Video("v1", [Segment("fry", 0, 2), Segment("dip", 3, 9)]), absent="skipped")
    >>> [mistake.to_english() for mistake in report.mistakes]
    ["'dip' after 'fry'", "without 'whisk'"]
    """
    meaning = absent or absent_meaning(graph, data if isinstance(data, Task) else None)
    checker = _Checker(graph, meaning, SequenceLikelihood(graph))
    found: list[Mistake] = []
    occurrences: Counter[Step] = Counter()
    fit: dict[str, float] = {}
    # The first videos are checked here: what the rules are worth is then known, and travels to the others.
    parts = [[data]] if isinstance(data, Video) else [*data.split(_VIDEOS_AT_ONCE)]
    total = sum(map(len, parts))
    first = (_check_part(part, checker) for part in parts[:1])
    for part in chain(first, parallel_map(partial(_check_part, checker=checker), parts[1:], jobs, engine)):
        found += part.found
        occurrences += part.occurrences
        fit |= part.fit
        progress(len(fit), total, "")
    mistakes = tuple(one for one in found if meaning == "skipped" or one.position is not None)
    not_seen = tuple(one for one in found if meaning == "unknown" and one.position is None)
    sure = [one for one in mistakes if one.probability >= ACCUSED]
    wrong = Counter(one.step for one in sure if one.kind != "left out")
    left_out = Counter(one.step for one in sure if one.kind == "left out")
    totals = tuple(StepTotal(n, occurrences[n], wrong[n], left_out[n]) for n in graph.steps)
    return CheckReport(len(fit), mistakes, not_seen, totals, fit)


@dataclass(frozen=True, slots=True)
class _CheckedPart:
    """What was found in some videos: mistakes, how often each step was done, and log p of each video."""

    found: list[Mistake]
    occurrences: Counter[Step]
    fit: dict[str, float]


def _check_part(videos: Iterable[Video], checker: _Checker) -> _CheckedPart:
    part = _CheckedPart([], Counter(), {})
    for video in videos:
        mistakes, fit = checker.check(video)
        part.found.extend(mistakes)
        part.occurrences.update(segment.step for segment in video.segments)
        part.fit[video.id] = fit
    return part


@dataclass(frozen=True)
class _Checker:
    """Checks videos against one graph."""

    graph: SubtaskGraph
    absent: Absent
    likelihood: SequenceLikelihood

    def check(self, video: Video) -> tuple[list[Mistake], float]:
        """All mistakes of a video, and log p of it; what runs alike is looked at once."""
        key = (video.id not in self._learned_from, _order_of_labels(video))
        if key not in self._checked:
            if len(self._checked) >= _MOST_REMEMBERED:
                self._checked.clear()
            self._checked[key] = self._find(video), self.likelihood.log_probability(video)
        found, fit = self._checked[key]
        starts = [None, *(segment.start for segment in video.segments)]
        return [replace(one, video=video.id, start=starts[one.position or 0]) for one in found], fit

    def _find(self, video: Video) -> list[Mistake]:
        """All mistakes of a video: in the order of time, then what it lacks."""
        for segment in video.segments:
            if segment.step not in self._known:
                raise unknown_step_error(segment.step, self.graph, where=f"video {short_repr(video.id)}")
        run = _Run.of(video, new=video.id not in self._learned_from)
        found = [*self._order(run), *self._exclusive(run), *self._needs(run), *self._repeated(run)]
        found.sort(key=lambda one: (one.position is None, one.position or 0, one.step))
        return [*found, *(self._left_out(run) if run.first else ())]

    def _order(self, run: _Run) -> Iterator[Mistake]:
        """The pairs of steps, of those that the video shows, that are the wrong way round and follow from no others."""
        shown = [name for name in self.graph.steps if name in run.first]
        before = self.graph.pair_kinds.among(shown)
        wrong = before & run.earlier(shown).T
        # A pair that follows from others is told by them, if one of these is the wrong way round: overlaps are not.
        chain = before.astype(np.float32)
        follows = wrong @ chain + chain @ wrong > 0
        reversed_pairs = [(shown[a], shown[b]) for a, b in np.argwhere(wrong & ~follows).tolist()]
        for pairs in _connected(reversed_pairs):
            cost = self.likelihood.violation_cost(run.video, self._broken(pairs, run)) if run.new else None
            for (late, early), probability in zip(pairs, self._rules.order(pairs, cost), strict=True):
                yield run.mistake(late, "order", probability, step(early))

    def _broken(self, pairs: Sequence[tuple[Step, Step]], run: _Run) -> Iterator[tuple[Step, Step]]:
        """All pairs of the steps in `pairs` that are the wrong way round, those that follow from others as well."""
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        for a, b in np.argwhere(self.graph.pair_kinds.among(names)).tolist():
            if run.is_before(names[b], names[a]):
                yield names[a], names[b]

    def _exclusive(self, run: _Run) -> Iterator[Mistake]:
        """Both of a pair of which a run does only one."""
        for name, (position, _) in run.first.items():
            for other in sorted(self.graph.partners(name) & run.first.keys()):
                if run.first[other][0] < position:
                    yield run.mistake(name, "exclusive", self._rules.exclusive(name, other, run.new), step(other))

    def _needs(self, run: _Run) -> Iterator[Mistake]:
        """Clauses that are not met by anything done before or at the same time; what came too late is told as order."""
        names = list(run.first)
        for name, later in zip(names, run.earlier(names), strict=True):
            others = run.first.keys() - {name}
            done = others.difference(names[place] for place in np.flatnonzero(later))
            for clause in self.graph.precondition(name).clauses():
                if clause.evaluate(done) or self._is_told(clause, name, run):
                    continue
                cost = self.likelihood.unmet_cost(run.video, name) if run.new and clause.kind != "step" else 0.0
                mistake = run.mistake(name, "need", self._rules.need(name, clause, cost if run.new else None), clause)
                unseen = {one for one in clause.steps - others if self.graph.partners(one).isdisjoint(run.first)}
                sure = self.absent == "skipped" or not clause.evaluate(done | unseen)
                yield mistake if sure else replace(mistake, start=None, position=None)

    def _is_told(self, clause: Formula, name: Step, run: _Run) -> bool:
        """Whether it is said elsewhere that a clause was not met in time: once is enough."""
        graph, shown = self.graph, run.first.keys()
        absent = clause.steps - shown
        left_out = [group for group in self._needed_groups if shown.isdisjoint(group)]
        if not absent.isdisjoint(graph.required.union(*left_out)):
            return True  # as left out
        if late := {one for one in clause.steps & shown if run.is_before(name, one)}:
            return any(graph.kind(one, name) in ("needs", "after") for one in late)  # as order
        alike = [
            position
            for one, (position, _) in run.first.items()
            for other in graph.precondition(one).clauses()
            if not absent.isdisjoint(other.steps) and not other.evaluate(shown)
        ]
        return bool(alike) and min(alike) < run.first[name][0]

    def _repeated(self, run: _Run) -> Iterator[Mistake]:
        """Steps that are done again, where the graph says how usual that is."""
        for position, segment in enumerate(run.video.segments, start=1):
            if self.graph.repeats and position != run.first[segment.step][0]:
                probability = self._rules.repeated(segment.step, run.new)
                yield Mistake(run.video.id, segment.step, "repeated", probability, (), segment.start, position)

    def _left_out(self, run: _Run) -> Iterator[Mistake]:
        """The required steps, and the groups of which one is required, that the video does not show."""
        for name in self.graph.steps:
            if name in self.graph.required and name not in run.first:
                probability = self._rules.left_out(name, run.new)
                yield Mistake(run.video.id, name, "left out", probability, (), None, None)
        told: set[Step] = set()
        for group in self._needed_groups:
            if run.first.keys().isdisjoint(group) and told.isdisjoint(group):  # a step of two groups is left out once
                told.update(group)
                usual = max(group, key=lambda name: (self.graph.step_evidence(name).videos or 0, name))
                probability = self._rules.all_left_out(group, run.new)
                yield Mistake(run.video.id, usual, "left out", probability, (any_of(map(step, group)),), None, None)

    @cached_property
    def _checked(self) -> dict[tuple[bool, tuple[object, ...]], tuple[list[Mistake], float]]:
        return {}

    @cached_property
    def _needed_groups(self) -> list[tuple[Step, ...]]:
        """The exclusive groups of which every faultless run does one step."""
        return [group for group in self.graph.exclusive if self.graph.optional.isdisjoint(group)]

    @cached_property
    def _known(self) -> frozenset[Step]:
        return frozenset(self.graph.steps)

    @cached_property
    def _rules(self) -> RuleProbabilities:
        return RuleProbabilities(self.graph)

    @cached_property
    def _learned_from(self) -> frozenset[str]:
        videos = self.graph.method.get("videos")
        return frozenset(map(str, videos)) if isinstance(videos, list | tuple) else frozenset()


@dataclass(frozen=True, slots=True)
class _Run:
    """A video, the position and first segment of each of its steps, and whether the graph was learned without it."""

    video: Video
    first: Mapping[Step, tuple[int, Segment]]
    new: bool

    @staticmethod
    def of(video: Video, new: bool) -> _Run:
        first: dict[Step, tuple[int, Segment]] = {}
        for position, segment in enumerate(video.segments, start=1):
            first.setdefault(segment.step, (position, segment))
        return _Run(video, first, new)

    def is_before(self, one: Step, other: Step) -> bool:
        (place, segment), (other_place, other_segment) = self.first[one], self.first[other]
        return segment.before(other_segment) if segment.is_timed else place < other_place

    def earlier(self, names: Sequence[Step]) -> NDArray[np.bool_]:
        """`is_before` of all pairs, shape (names, names)."""
        found = [self.first[name] for name in names]
        return earlier_pairs(
            [(one.start or 0.0, one.end or 0.0) if one.is_timed else (place, place + 1) for place, one in found]
        )

    def mistake(self, name: Step, kind: MistakeKind, probability: float, unmet: Formula) -> Mistake:
        position, segment = self.first[name]
        return Mistake(self.video.id, name, kind, probability, (unmet,), segment.start, position)


def _order_of_labels(video: Video) -> tuple[object, ...]:
    """What a video shows, and in which order, whenever that was: the same for videos that run alike."""
    moments = sorted({time for one in video.segments for time in (one.start, one.end) if time is not None})
    place: dict[float | None, int] = {time: number for number, time in enumerate(moments)}
    return tuple((one.step, place.get(one.start), place.get(one.end)) for one in video.segments)


def _connected(pairs: Sequence[tuple[Step, Step]]) -> list[list[tuple[Step, Step]]]:
    """Parts of the pairs that share steps, directly or through others."""
    parts: list[list[tuple[Step, Step]]] = []
    for pair in pairs:
        touching = [part for part in parts if any(set(pair) & set(other) for other in part)]
        parts = [part for part in parts if part not in touching]
        parts.append([*(other for part in touching for other in part), pair])
    return parts
