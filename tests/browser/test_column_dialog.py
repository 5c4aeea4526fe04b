"""The app asks which column of a table is which, with its first rows; by mouse, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.browser.test_accessibility import serious_problems  # noqa: E402
from tests.server.conftest import TOAST  # noqa: E402
from tests.server.live import app_address  # noqa: E402

Tab = Callable[..., Any]
SAP = "Auftrag;Vorgang;Zeit;Benutzer\n" + "".join(
    f"{case};{step};{day}.05.2024;<b>\n" for case in (4711, 4712) for day, step in ((13, "Anlegen"), (14, "Liefern"))
)


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("app")
    (folder / "toast.csv").write_text(TOAST)
    with app_address(folder, "toast.csv") as found:
        yield found


def put(page: Any, name: str, content: str) -> None:
    page.set_input_files("#upload", {"name": name, "mimeType": "text/csv", "buffer": content.encode()})


def test_a_log_in_other_words_is_read_after_a_question(tab: Tab, address: str) -> None:
    page = tab(address, refusals=True)
    put(page, "sap.csv", SAP)
    dialog = page.get_by_role("dialog", name="Which column of sap.csv is which?")
    expect(dialog.get_by_role("alert")).to_have_text("the column 'video' is missing")
    assert dialog.locator("tbody tr").first.locator("td").all_text_contents() == [
        "4711",
        "Anlegen",
        "13.05.2024",
        "<b>",
    ]
    go = dialog.get_by_role("button", name="Read it so")
    expect(go).to_be_disabled()
    dialog.get_by_label("What “Auftrag” is").select_option("video")
    expect(dialog.get_by_role("status")).to_have_text("Choose the column that is the step.")
    dialog.get_by_label("What “Vorgang” is").select_option("step")
    dialog.get_by_label("What “Zeit” is").select_option("start")
    go.click()  # a date is no number of seconds: it is no table of steps
    expect(dialog.get_by_role("alert")).to_contain_text("sap.csv, row 2: the start")
    dialog.get_by_label("an event log").check()  # what was chosen goes with it
    told = "The case is in “Auftrag”, the activity in “Vorgang”, at “Zeit”. Not used: “Benutzer”."
    expect(dialog.get_by_role("status")).to_have_text(told)
    assert serious_problems(page) == []
    go.click()
    page.get_by_role("row", name="sap.csv").get_by_text("2 runs").wait_for()
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="sap.csv").click()
    page.get_by_text("Columns: case is “Auftrag”, activity is “Vorgang”, time is “Zeit”.").wait_for()
    page.get_by_text("2 steps: Anlegen · Liefern").wait_for()


def test_what_was_guessed_can_be_changed(tab: Tab, address: str) -> None:
    page = tab(address)
    put(page, "notes.csv", "video,step,start,task\nv1,boil,0,tea\nv1,pour,5,tea\nv2,boil,0,tea\n")
    page.get_by_role("link", name="notes.csv").click()
    expect(page.get_by_label("Task")).to_have_value("tea")
    page.get_by_role("button", name="Read it otherwise").click()
    menus = page.get_by_role("dialog").locator("select")
    expect(menus).to_have_count(4)
    assert [menu.input_value() for menu in menus.all()] == ["video", "step", "start", "task"]
    menus.nth(3).select_option("step")
    assert [menu.input_value() for menu in menus.all()] == ["video", "", "start", "step"]
    menus.nth(2).select_option("")
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(
        "The video is in “video”, the step in “task”, in the order of the rows, for want of times. "
        "Not used: “step”, “start”."
    )
    page.get_by_role("button", name="Read it so").click()
    page.get_by_text("1 step: tea").wait_for()
    page.get_by_text("Columns: video is “video”, step is “task”.").wait_for()


def test_by_keyboard_on_a_phone_and_given_up(tab: Tab, address: str) -> None:
    page = tab(address, refusals=True)
    page.set_viewport_size({"width": 390, "height": 844})
    put(page, "sap2.csv", SAP)
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    box = dialog.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.activeElement.value") == "steps"
    page.keyboard.press("ArrowDown")
    for letter in "cat":  # case, activity, time
        page.keyboard.press("Tab")
        page.keyboard.press(letter)
        focused = page.evaluate("document.activeElement.getBoundingClientRect().right")
        assert focused <= 390
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("row", name="sap2.csv").wait_for()
    put(page, "sap3.csv", SAP)
    dialog.wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("#status")).to_contain_text("sap3.csv, row 1: the column 'video' is missing")
    expect(page.get_by_role("row", name="sap3.csv")).to_have_count(0)
