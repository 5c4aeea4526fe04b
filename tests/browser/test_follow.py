"""Following a run in a real browser, on a phone and on a desk, with a finger, a mouse or the keyboard alone."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.browser.test_app import Tab  # noqa: E402
from tests.server.live import app_address  # noqa: E402

STEPS = ["heat", "whisk", "dip", "fry", "serve"]
ORDERS = [STEPS, ["whisk", "heat", "dip", "fry", "serve"]]
TABLE = "video,step,start,end\n" + "".join(
    f"v{number},{step},{100 * place},{100 * place + 90 + number}\n"
    for number in range(60)
    for place, step in enumerate(ORDERS[number % 3 == 0])
)
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 800}}


def ask(address: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}api/{path}", content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def app(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server, and the id of a graph that it has learned."""
    folder = tmp_path_factory.mktemp("follow")
    (folder / "toast.csv").write_text(TABLE)
    with app_address(folder, "toast.csv") as address:
        (data,) = ask(address, "data")["data"]
        graph = ask(address, "work", {"data": data["id"], "options": {"absent": "skipped"}})["id"]
        while ask(address, f"work/{graph}")["state"] in ("waiting", "running"):
            pass
        yield address, graph


@pytest.fixture(params=SIZES)
def page(request: pytest.FixtureRequest, tab: Tab, app: tuple[str, str]) -> Any:
    """The graph's page, from which a new run is begun."""
    address, graph = app
    page = tab(f"{address}graph/{graph}")
    page.set_viewport_size(SIZES[request.param])
    page.get_by_role("link", name="Follow along").click()
    page.locator(".step.first").wait_for()
    return page


def first(page: Any) -> Any:
    return page.locator(".step.first .name bdi")


def choose(page: Any, step: str) -> None:
    """Tick a step that is not offered, from the list of all of them."""
    if not page.locator(".every details[open]").count():
        page.get_by_text("All steps").click()
    page.locator(".every").get_by_role("button", name=step).click()


def test_tick_undo_and_reload(page: Any) -> None:
    expect(first(page)).to_have_text("heat")
    expect(page.locator(".step.first .chance")).to_have_text(re.compile(r"^\d\d\u00a0%$"))
    expect(page.locator(".measure .left")).to_have_text(re.compile(r"^about \d min left"))
    page.locator(".step.first").click()
    expect(first(page)).to_have_text("whisk")
    expect(page.locator(".measure p span").first).to_have_text(re.compile("^1 done, "))
    page.locator(".step", has_text="whisk").click()
    expect(first(page)).to_have_text("dip")
    address = page.url
    assert "?run=" in address
    page.reload()
    expect(first(page)).to_have_text("dip")
    page.get_by_role("link", name="The graph").click()
    page.get_by_role("link", name="Follow along").click()  # it goes on where it was left
    expect(first(page)).to_have_text("dip")
    assert page.url == address
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    expect(first(page)).to_have_text("heat")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_mistake_is_explained_and_counts_if_one_says_so(page: Any) -> None:
    choose(page, "fry")
    warning = page.get_by_role("alert")
    expect(warning.get_by_role("heading")).to_have_text("fry looks like a mistake")
    expect(warning).to_contain_text(re.compile(r"'fry' needs 'dip'.*not done"))
    expect(page.locator(".missing strong")).to_contain_text(["dip"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.reload()
    expect(warning).to_contain_text("'fry' needs 'dip'")  # not forgotten
    warning.get_by_role("button", name="It counts anyway").click()
    expect(warning).to_be_empty()
    expect(page.locator(".every .done")).to_have_text("✓ fry")
    page.get_by_role("button", name="Undo").click()
    warning.get_by_role("button", name="Undo").click()
    expect(warning).to_be_empty()
    expect(page.locator(".every .done")).to_have_count(0)
    expect(first(page)).to_have_text("heat")


def test_the_keyboard_alone_to_the_end_and_over(page: Any) -> None:
    expect(first(page)).to_have_text("heat")
    measure = page.locator(".measure p span").first
    page.keyboard.press("2")
    expect(measure).to_have_text(re.compile("^1 done"))
    expect(page.locator(".step bdi", has_text="whisk")).to_have_count(0)
    page.keyboard.press("u")
    expect(measure).to_have_text(re.compile("^0 done"))
    for done, step in enumerate(["whisk", "dip", "fry", "serve"], 1):
        page.keyboard.press("1")
        expect(first(page)).to_have_text(step)
        expect(measure).to_have_text(re.compile(f"^{done} done"))
    # The rest with Tab and Enter: the step that is next has the focus, once it was reached.
    while page.evaluate("!document.activeElement.matches('.step.first')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Finished")).to_be_visible()
    expect(page.locator("p[role=status].unseen")).to_have_text("serve done. Finished.")
    expect(page.locator(".missing li")).to_have_count(0)
    page.get_by_role("button", name="Start over").focus()
    page.keyboard.press("Enter")  # the question whether one wants that is answered with yes
    expect(first(page)).to_have_text("heat")
    expect(page.locator(".measure p span").first).to_have_text(re.compile("^0 done"))


def test_what_others_tell_is_seen_at_once(page: Any, app: tuple[str, str]) -> None:
    address, _ = app
    run = page.url.rpartition("=")[2]
    expect(first(page)).to_have_text("heat")
    ask(address, f"runs/{run}/events", {"did": "heat"})
    expect(first(page)).to_have_text("whisk")
    expect(page.locator("p[role=status].unseen")).to_have_text(re.compile("^heat done. Next: whisk, "))
    ask(address, f"runs/{run}/events", {"did": "fry"})
    expect(page.get_by_role("alert")).to_contain_text("looks like a mistake")
    expect(page.get_by_role("alert")).to_contain_text("% sure.")
    request = urllib.request.Request(f"{address}api/runs/{run}", method="DELETE")
    urllib.request.urlopen(request, timeout=600).close()
    expect(page.locator("#status")).to_have_text("This run was removed; start over.")
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_role("alert")).to_be_empty()
    expect(first(page)).to_have_text("heat")


