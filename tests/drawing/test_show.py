from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import networkx
import pygraphviz
import pytest

from msg2 import drawing
from msg2.drawing.diagram import build_diagram
from msg2.drawing.mermaid import to_mermaid
from msg2.errors import InputError
from msg2.formats.graphml import to_graphml
from msg2.formats.pddl import pddl_identifiers, problem_path, to_pddl
from msg2.graph import SubtaskGraph, all_of, step
from msg2.text import escape_control_characters, one_line


@pytest.mark.parametrize("suffix", drawing.SUFFIXES)
def test_every_format_is_written_whole_and_alike(suffix: str, cpr: SubtaskGraph, tmp_path: Path) -> None:
    shuffled = SubtaskGraph(
        cpr.task, cpr.steps[::-1], dict(reversed(cpr.preconditions.items())), cpr.method, cpr.evidence
    )
    one, other = cpr.show(tmp_path / f"one{suffix}"), shuffled.show(tmp_path / f"other{suffix.upper()}")
    assert one.read_bytes() == other.read_bytes() != b""
    written = {one, other} | ({problem_path(one), problem_path(other)} if suffix == ".pddl" else set())
    assert set(tmp_path.iterdir()) == written


@pytest.mark.parametrize("suffix", [s for s in drawing.SUFFIXES if s != ".json"])
@pytest.mark.parametrize("size", [0, 1])
def test_small_graphs_have_every_format(suffix: str, size: int, tmp_path: Path) -> None:
    assert SubtaskGraph("", ["only"][:size], {}).show(tmp_path / f"g{suffix}").stat().st_size > 0


@pytest.mark.parametrize("name", ["graph.gif", "graph", "graph.svg.bak"])
def test_unknown_suffix(name: str, cpr: SubtaskGraph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"use one of \.html \.svg \.png \.dot \.mmd \.graphml \.pddl \.json"):
        cpr.show(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_only_pictures_compare(cpr: SubtaskGraph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no diagram"):
        drawing.show(cpr, tmp_path / "g.pddl", compare=cpr)
    with pytest.raises(InputError, match="is no diagram"):
        drawing.show(cpr, tmp_path / "g.json", marks={"stop": "skipped"})


def test_notebooks_show_the_picture(cpr: SubtaskGraph) -> None:
    assert cpr._repr_svg_() == drawing.svg(cpr)


def test_json_reads_back(cpr: SubtaskGraph, tmp_path: Path) -> None:
    assert SubtaskGraph.from_json(json.loads(cpr.show(tmp_path / "g.json").read_text("utf-8"))) == cpr


def test_dot_is_read_by_graphviz(hostile: SubtaskGraph, tmp_path: Path) -> None:
    text = drawing.show(hostile, tmp_path / "g.dot").read_text("utf-8")
    read = pygraphviz.AGraph(string=text)
    assert len([node for node in read.nodes() if node.startswith("s")]) == len(hostile.steps)


def test_graphml_reads_back(cpr: SubtaskGraph, hostile: SubtaskGraph) -> None:
    read = networkx.read_graphml(io.BytesIO(to_graphml(cpr).encode()))
    expected = cpr.to_networkx()
    assert set(read.edges) == set(expected.edges)
    assert {n: d["label"] for n, d in read.nodes(data=True)} == {n: d["label"] for n, d in expected.nodes(data=True)}
    assert {d["support"] for *_, d in read.edges(data=True) if "support" in d} == {0.9, 2 / 3}
    read = networkx.read_graphml(io.BytesIO(to_graphml(hostile).encode()))
    assert [read.nodes[f"s{i}"]["label"] for i in range(len(hostile.steps))] == [
        escape_control_characters(n) for n in hostile.steps
    ]


def test_mermaid_holds_nothing_but_text_in_its_labels(hostile: SubtaskGraph) -> None:
    lines = to_mermaid(build_diagram(hostile, marks={hostile.steps[0]: hostile.steps[1]})).splitlines()
    labels = [re.fullmatch(r'  s(\d+)\("(.*)"\):::\w+', line) for line in lines]
    found = {int(match[1]): match[2] for match in labels if match}
    assert len(found) == len(hostile.steps)
    for number, label in found.items():
        plain = label.replace("<br/>", "")
        assert re.fullmatch(r"(#\d+;|[\w ,/?:!'])*", plain)
        text = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), plain).replace(" ", "")
        assert text.startswith(one_line(hostile.steps[number]).replace(" ", "")[:60])


