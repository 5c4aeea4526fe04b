"""The baselines find what is there to be found: an order, companions, words; and nothing in another video's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from experiments.bootstrap_intervals import ScoredItems, weighted_auc
from experiments.hidden_steps.baseline_features import (
    completion_features,
    narration_completion_features,
    narration_presence_features,
    presence_features,
    sentence_similarity,
)
from experiments.hidden_steps.baselines import frequency_baseline, label_baseline, narration_baseline
from experiments.hidden_steps.protocol import (
    HiddenStepLearner,
    HiddenStepScores,
    HidingOptions,
    cross_validation_folds,
    fit_predictors,
    score_predictors,
    swap_narration,
)
from experiments.logistic_regression import BaselineOptions
from msg2.errors import InputError
from msg2.task import Segment, Sentence, Task, Video

STEPS = ("boil", "cut", "fry", "mix", "salt")
OPTIONS = BaselineOptions(draws=4, penalties=(100.0, 10.0, 1.0))


def encode(texts: Sequence[str]) -> np.ndarray:
    """A text that names a step is that step's axis; any other has an axis of its own."""
    vectors = np.zeros((len(texts), len(STEPS) + 1))
    for vector, text in zip(vectors, texts, strict=True):
        named = [place for place, step in enumerate(STEPS) if step in text.split()]
        vector[named or [-1]] = 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def kitchen(
    order: Callable[[np.random.Generator], list[str]], said: bool, videos: int = 60
) -> tuple[Task, dict[str, float]]:
    """Videos whose steps have an order; where `said`, a step's name is heard while it is done, and "well" elsewhere."""
    rng, made = np.random.default_rng(0), []
    for number in range(videos):
        labels, time = [], 0.0
        for step in order(rng):
            start = time + float(rng.uniform(1, 30))
            time = start + float(rng.uniform(2, 10))
            labels.append(Segment(step, start, time))
        sentences = [Sentence(one.step if said else "well", one.start or 0, one.end or 0) for one in labels]
        made.append(Video(f"v{number:02}", labels, [*sentences, Sentence("well", time, time + 1)]))
    return Task("cook", STEPS, made), {video.id: 400.0 for video in made}


def companions(rng: np.random.Generator) -> list[str]:
    """Boil and cut always come together, in this order, fry and mix as well; salt comes as it likes."""
    pairs = [["boil", "cut"], ["fry", "mix"], ["boil", "cut", "fry", "mix"]][rng.integers(3)]
    return [*pairs, "salt"] if rng.random() < 0.5 else ["salt", *pairs]


def anything(rng: np.random.Generator) -> list[str]:
    return rng.permutation(STEPS)[: rng.integers(2, 5)].tolist()


def found(
    learn: HiddenStepLearner, task: Task, seconds: dict[str, float], *, other: bool = False
) -> tuple[float, float]:
    """AUC of completion and of presence."""
    parts = cross_validation_folds(task, seconds)
    said: HiddenStepScores = score_predictors(fit_predictors(learn, parts), swap_narration(parts) if other else parts)

    def of(items: ScoredItems) -> float:
        return float(weighted_auc(items, np.ones(len(items.truth))))

    return of(said.completion), of(said.presence)


def test_labels_tell_companions_and_their_order() -> None:
    task, seconds = kitchen(companions, said=False)
    blind, told = found(frequency_baseline, task, seconds), found(label_baseline(options=OPTIONS), task, seconds)
    assert told[0] > blind[0]
    assert told[1] > blind[1] + 0.1
    assert told[1] > 0.9


@pytest.mark.slow
def test_narration_tells_what_labels_cannot_unless_it_is_another_videos() -> None:
    task, seconds = kitchen(anything, said=True)
    labels = found(label_baseline(options=OPTIONS), task, seconds)
    heard = found(narration_baseline(encode, options=OPTIONS), task, seconds)
    other = found(narration_baseline(encode, options=OPTIONS), task, seconds, other=True)
    assert min(heard) > 0.97
    assert heard[0] > labels[0] + 0.1
    assert heard[1] > labels[1] + 0.1
    assert max(other) < 0.85


def test_the_prior_is_counted() -> None:
    videos = [Video("u", [Segment("cut", 0, 10)]), Video("v", [Segment("cut", 0, 50), Segment("fry", 60, 80)])]
    predict = frequency_baseline(Task("t", ("cut", "fry", "salt"), videos), {"u": 100.0, "v": 100.0})
    said = predict(Video("w", [Segment("fry", 20, 60)]), 100.0)
    assert said.presence.tolist() == [1.0, 0.5, 0.0]
    assert said.completion == pytest.approx(np.array([[1.5 / 3, 0.5 / 2, 0.5], [2.5 / 3, 0.5 / 2, 0.5]]))


def test_the_same_seed_is_the_same_prediction_and_silence_is_heard_as_such() -> None:
    task, seconds = kitchen(companions, said=False, videos=15)
    quiet = task.with_videos(Video(video.id, video.segments) for video in task)
    learn = narration_baseline(encode, HidingOptions(), OPTIONS)
    one, same = (learn(quiet, seconds)(quiet.videos[0], 400.0) for _ in range(2))
    assert (one.completion == same.completion).all()
    assert (one.presence == same.presence).all()


def test_clues_of_a_hand_made_video() -> None:
    video = Video(
        "v",
        [Segment("boil", 10, 20), Segment("mix", 60, 80)],
        [Sentence("boil", 0, 10), Sentence("well", 20, 30), Sentence("fry", 40, 50), Sentence("well", 85, 95)],
    )
    where = completion_features(STEPS)(video, 100.0)
    assert where.shape[:2] == (4, 5)
    assert where[:, 0, :5].tolist() == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 1, 0]]
    by_now = narration_completion_features(STEPS, sentence_similarity(encode), 20.0)(video, 100.0)[
        :, STEPS.index("fry"), :6
    ]
    assert by_now[:, 0] == pytest.approx([0, 0, 1, 1], abs=1e-6)  # the share of "fry" that was said
    assert by_now[:, 1:3].tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]  # the best so far, and to come
    assert by_now[:, 4] == pytest.approx([-0.35, -0.25, 0.15, 0.35])  # since it was said
    at_all = narration_presence_features(STEPS, sentence_similarity(encode))(video, 100.0)[0]
    assert at_all[:, 0].tolist() == [1, 0, 1, 0, 0]
    told = presence_features(
        Task("t", STEPS, [Video("u", [Segment("boil", 0, 2), Segment("fry", 3, 4), Segment("mix", 5, 6)])]), {"u": 10}
    )
    rooms = told(video, 100.0)[0, :, -2]
    assert rooms[STEPS.index("fry")] == pytest.approx(0.4)  # between boil, which ends at 20, and mix, from 60


def test_training_videos_with_single_labels_teach_nothing() -> None:
    task = Task("t", STEPS, [Video("v", [Segment("cut", 0, 1)])])
    with pytest.raises(InputError, match="two labelled steps"):
        label_baseline()(task, {"v": 10.0})
