"""Metrics against their equations, spelled out, and against networkx."""

from __future__ import annotations

import random
from itertools import pairwise, product

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import END, START, TRUE, SubtaskGraph, all_of, any_of, negation, step
from msg2.metrics import accuracy, compatibility, edge_scores, match_step_names, spoc
from msg2.task import Segment, Task, Video

NAMES = "abcde"
A, B = step("A"), step("B")


@st.composite
def graphs(draw: st.DrawFn, names: str = NAMES) -> SubtaskGraph:
    """Random graphs with AND, OR and NOT over the same steps, in a random order of need."""
    order = draw(st.permutations(names))
    preconditions = {}
    for place, name in enumerate(order):
        literals = st.sampled_from([TRUE, *map(step, order[:place])])
        operands = st.lists(literals | literals.map(negation), min_size=1, max_size=3)
        joined = operands.map(all_of) | operands.map(any_of)
        preconditions[name] = draw(st.just(TRUE) | joined | st.lists(joined, max_size=2).map(all_of))
    return SubtaskGraph("task", names, preconditions)


@st.composite
def partial_orders(draw: st.DrawFn) -> SubtaskGraph:
    order = draw(st.permutations(NAMES))
    parents = {name: draw(st.sets(st.sampled_from(order[:place]))) for place, name in enumerate(order) if place}
    return SubtaskGraph("task", NAMES, {name: all_of(map(step, needs)) for name, needs in parents.items()})


def ancestors(graph: SubtaskGraph) -> networkx.DiGraph:
    edges = networkx.DiGraph((parent, name) for name, f in graph.preconditions.items() for parent in f.steps)
    edges.add_nodes_from(graph.steps)
    return networkx.transitive_closure_dag(edges)


# -- accuracy ---------------------------------------------------------------------------------------------------------


@given(graphs(), graphs())
def test_accuracy_counts_all_completion_vectors(graph: SubtaskGraph, truth: SubtaskGraph) -> None:
    agree = 0
    for bits in product([False, True], repeat=len(NAMES)):
        completed = {name for name, bit in zip(NAMES, bits, strict=True) if bit}
        one, other = graph.eligible(completed), truth.eligible(completed)
        agree += sum((name in one) == (name in other) for name in NAMES)
    assert accuracy(graph, truth) == agree / (2 ** len(NAMES) * len(NAMES))
    assert accuracy(truth, graph) == accuracy(graph, truth)


def test_accuracy_takes_the_graph_as_it_stands() -> None:
    chain = {"b": step("a"), "c": step("b")}
    longer = SubtaskGraph("t", "abc", chain | {"c": all_of([step("a"), step("b")])})
    assert longer.transitive_reduction() == SubtaskGraph("t", "abc", chain)
    assert accuracy(longer, SubtaskGraph("t", "abc", chain)) == pytest.approx(1 - 0.25 / 3)


# -- SPOC -------------------------------------------------------------------------------------------------------------


@given(graphs(), graphs())
def test_spoc_compares_ancestors(graph: SubtaskGraph, truth: SubtaskGraph) -> None:
    one, other = ancestors(graph), ancestors(truth)
    pairs = [(a, b) for a, b in product(NAMES, repeat=2) if a != b]
    agree = sum(one.has_edge(a, b) == other.has_edge(a, b) for a, b in pairs)
    assert spoc(graph, truth) == agree / len(pairs)


def test_a_graph_agrees_with_itself_even_with_one_step() -> None:
    for graph in (SubtaskGraph("t", "a", {}), SubtaskGraph("t", "ab", {"b": step("a")})):
        assert accuracy(graph, graph) == 1
        assert spoc(graph, graph) == 1


# -- compatibility ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preconditions", "sequence", "expected"),
    [
        ({"C": any_of([A, B])}, "CAB", 2 / 3),
        ({"C": all_of([A, B])}, "ACB", 2 / 3),
        ({"C": all_of([A, B])}, "CAB", 1 / 3),
        ({"B": A, "C": B, "D": step("C")}, "ABD", 1.0),
        ({"C": all_of([A, B])}, "ABC", 1.0),
        ({"C": A}, "CCAAC", 1 / 2),
    ],
)
def test_compatibility_worked_examples(preconditions: dict, sequence: str, expected: float) -> None:
    graph = SubtaskGraph("t", "ABCD", preconditions)
    video = Video("v", map(Segment, sequence))
    assert compatibility(graph, [sequence]) == pytest.approx(expected)
    assert compatibility(graph, Task("t", "ABCD", [video])) == pytest.approx(expected)


def product_of_the_equation(graph: SubtaskGraph, x: tuple[str, ...]) -> float:
    order = ancestors(graph)
    total = 0
    for j in range(1, len(x) + 1):
        before = set(x[: j - 1])
        total += all(
            graph.precondition(x[i - 1]).evaluate(before) for i in range(1, j) if order.has_edge(x[j - 1], x[i - 1])
        )
    return total / len(x)


