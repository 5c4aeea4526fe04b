from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2 import drawing
from msg2.drawing.diagram import build_diagram
from msg2.drawing.dot import render_svg, to_dot
from msg2.drawing.style import OPERATORS
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import infer
from msg2.text import escape_control_characters, one_line, truncate, width_in_ems, wrap

SVG = "{http://www.w3.org/2000/svg}"


def groups(svg: str, kind: str) -> list[ET.Element]:
    return [g for g in ET.fromstring(svg).iter(f"{SVG}g") if (g.get("class") or "").split()[:1] == [kind]]


def shown(group: ET.Element) -> str:
    return "".join(text.text or "" for text in group.iter(f"{SVG}text")).replace(" ", "").replace("\u2060", "")


def box(group: ET.Element) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a node's outline."""
    ellipse = group.find(f".//{SVG}ellipse")
    if ellipse is not None:
        x, y, rx, ry = (float(ellipse.attrib[name]) for name in ("cx", "cy", "rx", "ry"))
        return x - rx, y - ry, x + rx, y + ry
    path = group.find(f".//{SVG}path")
    assert path is not None
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.attrib["d"])]
    return min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])


def overlapping(svg: str) -> list[tuple[str, str]]:
    boxes = [(shown(group), box(group)) for group in groups(svg, "node")]
    return [
        (one, other)
        for i, (one, a) in enumerate(boxes)
        for other, b in boxes[:i]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


def test_every_step_and_operator_is_drawn_once(cpr: SubtaskGraph) -> None:
    svg = drawing.svg(cpr)
    labels = sorted(shown(group) for group in groups(svg, "node"))
    operators = ["and", "or", "or", "not"]  # two of the three "and" join steps only, and are left out
    assert labels == sorted([*(name.replace(" ", "") for name in cpr.steps), *operators])
    assert len(groups(svg, "edge")) == len(cpr.to_networkx().edges) - 2
    assert not overlapping(svg)


def test_the_start_layer_has_its_own_colour_and_lies_left(cpr: SubtaskGraph) -> None:
    nodes = {shown(group): group for group in groups(drawing.svg(cpr), "node")}
    fills = {name: [p.get("fill") for p in group.iter(f"{SVG}path")] for name, group in nodes.items()}
    first = {name for name, fill in fills.items() if fill == fills["checkpulse"]}
    assert first == {"checkpulse", "checkbreathing", "checkresponse"}
    assert max(box(nodes[name])[2] for name in first) < min(box(nodes[name])[0] for name in fills.keys() - first)


def test_width_and_dashes_follow_the_evidence(cpr: SubtaskGraph) -> None:
    arrows = {arrow.text.split(":")[0]: arrow for arrow in build_diagram(cpr).arrows}
    strong, weak = arrows["check breathing → open airway"], arrows["check response → open airway"]
    assert (strong.support.share, strong.support.weak) == (0.9, False)
    assert weak.support.weak
    assert weak.text.endswith("in this order in 2 of 3 videos: few tell")
    paths = {
        (group.findtext(f"{SVG}title") or "").split(":")[0]: group.find(f".//{SVG}path")
        for group in groups(drawing.svg(cpr), "edge")
    }
    one, other = paths["check breathing → open airway"], paths["check response → open airway"]
    assert one is not None
    assert other is not None
    assert float(one.attrib["stroke-width"]) > float(other.attrib["stroke-width"])
    assert one.get("stroke-dasharray") is None
    assert other.get("stroke-dasharray") is not None


def test_shares_of_the_bootstrap_are_drawn() -> None:
    graph = infer([list("abc"), list("abdc"), list("adbc")] * 4, samples=5)
    assert all(arrow.support.kinds for arrow in build_diagram(graph).arrows)
    assert len(groups(drawing.svg(graph), "edge")) == len(graph.edges())


def test_the_reduction_is_drawn_unless_told_otherwise() -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("a"), step("b")])})
    assert len(build_diagram(graph).arrows) == 2
    assert build_diagram(graph).omitted_edges == 1
    assert len(build_diagram(graph, reduce=False).arrows) == 3


