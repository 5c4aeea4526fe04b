"""Phrases that are said around each step more often than elsewhere, ranked by their log-likelihood ratio G²."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msg2.task import Sentence, Step, Task, Video

AROUND_SECONDS = 10.0
"""Seconds before a step begins and after it ends that count as around it, unless told otherwise."""


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
    """How many times as often as phrases in general it is said around the step."""
    g2: float
    """Twice the log-likelihood ratio of "it is said more, or less, often here" to "the step is all one to it"."""


def phrases_around_steps(task: Task, seconds: float = AROUND_SECONDS) -> dict[Step, list[PhraseStatistics]]:
    """Find the phrases that are said more often around a step than elsewhere.

    They are ranked by G² = 2 Σ O ln(O / E) over the four cells, around or not and this phrase or another.

    Parameters
    ----------
    task : Task
        It has the phrases as the sentences of its videos.
    seconds : float, optional
        How long before a step begins and after it ends counts as around it.

    Returns
    -------
    dict of Step to list of PhraseStatistics
        For every step its phrases, the largest G² first.

    >>> from msg2.task import Segment
    >>> sentences = [Sentence("flip it", 5.0, 6.0), Sentence("thank you", 50.0, 51.0)]
    >>> task = Task("toast", ["flip"], [Video("v1", [Segment("flip", 4.0, 8.0)], sentences)])
    >>> [(phrase.phrase, phrase.near, phrase.times) for phrase in phrases_around_steps(task, 10)["flip"]]
    [('flip it', 1, 1)]
    """
    times: Counter[str] = Counter()
    near: Mapping[Step, Counter[str]] = defaultdict(Counter)
    videos: Mapping[Step, Counter[str]] = defaultdict(Counter)
    for video in task:
        times.update(sentence.text.casefold() for sentence in video.sentences)
        for step in video.sequence():
            around = [sentence.text.casefold() for sentence in _sentences_near(video, step, seconds)]
            near[step].update(around)
            videos[step].update(set(around))
    return {step: _rank_phrases(near[step], times, videos[step]) for step in task.steps}


def _sentences_near(video: Video, step: Step, seconds: float) -> Iterator[Sentence]:
    spans = [
        (segment.start - seconds, segment.end + seconds)
        for segment in video.segments
        if segment.step == step and segment.start is not None and segment.end is not None
    ]
    for sentence in video.sentences:
        if any(start <= sentence.end and sentence.start <= end for start, end in spans):
            yield sentence


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
