"""Mistakes while they happen: after each step, what is odd about it, and how probably it is a mistake.

An oddity is nothing in itself; the demonstrations say what it means. Of the n training videos that show the step, k
have the same oddity. Either it is a habit, at any rate, Beta(1, 1); or it is always a mistake, and then rarely seen, at
a rate from Beta(1, b) with b ≥ 1 and the mean 1 / (1 + b):

    H(k, n) = B(k + 1, n − k + 1),   E(k, n) = b B(k + 1, n − k + b)

With w the share of the graph's clauses that are real requirements, and now that the oddity is seen once more,

    p = w E(k + 1, n + 1) / (w E(k + 1, n + 1) + (1 − w) H(k + 1, n + 1))

is the probability that it is a mistake. w and b are estimated from the same videos, over all clauses of the graph. A
step is right only if all its oddities are habits, taken as independent: its own probability is 1 − Π (1 − p).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import exp, lgamma, log, log1p, prod
from typing import Any

from msg2.assist.oddities import Kind, Oddity, Trail
from msg2.graph import SubtaskGraph
from msg2.options import OnlineOptions
from msg2.task import Segment, Step, Task, Video


@dataclass(frozen=True, slots=True)
class Finding:
    """An oddity, the `times` that training videos have it out of their `chances`, and how probably it is a mistake."""

    oddity: Oddity
    times: int
    chances: int
    probability: float

    def to_json(self) -> dict[str, Any]:
        """Plain values; the clause as in a graph file."""
        odd = self.oddity
        return {
            "kind": odd.kind,
            "other": odd.other,
            "clause": None if odd.clause is None else odd.clause.to_json(),
            "times": self.times,
            "chances": self.chances,
            "probability": self.probability,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """One step as it was judged when it came; `start` is in seconds (None without times), `position` counts from 1.

    `probability` is that of a mistake, from all `findings`; `mistake` whether it reaches the operating point. `skipped`
    are the steps that it lacks, to be told apart from those that merely come late only by waiting.
    """

    step: Step
    start: float | None
    position: int
    probability: float
    mistake: bool
    findings: tuple[Finding, ...]
    skipped: tuple[Finding, ...]

    def probability_of(self, *kinds: Kind) -> float:
        """The probability of a mistake from the findings of these kinds alone."""
        return _together(finding for finding in self.findings if finding.oddity.kind in kinds)

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return {
            "step": self.step,
            "start": self.start,
            "position": self.position,
            "probability": self.probability,
            "mistake": self.mistake,
            "findings": [finding.to_json() for finding in self.findings],
            "skipped": [finding.to_json() for finding in self.skipped],
        }


@dataclass(frozen=True, slots=True)
class Habits:
    """How often training videos have an oddity: out of `videos`, those `showing` a step, and those with each oddity."""

    videos: int
    showing: Mapping[Step, int]
    odd: Mapping[Oddity, int]

    @staticmethod
    def of(graph: SubtaskGraph, videos: Iterable[Video]) -> Habits:
        """The habits of `videos`, judged with `graph`; a video counts once for each oddity, however often it has it."""
        number, showing, odd = 0, Counter[Step](), Counter[Oddity]()
        for video in videos:
            number, trail = number + 1, Trail(graph)
            showing.update({segment.step for segment in video.segments})
            odd.update({oddity for segment in video.segments for oddity in trail.oddities(segment)})
        return Habits(number, showing, odd)

    def without(self, other: Habits) -> Habits:
        """The habits of the videos that are left when those of `other` are taken out."""
        showing, odd = Counter(self.showing) - Counter(other.showing), Counter(self.odd) - Counter(other.odd)
        return Habits(self.videos - other.videos, showing, odd)


@dataclass(frozen=True, slots=True)
class Noise:
    """`genuine`, w: the share of the graph's clauses that are real requirements; `rarity`, b: how seldom they break."""

    genuine: float
    rarity: float

    @staticmethod
    def of(graph: SubtaskGraph, habits: Habits, options: OnlineOptions) -> Noise:
        """The most probable noise given k and n of every clause: expectation maximisation from full trust in the graph.

        Beforehand w is Beta(2, 2), and b as the options believe. A rate θ from Beta(1, b), met k times in n, has the
        mean E[−log(1 − θ)] = Σ_{j = 0 … k} 1 / (b + n − k + j), from which b is 1 over its mean over real requirements.
        """
        clauses = [
            Oddity("premature", n, None, clause) for n in graph.steps for clause in graph.precondition(n).clauses()
        ]
        counts = [(habits.odd.get(odd, 0), habits.showing.get(odd.step, 0)) for odd in clauses]
        shares = [1.0] * len(counts)  # how probably each clause is a real requirement
        believed = rarity = 1 / options.by_mistake - 1
        for _ in range(options.rounds):
            logs = [sum(1 / (rarity + n - k + j) for j in range(k + 1)) for k, n in counts]
            total = 1 / believed + sum(share * log for share, log in zip(shares, logs, strict=True))
            rarity = max(1.0, (1 + sum(shares)) / total)
            noise = Noise((1 + sum(shares)) / (2 + len(shares)), rarity)
            shares = [mistake_probability(times, chances, noise) for times, chances in counts]
        return noise