def test_an_and_is_drawn_only_beside_or_inside_of_an_or() -> None:
    a, b, c, d = map(step, "abcd")
    cases = [
        (all_of([a, b]), []),
        (all_of([a, b, negation(c)]), ["not"]),
        (any_of([a, b]), ["or"]),
        (all_of([a, any_of([b, c])]), ["and", "or"]),
        (any_of([all_of([a, b]), c]), ["and", "or"]),
        (any_of([all_of([a, any_of([b, c])]), d]), ["and", "or", "or"]),
        (all_of([a, negation(all_of([b, c]))]), ["and", "not"]),
    ]
    for formula, expected in cases:
        graph = SubtaskGraph("t", "abcde", {"e": formula})
        diagram = build_diagram(graph, reduce=False)
        assert sorted(OPERATORS[node.kind].name for node in diagram.nodes if node.kind != "step") == expected, formula
        # Every step of the formula still leads to e, and nothing hangs in the air.
        into = {arrow.target: arrow for arrow in diagram.arrows}
        for name in formula.steps:
            (here,) = [arrow for arrow in diagram.arrows if arrow.before == name]
            while here.target != "s4":
                assert here.is_alternative == (here.target in {node.id for node in diagram.nodes if node.kind == "any"})
                (here,) = [arrow for arrow in diagram.arrows if arrow.source == here.target]
        assert {arrow.source for arrow in diagram.arrows} | set(into) <= {node.id for node in diagram.nodes}


# -- more than "needs" ------------------------------------------------------------------------------------------------


def edges(svg: str, kind: str) -> list[ET.Element]:
    return [group for group in groups(svg, "edge") if kind in str(group.get("class")).split()]


def outline(group: ET.Element) -> ET.Element:
    path = group.find(f".//{SVG}path")
    assert path is not None
    return path


def legend(svg: str) -> str:
    """The words of the graph itself, outside of boxes."""
    root = groups(svg, "graph")[0]
    return " ".join(text.text or "" for text in root.findall(f"{SVG}g/{SVG}a/{SVG}text"))


def test_after_if_done_is_thin_and_open_headed(coffee: SubtaskGraph) -> None:
    svg = drawing.svg(coffee)
    (after,) = edges(svg, "after")
    title = "add sugar → stir (after, if done): in this order in 18 of 20 videos"
    assert after.findtext(f"{SVG}title") == title
    needs = next(
        group for group in groups(svg, "edge") if str(group.findtext(f"{SVG}title")).startswith("pour water → stir:")
    )
    widths = [float(outline(group).attrib["stroke-width"]) for group in (after, needs)]
    assert widths[0] < widths[1] / 2
    heads = [group.find(f".//{SVG}polygon") for group in (after, needs)]
    assert [None if head is None else head.get("fill") == "none" for head in heads] == [True, False]
    assert outline(after).get("stroke-dasharray") is None
    weak = replace(coffee, evidence={"stir": {"edges": {"add sugar": {"before": 2, "together": 2, "weak": True}}}})
    assert outline(edges(drawing.svg(weak), "after")[0]).get("stroke-dasharray") is not None


def test_optional_steps_have_a_dashed_outline_and_repeats_a_note(coffee: SubtaskGraph) -> None:
    boxes = {shown(group): group for group in groups(drawing.svg(coffee), "node")}
    dashed = {
        name for name, group in boxes.items() for path in group.iter(f"{SVG}path") if path.get("stroke-dasharray")
    }
    assert dashed == {"addsugar"}
    assert "stir↻30%" in boxes
    assert "stir↻30%3of9tooearly" in {
        shown(group) for group in groups(drawing.svg(coffee, marks={"stir": "3 of 9 too early"}), "node")
    }


