"""The contest on a small process whose right answers are known, and the controls on traces counted by hand."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.inductive_miner import MinedFitness
from experiments.process_discovery import discovery_contest
from experiments.process_discovery.contest_models import ContestModel, find_models
from experiments.process_discovery.trace_scorers import (
    SCORERS,
    bigram_scorer,
    count_scorer,
    likelihood_scorer,
    precedence_scorer,
)
from experiments.result_tables import Result
from msg2.progress import no_progress
from msg2.task import Segment, Task, Video

GOOD, BAD = ("a", "b", "c"), ("a", "c", "b")


def task_of(traces: Sequence[Sequence[str]]) -> Task:
    videos = [Video(f"{number:03d}", map(Segment, trace)) for number, trace in enumerate(traces)]
    return Task("t", sorted({step for trace in traces for step in trace}), videos)


def write_model(folder: Path, name: str, traces: Sequence[Sequence[str]]) -> None:
    """A model whose pairs are one that fits first, and one that fits second."""
    rows = "".join(f"{number},{step}\n" for number, trace in enumerate(traces) for step in trace)
    for kind in ("clean", "noisy"):
        with gzip.open(folder / f"{name}_train_{kind}.csv.gz", "wt", encoding="utf-8") as file:
            file.write("video,step\n" + rows)
    with gzip.open(folder / f"{name}_pairs.csv.gz", "wt", encoding="utf-8") as file:
        good, bad = " ".join(GOOD), " ".join(BAD)
        file.write(f"test,base,test_fits_better\n{good},{bad},1\n{bad},{good},0\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contest = tmp_path / "pdc2025"
    contest.mkdir()
    write_model(contest, "000000", [GOOD] * 40)
    write_model(contest, "010001", [(*GOOD, "a", "b", "c")] * 20 + [GOOD] * 20)
    return tmp_path


def rows_of(result: Result, table: int) -> dict[Any, list[Any]]:
    return {row[0]: list(row[1:]) for row in result.tables[table].rows}


def test_every_row_decides_what_is_clear(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery_contest, "find_pm4py", lambda: None)
    result = discovery_contest.run(folder, ExperimentOptions(), no_progress)
    assert rows_of(result, 0) == {row: [100, 100, 100, 100] for row in SCORERS}
    by_construct = rows_of(result, 1)["likelihood"]
    assert by_construct == [None, 100, None, None, None, 100]  # the second model has loops and duplicate tasks
    assert result.facts["pm4py"] is None


def test_peers_stand_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fitness(log: Any, threshold: float, traces: Sequence[Any], aligned: int, python: Path) -> MinedFitness:
        """Replay that cannot tell, and alignments that can."""
        costs = [0.0 if trace == GOOD else -2.0 for trace in traces[:aligned]]
        return MinedFitness(1.0, [1.0] * len(traces), 2.0, costs, 4.0)

    monkeypatch.setattr(discovery_contest, "find_pm4py", lambda: Path("python"))
    monkeypatch.setattr(discovery_contest, "pm4py_version", lambda python: "2")
    monkeypatch.setattr(discovery_contest, "mined_fitness", fitness)
    result = discovery_contest.run(folder, ExperimentOptions(), no_progress)
    assert rows_of(result, 0)["inductive miner, noise 0"] == [50, 50, 50, 50]
    aligned = result.tables[1].rows[0]
    assert aligned[2] == 100
    assert aligned[3] == pytest.approx(4.0 * 100 / (2 * discovery_contest.ALIGNED_PAIRS))
    assert result.facts["aligned"] == ["000000"]  # every sixth model


def test_constructs_are_read_from_the_name(tmp_path: Path) -> None:
    assert ContestModel("020110", tmp_path).constructs == ("loops", "invisible tasks", "optional tasks")
    assert find_models(tmp_path) == []


def test_precedence_counts_rules_that_are_kept_and_broken() -> None:
    score = precedence_scorer(task_of([GOOD] * 10))  # a before b and c, b before c
    assert score(GOOD) == 3
    assert score(BAD) == 1  # b before c is broken
    assert score(("c",)) == -2  # neither a nor b came first


def test_a_bigram_prefers_what_follows_usually() -> None:
    score = bigram_scorer(task_of([GOOD] * 10))
    assert score(GOOD) > score(BAD)
    assert score(GOOD) == pytest.approx(4 * log(11 / 14))


def test_counts_of_pairs_count_what_is_never_seen() -> None:
    score = count_scorer(task_of([GOOD] * 100))
    assert score(GOOD) == 0
    # c before b; a to c, c to b, and b at the end, are never seen.
    assert score(BAD) == -4
    # c is missing: it is there with a, with b and in all traces; and b is never the end.
    assert score(("a", "b")) == -4


def test_a_step_that_was_never_seen_is_left_aside_by_the_likelihood() -> None:
    score = likelihood_scorer(task_of([GOOD] * 20))
    assert score(("a", "x", "b", "c")) == score(GOOD)
