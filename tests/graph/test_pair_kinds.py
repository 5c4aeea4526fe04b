"""The kinds of pairs against all runs that a graph allows, enumerated one by one."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from msg2.graph import PairKind, SubtaskGraph, all_of, any_of, step
from msg2.task import Step

NAMES = "abcde"


@st.composite
def graphs(draw: st.DrawFn) -> SubtaskGraph:
    """Graphs of up to five steps in which what a step needs comes earlier in the alphabet."""
    names = NAMES[: draw(st.integers(2, 5))]
    preconditions = {}
    for place, name in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        if parents:
            preconditions[name] = draw(st.sampled_from([all_of, any_of]))(map(step, parents))
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    order = draw(st.lists(st.sampled_from(pairs), max_size=4))
    exclusive = draw(st.lists(st.sampled_from(pairs), max_size=2))
    optional = draw(st.lists(st.sampled_from(names), unique=True))
    return SubtaskGraph("t", names, preconditions, order=order, exclusive=exclusive, optional=optional)


def allowed_runs(graph: SubtaskGraph) -> Iterator[tuple[Step, ...]]:
    """All sequences of eligible steps that leave out nothing that is required."""

    def extend(run: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
        if graph.required.issubset(run):
            yield run
        for name in sorted(graph.eligible(run) - set(run)):
            yield from extend((*run, name))

    return extend(())


def kind_by_definition(before: Step, after: Step, runs: list[tuple[Step, ...]]) -> PairKind:
    both = [run for run in runs if before in run and after in run]
    if not both:
        return "exclusive"
    if any(run.index(before) > run.index(after) for run in both):
        return "free"
    return "needs" if all(before in run for run in runs if after in run) else "after"


@given(graphs())
def test_what_a_graph_says_of_a_pair_holds_in_all_its_runs(graph: SubtaskGraph) -> None:
    runs = list(allowed_runs(graph))
    for before in graph.steps:
        for after in graph.steps:
            if before != after:
                said = graph.kind(before, after)
                true = kind_by_definition(before, after, runs)
                implied = {"needs": {"needs", "exclusive"}, "after": {"after", "needs", "exclusive"}}
                assert said == "free" or true in implied.get(said, {"exclusive"}), (before, after)


@given(graphs())
def test_a_reduction_keeps_the_allowed_runs(graph: SubtaskGraph) -> None:
    assert set(allowed_runs(graph.transitive_reduction())) == set(allowed_runs(graph))


@given(graphs())
def test_what_is_due_is_eligible_and_not_done(graph: SubtaskGraph) -> None:
    for run in list(allowed_runs(graph))[:20]:
        assert graph.due(run) <= graph.eligible(run) - set(run)


def test_one_of_two_ways_makes_the_order_of_both_sure() -> None:
    graph = SubtaskGraph(
        "coffee",
        ["grind", "open", "pour"],
        {"pour": any_of([step("grind"), step("open")])},
        exclusive=[["grind", "open"]],
    )
    assert graph.kind("grind", "pour") == graph.kind("open", "pour") == "after"
    assert graph.required == {"pour"}


def test_an_optional_step_carries_no_order_further() -> None:
    order = [("a", "b"), ("b", "c")]
    assert SubtaskGraph("t", "abc", {}, order=order).kind("a", "c") == "after"
    assert SubtaskGraph("t", "abc", {}, order=order, optional="b").kind("a", "c") == "free"
