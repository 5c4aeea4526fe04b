"""What went wrong: needs that were not met, steps in the wrong order, both of an exclusive pair, steps left out.

A video is replayed through the engine that follows a run (`msg2.assist.following`), and judged in hindsight. A mistake
has a probability, from the videos that the graph was learned from (`rule_probabilities.EvidenceProbabilities`).
Overlapping steps are in no order, and what may only lack a label is not seen, which is no mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from msg2.assist.following import (
    Deviation,
    MistakeKind,
    Run,
    absent_meaning,
    begun_during,
    task_of_graph,
    unknown_step_error,
    videos_learned_from,
)
from msg2.assist.rule_probabilities import EvidenceProbabilities
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.graph import Formula, SubtaskGraph, step
from msg2.options import fields_to_json
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Absent, Step, Task, Video
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

ACCUSED = 0.5
"""A video is accused of a mistake from this probability on."""
_VIDEOS_AT_ONCE = 2_000
"""Videos that a process checks before it reports."""
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

    def to_json(self) -> dict[str, object]:
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
            case "unknown step":
                return f"'{self.step}', which is no step of the graph"


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
        return tuple(dict.fromkeys(mistake.video for mistake in self.mistakes if mistake.probability >= ACCUSED))

    def to_json(self) -> dict[str, object]:
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
    data: Video | Demonstrations,
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
    data : Video, Task or anything that `msg2.infer` takes
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
    >>> report = check(graph, {"v1": ["fry", "dip"]}, absent="skipped")
    >>> [mistake.to_english() for mistake in report.mistakes]
    ["'dip' after 'fry'", "without 'whisk'"]
    """
    if not isinstance(data, Video):
        data = task_of_graph(graph, data)
    meaning = absent or absent_meaning(graph, data if isinstance(data, Task) else None)
    checker = _Checker(graph, meaning)
    everything = _CheckedVideos([], Counter(), {})
    # The first videos are checked here: what the rules are worth is then known, and travels to the others.
    parts: list[list[Video] | Task] = [[data]] if isinstance(data, Video) else [*data.split(_VIDEOS_AT_ONCE)]
    total = sum(map(len, parts))
    first = map(checker.check_all, parts[:1])
    for part in chain(first, parallel_map(checker.check_all, parts[1:], jobs, engine)):
        everything.mistakes.extend(part.mistakes)
        everything.occurrences.update(part.occurrences)
        everything.fit.update(part.fit)
        progress(len(everything.fit), total, "")
    seen = [mistake for mistake in everything.mistakes if meaning == "skipped" or mistake.position is not None]
    not_seen = [mistake for mistake in everything.mistakes if meaning == "unknown" and mistake.position is None]
    sure = [mistake for mistake in seen if mistake.probability >= ACCUSED]
    wrong = Counter(mistake.step for mistake in sure if mistake.kind != "left out")
    left_out = Counter(mistake.step for mistake in sure if mistake.kind == "left out")
    totals = tuple(StepTotal(n, everything.occurrences[n], wrong[n], left_out[n]) for n in graph.steps)
    return CheckReport(len(everything.fit), tuple(seen), tuple(not_seen), totals, everything.fit)


@dataclass(frozen=True, slots=True)
class _CheckedVideos:
    """What was found in some videos: mistakes, how often each step was done, and log p of each video."""

    mistakes: list[Mistake]
    occurrences: Counter[Step]
    fit: dict[str, float]


