"""Mistakes while they happen: after each step, how it deviates from the graph, and how probably that is a mistake.

A deviation is nothing in itself; the demonstrations say what it means. Of the n training videos that show the step, k
have the same deviation; now it is seen once more, and `msg2.assist.requirement_model` says how probably k + 1 of n + 1
is a mistake. A step is right only if all its deviations are usual, taken as independent: its own probability is
1 − Π (1 − p). Where labels may be missing, a step that comes without what it needs claims nothing: that may follow, or
may only lack its label. Every step is judged against all that came before it, mistakes included, unless these are
rejected (see `msg2.assist.deviations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from msg2.assist.absence import absent_meaning
from msg2.assist.deviations import Deviation, DeviationDetector, DeviationKind
from msg2.assist.requirement_model import RequirementModel, mistake_probability
from msg2.errors import require_probability
from msg2.graph import SubtaskGraph, step
from msg2.options import fields_to_json
from msg2.task import Absent, Segment, Step, Task, Video

THRESHOLD = 0.5
"""Operating point: a step is called a mistake from this probability on. Where both errors cost the same, 0.5 is the
point with the fewest of them, whatever the data; where a missed mistake costs c false alarms, it is 1 / (1 + c)."""


@dataclass(frozen=True, slots=True)
class DeviationAssessment:
    """A deviation, the `times` that training videos have it out of `chances`, and how probably it is a mistake.

    Without videos, and in a graph without evidence, both are None and the graph is believed.
    """

    deviation: Deviation
    times: int | None
    chances: int | None
    probability: float

    def to_json(self) -> dict[str, Any]:
        """Plain values; the clause as in a graph file."""
        numbers = {"times": self.times, "chances": self.chances, "probability": self.probability}
        deviation = fields_to_json(self.deviation)
        return {key: deviation[key] for key in ("kind", "other", "clause")} | numbers


@dataclass(frozen=True, slots=True)
class StepAssessment:
    """One step as it was assessed when it came."""

    step: Step
    start: float | None
    """Seconds; None without times."""
    position: int
    """In the video; 1 is the first."""
    probability: float
    """That the step is a mistake, from all `findings`."""
    mistake: bool
    """Whether that reaches the operating point."""
    findings: tuple[DeviationAssessment, ...]
    skipped: tuple[DeviationAssessment, ...]
    """The steps that it lacks; only time tells them apart from those that merely come late."""
    corrects: tuple[Step, ...] = ()
    """The mistake that it makes good: this step, which had been rejected."""

    def probability_of(self, *kinds: DeviationKind) -> float:
        """The probability of a mistake from the findings of these kinds alone."""
        return _combine_probabilities(finding for finding in self.findings if finding.deviation.kind in kinds)

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class DeviationCounts:
    """How often training videos deviate: of `videos`, those with each step, and those with each deviation."""

    videos: int
    steps: Mapping[Step, int]
    deviations: Mapping[Deviation, int]

    @staticmethod
    def from_videos(graph: SubtaskGraph, videos: Iterable[Video]) -> DeviationCounts:
        """Count the deviations of videos from a graph."""
        number, steps, deviations = 0, Counter[Step](), Counter[Deviation]()
        for video in videos:
            number, detector = number + 1, DeviationDetector(graph)
            steps.update({segment.step for segment in video.segments})
            deviations.update({one for segment in video.segments for one in detector.detect(segment)})
        return DeviationCounts(number, steps, deviations)

    @staticmethod
    def from_evidence(graph: SubtaskGraph) -> DeviationCounts:
        """Take the counts that a graph has as its evidence; a step of which it has none is not among the `steps`."""
        videos, steps, deviations = graph.method.get("videos"), dict[Step, int](), Counter[Deviation]()
        for name in graph.steps:
            evidence = graph.step_evidence(name)
            if evidence.videos is None:
                continue
            steps[name] = evidence.videos
            deviations[Deviation("repeated", name)] = round(graph.repeats.get(name, 0.0) * evidence.videos)
            for clause in graph.precondition(name).clauses():
                support = evidence.edges.get(clause.name) if clause.kind == "step" else None
                if support is not None and support.before is not None and support.together is not None:
                    broken = support.together - support.before
                    deviations[Deviation("out of order", clause.name, name, clause)] = broken
                    broken += support.lacking or 0
                else:
                    broken = evidence.videos - (evidence.videos if evidence.holds is None else evidence.holds)
                deviations[Deviation("premature", name, None, clause)] = max(broken, 0)
            for other, both in evidence.exclusive.items():
                deviations[Deviation("exclusive", name, other, step(other))] = both
        for edge in graph.edges():
            if edge.kind == "after" and edge.support is not None and edge.support.before is not None:
                late = Deviation("out of order", edge.before, edge.after, step(edge.before))
                deviations[late] = max((edge.support.together or 0) - edge.support.before, 0)
        return DeviationCounts(len(videos) if isinstance(videos, list | tuple) else 0, steps, deviations)

    def rules(self, graph: SubtaskGraph) -> list[tuple[int, int]]:
        """Of every clause and every pair in order: how many videos break it, of how many with the step."""
        rules = [
            Deviation("premature", n, None, clause) for n in graph.steps for clause in graph.precondition(n).clauses()
        ]
        rules += [Deviation("out of order", before, after, step(before)) for before, after in graph.order]
        return [(self.deviations.get(one, 0), self.steps.get(one.step, 0)) for one in rules]

    def subtract(self, other: DeviationCounts) -> DeviationCounts:
        """The counts of the videos that are left when those of `other` are taken out."""
        return DeviationCounts(
            self.videos - other.videos,
            Counter(self.steps) - Counter(other.steps),
            Counter(self.deviations) - Counter(other.deviations),
        )


def fit_monitor(
    graph: SubtaskGraph,
    training: Task | DeviationCounts | None = None,
    threshold: float = THRESHOLD,
    absent: Absent | None = None,
) -> OnlineMonitor:
    """Make a monitor of one run of the task.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    training : Task or DeviationCounts, optional
        Videos that say what is usual. They should keep repeated steps (`msg2.read(…, repeats="keep")`), or every
        repetition is a surprise. Without any, the evidence of the graph says it.
    threshold : float
        Operating point: the probability from which on a step is called a mistake.
    absent : "unknown" or "skipped", optional
        Whether a step without a label may only lack the label, as in `msg2.assist.check`.

    Returns
    -------
    OnlineMonitor

    Raises
    ------
    InputError
        For a threshold that is no probability.

    >>> from msg2.graph import step
    >>> seen = [Video(f"v{number}", [Segment("whisk"), Segment("dip"), Segment("fry")]) for number in range(9)]
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> monitor = fit_monitor(graph, Task("toast", graph.steps, seen), absent="skipped")
    >>> [(name, monitor.step(name).mistake) for name in ["whisk", "fry"]]
    [('whisk', False), ('fry', True)]
    >>> assessment = monitor.step("dip")
    >>> assessment.findings[0].deviation.kind, round(assessment.probability, 2)
    ('out of order', 0.85)
    """
    require_probability("threshold", threshold)
    seen = training if isinstance(training, Task) else None
    if training is None:
        counts = DeviationCounts.from_evidence(graph)
    else:
        counts = training if isinstance(training, DeviationCounts) else DeviationCounts.from_videos(graph, training)
    model = RequirementModel.fit([(times, chances) for times, chances in counts.rules(graph) if times <= chances])
    return OnlineMonitor(graph, counts, model, threshold, absent or absent_meaning(graph, seen), training is None)


@dataclass
class OnlineMonitor:
    """Assesses the steps of one run in the order in which they come; see `fit_monitor`."""

    graph: SubtaskGraph
    counts: DeviationCounts
    model: RequirementModel
    threshold: float
    absent: Absent
    believes_graph: bool = False
    """Whether what the counts say nothing about is a mistake, because the graph says so."""
    _detector: DeviationDetector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._detector = DeviationDetector(self.graph)

    def step(self, name: Step, start: float | None = None, end: float | None = None) -> StepAssessment:
        """Assess the step that comes now, by nothing that comes later.

        A step counts as completed for those that start when it has ended (without times: for all that come after it).
        Steps must come in the order of their starts.

        Parameters
        ----------
        name : Step
            The step.
        start, end : float, optional
            Seconds; without an end the step takes no time.

        Returns
        -------
        StepAssessment

        Raises
        ------
        InputError
            For a step that starts before the last one, or has times where others have none.
        """
        segment = Segment(name, start, start if end is None else end)
        deviations = list(self._detector.detect(segment))
        if self.believes_graph and name not in self.counts.steps:  # how often it is done again, a graph need not say
            deviations = [deviation for deviation in deviations if deviation.kind != "repeated"]
        elif name not in self.counts.steps:
            deviations.append(Deviation("never seen", name))
        assessed = [self._assess(deviation) for deviation in deviations]
        silent = ("skipped", "premature") if self.absent == "unknown" else ("skipped",)
        findings = tuple(finding for finding in assessed if finding.deviation.kind not in silent)
        skipped = tuple(finding for finding in assessed if finding.deviation.kind == "skipped")
        probability = _combine_probabilities(findings)
        mistake = probability >= self.threshold
        corrects = () if mistake else self._detector.corrects
        return StepAssessment(name, start, self._detector.length, probability, mistake, findings, skipped, corrects)

    def reject(self, assessment: StepAssessment) -> None:
        """Do not accept what the last assessment says was done wrongly: later steps are held against the rest."""
        self._detector.reject(finding.deviation for finding in assessment.findings)

    @property
    def rejected(self) -> frozenset[Step]:
        """The steps that were mistakes and have not been done again, rightly."""
        return self._detector.rejected

    def accept(self, name: Step) -> None:
        """Take a step for done, rightly: nobody saw it, or what was called a mistake counts."""
        self._detector.accept(name)

    def copy(self) -> OnlineMonitor:
        """Return a monitor of a run that has been the same so far."""
        other = copy(self)
        other._detector = self._detector.copy()
        return other

    def video(self, video: Video) -> tuple[StepAssessment, ...]:
        """Assess all segments of a video, from its beginning: what came so far plays no part."""
        fresh = replace(self)
        return tuple(fresh.step(segment.step, segment.start, segment.end) for segment in video.segments)

    def _assess(self, deviation: Deviation) -> DeviationAssessment:
        counts, model = self.counts, self.model
        if deviation.clause is None:  # no clause is involved: usual or a mistake with even odds
            model = replace(model, genuine=0.5)
        if self.believes_graph and deviation.step not in counts.steps:
            return DeviationAssessment(deviation, None, None, 1.0)
        times = counts.deviations.get(deviation, 0)
        chances = counts.videos if deviation.kind == "never seen" else counts.steps.get(deviation.step, 0)
        probability = mistake_probability(min(times, chances) + 1, chances + 1, model)
        return DeviationAssessment(deviation, times, chances, probability)


@dataclass(frozen=True, slots=True)
class OnlineReport:
    """What `check_online` found: the assessments of all steps, by video."""

    task: str
    threshold: float
    videos: Mapping[str, tuple[StepAssessment, ...]]

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


def check_online(
    graph: SubtaskGraph,
    task: Task,
    training: Task | None = None,
    threshold: float = THRESHOLD,
    absent: Absent | None = None,
) -> OnlineReport:
    """Assess every step of every video as if it came now.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    task : Task
        The videos to check. They should keep repeated steps, as in `fit_monitor`.
    training : Task, optional
        Videos that say what is usual; by default, for each video all the others of `task` (leave-one-out).
    threshold : float
        Operating point, as in `fit_monitor`.
    absent : "unknown" or "skipped", optional
        Whether a step without a label may only lack the label, as in `msg2.assist.check`.

    Returns
    -------
    OnlineReport

    >>> from msg2.graph import step
    >>> from msg2.task import Segment, Video
    >>> graph = SubtaskGraph("coffee", ["boil", "pour"], {"pour": step("boil")})
    >>> usual = [Video(f"v{n}", [Segment("boil"), Segment("pour")]) for n in range(9)]
    >>> wrong = Video("wrong", [Segment("pour"), Segment("boil")])
    >>> report = check_online(graph, Task("coffee", graph.steps, [*usual, wrong]), absent="skipped")
    >>> [assessment.mistake for assessment in report.videos["wrong"]]
    [True, True]
    """
    counts = DeviationCounts.from_videos(graph, task if training is None else training)
    videos, chosen = {}, absent or absent_meaning(graph, task)
    for video in task:
        others = counts if training is not None else counts.subtract(DeviationCounts.from_videos(graph, [video]))
        videos[video.id] = fit_monitor(graph, others, threshold, chosen).video(video)
    return OnlineReport(graph.task, threshold, videos)


def _combine_probabilities(findings: Iterable[DeviationAssessment]) -> float:
    return 1 - prod((1 - finding.probability for finding in findings), start=1.0)
