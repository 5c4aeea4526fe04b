"""What a simulated video shows and says, and when: steps only, before they become vectors.

What was performed is seen and spoken of whether or not anybody labelled it; what was skipped is not. Some shots and
sentences are about what is performed at another time, and mislead. Rates are those of `msg2.options.FeatureOptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.options import FeatureOptions
from msg2.task import Segment, Step
from msg2.worlds.noise import Demonstration

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """One video with F frames and S sentences, in a world of N steps; a row of 0s shows or says nothing of the task.

    `frame_times` (F,) and `sentence_times` (S, 2) are seconds; `shots` (F,) numbers the shot of each frame; `shown`
    (F, N) says how strongly a frame shows each step, 1 where it is performed and visible; `done` (F, N) is 1 once the
    step has been completed; `mentioned` (S, N) is 1 where a sentence speaks of the step.
    """

    frame_times: Array
    shots: NDArray[np.int64]
    shown: Array
    done: Array
    sentence_times: Array
    mentioned: Array


def video_script(
    show: Demonstration, steps: Sequence[Step], options: FeatureOptions, rng: np.random.Generator
) -> Script:
    """The script of `show` in a world of `steps`.

    >>> show = Demonstration("v1", ("fry", "flip"), (Segment("fry", 1.0, 3.0),), (None,))
    >>> plain = FeatureOptions(blank=0, distractors=0, after_seconds=1)
    >>> script = video_script(show, ["flip", "fry"], plain, np.random.default_rng(0))
    >>> script.shown[:, 1].tolist(), script.done[:, 1].tolist(), script.shown[:, 0].tolist()
    ([0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0])
    """
    which = np.eye(len(steps))[[steps.index(segment.step) for segment in show.performed]]
    spans = np.array([_times(segment) for segment in show.performed]).reshape(-1, 2)
    seconds = spans.max(initial=0) + options.after_seconds
    frame_times = np.arange(np.floor(seconds * options.frames_per_second) + 1) / options.frames_per_second
    shots = (frame_times // options.shot_seconds).astype(np.int64)
    (starts, ends), at = spans.T, frame_times[:, None]
    visible = rng.random(len(at)) >= options.blank
    performed = ((starts <= at) & (at < ends) & visible[:, None]) @ which > 0
    lying_around = _out_of_place(options.distractors, 1 + int(shots[-1]), which, rng)[shots]
    sentence_times = _sentence_times(seconds, options)
    return Script(
        frame_times,
        shots,
        np.maximum(performed, options.distractor_strength * lying_around),
        ((ends <= at) @ which > 0).astype(np.float64),
        sentence_times,
        _mentions(sentence_times, spans, which, options, rng),
    )


def _times(segment: Segment) -> tuple[float, float]:
    assert segment.start is not None
    assert segment.end is not None
    return segment.start, segment.end


def _out_of_place(rate: float, count: int, which: Array, rng: np.random.Generator) -> Array:
    """Shape (count, steps): with probability `rate` a row has one of the performed occurrences, any of them.

    What is never done is neither shown nor spoken of: nothing else would tell a skipped step from an unlabelled one.
    """
    places = np.floor(len(which) * rng.random(count)).astype(np.int64)
    chosen = rng.random((count, 1)) < rate
    return np.where(chosen, which[places], 0.0) if len(which) else np.zeros((count, which.shape[1]))


def _sentence_times(seconds: float, options: FeatureOptions) -> Array:
    starts = np.arange(np.ceil(seconds / options.sentence_seconds)) * options.sentence_seconds
    return np.stack([starts, starts + options.sentence_seconds], axis=1)


def _mentions(
    sentence_times: Array, spans: Array, which: Array, options: FeatureOptions, rng: np.random.Generator
) -> Array:
    """Shape (S, N): sentences speak of one narrated occurrence, of another performed step by the way, or of none.

    The narration of an occurrence is as long as it is, one sentence at least; where two meet, the later one counts.
    """
    shifts = options.shift_seconds * rng.standard_normal(len(spans))
    narrated = rng.random(len(spans)) < options.narrated
    on_topic = rng.random((len(sentence_times), 1)) >= options.off_topic
    mentioned = _out_of_place(options.loose, len(sentence_times), which, rng)
    reach = np.maximum(np.diff(spans)[:, 0], options.sentence_seconds) / 2
    distances = np.abs(sentence_times.mean(axis=1, keepdims=True) - spans.mean(axis=1) - shifts)
    for sentence, occurrence in np.argwhere((distances <= reach) & narrated & on_topic):
        mentioned[sentence] = which[occurrence]
    return mentioned