@dataclass(frozen=True)
class _Checker:
    """Checks videos against one graph."""

    graph: SubtaskGraph
    absent: Absent

    def check_all(self, videos: Iterable[Video]) -> _CheckedVideos:
        """Check some videos."""
        checked = _CheckedVideos([], Counter(), {})
        for video in videos:
            mistakes, checked.fit[video.id] = self.check(video)
            checked.mistakes.extend(mistakes)
            checked.occurrences.update(segment.step for segment in video.segments)
        return checked

    def check(self, video: Video) -> tuple[list[Mistake], float]:
        """All mistakes of a video, and log p of it; what runs alike is looked at once."""
        key = (video.id not in self._learned_from, _order_of_labels(video))
        if key not in self._checked:
            if len(self._checked) >= _MOST_REMEMBERED:
                self._checked.clear()
            self._checked[key] = self._find(video), self._likelihood.log_probability(video)
        mistakes, fit = self._checked[key]
        starts = [None, *(segment.start for segment in video.segments)]
        return [replace(mistake, video=video.id, start=starts[mistake.position or 0]) for mistake in mistakes], fit

    def _find(self, video: Video) -> list[Mistake]:
        """All mistakes of a video: in the order of time, then what it lacks."""
        for segment in video.segments:
            if segment.step not in self._known:
                raise unknown_step_error(segment.step, self.graph, where=f"video {short_repr(video.id)}")
        new = video.id not in self._learned_from
        run, deviations = Run(self.graph), list[tuple[int, Deviation]]()
        for position, segment in enumerate(video.segments, start=1):
            for deviation in run.step(segment, begun_during(video.segments, position)):
                deviations.append((position, deviation))
        mistakes = list(self._order(video, run, new))
        for kind in ("exclusive", "need", "repeated"):
            for position, deviation in deviations:
                if deviation.kind == kind and (mistake := self._judge(video, run, position, deviation)):
                    mistakes.append(mistake)
        mistakes.sort(key=lambda mistake: (mistake.position is None, mistake.position or 0, mistake.step))
        return [*mistakes, *(self._left_out(run, new) if video.segments else ())]

    def _order(self, video: Video, run: Run, new: bool) -> Iterator[Mistake]:
        """The reversed pairs; those that hang together are judged together."""
        for pairs in _connected(run.reversed_pairs()):
            names = list(dict.fromkeys(name for pair in pairs for name in pair))
            related = np.argwhere(self.graph.pair_kinds.among(names)).tolist()
            # Those that follow from others as well.
            broken = [(names[a], names[b]) for a, b in related if run.is_before(names[b], names[a])]
            cost = self._likelihood.violation_cost(video, broken) if new else None
            for (late, early), probability in zip(pairs, self._rules.order(pairs, cost), strict=True):
                yield _mistake(late, "order", probability, (step(early),), run.first[late][0])

    def _judge(self, video: Video, run: Run, position: int, deviation: Deviation) -> Mistake | None:
        """What a deviation is in hindsight; None for what is told elsewhere, or is no mistake any more."""
        name, clause, new = deviation.step, deviation.clause, video.id not in self._learned_from
        match deviation.kind:
            case "exclusive" if deviation.other is not None and clause is not None:
                return _mistake(
                    name, "exclusive", self._rules.exclusive(name, deviation.other, new), (clause,), position
                )
            case "repeated" if self.graph.repeats:
                return _mistake(name, "repeated", self._rules.repeated(name, new), (), position)
            case "need" if clause is not None and position == run.first[name][0]:
                if self._is_told(clause, name, run):
                    return None
                cost = self._likelihood.unmet_cost(video, name) if new and clause.kind != "step" else 0.0
                probability = self._rules.need(name, clause, cost if new else None)
                sure = self.absent == "skipped" or not self._may_be_unseen(clause, name, run)
                return _mistake(name, "need", probability, (clause,), position if sure else None)
        return None

    def _may_be_unseen(self, clause: Formula, name: Step, run: Run) -> bool:
        """Whether steps that only lack their labels may have met a clause."""
        others = run.first.keys() - {name}
        done = {other for other in others if not run.is_before(name, other)}
        unseen = {other for other in clause.steps - others if self.graph.partners(other).isdisjoint(run.first)}
        return clause.evaluate(done | unseen)

    def _is_told(self, clause: Formula, name: Step, run: Run) -> bool:
        """Whether it is said elsewhere that a clause was not met in time: once is enough."""
        graph, shown = self.graph, run.first.keys()
        absent = clause.steps - shown
        left_out = [group for group in self._needed_groups if shown.isdisjoint(group)]
        if not absent.isdisjoint(graph.required.union(*left_out)):
            return True  # as left out
        if late := {other for other in clause.steps & shown if run.is_before(name, other)}:
            return any(graph.kind(other, name) in ("needs", "after") for other in late)  # as order
        alike = [
            position
            for later, (position, _) in run.first.items()
            for unmet in graph.precondition(later).clauses()
            if not absent.isdisjoint(unmet.steps) and not unmet.evaluate(shown)
        ]
        return bool(alike) and min(alike) < run.first[name][0]

    def _left_out(self, run: Run, new: bool) -> Iterator[Mistake]:
        """The required steps, and the groups of which one is required, that the video does not show."""
        for deviation in run.left_out():
            if deviation.clause is None:
                yield _mistake(deviation.step, "left out", self._rules.left_out(deviation.step, new), (), None)
            else:
                probability = self._rules.all_left_out(sorted(deviation.clause.steps), new)
                yield _mistake(deviation.step, "left out", probability, (deviation.clause,), None)

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
    def _rules(self) -> EvidenceProbabilities:
        return EvidenceProbabilities(self.graph)

    @cached_property
    def _likelihood(self) -> SequenceLikelihood:
        return SequenceLikelihood(self.graph)

    @cached_property
    def _learned_from(self) -> frozenset[str]:
        return frozenset(videos_learned_from(self.graph))


def _mistake(
    name: Step, kind: MistakeKind, probability: float, unmet: tuple[Formula, ...], position: int | None
) -> Mistake:
    """A mistake of any video that runs alike: whose, and when, is filled in later."""
    return Mistake("", name, kind, probability, unmet, None, position)


def _order_of_labels(video: Video) -> tuple[object, ...]:
    """What a video shows, and in which order, whenever that was: the same for videos that run alike."""
    moments = sorted({time for segment in video.segments for time in (segment.start, segment.end) if time is not None})
    order: dict[float | None, int] = {time: number for number, time in enumerate(moments)}
    return tuple((segment.step, order.get(segment.start), order.get(segment.end)) for segment in video.segments)


def _connected(pairs: Sequence[tuple[Step, Step]]) -> list[list[tuple[Step, Step]]]:
    """Parts of the pairs that share steps, directly or through others."""
    parts: list[list[tuple[Step, Step]]] = []
    for pair in pairs:
        touching = [part for part in parts if any(set(pair) & set(other) for other in part)]
        parts = [part for part in parts if part not in touching]
        parts.append([*(other for part in touching for other in part), pair])
    return parts
