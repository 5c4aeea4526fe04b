"""The app in a real browser, against the real program: every screen, the way a person goes through them."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from msg2.inference import METHODS  # noqa: E402
from msg2.inference.registry import DEFAULT_METHOD  # noqa: E402
from msg2.options import option_specs  # noqa: E402
from tests.server.conftest import TOAST  # noqa: E402
from tests.server.live import app_address, serving  # noqa: E402
from tests.server.toy_method import toy_method  # noqa: E402

NASTY = '<img src=x onerror="document.title=1">'

Tab = Callable[..., Any]


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with one dataset, two labels of which are predicted."""
    folder = tmp_path_factory.mktemp("app")
    lines = [line + (",0.4,predicted" if line.startswith("v7,") else ",,") for line in TOAST.splitlines()[1:]]
    (folder / "toast.csv").write_text("\n".join(["video,step,start,end,confidence,source", *lines]) + "\n")
    with app_address(folder, "toast.csv") as found:
        yield found


def put(page: Any, name: str, content: str) -> None:
    page.set_input_files("#upload", {"name": name, "mimeType": "text/csv", "buffer": content.encode()})


def downloaded(page: Any, click: Callable[[], None]) -> tuple[str, bytes]:
    with page.expect_download() as found:
        click()
    return found.value.suggested_filename, Path(found.value.path()).read_bytes()


def test_upload_learn_refit_restart_download(tab: Tab, tmp_path: Path) -> None:
    with serving(tmp_path, how_to_end=signal.SIGKILL) as address:
        page = tab(address)
        put(page, f"{NASTY}.csv", TOAST.replace("fry", f'"{NASTY.replace(chr(34), chr(34) * 2)}"'))
        page.get_by_role("link", name="Learn a graph").click()
        assert NASTY in page.text_content("h1")
        page.locator("input[value=msg2]").check()
        page.get_by_text("Options for experts").click()
        page.get_by_label("delta").fill("0,9")
        page.get_by_role("button", name="Learn the graph").click()
        expect(page.get_by_role("status")).to_have_text("“0,9” is no number for delta: write 0.9, with a point")
        page.get_by_label("delta").fill("0.9")
        page.get_by_role("button", name="Learn the graph").click()
        expect(page.locator(".diagram .node.step")).to_have_count(3)
        assert page.locator("iframe").count() == 0
        first = page.url
        page.get_by_text("Rules you know").click()
        page.get_by_label("One step").select_option("dip")
        page.get_by_label("Another step").select_option("whisk")
        page.get_by_role("button", name="Add and learn again").click()
        page.wait_for_url(lambda url: url != first)
        page.get_by_text("dip is needed for whisk").wait_for()
        _, content = downloaded(page, page.get_by_role("link", name=".json").click)
        assert json.loads(content)["method"]["knowledge"] == {"required": [["dip", "whisk"]]}
        refitted = urlsplit(page.url).path.rpartition("/")[2]
        assert page.title() != "1"
    with serving(tmp_path) as address:
        page = tab(address)
        page.locator(f"a[href='/graph/{refitted}']").click()
        page.get_by_text("dip is needed for whisk").wait_for()
        for format in ("svg", "pddl", "html"):
            _, content = downloaded(page, page.get_by_role("link", name=f".{format}", exact=True).click)
            assert len(content) > 100
        page.go_back()
        page.get_by_role("button", name="Remove").first.click()
        page.get_by_text("None yet.", exact=True).wait_for()


@pytest.fixture
def toy_address(tmp_path: Path) -> Iterator[str]:
    """A server in this process, which knows a method that only the tests know."""
    (tmp_path / "toast.csv").write_text(TOAST)
    with toy_method(), app_address(tmp_path, "toast.csv") as found:
        yield found


