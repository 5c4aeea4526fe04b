"""What went wrong: needs that were not met, steps in the wrong order, both of an exclusive pair, steps left out.

One judge serves for whole videos (`check`) and for runs that go on (`check_online`, `msg2.Assistant`). It replays what
was done through the engine that follows a run (`msg2.assist.following`), and gives each mistake its probability
(`msg2.assist.rule_probabilities`). While a run goes on, a step that comes before one that it needs is judged as if that
one came next; at the end, what has not come was left out. Overlapping steps are in no order, and what may only lack a
label is not seen, which is no mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from msg2.assist.following import (
    Deviation,
    MistakeKind,
    Run,
    absent_meaning,
    begun_during,
    first_spans,
    reversed_pairs,
    task_of_graph,
    unknown_step_error,
    videos_learned_from,
)
from msg2.assist.rule_probabilities import RuleProbabilities
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.errors import require_probability
from msg2.graph import Formula, SubtaskGraph, step
from msg2.options import JsonFields, fields_to_json
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.task import Absent, Segment, Step, Task, Video

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

ACCUSED = 0.5
"""A video is accused of a mistake from this probability on."""
ALARM = 0.4
"""While a run goes on, there is an alarm from this probability on: a warning can be looked into at once."""
_VIDEOS_AT_ONCE = 2_000
"""Videos that a process checks before it reports."""
_MOST_REMEMBERED = 100_000
"""Runs whose mistakes are remembered, for those that run alike."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that went wrong in a video.

    - `need`: the step was done without what it needs, `unmet`;
    - `order`: the step came too late, after the steps in `unmet` that it should have preceded;
    - `exclusive`: the step was done although one in `unmet` had been done, and a run does only one of them;
    - `left out`: the step is required, or one of several (`unmet`) of which one is, or had to follow another one
      (`after`), and was not done;
    - `repeated`: the step was done again, which is unusual, or unusual just then;
    - `unknown step`: the graph does not have it; `unmet` has the step whose name is most like it, if any is.
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
    after: Step | None = None
    """The step that the one that was left out had to follow."""

    def to_json(self) -> dict[str, object]:
        """Plain values; formulas as in a graph file, `after` only where there is one."""
        values = fields_to_json(self)
        return values if self.after is not None else {key: value for key, value in values.items() if key != "after"}

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
                missing = f"without {what}" if self.unmet else f"without '{self.step}'"
                return missing if self.after is None else f"{missing}, which follows '{self.after}'"
            case "repeated":
                return f"'{self.step}' again"
            case "unknown step":
                nearest = f": did you mean {what}?" if what else ""
                return f"'{self.step}', which is no step of the graph{nearest}"


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
        Where the graph has none of the steps.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> report = check(graph, {"v1": ["fry", "dip"]}, absent="skipped")
    >>> [mistake.to_english() for mistake in report.mistakes]
    ["'dip' after 'fry'", "without 'whisk'"]
    """
    if not isinstance(data, Video):
        data = task_of_graph(graph, data)
    meaning = absent or absent_meaning(graph, data if isinstance(data, Task) else None)
    judge = Judge(graph, meaning)
    mistakes, occurrences, fit = list[Mistake](), Counter[Step](), dict[str, float]()
    # The first videos are checked here: what the rules are worth is then known, and travels to the others.
    parts: list[list[Video] | Task] = [[data]] if isinstance(data, Video) else [*data.split(_VIDEOS_AT_ONCE)]
    total = sum(map(len, parts))
    first = map(judge.check_all, parts[:1])
    for found, counts, fits in chain(first, parallel_map(judge.check_all, parts[1:], jobs, engine)):
        mistakes += found
        occurrences.update(counts)
        fit |= fits
        progress(len(fit), total, "")
    if occurrences and graph.index.keys().isdisjoint(occurrences):
        raise unknown_step_error(min(occurrences), graph, where="data of another task")
    seen = [mistake for mistake in mistakes if meaning == "skipped" or mistake.position is not None]
    not_seen = [mistake for mistake in mistakes if meaning == "unknown" and mistake.position is None]
    sure = [mistake for mistake in seen if mistake.probability >= ACCUSED]
    wrong = Counter(mistake.step for mistake in sure if mistake.kind != "left out")
    left_out = Counter(mistake.step for mistake in sure if mistake.kind == "left out")
    totals = tuple(StepTotal(n, occurrences[n], wrong[n], left_out[n]) for n in graph.steps)
    return CheckReport(len(fit), tuple(seen), tuple(not_seen), totals, fit)


@dataclass(frozen=True, slots=True)
class StepAssessment(JsonFields):
    """One step as it was judged when it came."""

    step: Step
    start: float | None
    """Seconds; None without times."""
    position: int
    """In the video; 1 is the first."""
    probability: float
    """That the step is a mistake: of the surest of `mistakes`."""
    mistake: bool
    """Whether it is more probable than not."""
    mistakes: tuple[Mistake, ...]
    """What speaks against it, the surest first."""


@dataclass(frozen=True, slots=True)
class OnlineReport(JsonFields):
    """What `check_online` found: the assessments of all steps, by video."""

    task: str
    threshold: float
    videos: Mapping[str, tuple[StepAssessment, ...]]


def check_online(
    graph: SubtaskGraph, data: Demonstrations, threshold: float = ALARM, absent: Absent | None = None
) -> OnlineReport:
    """Judge every step of every video as if it came now.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need, and the evidence for it.
    data : Task or anything that `msg2.infer` takes
        The videos to check. A `Task` should keep repeated steps (`msg2.read(…, repeats="keep")`).
    threshold : float
        The probability from which on a step is called a mistake.
    absent : "unknown" or "skipped", optional
        Whether a step without a label may only lack the label, as in `msg2.assist.check`.

    Returns
    -------
    OnlineReport

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("coffee", ["boil", "pour"], {"pour": step("boil")})
    >>> report = check_online(graph, {"v1": ["pour", "boil"]}, absent="skipped")
    >>> [assessment.mistake for assessment in report.videos["v1"]]
    [True, True]
    """
    require_probability("threshold", threshold)
    task = task_of_graph(graph, data, repeats="keep")
    judge = Judge(graph, absent or absent_meaning(graph, task))
    return OnlineReport(graph.task, threshold, {video.id: judge.follow(video, threshold) for video in task})


class Judge:
    """Says what is wrong with runs, by one graph."""

    def __init__(self, graph: SubtaskGraph, absent: Absent) -> None:
        self.graph, self.absent = graph, absent
        self._rules, self._likelihood = RuleProbabilities(graph), SequenceLikelihood(graph)
        self._learned_from = frozenset(videos_learned_from(graph))
        self._needed_groups = [group for group in graph.exclusive if graph.optional.isdisjoint(group)]
        """The exclusive groups of which every faultless run does one step."""
        self._checked: dict[tuple[bool, tuple[object, ...]], tuple[list[Mistake], float]] = {}

    def check_all(self, videos: Iterable[Video]) -> tuple[list[Mistake], Counter[Step], dict[str, float]]:
        """Find the mistakes of some videos, how often each step was done, and log p of each video."""
        mistakes, occurrences, fit = list[Mistake](), Counter[Step](), dict[str, float]()
        for video in videos:
            own, fit[video.id] = self.check(video)
            mistakes += own
            occurrences.update(segment.step for segment in video.segments)
        return mistakes, occurrences, fit

    def check(self, video: Video) -> tuple[list[Mistake], float]:
        """All mistakes of a video, and log p of it; what runs alike is looked at once."""
        key = (video.id not in self._learned_from, _order_of_labels(video))
        if key not in self._checked:
            if len(self._checked) >= _MOST_REMEMBERED:
                self._checked.clear()
            mistakes = self.judge(video.segments, new=key[0]) if video.segments else []
            known = Video(video.id, [segment for segment in video.segments if segment.step in self.graph.index])
            self._checked[key] = mistakes, self._likelihood.log_probability(known)
        mistakes, fit = self._checked[key]
        starts = [None, *(segment.start for segment in video.segments)]
        return [replace(mistake, video=video.id, start=starts[mistake.position or 0]) for mistake in mistakes], fit

    def follow(self, video: Video, threshold: float) -> tuple[StepAssessment, ...]:
        """Judge each segment by what came before it only."""
        new, assessments = video.id not in self._learned_from, []
        for position, segment in enumerate(video.segments, start=1):
            mistakes = sorted(
                (
                    replace(mistake, video=video.id, start=segment.start)
                    for mistake in self.judge(video.segments[:position], new, ended=False, every={segment.step})
                    if mistake.position == position
                ),
                key=lambda mistake: -mistake.probability,
            )
            surest = mistakes[0].probability if mistakes else 0.0
            assessments.append(
                StepAssessment(segment.step, segment.start, position, surest, surest >= threshold, tuple(mistakes))
            )
        return tuple(assessments)

    def judge(
        self, segments: Sequence[Segment], new: bool = True, *, ended: bool = True, every: Set[Step] = frozenset()
    ) -> list[Mistake]:
        """All mistakes of a run: in the order of time, then what it lacks; of a run that goes on, those so far.

        The steps in `every` are told as well where they are late only for what others, still to come, explain.
        """
        run = Run(self.graph)
        spans = first_spans(segment for segment in segments if segment.step in self.graph.index)
        mistakes = []
        for position, segment in enumerate(segments, start=1):
            for deviation in run.step(segment, begun_during(segments, position)):
                if mistake := self._judge(run, spans, position, deviation, new=new, ended=ended):
                    mistakes.append(mistake)
        mistakes += self._order(run, spans, new=new, ended=ended, every=every)
        mistakes.sort(key=lambda mistake: (mistake.position is None, mistake.position or 0, mistake.step, mistake.kind))
        return [*mistakes, *(self._left_out(run, new) if ended else ())]

    def _order(
        self, run: Run, spans: Mapping[Step, Segment], *, new: bool, ended: bool, every: Set[Step]
    ) -> Iterator[Mistake]:
        """The steps that are late, or come before one that they need; pairs that hang together are judged together."""
        awaited = [] if ended or self.absent == "unknown" else run.awaited()
        last = max((span.end or 0.0 for span in spans.values()), default=0.0)
        coming = {name: Segment(name, last + number, last + number + 1) for number, name in enumerate(awaited)}
        everything = {**spans, **coming}
        pairs = reversed_pairs(self.graph, everything, every)
        parts = _connected([pair for pair in pairs if self._counts(pair, run)])
        costs = [self._cost(everything, part) if new else None for part in parts]
        alone = [self._rules.order(part, cost).any_of() for part, cost in zip(parts, costs, strict=True)]
        for place, (part, cost) in enumerate(zip(parts, costs, strict=True)):
            careless = 1 - prod(1 - chance for other, chance in enumerate(alone) if other != place)
            chances = self._rules.order(part, cost, careless)
            for late in dict.fromkeys(late for late, _ in part if late in spans):
                chosen = [number for number, pair in enumerate(part) if pair[0] == late]
                unmet = tuple(step(part[number][1]) for number in chosen)
                yield _mistake(late, "order", chances.any_of(chosen), unmet, position=run.first[late][0])
            for early in dict.fromkeys(early for late, early in part if late in coming):
                chosen = [number for number, pair in enumerate(part) if pair[1] == early and pair[0] in coming]
                unmet = tuple(step(part[number][0]) for number in chosen)
                yield _mistake(early, "need", chances.any_of(chosen), unmet, position=run.first[early][0])

    def _counts(self, pair: tuple[Step, Step], run: Run) -> bool:
        """Whether it matters that a pair is the wrong way round: what need not come at all is not awaited."""
        late, early = pair
        return late in run.first or late in self.graph.required or self.graph.kind(late, early) == "needs"

    def _cost(self, spans: Mapping[Step, Segment], pairs: Sequence[tuple[Step, Step]]) -> float:
        """What it costs a run to break these pairs, and those that follow from them as well."""
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        related = np.argwhere(self.graph.pair_kinds.among(names)).tolist()
        broken = [(names[a], names[b]) for a, b in related if spans[names[b]].before(spans[names[a]])]
        return self._likelihood.violation_cost(spans, broken)

    def _judge(
        self, run: Run, spans: Mapping[Step, Segment], position: int, deviation: Deviation, *, new: bool, ended: bool
    ) -> Mistake | None:
        """What a deviation is; None for what is told elsewhere, or is no mistake."""
        name, clause = deviation.step, deviation.clause
        match deviation.kind:
            case "exclusive" if deviation.other is not None and clause is not None:
                probability = self._rules.exclusive(name, deviation.other, new)
                return _mistake(name, "exclusive", probability, (clause,), position=position)
            case "repeated":
                return self.repeated(name, deviation.other, new, position)
            case "unknown step":
                nearest = () if deviation.other is None else (step(deviation.other),)
                return _mistake(name, "unknown step", self._rules.unknown_step(), nearest, position=position)
            case "need" if clause is not None and position == run.first[name][0]:
                if (clause.kind == "step" and not ended) or (ended and self._is_told(clause, name, spans)):
                    return None
                cost = self._likelihood.unmet_cost(spans, name) if new and clause.kind != "step" else 0.0
                probability = self._rules.need(name, clause, cost if new else None)
                sure = self.absent == "skipped" or not self._may_be_unseen(clause, name, spans)
                if sure or ended:
                    return _mistake(name, "need", probability, (clause,), position=position if sure else None)
        return None

    def repeated(self, step: Step, last: Step | None, new: bool = True, position: int | None = None) -> Mistake | None:
        """What it is to do a step again after the `last` one; None where nobody knows how usual that is."""
        if not self._rules.knows_repetitions:
            return None
        return _mistake(step, "repeated", self._rules.repeated(step, last, new), (), position=position)

    def _may_be_unseen(self, clause: Formula, name: Step, spans: Mapping[Step, Segment]) -> bool:
        """Whether steps that only lack their labels may have met a clause."""
        others = spans.keys() - {name}
        done = {other for other in others if not spans[name].before(spans[other])}
        unseen = {other for other in clause.steps - others if self.graph.partners(other).isdisjoint(spans)}
        return clause.evaluate(done | unseen)

    def _is_told(self, clause: Formula, name: Step, spans: Mapping[Step, Segment]) -> bool:
        """Whether it is said elsewhere that a clause was not met in time: once is enough."""
        graph, shown = self.graph, spans.keys()
        absent = clause.steps - shown
        left_out = [group for group in self._needed_groups if shown.isdisjoint(group)]
        if not absent.isdisjoint(graph.required.union(*left_out)):
            return True  # as left out
        if late := {other for other in clause.steps & shown if spans[name].before(spans[other])}:
            return any(graph.kind(other, name) in ("needs", "after") for other in late)  # as order
        names = list(spans)
        alike = [
            place
            for place, later in enumerate(names)
            for unmet in graph.precondition(later).clauses()
            if not absent.isdisjoint(unmet.steps) and not unmet.evaluate(shown)
        ]
        return bool(alike) and min(alike) < names.index(name)

    def _left_out(self, run: Run, new: bool) -> Iterator[Mistake]:
        """The required steps, and the groups of which one is required, that the video does not show."""
        for deviation in run.left_out():
            if deviation.clause is None:
                name = deviation.step
                stated = any(r.before == name and r.kind == "needs" and r.after in run.first for r in self.graph.rules)
                yield _mistake(name, "left out", 1.0 if stated else self._rules.left_out(name, new), ())
            elif deviation.other is not None:
                yield self._not_followed(deviation.step, deviation.other, deviation.clause, new)
            else:
                probability = self._rules.all_left_out(sorted(deviation.clause.steps), new)
                yield _mistake(deviation.step, "left out", probability, (deviation.clause,))

    def to_follow(self, segments: Sequence[Segment]) -> Iterator[Mistake]:
        """What must still follow in a run, but for what every run does anyway and this one has not done yet."""
        run = Run(self.graph)
        for segment in segments:
            run.step(segment)
        for name, formula in run.to_follow():
            if formula.steps.isdisjoint(self.graph.required - run.first.keys()):
                yield self._not_followed(run.most_usual(formula.steps), name, formula, new=True)

    def _not_followed(self, left_out: Step, name: Step, formula: Formula, new: bool) -> Mistake:
        unmet, probability = () if formula.kind == "step" else (formula,), self._rules.not_followed(name, formula, new)
        return _mistake(left_out, "left out", probability, unmet, after=name)


_mistake = partial(Mistake, "", start=None, position=None)
"""A mistake of any video that runs alike: whose, and when, is filled in later."""


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
