"""Steps hidden from a predictor that saw a video's narration and its other labels: the protocol.

Folds. The videos of a task, sorted by id, are permuted by `numpy.random.default_rng(seed)`; the one at place i is
tested in fold i mod `folds`, by a predictor that learned from the fully labelled videos of the other folds.
Hiding. Of a test video with n labelled steps (first labels, timed), round(`share` · n) are hidden, at least one, at
most n - 1. Which ones depends on the video's id, its steps and the seed. With one label nothing can be hidden: such a
video is only learnt from. The predictor is given the visible labels, the narration and the video's length.
(a) Completion: for every hidden step h and every border t (start and end) of every visible label, end(h) ≤ t?
    Accuracy calls a step completed at a probability of 0.5 or more; AUC is pooled over the items of a task.
(b) Presence: hidden steps (present) against the steps of the task that are not labelled in the video at all (absent),
    one score for each; AUC pooled over the items of a task.
`experiments.bootstrap_intervals` has the metrics and their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import Numbers, ScoredItems
from msg2.errors import InputError, require
from msg2.task import Sentence, Step, Task, Video
from msg2.text import short_repr


@dataclass(frozen=True, slots=True)
class HidingOptions:
    """How the recovery of hidden steps is measured."""

    share: float = 0.25
    """Share of the labelled steps of a test video that are hidden."""
    folds: int = 5
    resamples: int = 1000
    """Bootstrap samples of the videos behind an interval."""
    confidence: float = 0.95
    """Coverage of the intervals."""
    seed: int = 0

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"share is {self.share}, it must be between 0 and 1")
        require(self.folds >= 2, f"folds is {self.folds}, it must be 2 or more")
        require(self.resamples >= 1, f"resamples is {self.resamples}, it must be 1 or more")
        require(0 < self.confidence < 1, f"confidence is {self.confidence}, it must be between 0 and 1")


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStepPrediction:
    """What a predictor says of one video with L visible labels, for all N steps of the task in their order.

    `completion` has shape (2 L, N): the probability that a step is completed at each of `borders(video)`. `presence`
    has shape (N,): the higher, the more likely the step is in the video, labelled or not. Both are given for every
    step; those of visible steps are not looked at.
    """

    completion: Numbers
    presence: Numbers


HiddenStepPredictor: TypeAlias = Callable[[Video, float], HiddenStepPrediction]
"""(video with its visible labels and its narration, its length in seconds) -> prediction."""
HiddenStepLearner: TypeAlias = Callable[[Task, Mapping[str, float]], HiddenStepPredictor]
"""(fully labelled training videos, length in seconds by video id) -> predictor."""


@dataclass(frozen=True, slots=True)
class HiddenStepQuestion:
    """A video as the predictor sees it, its length in seconds, and what the predictor does not see: the whole video."""

    seen: Video
    whole: Video
    seconds: float

    def is_completed(self, step: Step) -> NDArray[np.bool_]:
        """Whether `step` had ended at each of the borders of `seen`; empty where it is not in the whole video."""
        ends = [segment.end for segment in self.whole.segments if segment.step == step]
        return np.array([end <= segment_boundaries(self.seen) for end in ends if end is not None], np.bool_).reshape(-1)

    def is_present(self, step: Step) -> NDArray[np.bool_]:
        """Whether `step` is in the whole video; shape (1,)."""
        return np.array([step in self.whole.sequence()])

    def unlabelled_steps(self, steps: Sequence[Step]) -> list[tuple[int, Step]]:
        """The steps that are not visible, with their places among `steps`."""
        visible = set(self.seen.sequence())
        return [(place, step) for place, step in enumerate(steps) if step not in visible]


@dataclass(frozen=True, slots=True)
class HiddenStepFold:
    """Videos to learn from, with the lengths of these only, and questions about the others."""

    training: Task
    seconds: Mapping[str, float]
    questions: tuple[HiddenStepQuestion, ...]


@dataclass(frozen=True, slots=True)
class HiddenStepScores:
    """The items of both questions for one predictor: (a) completion and (b) presence."""

    completion: ScoredItems
    presence: ScoredItems


def segment_boundaries(video: Video) -> Numbers:
    """Start and end of every label in turn, in seconds; shape (2 L,).

    >>> from msg2.task import Segment
    >>> segment_boundaries(Video("v", [Segment("a", 0, 5), Segment("b", 3, 9)])).tolist()
    [0.0, 5.0, 3.0, 9.0]
    """
    times = [(segment.start, segment.end) for segment in video.segments]
    return np.array(times, dtype=np.float64).reshape(-1)


def choose_hidden_steps(video: Video, share: float, seed: int) -> frozenset[Step]:
    """The steps to hide; none where fewer than two are labelled.

    Parameters
    ----------
    video : Video
        The video.
    share : float
        Of the labelled steps.
    seed : int
        Of everything random.

    Returns
    -------
    frozenset[Step]
        At least one step, and not all.

    >>> from msg2.task import Segment
    >>> len(choose_hidden_steps(Video("v", [Segment(name, 0, 1) for name in "abcdefgh"]), 0.25, 0))
    2
    """
    steps = sorted(video.sequence())
    count = min(max(1, round(share * len(steps))), len(steps) - 1)
    if count < 1:
        return frozenset()
    chosen = np.random.default_rng([seed, *video.id.encode()]).permutation(len(steps))[:count]
    return frozenset(steps[place] for place in chosen.tolist())


def hide_steps(video: Video, seconds: float, share: float, seed: int) -> HiddenStepQuestion | None:
    """`video` with some of its steps hidden; None where nothing can be hidden.

    Parameters
    ----------
    video : Video
        The video.
    seconds : float
        Its length.
    share : float
        Of the labelled steps.
    seed : int
        Of everything random.

    Returns
    -------
    Question or None
        The video without these labels, and with them.
    """
    hidden = choose_hidden_steps(video, share, seed)
    visible = (segment for segment in video.segments if segment.step not in hidden)
    return HiddenStepQuestion(Video(video.id, visible, video.sentences), video, seconds) if hidden else None


def cross_validation_folds(
    task: Task, seconds: Mapping[str, float], options: HidingOptions | None = None
) -> tuple[HiddenStepFold, ...]:
    """The folds of `task`; `seconds` is the length of each video by its id. Repeated labels are left out.

    Parameters
    ----------
    task : Task
        The task.
    seconds : mapping
        The length of every video in seconds, by its id.
    options : HidingOptions or None
        How steps are hidden; None: the defaults.

    Returns
    -------
    tuple[HiddenStepFold, ...]
        One per fold.
    """
    options = options or HidingOptions()
    task = task.with_first_labels()
    _check_task(task, seconds, options)
    order = np.random.default_rng(options.seed).permutation(len(task)).tolist()
    parts = []
    for fold in range(options.folds):
        test = {task.videos[place].id for place in order[fold :: options.folds]}
        asked = (
            hide_steps(video, seconds[video.id], options.share, options.seed) for video in task if video.id in test
        )
        training = task.with_videos(video for video in task if video.id not in test)
        parts.append(
            HiddenStepFold(training, {video.id: seconds[video.id] for video in training}, tuple(filter(None, asked)))
        )
    return tuple(parts)


def swap_narration(parts: Sequence[HiddenStepFold]) -> tuple[HiddenStepFold, ...]:
    """The same folds, but each question has the narration of the next one of its fold, stretched to its own length.

    What is said changes, where in the video it is said does not: a predictor that listens must get worse.
    """
    return tuple(
        HiddenStepFold(
            fold.training,
            fold.seconds,
            tuple(
                HiddenStepQuestion(
                    Video(own.seen.id, own.seen.segments, _rescale_narration(other, own.seconds)),
                    own.whole,
                    own.seconds,
                )
                for own, other in zip(fold.questions, [*fold.questions[1:], *fold.questions[:1]], strict=True)
            ),
        )
        for fold in parts
    )


def fit_predictors(learn: HiddenStepLearner, parts: Sequence[HiddenStepFold]) -> tuple[HiddenStepPredictor, ...]:
    """One predictor per fold.

    Parameters
    ----------
    learn : HiddenStepLearner
        From training videos to a predictor.
    parts : sequence
        The folds.

    Returns
    -------
    tuple[HiddenStepPredictor, ...]
        One per fold.
    """
    return tuple(learn(fold.training, fold.seconds) for fold in parts)


def score_predictors(predictors: Sequence[HiddenStepPredictor], parts: Sequence[HiddenStepFold]) -> HiddenStepScores:
    """What the predictor of each fold says of the questions of that fold.

    Parameters
    ----------
    predictors : sequence
        One per fold.
    parts : sequence
        The folds.

    Returns
    -------
    HiddenStepScores
        Truth and score of every item.
    """
    completion: list[tuple[int, bool, float]] = []
    presence: list[tuple[int, bool, float]] = []
    asked = [(predictor, fold, q) for predictor, fold in zip(predictors, parts, strict=True) for q in fold.questions]
    for number, (predictor, fold, question) in enumerate(asked):
        said = _check_prediction(predictor(question.seen, question.seconds), question.seen, fold.training)
        for place, step in question.unlabelled_steps(fold.training.steps):
            present, completed = question.is_present(step).item(), question.is_completed(step)
            presence.append((number, present, said.presence[place]))
            if present:
                scores = said.completion[:, place]
                completion += [(number, *item) for item in zip(completed.tolist(), scores.tolist(), strict=True)]
    return HiddenStepScores(_scored_items(completion), _scored_items(presence))


def _scored_items(rows: Sequence[tuple[int, bool, float]]) -> ScoredItems:
    video, truth, score = zip(*rows, strict=True) if rows else ((), (), ())
    return ScoredItems(np.array(video, np.intp), np.array(truth, np.bool_), np.array(score, np.float64))


def _rescale_narration(other: HiddenStepQuestion, seconds: float) -> tuple[Sentence, ...]:
    ratio = seconds / other.seconds
    return tuple(Sentence(one.text, one.start * ratio, one.end * ratio) for one in other.seen.sentences)


def _check_prediction(said: HiddenStepPrediction, video: Video, task: Task) -> HiddenStepPrediction:
    shapes = (2 * len(video.segments), len(task.steps)), (len(task.steps),)
    if (said.completion.shape, said.presence.shape) != shapes:
        raise ValueError(f"a prediction has shapes {said.completion.shape} and {said.presence.shape}, not {shapes}")
    if not (np.isfinite(said.completion).all() and np.isfinite(said.presence).all()):
        raise ValueError(f"a prediction for video {short_repr(video.id)} is not a number")
    return said


def _check_task(task: Task, seconds: Mapping[str, float], options: HidingOptions) -> None:
    if len(task) < options.folds:
        raise InputError(f"task {short_repr(task.name)} has {len(task)} video(s), {options.folds} folds need as many")
    for video in task:
        if not video.is_timed:
            raise InputError(f"video {short_repr(video.id)} has labels without times, which cannot be placed")
        if not seconds.get(video.id, 0) > 0:
            raise InputError(f"the length in seconds of video {short_repr(video.id)} is not known")
