"""The experiments on next steps and on transfer: small ones by hand, and the numbers on the public annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import horizon_forecasts, next_step_labels, next_step_transfer
from experiments.forecasting.logistic_ranker import logistic_ranker
from experiments.forecasting.next_step_transfer import TransferOptions
from experiments.result_tables import Result
from msg2.assist.next_step_evaluation import evaluate_ranker, train_test_split
from msg2.formats import read_all
from msg2.progress import no_progress
from msg2.task import Segment, Task, Video
from msg2.text_encoders import HashedWords
from tests.experiments.progress_recorder import ProgressRecorder


def column(result: Result, table: int, name: str) -> dict[Any, Any]:
    """First cell of every row -> its cell in this column."""
    found = result.tables[table]
    return {row[0]: row[list(found.columns).index(name)] for row in found.rows}


def task_of(sequence: str, name: str, videos: int = 10) -> Task:
    return Task(name, "abc", [Video(str(number), map(Segment, sequence)) for number in range(videos)])


def test_logistic_is_scikit_learns() -> None:
    """Where nothing repeats the choice is among all steps, at the start: the intercepts alone, twice (1 and START)."""
    task = Task("t", "abc", [Video(str(n), [Segment(name)]) for n, name in enumerate("aaabbc")])
    from sklearn.linear_model import LogisticRegression

    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit([[1.0, 1.0]] * 6, [*"aaabbc"])
    expected = dict(zip(theirs.classes_.tolist(), theirs.predict_proba([[1.0, 1.0]])[0].tolist(), strict=True))
    assert logistic_ranker(task)([]) == pytest.approx(expected, abs=1e-3)


def test_transfer_on_a_few_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tasks = [task_of("abc", "one"), task_of("abc", "two"), task_of("cab", "three")]
    monkeypatch.setattr(next_step_transfer, "read_all", lambda path: tasks)
    monkeypatch.setattr(next_step_transfer, "TransferOptions", lambda: TransferOptions(sizes=(2,), splits=1))
    reported = ProgressRecorder()
    result = next_step_transfer.run(tmp_path, ExperimentOptions(folder=tmp_path), reported)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "transfer"
    assert list(result.tables[0].columns) == ["ranker", "2", "all"]
    assert column(result, 0, "2")["bigram"] == column(result, 0, "all")["learned"] == 100
    assert column(result, 1, "all")["learned"] < column(result, 1, "2")["learned"]  # surer with more videos
    assert (tmp_path / "transfer.svg").read_bytes().startswith(b"<?xml")
    assert reported == ["split 0, one", "split 0, two", "split 0, three"]


def test_test_videos_are_never_touched() -> None:
    """Other test videos of the task, and of the tasks it borrows from, change nothing in what is learnt."""
    tasks = [task_of("abc", "one"), task_of("acb", "two"), task_of("cab", "three")]
    seen = [train_test_split(task, seed=0) for task in tasks]
    whole = [training for training, _ in seen]
    before = next_step_transfer.fit_rankers(next_step_transfer.subsample_videos(whole[0], 3, 0), whole, HashedWords())
    changed = []
    for task, (_, test) in zip(tasks, seen, strict=True):
        ids = {video.id for video in test}
        changed.append(task.with_videos(Video(v.id, map(Segment, "bca")) if v.id in ids else v for v in task))
    assert changed != tasks
    again = [train_test_split(task, seed=0)[0] for task in changed]
    after = next_step_transfer.fit_rankers(next_step_transfer.subsample_videos(again[0], 3, 0), again, HashedWords())
    for row, ranker in before.items():
        assert ranker(["a"]) == after[row](["a"])


def test_looks_and_waits_by_hand() -> None:
    training = Task("t", "ab", [Video(str(n), [Segment("a", 1, 2), Segment("b", 3 + n, 30)]) for n in range(9)])
    test = Task("t", "ab", [Video("x", [Segment("a", 1, 2), Segment("b", 100, 101)])])

    def always_a_first(done: Any) -> dict[str, float]:
        return {"a": 0.75, "b": 0.25} if not done else {"b": 1.0}

    first = next(
        look for look in horizon_forecasts.horizon_forecasts(always_a_first, training, test) if look.horizon == 1
    )
    assert (first.hit_share, [(one.confidence, one.correct) for one in first.steps]) == (
        1.0,
        [(0.75, 1.0), (0.25, 0.0)],
    )
    assert list(horizon_forecasts.gaps_within_interval(training, test)) == [True, False]


def test_learned_beats_the_baselines_on_a_real_task(data: Path) -> None:
    task = next(t for t in read_all(data / "crosstask" / "crosstask_release") if t.name == "Make Meringue")
    rows = ("bigram", "learned")
    right = dict.fromkeys(rows, 0.0)
    for seed in range(2):
        training, test = train_test_split(task, seed=seed)
        for row in rows:
            right[row] += evaluate_ranker(next_step_labels.ROWS[row](training), test).correct
    assert right["learned"] >= right["bigram"]


@pytest.mark.slow
def test_next_steps_of_crosstask(data: Path) -> None:
    """At least 62.5 % on the mean of tasks and five splits, with probabilities that can be believed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            next_step_labels, "ROWS", {row: next_step_labels.ROWS[row] for row in ("bigram", "logistic", "learned")}
        )
        result = next_step_labels.run(data, ExperimentOptions(splits=5), no_progress)
    accuracy = column(result, 0, "learned")["mean"]
    assert accuracy > 62.5
    assert accuracy > column(result, 0, "logistic")["mean"] > column(result, 0, "bigram")["mean"]
    assert column(result, 1, "calibration error, percent")["learned"] < 3
