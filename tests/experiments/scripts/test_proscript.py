"""Scripts in the proScript format, there and back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.scripts.proscript import Script, read_scripts, to_json_lines
from msg2.errors import InputError

ROW: dict[str, Any] = {
    "scenario": "plant a tree",
    "events": {"0": "water it", "1": "dig a hole", "2": "buy a tree", "3": "NONE", "4": "plant a tree"},
    "context": "NONE",
    "minutes": 90,
    "events_minutes": {"0": 5, "1": 30, "2": 40},
    "flatten_input_for_edge_prediction": "step0: water it; step1: dig a hole; step2: buy a tree; "
    "step3: decided to plant a tree; step4: plant a tree",
    "flatten_output_for_edge_prediction": "step3 -> step1; step3 -> step2; step1 -> step4; step2 -> step4; "
    "step4 -> step0",
    "gold_edges_for_prediction": ["1->4", "2->4", "3->1", "3->2", "4->0"],
}
"""All the keys that the published files have, about another scenario."""


@st.composite
def scripts(draw: st.DrawFn, most: int = 6) -> Script:
    """Any texts; an edge goes up in a hidden order of the events."""
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
    events = draw(st.lists(texts.filter(lambda text: text != "NONE"), min_size=1, max_size=most))
    hidden = draw(st.permutations(range(len(events))))
    pairs = [(a, b) for place, a in enumerate(hidden) for b in hidden[place + 1 :]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=8)) if pairs else []
    return Script(draw(texts), tuple(events), tuple(edges))


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "scripts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_published_layout(tmp_path: Path) -> None:
    (script,) = read_scripts([written(tmp_path, ROW)])
    assert script.scenario == "plant a tree"
    assert script.events == ("water it", "dig a hole", "buy a tree", "decided to plant a tree", "plant a tree")
    assert script.edges == ((1, 4), (2, 4), (3, 1), (3, 2), (4, 0))
    assert script.question == f"plant a tree; {ROW['flatten_input_for_edge_prediction']}"
    again = json.loads(to_json_lines([script]))
    assert again["flatten_input_for_edge_prediction"] == ROW["flatten_input_for_edge_prediction"]
    assert again["gold_edges_for_prediction"] == ROW["gold_edges_for_prediction"]
    assert set(again["flatten_output_for_edge_prediction"].split("; ")) == set(
        ROW["flatten_output_for_edge_prediction"].split("; ")
    )


@given(st.lists(scripts(), min_size=1, max_size=4))
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, made: list[Script]) -> None:
    path = tmp_path_factory.mktemp("scripts") / "s.jsonl"
    path.write_text(to_json_lines(made), encoding="utf-8")
    assert read_scripts([path]) == made
    path.write_text(
        json.dumps([json.loads(line) for line in to_json_lines(made).split("\n") if line]), encoding="utf-8"
    )
    assert read_scripts([path]) == made


def test_several_files_and_gzip(tmp_path: Path) -> None:
    packed = tmp_path / "more.jsonl.gz"
    packed.write_bytes(gzip.compress(written(tmp_path, ROW, ROW).read_bytes()))
    assert len(read_scripts([tmp_path / "scripts.jsonl", packed])) == 4


@given(scripts(), st.randoms(use_true_random=False))
def test_other_numbers_are_the_same_order(script: Script, randomness) -> None:
    order = randomness.sample(range(len(script.events)), len(script.events))
    other = script.renumber(order)
    assert [other.events[order.index(n)] for n in range(len(order))] == list(script.events)
    assert {(order[a], order[b]) for a, b in other.edges} == set(script.edges)


@given(scripts(most=8))
def test_edges_in_order_are_the_reduction_and_never_go_back(script: Script) -> None:
    graph = networkx.DiGraph(list(script.edges))
    found = script.reduced_edges()
    assert set(found) == set(networkx.transitive_reduction(graph).edges)
    for place, (first, second) in enumerate(found):
        assert first not in {b for _, b in found[place:]}, "what leads to an event comes before what it leads to"
        assert second in {found[place - 1][1]} | ({second} - {b for _, b in found[:place]}), "and is said in one go"


BAD = {
    "no object": ([1], "is not a JSON object"),
    "no scenario": ({**ROW, "scenario": 3}, "script.scenario: is not text"),
    "no events": ({**ROW, "events": {}}, "has no events"),
    "a gap": ({**ROW, "events": {"0": "a", "2": "b"}}, "script.events: is not numbered from 0 to 1"),
    "an event that is no text": ({**ROW, "events": {"0": None}}, "script.events.0: is not text"),
    "no edges": ({"scenario": "a", "events": {"0": "b"}}, "gold_edges_for_prediction: is missing"),
    "half an edge": ({**ROW, "gold_edges_for_prediction": ["1->"]}, "the edge '1->' is not of the form 0->1"),
    "an edge to nowhere": ({**ROW, "gold_edges_for_prediction": ["1->9"]}, "1->9 is about an event that is not there"),
    "a circle": ({**ROW, "gold_edges_for_prediction": ["0->1", "1->0"]}, "the edges run in a circle (0 -> 1 -> 0)"),
    "itself": ({**ROW, "gold_edges_for_prediction": ["2->2"]}, "the edges run in a circle (2 -> 2)"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_said_with_its_row(tmp_path: Path, kind: str) -> None:
    row, what = BAD[kind]
    path = written(tmp_path, ROW, row)
    with pytest.raises(InputError) as told:
        read_scripts([path])
    assert str(told.value).startswith(f"{path}, row 2")
    assert what in str(told.value)


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    for content, what in (("", "holds no scripts"), ("[]", "holds no scripts"), ("scenario\n", "is not valid JSON")):
        (tmp_path / "x.jsonl").write_text(content)
        with pytest.raises(InputError, match=what):
            read_scripts([tmp_path / "x.jsonl"])
    with pytest.raises(InputError, match="is a folder"):
        read_scripts([tmp_path])
