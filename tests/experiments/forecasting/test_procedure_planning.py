"""Procedure planning: scores and baselines by hand, and the numbers on the public annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import EXPERIMENTS
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import procedure_planning
from experiments.forecasting.procedure_planning import (
    WindowScore,
    best_strength,
    interpolated_ngram,
    most_frequent_between,
    most_frequent_middle,
    score_windows,
    success_difference,
    windows_of,
)
from experiments.result_tables import Result
from msg2.assist.planning import Plan
from msg2.progress import no_progress
from msg2.task import Segment, Task, Video
from tests.experiments.progress_recorder import ProgressRecorder


def task_of(*texts: str, name: str = "t") -> Task:
    return Task(name, "abcd", [Video(f"v{n:02}", map(Segment, text)) for n, text in enumerate(texts)])


def column(result: Result, table: int, name: str) -> dict[Any, Any]:
    """First cell of every row -> its cell in this column."""
    found = result.tables[table]
    return {row[0]: row[list(found.columns).index(name)] for row in found.rows}


def test_windows_have_the_repeats_of_the_video() -> None:
    assert windows_of(Video("v", map(Segment, "aabc")), 3) == [("a", "a", "b"), ("a", "b", "c")]
    assert windows_of(Video("v", map(Segment, "ab")), 3) == []


def test_scores_by_hand() -> None:
    """Asked for a··d: 'abcd' came, 'acbd' was said in half of the cases; asked for b··a, 'bbda' came."""

    def answer(first: str, last: str) -> list[Plan]:
        if first == "a":
            return [Plan(tuple("acbd"), 0.5, True), Plan(tuple("abcd"), 0.25, True)]
        return [Plan(tuple("bbda"), 0.75, True)]

    one, other = score_windows(answer, task_of("abcd", "bbda"), 4)
    assert (one.success, one.accuracy, one.iou, one.log_loss) == (False, 0.5, 1.0, pytest.approx(np.log(4)))
    assert (other.success, other.accuracy, other.iou) == (True, 1.0, 1.0)
    (unsure,) = score_windows(lambda first, last: [Plan(tuple("aad"), None, True)], task_of("abd"), 3)
    assert (unsure.accuracy, unsure.iou, unsure.log_loss) == (pytest.approx(2 / 3), pytest.approx(2 / 3), None)


def test_baselines_by_hand() -> None:
    task = task_of("abcd", "abcd", "acbd", "dbca")
    assert most_frequent_middle(task, 4)("d", "d")[0].steps == tuple("dbcd")
    assert most_frequent_between(task, 4)("a", "d")[0].steps == tuple("abcd")
    bigram, counted = (interpolated_ngram(task, 4, strength)("a", "d") for strength in (np.inf, 1e-6))
    for plans in (bigram, counted):
        assert len({plan.steps for plan in plans}) == 16
        assert sum(plan.probability or 0 for plan in plans) == pytest.approx(1)
    assert [round(plan.probability or 0, 4) for plan in counted[:2]] == [0.6667, 0.3333]
    by_bigram = {plan.steps: plan.probability for plan in bigram}
    assert by_bigram[tuple("abcd")] == max(by_bigram.values())


def test_the_strength_is_that_of_held_out_folds() -> None:
    """Where each window comes in one video only, counts mislead and bigrams help; where they decide, they are used."""
    assert best_strength([task_of(*["abcd", "acbd"] * 10)], 4) in procedure_planning.STRENGTHS
    loops = task_of(*(["abab", "babb"] * 2 + ["aaaa"]) * 6)
    best = best_strength([loops], 3)
    successes = {}
    for strength in procedure_planning.STRENGTHS:
        right = 0
        for fold in range(5):
            inside = loops.with_videos(v for n, v in enumerate(loops) if n % 5 == fold)
            others = loops.with_videos(v for n, v in enumerate(loops) if n % 5 != fold)
            right += sum(one.success for one in score_windows(interpolated_ngram(others, 3, strength), inside, 3))
        successes[strength] = right
    assert successes[best] == max(successes.values())


def test_differences_are_paired_by_video() -> None:
    def scores(*successes: bool) -> list[WindowScore]:
        return [WindowScore(f"v{n // 2}", one, 0.0, 0.0, None) for n, one in enumerate(successes)]

    ours, others = scores(True, True, True, False), scores(True, False, True, False)
    found = success_difference([ours, ours], [others, others])
    assert found.value == pytest.approx(0.25)
    assert (found.low, found.high) == (0.0, 0.5)  # without or with only the first video
    assert success_difference([ours], [ours]) == success_difference([others], [others])


def test_the_experiment_on_something_small(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task_of(*["abcd", "abcd", "acbd", "aabcd"] * 4, name=name) for name in ("one", "two")]
    monkeypatch.setattr(procedure_planning, "read_all", lambda path, repeats: tasks)
    recorder = ProgressRecorder()
    result = procedure_planning.run(Path(), ExperimentOptions(splits=2), recorder)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "planning"
    for table in (0, 2):
        success = column(result, table, "success rate")
        assert success["most frequent"] <= success["ours"] <= success["knows the test: modes of its windows"]
    assert recorder == [f"T = {length}, split {seed}" for length in (3, 4) for seed in (0, 1)]
    assert result.facts["seeds"] == [0, 1]
    assert EXPERIMENTS["planning"].dataset == "crosstask"


@pytest.mark.slow
def test_crosstask(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a quick earlier run, bigram 32.5 and with the counts of windows 36.0, over other splits."""
    monkeypatch.setattr(procedure_planning, "LENGTHS", (4,))
    result = procedure_planning.run(data, ExperimentOptions(splits=1), no_progress)
    success = column(result, 0, "success rate")
    assert 31 < success["bigram"] < 36
    assert 35 < success["n-gram with window counts"] < 39
    assert success["ours"] > success["bigram"] + 3
    assert success["most frequent"] < 20
    assert success["knows the test: modes of its windows"] > success["knows the test: modes of all windows"] > 40
