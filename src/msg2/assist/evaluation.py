"""How often a ranker is right about the next step of videos it has not seen (Sec. 5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from msg2.assist.next_step import Ranker
from msg2.errors import InputError, shortened
from msg2.options import SplitOptions
from msg2.task import Step, Task, Video

_TIE = 1e-9
"""Probabilities that are no further apart are equal."""


@dataclass(frozen=True, slots=True)
class NextStepScore:
    """Expected number of `correct` predictions out of `total`."""

    correct: float
    total: int

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None where nothing was predicted."""
        return self.correct / self.total if self.total else None


def evaluate(ranker: Ranker, videos: Iterable[Video]) -> NextStepScore:
    """The most probable step against the step that came, at every place of every video, the first step included.

    Completed are all earlier steps of `video.sequence()`. Where k steps share the highest probability, the right one
    among them counts 1/k: the expected value of a random choice, so that the score has no seed in it.

    >>> from msg2.task import Segment
    >>> def undecided(done):
    ...     return {"a": 0.5, "b": 0.5}
    >>> evaluate(undecided, [Video("v", [Segment("a")])])
    NextStepScore(correct=0.5, total=1)
    """
    correct, total = 0.0, 0
    for video in videos:
        sequence = video.sequence()
        total += len(sequence)
        correct += sum(chance(ranker(sequence[:place]), came) for place, came in enumerate(sequence))
    return NextStepScore(correct, total)


def split(task: Task, options: SplitOptions | None = None) -> tuple[Task, Task]:
    """`task` as (training, test): a seeded share of its videos is held out.

    The split depends on the video ids and the seed only: the ids are sorted, permuted by
    `numpy.random.default_rng(seed)`, and the first round(share · videos) of them, at least one, are the test set. One
    video at least remains for training.
    """
    options = options or SplitOptions()
    if len(task) < 2:
        raise InputError(
            f"task {shortened(task.name)} has {len(task)} video(s), none can be held out",
            hint="at least two videos are needed",
        )
    size = min(max(1, round(options.test_share * len(task))), len(task) - 1)
    chosen = np.random.default_rng(options.seed).permutation(len(task))[:size].tolist()
    test = [task.videos[position] for position in chosen]  # the videos of a task are sorted by id
    held_out = {video.id for video in test}
    return task.with_videos(video for video in task if video.id not in held_out), task.with_videos(test)


def chance(probabilities: Mapping[Step, float], came: Step) -> float:
    """The chance that a random choice among the most probable steps is the one that `came`."""
    best = max(probabilities.values(), default=0.0) - _TIE
    leaders = [name for name, probability in probabilities.items() if probability >= best]
    return 1 / len(leaders) if came in leaders else 0.0
