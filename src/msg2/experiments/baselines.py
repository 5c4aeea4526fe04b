"""Honest baselines for hidden steps: what is known without a state predictor.

`prior` knows how often a step occurs, and where; `by_labels` asks, per step, a logistic regression on the other labels
and the position; `by_narration` adds to its log-odds, by a second regression that all steps share, how similar the
name of the step is to what is said, and when. The regressions learn from training videos whose steps are hidden in the
same way as those of the test videos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from msg2.errors import InputError, shortened
from msg2.experiments.clues import Encoder, Features, Likeness, company, likeness, position, said_at_all, said_by
from msg2.experiments.hidden import Learner, Prediction, Predictor, Question, borders, hide
from msg2.experiments.logistic import Rows, chosen, standardisation
from msg2.experiments.resampling import Numbers
from msg2.options import BaselineOptions, HidingOptions
from msg2.task import Step, Task, Video

Truth: TypeAlias = Callable[[Question, Step], NDArray[np.bool_]]
LogOdds: TypeAlias = Callable[[Video, float], Numbers]
"""(video, seconds) -> log-odds at every place asked about and of every step, shape (P, N)."""


def prior(training: Task, seconds: Mapping[str, float]) -> Predictor:
    """Presence: how often a step is labelled. Completion: how often it had ended by this part of the video."""
    ends: dict[Step, list[float]] = {step: [] for step in training.steps}
    for video in training:
        for segment in video.segments:
            ends[segment.step].append((segment.end or 0.0) / seconds[video.id])
    usual = [np.sort(ends[step]) for step in training.steps]
    presence = np.array([len(of_step) / len(training) for of_step in usual])

    def predict(video: Video, length: float) -> Prediction:
        at = borders(video) / length
        ended = [(np.searchsorted(one, at, side="right") + 0.5) / (len(one) + 1) for one in usual]
        return Prediction(np.stack(ended, axis=1), presence)

    return predict


def by_labels(hiding: HidingOptions | None = None, options: BaselineOptions | None = None) -> Learner:
    """Learns a regression per step on the visible labels and the position."""
    return _learner(None, hiding or HidingOptions(), options or BaselineOptions())


def by_narration(
    encode: Encoder, hiding: HidingOptions | None = None, options: BaselineOptions | None = None
) -> Learner:
    """Learns the regressions of `by_labels`, and one on top of them that hears the narration through `encode`.

    What was encoded is kept: one learner for all folds of a task encodes every sentence once.
    """
    return _learner(likeness(encode), hiding or HidingOptions(), options or BaselineOptions())


def _learner(alike: Likeness | None, hiding: HidingOptions, options: BaselineOptions) -> Learner:
    def learn(training: Task, seconds: Mapping[str, float]) -> Predictor:
        steps = training.steps
        questions = _questions(training, seconds, hiding, options)
        by_now = None if alike is None else said_by(steps, alike, options.sharpness)
        at_all = None if alike is None else said_at_all(steps, alike)
        done = _log_odds(_rows(Question.completed, questions, steps), position(steps), by_now, options)
        there = _log_odds(_rows(Question.present, questions, steps), company(training, seconds), at_all, options)
        return lambda video, length: Prediction(expit(done(video, length)), expit(there(video, length)[0]))

    return learn


def _questions(
    training: Task, seconds: Mapping[str, float], hiding: HidingOptions, options: BaselineOptions
) -> Sequence[Question]:
    """Every training video with its steps hidden a few times, never as where it is tested itself."""
    drawn = (
        hide(video, seconds[video.id], hiding.share, hiding.seed + draw)
        for video in training
        for draw in range(1, options.draws + 1)
    )
    questions = [question for question in drawn if question is not None]
    if not questions:
        raise InputError(
            f"task {shortened(training.name)} has no training video with two labelled steps, of which one can be hidden"
        )
    return questions


def _log_odds(
    rows: Callable[[Features], list[Rows]], seen: Features, heard: Features | None, options: BaselineOptions
) -> LogOdds:
    """A regression per step on what is `seen`; if anything is `heard`, another for all steps that adds it."""
    first = chosen(rows(seen), options)

    def from_labels(video: Video, length: float) -> Numbers:
        table = seen(video, length)
        return np.stack([one.log_odds(table[:, n]) for n, one in enumerate(first.regressions)], axis=1)

    if heard is None:
        return from_labels
    sounds = rows(heard)
    scales = [standardisation(one.features) for one in sounds]  # a step's name may be close to everything said
    mean, scale = (np.stack(one) for one in zip(*scales, strict=True))  # each of shape (N, d)
    both = [
        Rows(np.column_stack([odds, (one.features - mean[n]) / scale[n]]), one.truth, one.video)
        for n, (odds, one) in enumerate(zip(first.held_out, sounds, strict=True))
    ]
    (second,) = chosen([_together(both)], options).regressions

    def from_both(video: Video, length: float) -> Numbers:
        table = (heard(video, length) - mean) / scale
        odds = from_labels(video, length)
        return second.log_odds(np.concatenate([odds[..., None], table], axis=-1))

    return from_both


def _rows(truth: Truth, questions: Sequence[Question], steps: Sequence[Step]) -> Callable[[Features], list[Rows]]:
    """Features -> the examples of each step: the places of the questions in which it is asked about."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(one.seen.id for one in questions))}

    def rows(features: Features) -> list[Rows]:
        found: list[list[Rows]] = [[] for _ in steps]
        for question in questions:
            table = features(question.seen, question.seconds)
            for place, step in question.asked(steps):
                true = truth(question, step)
                video = np.full(len(true), numbers[question.seen.id])
                found[place].append(Rows(table[: len(true), place], true, video))
        none = Rows(table[:0, 0], np.zeros(0, np.bool_), np.zeros(0, np.intp))
        return [_together([none, *of_step]) for of_step in found]

    return rows


def _together(parts: Sequence[Rows]) -> Rows:
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("features", "truth", "video")))