def test_a_graph_without_data_ranks(tab: Tab, app: tuple[str, str], tmp_path: Path) -> None:
    address, _ = app
    names = ["<b>boil</b>", "pour", "drink"]
    graph = {
        "format": "msg2.graph/2",
        "task": "tea",
        "steps": names,
        "preconditions": {"pour": names[0], "drink": "pour"},
    }
    page = tab(f"{address}follow/{ask(address, 'drawn', {'graph': graph})['id']}")
    expect(first(page)).to_have_text("<b>boil</b>")
    expect(page.locator(".chance")).to_have_text([""])
    expect(page.locator(".measure .left")).to_have_count(0)
    page.get_by_text("What it cannot tell").click()
    expect(page.get_by_text("Time left: it was given no data, only a graph")).to_be_visible()
    for _ in names:
        page.locator(".step.first").click(delay=600)
    expect(page.get_by_role("heading", name="Finished")).to_be_visible()


def test_a_stated_rule_stops_until_it_is_kept_or_waived(tab: Tab, app: tuple[str, str]) -> None:
    address, _ = app
    graph = {
        "format": "msg2.graph/2", "task": "repair", "steps": ["unplug", "open case", "swap disk"],
        "preconditions": {"open case": "unplug", "swap disk": "open case"},
        "rules": [{"before": "unplug", "after": "open case", "by": "Ann"}],
    }  # fmt: skip
    page = tab(f"{address}follow/{ask(address, 'drawn', {'graph': graph})['id']}")
    page.locator(".step.first").wait_for()
    run = page.url.rpartition("=")[2]
    warning = page.get_by_role("alert")
    ask(address, f"runs/{run}/events", {"began": "open case", "id": "opening"})
    expect(warning.get_by_role("heading")).to_have_text("Stop: open case")
    expect(warning).to_contain_text("'open case' needs 'unplug', which is not done (a stated rule)")
    expect(page.locator("p[role=status].unseen")).to_have_text(re.compile("^open case looks like a mistake"))
    ask(address, f"runs/{run}/events", {"did": "open case"})
    expect(warning.get_by_role("heading")).to_have_text("Stop: open case")  # it stands
    expect(page.locator(".missing strong")).to_have_text("unplug")
    warning.get_by_role("button", name="It counts anyway").click()
    expect(warning).to_be_empty()


def test_what_was_done_and_nobody_saw(page: Any, app: tuple[str, str]) -> None:
    address, _ = app
    run = page.url.rpartition("=")[2]
    for place, step in enumerate(["heat", "whisk", "fry"]):  # dip was missed
        ask(address, f"runs/{run}/events", {"saw": {step: 0.9}, "at": 100 * place})
    ask(address, f"runs/{run}/events", {"saw": {"serve": 0.9}, "at": 400})
    if not page.locator(".every details[open]").count():
        page.get_by_text("All steps").click()
    expect(page.locator(".every li", has_text="dip")).to_contain_text("(probably done, not seen)")


def test_a_graph_that_was_drawn_takes_the_data_that_fit(tab: Tab, app: tuple[str, str]) -> None:
    address, _ = app
    graph = {"format": "msg2.graph/2", "task": "toast", "steps": STEPS, "preconditions": {"dip": "whisk"}}
    page = tab(f"{address}follow/{ask(address, 'drawn', {'graph': graph})['id']}")
    source = page.get_by_label("Percentages and times come from")
    expect(source.locator("option")).to_have_text(["toast.csv", "nothing: the graph alone"])
    page.get_by_role("button", name="Start").click()
    page.locator(".step.first").wait_for()
    expect(page.locator(".step.first .chance")).to_have_text(re.compile("%"))


def test_times_in_words(tab: Tab, app: tuple[str, str]) -> None:
    page = tab(app[0])
    cases = [
        ({"median": 360, "low": 240, "high": 540}, 0, "about 6 min left, 4 to 9"),
        ({"median": 360, "low": 240, "high": 540}, 120, "about 4 min left, 2 to 7"),
        ({"median": 40, "low": 20, "high": 80}, 0, "about 40 s left, 20 to 80"),
        ({"median": 40, "low": 20, "high": 80}, 60, "less than 20 s left"),
        ({"median": 40, "low": 20, "high": 80}, 99, "longer than usual"),
        ({"median": 360, "low": 10, "high": 540}, 0, "about 6 min left, at most 9"),
        ({"median": 360, "low": 350, "high": 361}, 0, "about 6 min left"),
        ({"median": 7200, "low": 3600, "high": 9000}, 0, "about 2.0 h left, 1.0 to 2.5"),
        ({"median": 60, "low": 30, "high": 90, "least": 45}, 600, "about 45 s left, 30 to 45"),
        (None, 0, None),
    ]
    for left, passed, words in cases:
        script = "async ([left, passed]) => (await import('/static/follow.js')).timeText(left, passed)"
        assert page.evaluate(script, [left and {"least": 0, **left}, passed]) == words
