"""Phrases that are said around each step more often than elsewhere, ranked by the log-likelihood ratio G²."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from msg2.task import Step, Task

AROUND_SECONDS = 10.0  # seconds before a step begins and after it ends that count as around it, unless told otherwise


@dataclass(frozen=True, slots=True)
class PhraseStatistics:
    """How often a phrase is said around a step, and elsewhere."""

    phrase: str
    near: int
    """Times it is said around the step."""
    times: int
    """Times it is said at all."""
    videos: int
    """In which it is said around the step."""
    lift: float
    """How much more often it is said around the step than phrases in general."""
    g2: float
    """Twice the log-likelihood ratio of "its frequency here differs" to "the step makes no difference"."""


def phrases_around_steps(task: Task, seconds: float = AROUND_SECONDS) -> dict[Step, list[PhraseStatistics]]:
    """Find the phrases that are said more often around a step than elsewhere, ranked by G² = 2 Σ O ln(O / E)."""
    times: Counter[str] = Counter()
    near: Mapping[Step, Counter[str]] = defaultdict(Counter)
    videos: Mapping[Step, Counter[str]] = defaultdict(Counter)
    for video in task:
        times.update(sentence.text.casefold() for sentence in video.sentences)
        for step in video.sequence():
            spans = [
                (segment.start - seconds, segment.end + seconds)
                for segment in video.segments
                if segment.step == step and segment.start is not None and segment.end is not None
            ]
            around = [
                sentence.text.casefold()
                for sentence in video.sentences
                if any(start <= sentence.end and sentence.start <= end for start, end in spans)
            ]
            near[step].update(around)
            videos[step].update(set(around))
    return {step: _rank_phrases(near[step], times, videos[step]) for step in task.steps}


def _rank_phrases(near: Counter[str], times: Counter[str], videos: Counter[str]) -> list[PhraseStatistics]:
    around, everywhere = near.total(), times.total()
    ranked = []
    for phrase, count in near.items():
        lift = (count / times[phrase]) / (around / everywhere)
        if lift > 1:
            g2 = _g2(count, times[phrase] - count, around - count, everywhere - around - times[phrase] + count)
            ranked.append(PhraseStatistics(phrase, count, times[phrase], videos[phrase], lift, g2))
    return sorted(ranked, key=lambda phrase: (-round(phrase.g2, 9), phrase.phrase))


def _g2(a: int, b: int, c: int, d: int) -> float:
    """G² of the table ((a, b), (c, d)): observed counts against those of rows and columns that are independent."""
    total, sums = a + b + c + d, ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    return 2 * sum(count * math.log(count * total / (row * column)) for count, row, column in sums if count)
