"""What is said around each step: the first thing to look at where videos have narration."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msg2.task import Sentence, Step, Task, Video


@dataclass(frozen=True, slots=True)
class Said:
    """How often a phrase is said around a step, and elsewhere."""

    phrase: str
    near: int
    """Times it is said around the step."""
    times: int
    """Times it is said at all."""
    videos: int
    """In which it is said around the step."""
    lift: float
    """How many times as often as phrases in general it is said around the step."""
    surprise: float
    """G²: twice the log-likelihood ratio of "it is said more, or less, often here" to "the step is all one to it"."""


def said_around(task: Task, seconds: float) -> dict[Step, list[Said]]:
    """Step -> the phrases that are said more often than others from `seconds` before it begins to as long after it.

    The most telling come first: those whose G² = 2 Σ O ln(O / E) over the four cells, around or not and this phrase or
    another, is largest. `task` has the phrases as the sentences of its videos.

    >>> from msg2.task import Segment
    >>> said = [Sentence("flip it", 5.0, 6.0), Sentence("thank you", 50.0, 51.0)]
    >>> task = Task("toast", ["flip"], [Video("v1", [Segment("flip", 4.0, 8.0)], said)])
    >>> [(one.phrase, one.near, one.times) for one in said_around(task, 10)["flip"]]
    [('flip it', 1, 1)]
    """
    times: Counter[str] = Counter()
    near: Mapping[Step, Counter[str]] = defaultdict(Counter)
    videos: Mapping[Step, Counter[str]] = defaultdict(Counter)
    for video in task:
        times.update(sentence.text.casefold() for sentence in video.sentences)
        for step in video.sequence():
            found = [sentence.text.casefold() for sentence in _near(video, step, seconds)]
            near[step].update(found)
            videos[step].update(set(found))
    return {step: _ranked(near[step], times, videos[step]) for step in task.steps}


def _near(video: Video, step: Step, seconds: float) -> Iterator[Sentence]:
    spans = [
        (one.start - seconds, one.end + seconds)
        for one in video.segments
        if one.step == step and one.start is not None and one.end is not None
    ]
    for sentence in video.sentences:
        if any(start <= sentence.end and sentence.start <= end for start, end in spans):
            yield sentence


def _ranked(near: Counter[str], times: Counter[str], videos: Counter[str]) -> list[Said]:
    around, everywhere = near.total(), times.total()
    found = []
    for phrase, count in near.items():
        lift = (count / times[phrase]) / (around / everywhere)
        if lift > 1:
            surprise = _g2(count, times[phrase] - count, around - count, everywhere - around - times[phrase] + count)
            found.append(Said(phrase, count, times[phrase], videos[phrase], lift, surprise))
    return sorted(found, key=lambda one: (-round(one.surprise, 9), one.phrase))


def _g2(a: int, b: int, c: int, d: int) -> float:
    """G² of the table ((a, b), (c, d)): observed counts against those of rows and columns that are independent."""
    total, sums = a + b + c + d, ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    return 2 * sum(seen * math.log(seen * total / (row * column)) for seen, row, column in sums if seen)
