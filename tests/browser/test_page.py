"""The page of a graph in a real browser, against what the library itself says."""

from __future__ import annotations

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
from msg2.drawing.diagram import build_diagram
from msg2.drawing.html_document import asset
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import infer
from msg2.metrics import score_graph
from msg2.simulation import household_world, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.simulation.worlds import RandomWorldOptions
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


@pytest.fixture
def coffee_page(open_page: Open) -> Any:
    graph, task, _ = coffee()
    return open_page(drawing.html_page(graph, task))


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
    assert coffee_page.locator(".segment.mistake", has_text=name).count() == 1


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
    assert label == f"{graph.steps[5]}. Needs {graph.precondition(graph.steps[5]).text(' and ', ' or ')}."
    assert coffee_page.locator("#said").inner_text().endswith(".")


def test_pan_and_zoom(coffee_page: Any) -> None:
    def box() -> list[float]:
        return [float(side) for side in coffee_page.locator("#graph svg").get_attribute("viewBox").split()]

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
    page.locator(".why", has_text="3 of 4").click()
    assert panel(page).startswith("a → c × It follows from other arrows, so it is not drawn.")
    assert "Few videos tell." in panel(page)
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
    assert "Optional: 30 of 60 videos do without it." in told["o"]
    assert "Hardly ever together with y" in told["x"]
    assert not any("Its part" in told[name] for name in "az")


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
            ranked = [one for one in assist.next_steps(graph, begun) if one.probability > 0][:6]
            shown = [re.sub(r"\s+", " ", item) for item in coffee_page.locator("#forecast li").all_inner_texts()]
            assert [item.removesuffix(" ✓") for item in shown if item != "Nothing is left."] == [
                f"{one.step} {round(100 * one.probability)} %" for one in ranked
            ]
        mistakes = [mistake.step for mistake in assist.check(graph, video).mistakes]
        assert coffee_page.locator(".segment.mistake").all_text_contents() == mistakes
        assert coffee_page.locator(".segment").count() == len(video.segments)


def test_playing_goes_to_the_end(open_page: Open) -> None:
    graph = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    task = Task("t", "abc", [Video("timed", [Segment("a", 0, 1), Segment("c", 1, 2, 0.75, "predicted")]),
                             Video("untimed", [Segment("a"), Segment("b")])])  # fmt: skip
    page = open_page(drawing.html_page(graph, task))
    assert page.locator(".segment.predicted").get_attribute("aria-label") == (
        "c, 0:01 to 0:02, predicted (75 %), too early: not yet b"
    )
    assert "Left out, though later steps need it: b" in page.locator("#remarks").inner_text()
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


def test_only_videos_with_mistakes(coffee_page: Any) -> None:
    graph, task, _ = coffee()
    report = assist.check(graph, task)
    wrong = {mistake.video for mistake in report.mistakes} | {left_out.video for left_out in report.skipped}
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


def test_formulas_and_forecasts_are_those_of_python(browser: Any) -> None:
    rng = random.Random(0)
    cases, expected = [], []
    for _ in range(150):
        size = rng.randint(1, 7)
        names = [str(number) for number in range(size)]
        graph = SubtaskGraph(
            "t", names, {str(n): random_formula(rng, range(n), 3) for n in range(1, size) if rng.random() < 0.8}
        )
        done = rng.sample(names, rng.randint(0, size))
        needs = [with_numbers(graph.precondition(name).to_json()) for name in names]
        cases.append({"needs": needs, "done": [int(name) for name in done]})
        chances = assist.recency(graph)(done)
        expected.append(
            {
                "eligible": sorted(int(name) for name in graph.eligible(done)),
                "chances": [[int(name), pytest.approx(chances[name])] for name in names if name in chances],
            }
        )
    page = browser.new_page()
    found = page.evaluate(
        """([code, cases]) => new Function("cases", `${code}
        return cases.map(({ needs, done }) => ({
          eligible: [...eligible(needs, new Set(done))],
          chances: forecast(needs, done, 0.9)
            .map(({ step, probability }) => [step, probability]).sort((a, b) => a[0] - b[0]),
        }))`)(cases)""",
        [asset("formula.js"), cases],
    )
    page.close()
    assert found == expected


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


