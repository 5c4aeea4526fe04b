"""Processes with loops, their statements, injected errors and exported models, on settings small enough to count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import tied_kinds
from experiments.graph_learning.process_trees import (
    ProcessTree,
    accepts,
    activity,
    add_loops,
    random_tree,
    sample_trace,
)
from experiments.process_discovery import exported_models, injected_errors
from experiments.process_discovery.true_statements import judge, on_clock
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, any_of, step
from msg2.progress import no_progress
from msg2.task import Segment, Task, Video

QUICK = ExperimentOptions.for_quick_look()


def test_a_process_accepts_its_own_traces_and_no_changed_ones() -> None:
    looped = ProcessTree(
        "loop", (ProcessTree("sequence", (activity("b"), activity("c"))), activity("again")), shares=(0.5,)
    )
    tree = ProcessTree("sequence", (activity("a"), looped))
    assert accepts(tree, tuple("abc"))
    assert accepts(tree, ("a", "b", "c", "again", "b", "c"))
    for wrong in (("a", "b", "c", "b", "c"), ("a", "b", "c", "again"), ("a",), ("b", "c"), ("a", "c", "b"), ("x",)):
        assert not accepts(tree, wrong)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        tree = add_loops(random_tree(rng), rng)
        assert accepts(tree, sample_trace(tree, rng))


def test_statements_are_counted_in_the_runs_that_tell() -> None:
    def run(name: str, *events: tuple[str, int]) -> Video:
        return Video(name, [Segment(event, at, at) for event, at in events])

    videos = [
        run("1", ("a", 0), ("b", 1), ("c", 2)),
        run("2", ("b", 0), ("a", 1)),
        run("3", ("a", 0), ("b", 0), ("c", 0)),  # simultaneous: nothing is told
        run("4", ("b", 0), ("c", 5), ("b", 9)),
    ]
    formulas = {"b": step("a"), "c": any_of([step("a"), step("b")])}
    graph = SubtaskGraph("t", "abc", formulas, responses=[("b", step("c"))], optional="ac")
    found = {text: (held, told) for _, text, _, held, told in judge(graph, Task("t", "abc", videos, "skipped"))}
    assert found["b needs a"] == (1, 3)
    assert found["c needs a | b"] == (2, 2)
    assert found["c follows b"] == (1, 3)
    assert found["b"] == (4, 4)
    lenient = {text: told for _, text, _, _, told in judge(graph, Task("t", "abc", videos))}
    assert lenient["b needs a"] == 2  # in the fourth, the label of a may be missing
    assert "b" not in lenient


def test_a_coarse_clock_makes_ties() -> None:
    task = on_clock([("a", "b", "c")] * 50, 86_400, 0.5, 0)
    starts = [[segment.start for segment in video.segments] for video in task]
    assert all(start is not None and start % 86_400 == 0 for own in starts for start in own)
    assert 0.5 < sum(own[0] == own[1] for own in starts) / 50 < 1


@pytest.mark.parametrize("kind", injected_errors.ERRORS)
def test_an_injected_error_changes_one_thing(kind: str) -> None:
    trace = tuple("abcd")
    wrong = injected_errors.inject(trace, kind, np.random.default_rng(1))
    sizes = {"skip": 3, "swap": 4, "duplicate": 5, "foreign": 5}
    assert wrong != trace or kind == "early stop"
    assert len(wrong) == sizes.get(kind, len(wrong))
    if kind == "early stop":
        assert wrong == trace[: len(wrong)]


def test_check_finds_injected_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CASES", 200), ("TESTED", 10)):
        monkeypatch.setattr(injected_errors, name, value)
    monkeypatch.setattr(injected_errors, "find_pm4py", lambda: None)
    for table in injected_errors.run(None, QUICK, no_progress).tables:
        (row,) = table.rows
        assert row[0] == "check"
        assert all(isinstance(share, float) and share > 0.6 for share in row[1:3])


def test_exported_models_are_replayed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def replay(python: Path, command: str, models: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
        assert command == "replay"
        assert {Path(str(model["file"])).suffix for model in models} == {*exported_models.SUFFIXES}
        return [{"fit": [True, False], "precision": 0.5} for _ in models]

    for name, value in (("CASES", 100), ("REPLAYED", 10), ("ask_pm4py", replay), ("pm4py_version", lambda python: "2")):
        monkeypatch.setattr(exported_models, name, value)
    monkeypatch.setattr(exported_models, "find_pm4py", lambda: Path("python"))
    (table,) = exported_models.run(None, QUICK, no_progress).tables
    assert [row[1:] for row in table.rows] == [[name, 50, 0.5] for name in ("PNML", "BPMN", "POWL")] * 2
    monkeypatch.setattr(exported_models, "find_pm4py", lambda: None)
    with pytest.raises(InputError, match="replayed by pm4py"):
        exported_models.run(None, QUICK, no_progress)


def test_kinds_on_a_coarse_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tied_kinds, "CASES", 60)
    (table,) = tied_kinds.run(None, QUICK, no_progress).tables
    shares = [share for row in table.rows for share in row[1:] if isinstance(share, float)]
    assert len(shares) == 18
    assert min(shares[::2]) > 70
    assert shares[5] < shares[1] == 100  # a clock of days tells less
