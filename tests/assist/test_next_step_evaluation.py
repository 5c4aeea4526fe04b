"""Held-out evaluation: ties, splits, and a baseline on real data."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import Ranker, evaluate_next_step
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import NextStepScore, evaluate_ranker, limit_videos, train_test_split
from msg2.assist.rankers import bigram, make_ranker, recency
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.inference import infer
from msg2.inference.registry import DEFAULT_METHOD
from msg2.task import Segment, Task, Video


def task_of(sequences: Sequence[str], steps: str = "abc") -> Task:
    return Task("t", steps, [Video(f"v{i}", map(Segment, s)) for i, s in enumerate(sequences)])


def test_every_place_is_predicted_and_ties_are_shared() -> None:
    chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    assert evaluate_ranker(recency(chain), task_of(["abc", "ab"])) == NextStepScore(5.0, 5)
    free = SubtaskGraph("t", "abc", {})
    score = evaluate_ranker(recency(free), task_of(["bca"]))
    assert score.correct == pytest.approx(1 / 3 + 1 / 2 + 1)
    assert score.accuracy == pytest.approx(score.correct / 3)


def test_the_expected_value_is_that_of_random_choices() -> None:
    graph, videos = SubtaskGraph("t", "abc", {"c": step("a")}), task_of(["abc", "bac", "cab"])
    ranker, choice = recency(graph), random.Random(0)
    hits, rounds = 0, 4000
    for _ in range(rounds):
        for video in videos:
            sequence = video.sequence()
            for place, came in enumerate(sequence):
                probabilities = ranker(sequence[:place])
                best = max(probabilities.values())
                hits += choice.choice([n for n, p in probabilities.items() if p > best - 1e-9]) == came
    assert evaluate_ranker(ranker, videos).correct == pytest.approx(hits / rounds, rel=0.02)


@pytest.mark.parametrize(("gap", "correct"), [(1e-12, 0.5), (1e-6, 1.0)])
def test_nearly_equal_probabilities_are_ties(gap: float, correct: float) -> None:
    def ranker(done: Sequence[str]) -> Mapping[str, float]:
        return {"a": 0.5, "b": 0.5 - gap}

    assert evaluate_ranker(ranker, task_of(["a"])).correct == correct


def test_every_label_is_predicted() -> None:
    assert evaluate_ranker(bigram(task_of(["abc"])), task_of(["aabbac"]).with_first_labels()) == NextStepScore(3.0, 3)
    assert evaluate_ranker(bigram(task_of(["abc"])), task_of(["aabbac"])) == NextStepScore(3.0, 6)
    assert evaluate_ranker(bigram(task_of(["abab"])), task_of(["abababa"])) == NextStepScore(7.0, 7)


def test_nothing_to_predict() -> None:
    assert evaluate_ranker(bigram(task_of([])), task_of([])).accuracy is None


# -- split ------------------------------------------------------------------------------------------------------------


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_split_parts_the_videos(count: int, share: float, seed: int) -> None:
    task = task_of(["abc"] * count)
    train, test = train_test_split(task, seed, share)
    assert {v.id for v in train} | {v.id for v in test} == {v.id for v in task}
    assert len(train) + len(test) == count
    assert len(test) == min(max(1, round(share * count)), count - 1)


def test_split_depends_on_ids_and_seed_only() -> None:
    one = Task("t", "a", [Video(f"v{i}", [Segment("a")]) for i in range(40)])
    other = Task("u", "ab", [Video(f"v{i}", [Segment("b")]) for i in reversed(range(40))])
    ids = [[video.id for video in train_test_split(task, seed=3)[1]] for task in (one, other)]
    assert ids[0] == ids[1]
    assert ids[0] != [video.id for video in train_test_split(one, seed=4)[1]]


def test_one_video_cannot_be_split() -> None:
    with pytest.raises(InputError, match="none can be held out"):
        train_test_split(task_of(["abc"]))


@pytest.mark.parametrize("options", [{"test_share": 0.0}, {"test_share": 1.0}, {"seed": -1}])
def test_split_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        train_test_split(task_of(["abc"] * 9), **options)  # type: ignore[arg-type]


# -- held-out videos --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ranker"),
    [
        ("recency", lambda training: recency(infer(training, "always-before", delta=0.6))),
        ("bigram", bigram),
        ("learned", lambda training: fit_forecaster(infer(training, "always-before", delta=0.6), training)),
    ],
)
def test_tasks_and_splits_are_averaged(name: str, ranker: Callable[[Task], Ranker]) -> None:
    tasks = [task_of(["abc", "acb", "ab", "abc"]), Task("u", "ab", task_of(["ab", "ba", "ab"]).videos)]
    done: list[tuple[int, int | None, str]] = []
    options = {} if name == "bigram" else {"method": "always-before", "delta": 0.6}
    found = evaluate_next_step(tasks, name, splits=3, progress=lambda *args: done.append(args), **options)
    expected = {}
    for task in tasks:
        parts = [train_test_split(task, seed=seed) for seed in range(3)]
        expected[task.name] = sum(evaluate_ranker(ranker(train), test).accuracy or 0 for train, test in parts) / 3
    assert found.tasks == pytest.approx(expected)
    assert found.accuracy == pytest.approx(sum(expected.values()) / 2)
    assert found.to_json() == {
        "accuracy": found.accuracy,
        "tasks": found.tasks,
        "ranker": name,
        "method": None if name == "bigram" else "always-before",
        "splits": 3,
    }
    assert done[:2] == [(0, 6, "t, split 1 of 3"), (1, 6, "t, split 2 of 3")]
    assert [each[:2] for each in done] == [(number, 6) for number in range(7)]
    assert evaluate_next_step(tasks[0], name, splits=3, **options).tasks == {"t": found.tasks["t"]}


def test_graphs_are_learned_by_the_default_method() -> None:
    tasks = task_of(["abc", "acb", "ab", "abc"] * 3)
    found = evaluate_next_step(tasks, splits=2)
    parts = [train_test_split(tasks, seed=seed) for seed in range(2)]
    rankers = (make_ranker("learned", infer(training, DEFAULT_METHOD), training) for training, _ in parts)
    shares = [evaluate_ranker(ranker, test).accuracy or 0 for ranker, (_, test) in zip(rankers, parts, strict=True)]
    assert (found.accuracy, found.method) == (pytest.approx(sum(shares) / 2), DEFAULT_METHOD)


def test_a_task_without_labels_is_left_out() -> None:
    found = evaluate_next_step(task_of(["", "", ""]), "bigram")
    assert (found.tasks, found.accuracy) == ({}, None)


def test_an_unknown_ranker_is_named() -> None:
    with pytest.raises(InputError, match="there is no ranker 'oracle'"):
        evaluate_next_step(task_of(["abc", "abc"]), "oracle")


# -- real data --------------------------------------------------------------------------------------------------------


def crosstask(release: Path) -> list[Task]:
    """The primary tasks, read here in a few lines: this test is about the evaluation alone."""
    lines = [line.strip() for line in (release / "tasks_primary.txt").read_text().splitlines()]
    tasks = []
    for start in range(0, len(lines) - 4, 6):
        number, name, steps = lines[start], lines[start + 1], lines[start + 4].split(",")
        videos = []
        for file in (release / "annotations").glob(f"{number}_*.csv"):
            rows = [row for row in csv.reader(file.read_text().splitlines()) if row]
            videos.append(Video(file.stem, [Segment(steps[int(n) - 1], float(s), float(e)) for n, s, e in rows]))
        tasks.append(Task(name, steps, videos))
    return tasks


def test_bigram_on_crosstask_is_near_the_known_value(data: Path) -> None:
    """58.1 % is the value this baseline is known to have on 18 tasks with 15 % of the videos held out."""
    tasks = crosstask(data / "crosstask" / "crosstask_release")
    assert (len(tasks), sum(map(len, tasks))) == (18, 2750)
    accuracies = []
    for seed in range(5):
        for task in tasks:
            train, test = train_test_split(task.with_first_labels(), seed=seed)
            accuracies.append(evaluate_ranker(bigram(train), test).accuracy)
    assert sum(accuracies) / len(accuracies) == pytest.approx(0.581, abs=0.015)


def test_of_very_many_videos_some_are_taken(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("msg2.assist.next_step_evaluation.MOST_VIDEOS", 10)
    task = Task("tea", ["boil", "pour"], [Video(f"v{n:02}", map(Segment, ["boil", "pour"])) for n in range(25)])
    with caplog.at_level("WARNING", "msg2"):
        assert evaluate_next_step(task, method="always-before").accuracy == 1
    assert [record.getMessage() for record in caplog.records][:1] == ["tea: 10 of 25 videos are taken, evenly spread"]
    assert len(limit_videos(task)) == 10
