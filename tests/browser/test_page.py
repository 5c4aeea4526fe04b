"""The page of a graph in a real browser, against what the library itself says."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from msg2 import assist, drawing
from msg2.assist.forecasting import fit_end_probability
from msg2.assist.learned_forecaster import LearnedForecaster, fit_forecaster
from msg2.assist.rankers import recency
from msg2.drawing.diagram import build_diagram
from msg2.drawing.graph_page import page_data
from msg2.drawing.page_parts import asset
from msg2.formats import read
from msg2.graph import TRUE, Formula, SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import infer
from msg2.metrics import score_graph
from msg2.simulation import RandomWorldOptions, household_world, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from msg2.text import one_line

expect = pytest.importorskip("playwright.sync_api").expect
Open = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@cache
def coffee() -> tuple[SubtaskGraph, Task, SubtaskGraph]:
    """A graph that was learnt, its videos, the true graph."""
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(), 0)
    task = simulation.task.with_first_labels()
    return infer(task), task, simulation.graph


@cache
def coffee_html() -> str:
    graph, task, _ = coffee()
    return drawing.html_page(graph, task)


@cache
def coffee_forecaster() -> LearnedForecaster:
    graph, task, _ = coffee()
    return fit_forecaster(graph, task)


@pytest.fixture
def coffee_page(open_page: Open) -> Any:
    return open_page(coffee_html())


def panel(page: Any) -> str:
    return re.sub(r"\s+", " ", page.locator("#panel").inner_text())


def states(page: Any) -> dict[str, str]:
    return {
        str(box.locator("title").first.text_content()): box.get_attribute("data-state")
        for box in page.locator("#graph g.step").all()
    }


# -- the graph ----------------------------------------------------------------------------------------------------


def test_a_step_and_an_arrow_tell_why_they_are_there(coffee_page: Any) -> None:
    graph, task, _ = coffee()
    assert not coffee_page.locator("#panel").is_visible()
    for number, name in enumerate(graph.transitive_reduction().steps):
        coffee_page.locator(f"#s{number} a").focus()  # that brings it into view
        coffee_page.locator(f"#s{number} text").first.click()
        text, evidence = panel(coffee_page), graph.evidence[name]
        assert text.startswith(name)
        if name in graph.preconditions:
            assert f"held in {evidence['holds']} of {evidence['videos']} videos" in text
            against = len(evidence["violations"])
            assert ("against it" in text) == bool(against)
            assert f"Videos against it ({against})" in text or not against
            assert f"Videos for it ({evidence['holds']})" in text
            assert all(parent in text for parent in graph.parents(name))
        else:
            assert "Nothing before it" in text
    for arrow in build_diagram(graph).arrows:
        if arrow.before is None:
            continue
        coffee_page.locator(f"#{arrow.id} .hit").dispatch_event("click")
        counts = graph.evidence[arrow.after]["edges"][arrow.before]
        text = panel(coffee_page)
        assert f"in this order in {counts['before']} of {counts['together']} video" in text
        assert f"Videos in this order ({counts['before']})" in text
        assert "chosen" in coffee_page.locator(f"#{arrow.id}").get_attribute("class")
    coffee_page.keyboard.press("Escape")
    assert not coffee_page.locator("#panel").is_visible()
    assert len(task) == 54


def test_a_video_of_the_panel_opens_in_the_strip(coffee_page: Any) -> None:
    graph, _, _ = coffee()
    name = max(graph.preconditions, key=lambda name: len(graph.evidence[name]["violations"]))
    coffee_page.locator(f"#s{graph.transitive_reduction().steps.index(name)} text").first.click()
    against = graph.evidence[name]["violations"][-1]
    coffee_page.locator("#panel .chip", has_text=against).click()
    assert coffee_page.locator("#video-name").inner_text() == against
    assert coffee_page.locator(".segment", has_text=name).count() == 1


def test_keys_walk_through_the_graph(coffee_page: Any) -> None:
    graph = coffee()[0].transitive_reduction()
    coffee_page.locator("#graph").focus()
    focused = "document.activeElement.closest('g.node')?.id ?? document.activeElement.id"
    for number in range(len(graph.steps)):
        coffee_page.keyboard.press("Tab")
        assert coffee_page.evaluate(focused) == f"s{number}"
    last = graph.steps[-1]
    coffee_page.keyboard.press("ArrowLeft")
    before = graph.steps[int(coffee_page.evaluate(focused)[1:])]
    assert before in graph.parents(last)
    coffee_page.keyboard.press("ArrowRight")
    assert before in graph.parents(graph.steps[int(coffee_page.evaluate(focused)[1:])])
    here = coffee_page.evaluate(focused)
    coffee_page.keyboard.press("Enter")
    assert panel(coffee_page).startswith(graph.steps[int(here[1:])])
    assert coffee_page.evaluate("document.activeElement.tagName") == "H2"
    coffee_page.keyboard.press("Escape")
    assert coffee_page.evaluate(focused) == here
    label = coffee_page.locator("#s5 a").get_attribute("aria-label")
    needs = graph.precondition(graph.steps[5])
    words = "nothing before it" if needs == TRUE else needs.text(" and ", " or ")
    assert label == f"{graph.steps[5]}. Needs {words}."
    assert coffee_page.locator("#said").inner_text().endswith(".")


def test_pan_and_zoom(coffee_page: Any) -> None:
    def box() -> list[float]:
        return [float(side) for side in coffee_page.locator("#graph svg").get_attribute("viewBox").split()]

    coffee_page.keyboard.press("0")
    whole = box()
    frame = coffee_page.locator("#graph").bounding_box()
    x, y = frame["x"] + 200, frame["y"] + 100
    coffee_page.mouse.move(x, y)
    coffee_page.mouse.wheel(0, -300)
    expect(coffee_page.locator("#graph svg")).not_to_have_attribute("viewBox", " ".join(map(str, whole)))
    near = box()
    fixed = [(one[0] + 200 * one[2] / frame["width"], one[1] + 100 * one[3] / frame["height"]) for one in (whole, near)]
    assert fixed[0] == pytest.approx(fixed[1], abs=2)  # what is under the pointer stays there
    coffee_page.mouse.down()
    coffee_page.mouse.move(x - 80, y, steps=4)
    coffee_page.mouse.up()
    assert box()[0] > near[0]
    assert not coffee_page.locator("#panel").is_visible()  # a drag is no click
    coffee_page.keyboard.press("0")
    assert box() == pytest.approx(whole, abs=0.1)
    coffee_page.keyboard.press("+")
    assert box()[2] < whole[2]


def test_two_fingers_zoom(open_page: Open) -> None:
    page = open_page(drawing.html_page(coffee()[0]), **PHONE)
    page.locator("#graph").scroll_into_view_if_needed()
    frame = page.locator("#graph").bounding_box()
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    fingers = page.context.new_cdp_session(page)
    wide = float(page.locator("#graph svg").get_attribute("viewBox").split()[2])
    for kind, apart in (
        ("touchStart", 20),
        ("touchMove", 40),
        ("touchMove", 60),
        ("touchMove", 80),
        ("touchEnd", None),
    ):
        points = [] if apart is None else [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    narrow = float(page.locator("#graph svg").get_attribute("viewBox").split()[2])
    assert wide / narrow == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize(("measure", "least"), [("share", 90), ("videos", 15)])
def test_weak_arrows_are_hidden(coffee_page: Any, measure: str, least: int) -> None:
    graph, _, _ = coffee()
    coffee_page.locator("#measure").select_option(measure)
    coffee_page.locator("#least").fill(str(least))
    arrows = [arrow for arrow in build_diagram(graph).arrows if arrow.before is not None]
    counts = {arrow.id: graph.evidence[arrow.after]["edges"][arrow.before] for arrow in arrows}
    strong = {
        key
        for key, count in counts.items()
        if (100 * count["before"] / count["together"] if measure == "share" else count["before"]) >= least
    }
    assert 0 < len(strong) < len(arrows)
    assert {key for key in counts if coffee_page.locator(f"#{key}").is_visible()} == strong
    assert coffee_page.locator("#shown").inner_text() == f"{len(strong)} of {len(arrows)} arrows"
    for box in coffee_page.locator('#graph g.node[id^="o"]').all():  # an operator without arrows goes too
        into = {arrow.id for arrow in arrows if arrow.target == box.get_attribute("id")}
        assert box.is_visible() == bool(into & strong)


def test_confidence_and_pairs_that_are_not_drawn(open_page: Open) -> None:
    evidence = {
        "c": {
            "videos": 8, "holds": 6, "confidence": 0.75, "violations": ["v1", "v2"],
            "edges": {
                "a": {"before": 3, "together": 4, "weak": True, "probability": 0.5, "direct": 0.25},
                "b": {"before": 6, "together": 8, "probability": 0.9},
            },
        }
    }  # fmt: skip
    formulas = {"b": step("a"), "c": all_of([step("a"), step("b")])}
    page = open_page(drawing.html_page(SubtaskGraph("t", "abc", formulas, evidence=evidence)))
    page.locator("#s2 text").click()
    assert "so say samples of the videos (75 %)" in panel(page)
    assert "Videos against it (2) v1 v2" in panel(page)
    page.locator(".why", has_text="3 of 4: few tell").click()
    assert panel(page).startswith("a → c × It follows from other arrows, so it is not drawn.")
    assert "Weak: few tell." in panel(page)
    assert "directly before it in 25 %" in panel(page)
    page.locator("#measure").select_option("confidence")
    page.locator("#least").fill("95")
    assert page.locator("#shown").inner_text() == "1 of 2 arrows"


def test_the_part_of_a_step(open_page: Open) -> None:
    orders = ["axzo", "ayz", "axz", "ayzo"] * 15
    task = Task("t", [*"axyzo"], [Video(f"v{number:02}", map(Segment, order)) for number, order in enumerate(orders)])
    graph = infer(task, "likelihood")
    page = open_page(drawing.html_page(graph, task))
    told = {}
    for number, name in enumerate(graph.transitive_reduction().steps):
        page.locator(f"#s{number} text").first.click()
        told[name] = panel(page)
    assert "It is optional: 30 of 60 videos do without it." in told["o"]
    assert re.search(r"A run does it or y \(60 of 60 videos\), never both|Videos show it or y, hardly", told["x"])
    assert not any(re.search("optional|does it or|show it or", told[name]) for name in "az")


def kinds() -> SubtaskGraph:
    """A graph that says more than what steps need."""
    formulas = {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])]), "stir": step("pour")}
    counts = {"pour": {"before": 38, "together": 40}, "sugar": {"before": 12, "together": 20}}
    evidence = {
        "stir": {"videos": 40, "holds": 38, "edges": counts},
        "grind": {"videos": 30, "exclusive": {"open": 2}},
        "open": {"videos": 22},
        "sugar": {"videos": 24},
    }
    return SubtaskGraph(
        "coffee", ["boil", "grind", "open", "pour", "sugar", "stir", "taste"], formulas,
        {"videos": [f"v{number}" for number in range(60)]}, evidence,
        order=[("sugar", "stir"), ("stir", "taste")], exclusive=[["grind", "open"]], optional=["sugar", "taste"],
        repeats={"stir": 0.3},
    )  # fmt: skip


def choose(page: Any, name: str) -> str:
    """What the panel tells about a step."""
    page.locator(f"#s{kinds().transitive_reduction().steps.index(name)} text").first.click()
    return panel(page)


def test_the_panel_tells_the_kinds(open_page: Open) -> None:
    page = open_page(drawing.html_page(kinds()))
    stir = choose(page, "stir")
    assert "Needs pour 38 of 40" in stir
    assert "After, if done sugar 12 of 20" in stir
    assert "It is done again in 30 % of the videos with it." in stir
    assert "Comes before, if done taste" in stir
    assert "Needed by" not in stir
    assert "A run does it or open (48 of 50 videos), never both." in choose(page, "grind")
    assert "One of the ways to pour" in panel(page)
    assert "near" in page.locator("#x0_0").get_attribute("class")
    sugar = choose(page, "sugar")
    assert "It is optional: 36 of 60 videos do without it." in sugar
    assert "near" not in page.locator("#x0_0").get_attribute("class")
    taste = choose(page, "taste")
    assert "Needs Nothing. After, if done stir" in taste
    assert "Also It is optional: a run may leave it out." in taste
    choose(page, "stir")
    page.locator(".why", has_text="12 of 20").click()
    assert "Where both are done, sugar comes first. stir does not need it." in panel(page)
    assert "in this order in 12 of 20 videos with both" in panel(page)
    page.locator("#x0_0 .hit").dispatch_event("click")
    assert panel(page).startswith("Only one of these ×")
    assert page.locator("#panel .link").all_inner_texts() == ["grind", "open"]
    assert "chosen" in page.locator("#x0_0").get_attribute("class")


def test_both_kinds_of_arrows_are_filtered(open_page: Open) -> None:
    page = open_page(drawing.html_page(kinds()))
    after = page.locator("#graph .edge.after").first
    assert page.locator("#shown").inner_text() == "6 arrows"
    page.locator("#least").fill("70")  # sugar, then stir: 60 %; pour, then stir: 95 %
    assert "sugar → stir" in after.locator("title").first.text_content()
    assert not after.is_visible()
    assert page.locator("#shown").inner_text() == "5 of 6 arrows"
    page.locator("#least").fill("99")
    assert page.locator("#shown").inner_text() == "4 of 6 arrows"
    assert page.locator("#x0_0").is_visible()


def test_many_exclusive_steps_are_joined_by_words(open_page: Open) -> None:
    names = ["cash", "card", "cheque", "voucher"]
    page = open_page(drawing.html_page(SubtaskGraph("pay", names, {}, exclusive=[names])))
    page.locator("g.node.exclusive text").click()
    assert sorted(page.locator("#panel .link").all_inner_texts()) == sorted(names)


@pytest.mark.parametrize("dark", [False, True])
def test_the_kinds_look_different(open_page: Open, dark: bool) -> None:
    page = open_page(drawing.html_page(kinds()), color_scheme="dark" if dark else "light")
    look = "(it, name) => getComputedStyle(it)[name]"
    after, needs = page.locator("#graph .edge.after").first, page.locator("#graph .edge:not(.after, .exclusive)").first
    assert after.locator("polygon").evaluate(look, "fill") == "none"
    assert needs.locator("polygon").first.evaluate(look, "fill") != "none"
    assert page.locator("#x0_0 path").first.evaluate(look, "stroke") != needs.locator("path").first.evaluate(
        look, "stroke"
    )
    dashed = page.locator("#graph g.step").filter(has=page.locator("path[stroke-dasharray]"))
    assert sorted(dashed.locator("title").all_text_contents()) == ["sugar", "taste"]
    # The legend stands below, and the picture has no room for another one.
    assert not page.locator("#graph text", has_text="may be left out").is_visible()
    assert "may be left out" in page.locator(".picture .legend").inner_text()
    drawn = re.search(r'viewBox="([^"]+)"', drawing.svg(kinds()))
    assert drawn
    frame = page.locator("#graph").bounding_box()
    boxes = [box.bounding_box() for box in page.locator("#graph g.node").all()]
    above = min(box["y"] for box in boxes) - frame["y"]
    below = frame["y"] + frame["height"] - max(box["y"] + box["height"] for box in boxes)
    assert above == pytest.approx(below, abs=12)
    with page.expect_download() as saved:
        page.locator("#save-svg").click()
    root = ET.parse(saved.value.path()).getroot()
    assert root.get("viewBox") == " ".join(f"{float(side):g}" for side in drawn[1].split())
    assert "may be left out" in "".join(root.itertext())


def test_search(coffee_page: Any) -> None:
    graph, _, _ = coffee()
    coffee_page.keyboard.press("/")
    coffee_page.keyboard.type("WATER")
    expected = {name for name in graph.steps if "water" in name}
    assert {box.locator("title").first.text_content() for box in coffee_page.locator("g.found").all()} == expected
    assert coffee_page.locator("#matches").inner_text() == f"{len(expected)} steps"
    coffee_page.keyboard.press("Enter")
    assert "water" in panel(coffee_page).split(" Needs")[0]
    coffee_page.locator("#search").press("Escape")
    assert coffee_page.locator("g.found").count() == 0


# -- large graphs ---------------------------------------------------------------------------------------------------


@cache
def large() -> SubtaskGraph:
    return random_world(RandomWorldOptions(steps=60, depth=10, or_rate=0.3), 1).graph


@cache
def large_html() -> str:
    return drawing.html_page(large())


def visible_steps(page: Any) -> set[str]:
    return {str(box.locator("title").first.text_content()) for box in page.locator("#graph g.step:not(.hidden)").all()}


def links_of(page: Any, title: str) -> set[str]:
    """The steps that the panel names under a heading."""
    fact = page.locator("#panel .fact").filter(has=page.locator("h3", has_text=re.compile(f"^{title}$")))
    return set(fact.locator(".link").all_inner_texts())


@pytest.mark.parametrize("device", [{"viewport": {"width": 1280, "height": 800}}, PHONE], ids=["desktop", "phone"])
def test_what_does_step_41_need_and_who_needs_it(open_page: Open, device: dict[str, Any]) -> None:
    """In three actions: into the search, its name, Enter."""
    page = open_page(large_html(), **device)
    page.locator("#search").click()
    page.keyboard.type("step 41")
    page.keyboard.press("Enter")
    graph = large()
    assert links_of(page, "Needs") == graph.parents("step 41") != set()
    by = {name for name in graph.steps if "step 41" in graph.parents(name)}
    assert links_of(page, "Needed by") | links_of(page, "One of the ways to") == by != set()
    box, frame = page.locator("g.chosen").bounding_box(), page.locator("#graph").bounding_box()
    assert frame["x"] < box["x"]
    assert box["x"] + box["width"] < frame["x"] + frame["width"]
    assert frame["y"] < box["y"]
    assert box["y"] + box["height"] < frame["y"] + frame["height"]


def test_needed_by_tells_a_need_from_one_of_several_ways(open_page: Open) -> None:
    page = open_page(drawing.html_page(kinds()))
    choose(page, "boil")
    assert (links_of(page, "Needed by"), links_of(page, "One of the ways to")) == ({"pour"}, set())
    choose(page, "open")
    assert (links_of(page, "Needed by"), links_of(page, "One of the ways to")) == (set(), {"pour"})


def test_a_step_in_the_picture_answers_with_one_click(open_page: Open) -> None:
    page = open_page(large_html(), viewport={"width": 1280, "height": 800})
    number = large().transitive_reduction().steps.index("step 57")
    page.locator(f"#s{number} text").first.click()
    assert links_of(page, "Needs") == large().parents("step 57")


@pytest.mark.parametrize("device", [{"viewport": {"width": 1280, "height": 800}}, PHONE], ids=["desktop", "phone"])
def test_sixty_steps_are_readable_without_glasses(open_page: Open, device: dict[str, Any]) -> None:
    """Names are at least 12 pixels high when the page opens, and after a search; small ones, of operators, 10."""
    page = open_page(large_html(), **device)
    heights = """all => all.map((text) => {
      const { a } = text.getScreenCTM();
      return parseFloat(text.getAttribute("font-size")) * a;
    })"""
    for _ in range(2):
        assert min(page.locator("#graph g.step text").evaluate_all(heights)) >= 12
        assert min(page.locator("#graph g.node text").evaluate_all(heights)) >= 9.5
        page.locator("#zoom-fit").click()
        page.locator("#search").fill("step 05")
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('.legend')).fontSize)") >= 12


def test_a_search_zooms_to_the_step(open_page: Open) -> None:
    page = open_page(large_html(), viewport={"width": 1280, "height": 800})
    page.locator("#zoom-fit").click()
    small = page.locator("#s59").bounding_box()
    name = large().transitive_reduction().steps[59]
    page.locator("#search").fill(name)
    box, frame = page.locator("#s59").bounding_box(), page.locator("#graph").bounding_box()
    assert box["width"] > 1.5 * small["width"]
    assert box["x"] + box["width"] / 2 == pytest.approx(frame["x"] + frame["width"] / 2, abs=3)
    assert box["y"] + box["height"] / 2 == pytest.approx(frame["y"] + frame["height"] / 2, abs=3)


def test_the_surroundings_of_a_step(open_page: Open) -> None:
    page = open_page(large_html(), viewport={"width": 1280, "height": 800})
    graph = large().transitive_reduction()
    page.locator("#search").fill("step 41")
    page.keyboard.press("Enter")
    near = {"step 41"}
    for reach in (1, 2):
        near |= {
            other
            for name in near
            for other in graph.steps
            if other in graph.parents(name) or name in graph.parents(other)
        }
        page.locator("#panel .group button").nth(reach - 1).click()
        assert visible_steps(page) == near
        drawn = {
            (arrow.before, arrow.after)
            for arrow in build_diagram(graph).arrows
            if arrow.before and page.locator(f"#{arrow.id}:not(.hidden)").count()
        }
        assert drawn == {pair for pair in graph.edge_pairs() if {*pair} <= near}
        assert page.locator("#around-words").inner_text() == f"{len(near)} steps around step 41"
    other = (graph.steps[0] not in near and graph.steps[0]) or next(name for name in graph.steps if name not in near)
    page.locator("#search").fill(other)  # a search looks everywhere
    assert len(visible_steps(page)) == 60
    page.keyboard.press("Enter")
    page.locator("#panel .group button").first.click()
    assert len(visible_steps(page)) < 60
    page.locator("#all-steps").click()
    assert len(visible_steps(page)) == 60
    assert not page.locator("#around").is_visible()


def test_full_screen(open_page: Open) -> None:
    page = open_page(large_html(), viewport={"width": 1280, "height": 800})
    before, height = page.locator("#graph").bounding_box()["height"], "document.getElementById('graph').clientHeight"
    unchanged = page.evaluate(height)
    page.locator("#full-screen").click()
    expect(page.locator(".stage:fullscreen")).to_have_count(1)
    expect(page.locator("#full-screen")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#graph")).not_to_have_js_property("clientHeight", unchanged)
    assert page.evaluate(height) > 500
    page.locator("#full-screen").click()
    expect(page.locator(":fullscreen")).to_have_count(0)
    expect(page.locator("#full-screen")).to_have_attribute("aria-pressed", "false")
    assert page.locator("#graph").bounding_box()["height"] == pytest.approx(before, abs=2)


def test_keys_follow_the_direction_of_the_picture(open_page: Open) -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    page = open_page(drawing.html_page(graph, picture=drawing.PictureOptions(direction="TB")))
    page.locator("#s0 a").focus()
    focused = "document.activeElement.closest('g.node').id"
    for key, expected in (("ArrowDown", "s1"), ("ArrowDown", "s2"), ("ArrowUp", "s1"), ("ArrowRight", "s1")):
        page.keyboard.press(key)
        assert page.evaluate(focused) == expected
    assert page.locator("#s0").bounding_box()["y"] < page.locator("#s2").bounding_box()["y"]


# -- accessibility --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theme", "device"),
    [
        ("light", {"viewport": {"width": 1280, "height": 800}}),
        ("dark", PHONE),
        pytest.param("dark", {"viewport": {"width": 1280, "height": 800}}, marks=pytest.mark.slow),
        pytest.param("light", PHONE, marks=pytest.mark.slow),
    ],
    ids=["desktop-light", "phone-dark", "desktop-dark", "phone-light"],
)
def test_axe_finds_nothing_serious(open_page: Open, axe: str, theme: str, device: dict[str, Any]) -> None:
    graph, task, truth = coffee()
    page = open_page(
        drawing.html_page(graph, task, compare=truth), color_scheme=theme, reduced_motion="reduce", **device
    )

    def found() -> list[tuple[str, str, str]]:
        return [
            (one["id"], one["impact"], one["nodes"][0]["html"][:200])
            for one in page.evaluate("axe.run()")["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    page.evaluate(axe)
    assert found() == []
    page.locator("#s3 a").focus()
    page.keyboard.press("Enter")
    page.locator("#videos summary").focus()
    page.keyboard.press("Enter")
    assert found() == []
    page.keyboard.press("Escape")
    page.locator("#follow").focus()
    page.keyboard.press("Enter")
    assert page.locator("#checklist").is_visible()
    assert found() == []


def test_axe_can_find_something(open_page: Open, axe: str) -> None:
    page = open_page('<!DOCTYPE html><html lang="en"><title>t</title><img src="data:,"><p style="color:#ddd">faint</p>')
    page.evaluate(axe)
    ids = {one["id"] for one in page.evaluate("axe.run()")["violations"]}
    assert {"image-alt", "color-contrast"} <= ids


def test_everything_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page(coffee_html(), viewport={"width": 1280, "height": 800})
    controls = "[...document.querySelectorAll('button, input, select, summary, #graph g.step a, .scroll')]"
    usable = "(one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled"
    wanted = page.evaluate(f"{controls}.filter({usable}).length")
    reached = set()
    for _ in range(wanted + 60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(f"{controls}.indexOf(document.activeElement)"))
    assert len(reached - {-1}) == wanted > 40


# -- videos -------------------------------------------------------------------------------------------------------


def test_a_video_lights_the_steps_as_the_graph_says(coffee_page: Any) -> None:
    graph, task, _ = coffee()
    for number in (0, 7):
        video = task.videos[number]
        coffee_page.locator("#videos summary").click()
        coffee_page.locator("#find-video").fill(video.id)
        coffee_page.locator("#video-list button").first.click()
        ends = sorted(float(segment.end or 0) for segment in video.segments)
        for time in (ends[0] + 0.01, ends[len(ends) // 2] - 0.05, ends[-1]):
            coffee_page.locator("#seek").evaluate("(it, at) => { it.value = at; it.oninput(); }", time)
            done = {s.step for s in video.segments if s.end <= time}
            now = {s.step for s in video.segments if s.start <= time < s.end}
            eligible = graph.eligible(done)
            assert states(coffee_page) == {
                name: "now" if name in now else "done" if name in done else "eligible" if name in eligible else "later"
                for name in graph.steps
            }
            begun = Video("v", [s for s in video.segments if s.start <= time]).sequence()
            ranked = assist.next_steps(graph, begun, coffee_forecaster())[:6]
            shown = [re.sub(r"\s+", " ", item) for item in coffee_page.locator("#forecast li").all_inner_texts()]
            assert [item.removesuffix(" ✓") for item in shown if item != "Nothing is left."] == [
                f"{one.step} {round(100 * one.probability)} %" for one in ranked
            ]
        report = assist.check(graph, Task(task.name, task.steps, [video], task.absent))
        wrong = {mistake.position for mistake in report.mistakes if mistake.probability >= 0.5}
        names = [segment.step for place, segment in enumerate(video.segments, start=1) if place in wrong]
        assert coffee_page.locator(".segment.mistake").all_text_contents() == names
        assert coffee_page.locator(".segment").count() == len(video.segments)


def test_playing_goes_to_the_end(open_page: Open) -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    task = Task("t", "abc", [Video("timed", [Segment("a", 0, 1), Segment("c", 1, 2, 0.75, "predicted")]),
                             Video("untimed", [Segment("a"), Segment("b")])])  # fmt: skip
    page = open_page(drawing.html_page(graph, task))
    assert page.locator(".segment.predicted").get_attribute("aria-label") == "c, 0:01 to 0:02, predicted (75 %)"
    assert page.locator("#remarks").inner_text() == "Not seen: b."
    page.locator("#play").click()
    expect(page.locator("#play")).to_have_text("Play")
    assert states(page) == {"a": "done", "b": "eligible", "c": "done"}
    assert page.locator("#clock").inner_text() == "0:02 · 0:02"
    page.locator("#next").click()
    page.locator("#speed").select_option("0.5")
    page.locator("#play").click()
    expect(page.locator("#s0")).to_have_attribute("data-state", "now")
    page.locator("#speed").select_option("4")
    expect(page.locator("#play")).to_have_text("Play")
    assert states(page) == {"a": "done", "b": "done", "c": "eligible"}


def test_mistakes_of_all_kinds_are_told(open_page: Open) -> None:
    orders = {
        "order": ["boil", "grind", "pour", "stir", "sugar"],
        "exclusive": ["boil", "grind", "open", "pour", "stir"],
        "need": ["boil", "pour", "stir"],
        "fine": ["boil", "open", "pour", "sugar", "stir"],
    }
    graph = replace(kinds(), evidence={})
    task = Task("t", graph.steps, [Video(name, map(Segment, order)) for name, order in orders.items()], "skipped")

    def told(graph: SubtaskGraph) -> dict[str, tuple[list[str], str]]:
        page, found = open_page(drawing.html_page(graph, task)), {}
        for _ in orders:
            marked = [one.get_attribute("aria-label") for one in page.locator(".segment.mistake").all()]
            found[page.locator("#video-name").inner_text()] = (marked, page.locator("#remarks").inner_text())
            page.locator("#next").click()
        return found

    one = "1 mistake when a step was done."
    assert told(graph) == {
        "order": (["sugar, step 5, too late: after stir"], one),
        "exclusive": (["open, step 3, as well as grind"], one),
        "need": ([], "Left out: grind or open."),  # once is enough
        "fine": ([], "Nothing went wrong."),
    }
    optional = replace(graph, optional=[*graph.optional, "grind", "open"])
    assert told(optional)["need"] == (["pour, step 2, without grind or open"], one)


def test_only_videos_with_mistakes(coffee_page: Any) -> None:
    graph, task, _ = coffee()
    wrong = assist.check(graph, task).accused
    coffee_page.locator("#videos summary").click()
    expect(coffee_page.locator("#video-list button")).to_have_count(len(task))
    coffee_page.locator("#only-mistakes").check()
    listed = coffee_page.locator("#video-list bdi").all_inner_texts()
    assert listed == sorted(wrong)
    coffee_page.keyboard.press("Escape")
    assert not coffee_page.locator("#video-list").is_visible()


def test_the_film_plays_in_step(open_page: Open, tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="PyAV (the extra 'media') makes the film")
    (tmp_path / "films").mkdir()
    with av.open(tmp_path / "films" / "v #1.webm", "w") as film:
        stream = film.add_stream("libvpx", rate=10, width=64, height=48, pix_fmt="yuv420p")
        for _ in range(30):
            film.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        film.mux(stream.encode())
    graph = SubtaskGraph("t", "ab", {"b": step("a")})
    task = Task(
        "t", "ab", [Video("v #1", [Segment("a", 0, 1), Segment("b", 1.5, 2.5)]), Video("v2", [Segment("a", 0, 1)])]
    )
    page = open_page(
        drawing.html_page(graph, task, media=drawing.find_video_links(task, tmp_path / "films", tmp_path / "page.html"))
    )
    expect(page.locator("#film")).to_have_js_property("duration", 3)
    page.locator(".segment", has_text="b").click()
    assert page.evaluate("document.getElementById('film').currentTime") == pytest.approx(1.5)
    page.locator("#play").click()
    expect(page.locator("#s1")).to_have_attribute("data-state", "done")
    assert page.evaluate("document.getElementById('film').currentTime") >= 2.4
    page.locator("#next").click()
    assert not page.locator("#film").is_visible()
    page.locator("#file").set_input_files(tmp_path / "films" / "v #1.webm")
    expect(page.locator("#film")).to_have_attribute("src", re.compile("^blob:"))
    assert page.locator("#film").is_visible()


# -- JavaScript and Python say the same -----------------------------------------------------------------------------


def random_formula(rng: random.Random, names: range, depth: int) -> Formula:
    if depth == 0 or rng.random() < 0.3:
        return step(str(rng.choice(names)))
    parts = [random_formula(rng, names, depth - 1) for _ in range(rng.randint(1, 3))]
    return negation(parts[0]) if rng.random() < 0.25 else rng.choice([all_of, any_of])(parts)


def with_numbers(value: Any) -> Any:
    if isinstance(value, str):
        return int(value)
    if isinstance(value, dict):
        return {kind: with_numbers(inner) for kind, inner in value.items()}
    return [with_numbers(item) for item in value] if isinstance(value, list) else value


def random_graph(rng: random.Random, size: int) -> SubtaskGraph:
    """Of every second one, preconditions only."""
    names = [str(number) for number in range(size)]
    formulas = {str(n): random_formula(rng, range(n), 3) for n in range(1, size) if rng.random() < 0.8}
    if rng.random() < 0.5 or size < 2:
        return SubtaskGraph("t", names, formulas)
    pairs = [(str(a), str(b)) for a in range(size) for b in range(a + 1, size)]
    return SubtaskGraph(
        "t",
        names,
        {name: formula for name, formula in formulas.items() if rng.random() < 0.5},
        order=rng.sample(pairs, rng.randint(0, min(4, len(pairs)))),
        exclusive=[rng.sample(names, rng.randint(2, min(3, size))) for _ in range(rng.randint(0, 2))],
        optional=rng.sample(names, rng.randint(0, size)),
    )


def case_of(graph: SubtaskGraph, done: list[str]) -> dict[str, Any]:
    """The steps as the page has them, and the numbers of those that are done."""
    steps = [
        {
            "needs": with_numbers(graph.precondition(name).to_json()),
            "after": sorted(map(int, graph.order_predecessors(name))),
            "never": sorted(map(int, graph.partners(name))),
            "mayOmit": name in graph.optional,
        }
        for name in sorted(graph.steps)
    ]
    return {"steps": steps, "done": [int(name) for name in done]}


def recency_by_definition(graph: SubtaskGraph, done: list[str]) -> dict[str, float]:
    """p[n] ∝ 0.9^Δ[n] of the eligible steps that are left, Δ from the first moment at which the graph allows a step."""
    waited: dict[str, int] = {}
    for time in range(len(done) + 1):
        for name in graph.eligible(done[:time]):
            waited.setdefault(name, len(done) - time)
    left = [name for name in graph.steps if name not in done]
    weights = {name: 0.9 ** waited[name] if name in graph.eligible(done) else 0.0 for name in left}
    total = sum(weights.values())
    return {name: weight / total if total else 1 / len(left) for name, weight in weights.items()}


def test_rules_and_ranks_are_those_of_python(browser: Any) -> None:
    rng = random.Random(0)
    cases, expected = [], []
    for _ in range(300):
        graph = random_graph(rng, rng.randint(1, 7))
        names = sorted(graph.steps)
        done = rng.sample(names, rng.randint(0, len(names)))
        cases.append(case_of(graph, done))
        chances = recency_by_definition(graph, done)
        assert chances == pytest.approx(recency(graph)(done))
        expected.append(
            {
                "eligible": sorted(int(name) for name in graph.eligible(done)),
                "due": sorted(int(name) for name in graph.due(done)),
                "chances": [[int(name), pytest.approx(chances[name])] for name in names if name in chances],
            }
        )
    page = browser.new_page()
    found = page.evaluate(
        """([code, cases]) => new Function("cases", `${code}
        return cases.map(({ steps, done }) => ({
          eligible: [...eligible(rulesOf(steps), new Set(done))],
          due: [...due(rulesOf(steps), new Set(done))],
          chances: recency(rulesOf(steps), done, 0.9)
            .map(({ step, weight }) => [step, weight]).sort((a, b) => a[0] - b[0]),
        }))`)(cases)""",
        [asset("formula.js"), cases],
    )
    page.close()
    assert found == expected
    assert sum(case["due"] != sorted(set(case["eligible"]) - set(done["done"]))
               for case, done in zip(expected, cases, strict=True)) > 5  # fmt: skip


FORECASTS = """([code, cases]) => new Function("cases", `${code}
return cases.map(({ data, prefixes }) => {
  const [rules, forecaster] = [rulesOf(data.steps), forecasterOf(data.forecast)];
  return prefixes.map((done) => ({
    next: learnedNext(forecaster, rules, done).map(({ step, probability }) => [step, probability]),
    ends: endProbability(forecaster, done),
  }));
})`)(cases)"""


def forecasts_of_the_page(
    browser: Any, cases: list[tuple[SubtaskGraph, Task, list[list[str]]]]
) -> list[list[tuple[dict[str, float], float]]]:
    """The probability of each step, the most probable first, and of the end, after each prefix of each case."""
    asked, names = [], []
    for graph, task, prefixes in cases:
        drawn = build_diagram(graph)
        steps = list(drawn.graph.steps)
        names.append(steps)
        # As it stands in a page.
        data = json.loads(json.dumps(page_data(graph, drawn, task)))
        asked.append({"data": data, "prefixes": [[steps.index(name) for name in done] for done in prefixes]})
    page = browser.new_page()
    found = page.evaluate(FORECASTS, [asset("formula.js") + asset("forecaster.js"), asked])
    page.close()
    return [
        [({steps[number]: chance for number, chance in one["next"]}, one["ends"]) for one in answers]
        for steps, answers in zip(names, found, strict=True)
    ]


def random_videos(rng: random.Random, graph: SubtaskGraph) -> Task:
    orders = [rng.sample(graph.steps, rng.randint(0, len(graph.steps))) for _ in range(rng.randint(1, 9))]
    repeated = [order + order[:1] for order in [*orders, [graph.steps[0]]]]
    return Task("t", graph.steps, [Video(f"v{n}", map(Segment, order)) for n, order in enumerate(repeated)])


def test_learned_forecasts_are_those_of_python(browser: Any) -> None:
    rng = random.Random(2)
    graphs = [random_graph(rng, rng.randint(1, 7)) for _ in range(12)]
    # Steps have other numbers on the page than in the library.
    turned = SubtaskGraph("t", "abcz", {"b": step("a"), "a": step("z"), "c": any_of([step("b"), step("z")])})
    cases = []
    for graph in [turned, SubtaskGraph("t", "abc", {}), *graphs]:
        prefixes = [rng.sample(graph.steps, rng.randint(0, len(graph.steps))) for _ in range(9)]
        cases.append((graph, random_videos(rng, graph), prefixes))
    check_forecasts(cases, forecasts_of_the_page(browser, cases))


def test_learned_forecasts_of_real_videos_are_those_of_python(browser: Any, data: Path) -> None:
    task = read(data / "crosstask" / "crosstask_release", task="Make French Toast")
    graph = infer(task, "msg2", delta=0.55)
    prefixes = [list(video.sequence()[:place]) for video in task.videos[:20] for place in range(len(video.sequence()))]
    cases = [(graph, task, prefixes)]
    check_forecasts(cases, forecasts_of_the_page(browser, cases))


def check_forecasts(
    cases: list[tuple[SubtaskGraph, Task, list[list[str]]]], found: list[list[tuple[dict[str, float], float]]]
) -> None:
    for (graph, task, prefixes), answers in zip(cases, found, strict=True):
        first = task.with_first_labels()  # the page ticks every step once
        ranker, ends = fit_forecaster(graph, first), fit_end_probability(graph, first)
        for done, (chances, end) in zip(prefixes, answers, strict=True):
            assert chances == pytest.approx(dict(ranker(done)), abs=1e-6, rel=0)
            assert list(chances.values()) == sorted(chances.values(), reverse=True)
            assert end == pytest.approx(ends(done), abs=1e-6, rel=0)


def reachable(graph: SubtaskGraph, done: frozenset[str]) -> set[str]:
    """The steps that some way on from here has, by trying all of them."""
    found: set[str] = set()
    seen, open_states = {done}, [done]
    while open_states:
        state = open_states.pop()
        for name in graph.eligible(state) - state:
            found.add(name)
            if (after := state | {name}) not in seen:
                seen.add(after)
                open_states.append(after)
    return found


def test_what_is_ruled_out_cannot_be_reached(browser: Any) -> None:
    rng = random.Random(1)
    chain = SubtaskGraph("t", "0123", {"2": step("0"), "3": any_of([step("2"), step("1")])}, exclusive=["01"])
    cases, graphs = [case_of(chain, ["1"])], [(chain, frozenset("1"))]
    while len(cases) < 150:
        graph = random_graph(rng, rng.randint(2, 6))
        if any("not" in formula.kinds for formula in graph.preconditions.values()):
            continue
        names, done = sorted(graph.steps), []
        for _ in range(rng.randint(0, len(names))):
            if left := sorted(graph.eligible(done) - set(done)):
                done.append(rng.choice(left))
        cases.append(case_of(graph, done))
        graphs.append((graph, frozenset(done)))
    page = browser.new_page()
    found = page.evaluate(
        """([code, cases]) => new Function("cases", `${code}
        return cases.map(({ steps, done }) => [...ruledOut(rulesOf(steps), new Set(done))])`)(cases)""",
        [asset("formula.js"), cases],
    )
    page.close()
    assert found[0] == [0, 2]
    assert sum(map(len, found)) > 50
    for (graph, completed), out in zip(graphs, found, strict=True):
        assert reachable(graph, completed).isdisjoint(map(str, out))
        if not graph.exclusive and not graph.order:
            assert not out


def test_the_checklist_is_in_an_order_that_respects_every_arrow_and_every_stated_rule(browser: Any) -> None:
    """Whatever is done already, and however probable the steps are."""
    rng = random.Random(4)
    cases, graphs = [], []
    while len(cases) < 250:
        graph = random_graph(rng, rng.randint(2, 7))
        if any("not" in formula.kinds for formula in graph.preconditions.values()):
            continue
        rules = [sorted(rng.sample(graph.steps, 2)) for _ in range(rng.randint(0, 2))]
        rules = [{"before": a, "after": b, "kind": rng.choice(["needs", "after"])} for a, b in rules]
        graph = SubtaskGraph.from_json({**graph.to_json(), "rules": rules})
        done: list[str] = []
        for _ in range(rng.randint(0, len(graph.steps) - 1)):
            done += rng.sample(sorted(graph.due(done)), min(1, len(graph.due(done))))
        left = [name for name in rng.sample(graph.steps, len(graph.steps)) if name not in done]
        cases.append({**case_of(graph, done), "ranked": [int(name) for name in left]})
        graphs.append((graph, {*done}, left))
    page = browser.new_page()
    found = page.evaluate(
        """([code, cases]) => new Function("cases", `${code}
        return cases.map(({ steps, done, ranked }) => asChecklist(rulesOf(steps), ranked, new Set(done)))`)(cases)""",
        [asset("formula.js"), cases],
    )
    page.close()
    assert sum(len(one["later"]) for one in found) > 150
    for (graph, completed, left), groups in zip(graphs, found, strict=True):
        following, later, out = ([str(number) for number in groups[key]] for key in ("next", "later", "out"))
        printed = [*following, *later]
        assert sorted([*printed, *out]) == sorted(left)
        assert {*following} <= graph.due(completed)
        assert following or not later or out  # there is a way on, or one that was closed
        for place, name in enumerate(printed):
            assert graph.precondition(name).evaluate(completed.union(printed[:place]))
        stated = [(rule.before, rule.after) for rule in graph.rules]
        arrows = [*graph.order, *((a, b) for a, b in stated if graph.kind(a, b) != "exclusive")]
        arrows += [(a, b) for a, b in graph.edge_pairs() if not graph.precondition(b).evaluate(completed)]
        for before, after in arrows:
            assert not {before, after} <= {*printed} or printed.index(before) < printed.index(after)
        free = [name for name in left if name in following]
        if not graph.order:
            assert following == free  # the likeliest first


# -- comparing, ticking off -----------------------------------------------------------------------------------------


def test_two_graphs_compared(open_page: Open) -> None:
    graph, task, truth = coffee()
    page = open_page(drawing.html_page(graph, task, compare=truth))
    drawn = build_diagram(graph, truth)
    for status, colour in (("missing", "rgb(185, 43, 12)"), ("redundant", "rgb(0, 119, 187)")):
        ids = {arrow.id for arrow in drawn.arrows if arrow.status == status}
        assert ids
        assert {edge.get_attribute("id") for edge in page.locator(f"#graph g.edge.{status}").all()} == ids
        for key in ids:
            path = page.locator(f"#{key} path").first
            assert path.evaluate("it => getComputedStyle(it).stroke") == colour
            assert (path.get_attribute("stroke-dasharray") is not None) or status == "redundant"
    rows = [row.split("\t")[:2] for row in page.locator("h2 + .scroll tbody tr").all_inner_texts()]
    found = score_graph(graph, truth).to_json()
    names = ["accuracy", "spoc", "precision", "recall", "f1"]
    assert [float(value) for _, value in rows] == [pytest.approx(100 * found[name], abs=0.006) for name in names]
    assert "only in the true graph" in page.locator(".picture .legend").inner_text()
    page.locator("#differences").uncheck()
    assert not page.locator("g.edge.missing").first.is_visible()


def test_a_pair_of_another_kind_is_in_both_graphs(open_page: Open) -> None:
    graph = kinds()
    truth = SubtaskGraph(
        "coffee", graph.steps, {"stir": step("sugar")}, exclusive=[["grind", "open"], ["boil", "taste"]]
    )
    page = open_page(drawing.html_page(graph, compare=truth))
    arrow = next(arrow for arrow in build_diagram(graph, truth).arrows if arrow.before == "sugar")
    page.locator(f"#{arrow.id} .hit").dispatch_event("click")
    assert "In both graphs. In the true one: needs." in panel(page)
    for group, words in enumerate(("In both graphs.", "Missing: only in the true graph.")):
        page.locator(f"#x{group}_0 .hit").dispatch_event("click")
        assert words in panel(page)


def test_a_checklist_on_a_phone(open_page: Open) -> None:
    graph, _, _ = coffee()
    page = open_page(coffee_html(), **PHONE)
    page.locator("#follow").tap()
    done: list[str] = []
    for _ in range(3):
        shown = page.locator("#checklist ul.next li").all_inner_texts()
        ranked = assist.next_steps(graph, done, coffee_forecaster())
        expected = [one for one in ranked if one.step in graph.due(done)]
        assert [item.partition("\n")[0] for item in shown] == [one.step for one in expected]
        numbers = page.locator("#checklist ul.next small span").evaluate_all("all => all.map((one) => one.title)")
        assert numbers == [f"next with {round(100 * one.probability)}\xa0%" for one in expected]
        assert "%" not in page.locator("#checklist").inner_text()
        page.locator("#checklist ul.next label").first.tap()
        done.append(expected[0].step)
    later = page.locator("#checklist :is(ul.later, ul.out) li").count()
    assert later == len(graph.steps) - len(graph.due(done) | set(done))
    assert page.locator("#checklist ul.done li").all_inner_texts() == done[::-1]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heights = page.locator("#checklist label").evaluate_all("all => all.map(it => it.getBoundingClientRect().height)")
    assert min(heights) >= 44
    page.reload()
    page.locator("#follow").tap()
    assert page.locator("#checklist ul.done li").all_inner_texts() == done[::-1]
    page.get_by_role("button", name="Start again").tap()
    assert page.locator("#checklist ul.done").count() == 0


def test_the_checklist_follows_order_and_choice(open_page: Open) -> None:
    graph = kinds()
    page = open_page(drawing.html_page(graph), **PHONE)
    page.locator("#follow").tap()

    def listed(kind: str) -> dict[str, str]:
        items = page.locator(f"#checklist ul.{kind} li").all_inner_texts()
        return {name: note for name, _, note in (item.partition("\n") for item in items)}

    done: list[str] = []
    for name in (None, "open", "boil", "pour", "stir"):
        if name is not None:
            page.locator("#checklist label", has_text=name).first.tap()
            done.append(name)
        assert set(listed("next")) == graph.due(done)
        assert "%" not in page.locator("#checklist").inner_text()
        assert {name for name, state in states(page).items() if state == "eligible"} == graph.due(done)
        out = {
            name for name in graph.steps if not {*done}.isdisjoint(graph.partners(name) | graph.order_successors(name))
        }
        assert set(listed("out")) == out - {*done}
        assert page.locator(".measured").inner_text().strip() == f"{len(done)} of {7 - len(out - {*done})} done"
        if name is None:
            assert listed("later")["taste"] == "after stir · may be left out"
            assert listed("next")["sugar"].endswith("may be left out")
        if name == "pour":
            assert listed("next")["stir"].endswith("first, if at all: sugar")
            assert listed("out") == {"grind": "not together with open"}
    assert listed("out")["sugar"] == "it would come before stir"
    assert set(listed("next")) == {"taste"}
    assert page.locator("#said").inner_text() == "stir done. Next: taste"
    page.locator("#checklist ul.done label").first.tap()
    assert "sugar" in listed("next")


def test_the_checklist_tells_when_it_is_probably_over(open_page: Open) -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a")}, optional=["c"])
    task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc" if n % 8 == 0 else "ab")) for n in range(40)])
    ends = fit_end_probability(graph, task)
    page = open_page(drawing.html_page(graph, task))
    page.locator("#follow").click()
    for number, name in enumerate("ab", start=1):
        page.locator("#checklist label", has_text=name).first.click()
        assert page.locator(".measured").inner_text().strip() == f"{number} of 3 done"
        words = page.locator("#checklist .end").all_inner_texts()
        assert words == (["Probably finished. If not:"] if number == 2 else [])
    assert ends("a") < 0.5 < ends("ab")
    assert "Probably finished" in page.locator("#said").inner_text()
    page.locator("#checklist label", has_text="c").first.click()
    assert page.locator("#checklist .end").count() == 0


def test_what_must_be_done_is_not_over(open_page: Open) -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a")})
    task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc" if n % 8 == 0 else "ab")) for n in range(40)])
    page = open_page(drawing.html_page(graph, task))
    page.locator("#follow").click()
    for name in "ab":
        page.locator("#checklist label", has_text=name).first.click()
    assert page.locator("#checklist .end").count() == 0


def test_waiting_for_one_of_several(open_page: Open) -> None:
    order = [(name, "file") for name in ("call", "mail", "post")]
    graph = SubtaskGraph("t", ["call", "file", "mail", "post"], {}, order=order, exclusive=[["mail", "post"]])
    page = open_page(drawing.html_page(graph))
    page.locator("#follow").click()
    assert page.locator("#checklist ul.later li").inner_text() == "file\nafter call and (mail or post)"


def test_steps_are_ticked_off_on_the_graph_too(coffee_page: Any) -> None:
    coffee_page.locator("#follow").click()
    coffee_page.locator("#s0 text").first.click()
    assert coffee_page.locator("#s0").get_attribute("data-state") == "done"
    assert coffee_page.locator("#checklist ul.done li").count() == 1
    assert not coffee_page.locator("#panel").is_visible()
    coffee_page.locator("#follow").click()
    assert coffee_page.locator("#s0").get_attribute("data-state") is None


def test_nothing_can_be_kept(open_page: Open) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
    page = open_page(drawing.html_page(coffee()[0]), init=refuse)
    page.locator("#follow").click()
    page.locator("#checklist label").first.click()
    assert page.locator("#checklist ul.done li").count() == 1


# -- looks ----------------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if (part := int(value) / 255) <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for value in re.findall(r"\d+", colour)[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_the_light_and_in_the_dark(open_page: Open, dark: bool) -> None:
    page = open_page(coffee_html(), color_scheme="dark" if dark else "light", reduced_motion="reduce")
    before = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (before < 0.2) == dark
    for state in (None, "later", "eligible", "now", "done"):
        colours = page.locator("#graph g.step").evaluate_all(
            """(all, state) => all.map((box) => {
              if (state) box.dataset.state = state;
              return ["text", "path"].map((kind) => getComputedStyle(box.querySelector(kind)).fill);
            })""",
            state,
        )
        for text, box in {tuple(pair) for pair in colours}:
            light, low = sorted((luminance(text), luminance(box)), reverse=True)
            assert (light + 0.05) / (low + 0.05) >= 4.5, (state, text, box)
    page.locator("#theme").click()
    after = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (after < 0.2) != dark


def test_the_picture_is_saved(coffee_page: Any, tmp_path: Path) -> None:
    graph, _, _ = coffee()
    coffee_page.locator("#zoom-in").click()
    with coffee_page.expect_download() as saved:
        coffee_page.locator("#save-svg").click()
    assert saved.value.suggested_filename == "make-coffee.svg"
    root = ET.parse(saved.value.path()).getroot()
    groups = [
        group.get("class", "").split()[0] for group in root.iter("{http://www.w3.org/2000/svg}g") if group.get("class")
    ]
    drawn = build_diagram(graph)
    assert (groups.count("node"), groups.count("edge")) == (len(drawn.nodes), len(drawn.arrows))
    original = re.search(r'viewBox="([^"]+)"', drawing.svg(graph))
    assert original
    assert [float(v) for v in root.get("viewBox", "").split()] == [float(v) for v in original[1].split()]
    with coffee_page.expect_download() as saved:
        coffee_page.locator("#save-png").click()
    picture_file = Path(saved.value.path()).read_bytes()
    assert picture_file.startswith(b"\x89PNG")
    assert int.from_bytes(picture_file[16:20], "big") == 2 * int(root.get("width", "0"))


def test_on_paper_the_whole_picture_is_seen(coffee_page: Any) -> None:
    whole = coffee_page.locator("#graph svg").get_attribute("viewBox")  # the legend is the page's own
    coffee_page.locator("#zoom-in").click()
    assert coffee_page.locator("#graph svg").get_attribute("viewBox") != whole
    coffee_page.evaluate("dispatchEvent(new Event('beforeprint'))")
    coffee_page.emulate_media(media="print")
    seen = [float(number) for number in coffee_page.locator("#graph svg").get_attribute("viewBox").split()]
    assert [seen[0], seen[2]] == pytest.approx([float(whole.split()[0]), float(whole.split()[2])])
    assert seen[3] <= float(whole.split()[3])  # the page fits its shape, the paper the picture
    assert coffee_page.locator("table.steps").is_visible()
    assert not coffee_page.locator(".tools").is_visible()


@pytest.mark.parametrize("width", [320, 390, 700, 1000, 1440])
@pytest.mark.parametrize("media", ["screen", "print"])
def test_the_table_fits_the_screen_and_the_paper(open_page: Open, width: int, media: str) -> None:
    page = open_page(coffee_html(), viewport={"width": width, "height": 800})
    page.emulate_media(media=media)
    room, *cells = page.locator(".scroll:has(> .steps), .steps tbody :is(th, td)").evaluate_all(
        "all => all.map((one) => [one.clientWidth, one.scrollWidth])"
    )
    if media == "screen" or width >= 700:  # paper is not narrower than that
        assert room[0] == room[1]
        assert all(needs <= has for has, needs in cells)
    labels = page.locator(".steps td").nth(1).evaluate("one => getComputedStyle(one, '::before').content")
    assert labels in ("none", '"held in "')


def test_without_its_script_the_page_can_be_read(open_page: Open) -> None:
    graph, _, _ = coffee()
    page = open_page(coffee_html(), java_script_enabled=False)
    assert page.locator("#graph g.node").count() == len(build_diagram(graph).nodes)
    assert page.locator("table.steps tbody tr").count() == len(graph.steps)
    assert not page.locator("button, input, select").filter(visible=True).count()


def test_hostile_names_are_text(open_page: Open) -> None:
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "🍳 fry", "مرحبا بالعالم", "x" * 300,
             "</script><!--", "two\nlines\x01", "__proto__", "half \ud800"]  # fmt: skip
    graph = SubtaskGraph("</title>&", names, {b: step(a) for a, b in pairwise(names)})
    task = Task("t", names, [Video("<b>v</b>", [Segment(name, n, n + 1) for n, name in enumerate(names)])])
    page = open_page(drawing.html_page(graph, task))
    assert page.title() == "</title>&"
    for number, name in enumerate(graph.steps):
        page.locator(f"#s{number} a").focus()
        page.keyboard.press("Enter")
        assert page.locator("#panel h2").inner_text() == one_line(name)
    assert page.locator(".segment").all_text_contents() == [one_line(name) for name in names]
    assert page.locator("#video-name").inner_text() == "<b>v</b>"
    assert page.locator("#strip b, #panel img, main script").count() == 0
    page.locator("#follow").click()
    assert page.locator("#checklist bdi").count() >= len(names)


@pytest.mark.slow
def test_sixty_steps_and_a_thousand_videos(open_page: Open) -> None:
    chosen = random_world(RandomWorldOptions(steps=60, depth=10, or_rate=0.3), 1)
    simulation = simulate(chosen, replace(SimulationOptions(), videos=1000), 0)
    text = drawing.html_page(simulation.graph, simulation.task)
    assert len(text.encode()) < 8e6
    page = open_page(text)
    assert page.locator("#graph g.step").count() == 60
    page.locator("#videos summary").click()
    page.locator("#find-video").fill("v00999")
    page.locator("#video-list button").first.click()
    assert page.locator("#video-name").inner_text() == "v00999"
    page.locator("#follow").click()
    for ticked in range(1, 6):
        page.locator("#checklist ul.next input").first.click()
        assert page.locator("#checklist ul.done li").count() == ticked


@pytest.mark.parametrize("size", [0, 1])
def test_small_graphs(open_page: Open, size: int) -> None:
    page = open_page(drawing.html_page(SubtaskGraph("t", ["only"][:size], {}), Task("t", ["only"][:size], [])))
    page.locator("#follow").click()
    assert page.locator("#checklist li").count() == size