def test_mermaid_colours_the_differences(cpr: SubtaskGraph) -> None:
    bare = SubtaskGraph("t", cpr.steps, {})
    text = to_mermaid(build_diagram(bare, cpr))
    arrows = [line for line in text.splitlines() if "-.->" in line]
    assert len(arrows) == len(cpr.transitive_reduction().edges()) == text.count("stroke:#cc3311,stroke-width")


# -- PDDL: read back by a parser of its own, and every action tried in every state ------------------------------------


def expressions(text: str) -> Any:
    tokens = re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text))
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(token)
    assert len(stack) == 1
    return stack[0][0]


def holds(condition: list[Any], true: set[str]) -> bool:
    rules: dict[str, Callable[[list[Any]], bool]] = {
        "and": lambda parts: all(holds(part, true) for part in parts),
        "or": lambda parts: any(holds(part, true) for part in parts),
        "not": lambda parts: not holds(parts[0], true),
    }
    return rules[condition[0]](condition[1:]) if condition[0] in rules else condition[0] in true


def test_pddl_actions_are_possible_where_the_steps_are_eligible(cpr: SubtaskGraph) -> None:
    domain = expressions(to_pddl(cpr))
    assert domain[:2] == ["define", ["domain", "perform-cpr"]]
    assert domain[2] == [":requirements", ":strips", ":disjunctive-preconditions", ":negative-preconditions"]
    actions = [part for part in domain if part[0] == ":action"]
    effects = {step: action[7][0] for step, action in zip(cpr.steps, actions, strict=True)}
    assert [[effect] for effect in effects.values()] == domain[3][1:]
    for bits in itertools.product([False, True], repeat=len(cpr.steps)):
        completed = {step for step, bit in zip(cpr.steps, bits, strict=True) if bit}
        possible = {
            step
            for step, action in zip(cpr.steps, actions, strict=True)
            if holds(action[5], {effects[done] for done in completed})
        }
        assert possible == cpr.eligible(completed)


def test_pddl_names_are_safe_and_unique(hostile: SubtaskGraph) -> None:
    names = pddl_identifiers([*hostile.steps, "and", "A", "a", "a-2", "a!"])
    assert len(set(names.values())) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) and name != "and" for name in names.values())
    domain = expressions(to_pddl(hostile))
    assert len([part for part in domain if part[0] == ":action"]) == len(hostile.steps)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", to_pddl(hostile))


# -- the page ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects tags, links, ids and the text of the cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self.cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self.links += [str(value) for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        self.ids += [str(given["id"])] if "id" in given else []
        assert not any(name.startswith("on") for name in given)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag: str) -> None:
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.cell:
            self.rows[-1][-1] += data


def test_the_page_explains_every_step(cpr: SubtaskGraph, tmp_path: Path) -> None:
    text = cpr.show(tmp_path / "g.html").read_text("utf-8")
    page = Page(text)
    assert "<title>perform CPR</title>" in text
    assert "7 steps · 2 videos · learnt with" in text
    rows = {row[0]: row[1:] for row in page.rows[1:]}
    assert list(rows) == list(cpr.steps)
    assert rows["open airway"] == [
        "check breathing and check response",
        "9 of 12 (75 %)",
        "v1, <i>v2</i>, v3",
        "check pulse (score 1.250 against 3.500)",
    ]
    assert rows["check pulse"][0] == "nothing before it"
    assert rows["stop"][0] == "call emergency and not give breath"
    assert "left out" not in text.partition("<script")[0]
    chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("a"), step("b")])})
    assert "left out (1)" in chain.show(tmp_path / "chain.html").read_text("utf-8")


def test_the_page_is_closed_to_the_outside(cpr: SubtaskGraph, hostile: SubtaskGraph, tmp_path: Path) -> None:
    for number, graph in enumerate((cpr, hostile)):
        text = drawing.show(graph, tmp_path / f"{number}.html").read_text("utf-8")
        page = Page(text)
        assert text.count("<script") == text.count("</script") == 2
        assert "<!--" not in text
        assert not re.search(r"https?:", re.sub(r'xmlns(:xlink)?="[^"]*"', "", text))
        assert "default-src 'none'" in text
        assert "unsafe" not in text
        assert not re.search(r'<[^>]+ style="', text.partition("</style>")[2].partition("<script")[0])
        assert page.links
        assert all(re.fullmatch(r"#step-\d+", link) for link in page.links)
        assert {link[1:] for link in page.links} <= set(page.ids)
        assert sum(link.startswith("#step-") for link in page.links) >= len(graph.steps)
        assert len(page.ids) == len(set(page.ids))
        assert [row[0] for row in page.rows[1:]] == [
            line if len(line) <= 300 else line[:299] + "…" for line in map(one_line, graph.steps)
        ]
