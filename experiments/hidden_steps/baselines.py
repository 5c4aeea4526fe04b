"""Baselines for hidden steps: what is known without a state predictor.

`frequency_baseline` knows how often a step occurs, and where; `label_baseline` fits, per step, a logistic regression on
the other labels and the position; `narration_baseline` adds to its log-odds, by a second regression that all steps
share, how similar the name of the step is to the narration, and when. The regressions learn from training videos whose
steps are hidden in the same way as those of the test videos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments.bootstrap_intervals import Numbers
from experiments.hidden_steps.baseline_features import (
    Encoder,
    FeatureFunction,
    SentenceSimilarity,
    completion_features,
    narration_completion_features,
    narration_presence_features,
    presence_features,
    sentence_similarity,
)
from experiments.hidden_steps.protocol import (
    HiddenStepLearner,
    HiddenStepPrediction,
    HiddenStepPredictor,
    HiddenStepQuestion,
    HidingOptions,
    hide_steps,
    segment_boundaries,
)
from experiments.logistic_regression import BaselineOptions, RegressionData, fit_cross_validated, standardisation
from msg2.errors import InputError
from msg2.task import Step, Task, Video
from msg2.text import short_repr

Truth: TypeAlias = Callable[[HiddenStepQuestion, Step], NDArray[np.bool_]]
LogOdds: TypeAlias = Callable[[Video, float], Numbers]
"""(video, seconds) -> log-odds at every place asked about and of every step, shape (P, N)."""


def frequency_baseline(training: Task, seconds: Mapping[str, float]) -> HiddenStepPredictor:
    """Presence: how often a step is labelled. Completion: how often it had ended by this part of the video.

    Parameters
    ----------
    training : Task
        The training videos.
    seconds : mapping
        The length of every video in seconds, by its id.

    Returns
    -------
    HiddenStepPredictor
        It knows only the position in the video.
    """
    ends: dict[Step, list[float]] = {step: [] for step in training.steps}
    for video in training:
        for segment in video.segments:
            ends[segment.step].append((segment.end or 0.0) / seconds[video.id])
    usual = [np.sort(ends[step]) for step in training.steps]
    presence = np.array([len(of_step) / len(training) for of_step in usual])

    def predict(video: Video, length: float) -> HiddenStepPrediction:
        at = segment_boundaries(video) / length
        ended = [(np.searchsorted(one, at, side="right") + 0.5) / (len(one) + 1) for one in usual]
        return HiddenStepPrediction(np.stack(ended, axis=1), presence)

    return predict


def label_baseline(hiding: HidingOptions | None = None, options: BaselineOptions | None = None) -> HiddenStepLearner:
    """Learns a regression per step on the visible labels and the position.

    Parameters
    ----------
    hiding : HidingOptions or None
        How steps are hidden; None: the defaults.
    options : BaselineOptions or None
        Of the regressions; None: the defaults.

    Returns
    -------
    HiddenStepLearner
        Completion and presence by regressions.
    """
    return _regression_baseline(None, hiding or HidingOptions(), options or BaselineOptions())


def narration_baseline(
    encode: Encoder, hiding: HidingOptions | None = None, options: BaselineOptions | None = None
) -> HiddenStepLearner:
    """Learns the regressions of `label_baseline`, and one on top of them that hears the narration through `encode`.

    What was encoded is kept: one learner for all folds of a task encodes every sentence once.

    Parameters
    ----------
    encode : Encoder
        From texts to vectors.
    hiding : HidingOptions or None
        How steps are hidden; None: the defaults.
    options : BaselineOptions or None
        Of the regressions; None: the defaults.

    Returns
    -------
    HiddenStepLearner
        Completion and presence by regressions.
    """
    return _regression_baseline(sentence_similarity(encode), hiding or HidingOptions(), options or BaselineOptions())


def _regression_baseline(
    alike: SentenceSimilarity | None, hiding: HidingOptions, options: BaselineOptions
) -> HiddenStepLearner:
    def learn(training: Task, seconds: Mapping[str, float]) -> HiddenStepPredictor:
        steps = training.steps
        questions = _training_questions(training, seconds, hiding, options)
        by_now = None if alike is None else narration_completion_features(steps, alike, options.sharpness)
        at_all = None if alike is None else narration_presence_features(steps, alike)
        done = _fit_log_odds(
            _training_rows(HiddenStepQuestion.is_completed, questions, steps),
            completion_features(steps),
            by_now,
            options,
        )
        there = _fit_log_odds(
            _training_rows(HiddenStepQuestion.is_present, questions, steps),
            presence_features(training, seconds),
            at_all,
            options,
        )
        return lambda video, length: HiddenStepPrediction(expit(done(video, length)), expit(there(video, length)[0]))

    return learn


def _training_questions(
    training: Task, seconds: Mapping[str, float], hiding: HidingOptions, options: BaselineOptions
) -> Sequence[HiddenStepQuestion]:
    """Every training video with its steps hidden a few times, never as where it is tested itself."""
    drawn = (
        hide_steps(video, seconds[video.id], hiding.share, hiding.seed + draw)
        for video in training
        for draw in range(1, options.draws + 1)
    )
    questions = [question for question in drawn if question is not None]
    if not questions:
        name = short_repr(training.name)
        raise InputError(f"task {name} has no training video with two labelled steps, of which one can be hidden")
    return questions


def _fit_log_odds(
    rows: Callable[[FeatureFunction], list[RegressionData]],
    seen: FeatureFunction,
    heard: FeatureFunction | None,
    options: BaselineOptions,
) -> LogOdds:
    """A regression per step on what is `seen`; if anything is `heard`, another for all steps that adds it."""
    first = fit_cross_validated(rows(seen), options)

    def from_labels(video: Video, length: float) -> Numbers:
        table = seen(video, length)
        return np.stack([one.log_odds(table[:, n]) for n, one in enumerate(first.regressions)], axis=1)

    if heard is None:
        return from_labels
    sounds = rows(heard)
    scales = [standardisation(one.features) for one in sounds]  # a step's name may be close to everything said
    mean, scale = (np.stack(one) for one in zip(*scales, strict=True))  # each of shape (N, d)
    both = [
        RegressionData(np.column_stack([odds, (one.features - mean[n]) / scale[n]]), one.truth, one.video)
        for n, (odds, one) in enumerate(zip(first.held_out, sounds, strict=True))
    ]
    (second,) = fit_cross_validated([_concatenate(both)], options).regressions

    def from_both(video: Video, length: float) -> Numbers:
        table = (heard(video, length) - mean) / scale
        odds = from_labels(video, length)
        return second.log_odds(np.concatenate([odds[..., None], table], axis=-1))

    return from_both


def _training_rows(
    truth: Truth, questions: Sequence[HiddenStepQuestion], steps: Sequence[Step]
) -> Callable[[FeatureFunction], list[RegressionData]]:
    """Features -> the examples of each step: the places of the questions in which it is asked about."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(one.seen.id for one in questions))}

    def rows(features: FeatureFunction) -> list[RegressionData]:
        found: list[list[RegressionData]] = [[] for _ in steps]
        for question in questions:
            table = features(question.seen, question.seconds)
            for place, step in question.unlabelled_steps(steps):
                true = truth(question, step)
                video = np.full(len(true), numbers[question.seen.id])
                found[place].append(RegressionData(table[: len(true), place], true, video))
        none = RegressionData(table[:0, 0], np.zeros(0, np.bool_), np.zeros(0, np.intp))
        return [_concatenate([none, *of_step]) for of_step in found]

    return rows


def _concatenate(parts: Sequence[RegressionData]) -> RegressionData:
    return RegressionData(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("features", "truth", "video"))
    )
