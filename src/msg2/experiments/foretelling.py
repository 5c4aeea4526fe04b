"""Ways to foretell the steps of a video, learnt from training videos: by their labels alone, or by a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from msg2.assist import Ranker, recency
from msg2.assist.evaluation import chance
from msg2.experiments.heard import Memory, cross_filled
from msg2.experiments.next_step import DELTA
from msg2.inference import infer
from msg2.media.features import Features
from msg2.options import VideoNextStepOptions
from msg2.task import Step, Task, Video

Foretold: TypeAlias = Callable[[Video], Sequence[Mapping[Step, float]]]
"""From a video to the probability of each step that is left, before every step of `video.sequence()`."""


@dataclass(frozen=True, slots=True)
class Senses:
    """What is known of videos besides their labels."""

    features: Callable[[Video], Features]
    text_only: bool
    """There are no frames: sentences stand in their place."""
    encode: Memory
    """Of sentences, for the state predictor."""


Learner: TypeAlias = Callable[[Task, Senses, VideoNextStepOptions], Foretold]


def by_labels(ranker_from: Callable[[Task], Ranker]) -> Learner:
    """What a ranker says, which knows only the steps that are done."""
    return lambda training, *_: _asked(ranker_from(training))


def by_filled_labels(training: Task, senses: Senses, options: VideoNextStepOptions) -> Foretold:
    """Full MSG²: the graph of labels that the state predictor filled up; videos that say nothing stay as they are."""
    heard = training.with_videos(video for video in training if video.sentences)
    silent = [video for video in training if not video.sentences]
    full = training.with_videos([*cross_filled(heard, senses.encode, options.filling), *silent])
    return _asked(recency(infer(full, "msg2", delta=DELTA)))


def by_network(name: str, **changed: Any) -> Learner:
    """The network of this name (see `msg2.states.temporal.networks`), with these of its options changed."""

    def learn(training: Task, senses: Senses, options: VideoNextStepOptions) -> Foretold:
        from msg2.states.temporal.films import films
        from msg2.states.temporal.training import foreseen, trained

        known = films(training, senses.features, text_only=senses.text_only)
        network = trained(name, known, replace(options.network, **changed))

        def foretold(video: Video) -> list[Mapping[Step, float]]:
            seen = films(training.with_videos([video]), senses.features, text_only=senses.text_only)
            return [
                {step: p for step, p in zip(training.steps, row, strict=True) if step not in video.sequence()[:place]}
                for place, row in enumerate(foreseen(network, seen).tolist())
            ]

        return foretold

    return learn


def right(foretold: Foretold, video: Video) -> list[float]:
    """Of each step of the video, the chance that it was the one foretold; as `msg2.assist.evaluate` has it."""
    return [chance(said, came) for said, came in zip(foretold(video), video.sequence(), strict=True)]


def _asked(ranker: Ranker) -> Foretold:
    return lambda video: [ranker(video.sequence()[:place]) for place in range(len(video.sequence()))]
