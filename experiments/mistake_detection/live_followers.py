"""Who follows a run live in the experiment `live`: msg2, and what one would try first.

A follower is told what a recogniser reports, and says whether it raises an alarm, and which step it expects next.
Those that take one report per segment follow a stream of frames through `SmoothedFrames`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias

import numpy as np

from experiments.logistic_regression import Numbers
from experiments.mistake_detection.simulated_recogniser import Report
from msg2.assist import Assistant, StepReport
from msg2.task import Step, Task

Input: TypeAlias = Literal["did", "saw", "observe"]
SMOOTHING_SECONDS = 5.0
"""Time constant of the moving average over frames."""
LEAST_SECONDS = 3.0
"""What is on top of the moving average for a shorter time is no step."""
_MENTIONED, _CANDIDATES = 1e-3, 3
"""A recogniser mentions what is more probable than this; of a segment, the three most probable steps."""


class Follower(Protocol):
    """One run, followed live."""

    def tell(self, report: Report) -> bool:
        """Take in what was reported; whether there is an alarm."""
        ...

    def expects(self) -> Step | None:
        """The step that probably comes next."""
        ...


@dataclass
class AssistantFollower:
    """`msg2.Assistant`, told the best guess (`did`), one segment (`saw`), or one frame (`observe`) at a time."""

    assistant: Assistant
    steps: Sequence[Step]
    use: Input
    reports: list[StepReport] = field(default_factory=list)

    def tell(self, report: Report) -> bool:
        """Whether the assistant raises an alarm."""
        answer = self._answer(report)
        if answer is not None:
            self.reports.append(answer)
        return answer is not None and answer.mistake

    def _answer(self, report: Report) -> StepReport | None:
        probabilities, at = report.probabilities, report.at
        if self.use == "did":
            best = int(probabilities.argmax())
            return self.assistant.did(self.steps[best], at=at) if best < len(self.steps) else None
        seen = {name: float(p) for name, p in zip(self.steps, probabilities, strict=False) if p > _MENTIONED}
        if self.use == "observe":
            return self.assistant.observe(seen, at=at)
        top = dict(sorted(seen.items(), key=lambda item: -item[1])[:_CANDIDATES])
        if not top:
            return None
        share = (1 - probabilities[-1]) / max(sum(top.values()), 1e-9)
        return self.assistant.saw({name: min(1.0, float(p * share)) for name, p in top.items()}, at=at)

    def expects(self) -> Step | None:
        """Its first suggestion."""
        return next((suggestion.step for suggestion in self.assistant.next(1)), None)


@dataclass
class FixedOrder:
    """A list that is worked off from top to bottom: whatever comes before a step above it is a mistake."""

    order: Sequence[Step]
    steps: Sequence[Step]
    done: set[Step] = field(default_factory=set)

    @staticmethod
    def of(videos: Task, steps: Sequence[Step]) -> FixedOrder:
        """The steps by their mean place in the videos."""
        places: dict[Step, list[float]] = {name: [] for name in steps}
        for video in videos:
            sequence = video.sequence()
            for place, name in enumerate(sequence):
                places[name].append(place / len(sequence))
        return FixedOrder(sorted(steps, key=lambda name: (np.mean(places[name] or [1.0]), name)), steps)

    def tell(self, report: Report) -> bool:
        """Whether the best guess is a new step, and one above it is not done."""
        best = int(report.probabilities.argmax())
        if best == len(self.steps) or self.steps[best] in self.done:
            return False
        expected = self.expects()
        self.done.add(self.steps[best])
        return self.steps[best] != expected

    def expects(self) -> Step | None:
        """The first that is not done."""
        return next((name for name in self.order if name not in self.done), None)


@dataclass
class BigramFilter:
    """Which step was done last, by a filter whose transitions are counted in videos; it knows no mistakes."""

    transitions: Numbers
    """[last, next], with the start of the run as the last row; shape (N + 1, N)."""
    steps: Sequence[Step]
    belief: Numbers
    """Of the step done last, or the start."""

    @staticmethod
    def of(videos: Task, steps: Sequence[Step]) -> BigramFilter:
        """Counts in the videos, and half a video more for every step."""
        counts = np.full((len(steps) + 1, len(steps)), 0.5 / len(steps))
        index = {name: place for place, name in enumerate(steps)}
        for video in videos:
            places = [len(steps), *(index[name] for name in video.sequence())]
            for last, following in pairwise(places):
                counts[last, following] += 1
        start = np.zeros(len(steps) + 1)
        start[-1] = 1.0
        return BigramFilter(counts / counts.sum(axis=1, keepdims=True), steps, start)

    def tell(self, report: Report) -> bool:
        """Move on; there are no alarms."""
        moved = len(self.steps) * report.probabilities[:-1] * (self.belief @ self.transitions)
        updated = float(report.probabilities[-1]) * self.belief
        updated[:-1] += moved
        if updated.sum() > 0:
            self.belief = updated / updated.sum()
        return False

    def expects(self) -> Step | None:
        """The most probable next step."""
        return self.steps[int((self.belief @ self.transitions).argmax())]


@dataclass
class SmoothedFrames:
    """Frames for a follower of segments: what leads the moving average for a while has been done when it loses it."""

    follower: Follower
    average: Numbers | None = None
    last: float = 0.0
    since: float = 0.0
    leader: int | None = None

    def tell(self, report: Report) -> bool:
        """Tell the follower of a segment that has ended, if one has."""
        segment = self._ended(report)
        return segment is not None and self.follower.tell(segment)

    def _ended(self, report: Report) -> Report | None:
        before = report.probabilities if self.average is None else self.average
        keep = np.exp(-(report.at - self.last) / SMOOTHING_SECONDS)
        self.average = keep * before + (1 - keep) * report.probabilities
        self.last, leader = report.at, int(self.average.argmax())
        if leader == self.leader:
            return None
        lasted, step, nothing = report.at - self.since, self.leader, len(self.average) - 1
        self.leader, self.since = leader, report.at
        return Report(report.at, before) if step not in (None, nothing) and lasted >= LEAST_SECONDS else None

    def expects(self) -> Step | None:
        """What the follower expects."""
        return self.follower.expects()