SEQUENCES = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple), min_size=1, max_size=5)


@given(graphs(), SEQUENCES)
def test_compatibility_is_the_printed_equation(graph: SubtaskGraph, sequences: list[tuple[str, ...]]) -> None:
    expected = sum(product_of_the_equation(graph, x) for x in sequences) / len(sequences)
    score = compatibility(graph, [*sequences, ()])
    assert score == (pytest.approx(expected) if graph.preconditions else None)
    assert score == compatibility(graph, reversed(sequences))


def test_compatibility_without_anything_to_say() -> None:
    assert compatibility(SubtaskGraph("t", "ab", {}), ["ab"]) is None
    assert compatibility(SubtaskGraph("t", "ab", {"b": step("a")}), [Video("v", [])]) is None


def test_compatibility_names_an_unknown_step() -> None:
    with pytest.raises(InputError, match="'z' is in a video but not a step of the graph"):
        compatibility(SubtaskGraph("t", "ab", {"b": step("a")}), ["ab", "az"])


def test_compatibility_of_many_videos() -> None:
    names = [f"{i:02}" for i in range(60)]
    preconditions = {after: any_of([step(before), step(names[0])]) for before, after in pairwise(names)}
    graph = SubtaskGraph("t", names, preconditions)
    shuffle = random.Random(0)
    videos = [shuffle.sample(names, 60) for _ in range(2_000)]
    assert 0 < (compatibility(graph, videos) or 0) < 1


# -- edges ------------------------------------------------------------------------------------------------------------


@given(partial_orders(), partial_orders(), st.booleans())
def test_edge_scores_of_partial_orders(graph: SubtaskGraph, truth: SubtaskGraph, ends: bool) -> None:
    def edges(of: SubtaskGraph) -> set[tuple[str, str]]:
        reduction = networkx.transitive_reduction(ancestors(of))
        outer = {(START, n) for n in NAMES if not reduction.in_degree(n)}
        outer |= {(n, END) for n in NAMES if not reduction.out_degree(n)}
        return set(reduction.edges) | (outer if ends else set())

    predicted, actual = edges(graph), edges(truth)
    scores = edge_scores(graph, truth, ends=ends)
    assert scores.true_positives == len(predicted & actual)
    assert (scores.predicted, scores.actual) == (len(predicted), len(actual))
    precision, recall = scores.precision, scores.recall
    if precision and recall:
        assert scores.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_edge_scores_without_edges() -> None:
    nothing, chain = SubtaskGraph("t", "ab", {}), SubtaskGraph("t", "ab", {"b": step("a")})
    scores = edge_scores(nothing, chain, ends=False)
    assert (scores.precision, scores.recall, scores.f1) == (None, 0.0, 0.0)
    scores = edge_scores(chain, nothing, ends=False)
    assert (scores.precision, scores.recall, scores.f1) == (0.0, None, 0.0)
    assert edge_scores(nothing, nothing, ends=False).f1 is None
    assert edge_scores(nothing, nothing, ends=True).f1 == 1.0


# -- names ------------------------------------------------------------------------------------------------------------


def test_names_match_without_case_and_space() -> None:
    truth = SubtaskGraph("t", ["Boil water", "Straße", "pour"], {"pour": all_of([step("Boil water"), step("Straße")])})
    graph = SubtaskGraph("t", [" boil WATER", "STRASSE", "pour"], {"pour": step("STRASSE")})
    assert match_step_names(graph, truth).edge_pairs() == {("Straße", "pour")}
    assert edge_scores(graph, truth, ends=False).true_positives == 1
    assert accuracy(graph, truth) == pytest.approx(1 - 0.25 / 3)


def test_an_exact_match_goes_first() -> None:
    truth = SubtaskGraph("t", ["a", "A"], {"A": step("a")})
    assert match_step_names(truth, truth) is truth
    assert match_step_names(SubtaskGraph("t", ["a", "A "], {"A ": step("a")}), truth) == truth


@pytest.mark.parametrize(
    ("graph", "truth", "words"),
    [
        (["a", "b"], ["a"], "the step 'b' is in the graph but not in the truth"),
        (["a"], ["a", "b", "c"], r"the step 'b' \(and 1 more\) is in the truth but not in the graph"),
        (["a "], ["a", "A"], "cannot be matched: 'A', 'a', 'a ' differ only in case or spaces"),
        (["A", "a"], ["b"], r"the step 'A' \(and 1 more\) is in the graph but not in the truth"),
    ],
)
@pytest.mark.parametrize("metric", [accuracy, spoc, lambda g, t: edge_scores(g, t, ends=True)])
def test_names_without_one_partner_are_named(metric: object, graph: list, truth: list, words: str) -> None:
    with pytest.raises(InputError, match=words):
        metric(SubtaskGraph("t", graph, {}), SubtaskGraph("t", truth, {}))  # type: ignore[operator]
