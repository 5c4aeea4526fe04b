"""The choice of δ against a likelihood added up label by label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import TRUE, Formula, all_of, any_of, step
from msg2.inference import METHODS, Constraints, Method, delta, infer, sweep
from msg2.sequences import Sequences
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.inference.conftest import gaps_at, tasks


def states_of(task: Task) -> list[tuple[Step, frozenset[Step]]]:
    """(step, what was completed when it started) of every label."""
    return [
        (segment.step, frozenset(gaps_at(video, place)))
        for video in task
        for place, segment in enumerate(video.segments)
    ]


def violations(formulas: Mapping[Step, Formula], task: Task) -> int:
    return sum(not formulas.get(name, TRUE).evaluate(completed) for name, completed in states_of(task))


def expected_likelihoods(formulas: Mapping[Step, Formula], training: Task, held_out: Task) -> list[float]:
    """log p = log((1 − ε) · eligible / |eligible| + ε / |open|), ε by Laplace's rule of succession."""
    epsilon = (violations(formulas, training) + 1) / (len(states_of(training)) + 2)
    result = []
    for name, completed in states_of(held_out):
        left = [other for other in held_out.steps if other not in completed or other == name]
        eligible = [other for other in left if formulas.get(other, TRUE).evaluate(completed)] or left
        p = (1 - epsilon) * (name in eligible) / len(eligible) + epsilon / len(left)
        result.append(math.log(p))
    return result


@st.composite
def halves(draw: st.DrawFn) -> tuple[Task, Task, dict[Step, Formula]]:
    """Training and held-out videos with the same steps, and any preconditions."""
    task = draw(tasks(repeats=True))
    cut = draw(st.integers(0, len(task)))
    formulas = {}
    for index, name in enumerate(task.steps[1:], start=1):
        parents = draw(st.lists(st.sampled_from(task.steps[:index]), max_size=2))
        formulas[name] = draw(st.sampled_from([all_of, any_of]))(map(step, parents)) if parents else TRUE
    return task.with_videos(task.videos[:cut]), task.with_videos(task.videos[cut:]), formulas


@given(halves())
def test_likelihoods_of_held_out_labels(given_: tuple[Task, Task, dict[Step, Formula]]) -> None:
    training, held_out, formulas = given_
    found = delta.log_likelihoods(formulas, Sequences.from_task(training), Sequences.from_task(held_out))
    assert sorted(found) == pytest.approx(sorted(expected_likelihoods(formulas, training, held_out)))
    sequences = Sequences.from_task(held_out)
    for point in delta.sweep_delta(sequences, lambda sequences, delta: formulas, seed=0):
        assert point.held == pytest.approx(1 - violations(formulas, held_out) / len(states_of(held_out)))


def test_trials_average_over_the_labels_of_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    task = simulate(household_world("Perform CPR"), SimulationOptions(videos=13), seed=4).task
    monkeypatch.setattr(delta, "GRID", (0.6, 0.9))
    monkeypatch.setattr(delta, "FOLDS", 4)

    def learner(sequences: Sequences, delta: float) -> Mapping[Step, Formula]:
        names = sorted(task.steps)
        return {names[1]: step(names[0])} if delta < 0.8 else {}

    tried = delta.evaluate_grid(Sequences.from_task(task), learner, seed=3)
    folds = [
        (task.with_videos(task.videos[i] for i in training), task.with_videos(task.videos[i] for i in held_out))
        for training, held_out in Sequences.from_task(task).folds(4, 3)
    ]
    for tried_delta, fit in tried.items():
        expected = [
            value
            for training, held_out in folds
            for value in expected_likelihoods(learner(Sequences.from_task(training), tried_delta), training, held_out)
        ]
        assert fit == pytest.approx(sum(expected) / len(expected))
    assert list(tried) == [0.6, 0.9]


def test_learners_never_see_the_held_out_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "GRID", (0.5,))
    monkeypatch.setattr(delta, "FOLDS", 3)
    task = Task("t", "ab", (Video(str(number), map(Segment, "ab")) for number in range(7)))
    seen: list[int] = []

    def learner(sequences: Sequences, delta: float) -> Mapping[Step, Formula]:
        seen.append(len(sequences.videos))
        return {}

    delta.evaluate_grid(Sequences.from_task(task), learner, seed=0)
    assert sorted(seen) == [4, 5, 5]


def test_many_videos_do_not_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GRID", (0.5,)), ("MAX_TRAINING", 7), ("MAX_HELD_OUT", 10)):
        monkeypatch.setattr(delta, name, value)
    task = Task("t", "ab", (Video(f"{number:02d}", map(Segment, "ab")) for number in range(30)))
    seen: list[int] = []

    def learner(sequences: Sequences, delta: float) -> Mapping[Step, Formula]:
        seen.append(len(sequences.videos))
        return {}

    delta.evaluate_grid(Sequences.from_task(task), learner, seed=0)
    assert seen == [7, 7]  # six held-out videos in the first fold and four in the second