@pytest.mark.parametrize("size", [2, 3, 6])
def test_exclusive_steps_are_joined_and_stay_where_they_are(size: int) -> None:
    names = [f"way {number}" for number in range(size)]
    needs = {name: step("start") for name in names} | {"end": any_of(map(step, names))}
    plain = SubtaskGraph("t", ["start", *names, "end"], needs)
    without, svg = (
        drawing.svg(one, picture=drawing.PictureOptions(legend=False))
        for one in (plain, replace(plain, exclusive=[names]))
    )
    bars = edges(svg, "exclusive")
    assert len(bars) == {2: 1, 3: 3, 6: 6}[size]  # many steps are joined through a few words
    assert {bar.findtext(f"{SVG}title") for bar in bars} == {f"only one of these: {', '.join(names)}"}
    columns = [{shown(group): box(group)[0] for group in groups(one, "node")} for one in (without, svg)]
    assert columns[0] == {name: pytest.approx(columns[1][name], abs=40) for name in columns[0]}
    assert [sorted(columns[0], key=columns[0].__getitem__)[0]] == ["start"]
    assert not overlapping(svg)


def test_overlapping_groups_are_told_apart_from_one_group() -> None:
    both = SubtaskGraph("t", "abc", {}, exclusive=["ab", "bc"])
    one = SubtaskGraph("t", "abc", {}, exclusive=["abc"])
    assert [len(edges(drawing.svg(graph), "exclusive")) for graph in (both, one)] == [2, 3]


WORDS = {
    "after": "after, if done",
    "exclusive": "only one of these",
    "optional": "may be left out",
    "repeats": "done again in so many runs",
}


@pytest.mark.parametrize("kinds", [kinds for size in range(5) for kinds in combinations(WORDS, size)])
def test_the_legend_names_what_occurs(kinds: tuple[str, ...]) -> None:
    given = {
        "order": [("a", "c")] if "after" in kinds else [],
        "exclusive": [["a", "d"]] if "exclusive" in kinds else [],
        "optional": ["d"] if "optional" in kinds else [],
        "repeats": {"a": 0.5} if "repeats" in kinds else {},
    }
    graph = SubtaskGraph("t", "abcd", {"b": step("a")}, **given)  # type: ignore[arg-type]
    said = legend(drawing.svg(graph))
    assert ("needs" in said) == bool(kinds)
    assert {kind for kind, words in WORDS.items() if words in said} == set(kinds)
    bare = replace(graph, preconditions={})
    assert "needs" not in legend(drawing.svg(bare))


def test_a_pair_of_another_kind_is_common_and_says_so(coffee: SubtaskGraph) -> None:
    formulas = {"stir": all_of([step("add sugar"), step("pour water")])}
    order = [("boil water", "pour water"), ("grind beans", "boil water")]
    truth = SubtaskGraph("make coffee", coffee.steps, formulas, order=order)
    arrows = {arrow.text.split(":")[0]: arrow for arrow in build_diagram(coffee, truth).arrows if arrow.before}
    found = {text: (arrow.status, arrow.kind, arrow.true_kind) for text, arrow in arrows.items()}
    assert found == {
        "boil water → pour water; in the true graph": ("common", "needs", "after"),
        "grind beans → pour water": ("redundant", "needs", None),
        "open ground coffee → pour water": ("redundant", "needs", None),
        "pour water → stir": ("common", "needs", None),
        "add sugar → stir (after, if done)": ("common", "after", "needs"),
        "grind beans → boil water (after, if done)": ("missing", "after", None),
    }
    assert arrows["add sugar → stir (after, if done)"].text.endswith("; in the true graph: needs")
    svg = drawing.svg(coffee, compare=truth)
    (missing,) = edges(svg, "missing")
    head = missing.find(f".//{SVG}polygon")
    assert head is not None
    assert head.get("fill") == "none"
    assert "in both" in legend(svg)
    assert "after, if done" in legend(svg)


def test_groups_beside_the_truth(coffee: SubtaskGraph) -> None:
    ways, others = ["grind beans", "open ground coffee"], ["add sugar", "boil water"]
    for truth, expected in ([ways], ["common"]), ([ways, others], ["common", "missing"]), ([others], None):
        diagram = build_diagram(coffee, replace(coffee, exclusive=truth))
        assert [group.status for group in diagram.groups] == (expected or ["redundant", "missing"])
    # Grinding excludes pouring where it excludes all that pouring needs.
    needs = {"pour water": step("open ground coffee")}
    derived = SubtaskGraph("t", [*ways, "pour water"], needs, exclusive=[ways])
    group = build_diagram(replace(derived, exclusive=[ways, ["grind beans", "pour water"]]), derived).groups[1]
    assert group.status == "common"


