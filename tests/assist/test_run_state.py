"""Where a run stands: what is eligible, and for how long, against the graph asked anew after every step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist.run_state import RunStateTracker, unknown_step_error
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from tests.assist.deviation_examples import NAMES, SEQUENCES, TEA, graphs_of_all_kinds


@given(graphs_of_all_kinds(), SEQUENCES)
def test_eligible_is_what_the_graph_says_of_what_is_done(graph: SubtaskGraph, done: list[str]) -> None:
    state = RunStateTracker(graph).state_after(done)
    assert state.completed == set(done)
    assert state.eligible == graph.eligible(done)


@given(graphs_of_all_kinds(), st.lists(st.sampled_from(NAMES), unique=True))
def test_waited_counts_from_the_first_moment_at_which_a_step_was_eligible(graph: SubtaskGraph, done: list[str]) -> None:
    ever = [graph.eligible(done[:time]) for time in range(len(done) + 1)]
    expected = {
        name: len(done) - next(time for time, eligible in enumerate(ever) if name in eligible)
        for name in NAMES
        if any(name in eligible for eligible in ever)
    }
    assert RunStateTracker(graph).state_after(done).waited == expected


def test_one_tracker_serves_many_runs() -> None:
    tracker = RunStateTracker(TEA)
    first = tracker.state_after(["boil", "bag"])
    assert tracker.state_after(["leaves"]).eligible == {"boil", "leaves", "sugar"}
    assert tracker.state_after(["boil", "bag"]) == first
    assert first.eligible == {"boil", "bag", "sugar", "pour"}


def test_what_is_done_rules_out_its_partners_and_what_should_have_preceded_it() -> None:
    tracker = RunStateTracker(TEA)
    assert "leaves" not in tracker.state_after(["bag"]).eligible
    assert "sugar" in tracker.state_after(["bag"]).eligible
    assert "sugar" not in tracker.state_after(["boil", "bag", "pour", "stir"]).eligible


def test_an_unknown_step_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match="'boyl' is not a step of the graph"):
        RunStateTracker(TEA).state_after(["boyl"])
    error = unknown_step_error("boyl", TEA, where="video 'v'")
    assert str(error).startswith("video 'v': 'boyl' is not a step of the graph")
    assert error.hint == "did you mean 'boil'?"
    assert unknown_step_error("xyz", TEA).hint is None
