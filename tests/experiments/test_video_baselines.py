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

from msg2.assist import bigram, evaluate, recency, split
from msg2.experiments import EXPERIMENTS, foretelling, paper
from msg2.experiments import video_baselines as experiment
from msg2.experiments.cells import Found
from msg2.experiments.foretelling import Foretold, Learner, Senses, by_filled_labels, by_labels, by_network, right
from msg2.experiments.heard import Memory
from msg2.experiments.video_baselines import Cell
from msg2.inference import infer
from msg2.media.text import HashedWords, narration_features
from msg2.options import ExperimentOptions, ForeseeingOptions, NarrationOptions, SplitOptions, VideoNextStepOptions
from msg2.readers import read_all
from msg2.task import Segment, Sentence, Step, Task, Video

STEPS = ("boil", "cut", "fry", "salt")
ENCODE = Memory(HashedWords(16))
SENSES = Senses(lambda video: narration_features(video.sentences, ENCODE), True, ENCODE)
TRAINING = replace(ForeseeingOptions().training, epochs=2)
BRIEF = VideoNextStepOptions(
    ForeseeingOptions(width=8, heads=2, layers=1, training=TRAINING), NarrationOptions(epochs=2, warmup=1)
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
    monkeypatch.setattr(experiment, "narrated_tasks", lambda folder: TASKS)
    monkeypatch.setattr(experiment, "senses", lambda *_: SENSES)
    monkeypatch.setattr(experiment.VideoNextStepOptions, "quick", staticmethod(lambda: BRIEF))


QUICK = ExperimentOptions(splits=2, quick=True)


@pytest.mark.usefixtures("small")
def test_labels_are_scored_as_everywhere() -> None:
    for task in TASKS.values():
        for seed in range(2):
            training, test = split(task, SplitOptions(seed=seed))
            for row, ranker in (
                ("bigram", bigram(training)),
                ("MSG²-noSSP", recency(infer(training, "msg2", delta=0.55))),
            ):
                found = experiment.measured(Cell(row, task.name, seed), Path(), "words", BRIEF)
                score = evaluate(ranker, test)
                assert (found["right"], found["steps"]) == (pytest.approx(score.correct), score.total)
                first = sum(evaluate(ranker, [Video("v", video.segments[:1])]).correct for video in test)
                assert found["later_right"] == pytest.approx(score.correct - first)
                assert found["later_steps"] == score.total - len(test)


@pytest.mark.usefixtures("small")
def test_no_row_learns_from_a_test_video(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of every split: the videos it learns from, those it may look at, and those it is asked about."""
    notes: dict[str, list[tuple[set[str], set[str]]]] = {}

    def watched(row: str, learner: Learner) -> Learner:
        def learn(training: Task, senses: Senses, options: VideoNextStepOptions) -> Foretold:
            learnt, asked = {video.id for video in training}, set[str]()
            looked: set[str] = set()

            def noted(video: Video):  # type: ignore[no-untyped-def]
                looked.add(video.id)
                return senses.features(video)

            foretold = learner(training, replace(senses, features=noted), options)
            assert looked <= learnt
            notes.setdefault(row, []).append((learnt, asked))

            def ask(video: Video) -> Sequence[Mapping[Step, float]]:
                asked.add(video.id)
                return foretold(video)

            return ask

        return learn

    monkeypatch.setattr(experiment, "ROWS", {row: watched(row, one) for row, one in experiment.ROWS.items()})
    result = experiment.run(Path(), QUICK, lambda _: None)
    assert set(notes) == set(experiment.ROWS)
    for learnt, asked in notes["STAM"]:
        assert not learnt & asked
        assert learnt | asked == {video.id for video in TASKS["Change a Tire"]}
    assert all(one == notes["STAM"] for one in notes.values())
    published = [set(ids) for seeds in result.facts["test_videos"].values() for ids in seeds.values()]
    assert published == [asked for _, asked in notes["STAM"]]


@pytest.mark.usefixtures("small")
def test_a_run_its_tables_and_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, news = replace(QUICK, folder=tmp_path), list[str]()
    result = experiment.run(Path(), options, news.append)
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

    def never(*_: object, **__: object) -> Found:
        raise AssertionError("it has been measured")

    monkeypatch.setattr(experiment, "measured", never)
    assert experiment.run(Path(), options, news.append).to_json() == result.to_json()


@pytest.mark.parametrize("name", ["stam", "vivit", "text+labels"])
def test_a_network_foretells_what_is_left(name: str) -> None:
    training, test = split(TASKS["Change a Tire"], SplitOptions(seed=0))
    foretold = by_network(name)(training, SENSES, BRIEF)
    for video in test:
        sequence = video.sequence()
        for place, said in enumerate(foretold(video)):
            assert set(said) == set(STEPS) - set(sequence[:place])
            assert sum(said.values()) == pytest.approx(1)
        assert len(right(foretold, video)) == len(sequence)


def test_a_ranker_is_asked_about_every_step() -> None:
    video = TASKS["Change a Tire"].videos[1]
    said = by_labels(lambda task: lambda done: {"+".join(done): 1.0})(TASKS["Change a Tire"], SENSES, BRIEF)(video)
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

    monkeypatch.setattr(foretelling, "cross_filled", filled)
    monkeypatch.setattr(foretelling, "infer", inferred)
    task = TASKS["Change a Tire"]
    by_filled_labels(task, SENSES, BRIEF)
    heard, all_of_them = given
    assert {video.id for video in task} - {video.id for video in heard} == {"v00", "v05", "v10", "v15"}
    assert all_of_them == task


def test_the_printed_values_are_those_of_the_paper() -> None:
    assert experiment.PRINTED["MSG²-noSSP"]["Change a Tire"] == 64.83
    assert experiment.PRINTED["MSG²"].keys() == paper.NEXT_STEP.keys() >= experiment.PRINTED["STAM"].keys()
    assert experiment.PRINTED["STAM"].keys() == experiment.PRINTED["ViViT"].keys()


def test_the_real_tasks_have_the_splits_of_next_step(data: Path) -> None:
    found = experiment.narrated_tasks(data / "crosstask")
    whole = {task.name: task for task in read_all(data / "crosstask" / "crosstask_release")}
    assert list(found) == ["Build Simple Floating Shelves", "Change a Tire", "Make French Toast"]
    for name, task in found.items():
        for mine, theirs in zip(split(task), split(whole[name]), strict=True):
            assert [video.id for video in mine] == [video.id for video in theirs]
            assert [video.segments for video in mine] == [video.segments for video in theirs]
    assert sum(bool(video.sentences) for task in found.values() for video in task) == 501


def test_it_is_among_the_experiments() -> None:
    assert EXPERIMENTS["video-next-step"].needs == "crosstask"
    assert EXPERIMENTS["video-next-step"].long