def test_ties_go_to_the_largest_delta() -> None:
    fits = {0.5: -1.0, 0.7: -0.5, 0.9: -0.5 - 5e-10, 0.96: -0.6}
    assert delta.best_delta(fits) == 0.9
    assert delta.best_delta(dict(reversed(fits.items()))) == 0.9


def test_the_chosen_delta_is_the_best_of_the_sweep_and_is_written_down() -> None:
    task = simulate(household_world("Make Coffee"), SimulationOptions(), seed=0).task
    graph = infer(task, "msg2", seed=5)
    points = sweep(task, seed=5)
    (chosen,) = [point for point in points if point.chosen]
    assert chosen.fit == max(point.fit for point in points)
    assert graph.method["options"]["delta"] == chosen.delta
    assert graph.method["delta_chosen"]["fits"] == {f"{p.delta:g}": round(p.fit, 6) for p in points}
    assert tuple(point.delta for point in points) == delta.GRID
    fixed = infer(task, "msg2", delta=chosen.delta)
    assert fixed.preconditions == graph.preconditions
    assert chosen.edges == len(graph.edges())
    obeyed = 1 - violations(graph.preconditions, task) / len(states_of(task))
    assert chosen.held == pytest.approx(obeyed)


def test_an_order_that_nearly_always_holds_is_kept() -> None:
    """Nine videos in ten agree: to demand the order (purity 0.9 > δ) predicts better than to demand none."""
    seen = ["ab"] * 36 + ["ba"] * 4
    task = Task("t", "ab", (Video(f"{number:02d}", map(Segment, steps)) for number, steps in enumerate(seen)))
    graph = infer(task, "msg2")
    assert graph.edge_pairs() == {("a", "b")}
    assert 0.7 < graph.method["options"]["delta"] < 0.9
    clean = infer(task.with_videos(task.videos[:36]), "msg2")
    assert clean.method["options"]["delta"] == max(delta.GRID)


def test_one_video_takes_the_strictest() -> None:
    task = Task("t", "ab", [Video("v", map(Segment, "ab"))])
    assert delta.evaluate_grid(Sequences.from_task(task), lambda sequences, delta: {}, 0) == {}
    graph = infer(task, "msg2")
    assert graph.method["options"]["delta"] == max(delta.GRID)
    assert "strictest" in graph.method["delta_chosen"]["rule"]


@pytest.mark.parametrize("second", [[], [Segment("a")]])
def test_videos_without_labels_cannot_be_held_out(second: list[Segment]) -> None:
    task = Task("t", "ab", [Video("1", []), Video("2", second)])
    graph = infer(task, "msg2")
    assert graph.preconditions == {}
    assert graph.method["options"]["delta"] == max(delta.GRID)
    with pytest.raises(InputError, match="fewer than two videos with labels"):
        sweep(task)


def test_only_methods_with_a_delta_are_swept() -> None:
    for method in ("msgi", "likelihood"):
        with pytest.raises(InputError, match=r"no delta to sweep over\n.*msg2 and always-before have it"):
            sweep(Task("t", "ab", []), method)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.compares_purity])
def test_what_was_learned_is_not_learned_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three videos, all purities of a fold are 0, ½ and 1: a graph per fold, and the chosen one."""
    task = simulate(household_world("Perform CPR"), SimulationOptions(videos=3), seed=5).task
    learned: list[float] = []
    known = METHODS[method]

    def learn(sequences: Sequences, options: Any) -> Any:
        learned.append(options.delta)
        return known.learn(sequences, options)

    graphs = []
    for compares_purity in (True, False):
        counted = Method(known.options, learn, known.summary, compares_purity=compares_purity)
        monkeypatch.setitem(METHODS, method, counted)
        graphs.append(infer(task, method, delta="auto").dumps())
    assert len(learned) == (3 + 1) + (3 * len(delta.GRID) + 1)
    assert graphs[0] == graphs[1]


def test_knowledge_changes_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    task = simulate(household_world("Perform CPR"), SimulationOptions(videos=3), seed=5).task
    constraints = Constraints(hints=[(one, other, 2) for one, other in pairwise(reversed(task.steps))])
    graphs = []
    for compares_purity in (True, False):
        monkeypatch.setitem(METHODS, "msg2", replace(METHODS["msg2"], compares_purity=compares_purity))
        graphs.append(infer(task, "msg2", constraints=constraints).dumps())
    assert graphs[0] == graphs[1]
