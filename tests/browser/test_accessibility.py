"""axe-core finds no serious problem on any screen of the app, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api")
pytest.importorskip("axe_playwright_python")

from tests.server.conftest import TOAST
from tests.server.live import app_address

GRAPH = {
    "format": "msg2.graph/2", "task": "toast", "steps": ["whisk", "dip", "fry"],
    "preconditions": {"dip": "whisk", "fry": {"all": ["dip", "whisk"]}}, "optional": ["fry"],
}  # fmt: skip
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("app")
    (folder / "toast.csv").write_text(TOAST)
    with app_address(folder, "toast.csv") as found:
        yield found


def serious_problems(page: Any) -> list[str]:
    """What axe finds on the page as it is now: the rule, and the first element that breaks it."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in SERIOUS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_problem_on_any_screen(tab: Callable[..., Any], address: str, scheme: str) -> None:
    page = tab(address, refusals=True, color_scheme=scheme)
    graph = page.request.post(f"{address}api/drawn", data={"graph": GRAPH}).json()["id"]
    data = page.request.get(f"{address}api/data").json()["data"][0]["id"]
    learnt = page.request.post(f"{address}api/work", data={"data": data, "require": [["whisk", "fry"]]}).json()["id"]
    problems = {}
    for path, ready, opened in (
        ("", "section table", "details"), (f"data/{data}", "button.main", "details"),
        (f"graph/{learnt}", ".diagram .node", "main > details"), (f"graph/{graph}", ".diagram .node", ""),
        ("draw", "form", ""), (f"draw/{graph}", ".diagram .node", ""), (f"labels/{data}", ".segment", ""),
        (f"publish/{learnt}", ".texts li", ""), ("nowhere", "main a", ""), (f"follow/{graph}", "main button", ""),
    ):  # fmt: skip
        page.goto(f"{address}{path}")
        page.locator(ready).first.wait_for()
        if opened:
            page.eval_on_selector_all(opened, "boxes => boxes.forEach((box) => { box.open = true; })")
            page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")
        problems[path] = serious_problems(page)
    page.get_by_role("button", name="Start").click()
    page.locator(".card").wait_for()
    problems["step"] = serious_problems(page)
    page.locator(".every button", has_text="dip").click()  # too early, as the graph states
    page.get_by_role("heading", name="Stop: dip").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    problems["stop"] = serious_problems(page)
    assert not any(problems.values()), problems
    page.goto(f"{address}nowhere")
    page.set_content("<img src='data:,'><p style='color:#ccc;background:#fff'>pale</p>")
    assert serious_problems(page)  # it can find some
