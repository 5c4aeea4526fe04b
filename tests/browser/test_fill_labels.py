"""Missing labels are filled in from what is said, in the app; where that is impossible, it says why."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.server.conftest import TOAST  # noqa: E402
from tests.server.live import app_address  # noqa: E402
from tests.server.test_workbench import narrated  # noqa: E402

Tab = Callable[..., Any]


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("app")
    narrated(folder / "films")
    (folder / "toast.csv").write_text("\n".join(TOAST.splitlines()[:7]) + "\n")  # two of the videos
    with app_address(folder, "films", "toast.csv") as found:
        yield found


def test_drafts_are_made_counted_downloaded_and_learned_from(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("region", name="Data").get_by_role("link", name="films", exact=True).click()
    page.get_by_text("Fill in missing labels").first.click()
    fill = page.get_by_role("button", name="Fill in missing labels")
    fill.click()
    expect(page.locator("#status")).to_have_text("Name the steps first, one per line, or choose labels of some videos.")
    page.get_by_label("Steps in their usual order").fill("whisk\ndip\n\nfry")
    fill.click()
    page.get_by_text("18 labels of 6 videos were filled in, as drafts;").wait_for()
    with page.expect_download() as found:
        page.get_by_role("link", name=".csv", exact=True).click()
    rows = list(csv.DictReader(Path(found.value.path()).read_text("utf-8").splitlines()))
    assert len(rows) == 18
    assert {row["source"] for row in rows} == {"draft"}
    page.get_by_role("button", name="Learn the graph").click()
    expect(page.locator(".diagram .node.step")).to_have_count(3)


def test_labels_of_some_videos_stay_and_drafts_wait_for_proof(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("region", name="Data").get_by_role("link", name="films", exact=True).click()
    page.get_by_text("Fill in missing labels").first.click()
    page.get_by_label("Labels of some of the videos").select_option(label="toast.csv: toast")
    page.get_by_role("button", name="Fill in missing labels").click()
    page.get_by_text("12 labels of 4 videos were filled in").wait_for()
    page.locator("summary", has_text="Options for experts").click()
    expect(page.get_by_label("Drafts count from this confidence on")).to_have_value("1")


def test_where_it_is_impossible_it_says_why(tab: Tab, address: str) -> None:
    page = tab(address)
    page.get_by_role("link", name="toast.csv", exact=True).click()
    page.get_by_text("Fill in missing labels").click()
    page.get_by_text("These data are labels only: there is nothing to fill in others from.").wait_for()
    expect(page.get_by_role("button", name="Fill in missing labels")).to_have_count(0)
