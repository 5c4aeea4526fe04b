"""Mistakes while they happen: after each step, how it deviates from the graph, and how probably that is a mistake.

A deviation is nothing in itself; the demonstrations say what it means (`rule_probabilities.CountProbabilities`). A step
is right only if all its deviations are usual, taken as independent: its own probability is 1 − Π (1 − p). Where labels
may be missing, a step that comes without what it needs claims nothing: that may follow, or may only lack its label.
Every step is judged against all that came before it, mistakes included, unless these are rejected (`following.Run`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from msg2.assist.following import MistakeKind, Run, absent_meaning, task_of_graph
from msg2.assist.rule_probabilities import CountProbabilities, DeviationAssessment, DeviationCounts
from msg2.errors import require_probability
from msg2.graph import SubtaskGraph
from msg2.options import fields_to_json
from msg2.task import Absent, Segment, Step, Task, Video

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

THRESHOLD = 0.5
"""Operating point: a step is called a mistake from this probability on. Where both errors cost the same, 0.5 is the
point with the fewest of them, whatever the data; where a missed mistake costs c false alarms, it is 1 / (1 + c)."""


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
    """The steps that it lacks, of the kind `left out`; only time tells them apart from those that merely come late."""
    corrects: tuple[Step, ...] = ()
    """The mistake that it makes good: this step, which had been rejected."""

    def probability_of(self, *kinds: MistakeKind) -> float:
        """The probability of a mistake from the findings of these kinds alone."""
        return _combine_probabilities(finding for finding in self.findings if finding.deviation.kind in kinds)

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


@dataclass
class OnlineMonitor:
    """Assesses the steps of one run in the order in which they come; see `fit_monitor`."""

    graph: SubtaskGraph
    probabilities: CountProbabilities
    threshold: float
    absent: Absent
    run: Run = field(init=False, repr=False)  # what has come so far

    def __post_init__(self) -> None:
        self.run = Run(self.graph)

    def step(self, name: Step, start: float | None = None, end: float | None = None) -> StepAssessment:
        """Assess the step that comes now, by nothing that comes later; steps come in the order of their starts."""
        segment = Segment(name, start, start if end is None else end)
        assessed = self.probabilities.judge(name, self.run.step(segment))
        silent = ("left out", "need") if self.absent == "unknown" else ("left out",)
        findings = tuple(finding for finding in assessed if finding.deviation.kind not in silent)
        skipped = tuple(finding for finding in assessed if finding.deviation.kind == "left out")
        probability = _combine_probabilities(findings)
        mistake = probability >= self.threshold
        corrects = () if mistake else self.run.corrects
        return StepAssessment(name, start, self.run.length, probability, mistake, findings, skipped, corrects)

    def reject(self, assessment: StepAssessment) -> None:
        """Do not accept what the last assessment says was done wrongly: later steps are held against the rest."""
        self.run.reject(finding.deviation for finding in assessment.findings)

    def copy(self) -> OnlineMonitor:
        """Return a monitor of a run that has been the same so far."""
        other = copy(self)
        other.run = self.run.copy()
        return other

    def video(self, video: Video) -> tuple[StepAssessment, ...]:
        """Assess all segments of a video, from its beginning: what came so far plays no part."""
        fresh = replace(self)
        return tuple(fresh.step(segment.step, segment.start, segment.end) for segment in video.segments)


def fit_monitor(
    graph: SubtaskGraph,
    training: Demonstrations | DeviationCounts | None = None,
    threshold: float = THRESHOLD,
    absent: Absent | None = None,
) -> OnlineMonitor:
    """Make a monitor of one run; training videos say what is usual, without any the evidence of the graph does."""
    require_probability("threshold", threshold)
    if training is not None and not isinstance(training, DeviationCounts):
        training = task_of_graph(graph, training, repeats="keep")
    seen = training if isinstance(training, Task) else None
    chosen = absent or absent_meaning(graph, seen)
    return OnlineMonitor(graph, CountProbabilities.fit(graph, training), threshold, chosen)


@dataclass(frozen=True, slots=True)
class OnlineReport:
    """What `check_online` found: the assessments of all steps, by video."""

    task: str
    threshold: float
    videos: Mapping[str, tuple[StepAssessment, ...]]

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


def check_online(
    graph: SubtaskGraph,
    task: Demonstrations,
    training: Demonstrations | None = None,
    threshold: float = THRESHOLD,
    absent: Absent | None = None,
) -> OnlineReport:
    """Assess every step of every video as if it came now.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    task : Task or anything that `msg2.infer` takes
        The videos to check. A `Task` should keep repeated steps (`msg2.read(…, repeats="keep")`), or every repetition
        is a surprise.
    training : Task or anything that `msg2.infer` takes, optional
        Videos that say what is usual; by default, for each video all the others of `task` (leave-one-out).
    threshold : float
        Operating point: the probability from which on a step is called a mistake.
    absent : "unknown" or "skipped", optional
        Whether a step without a label may only lack the label, as in `msg2.assist.check`.

    Returns
    -------
    OnlineReport

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("coffee", ["boil", "pour"], {"pour": step("boil")})
    >>> report = check_online(graph, [*[["boil", "pour"]] * 9, ["pour", "boil"]], absent="skipped")
    >>> [assessment.mistake for assessment in report.videos["10"]]
    [True, True]
    """
    watched = task_of_graph(graph, task, repeats="keep")
    usual = watched if training is None else task_of_graph(graph, training, repeats="keep")
    counts, videos = DeviationCounts.from_videos(graph, usual), {}
    for video in watched:
        others = counts if training is not None else counts.subtract(DeviationCounts.from_videos(graph, [video]))
        videos[video.id] = fit_monitor(graph, others, threshold, absent or absent_meaning(graph, watched)).video(video)
    return OnlineReport(graph.task, threshold, videos)


def _combine_probabilities(findings: Iterable[DeviationAssessment]) -> float:
    return 1 - prod((1 - finding.probability for finding in findings), start=1.0)
