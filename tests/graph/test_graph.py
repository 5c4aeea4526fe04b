"""Subtask graphs against networkx and against every way of doing the task."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import Assistant
from msg2.drawing.diagram import build_diagram
from msg2.drawing.graph_page import page_data
from msg2.errors import InputError
from msg2.formats.graph_reader import pddl_identifiers, to_pddl, to_pddl_problem
from msg2.graph import END, START, TRUE, Formula, SubtaskGraph, all_of, any_of, negation, node_link_graph, step
from msg2.graph.closure import clique_cover, reduce_order


def formulas(names: str, negations: bool = False) -> st.SearchStrategy[Formula]:
    joins = (all_of, any_of)
    return st.recursive(
        st.sampled_from([step(name) for name in names]),
        lambda inner: st.one_of(
            *(st.lists(inner, min_size=1, max_size=3).map(join) for join in joins),
            *([inner.map(negation)] if negations else []),
        ),
        max_leaves=5,
    )


@st.composite
def graphs(draw: st.DrawFn, most: int = 7, negations: bool = False) -> SubtaskGraph:
    """Random acyclic graphs; only later letters can need earlier ones."""
    names = "abcdefg"[: draw(st.integers(1, most))]
    preconditions = {
        name: draw(st.just(TRUE) | formulas(names[:place], negations)) for place, name in enumerate(names) if place
    }
    return SubtaskGraph("task", names, preconditions)


@st.composite
def and_graphs(draw: st.DrawFn) -> SubtaskGraph:
    names = "abcdefg"[: draw(st.integers(1, 7))]
    parents = {name: draw(st.sets(st.sampled_from(names[:i]))) for i, name in enumerate(names) if i}
    return SubtaskGraph("task", names, {name: all_of(map(step, sorted(needs))) for name, needs in parents.items()})


def digraph(graph: SubtaskGraph) -> networkx.DiGraph:
    result = networkx.DiGraph()
    result.add_nodes_from(graph.steps)
    result.add_edges_from((parent, name) for name, f in graph.preconditions.items() for parent in f.steps)
    return result


def reachable(graph: SubtaskGraph) -> set[frozenset[str]]:
    """Every set of completed steps that some order of eligible steps leads to."""
    states, frontier = {frozenset[str]()}, [frozenset[str]()]
    while frontier:
        state = frontier.pop()
        for name in graph.eligible(state) - state:
            if (following := state | {name}) not in states:
                states.add(following)
                frontier.append(following)
    return states


# -- structure ------------------------------------------------------------------------------------------------------


@given(graphs(negations=True))
def test_layers_are_longest_paths(graph: SubtaskGraph) -> None:
    edges = digraph(graph)
    for name in graph.steps:
        above = edges.subgraph(networkx.ancestors(edges, name) | {name})
        assert graph.layer[name] == networkx.dag_longest_path_length(above)
    assert list(graph.steps) == sorted(graph.steps, key=lambda name: (graph.layer[name], name))


@given(graphs(negations=True))
def test_order_is_the_ancestor_relation(graph: SubtaskGraph) -> None:
    edges = digraph(graph)
    for column, name in enumerate(graph.steps):
        expected = networkx.ancestors(edges, name)
        assert graph.ancestors(name) == expected
        assert {a for row, a in enumerate(graph.steps) if graph.ancestor_matrix[row, column]} == expected


@given(graphs())
def test_edges_with_ends(graph: SubtaskGraph) -> None:
    inner = digraph(graph)
    assert graph.edge_pairs() == set(inner.edges)
    first = {(START, name) for name in inner if inner.in_degree(name) == 0}
    last = {(name, END) for name in inner if inner.out_degree(name) == 0}
    assert graph.edge_pairs(ends=True) == set(inner.edges) | first | last


def test_ends_of_a_diamond() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "c": step("a"), "d": all_of([step("b"), step("c")])})
    ends = {edge for edge in graph.edge_pairs(ends=True) if START in edge or END in edge}
    assert ends == {("START", "a"), ("d", "END")}


@given(graphs(negations=True))
def test_wiring_keeps_every_dependency(graph: SubtaskGraph) -> None:
    nodes, _ = node_link_graph(graph)
    drawn = graph.to_networkx()
    ids = {node.label: node.id for node in nodes if node.kind == "step"}
    assert set(ids) == set(graph.steps)
    for name in graph.steps:
        above = {drawn.nodes[node]["label"] for node in networkx.ancestors(drawn, ids[name]) if node[0] == "s"}
        assert above == graph.ancestors(name)


# -- rejection ------------------------------------------------------------------------------------------------------


def test_a_cycle_is_named() -> None:
    with pytest.raises(InputError, match="'b' needs 'd' needs 'c' needs 'b'"):
        SubtaskGraph("t", "abcd", {"b": all_of([step("a"), step("d")]), "c": step("b"), "d": step("c")})


def test_a_step_that_needs_itself_is_a_cycle() -> None:
    with pytest.raises(InputError, match="'a' needs 'a'"):
        SubtaskGraph("t", "a", {"a": step("a")})


def test_a_long_chain_is_no_recursion_problem() -> None:
    names = [f"{i:04}" for i in range(3000)]
    graph = SubtaskGraph("t", reversed(names), {after: step(before) for before, after in pairwise(names)})
    assert graph.layer[names[-1]] == 2999
    assert list(graph.steps) == names


@pytest.mark.parametrize(
    ("steps", "preconditions", "words"),
    [
        ("aba", {}, "the graph has the step 'a' twice"),
        ("a", {"b": step("a")}, "preconditions of 'b': 'b' is not among the steps"),
        ("a", {"a": step("z")}, "preconditions of 'a': 'z' is not among the steps"),
    ],
)
def test_bad_steps_are_named(steps: str, preconditions: dict[str, Formula], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SubtaskGraph("t", steps, preconditions)


def test_questions_about_unknown_steps_name_them() -> None:
    graph = SubtaskGraph("t", "ab", {"b": step("a")})
    for ask in (graph.precondition, graph.parents, graph.ancestors, graph.explain, lambda name: graph.eligible({name})):
        with pytest.raises(InputError, match="'z' is not a step of the graph"):
            ask("z")


# -- reduction ------------------------------------------------------------------------------------------------------


@given(graphs())
def test_reduction_keeps_the_reachable_states(graph: SubtaskGraph) -> None:
    smaller = graph.transitive_reduction()
    assert reachable(smaller) == reachable(graph)
    assert smaller.edge_pairs() <= graph.edge_pairs()


@given(graphs(most=6, negations=True))
def test_reduction_keeps_the_reachable_states_with_negations(graph: SubtaskGraph) -> None:
    assert reachable(graph.transitive_reduction()) == reachable(graph)


@given(and_graphs())
def test_reduction_of_and_graphs_is_the_transitive_reduction(graph: SubtaskGraph) -> None:
    assert graph.transitive_reduction().edge_pairs() == set(networkx.transitive_reduction(digraph(graph)).edges)


@given(graphs())
def test_reduction_twice_changes_nothing_more(graph: SubtaskGraph) -> None:
    once = graph.transitive_reduction()
    assert once.transitive_reduction() == once


# -- files ----------------------------------------------------------------------------------------------------------


@given(graphs(negations=True))
def test_json_round_trip_is_exact(graph: SubtaskGraph) -> None:
    text = graph.dumps()
    again = SubtaskGraph.from_json(json.loads(text))
    assert again == graph
    assert again.dumps() == text
    assert hash(again) == hash(graph)


def test_unknown_keys_of_method_and_evidence_are_kept() -> None:
    method, evidence = {"name": "x", "own": [1, {"é": None}]}, {"a": {"own": 0.25}}
    graph = SubtaskGraph("t", "a", {}, method, evidence)
    again = SubtaskGraph.from_json(json.loads(graph.dumps()))
    assert dict(again.method) == method
    assert dict(again.evidence) == evidence


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_steps_does_not_show(graph: SubtaskGraph, randomness: random.Random) -> None:
    def shuffled(values: list[str]) -> list[str]:
        return randomness.sample(values, len(values))

    preconditions = {name: graph.preconditions[name] for name in shuffled(list(graph.preconditions))}
    assert SubtaskGraph("task", shuffled(list(graph.steps)), preconditions).dumps() == graph.dumps()


@given(graphs(), st.permutations("abcdefg"))
def test_renaming_only_relabels(graph: SubtaskGraph, letters: list[str]) -> None:
    names = dict(zip("abcdefg", letters, strict=True))
    renamed = graph.rename_steps(names)
    assert renamed.edge_pairs() == {(names[before], names[after]) for before, after in graph.edge_pairs()}
    back = {new: old for old, new in names.items()}
    assert renamed.rename_steps(back) == graph


# -- words ----------------------------------------------------------------------------------------------------------


def test_the_order_keeps_what_an_optional_step_cannot_carry() -> None:
    order = [("a", "b"), ("b", "c"), ("a", "c")]
    assert reduce_order(SubtaskGraph("t", "abc", {}, order=order)) == (("a", "b"), ("b", "c"))
    assert reduce_order(SubtaskGraph("t", "abc", {}, order=order, optional="b")) == tuple(sorted(order))


def test_pairs_are_covered_by_the_largest_groups() -> None:
    assert clique_cover([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]) == (("a", "b", "c"), ("c", "d"))


def test_all_rules_with_the_share_of_the_samples_that_say_so() -> None:
    evidence = {"flip": {"edges": {"butter": {"probability": 0.8}, "heat": {"before": 4, "together": 6, "weak": True}}}}
    evidence["flip"]["edges"]["heat"] |= {"probability": 0.99, "kinds": {"needs": 0.95, "after": 0.04}}
    steps, order = ["heat", "butter", "flip"], [("butter", "flip")]
    toast = SubtaskGraph("toast", steps, {"flip": step("heat")}, None, evidence, order=order, optional=["butter"])
    assert toast.explain().splitlines() == [
        "flip  comes after  'butter' (80 %), if done", "may be left out:  butter",
        "weak: few videos tell, or a quarter of them contradict",
        "  flip  needs  'heat' (4 of 6 videos: 2 contradict, 95 %)",
    ]  # fmt: skip


def test_explanation_without_evidence() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("a"), step("b")])})
    assert graph.explain("a") == "'a' needs nothing before it."
    assert graph.explain("c") == "'c' needs 'a' or 'b'."


def test_explanation_with_evidence() -> None:
    evidence = {
        "b": {
            "videos": 12,
            "holds": 3,
            "violations": [f"v{i}" for i in range(9)],
            "edges": {"a": {"before": 1, "together": 2, "weak": True}},
            "score": 1.5,
            "runner_up": {"precondition": True, "score": 1.0},
        }
    }
    graph = SubtaskGraph("t", "ab", {"b": step("a")}, evidence=evidence)
    assert graph.explain("b").splitlines() == [
        "'b' needs 'a' (1 of 2 videos: few tell).",
        "It held in 3 of the 12 videos with this step (25 %).",
        "It did not hold in: v0, v1, v2, v3, v4, v5, v6, v7 and 1 more.",
        "Next best: nothing before it (score 1.000 against 1.500).",
    ]


def test_a_step_that_no_video_shows() -> None:
    graph = SubtaskGraph("t", "a", {}, evidence={"a": {"videos": 0, "holds": 0}})
    assert graph.explain("a").splitlines() == ["'a' needs nothing before it.", "None of the videos shows this step."]


# -- rules that a person stated ------------------------------------------------------------------------------------

REPAIR = {
    "format": "msg2.graph/2", "task": "repair", "steps": ["close", "dust", "open", "swap", "unplug"],
    "preconditions": {"swap": "open", "close": "swap"}, "optional": ["dust", "unplug"],
    "rules": [
        {"before": "unplug", "after": "open", "kind": "needs", "by": "Ann", "on": "2026-03-01"},
        {"before": "dust", "after": "close", "kind": "after"},
    ],
}  # fmt: skip
"""Whose rules are in no precondition and no order."""


def test_stated_rules_are_part_of_the_graph() -> None:
    graph = SubtaskGraph.from_json(REPAIR)
    assert graph.precondition("open") == step("unplug")
    assert graph.order == (("dust", "close"),)
    assert graph.required == {"close", "open", "swap", "unplug"}
    assert graph.optional == {"dust"}
    assert graph.stated == {("unplug", "open"), ("dust", "close")}
    assert graph.steps.index("unplug") < graph.steps.index("open")
    assert graph.steps.index("dust") < graph.steps.index("close")
    again = graph.to_json()
    assert again["rules"] == REPAIR["rules"]
    assert SubtaskGraph.from_json(again).to_json() == again
    assert graph.rename_steps({"dust": "wipe"}).stated == {("unplug", "open"), ("wipe", "close")}
    for rule, words in (({"before": "nap", "after": "open"}, "'nap'"), ({"before": "swap", "after": "open"}, "cycle")):
        with pytest.raises(InputError, match=words):
            SubtaskGraph.from_json({**REPAIR, "rules": [rule]})


def test_nothing_is_ordered_against_a_stated_rule() -> None:
    graph = SubtaskGraph.from_json(REPAIR)
    runs = [["open", "unplug", "swap", "close", "dust"]] * 9  # everybody breaks both rules
    for assistant in (Assistant(graph), Assistant(graph, runs)):
        assert {ranked.step for ranked in assistant.next() if ranked.eligible} == {"dust", "unplug"}
        for plan in assistant.plan("close", k=5):
            place = {name: number for number, name in enumerate(plan.steps)}
            assert place["unplug"] < place["open"] < place["swap"] < place["close"]
            assert place.get("dust", -1) < place["close"]
        assistant.did("close")
        assert not assistant.finished().finished
        assert set(assistant.finished().left) == {"open", "swap", "unplug"}
        report = assistant.did("open")
        assert report.mistake
        assert "'open' needs 'unplug', which is not done (a stated rule)" in report.reason


def test_pages_and_planners_keep_to_stated_rules() -> None:
    graph = SubtaskGraph.from_json(REPAIR)
    page = {entry["name"]: entry for entry in page_data(graph, build_diagram(graph))["steps"]}
    assert [name for name, entry in page.items() if entry.get("mayOmit")] == ["dust"]
    names = pddl_identifiers(graph.steps)
    action = to_pddl(graph).split(f"(:action {names['open']}")[1].split(":effect")[0]
    assert f"(done-{names['unplug']})" in action
    assert to_pddl_problem(graph)
