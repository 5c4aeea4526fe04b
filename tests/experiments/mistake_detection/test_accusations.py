"""Who is accused: swapped neighbours against their definition, counts against loops, a quick run on real data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection import accusations
from experiments.mistake_detection.accusations import FOLDS, LEARNERS, swap_needed_neighbours
from msg2.assist import check
from msg2.graph import SubtaskGraph, step
from msg2.task import Absent, Segment, Task, Video
from tests.assist.deviation_examples import NAMES, graphs_of_all_kinds
from tests.experiments.mistake_detection.test_online_mistakes import folder  # noqa: F401
from tests.experiments.progress_recorder import ProgressRecorder

CHAIN = SubtaskGraph("tea", ["boil", "pour", "sip"], {"pour": step("boil"), "sip": step("pour")}, optional=["sip"])


def timed(names: Sequence[str], id: str = "v", lengths: Sequence[int] = ()) -> Video:
    """Steps that start every ten seconds and take five, or as long as is said."""
    seconds = lengths or [5] * len(names)
    return Video(id, [Segment(n, 10 * i, 10 * i + s) for i, (n, s) in enumerate(zip(names, seconds, strict=True))])


# -- swapped neighbours -------------------------------------------------------------------------------------------

LENGTHS = st.lists(st.integers(1, 25), min_size=5, max_size=5)


@given(graphs_of_all_kinds(), st.permutations(NAMES), LENGTHS, st.integers(0, 100))
def test_two_neighbours_of_which_one_needs_the_other_change_places(
    graph: SubtaskGraph, order: list[str], lengths: list[int], seed: int
) -> None:
    video = timed(order, "v", lengths)
    possible = [
        (one, other)
        for one, other in zip(video.segments, video.segments[1:], strict=False)
        if one.end <= other.start and graph.kind(one.step, other.step) == "needs"
    ]
    copy = swap_needed_neighbours(video, graph, np.random.default_rng(seed))
    if copy is None:
        assert possible == []
        return
    assert copy.id != video.id
    assert [(s.start, s.end) for s in copy.segments] == [(s.start, s.end) for s in video.segments]
    moved = [(a, b) for a, b in zip(video.segments, copy.segments, strict=True) if a.step != b.step]
    assert len(moved) == 2
    (first, late), (second, early) = moved
    assert (first, second) in possible
    assert (late.step, early.step) == (second.step, first.step)
    assert late.before(early)


def test_the_pair_is_drawn_and_the_copy_is_accused() -> None:
    found = set()
    for seed in range(20):
        copy = swap_needed_neighbours(timed(["boil", "pour", "sip"]), CHAIN, np.random.default_rng(seed))
        assert copy is not None
        found.add(copy.sequence())
        (mistake,) = check(CHAIN, copy, "unknown").mistakes
        assert mistake.kind == "order"
    assert found == {("pour", "boil", "sip"), ("boil", "sip", "pour")}
    if_done = SubtaskGraph("t", ["boil", "pour"], {}, order=[("boil", "pour")], optional=["boil"])
    assert swap_needed_neighbours(timed(["boil", "pour"]), if_done, np.random.default_rng(0)) is None


# -- counts -------------------------------------------------------------------------------------------------------


def test_every_video_is_judged_once_by_a_graph_that_has_not_seen_it() -> None:
    videos = [timed(["boil", "pour", "sip"], f"v{n:02d}") for n in range(10)]
    videos += [timed(["pour", "boil"], "w0"), timed(["sip"], "w1")]
    task = Task("tea", CHAIN.steps, videos)
    trained: list[set[str]] = []

    def learn(training: Task, absent: Absent) -> SubtaskGraph:
        assert absent == "unknown"
        trained.append({video.id for video in training})
        return CHAIN

    counts = accusations.accusations(task, learn)
    everyone = {video.id for video in task}
    left_out = [everyone - seen for seen in trained]
    assert len(left_out) == FOLDS
    assert sorted(id for fold in left_out for id in fold) == sorted(everyone)
    # The swap is accused, what may only lack its labels is not; ten videos have needed neighbours.
    assert counts == {"videos": 12, "accused": 1, "swapped": 10, "swapped accused": 10}


def test_an_empty_graph_accuses_nobody_and_has_nothing_to_swap() -> None:
    task = Task("tea", CHAIN.steps, [timed(["pour", "boil"], f"v{n}") for n in range(5)])
    counts = accusations.accusations(task, LEARNERS["nothing is ever wrong (empty graph)"])
    assert counts == {"videos": 5, "accused": 0, "swapped": 0, "swapped accused": 0}


@pytest.fixture
def sets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """Nine flawless recordings of a recipe, one with a swap, one without a step; and two tasks for CrossTask."""
    usual = [timed(["boil", "pour", "sip"], f"v{n:02d}") for n in range(39)]
    tasks = [Task(name, CHAIN.steps, [*usual, timed(["pour", "boil"], "w")]) for name in ("tea", "coffee")]
    monkeypatch.setattr(accusations, "read_all", lambda path: tasks)
    return folder


def test_tables_by_hand(sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = "nothing is ever wrong (empty graph)"
    monkeypatch.setattr(accusations, "LEARNERS", {name: LEARNERS[name] for name in (empty, "likelihood")})
    reported = ProgressRecorder()
    result = accusations.run(sets, ExperimentOptions(quick=True), reported)
    assert reported == ["CrossTask: tea", "CrossTask: coffee", "CaptainCook4D, file: Tea", "CaptainCook4D, time: Tea"]
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "accusations"
    crosstask, cooking = ({(row[0], *row[1:2]): row for row in table.rows} for table in result.tables)
    rows = {name: row for (name, _), row in crosstask.items()}
    assert rows[empty] == [empty, 80, 0, 0.0, 0, 0, None]
    # One video in 40 swaps the steps; where its turn comes, the graph was learned from the usual ones only.
    assert rows["likelihood"] == ["likelihood", 80, 2, 2.5, 78, 78, 100.0]
    assert result.facts["by task"]["tea"] == {"videos": 40, "accused": 1, "swapped": 39, "swapped accused": 39}
    for order in ("file", "time"):
        assert cooking[empty, order] == [empty, order, 2, 0, 0.0, 9, 0, 0.0]
        # Nine recordings are too few to call another order a mistake; the step that is missing is one.
        assert cooking["likelihood", order] == ["likelihood", order, 2, 1, 50.0, 9, 0, 0.0]
    assert accusations.run(sets, ExperimentOptions(quick=True), reported).to_json() == result.to_json()


# -- real data ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_quick_run_on_real_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: LEARNERS[name] for name in ("nothing is ever wrong (empty graph)", "likelihood")}
    monkeypatch.setattr(accusations, "LEARNERS", chosen)
    tasks, recipes = accusations.read_all(data / "crosstask")[:1], accusations.read_recipes
    monkeypatch.setattr(accusations, "read_all", lambda path: tasks)
    monkeypatch.setattr(accusations, "read_recipes", lambda path, order: recipes(path, order)[:1])
    result = accusations.run(data, ExperimentOptions.for_quick_look(), ProgressRecorder())
    crosstask, cooking = result.tables
    empty, learned = crosstask.rows
    assert empty[1] == learned[1] == len(tasks[0])
    assert empty[2] == 0
    assert learned[3] <= 20
    assert learned[6] >= 60
    for row in cooking.rows:
        _, _, wrong, found, _, right, alarms, _ = row
        assert 0 <= found <= wrong
        assert 0 <= alarms <= right
        if row[0] == "likelihood":
            assert found / wrong > alarms / right
