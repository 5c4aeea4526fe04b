"""Writing a procedure in the app: texts, how it looks, two people at once, and a rule that is stated afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.server.conftest import TOAST  # noqa: E402
from tests.server.live import app_address  # noqa: E402


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("app")
    (folder / "toast.csv").write_text(TOAST)
    with app_address(folder, "toast.csv") as found:
        yield found


def test_a_procedure_is_written_saved_and_kept_when_a_rule_is_added(tab: Callable[..., Any], address: str) -> None:
    page = tab(address, refusals=True)
    page.get_by_role("link", name="Learn a graph").click()
    page.get_by_role("button", name="Learn the graph").click()
    page.get_by_role("link", name="Publish").click()
    page.get_by_text("Draft — not reviewed").first.wait_for()
    other = page.context.new_page()  # somebody else edits the same procedure
    other.goto(page.url)
    other.get_by_label("Version").fill("9")
    page.get_by_label("What to do in whisk").fill("Whisk two eggs.")
    page.get_by_label("Take care in fry").fill("The pan is hot.")
    page.get_by_label("You need, one thing per line").fill("a pan\ntwo eggs\n")
    page.get_by_label("Reviewed by").fill("Ada")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#status")).to_have_text("Saved.")
    expect(page.locator("p.status")).to_have_text("Reviewed by Ada")
    preview = page.frame_locator("iframe")
    expect(preview.get_by_text("Whisk two eggs.")).to_be_visible()
    expect(preview.get_by_text("Take care: The pan is hot.")).to_be_visible()
    expect(preview.locator("ul").first).to_contain_text("two eggs")
    other.get_by_role("button", name="Save").click()
    expect(other.locator("#status")).to_contain_text("somebody else has changed this graph")
    expect(other.get_by_label("Version")).to_have_value("9")  # what was typed is still there
    other.close()
    for name, suffix in (("Word", ".docx"), ("PDF", ".pdf"), ("Markdown", ".md"), ("Web page", ".html")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name, exact=True).click()
        assert Path(download.value.suggested_filename).suffix == suffix
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page.get_by_role("link", name="Back to the graph").click()
    page.get_by_text("Rules you know").click()
    page.get_by_label("One step").select_option("fry")
    page.get_by_label("Another step").select_option("whisk")
    page.get_by_label("Relation").select_option("forbid")
    page.get_by_role("button", name="Add and learn again").click()
    page.get_by_role("heading", name="What changed").wait_for()
    page.get_by_text("History").click()
    expect(page.locator("details", has_text="History").get_by_role("link")).to_have_count(1)
    page.get_by_role("link", name="Publish").click()
    expect(page.get_by_label("What to do in whisk")).to_have_value("Whisk two eggs.")
    expect(page.locator("p.status")).to_have_text("Draft — not reviewed")
    page.goto(address)
    expect(page.get_by_role("region", name="Graphs").locator("tbody tr")).to_have_count(1)  # one procedure, one row