def test_the_form_shows_every_option_of_the_method(tab: Tab, toy_address: str) -> None:
    page = tab(toy_address, refusals=True)
    page.get_by_role("link", name="Learn a graph").click()
    for name, method in METHODS.items():
        page.locator(f"input[name=method][value='{name}']").check()
        specs = option_specs(method.options)
        expect(page.locator(".option")).to_have_count(len(specs))
        assert page.locator(".option p").all_text_contents() == [spec.help for spec in specs]
    assert page.locator("input[name=method]").first.get_attribute("value") == DEFAULT_METHOD
    page.locator("input[value=toy]").check()
    page.get_by_text("Options for experts").click()
    page.get_by_text("Learns nothing, politely.").wait_for()
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_text("How long it waits for the kettle").wait_for()  # also where there is little room
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.get_by_label("patience (or endless)").get_attribute("placeholder") == "0.5"
    page.get_by_label("patience").fill("long")
    page.get_by_role("button", name="Learn the graph").click()
    expect(page.get_by_role("status")).to_have_text("patience is 'long', it must be a number or 'endless'")
    page.get_by_label("patience").fill("endless")
    page.locator("#option-polite").select_option("true")
    page.get_by_label("manner").select_option("quick")
    page.get_by_label("stops").fill("0.5, 1")
    with page.expect_request("**/api/work") as sent:
        page.get_by_role("button", name="Learn the graph").click()
    assert sent.value.post_data_json["method"] == "toy"
    assert sent.value.post_data_json["options"] == {
        "patience": "endless",
        "polite": True,
        "manner": "quick",
        "stops": [0.5, 1],
    }


def test_what_is_refused_is_told(tab: Tab, address: str) -> None:
    page = tab(address, refusals=True)
    put(page, "x.csv", "video,stp\n")
    page.get_by_role("button", name="Cancel").click()  # it asks which column is which
    status = page.get_by_role("status")
    asked = 'say which is which: --columns "video=…,step=…", of an event log "case=…,activity=…,time=…"'
    expect(status).to_have_text(f"x.csv, row 1: the column 'step' is missing — the columns are 'video', 'stp'; {asked}")
    page.goto(f"{address}draw")
    page.get_by_label("Task").fill("tea")
    page.get_by_label("Steps, one per line").fill("boil\npour")
    page.get_by_role("button", name="Go on").click()
    node = page.locator(".diagram .node")
    node.filter(has_text="boil").click()
    page.get_by_label("needs …").select_option("pour")
    page.locator(".diagram .edge").wait_for()
    node.filter(has_text="pour").click()
    page.get_by_label("needs …").select_option("boil")
    expect(status).to_have_text("the preconditions form a cycle: 'boil' needs 'pour' needs 'boil'")
    assert page.locator(".diagram .edge").count() == 1
    page.get_by_label("after, if done").check()
    page.get_by_label("comes after …").select_option("boil")
    expect(status).to_have_text("the preconditions and the order form a cycle: 'boil' needs 'pour' comes after 'boil'")
    expect(page.get_by_label("comes after …")).to_have_value("")
    assert page.locator(".diagram .edge").count() == 1
    page.goto(f"{address}nowhere")
    assert "there is nothing at this address" in page.content()


