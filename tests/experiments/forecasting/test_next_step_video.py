"""One test set for all rows: who learns from what, who is asked about what, and the numbers of a small run by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

pytest.importorskip("torch")

from experiments import EXPERIMENTS, paper_results
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import next_step_video as experiment
from experiments.forecasting import video_forecasters
from experiments.forecasting.next_step_video import VideoNextStepCell
from experiments.forecasting.video_forecasters import (
    ForecasterLearner,
    VideoForecaster,
    VideoInputs,
    VideoNextStepOptions,
    expected_hits,
    filled_label_forecaster,
    label_forecaster,
    network_forecaster,
    predicted_state_forecaster,
)
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from experiments.hidden_steps.narration_models import (
    CachedTextEncoder,
    NarrationOptions,
    narration_features,
    read_narrated_tasks,
)
from msg2.assist.next_step_evaluation import evaluate_ranker, train_test_split
from msg2.assist.rankers import bigram, recency
from msg2.formats import read_all
from msg2.inference import infer
from msg2.progress import no_progress
from msg2.result_cache import Measurement
from msg2.task import Segment, Sentence, Step, Task, Video
from msg2.text_encoders import HashedWords
from tests.experiments.progress_recorder import ProgressRecorder

STEPS = ("boil", "cut", "fry", "salt")
ENCODE = CachedTextEncoder(HashedWords(16))
INPUTS = VideoInputs(lambda video: narration_features(video.sentences, ENCODE), True, ENCODE)
TRAINING = replace(VideoTransformerOptions().training, epochs=2)
BRIEF = VideoNextStepOptions(
    VideoTransformerOptions(width=8, heads=2, layers=1, training=TRAINING), NarrationOptions(epochs=2, warmup=1)
)


def supper(name: str, seed: int) -> Task:
    """Twenty videos, each with two to four steps in an order of its own; every fifth is silent."""
    rng, made = np.random.default_rng(seed), []
    for number in range(20):
        steps = rng.permutation(STEPS)[: rng.integers(2, 5)].tolist()
        segments = [Segment(step, 10.0 * place + 4, 10.0 * place + 9) for place, step in enumerate(steps)]
        said = [Sentence(f"now {step}", 10.0 * place + 1, 10.0 * place + 3) for place, step in enumerate(steps)]
        made.append(Video(f"v{number:02}", segments, said if number % 5 else []))
    return Task(name, STEPS, made)


TASKS = {name: supper(name, seed) for seed, name in enumerate(("Change a Tire", "Make French Toast"))}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment on two small tasks, with brief trainings."""
    monkeypatch.setattr(experiment, "read_narrated_tasks", lambda folder: TASKS)
    monkeypatch.setattr(experiment, "read_video_inputs", lambda *_: INPUTS)
    monkeypatch.setattr(video_forecasters.VideoNextStepOptions, "quick", staticmethod(lambda: BRIEF))


QUICK = ExperimentOptions(splits=2, quick=True)


@pytest.mark.usefixtures("small")
def test_labels_are_scored_as_everywhere() -> None:
    for task in TASKS.values():
        for seed in range(2):
            training, test = train_test_split(task, seed=seed)
            for row, ranker in (
                ("bigram", bigram(training)),
                ("MSG²-noSSP", recency(infer(training, "msg2", delta=0.55))),
            ):
                found = experiment.measure_cell(VideoNextStepCell(row, task.name, seed), Path(), "words", BRIEF)
                score = evaluate_ranker(ranker, test)
                assert (found["right"], found["steps"]) == (pytest.approx(score.correct), score.total)
                first = sum(evaluate_ranker(ranker, [Video("v", video.segments[:1])]).correct for video in test)
                assert found["later_right"] == pytest.approx(score.correct - first)
                assert found["later_steps"] == score.total - len(test)


