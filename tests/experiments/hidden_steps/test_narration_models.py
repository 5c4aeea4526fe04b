"""Models that hear: a whole experiment on eight short videos, and no way for a hidden label to be overheard."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

import torch

from experiments.experiment_options import ExperimentOptions
from experiments.hidden_steps import narration_study
from experiments.hidden_steps.narration_models import (
    CachedTextEncoder,
    NarrationOptions,
    cross_fill_labels,
    narration_features,
    state_model_learner,
)
from experiments.hidden_steps.protocol import (
    HiddenStepScores,
    HidingOptions,
    cross_validation_folds,
    fit_predictors,
    score_predictors,
)
from msg2.drawing.plots import dot_plot
from msg2.task import PREDICTED, Segment, Sentence, Task, Video
from msg2.text_encoders import HashedWords
from tests.experiments.progress_recorder import ProgressRecorder

STEPS = ("boil", "cut", "fry", "salt")
BRIEF = NarrationOptions(epochs=2, warmup=1, splits=1, folds=2)
MODELS = ("text-evidence", "text+labels")


class Letters:
    """A text is the numbers of its letters."""

    name, width = "letters", 26
    versions: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        vectors = np.zeros((len(texts), 26), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for letter in text.lower():
                if "a" <= letter <= "z":
                    vector[ord(letter) - ord("a")] += 1
        return vectors / np.maximum(1, np.linalg.norm(vectors, axis=1, keepdims=True))


def kitchen(videos: int = 8) -> tuple[Task, dict[str, float]]:
    """Three or four of the steps, most of them in order; the name of a step is said while it is done."""
    rng, made = np.random.default_rng(0), []
    for number in range(videos):
        steps = [step for place, step in enumerate(STEPS) if number % 5 != place]
        segments = [Segment(step, 10.0 * place + 1, 10.0 * place + 8) for place, step in enumerate(steps)]
        said = [Sentence(f"now {one.step}", one.start + 2, one.end - 1) for one in segments]  # type: ignore[operator]
        said += [Sentence("well", 10.0 * place + 8.5, 10.0 * place + 9.5) for place in range(int(rng.integers(3, 6)))]
        made.append(Video(f"v{number}", segments, said))
    return Task("supper", STEPS, made), {video.id: 60.0 for video in made}


TASK, SECONDS = kitchen()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def encode() -> CachedTextEncoder:
    return CachedTextEncoder(Letters())


def test_every_text_is_encoded_once_and_as_by_the_encoder() -> None:
    plain = Letters()
    memory = CachedTextEncoder(plain)
    texts = ["a b", "c", "a b", ""]
    np.testing.assert_array_equal(memory(texts), Letters()(texts))
    np.testing.assert_array_equal(memory(["c", "d"]), Letters()(["c", "d"]))
    assert plain.asked == ["a b", "c", "", "d"]
    assert memory([]).shape == (0, 26)
    assert (memory.name, memory.width, memory.versions) == ("letters", 26, {})


@pytest.mark.parametrize("variant", MODELS)
def test_what_a_model_says_of_a_video(variant: str, encode: CachedTextEncoder) -> None:
    """Probabilities at the borders of the visible labels, in their order, and the same once more."""
    parts = cross_validation_folds(TASK, SECONDS, HidingOptions(folds=2))
    predictors = fit_predictors(state_model_learner(variant, encode, BRIEF), parts)
    for predictor, fold in zip(predictors, parts, strict=True):
        for question in fold.questions:
            said = predictor(question.seen, question.seconds)
            assert said.completion.shape == (2 * len(question.seen.segments), 4)
            assert ((said.completion > 0) & (said.completion < 1)).all()
            again = predictor(question.seen, question.seconds)
            np.testing.assert_array_equal(said.completion, again.completion)
            np.testing.assert_array_equal(said.presence, again.presence)
    found = score_predictors(predictors, parts)
    assert len(found.presence.truth) == sum(len(q.unlabelled_steps(STEPS)) for fold in parts for q in fold.questions)


@pytest.mark.parametrize("variant", MODELS)
def test_what_was_seen_so_far_grows_along_the_video(variant: str, encode: CachedTextEncoder) -> None:
    """Borders are read in the order of the labels, and not in that of the tokens: overlapping labels tell."""
    predictor = state_model_learner(variant, encode, replace(BRIEF, epochs=20))(TASK, SECONDS)
    overlapping = [Segment("boil", 2, 40), Segment("cut", 5, 20), Segment("fry", 12, 30)]
    video = Video("new", overlapping, TASK.videos[0].sentences)
    said = predictor(video, 60.0).completion
    times = np.array([time for one in video.segments for time in (one.start, one.end)], dtype=float)
    assert times.tolist() != sorted(times)
    if variant == "text-evidence":  # habits may fall as other labels are completed
        assert (np.diff(said[np.argsort(times)], axis=0) >= 0).all()
        assert (said[times.argmax()] > said[times.argmin()]).any()


@pytest.mark.parametrize("variant", MODELS)
def test_a_hidden_label_cannot_be_overheard(variant: str, encode: CachedTextEncoder) -> None:
    """Through the whole protocol: hidden labels move to the end, and only the right answers change with them."""
    chosen = HidingOptions(folds=2)
    fold = cross_validation_folds(TASK, SECONDS, chosen)[0]
    tested = {question.whole.id: set(question.seen.sequence()) for question in fold.questions}

    def moved(video: Video, visible: bool) -> Video:
        segments = [
            replace(one, start=50.0, end=58.0) if (one.step in tested[video.id]) is visible else one
            for one in video.segments
        ]
        return Video(video.id, segments, video.sentences)

    def said(visible: bool | None) -> HiddenStepScores:
        task = TASK.with_videos(
            video if visible is None or video.id not in tested else moved(video, visible) for video in TASK
        )
        other = cross_validation_folds(task, SECONDS, chosen)[0]
        assert {question.whole.id: set(question.seen.sequence()) for question in other.questions} == tested
        return score_predictors(fit_predictors(state_model_learner(variant, encode, BRIEF), [other]), [other])

    before, hidden, visible = said(None), said(False), said(True)
    assert not np.array_equal(before.completion.truth, hidden.completion.truth)
    np.testing.assert_array_equal(before.completion.score, hidden.completion.score)
    np.testing.assert_array_equal(before.presence.score, hidden.presence.score)
    assert not np.array_equal(before.completion.score, visible.completion.score)  # what is visible does matter


def test_each_video_is_filled_by_a_model_that_has_not_learnt_from_it(
    encode: CachedTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from experiments.hidden_steps import narration_models

    plain_trained, plain_readings, pairs = narration_models._train_model, narration_models._predict_states, []

    def trained(variant, task, *rest):  # type: ignore[no-untyped-def]
        pairs.append([{video.id for video in task}])
        return plain_trained(variant, task, *rest)

    def readings(card, model, task, *rest):  # type: ignore[no-untyped-def]
        pairs[-1].append({video.id for video in task})
        return plain_readings(card, model, task, *rest)

    monkeypatch.setattr(narration_models, "_train_model", trained)
    monkeypatch.setattr(narration_models, "_predict_states", readings)
    full = cross_fill_labels(TASK, encode, BRIEF)
    everyone = {video.id for video in TASK}
    assert [learnt_from | filled == everyone and not learnt_from & filled for learnt_from, filled in pairs] == [
        True
    ] * 2
    assert [video.id for video in full] == [video.id for video in TASK]
    for before, after in zip(TASK, full, strict=True):
        assert tuple(one for one in after.segments if one.source != PREDICTED) == before.segments
        assert not {one.step for one in after.segments if one.source == PREDICTED} & set(before.sequence())


def test_the_whole_experiment_on_eight_videos(encode: CachedTextEncoder) -> None:
    found = {
        key: one for part in narration_study.PARTS.values() for key, one in part(TASK, SECONDS, encode, BRIEF).items()
    }
    assert found["videos"] == 8
    assert list(found["values"]) == list(narration_study.LEARNERS)
    assert list(found["against"]) == [
        name for name in narration_study.NARRATION_LEARNERS if name != narration_study.REFERENCE
    ]
    assert list(found["swapped"]) == list(narration_study.NARRATION_LEARNERS)
    for measures in (*found["values"].values(), *found["against"].values(), *found["swapped"].values()):
        assert list(measures) == list(narration_study.MEASURES)
        assert all(one["low"] <= one["high"] for one in measures.values() if math.isfinite(one["value"]))
    for values in found["values"].values():
        assert all(0 <= one["value"] <= 1 for one in values.values() if math.isfinite(one["value"]))
    assert [len(shares) for shares in found["next_step"].values()] == [1, 1]
    assert len(found["added"]) == 1
    rows = [{"task": "supper", **found}]
    tables = [narration_study._metric_table(rows, "letters")]
    tables += [
        make(rows)
        for make in (
            narration_study._difference_table,
            narration_study._swapped_narration_table,
            narration_study._next_step_table,
        )
    ]
    assert [len(table.rows) for table in tables] == [5, 2, 3, 1]


@pytest.mark.slow
def test_the_experiment_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "crosstask"
    folder.mkdir(parents=True)
    lines = ["video,seconds", *(f"{video},{seconds}" for video, seconds in SECONDS.items())]
    (folder / "durations.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(narration_study, "read_narrated_tasks", lambda _: {TASK.name: TASK})
    monkeypatch.setattr(narration_study, "text_encoder", lambda _: Letters())
    monkeypatch.setattr(narration_study.NarrationOptions, "quick", staticmethod(lambda: BRIEF))
    options, news = ExperimentOptions(quick=True, folder=tmp_path), ProgressRecorder()
    threads = torch.get_num_threads()
    result = narration_study.run(tmp_path / "data", options, news)
    assert len(news) == len(narration_study.PARTS)
    assert torch.get_num_threads() == threads
    assert json.loads(json.dumps(result.to_json()))["experiment"] == "narration"
    assert "supper" in result.to_markdown()
    assert dot_plot(result.chart, "narration")
    assert narration_study.run(tmp_path / "data", options, news).to_markdown() == result.to_markdown()
    assert len(news) == len(narration_study.PARTS)  # all was known
    (folder / "more.vtt").write_text("WEBVTT\n")
    narration_study.run(tmp_path / "data", options, news)
    assert len(news) == 2 * len(narration_study.PARTS)  # other data


def test_the_narration_of_a_video() -> None:
    said = [Sentence("b", 3.0, 4.0), Sentence("a", 1.0, 9.0), Sentence("c", 1.0, 2.0)]
    features = narration_features(said, HashedWords(16))
    video = Video("v", [], said)
    np.testing.assert_array_equal(features.sentence_times, [(s.start, s.end) for s in video.sentences])
    np.testing.assert_array_equal(features.sentences, HashedWords(16)([s.text for s in video.sentences]))
    assert features.frames.shape == (0, 0)
    silent = narration_features([], HashedWords(16))
    assert (silent.sentence_times.shape, silent.sentences.shape) == ((0, 2), (0, 16))