def test_draw_a_graph_with_undo_and_merge_three(tab: Tab, address: str) -> None:
    page = tab(f"{address}draw")
    for person, alternative in (("Ann", True), ("Ben", True), ("Cem", False)):
        page.goto(f"{address}draw")
        page.get_by_label("Task").fill("coffee")
        page.get_by_label("Steps, one per line").fill("boil\ngrind\nopen\npour")
        page.get_by_role("button", name="Go on").click()
        page.get_by_label("Drawn by").fill(person)
        page.get_by_label("Drawn by").press("Tab")
        node = page.locator(".diagram .node")
        node.filter(has_text="pour").click()
        page.get_by_role("heading", name="pour").wait_for()
        node.filter(has_text="boil").click(modifiers=["Shift"])
        page.locator(".clauses li").nth(0).wait_for()
        node.filter(has_text="grind").click(modifiers=["Shift"])
        page.locator(".clauses li").nth(1).wait_for()
        if alternative:
            node.filter(has_text="open").click(modifiers=["Alt"])
            page.locator(".diagram .node.any").wait_for()
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").wait_for()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".clauses li")).to_have_count(1)
    page.keyboard.press("Control+y")
    expect(page.locator(".clauses li")).to_have_count(2)
    page.get_by_role("button", name="Remove grind").click()
    expect(page.locator(".clauses li")).to_have_count(1)
    page.get_by_label("and …").select_option("grind")
    expect(page.locator(".clauses li")).to_have_count(2)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    page.goto(address)
    expect(page.get_by_label("Choose coffee")).to_have_count(3)
    for box in page.get_by_label("Choose coffee").all():
        box.check()
    page.get_by_role("button", name="Merge the chosen ones").click()
    page.get_by_role("heading", name="What they disagree on").wait_for()
    cells = page.locator("section tbody td").all_text_contents()
    assert cells == ["pour", "needs grind", "1 of 3", "dropped", "Cem"]
    _, content = downloaded(page, page.get_by_role("link", name=".json").click)
    assert json.loads(content)["preconditions"] == {"pour": {"all": ["boil", {"any": ["grind", "open"]}]}}


def saved_graph(page: Any) -> dict[str, Any]:
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    _, content = downloaded(page, page.get_by_role("link", name="Download").click)
    return dict(json.loads(content))


def test_draw_every_kind_and_undo_it(tab: Tab, address: str) -> None:
    page = tab(f"{address}draw")
    page.get_by_label("Task").fill("coffee")
    page.get_by_label("Steps, one per line").fill("grind\nopen\npod\npour\nstir\nsugar")
    page.get_by_role("button", name="Go on").click()
    node, chips = page.locator(".diagram .node"), page.locator(".chip")
    undo, redo = (page.get_by_role("button", name=name) for name in ("Undo", "Redo"))

    node.filter(has_text="stir").click()
    page.get_by_label("needs …").select_option("sugar")
    expect(chips).to_have_text(["sugar×"])
    page.get_by_text("needs all of these:").wait_for()
    page.get_by_label("after, if done").check()
    page.get_by_label("comes after …").select_option("sugar")  # the same arrow, of the other kind
    page.get_by_text("comes after these, where they are done:").wait_for()
    expect(chips).to_have_text(["sugar×"])
    undo.click()
    page.get_by_text("needs all of these:").wait_for()
    redo.click()
    page.get_by_text("comes after these").wait_for()
    node.filter(has_text="pour").click(modifiers=["Shift"])
    expect(chips).to_have_text(["pour×", "sugar×"])
    page.get_by_role("button", name="No longer after pour").click()
    expect(chips).to_have_text(["sugar×"])

    node.filter(has_text="sugar").click()
    optional = page.get_by_label("may be left out")
    optional.check()
    undo.click()
    expect(optional).not_to_be_checked()
    redo.click()
    expect(optional).to_be_checked()

    node.filter(has_text="grind").click()
    page.get_by_label("never done with …").select_option("open")
    page.get_by_text("Only one of these is done:").wait_for()
    page.get_by_label("or …").select_option("pod")
    expect(chips).to_have_text(["grind×", "open×", "pod×"])
    undo.click()
    expect(chips).to_have_text(["grind×", "open×"])
    redo.click()
    expect(chips).to_have_count(3)
    graph = saved_graph(page)
    assert (graph["format"], graph["preconditions"]) == ("msg2.graph/2", {})
    assert graph["order"] == [["sugar", "stir"]]
    assert (graph["optional"], graph["exclusive"]) == (["sugar"], [["grind", "open", "pod"]])

    page.reload()  # what was saved is what is edited
    node.filter(has_text="sugar").click()
    expect(optional).to_be_checked()
    page.get_by_role("button", name="Remove this step").click()
    expect(node).to_have_count(5)
    node.filter(has_text="open").click()
    page.get_by_role("button", name="Take open out of the group").click()
    page.get_by_label("never done with …").wait_for()
    graph = saved_graph(page)
    assert graph["exclusive"] == [["grind", "pod"]]
    assert not {"order", "optional"} & graph.keys()


