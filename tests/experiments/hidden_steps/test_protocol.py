"""The protocol of hidden steps, on a hand-made task and on real labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.bootstrap_intervals import weighted_auc
from experiments.hidden_steps.protocol import (
    HiddenStepFold,
    HiddenStepPrediction,
    HiddenStepQuestion,
    HidingOptions,
    choose_hidden_steps,
    cross_validation_folds,
    fit_predictors,
    hide_steps,
    score_predictors,
    segment_boundaries,
    swap_narration,
)
from msg2.errors import InputError
from msg2.formats import read
from msg2.task import Segment, Sentence, Task, Video


def video_of(name: str, steps: str) -> Video:
    """Steps of ten seconds one after the other, one sentence in the middle of each."""
    segments = [Segment(step, 10 * place, 10 * place + 8) for place, step in enumerate(steps)]
    said = [Sentence(f"{name} {step}", 10 * place + 3, 10 * place + 5) for place, step in enumerate(steps)]
    return Video(name, segments, said)


TASK = Task("t", "abcdefgh", [video_of(f"v{i}", "abcdefgh"[: 1 + i % 8]) for i in range(24)])
SECONDS = {video.id: 100.0 for video in TASK}


def test_every_video_with_two_labels_is_asked_about_once_by_a_fold_that_did_not_learn_from_it() -> None:
    parts = cross_validation_folds(TASK, SECONDS)
    asked = [question.whole.id for fold in parts for question in fold.questions]
    assert sorted(asked) == [video.id for video in TASK if len(video.segments) > 1]
    for fold in parts:
        tested = {question.whole.id for question in fold.questions}
        assert not tested & {video.id for video in fold.training}
        assert set(fold.seconds) == {video.id for video in fold.training}
        assert all(video in TASK.videos for video in fold.training)


@pytest.mark.parametrize(("labels", "hidden"), [(1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (8, 2)])
def test_a_quarter_of_the_labels_is_hidden_at_least_one_of_two(labels: int, hidden: int) -> None:
    assert len(choose_hidden_steps(video_of("v", "abcdefgh"[:labels]), 0.25, 0)) == hidden


def test_hiding_depends_on_the_video_and_the_seed_only() -> None:
    video = video_of("v", "abcdefgh")
    assert len({choose_hidden_steps(video, 0.25, seed) for seed in range(30)}) > 5
    assert len({choose_hidden_steps(video_of(f"v{i}", "abcdefgh"), 0.25, 0) for i in range(30)}) > 5
    parts = cross_validation_folds(TASK, SECONDS)
    of_less = cross_validation_folds(TASK.with_videos(TASK.videos[3:]), SECONDS)
    seen = {question.seen.id: question.seen for fold in parts for question in fold.questions}
    assert all(seen[question.seen.id] == question.seen for fold in of_less for question in fold.questions)


def test_what_is_hidden_is_not_shown() -> None:
    for fold in cross_validation_folds(TASK, SECONDS):
        for question in fold.questions:
            shown = set(question.seen.segments)
            assert shown < set(question.whole.segments)
            assert question.seen.sentences == question.whole.sentences


def test_the_items_of_a_hand_made_question() -> None:
    whole = Video("v", [Segment("a", 0, 5), Segment("b", 3, 9), Segment("c", 9, 12)])
    question = HiddenStepQuestion(Video("v", [s for s in whole.segments if s.step != "b"]), whole, 20.0)
    assert segment_boundaries(question.seen).tolist() == [0, 5, 9, 12]
    task = Task("t", "abcd", [])

    def predict(video: Video, seconds: float) -> HiddenStepPrediction:
        return HiddenStepPrediction(np.arange(16).reshape(4, 4) / 16, np.array([0.1, 0.2, 0.3, 0.4]))

    found = score_predictors([predict], [HiddenStepFold(task, {}, (question,))])
    assert found.completion.truth.tolist() == [False, False, True, True]  # b ends at 9
    assert found.completion.score.tolist() == [1 / 16, 5 / 16, 9 / 16, 13 / 16]
    assert found.presence.truth.tolist() == [True, False]  # b, and d which is nowhere
    assert found.presence.score.tolist() == [0.2, 0.4]


def test_who_knows_everything_is_always_right_and_chance_is_half(data: Path) -> None:
    task = read(data / "crosstask" / "crosstask_release", task="Change a Tire")
    whole = {video.id: video for video in task.with_first_labels()}
    parts = cross_validation_folds(task, dict.fromkeys(whole, 1000.0))
    rng = np.random.default_rng(0)

    def knows(video: Video, seconds: float) -> HiddenStepPrediction:
        question = HiddenStepQuestion(video, whole[video.id], seconds)
        none = np.zeros(2 * len(video.segments))
        done = [question.is_completed(s) if question.is_present(s) else none for s in task.steps]
        return HiddenStepPrediction(
            np.stack(done, axis=1).astype(float), np.array([float(question.is_present(s)[0]) for s in task.steps])
        )

    def guesses(video: Video, seconds: float) -> HiddenStepPrediction:
        return HiddenStepPrediction(rng.random((2 * len(video.segments), len(task.steps))), rng.random(len(task.steps)))

    right = score_predictors(fit_predictors(lambda training, seconds: knows, parts), parts)
    wrong = score_predictors(fit_predictors(lambda training, seconds: guesses, parts), parts)
    for kind in ("completion", "presence"):
        for found, expected, off in ((right, 1.0, 0.0), (wrong, 0.5, 0.06)):
            items = getattr(found, kind)
            assert weighted_auc(items, np.ones(len(items.truth))) == pytest.approx(expected, abs=off or 1e-12)


def test_other_narration_is_another_videos_and_all_else_stays() -> None:
    seconds = {video.id: 100.0 + 10 * number for number, video in enumerate(TASK)}
    parts = cross_validation_folds(TASK, seconds)
    for fold, changed in zip(parts, swap_narration(parts), strict=True):
        assert changed.training is fold.training
        for own, other in zip(fold.questions, changed.questions, strict=True):
            assert other.seen.segments == own.seen.segments
            assert other.whole is own.whole
            (speaker,) = {sentence.text.split()[0] for sentence in other.seen.sentences}
            assert speaker != own.seen.id
            first = next(v for v in TASK if v.id == speaker).sentences[0]
            assert other.seen.sentences[0].start / own.seconds == pytest.approx(first.start / seconds[speaker])


def test_a_prediction_of_another_shape_or_without_a_number_is_refused() -> None:
    parts = cross_validation_folds(TASK, SECONDS)
    with pytest.raises(ValueError, match="shapes"):
        score_predictors([lambda video, seconds: HiddenStepPrediction(np.zeros((1, 8)), np.zeros(8))] * 5, parts)
    with pytest.raises(ValueError, match="not a number"):
        score_predictors(
            [lambda video, seconds: HiddenStepPrediction(np.zeros((2 * len(video.segments), 8)), np.full(8, np.nan))]
            * 5,
            parts,
        )


def test_what_cannot_be_asked_is_said() -> None:
    assert hide_steps(video_of("v", "a"), 10.0, 0.25, 0) is None
    with pytest.raises(InputError, match="length in seconds"):
        cross_validation_folds(TASK, {})
    with pytest.raises(InputError, match="folds need"):
        cross_validation_folds(TASK.with_videos(TASK.videos[:3]), SECONDS)
    with pytest.raises(InputError, match="without times"):
        cross_validation_folds(
            Task("t", "ab", [Video(f"v{i}", [Segment("a")]) for i in range(6)]), {f"v{i}": 1 for i in range(6)}
        )
    with pytest.raises(InputError, match="share"):
        HidingOptions(share=1.0)
