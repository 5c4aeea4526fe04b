"""The screen of a graph, the example and the token, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.server.conftest import TOAST  # noqa: E402
from tests.server.live import app_address, serving  # noqa: E402

Tab = Callable[..., Any]


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a table that has something worth a look, and an event log."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "toast.csv").write_text(TOAST.replace("v7,fry", "v7,Fry"))
    with app_address(folder, "toast.csv") as found:
        yield found


def graph_within(page: Any, height: int) -> bool:
    """Whether the graph begins, and can be read, within the first screen."""
    box = page.locator(".diagram svg").bounding_box()
    return bool(box["y"] + min(box["height"], 150) <= height)


def test_the_example_leads_to_a_graph_that_is_named_and_checked(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("button", name="Try an example").click()
    nodes = page.locator(".diagram .node.step")
    expect(nodes).to_have_count(12)
    assert page.locator("h1").count() == 1
    assert page.locator("iframe").count() == 0
    assert graph_within(page, 800)
    page.on("dialog", lambda dialog: None)
    nodes.filter(has_text="wet the grounds").click()
    expect(page.get_by_role("heading", name="wet the grounds")).to_be_visible()
    page.get_by_text(re.compile("'wet the grounds' needs .*set dripper on mug")).wait_for()
    page.get_by_text("Check a recording").click()
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text(re.compile(r"\d+ probable mistakes in \d+ of 54 runs")).wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    nodes.first.wait_for()
    assert graph_within(page, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_rules_that_contradict_keep_the_form_and_changes_are_told(tab: Tab, address: str) -> None:
    page = tab(address, refusals=True)
    page.get_by_role("row", name="toast.csv").get_by_role("link", name="Learn a graph").click()
    page.get_by_text("names that look the same: 'Fry', 'fry'").wait_for()  # what `describe` finds
    page.get_by_role("button", name="Learn the graph").click()
    page.locator(".diagram .node.step").first.wait_for()
    page.get_by_text("Rules you know").click()
    first = page.url
    for before, after in (("fry", "whisk"), ("whisk", "fry")):
        page.get_by_label("One step").select_option(before)
        page.get_by_label("Another step").select_option(after)
        page.get_by_role("button", name="Add and learn again").click()
        if before == "fry":
            page.wait_for_url(lambda url: url != first)
            page.get_by_role("heading", name="What changed").wait_for()
            expect(page.get_by_role("row", name="fry → whisk")).to_contain_text("is needed")
    told = "these contradict each other: “fry is needed for whisk” and “whisk is needed for fry” — remove one of them"
    expect(page.locator("#status")).to_have_text(told)
    expect(page.get_by_label("One step")).to_have_value("whisk")
    expect(page.locator(".pairs li").filter(has_text="is needed for")).to_have_count(1)
    page.get_by_text("Compare with another graph").click()
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("of the pairs of steps are the same in both").first.wait_for()


def test_the_kind_of_an_arrow_is_changed_and_stays(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("row", name="toast.csv").get_by_role("link", name="Learn a graph").click()
    page.get_by_role("button", name="Learn the graph").click()
    step = page.locator(".diagram .node.step").filter(has_text="dip")
    step.click()
    kinds, last = page.get_by_label("whisk and dip"), page.url
    for kind, rules in (("after", 2), ("needs", 1)):
        step.click()
        kinds.select_option(kind)
        page.wait_for_url(lambda url, last=last: url != last)
        expect(page.get_by_role("button", name="Remove the rule")).to_have_count(rules)
        step.click()
        expect(kinds).to_have_value(kind)
        last = page.url
    page.get_by_role("button", name="Learn again", exact=True).click()
    page.wait_for_url(lambda url: url != last)
    expect(page.get_by_role("button", name="Remove the rule")).to_have_count(1)
    step.click()
    expect(kinds).to_have_value("needs")


def test_graphs_of_other_steps_are_compared(tab: Tab, address: str) -> None:
    page = tab(address)
    for task, steps, needs in (
        ("toast", ["whisk", "dip", "fry"], {"dip": "whisk", "fry": "dip"}),
        ("French toast", ["Whisk", "dip", "serve"], {"serve": "dip"}),
        ("tea", ["boil", "pour", "dip"], {}),
    ):
        graph = {"format": "msg2.graph/2", "task": task, "steps": steps, "preconditions": needs}
        made = page.request.post(f"{address}api/drawn", data={"graph": graph}).json()
        page.request.patch(f"{address}api/work/{made['id']}", data={"title": f"a {task}"})
        if task == "toast":
            first = made["id"]
    page.goto(f"{address}graph/{first}")
    page.get_by_text("Compare with another graph").click()
    others = page.locator("details").filter(has_text="Compare with").locator("select")
    others.wait_for()
    assert not any("a tea" in text for text in others.locator("option").all_text_contents())  # it shares one step
    french = next(text for text in others.locator("option").all_text_contents() if "a French toast" in text)
    others.select_option(label=french)
    page.get_by_role("button", name="Compare").click()
    page.get_by_text(
        "0 % of the pairs of steps are the same in both. Only steps that are in both are compared."
    ).wait_for()
    page.get_by_text("1 step only in “This graph”: fry.").wait_for()
    page.get_by_text("1 step only in “The other one”: serve.").wait_for()
    cells = page.get_by_role("row", name="whisk → dip").get_by_role("cell")
    assert cells.all_text_contents() == ["whisk → dip", "is needed", "no order"]
    assert "truth" not in page.locator("main").inner_text().lower()


def test_what_directly_follows_what_is_beside_the_graph(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("row", name="toast.csv").get_by_role("link", name="Learn a graph").click()
    for screen in ("data", "graph"):
        if screen == "graph":
            page.get_by_role("button", name="Learn the graph").click()
            page.locator(".diagram .node.step").first.wait_for()
        page.get_by_text("What directly follows what in the data").click()
        figure = page.get_by_label("What directly follows what", exact=True)
        expect(figure.locator(".node")).to_have_count(6)  # whisk, dip, fry and one Fry; the beginning and the end
        expect(figure.locator(".edge")).to_have_count(6)
        assert figure.locator("svg").bounding_box()["width"] > 300
        with page.expect_download() as found:
            page.get_by_role("link", name=".dot").last.click()
        assert "whisk" in Path(found.value.path()).read_text("utf-8")


def test_the_legend_is_dark_in_the_dark(tab: Tab, address: str) -> None:
    page = tab(address, color_scheme="dark")
    graph = {"format": "msg2.graph/2", "task": "tea", "steps": ["boil", "milk"], "preconditions": {"milk": "boil"}}
    made = page.request.post(f"{address}api/drawn", data={"graph": {**graph, "optional": ["milk"]}}).json()
    page.goto(f"{address}graph/{made['id']}")
    page.locator(".diagram text", has_text="may be left out").wait_for()
    legend = page.locator(".diagram .graph > g > a > path")
    fills = legend.evaluate_all("paths => paths.map((path) => getComputedStyle(path).fill)")
    assert fills
    assert "rgb(255, 255, 255)" not in fills


def test_a_graph_is_renamed(tab: Tab, address: str) -> None:
    page = tab(address)
    graph = {"format": "msg2.graph/2", "task": "tea", "steps": ["boil", "pour"], "preconditions": {"pour": "boil"}}
    made = page.request.post(f"{address}api/drawn", data={"graph": graph}).json()
    page.goto(f"{address}graph/{made['id']}")
    page.evaluate("window.prompt = () => 'My tea'")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My tea")
    page.goto(address)
    expect(page.get_by_role("row", name="My tea")).to_contain_text("2 steps, 1 arrow")


def test_an_arrow_is_drawn_by_dragging(tab: Tab, address: str) -> None:
    page = tab(f"{address}draw")
    page.get_by_label("Task").fill("tea")
    page.get_by_label("Steps, one per line").fill("boil\npour")
    page.get_by_role("button", name="Go on").click()
    boxes = [page.locator(".diagram .node").filter(has_text=name).bounding_box() for name in ("boil", "pour")]
    for place, box in enumerate(boxes):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
        page.mouse.up() if place else page.mouse.down()
    page.locator(".diagram .edge").wait_for()
    expect(page.locator(".chip")).to_have_text(["boil×"])
    expect(page.get_by_role("heading", name="pour")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == ""


def test_the_token_is_asked_for_and_leaves_the_address(tab: Tab, browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path, token=True) as address:
        token = (tmp_path / "work" / "token").read_text().strip()
        page = tab(address, refusals=True)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("button", name="Try an example").wait_for()
        assert page.url == address
        page = tab((tmp_path / "work" / "open.html").as_uri())  # what `serve` opens
        page.get_by_role("button", name="Try an example").wait_for()
        assert page.url == address