@pytest.mark.usefixtures("small")
def test_no_row_learns_from_a_test_video(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of every split: the videos it learns from, those it may look at, and those it is asked about."""
    notes: dict[str, list[tuple[set[str], set[str]]]] = {}

    def watched(row: str, learner: ForecasterLearner) -> ForecasterLearner:
        def learn(training: Task, inputs: VideoInputs, options: VideoNextStepOptions) -> VideoForecaster:
            learnt, asked = {video.id for video in training}, set[str]()
            looked: set[str] = set()

            def noted(video: Video):  # type: ignore[no-untyped-def]
                looked.add(video.id)
                return inputs.features(video)

            forecast = learner(training, replace(inputs, features=noted), options)
            assert looked <= learnt
            notes.setdefault(row, []).append((learnt, asked))

            def ask(video: Video) -> Sequence[Mapping[Step, float]]:
                asked.add(video.id)
                return forecast(video)

            return ask

        return learn

    monkeypatch.setattr(experiment, "ROWS", {row: watched(row, one) for row, one in experiment.ROWS.items()})
    result = experiment.run(Path(), QUICK, no_progress)
    assert set(notes) == set(experiment.ROWS)
    for learnt, asked in notes["STAM"]:
        assert not learnt & asked
        assert learnt | asked == {video.id for video in TASKS["Change a Tire"]}
    assert all(one == notes["STAM"] for one in notes.values())
    published = [set(ids) for seeds in result.facts["test_videos"].values() for ids in seeds.values()]
    assert published == [asked for _, asked in notes["STAM"]]


@pytest.mark.usefixtures("small")
def test_a_run_its_tables_and_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, news = replace(QUICK, folder=tmp_path), ProgressRecorder()
    result = experiment.run(Path(), options, news)
    assert json.loads(json.dumps(result.to_json()))["experiment"] == "video-next-step"
    assert len(news) == len(experiment.ROWS) * 4
    cells = result.facts["cells"]
    assert len({(one["task"], one["seed"], one["steps"], one["later_steps"]) for one in cells}) == 4  # for all rows
    first, later = result.tables
    for table, top, bottom in ((first, "right", "steps"), (later, "later_right", "later_steps")):
        assert [row[0] for row in table.rows] == list(experiment.ROWS)
        for row in table.rows:
            shares = [[100 * one[top] / one[bottom] for one in cells if (one["row"], one["task"]) == (row[0], name)]
                      for name in TASKS]  # fmt: skip
            assert row[1:4] == pytest.approx([*map(mean, shares), mean(map(mean, shares))])
            assert row[4] == pytest.approx(np.std([mean(both) for both in zip(*shares, strict=True)]))
    printed = {row[0]: row[5] for row in first.rows}
    assert printed["STAM"] == pytest.approx((48.21 + 47.91) / 2)
    assert printed["MSG²"] == pytest.approx((68.28 + 63.99) / 2)
    assert printed["bigram"] is None

    def never(*_: object, **__: object) -> Measurement:
        raise AssertionError("it has been measured")

    monkeypatch.setattr(experiment, "measure_cell", never)
    assert experiment.run(Path(), options, news).to_json() == result.to_json()


@pytest.mark.parametrize("name", ["stam", "vivit", "text+labels"])
def test_a_network_foretells_what_is_left(name: str) -> None:
    training, test = train_test_split(TASKS["Change a Tire"], seed=0)
    forecast = network_forecaster(name)(training, INPUTS, BRIEF)
    for video in test:
        sequence = video.sequence()
        for place, said in enumerate(forecast(video)):
            assert set(said) == set(STEPS) - set(sequence[:place])
            assert sum(said.values()) == pytest.approx(1)
        assert len(expected_hits(forecast, video)) == len(sequence)


def test_a_ranker_is_asked_about_every_step() -> None:
    video = TASKS["Change a Tire"].videos[1]
    said = label_forecaster(lambda task: lambda done: {"+".join(done): 1.0})(TASKS["Change a Tire"], INPUTS, BRIEF)(
        video
    )
    sequence = video.sequence()
    assert [list(one) for one in said] == [["+".join(sequence[:place])] for place in range(len(sequence))]


def test_silent_videos_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state predictor fills up those that say something; the graph is of all of them."""
    given: list[Task] = []

    def filled(task: Task, *_: object) -> Task:
        given.append(task)
        return task

    def inferred(task: Task, *rest: object, **options: object):  # type: ignore[no-untyped-def]
        given.append(task)
        return infer(task, "always-before")

    monkeypatch.setattr(video_forecasters, "cross_fill_labels", filled)
    monkeypatch.setattr(video_forecasters, "infer", inferred)
    task = TASKS["Change a Tire"]
    filled_label_forecaster(task, INPUTS, BRIEF)
    heard, all_of_them = given
    assert {video.id for video in task} - {video.id for video in heard} == {"v00", "v05", "v10", "v15"}
    assert all_of_them == task


def test_predicted_states_count_as_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the state model: it calls "salt" completed at the first end it sees, and knows nothing else."""
    from msg2.states import label_filling
    from msg2.states.dataset import END, StateDataset

    asked: list[tuple[str, float, float]] = []
    plain = label_filling.predict_states

    def predict(network: object, given: StateDataset, numbers: Sequence[int], sampling: object):  # type: ignore[no-untyped-def]
        for number in numbers:
            video = given.videos[number]
            asked.append((video.video, float(video.frame_times.max()), float(video.ends.max())))
            (states,) = plain(network, given, [number], sampling)  # type: ignore[arg-type]
            scores = np.full_like(states.scores, -1.0)
            scores[np.flatnonzero(states.kind == END)[0] :, STEPS.index("salt")] = 1.0
            yield replace(states, scores=scores)

    monkeypatch.setattr(label_filling, "predict_states", predict)
    monkeypatch.setattr(video_forecasters, "recency", lambda graph: lambda done: {"+".join(done): 1.0})
    training, test = train_test_split(TASKS["Change a Tire"], seed=0)
    forecast = predicted_state_forecaster(training, INPUTS, BRIEF)
    asked.clear()
    for video in (video for video in test if video.sentences):
        steps = list(video.sequence())
        for place, said in enumerate(forecast(video)):
            done = steps[:place]
            if done and "salt" not in done:  # completed together with the first step: by name
                done = [*sorted([done[0], "salt"]), *done[1:]]
            assert list(said) == ["+".join(done)]
            if place:  # nothing that is said, or labelled, after the step begins
                (_, heard, labelled) = asked.pop(0)
                assert max(heard, labelled) <= (video.segments[place].start or 0)
    assert asked == []


def test_the_printed_values_are_those_of_the_paper() -> None:
    assert experiment.PAPER_ACCURACY["MSG²-noSSP"]["Change a Tire"] == 64.83
    assert (
        experiment.PAPER_ACCURACY["MSG²"].keys()
        == paper_results.NEXT_STEP.keys()
        >= experiment.PAPER_ACCURACY["STAM"].keys()
    )
    assert experiment.PAPER_ACCURACY["STAM"].keys() == experiment.PAPER_ACCURACY["ViViT"].keys()


@pytest.mark.slow
def test_the_real_tasks_have_the_splits_of_next_step(data: Path) -> None:
    found = read_narrated_tasks(data / "crosstask")
    whole = {task.name: task for task in read_all(data / "crosstask" / "crosstask_release")}
    assert list(found) == ["Build Simple Floating Shelves", "Change a Tire", "Make French Toast"]
    for name, task in found.items():
        for mine, theirs in zip(train_test_split(task), train_test_split(whole[name]), strict=True):
            assert [video.id for video in mine] == [video.id for video in theirs]
            assert [video.segments for video in mine] == [video.segments for video in theirs]
    assert sum(bool(video.sentences) for task in found.values() for video in task) == 501


def test_it_is_among_the_experiments() -> None:
    assert EXPERIMENTS["video-next-step"].dataset == "crosstask"
    assert EXPERIMENTS["video-next-step"].resumable
