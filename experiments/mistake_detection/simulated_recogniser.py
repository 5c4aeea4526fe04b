"""A recogniser of steps that errs as real ones do: on average it is right so often, and its probabilities are honest.

It gives each step, and "nothing is done", a score: high for what is really done, nearly as high for steps whose names
have words in common, and noise on top. How high is found by bisection, so that the best score is right as often as
asked. The probabilities are a softmax of the scores, with the temperature that makes them most truthful.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.logistic_regression import Numbers
from msg2.task import Step, Video

PAUSES = 0.4
"""Reports during a pause, per segment."""
FRAMES_PER_SECOND = 5
NOISE_MEMORY = 0.96
"""Correlation of the noise of neighbouring frames: it lasts about five seconds."""
SURE = 60.0, 6.0
"""Height of the true score, and inverse temperature, of a recogniser that never errs."""
_TEMPERATURES = (0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_DRAWN = 500
_COMMON_WORDS = frozenset(
    {"the", "a", "of", "to", "in", "and", "with", "or", "for", "until", "about", "on", "it", "into", "from"}
)


@dataclass(frozen=True, slots=True)
class Report:
    """What a recogniser says at a moment: a probability for every step, and last for nothing being done."""

    at: float
    probabilities: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Recogniser:
    """Of the steps of one task; the index after the last step is "nothing is done"."""

    similar: Numbers
    """[true, other]: the other's score as a share of the true one's, shape (N + 1, N + 1)."""
    missed: float
    """How often it says nothing about a step."""
    height: float
    sharpness: float

    @staticmethod
    def with_accuracy(steps: Sequence[Step], accuracy: float) -> Recogniser:
        """A recogniser whose best guess is right with this probability, and that misses half of the rest altogether."""
        similar, missed = name_similarity(steps), (1 - accuracy) / 2
        if accuracy >= 1:
            return Recogniser(similar, 0.0, *SURE)
        rng, nothing = np.random.default_rng(0), len(steps)
        truth = [int(rng.integers(nothing)) if rng.random() < 1 / (1 + PAUSES) else nothing for _ in range(_DRAWN)]
        noise = np.random.default_rng(1).normal(size=(_DRAWN, nothing + 1))
        low, high = 0.0, SURE[0]
        for _ in range(20):
            height = (low + high) / 2
            tried = Recogniser(similar, missed, height, 1.0)
            right = np.mean(
                [tried.scores(true, of_one).argmax() == true for true, of_one in zip(truth, noise, strict=True)]
            )
            low, high = (height, high) if right < accuracy else (low, height)
        noise = np.random.default_rng(2).normal(size=(_DRAWN, nothing + 1))

        def loss(sharpness: float) -> float:
            tried = Recogniser(similar, missed, height, sharpness)
            pairs = zip(truth, noise, strict=True)
            return -float(
                np.mean([math.log(tried.probabilities(true, of_one)[true] + 1e-12) for true, of_one in pairs])
            )

        return Recogniser(similar, missed, height, min(_TEMPERATURES, key=loss))

    def scores(self, truth: int, noise: Numbers) -> Numbers:
        """Of every step and nothing, given what is really done."""
        scores = 0.8 * self.height * self.similar[truth]
        scores[truth] = self.height
        return np.asarray(scores + noise)

    def probabilities(self, truth: int, noise: Numbers) -> Numbers:
        """What it reports."""
        scores = self.sharpness * self.scores(truth, noise)
        powers = np.exp(scores - scores.max())
        return np.asarray(powers / powers.sum())

    def events(self, video: Video, steps: Sequence[Step], rng: np.random.Generator) -> Iterator[Report]:
        """One report at the end of every segment that is not missed, and some during pauses."""
        segments, nothing = sorted(video.segments, key=lambda segment: segment.end or 0.0), len(steps)
        for place, segment in enumerate(segments):
            end = segment.end or 0.0
            if rng.random() >= self.missed:
                yield Report(end, self.probabilities(steps.index(segment.step), rng.normal(size=nothing + 1)))
            if rng.random() < PAUSES:
                later = segments[place + 1].end or 0.0 if place + 1 < len(segments) else end + 5
                yield Report((end + later) / 2, self.probabilities(nothing, rng.normal(size=nothing + 1)))

    def frames(self, video: Video, steps: Sequence[Step], rng: np.random.Generator) -> Iterator[Report]:
        """Five reports a second, with noise that lasts."""
        nothing, shown = len(steps), frame_labels(video, steps)
        noise = rng.normal(size=nothing + 1)
        for number, truth in enumerate(shown.tolist()):
            noise = NOISE_MEMORY * noise + math.sqrt(1 - NOISE_MEMORY**2) * rng.normal(size=nothing + 1)
            yield Report(number / FRAMES_PER_SECOND, self.probabilities(truth, noise))


def frame_labels(video: Video, steps: Sequence[Step]) -> NDArray[np.intp]:
    """The step of each frame, `len(steps)` where nothing is done; of overlapping segments, the one that began last."""
    length = int(max(segment.end or 0.0 for segment in video.segments) * FRAMES_PER_SECOND) + 1
    shown = np.full(length, len(steps), dtype=np.intp)
    for segment in sorted(video.segments, key=lambda segment: segment.start or 0.0):
        first, last = (int((time or 0.0) * FRAMES_PER_SECOND) for time in (segment.start, segment.end))
        shown[first:last] = steps.index(segment.step)
    return shown


def name_similarity(steps: Sequence[Step]) -> Numbers:
    """How easily each step is taken for each other one: more, the more words their names share.

    >>> name_similarity(["cut the bread", "cut an onion"])[0].round(2).tolist()
    [0.0, 0.5, 0.55]
    """
    words = [set(re.findall("[a-z]+", name.lower())) - _COMMON_WORDS for name in steps]
    similar = np.zeros((len(steps) + 1, len(steps) + 1))
    for one, of_one in enumerate(words):
        for other, of_other in enumerate(words):
            if one != other:
                similar[one, other] = min(0.9, 0.2 + 1.2 * len(of_one & of_other) / max(1, len(of_one | of_other)))
    similar[:-1, -1], similar[-1, :-1] = 0.55, 0.25
    return similar
