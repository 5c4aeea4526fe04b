"""The typed evidence of a graph file, whatever the file holds."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.formats import read_graph
from msg2.graph import Edge, RelatedPair, StepEvidence, SubtaskGraph, Support, step

COUNTS = st.integers(0, 50)
SHARES = st.floats(0, 1)
SUPPORTS = st.builds(
    Support,
    before=st.none() | COUNTS,
    together=st.none() | COUNTS,
    lacking=st.none() | COUNTS,
    weak=st.booleans(),
    probability=st.none() | SHARES,
    direct=st.none() | SHARES,
    gain=st.none() | SHARES,
)
KEYS = st.sampled_from(
    ["before", "together", "weak", "probability", "direct", "videos", "holds", "confidence", "score", "examples",
     "violations", "runner_up", "precondition", "edges", "optional", "without", "instead", "all", "not", "own"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
EVIDENCE: dict[str, Any] = {
    "pour": {
        "videos": 51,
        "edges": {"boil": {"before": 47, "together": 50, "weak": True, "probability": 0.98, "direct": 0.9, "own": []}},
    }
}
TEA = SubtaskGraph("tea", ["boil", "milk", "pour"], {"pour": step("boil"), "milk": step("pour")}, evidence=EVIDENCE)


@given(SUPPORTS)
def test_support_round_trips(support: Support) -> None:
    assert Support.from_json(json.loads(json.dumps(support.to_json()))) == support


def test_json_of_support_is_that_of_the_file() -> None:
    counts = EVIDENCE["pour"]["edges"]["boil"]
    assert list(Support.from_json(counts).to_json().items()) == [item for item in counts.items() if item[0] != "own"]


@given(SUPPORTS)
def test_share_is_a_share_or_unknown(support: Support) -> None:
    if support.share is None:
        assert not support.together or support.before is None or support.before > support.together
    else:
        assert 0 <= support.share <= 1


@given(ANYTHING)
def test_evidence_of_any_shape_is_read(value: object) -> None:
    support, evidence = Support.from_json(value), StepEvidence.from_json(value)
    assert support.weak in (True, False)
    graph = SubtaskGraph("t", "ab", {"b": step("a")}, evidence={"b": value})
    assert graph.step_evidence("b") == evidence
    assert graph.explain("b").startswith("'b' needs 'a'.")
    assert [(edge.before, edge.after) for edge in graph.edges()] == [("a", "b")]


@pytest.mark.parametrize("value", [True, "47", None, [47], {"before": 47}, -1, 10**400])
def test_a_count_of_the_wrong_type_is_unknown(value: object) -> None:
    assert Support.from_json({"before": value, "together": value}) == Support()


def test_edges_are_typed_and_sorted() -> None:
    support = Support(47, 50, weak=True, probability=0.98, direct=0.9)
    assert TEA.edges() == (Edge("boil", "pour", support), Edge("pour", "milk", None))
    assert {edge.kind for edge in TEA.edges()} == {"needs"}
    assert {(edge.before, edge.after) for edge in TEA.edges()} == TEA.edge_pairs()


def test_edges_as_a_dataframe() -> None:
    pandas = pytest.importorskip("pandas")
    frame = TEA.to_dataframe()
    assert list(frame.columns) == [field.name for field in fields(RelatedPair)]
    assert frame.iloc[0].to_dict() == {
        "before": "boil", "after": "pour", "kind": "needs", "together": 50, "share": 0.94, "supporting": 47,
        "opposing": 3, "weak": True, "probability": 0.98, "confidence": 0.98,
        "simultaneous": None,
    }  # fmt: skip
    assert pandas.isna(frame.iloc[1]["together"])
    assert pandas.isna(frame.iloc[1]["share"])
    empty = SubtaskGraph("t", "a", {}).to_dataframe()
    assert len(empty) == 0
    assert list(empty.dtypes) == list(frame.dtypes)


def test_a_saved_graph_is_read_again(tmp_path: Path) -> None:
    path = TEA.save(tmp_path / "tea.json")
    assert path.read_text(encoding="utf-8") == TEA.dumps()
    assert read_graph(path) == TEA
