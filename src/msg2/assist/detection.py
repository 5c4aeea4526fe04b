"""How well mistakes are detected: the protocol of online mistake detection, and ranking quality without a threshold.

Every step is judged. In the protocol a sequence ends with its first mistake, since what comes after it can no longer be
called right or wrong for itself; the score is the mean of the F1 of "correct" and the F1 of "mistake".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Judged:
    """A step: how probably it is a mistake, and whether it is one."""

    probability: float
    mistake: bool


@dataclass(frozen=True, slots=True)
class Detection:
    """Steps by verdict and truth: mistakes found, false `alarms`, mistakes `missed`, correct steps let `passed`."""

    found: int
    alarms: int
    missed: int
    passed: int

    @property
    def precision(self) -> float | None:
        """Share of the alarms that are mistakes; None without any."""
        return _ratio(self.found, self.found + self.alarms)

    @property
    def recall(self) -> float | None:
        """Share of the mistakes that are found; None without any."""
        return _ratio(self.found, self.found + self.missed)

    @property
    def f1_mistake(self) -> float | None:
        """F1 of the mistakes; None where there is neither a mistake nor an alarm."""
        return _ratio(2 * self.found, 2 * self.found + self.alarms + self.missed)

    @property
    def f1_correct(self) -> float | None:
        """F1 of the correct steps; None where there is none and none was passed."""
        return _ratio(2 * self.passed, 2 * self.passed + self.alarms + self.missed)

    @property
    def f1_mean(self) -> float | None:
        """Macro mean of the two; None where one of them is."""
        if self.f1_mistake is None or self.f1_correct is None:
            return None
        return (self.f1_mistake + self.f1_correct) / 2


def detection(steps: Iterable[Judged], threshold: float) -> Detection:
    """Verdicts against truth; an alarm is a probability of at least `threshold`.

    >>> detection([Judged(0.9, True), Judged(0.6, False), Judged(0.1, False), Judged(0.2, True)], 0.5)
    Detection(found=1, alarms=1, missed=1, passed=1)
    """
    cells = [(step.probability >= threshold, step.mistake) for step in steps]
    pairs = ((True, True), (True, False), (False, True), (False, False))
    return Detection(*(cells.count(pair) for pair in pairs))


def until_first_mistake(steps: Sequence[Judged]) -> Sequence[Judged]:
    """The sequence cut after its first (true) mistake.

    >>> len(until_first_mistake([Judged(0.1, False), Judged(0.1, True), Judged(0.1, False)]))
    2
    """
    first = next((place for place, step in enumerate(steps) if step.mistake), len(steps))
    return steps[: first + 1]


def auc(steps: Iterable[Judged]) -> float | None:
    """The probability that a mistake ranks above a correct step, ties counting half; None where one of them is missing.

    >>> auc([Judged(0.9, True), Judged(0.9, False), Judged(0.1, False)])
    0.75
    """
    correct = mistakes = 0
    above = 0.0
    for _, tied in groupby(sorted(steps, key=lambda step: step.probability), key=lambda step: step.probability):
        truths = [step.mistake for step in tied]
        now = sum(truths)
        above += now * (correct + (len(truths) - now) / 2)
        mistakes, correct = mistakes + now, correct + len(truths) - now
    return above / (mistakes * correct) if mistakes and correct else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