def test_rules_are_of_both_kinds(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("row", name="toast.csv").get_by_role("link", name="Learn a graph").click()
    page.get_by_role("button", name="Learn the graph").click()
    page.locator(".diagram .node.step").first.wait_for()
    first = page.url
    page.get_by_text("Rules you know").click()
    page.get_by_label("One step").select_option("fry")
    page.get_by_label("Relation").select_option("(if done) comes before")
    page.get_by_label("Another step").select_option("whisk")
    page.get_by_role("button", name="Add and learn again").click()
    page.wait_for_url(lambda url: url != first)
    page.get_by_text("fry (if done) comes before whisk").wait_for()
    _, content = downloaded(page, page.get_by_role("link", name=".json").click)
    graph = json.loads(content)
    assert graph["method"]["knowledge"] == {"required_order": [["fry", "whisk"]]}
    assert ["fry", "whisk"] in graph["order"]
    second = page.url
    page.get_by_role("button", name="Remove the rule").click()
    page.wait_for_url(lambda url: url not in (first, second))


def test_drawing_by_keyboard_alone(tab: Tab, address: str) -> None:
    page = tab(f"{address}draw")
    page.get_by_label("Task").fill("tea")
    page.get_by_label("Steps, one per line").fill("boil\npour")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".diagram .node").filter(has_text="pour").focus()
    page.keyboard.press("Enter")
    page.locator(".diagram .node").filter(has_text="boil").focus()
    page.keyboard.press("Shift+Enter")
    page.locator(".diagram .edge").wait_for()
    page.keyboard.press("Control+z")
    page.locator(".diagram .edge").wait_for(state="detached")