def test_a_checklist_on_a_phone(open_page: Open) -> None:
    graph, task, _ = coffee()
    page = open_page(drawing.html_page(graph, task), **PHONE)
    page.locator("#follow").tap()
    done: list[str] = []
    for _ in range(3):
        shown = page.locator("#checklist ul.next li").all_inner_texts()
        expected = [one for one in assist.next_steps(graph, done) if one.eligible]
        assert [item.split("\n")[0] for item in shown] == [one.step for one in expected]
        page.locator("#checklist ul.next label").first.tap()
        done.append(expected[0].step)
    later = page.locator("#checklist ul.later li").count()
    assert later == len(graph.steps) - len(graph.eligible(done) | set(done))
    assert page.locator("#checklist ul.done li").all_inner_texts() == done[::-1]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heights = page.locator("#checklist label").evaluate_all("all => all.map(it => it.getBoundingClientRect().height)")
    assert min(heights) >= 44
    page.reload()
    page.locator("#follow").tap()
    assert page.locator("#checklist ul.done li").all_inner_texts() == done[::-1]
    page.get_by_role("button", name="Start again").tap()
    assert page.locator("#checklist ul.done").count() == 0


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
    graph, task, _ = coffee()
    page = open_page(drawing.html_page(graph, task), color_scheme="dark" if dark else "light", reduced_motion="reduce")
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
    assert (groups.count("node"), groups.count("edge")) == (len(drawn.boxes), len(drawn.arrows))
    original = re.search(r'viewBox="([^"]+)"', drawing.svg(graph))
    assert original
    assert [float(v) for v in root.get("viewBox", "").split()] == [float(v) for v in original[1].split()]
    with coffee_page.expect_download() as saved:
        coffee_page.locator("#save-png").click()
    picture_file = Path(saved.value.path()).read_bytes()
    assert picture_file.startswith(b"\x89PNG")
    assert int.from_bytes(picture_file[16:20], "big") == 2 * int(root.get("width", "0"))


def test_on_paper_the_whole_picture_is_seen(coffee_page: Any) -> None:
    original = re.search(r'viewBox="([^"]+)"', drawing.svg(coffee()[0]))
    assert original
    coffee_page.locator("#zoom-in").click()
    coffee_page.evaluate("dispatchEvent(new Event('beforeprint'))")
    coffee_page.emulate_media(media="print")
    seen = coffee_page.locator("#graph svg").get_attribute("viewBox")
    assert [float(v) for v in seen.split()] == [float(v) for v in original[1].split()]
    assert coffee_page.locator("table.steps").is_visible()
    assert not coffee_page.locator(".tools").is_visible()


@pytest.mark.parametrize("width", [320, 390, 700, 1000, 1440])
@pytest.mark.parametrize("media", ["screen", "print"])
def test_the_table_fits_the_screen_and_the_paper(open_page: Open, width: int, media: str) -> None:
    graph, task, _ = coffee()
    page = open_page(drawing.html_page(graph, task), viewport={"width": width, "height": 800})
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
    graph, task, _ = coffee()
    page = open_page(drawing.html_page(graph, task), java_script_enabled=False)
    assert page.locator("#graph g.node").count() == len(build_diagram(graph).boxes)
    assert page.locator("table.steps tbody tr").count() == len(graph.steps)
    assert not page.locator("button, input, select").filter(visible=True).count()


def test_hostile_names_are_text(open_page: Open) -> None:
    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "🍳 fry", "مرحبا بالعالم", "x" * 300,
             "</script><!--", "two\nlines\x00", "__proto__", "half \ud800"]  # fmt: skip
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


def test_sixty_steps_and_a_thousand_videos(open_page: Open) -> None:
    chosen = random_world(RandomWorldOptions(steps=60, depth=10, or_rate=0.3), 1)
    simulation = simulate(chosen, replace(SimulationOptions(), videos=1000), 0)
    text = drawing.html_page(simulation.graph, simulation.task)
    assert len(text.encode()) < 8e6
    page = open_page(text)
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
    assert 0 < loaded < 2000
    assert page.locator("#graph g.step").count() == 60
    page.locator("#videos summary").click()
    page.locator("#find-video").fill("v00999")
    page.locator("#video-list button").first.click()
    assert page.locator("#video-name").inner_text() == "v00999"


@pytest.mark.parametrize("size", [0, 1])
def test_small_graphs(open_page: Open, size: int) -> None:
    page = open_page(drawing.html_page(SubtaskGraph("t", ["only"][:size], {}), Task("t", ["only"][:size], [])))
    page.locator("#follow").click()
    assert page.locator("#checklist li").count() == size
