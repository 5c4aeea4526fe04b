"""Graphs to draw: with every operator, with every kind, and with names that try to break out of every format."""

from __future__ import annotations

from itertools import pairwise

import pytest

from msg2.graph import SubtaskGraph, all_of, any_of, negation, step

HOSTILE = (
    "<script>alert(1)</script>", 'say "hi" \\N \\G \\l \\n', "|{}<>", "<b>bold</b>", "日本語の手順", "مرحبا بالعالم",
    "🍳 fry", "x" * 300, ("long words " * 1000)[:10_000], "two\nlines\r\x00\x01\x7f", "&amp; &lt; %3 \\", "-->", " ",
    "1. list", "]]>", "'); drop", "end", "half \ud800 pair", "\ufffe", "#quot; `x` $y$",
)  # fmt: skip


@pytest.fixture
def cpr() -> SubtaskGraph:
    return SubtaskGraph(
        "perform CPR",
        ["check breathing", "check pulse", "check response", "open airway", "call emergency", "give breath", "stop"],
        {
            "call emergency": any_of([step("check breathing"), step("check pulse"), step("check response")]),
            "open airway": all_of([step("check breathing"), step("check response")]),
            "give breath": all_of([step("open airway"), any_of([step("check pulse"), step("call emergency")])]),
            "stop": all_of([step("call emergency"), negation(step("give breath"))]),
        },
        {"name": "msg2", "videos": ["v1", "v2"]},
        {
            "open airway": {
                "videos": 12,
                "holds": 9,
                "violations": ["v1", "<i>v2</i>", "v3"],
                "score": 3.5,
                "runner_up": {"precondition": "check pulse", "score": 1.25},
                "edges": {
                    "check breathing": {"before": 9, "together": 10, "weak": False},
                    "check response": {"before": 2, "together": 3, "weak": True},
                },
            }
        },
    )


@pytest.fixture
def hostile() -> SubtaskGraph:
    names = list(HOSTILE)
    formulas = {
        b: any_of([step(a), negation(step(names[0]))]) if i % 4 == 3 else step(a)
        for i, (a, b) in enumerate(pairwise(names))
    }
    return SubtaskGraph(
        '</title><script> "\\N" &', names, formulas, evidence={names[1]: "free text", names[2]: {"edges": 3}}
    )


@pytest.fixture
def coffee() -> SubtaskGraph:
    """It says more than what steps need: after if done, only one of these, may be left out, done again."""
    order = {"before": 18, "together": 20}
    return SubtaskGraph(
        "make coffee",
        ["boil water", "grind beans", "open ground coffee", "add sugar", "pour water", "stir"],
        {
            "pour water": all_of([step("boil water"), any_of([step("grind beans"), step("open ground coffee")])]),
            "stir": step("pour water"),
        },
        {"name": "likelihood", "videos": [f"v{number}" for number in range(60)]},
        {
            "stir": {"edges": {"pour water": order, "add sugar": order}},
            "add sugar": {"videos": 24},
            "grind beans": {"videos": 30, "exclusive": {"open ground coffee": 2}},
            "open ground coffee": {"videos": 22},
        },
        order=[("add sugar", "stir")],
        exclusive=[["grind beans", "open ground coffee"]],
        optional=["add sugar"],
        repeats={"stir": 0.3},
    )