def test_comparison_through_operators() -> None:
    graph = SubtaskGraph("t", "abcd", {"c": any_of([step("a"), step("b")]), "d": all_of([step("a"), step("b")])})
    truth = SubtaskGraph("t", "abcd", {"c": step("a"), "b": step("d")})
    drawn = build_diagram(graph, truth)
    found = {(arrow.text, arrow.status) for arrow in drawn.arrows if not arrow.text.startswith("→")}
    assert found == {
        ("a → c", "common"),
        ("b → c", "redundant"),
        ("a → d", "redundant"),
        ("b → d", "redundant"),
        ("d → b", "missing"),
    }
    # An operator leads on in black as long as something true passes through it.
    assert {(a.text, a.status) for a in drawn.arrows if a.text.startswith("→")} == {("→ c", "common")}
    svg = drawing.svg(graph, compare=truth)
    assert "missing" in "".join(ET.fromstring(svg).itertext())
    assert "missing" not in drawing.svg(graph)
    with pytest.raises(InputError, match="'x' is not a step of the graph"):
        drawing.svg(graph, compare=SubtaskGraph("t", "x", {}))


def test_marks_are_written_under_the_name(cpr: SubtaskGraph) -> None:
    svg = drawing.svg(cpr, marks={"open airway": "12 of 50 out of order \\N <b>"})
    assert "openairway12of50outoforder\\N<b>" in {shown(group) for group in groups(svg, "node")}
    with pytest.raises(InputError, match="marks: 'nap' is not a step"):
        drawing.svg(cpr, marks={"nap": "skipped"})


def test_a_long_mark_is_wrapped_like_a_name() -> None:
    names = [f"step {number} of the recipe" for number in range(12)]
    chain = SubtaskGraph("t", names, {after: step(before) for before, after in pairwise(names)})
    marks = dict.fromkeys(names, "22 of 30 too early, skipped 3 times")
    plain, marked = drawing.svg(chain), drawing.svg(chain, marks=marks)
    assert all(shown(group).endswith("22of30tooearly,skipped3times") for group in groups(marked, "node"))
    assert not overlapping(marked)
    plain_width, marked_width = (int(re.findall(r'width="(\d+)pt"', svg)[0]) for svg in (plain, marked))
    assert marked_width < 1.2 * plain_width


@pytest.mark.parametrize("kinds", [False, True])
def test_hostile_names_are_text(hostile: SubtaskGraph, kinds: bool) -> None:
    if kinds:
        order = [(hostile.steps[0], hostile.steps[-1])]
        groups_of = [hostile.steps[:2], hostile.steps[4:10]]
        hostile = replace(hostile, order=order, exclusive=groups_of, optional=hostile.steps[:4])
    svg = drawing.svg(hostile, marks=dict.fromkeys(hostile.steps[:3], hostile.steps[1]))
    steps = {group.get("id"): group for group in groups(svg, "node") if (group.get("id") or "").startswith("s")}
    for number, name in enumerate(hostile.steps):
        group = steps[f"s{number}"]
        assert group.findtext(f"{SVG}title") == truncate(one_line(name), 2000)
        assert shown(group).startswith(one_line(name).replace(" ", "")[:60])
    arrows = sorted(
        str(group.findtext(f"{SVG}title")) for group in groups(svg, "edge") if str(group.get("id")).startswith("e")
    )
    assert arrows == sorted(truncate(one_line(arrow.text), 2000) for arrow in build_diagram(hostile).arrows)
    assert groups(svg, "graph")[0].findtext(f"{SVG}title") == one_line(hostile.task)
    assert {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()} <= {
        "svg", "g", "title", "a", "path", "polygon", "polyline", "ellipse", "text",
    }  # fmt: skip
    assert not re.search(r"<!|<\?|href=|graphviz", svg)


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4, unique=True))
def test_any_unicode_can_be_drawn(names: list[str]) -> None:
    graph = SubtaskGraph(names[0], names, {b: step(a) for a, b in pairwise(names)})
    drawn = build_diagram(graph, marks={names[0]: names[-1]})
    titles = [group.findtext(f"{SVG}title") for group in groups(render_svg(to_dot(drawn)), "node")]
    assert sorted(map(str, titles)) == sorted(one_line(name) for name in names)


