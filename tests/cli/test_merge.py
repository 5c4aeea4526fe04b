"""`msg2 merge`."""

from __future__ import annotations

from pathlib import Path

import pytest

from msg2.formats import read_graph
from msg2.graph import SubtaskGraph, all_of, step
from tests.cli.conftest import Msg2


@pytest.fixture
def people(tmp_path: Path) -> list[Path]:
    """Three graphs: all agree that pouring needs boiling, one wants beans to be ground as well, one to boil first."""
    boil, grind = step("boil"), step("grind")
    wanted = {"ann": {"pour": all_of([boil, grind])}, "ben": {"pour": boil}, "cem": {"pour": boil, "grind": boil}}
    paths = []
    for name, preconditions in wanted.items():
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(SubtaskGraph("coffee", ["boil", "grind", "pour"], preconditions).dumps())
    return paths


def test_what_most_say_is_kept_and_the_rest_is_printed(msg2: Msg2, people: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "truth.json"
    ran = msg2("merge", *people, "-o", out)
    assert ran.code == 0
    assert sorted(read_graph(out).edge_pairs()) == [("boil", "pour")]
    assert read_graph(out).evidence["pour"]["clauses"][0] == {"clause": "boil", "agreement": 1.0, "outcome": "kept"}
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["grind", "needs", "boil", "1", "of", "3", "dropped", "cem"] in lines
    assert ["pour", "needs", "grind", "1", "of", "3", "dropped", "ann"] in lines
    assert "1 of 3 statements are in all 3 graphs." in ran.out
    assert [vote["voters"] for vote in msg2("merge", *people, "-o", out, "--json").json["votes"]] == [
        [2],
        [0, 1, 2],
        [0],
    ]


def test_a_tie_is_named(msg2: Msg2, people: list[Path], tmp_path: Path) -> None:
    lines = msg2("merge", *people[:2], "-o", tmp_path / "o.json").out.splitlines()
    assert ["pour", "needs", "grind", "1", "of", "2", "tie", "ann"] in [line.split() for line in lines]


def test_all_kinds_are_voted_on(msg2: Msg2, tmp_path: Path) -> None:
    relations = {
        "ann": {"order": [("sugar", "stir")], "exclusive": [("honey", "sugar")], "optional": ["sugar"]},
        "ben": {"order": [("sugar", "stir")], "exclusive": [("honey", "sugar")], "optional": ["sugar", "honey"]},
        "cem": {},
    }
    for name, said in relations.items():
        SubtaskGraph("tea", ["honey", "stir", "sugar"], {}, **said).save(tmp_path / f"{name}.json")  # type: ignore[arg-type]
    out = tmp_path / "truth.json"
    ran = msg2("merge", *(tmp_path / f"{name}.json" for name in relations), "-o", out)
    truth = read_graph(out)
    assert (truth.order, truth.exclusive, truth.optional) == (
        (("sugar", "stir"),), (("honey", "sugar"),), {"sugar"},
    )  # fmt: skip
    rows = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "stir comes after sugar 2 of 3 kept ann, ben" in rows
    assert "honey is never done with sugar 2 of 3 kept ann, ben" in rows
    assert "honey is optional 1 of 3 dropped ben" in rows


def test_other_steps_are_refused_and_nothing_is_written(msg2: Msg2, people: list[Path], tmp_path: Path) -> None:
    people[1].write_text(SubtaskGraph("coffee", ["boil", "stir"], {}).dumps())
    told = msg2("merge", *people, "-o", tmp_path / "o.json").complaint
    assert f"{people[1]}: has not the steps of the first graph: 'grind' is in one of them only" in told
    assert not (tmp_path / "o.json").exists()
