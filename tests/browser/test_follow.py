"""Following a run in a real browser, on a phone and on a desk, with a finger, a mouse or the keyboard alone."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.browser.test_app import Tab  # noqa: E402
from tests.server.live import app_address  # noqa: E402

STEPS = ["heat", "whisk", "dip", "fry", "serve"]
ORDERS = [STEPS, ["whisk", "heat", "dip", "fry", "serve"]]
TABLE = "video,step,start,end\n" + "".join(
    f"v{number},{step},{100 * place},{100 * place + 30 + number}\n"
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
    page.locator(".card").wait_for()
    return page


def drawn_page(tab: Tab, address: str, graph: dict[str, Any]) -> Any:
    """The run of a graph that was drawn, on a phone."""
    named = {"format": "msg2.graph/2", **graph}
    page = tab(f"{address}follow/{ask(address, 'drawn', {'graph': named})['id']}")
    page.set_viewport_size(SIZES["phone"])
    page.locator(".card").wait_for()
    return page


def now(page: Any) -> Any:
    """The step to do now."""
    return page.locator(".now .card h2")


def done(page: Any) -> Any:
    return page.get_by_role("button", name=re.compile("^Done: "))


def back(page: Any) -> Any:
    return page.get_by_role("button", name="Back", exact=True)


def measured(page: Any) -> Any:
    return page.locator(".measure p span").first


def choose(page: Any, step: str) -> None:
    """Choose a step that is not offered, from the list of all of them."""
    if not page.locator(".others").is_visible():
        page.get_by_role("button", name="Another step").click()
    if not page.locator(".others details[open]").count():
        page.get_by_text("All steps").click()
    page.locator(".every").get_by_role("button", name=step).click()


def test_one_step_after_the_other_back_and_reload(page: Any) -> None:
    expect(now(page)).to_have_text("heat")
    expect(page.locator(".now .card p").first).to_have_text("Usually next")
    assert "%" not in page.locator("main").inner_text()
    page.get_by_text("Why?").click()
    expect(page.locator(".reason p")).to_have_text(
        re.compile(r"^It comes next with \d\d\u00a0%: 40 of 60 videos begin with it")
    )
    expect(page.locator(".after")).to_have_text("After that: whisk")
    expect(page.locator(".measure .left")).to_have_text(re.compile(r"^about \d min left"))
    expect(back(page)).to_be_disabled()
    done(page).click()
    expect(now(page)).to_have_text("whisk")
    expect(measured(page)).to_have_text(re.compile("^1 done, "))
    done(page).click()
    expect(now(page)).to_have_text("dip")
    expect(page.locator(".needs")).to_have_text(re.compile("^After ✓ heat, done"))
    address = page.url
    assert "?run=" in address
    page.reload()
    expect(now(page)).to_have_text("dip")
    page.get_by_role("link", name="The graph").click()
    page.get_by_role("link", name="Follow along").click()  # it goes on where it was left
    expect(now(page)).to_have_text("dip")
    assert page.url == address
    for left in (1, 0):
        back(page).click()
        expect(measured(page)).to_have_text(re.compile(f"^{left} done"))
    expect(now(page)).to_have_text("heat")
    expect(back(page)).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = page.locator("main :is(button, a, summary):visible").evaluate_all(
        "all => all.map((one) => [one.textContent, one.getBoundingClientRect().height])"
    )
    assert [name for name, height in sizes if height < 44] == []


def test_another_step_is_chosen_and_then_done(page: Any) -> None:
    choose(page, "fry")
    expect(now(page)).to_have_text("fry")
    expect(page.locator(".now .card p").first).to_have_text("Usually not yet")
    expect(page.locator(".needs .unmet")).to_have_text("○ dip, not done")
    expect(measured(page)).to_have_text(re.compile("^0 done"))  # nothing was told
    back(page).click()
    expect(now(page)).to_have_text("heat")
    if not page.locator(".others").is_visible():
        page.get_by_role("button", name="Another step").click()
    page.locator(".soon button", has_text="whisk").click()
    expect(page.locator(".now .card p").first).to_have_text("You chose")
    expect(page.locator(".every [aria-current=step] bdi")).to_have_text("whisk")
    done(page).click()
    expect(now(page)).to_have_text("heat")
    expect(page.locator(".every .done")).to_have_text("✓ whisk")


def test_a_mistake_is_explained_and_counts_if_one_says_so(page: Any) -> None:
    choose(page, "fry")
    done(page).click()
    warning = page.get_by_role("alert")
    expect(warning.get_by_role("heading")).to_have_text(re.compile("a mistake: fry$"))
    expect(warning).to_contain_text(re.compile(r"'fry' needs 'dip'.*not done"))
    assert "%" not in warning.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.reload()
    expect(warning).to_contain_text("'fry' needs 'dip'")  # not forgotten
    warning.get_by_role("button", name="It counts anyway").click()
    expect(warning).to_be_empty()
    expect(page.locator(".every .done")).to_have_text("✓ fry")
    expect(page.locator(".missing strong")).to_contain_text(["dip"])
    back(page).click()
    warning.get_by_role("button", name="I did “dip”").click()
    expect(warning).to_be_empty()
    expect(page.locator(".every .done")).to_have_text(["✓ dip", "✓ fry"])
    back(page).click()
    warning.get_by_role("button", name="Go back").click()
    expect(warning).to_be_empty()
    expect(page.locator(".every .done")).to_have_count(0)
    expect(now(page)).to_have_text("heat")


def test_the_keyboard_alone_to_the_end_and_over(page: Any) -> None:
    expect(now(page)).to_have_text("heat")
    page.keyboard.press("2")
    expect(now(page)).to_have_text("whisk")
    page.keyboard.press("u")
    expect(now(page)).to_have_text("heat")
    page.keyboard.press("1")
    expect(measured(page)).to_have_text(re.compile("^1 done"))
    page.keyboard.press("u")
    for count, step in enumerate(STEPS[:-1]):
        expect(measured(page)).to_have_text(re.compile(f"^{count} done"))
        expect(now(page)).to_have_text(step)
        expect(done(page)).to_be_enabled()
        page.keyboard.press("1")
    # The rest with Tab and Enter; what comes up has the focus, once it was reached.
    expect(now(page)).to_have_text("serve")
    while page.evaluate("!document.activeElement.matches('.card .done')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(now(page)).to_have_text("✓ Finished")
    expect(page.locator("p[role=status].unseen")).to_have_text("serve done. Finished.")
    expect(page.locator(".missing li")).to_have_count(0)
    page.get_by_role("button", name="Start over").focus()
    page.keyboard.press("Enter")  # the question whether one wants that is answered with yes
    expect(now(page)).to_have_text("heat")
    expect(measured(page)).to_have_text(re.compile("^0 done"))


def test_what_others_tell_is_seen_at_once(page: Any, app: tuple[str, str]) -> None:
    address, _ = app
    run = page.url.rpartition("=")[2]
    expect(now(page)).to_have_text("heat")
    ask(address, f"runs/{run}/events", {"did": "heat"})
    expect(now(page)).to_have_text("whisk")
    expect(page.locator("p[role=status].unseen")).to_have_text("heat done. Next: whisk")
    ask(address, f"runs/{run}/events", {"began": "dip"})
    expect(now(page)).to_have_text("dip")
    expect(page.locator(".now .card p").first).to_have_text("Begun")
    ask(address, f"runs/{run}/events", {"did": "fry"})
    expect(page.get_by_role("alert")).to_contain_text("a mistake: ")
    request = urllib.request.Request(f"{address}api/runs/{run}", method="DELETE")
    urllib.request.urlopen(request, timeout=600).close()
    expect(page.locator("#status")).to_have_text("This run was removed; start over.")
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_role("alert")).to_be_empty()
    expect(now(page)).to_have_text("heat")


def test_a_graph_that_was_edited_goes_on_with_the_run(tab: Tab, app: tuple[str, str]) -> None:
    address, _ = app
    graph = {"format": "msg2.graph/2", "task": "tea", "steps": ["boil", "pour"], "preconditions": {"pour": "boil"}}
    drawn = ask(address, "drawn", {"graph": graph})["id"]
    page = tab(f"{address}follow/{drawn}", refusals=True)  # the run of an edited graph is refused once
    done(page).click()
    expect(now(page)).to_have_text("pour")
    longer = {**graph, "steps": ["boil", "steep", "pour"], "preconditions": {"steep": "boil", "pour": "steep"}}
    ask(address, "drawn", {"graph": longer, "replaces": drawn, "version": 0})  # in its place: the page is loaded again
    page.reload()
    expect(now(page)).to_have_text("steep")
    other = ask(address, "drawn", {"graph": {**longer, "steps": [*longer["steps"], "drink"]}})["id"]
    ask(address, f"runs/{page.url.rpartition('=')[2]}/graph", {"graph": other})  # by a program: the page follows
    expect(page).to_have_url(re.compile(f"/follow/{other}"))
    expect(measured(page)).to_have_text(re.compile("^1 done, "))


def test_a_tap_is_kept_until_the_server_has_it(tab: Tab, app: tuple[str, str]) -> None:
    """Also through a reload without a connection; and an answer that was lost counts once."""
    address, graph = app
    page = tab(f"{address}follow/{graph}", refusals=True)
    expect(now(page)).to_have_text("heat")
    lost = []

    def answer_nobody(route: Any) -> None:
        lost.append(route.fetch())
        route.abort()

    page.context.route("**/events", answer_nobody, times=1)
    page.context.route("**/events", lambda route: route.abort())
    done(page).click()
    expect(page.locator("#status")).to_have_text(re.compile("^No connection: what you tap is kept"))
    expect(done(page)).to_be_disabled()  # it is pressed already
    page.keyboard.press("1")
    page.context.unroute("**/events")
    page.reload()
    expect(now(page)).to_have_text("whisk")
    expect(measured(page)).to_have_text(re.compile("^1 done, "))
    expect(page.locator("#status")).to_be_empty()
    done(page).click()
    expect(now(page)).to_have_text("dip")
    unsent = "Object.keys(localStorage).filter((key) => key.includes('unsent')).map((key) => localStorage[key])"
    page.wait_for_function(f"{unsent}.join() === '[]'")


def test_a_graph_without_data_ranks(tab: Tab, app: tuple[str, str]) -> None:
    names = ["<b>boil</b>", "pour", "drink"]
    needs = {"pour": names[0], "drink": "pour"}
    page = drawn_page(tab, app[0], {"task": "tea", "steps": names, "preconditions": needs})
    expect(page.locator(".measure .left")).to_have_count(0)
    page.get_by_text("What it cannot tell").click()
    expect(page.get_by_text("Time left: it was given no data, only a graph")).to_be_visible()
    for name in names:
        expect(now(page)).to_have_text(name)
        expect(page.locator(".now .card p").first).to_have_text("Next")
        done(page).click(delay=600)
    expect(now(page)).to_have_text("✓ Finished")


REPAIR = {
    "task": "repair", "steps": ["unplug", "open case", "swap disk"],
    "preconditions": {"open case": "unplug", "swap disk": "open case"},
    "rules": [{"before": "unplug", "after": "open case", "by": "Ann"}], "evidence": {"unplug": {"videos": 3}},
}  # fmt: skip


def test_a_stated_rule_stops_before_it_is_broken(tab: Tab, app: tuple[str, str]) -> None:
    page = drawn_page(tab, app[0], REPAIR)
    stop = page.get_by_role("alert")
    choose(page, "open case")
    expect(stop.get_by_role("heading")).to_have_text("Stop: open case")
    expect(stop).to_contain_text("First: unplug.")
    expect(stop).to_contain_text("Ann says so: a stated rule.")
    expect(now(page)).to_have_count(0)  # nothing else can be done before
    expect(back(page)).not_to_be_visible()
    page.keyboard.press("1")
    expect(measured(page)).to_have_text(re.compile("^0 done"))
    stop.get_by_role("button", name="Go back").click()
    expect(stop).to_be_empty()
    expect(now(page)).to_have_text("unplug")
    choose(page, "open case")
    stop.get_by_role("button", name="I did “unplug”").click()
    expect(stop).to_be_empty()
    for name in ("open case", "swap disk"):
        expect(now(page)).to_have_text(name)
        done(page).click(delay=600)
    expect(now(page)).to_have_text("✓ Finished")
    back(page).click()
    expect(now(page)).to_have_text("swap disk")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_stated_rule_that_was_broken_stops_until_it_is_kept_or_waived(tab: Tab, app: tuple[str, str]) -> None:
    address, _ = app
    page = drawn_page(tab, address, REPAIR)
    run = page.url.rpartition("=")[2]
    stop = page.get_by_role("alert")
    ask(address, f"runs/{run}/events", {"began": "open case", "id": "opening"})
    expect(stop.get_by_role("heading")).to_have_text("Stop: open case")
    expect(page.locator("p[role=status].unseen")).to_have_text(re.compile("^open case looks like a mistake"))
    ask(address, f"runs/{run}/events", {"did": "open case"})
    page.reload()
    expect(stop.get_by_role("heading")).to_have_text("Stop: open case")  # it stands
    stop.get_by_role("button", name="It counts anyway").click()
    expect(stop).to_be_empty()
    expect(page.locator(".missing strong")).to_have_text("unplug")
    choose(page, "swap disk")
    done(page).click()
    expect(now(page)).to_have_text("unplug")  # not finished without it
    page.locator(".missing").get_by_role("button", name="unplug: I did it").click()
    expect(now(page)).to_have_text("✓ Finished")


def test_what_was_done_and_nobody_saw(page: Any, app: tuple[str, str]) -> None:
    address, _ = app
    run = page.url.rpartition("=")[2]
    for place, step in enumerate(["heat", "whisk", "fry"]):  # dip was missed
        ask(address, f"runs/{run}/events", {"saw": {step: 0.9}, "at": 100 * place})
    ask(address, f"runs/{run}/events", {"saw": {"serve": 0.9}, "at": 400})
    expect(page.locator(".every li", has_text="dip")).to_contain_text("probably done, not seen")


def test_a_graph_that_was_drawn_takes_the_data_that_fit(tab: Tab, app: tuple[str, str]) -> None:
    address, _ = app
    graph = {"format": "msg2.graph/2", "task": "toast", "steps": STEPS, "preconditions": {"dip": "whisk"}}
    page = tab(f"{address}follow/{ask(address, 'drawn', {'graph': graph})['id']}")
    source = page.get_by_label("What is usual comes from")
    expect(source.locator("option")).to_have_text(["toast.csv", "nothing: the graph alone"])
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Why?").click()
    expect(page.locator(".reason p")).to_contain_text("%")


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