@pytest.mark.parametrize("size", [0, 1, 2, 60])
def test_steps_without_any_order(size: int) -> None:
    svg = drawing.svg(SubtaskGraph("t", [f"step {i}" for i in range(size)], {}))
    assert len(groups(svg, "node")) == size
    assert ("no steps" in svg) == (size == 0)


def test_three_hundred_steps_are_drawn() -> None:
    names = [f"step number {i} of the task" for i in range(300)]
    formulas = {
        names[i]: all_of([step(names[i - 20]), any_of([step(names[i - 19]), step(names[i - 21 + i % 7])])])
        for i in range(30, 300)
    }
    svg = drawing.svg(SubtaskGraph("t", names, formulas))
    assert not overlapping(svg)


def test_recipes_fit_a_screen_without_overlaps(data: Path) -> None:
    for path in sorted((data / "captaincook4d" / "task_graphs").glob("*.json")):
        content = json.loads(path.read_text())
        names = {int(key): name for key, name in content["steps"].items() if name not in ("START", "END")}
        formulas: dict[str, list[str]] = {}
        for before, after in content["edges"]:
            if before in names and after in names:
                formulas.setdefault(names[after], []).append(names[before])
        graph = SubtaskGraph(path.stem, names.values(), {n: all_of(map(step, f)) for n, f in formulas.items()})
        svg = drawing.svg(graph)
        assert not overlapping(svg)
        points = int(re.findall(r'width="(\d+)pt"', svg)[0])
        # Letters of 11 points, scaled to 1400 pixels, stay at seven pixels or more.
        assert 11 * 1400 / points >= 7, path.stem


def test_text_fits_its_box_in_a_wide_font() -> None:
    """DejaVu Sans, which matplotlib carries, is among the widest of the usual sans-serif fonts."""
    fonts = pytest.importorskip("matplotlib.font_manager", reason="matplotlib (the extra 'plot') measures the text")
    from matplotlib.textpath import TextPath

    wide = fonts.FontProperties(family="DejaVu Sans")
    for line in (
        "Add-Add 1/8 cup soy",
        "MINCE GARLIC & SALT",
        "WWWWWWWWWW",
        "illicit tiff.",
        "0123456789",
        "mmm www @%",
    ):
        actual = TextPath((0, 0), line, size=1, prop=wide).get_extents().width
        assert actual <= width_in_ems(line) + 14 / 11, line


@given(st.text(max_size=200), st.integers(8, 30), st.integers(8, 90))
def test_wrapping_keeps_the_text(text: str, columns: int, limit: int) -> None:
    lines = wrap(text, columns, limit)
    assert lines
    assert all(len(line) <= columns for line in lines)
    kept = "".join(lines).replace(" ", "")
    whole = one_line(text).replace(" ", "")
    assert kept == whole if len(one_line(text)) <= limit else kept.endswith("…") and whole.startswith(kept[:-1])
    ET.fromstring(f"<x>{escape_control_characters(text).replace('&', '').replace('<', '')}</x>")


def test_nothing_is_run_and_nothing_is_said(cpr: SubtaskGraph, tmp_path: Path) -> None:
    """No program on the path, another process, another hash seed: the same bytes, and a silent stderr."""
    cpr.show(tmp_path / "cpr.json")
    program = (
        "import json, os, subprocess, sys; from pathlib import Path; from msg2.graph import SubtaskGraph\n"
        "def refuse(*_, **__): raise AssertionError('a program was started')\n"
        "subprocess.Popen = os.system = os.posix_spawn = os.fork = refuse\n"
        "folder = Path(sys.argv[1]); graph = SubtaskGraph.from_json(json.loads((folder / 'cpr.json').read_text()))\n"
        "[graph.show(folder / f'other.{kind}') for kind in ('svg', 'png')]"
    )
    for kind in ("svg", "png"):
        cpr.show(tmp_path / f"one.{kind}")
    environment = {**os.environ, "PATH": "", "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for kind in ("svg", "png"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()