def test_correct_labels_on_the_timeline(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("row", name="toast.csv").get_by_role("link", name="Correct labels").click()
    page.get_by_label("Video", exact=True).select_option("v7")
    bars = page.locator(".segment.draft")
    expect(bars).to_have_count(3)
    expect(bars.first).to_contain_text("40 %")
    # Drag the end of the first label half as far as the track is long.
    handle, track = bars.first.locator(".end.right"), page.locator(".scale .track").bounding_box()
    spot = handle.bounding_box()
    page.mouse.move(spot["x"] + 2, spot["y"] + 4)
    page.mouse.down()
    page.mouse.move(spot["x"] + 2 + track["width"] / 4, spot["y"] + 4, steps=4)
    page.mouse.up()
    expect(page.locator(".segment.own")).to_have_count(1)
    page.get_by_text("All labels of this video").click()
    end = float(
        page.locator("tbody tr")
        .filter(has=page.locator("option:checked", has_text="whisk"))
        .get_by_label("end")
        .input_value()
    )
    assert end == pytest.approx(1 + 10 / 4, abs=0.1)  # there are 10 seconds on the axis, as the labels are short
    page.get_by_role("button", name="Undo").click()
    expect(bars).to_have_count(3)
    page.get_by_role("button", name="Redo").click()
    expect(bars).to_have_count(2)
    # By keyboard: accepted, half a second later; the last one is rejected, a new one made and given an end.
    page.keyboard.press("j")
    expect(page.locator(".segment.draft.chosen")).to_have_count(0)  # the first one is mine already
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(bars).to_have_count(1)
    page.keyboard.press("x")
    expect(bars).to_have_count(0)
    page.keyboard.press("k")
    for _ in range(5):
        page.keyboard.press(".")
    page.get_by_label("A step that is new").fill("flip")
    page.get_by_label("A step that is new").press("Enter")
    expect(page.locator(".lane.current")).to_contain_text("flip")
    page.locator(".scale .track").click(position={"x": track["width"] * 0.6, "y": 5})
    page.keyboard.press("[")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("]")
    expect(page.locator(".save-state.saved")).to_be_visible()
    page.get_by_role("button", name="Download the labels").click()
    _, content = downloaded(page, page.get_by_role("link", name=".csv").click)
    rows = [row for row in csv.DictReader(io.StringIO(content.decode())) if row["video"] == "v7"]
    assert not any(row.get("confidence") for row in rows)  # a person has looked at them all
    assert [(row["step"], row["source"]) for row in rows] == [("whisk", "me"), ("dip", "me"), ("flip", "me")]
    assert (rows[1]["start"], rows[1]["end"]) == ("1.5", "2.5")
    assert float(rows[2]["start"]) == pytest.approx(6, abs=0.1)
    assert rows[2]["end"] == "10.0"
    page.reload()
    expect(page.get_by_label("Video", exact=True)).to_have_value("v7")
    expect(page.locator(".segment.own")).to_have_count(3)
    page.keyboard.press("z")  # what was done can be undone after a reload
    expect(page.locator(".segment.own")).to_have_count(3)
    page.keyboard.press("z")
    expect(page.locator(".segment.own")).to_have_count(2)


def test_times_of_any_size_are_shown(tab: Tab, address: str) -> None:
    page = tab(address)
    put(page, "vast.csv", "video,step,start,end\nv,boil,0,1\nv,pour,1e300,1e306\n")
    page.get_by_role("row", name="vast.csv").get_by_role("link", name="Correct labels").click()
    expect(page.locator(".timeline .segment")).to_have_count(2)
    assert 2 <= page.locator(".scale .track span").count() <= 13


def test_graph_files_of_other_people_are_added_and_merged(tab: Tab, address: str) -> None:
    page = tab(address)
    for name, needs in (("dora.json", '{"pour": "boil"}'), ("emil.json", "{}")):
        graph = f'{{"format": "msg2.graph/1", "task": "tea", "steps": ["boil", "pour"], "preconditions": {needs}}}'
        page.get_by_label("Add graph files").set_input_files(
            {"name": name, "mimeType": "application/json", "buffer": graph.encode()}
        )
        page.get_by_role("row", name=name).get_by_role("checkbox").check()
    page.get_by_role("button", name="Merge the chosen ones").click()
    page.get_by_text("merged from dora.json, emil.json").wait_for()
    expect(page.get_by_role("row", name="pour")).to_contain_text("a tie: dropped")


def test_labels_without_times_are_put_in_order(tab: Tab, address: str) -> None:
    page = tab(address)
    put(page, "plain.csv", "video,step\nv,pour\nv,boil\nw,boil\n")
    page.get_by_role("row", name="plain.csv").get_by_role("link", name="Correct labels").click()
    page.get_by_label("Video", exact=True).select_option("v")
    page.get_by_role("button", name="Later").first.click()
    page.get_by_role("button", name="Delete").last.click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_label("Video", exact=True).select_option("w")
    page.get_by_role("button", name="Add a label").click()
    page.keyboard.press("z")
    page.get_by_role("button", name="Download the labels").click()
    _, content = downloaded(page, page.get_by_role("link", name=".csv").click)
    assert content.decode() == "task,video,step\nplain,v,boil\nplain,v,pour\nplain,w,boil\n"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens_fit_a_phone(tab: Tab, address: str, scheme: str) -> None:
    page = tab(address, color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 800})
    toast = page.get_by_role("row", name="toast.csv")
    learn, labels = (
        toast.get_by_role("link", name=name).evaluate("link => link.href")
        for name in ("Learn a graph", "Correct labels")
    )
    for url, ready in (
        (address, "section table"),
        (learn, "button.main"),
        (f"{address}draw", "form"),
        (labels, ".segment"),
    ):
        page.goto(url)
        page.locator(ready).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