def watch(graph: SubtaskGraph, training: Task | Habits, options: OnlineOptions | None = None) -> Watch:
    """A watch over one demonstration, by the graph and the habits of the `training` videos.

    The videos should keep repeated steps (`msg2.read(…, repeats="keep")`), or every repetition is a surprise.

    >>> from msg2.graph import step
    >>> seen = [Video(f"v{number}", [Segment("whisk"), Segment("dip"), Segment("fry")]) for number in range(9)]
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> toast = watch(graph, Task("toast", graph.steps, seen))
    >>> [(name, toast.step(name).mistake) for name in ["whisk", "fry"]]
    [('whisk', False), ('fry', True)]
    >>> verdict = toast.step("dip")
    >>> verdict.findings[0].oddity.kind, round(verdict.probability, 2)
    ('out of order', 0.85)
    """
    habits = training if isinstance(training, Habits) else Habits.of(graph, training)
    options = options or OnlineOptions()
    return Watch(graph, habits, options, Noise.of(graph, habits, options))


@dataclass
class Watch:
    """Judges the steps of one demonstration in the order in which they come; see `watch`."""

    graph: SubtaskGraph
    habits: Habits
    options: OnlineOptions
    noise: Noise
    _trail: Trail = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._trail = Trail(self.graph)

    def step(self, name: Step, start: float | None = None, end: float | None = None) -> Verdict:
        """The verdict on the step that comes now, which depends on nothing that comes later.

        Times are seconds; without an `end` the step takes no time. A step counts as completed for those that start when
        it has ended (without times: for all that come after it). Steps must come in the order of their starts.
        """
        segment = Segment(name, start, start if end is None else end)
        odd = list(self._trail.oddities(segment))
        if name not in self.habits.showing:
            odd.append(Oddity("never seen", name))
        found = [self._finding(oddity) for oddity in odd]
        findings = tuple(finding for finding in found if finding.oddity.kind != "skipped")
        skipped = tuple(finding for finding in found if finding.oddity.kind == "skipped")
        probability = _together(findings)
        mistake = probability >= self.options.threshold
        return Verdict(name, start, self._trail.length, probability, mistake, findings, skipped)

    def video(self, video: Video) -> tuple[Verdict, ...]:
        """The verdicts on all segments of a video, from its beginning: what was watched so far plays no part."""
        afresh = Watch(self.graph, self.habits, self.options, self.noise)
        return tuple(afresh.step(segment.step, segment.start, segment.end) for segment in video.segments)

    def _finding(self, oddity: Oddity) -> Finding:
        habits, noise = self.habits, self.noise
        if oddity.clause is None:  # no clause is involved: a habit or a mistake with even odds
            noise = replace(noise, genuine=0.5)
        times = habits.odd.get(oddity, 0)
        chances = habits.videos if oddity.kind == "never seen" else habits.showing.get(oddity.step, 0)
        return Finding(oddity, times, chances, mistake_probability(times + 1, chances + 1, noise))


def mistake_probability(times: int, chances: int, noise: Noise) -> float:
    """w E / (w E + (1 − w) H): whether what `times` of `chances` videos have is a mistake, each time, or a habit.

    >>> [round(mistake_probability(times, 16, Noise(0.5, 19)), 2) for times in (1, 2, 3, 6)]
    [0.81, 0.66, 0.46, 0.05]
    """
    k, n, b = times, chances, noise.rarity
    mistake = log(noise.genuine) + log(b) + lgamma(n - k + b) - lgamma(n + 1 + b)
    habit = log1p(-noise.genuine) + lgamma(n - k + 1) - lgamma(n + 2)
    return 1 / (1 + exp(min(habit - mistake, 700.0)))


def _together(findings: Iterable[Finding]) -> float:
    return 1 - prod((1 - finding.probability for finding in findings), start=1.0)
