"""The storyboard of a simulated video: what it shows and says, and when, before that becomes vectors or frames.

What was performed is seen and spoken of whether or not anybody labelled it; what was skipped is not. Some shots and
sentences are about what is performed at another time, and mislead. Rates are those of `StoryboardOptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.simulation.simulator import Demonstration
from msg2.task import Step
from msg2.validation import require, require_probability


@dataclass(frozen=True, slots=True)
class StoryboardOptions:
    """What simulated videos show and say, and when; rates are probabilities."""

    shot_seconds: float = 4.0
    """Length of a shot; cuts do not care for steps."""
    frames_per_second: float = 1.0
    after_seconds: float = 5.0
    """The video goes on this long after its last step."""
    blank: float = 0.15
    """Of each frame of a performed step: nothing of the step is to be seen (a transition, a hand, a face)."""
    distractors: float = 0.15
    """Of each shot: it also shows what belongs to a step that is performed at another time of the video."""
    distractor_strength: float = 0.6
    """How strongly a distractor shows, where a performed step is 1."""
    sentence_seconds: float = 3.5
    """One sentence follows the other, each this long."""
    narrated: float = 0.7
    """Of each performed occurrence, labelled or not: the narrator speaks of it."""
    shift_seconds: float = 4.0
    """Standard deviation of the time by which its narration precedes or follows it."""
    off_topic: float = 0.3
    """Of each sentence: it is not about what is narrated then."""
    loose: float = 0.1
    """Of each sentence that is not about what is done then: it mentions a step that is performed at another time."""

    def __post_init__(self) -> None:
        for name in ("blank", "distractors", "narrated", "off_topic", "loose"):
            require_probability(name.replace("_", "-"), getattr(self, name))
        for name in ("distractor_strength", "after_seconds", "shift_seconds"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), f"{name.replace('_', '-')} is {value}, it must be a number from 0 up")
        for name in ("shot_seconds", "frames_per_second", "sentence_seconds"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name.replace('_', '-')} is {value}, it must be a number above 0")


@dataclass(frozen=True, slots=True, eq=False)
class Storyboard:
    """One video with F frames and S sentences, in a world of N steps; a row of 0s shows or says nothing of the task.

    `frame_times` (F,) and `sentence_times` (S, 2) are seconds; `shots` (F,) numbers the shot of each frame; `shown`
    (F, N) says how strongly a frame shows each step, 1 where it is performed and visible; `done` (F, N) is 1 once the
    step has been completed; `mentioned` (S, N) is 1 where a sentence speaks of the step.
    """

    frame_times: FloatArray
    shots: NDArray[np.int64]
    shown: FloatArray
    done: FloatArray
    sentence_times: FloatArray
    mentioned: FloatArray


def draw_storyboard(
    demonstration: Demonstration, steps: Sequence[Step], options: StoryboardOptions, rng: np.random.Generator
) -> Storyboard:
    """Draw the storyboard of a demonstration.

    Parameters
    ----------
    demonstration : Demonstration
        What was performed.
    steps : sequence of Step
        All N steps of the world, in the order of the storyboard's columns.
    options : StoryboardOptions
        Rates and times.
    rng : numpy.random.Generator
        Random numbers.

    Returns
    -------
    Storyboard
        Of F frames and S sentences.

    >>> from msg2.task import Segment
    >>> demonstration = Demonstration("v1", ("fry", "flip"), (Segment("fry", 1.0, 3.0),), (None,))
    >>> plain = StoryboardOptions(blank=0, distractors=0, after_seconds=1)
    >>> storyboard = draw_storyboard(demonstration, ["flip", "fry"], plain, np.random.default_rng(0))
    >>> storyboard.shown[:, 1].tolist(), storyboard.done[:, 1].tolist(), storyboard.shown[:, 0].tolist()
    ([0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0])
    """
    which = np.eye(len(steps))[[steps.index(segment.step) for segment in demonstration.performed]]
    spans = np.array([(segment.start, segment.end) for segment in demonstration.performed], float).reshape(-1, 2)
    seconds = spans.max(initial=0) + options.after_seconds
    frame_times = np.arange(np.floor(seconds * options.frames_per_second) + 1) / options.frames_per_second
    shots = (frame_times // options.shot_seconds).astype(np.int64)
    (starts, ends), at = spans.T, frame_times[:, None]
    visible = rng.random(len(at)) >= options.blank
    performed = ((starts <= at) & (at < ends) & visible[:, None]) @ which > 0
    distractors = _draw_distractors(options.distractors, 1 + int(shots[-1]), which, rng)[shots]
    shown = np.maximum(performed, options.distractor_strength * distractors)
    done = ((ends <= at) @ which > 0).astype(np.float64)
    sentence_times = _sentence_times(seconds, options)
    mentioned = _draw_mentions(sentence_times, spans, which, options, rng)
    return Storyboard(frame_times, shots, shown, done, sentence_times, mentioned)


def _draw_distractors(rate: float, count: int, which: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Shape (count, N): with probability `rate` a row has one of the performed occurrences, any of them.

    What is never done is neither shown nor spoken of: nothing else would tell a skipped step from an unlabelled one.
    """
    places = np.floor(len(which) * rng.random(count)).astype(np.int64)
    chosen = rng.random((count, 1)) < rate
    return np.where(chosen, which[places], 0.0) if len(which) else np.zeros((count, which.shape[1]))


def _sentence_times(seconds: float, options: StoryboardOptions) -> FloatArray:
    starts = np.arange(np.ceil(seconds / options.sentence_seconds)) * options.sentence_seconds
    return np.stack([starts, starts + options.sentence_seconds], axis=1)


def _draw_mentions(
    sentence_times: FloatArray,
    spans: FloatArray,
    which: FloatArray,
    options: StoryboardOptions,
    rng: np.random.Generator,
) -> FloatArray:
    """Shape (S, N): sentences speak of one narrated occurrence, of another performed step by the way, or of none.

    The narration of an occurrence is as long as it is, one sentence at least; where two meet, the later one counts.
    """
    shifts = options.shift_seconds * rng.standard_normal(len(spans))
    narrated = rng.random(len(spans)) < options.narrated
    on_topic = rng.random((len(sentence_times), 1)) >= options.off_topic
    mentioned = _draw_distractors(options.loose, len(sentence_times), which, rng)
    reach = np.maximum(np.diff(spans)[:, 0], options.sentence_seconds) / 2
    distances = np.abs(sentence_times.mean(axis=1, keepdims=True) - spans.mean(axis=1) - shifts)
    for sentence, occurrence in np.argwhere((distances <= reach) & narrated & on_topic):
        mentioned[sentence] = which[occurrence]
    return mentioned
