from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import networkx
import pygraphviz
import pytest

from msg2 import drawing
from msg2.drawing import dot, mermaid
from msg2.drawing.diagram import build_diagram
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.page_parts import escape_name
from msg2.errors import InputError
from msg2.formats.graph_reader import pddl_identifiers, problem_path, to_graphml, to_pddl
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, negation, step
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
    with pytest.raises(
        InputError,
        match=r"use one of \.html \.svg \.png \.pdf \.dot \.mmd \.graphml \.bpmn \.pnml \.powl \.pddl \.json",
    ):
        cpr.show(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_names_are_quoted_for_every_format() -> None:
    assert dot.quote('<b> \\N "x"') == r'"&lt;b&gt; \\N \"x\""'
    assert mermaid.quote('say "hi" & <b>') == '"say #34;hi#34; #38; #60;b#62;"'
    assert escape_name("stir & taste") == "<bdi>stir &amp; taste</bdi>"


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


def from_graphml(text: str) -> SubtaskGraph:
    """The graph in a GraphML file, by what `msg2.formats.graph_reader` says about it."""
    network = networkx.read_graphml(io.BytesIO(text.encode()))
    label = {name: node["label"] for name, node in network.nodes(data=True) if node["kind"] == "step"}

    def formula(node: str) -> Formula:
        kind = network.nodes[node]["kind"]
        if kind == "step":
            return step(label[node])
        parts = [formula(before) for before in network.predecessors(node)]
        return negation(parts[0]) if kind == "not" else {"all": all_of, "any": any_of}[kind](parts)

    needs, order = {}, []
    for before, after, edge in network.edges(data=True):
        if edge.get("kind") == "after":
            order.append((label[before], label[after]))
        elif after in label:
            needs[label[after]] = formula(before)
    groups = json.loads(network.graph.get("exclusive", "[]"))
    return SubtaskGraph(
        network.graph["task"],
        label.values(),
        needs,
        order=order,
        exclusive=[[label[node] for node in group] for group in groups],
        optional=[label[name] for name, node in network.nodes(data=True) if node.get("optional")],
        repeats={label[name]: node["repeats"] for name, node in network.nodes(data=True) if "repeats" in node},
    )


def test_graphml_holds_the_whole_graph(cpr: SubtaskGraph, coffee: SubtaskGraph) -> None:
    for graph in (cpr, coffee):
        assert from_graphml(to_graphml(graph)) == replace(graph, method={}, evidence={})
    assert not re.search("optional|repeats|exclusive", to_graphml(cpr))
    read = networkx.read_graphml(io.BytesIO(to_graphml(cpr).encode()))
    assert not any("kind" in edge for *_, edge in read.edges(data=True))


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


MERMAID_LINK = re.compile(r"  (\w+) ([xo<]?--+[-xo>]|[xo<]?-?\.+-[xo>]?) (\w+)")
"""Links as Mermaid's own lexer takes them."""


def test_mermaid_knows_the_kinds(coffee: SubtaskGraph) -> None:
    weak = {"stir": {"edges": {"add sugar": {"before": 2, "together": 2, "weak": True}}}}
    for graph, end in ((coffee, "--o"), (replace(coffee, evidence=weak), "-.-o")):
        lines = to_mermaid(build_diagram(graph)).splitlines()
        ids = {match[2]: match[1] for line in lines if (match := re.match(r'  (s\d)\("([^"<]*)', line))}
        links = [match.groups() for line in lines if (match := MERMAID_LINK.fullmatch(line))]
        assert (ids["add sugar"], end, ids["stir"]) in links
        assert (ids["pour water"], "-->", ids["stir"]) in links
        assert '  x0["only one of these"]:::exclusive' in lines
        bars = {link for link in links if link[0] == "x0"}
        assert bars == {("x0", "-.-", ids[name]) for name in ("grind beans", "open ground coffee")}
        assert f"  class {ids['add sugar']} optional" in lines
        assert f'  {ids["stir"]}("stir<br/>#8635; 30 #37;"):::step' in lines
        (legend,) = [line for line in lines if line.startswith("  legend")]
        assert all(
            words in legend for words in ("arrow: needs", "round end: after, if done", "dashed box: may be left")
        )
        styled = [number for line in lines if line.startswith("  linkStyle") for number in line.split()[1].split(",")]
        assert max(map(int, styled)) == len(links) - 1
        classes = {match[1] for line in lines if (match := re.match(r"  classDef (\w+)", line))}
        assert {match for line in lines for match in re.findall(r":::(\w+)", line)} | {"optional"} <= classes


def test_mermaid_without_kinds_has_no_legend(cpr: SubtaskGraph) -> None:
    text = to_mermaid(build_diagram(cpr))
    assert not re.search("legend|optional|exclusive|--o", text)


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


def test_pddl_actions_follow_order_and_exclusive_groups(coffee: SubtaskGraph) -> None:
    """Every action in every state: `(not-done-x)` holds exactly where `(done-x)` does not."""
    graph = replace(coffee, exclusive=[*coffee.exclusive, ["add sugar", "grind beans"]])
    domain = expressions(to_pddl(graph))
    assert domain[2] == [":requirements", ":strips", ":disjunctive-preconditions"]
    predicates = {name for (name,) in domain[3][1:]}
    actions = dict(zip(graph.steps, (part for part in domain if part[0] == ":action"), strict=True))
    names = pddl_identifiers(graph.steps)
    for bits in itertools.product([False, True], repeat=len(graph.steps)):
        completed = {step for step, bit in zip(graph.steps, bits, strict=True) if bit}
        state = {f"{'done' if step in completed else 'not-done'}-{names[step]}" for step in graph.steps} & predicates
        assert {step for step, action in actions.items() if holds(action[5], state)} == graph.eligible(completed)
    for name, action in actions.items():
        effects = action[7][1:] if action[7][0] == "and" else [action[7]]
        assert [f"done-{names[name]}"] in effects
        assert (["not", [f"not-done-{names[name]}"]] in effects) == (f"not-done-{names[name]}" in predicates)


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


def test_the_page_has_a_column_and_a_legend_for_the_kinds(cpr: SubtaskGraph, coffee: SubtaskGraph) -> None:
    plain, text = (drawing.html_page(graph) for graph in (cpr, coffee))
    assert Page(plain).rows[0] == ["Step", "Needs", "Held in", "Not in", "Next best"]
    head, *rows = Page(text).rows
    assert head == ["Step", "Needs", "Also", "Held in", "Not in", "Next best"]
    assert {row[0]: row[2] for row in rows} == {
        "add sugar": "It is optional: 36 of 60 videos do without it.",
        "boil water": "",
        "grind beans": "A run does it or open ground coffee (48 of 50 videos), never both.",
        "open ground coffee": "A run does it or grind beans (48 of 50 videos), never both.",
        "pour water": "",
        "stir": "It comes after add sugar (18 of 20 videos), where that is done at all."
        "It is done again in 30 % of the videos with it.",
    }
    words = ("after, if done", "only one of these", "may be left out", "done again in so many runs")
    legends = [
        re.sub("<script.*", "", re.findall(r'<ul class="legend">.*?</ul>', one, re.S)[0]) for one in (plain, text)
    ]
    assert [[word in legend for word in words] for legend in legends] == [[False] * 4, [True] * 4]
    assert 'aria-label="stir. Needs pour water. It comes after add sugar (18 of 20 videos), where' in text
    assert 'aria-label="add sugar. Needs nothing before it. It is optional: 36 of 60 videos do' in text
    assert "A run does it or open ground coffee (48 of 50 videos), never both." in text


def test_the_page_is_closed_to_the_outside(cpr: SubtaskGraph, hostile: SubtaskGraph, tmp_path: Path) -> None:
    order, optional = [(hostile.steps[0], hostile.steps[-1])], hostile.steps[:4]
    kinds = replace(hostile, order=order, exclusive=[hostile.steps[:2], hostile.steps[4:10]], optional=optional)
    for number, graph in enumerate((cpr, hostile, kinds)):
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
