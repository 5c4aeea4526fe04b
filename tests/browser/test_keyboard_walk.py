"""The whole way through the app by keyboard alone: every stop of the Tab key can be seen, and everything is reached."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.server.live import app_address  # noqa: E402

Tab = Callable[..., Any]
STOP = """() => {
  const element = document.activeElement;
  const name = element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.textContent;
  const rings = (one) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && one.getBoundingClientRect().width > 4;
  };
  const shape = element.querySelector(":scope.node path");
  const seen = rings(element) || (element.closest("label") && rings(element.closest("label"))) ||
    (shape && parseFloat(getComputedStyle(shape).strokeWidth) >= 3);
  const html = element.outerHTML.slice(0, 200);
  return { name: name.trim(), kind: element.tagName.toLowerCase(), seen: Boolean(seen), html };
}"""


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with app_address(tmp_path_factory.mktemp("app")) as found:
        yield found


def reach(page: Any, kind: str, name: str, most: int = 80) -> None:
    """Press Tab until something of this kind and name has the focus; all stops on the way must be seen."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop["kind"] == "body":
            continue
        assert stop["seen"], f"nobody sees that this has the focus: {stop['html']}"
        if stop["kind"] == kind and re.search(name, stop["name"]):
            return
        passed.append(f"{stop['kind']} {stop['name'][:30]}")
    raise AssertionError(f"{kind} {name} is not reached by Tab, only {passed}")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_from_the_example_to_the_workbench(tab: Tab, address: str, scheme: str) -> None:
    page = tab(address, color_scheme=scheme)
    press = page.keyboard.press
    page.get_by_role("button", name="Try an example").wait_for()
    reach(page, "button", "Try an example")
    press("Enter")
    expect(page.locator(".diagram .node.step")).to_have_count(12)

    reach(page, "g", "wet the grounds")
    press("Enter")
    expect(page.get_by_role("heading", name="wet the grounds")).to_be_visible()
    assert "wet the grounds" in page.evaluate(STOP)["name"]  # the focus stays where it was

    reach(page, "summary", "Rules you know")
    press("Enter")
    reach(page, "input", "likelihood")
    first = page.url
    for _ in range(len(page.locator("input[name=method]").all()) - 1):
        press("ArrowDown")
    expect(page.locator("input[name=method]").last).to_be_checked()
    reach(page, "button", "^Learn again$")
    press("Space")
    page.wait_for_url(lambda url: url != first)
    page.get_by_role("heading", name="What changed").wait_for()

    reach(page, "summary", "Compare with another graph")
    press("Enter")
    page.get_by_role("button", name="Compare").wait_for()
    reach(page, "button", "^Compare$")
    press("Enter")
    box = page.locator("details").filter(has_text="Compare with another graph")
    box.get_by_text("of the pairs of steps are the same in both").wait_for()

    reach(page, "summary", "Check a recording")
    press("Enter")
    page.get_by_role("button", name="Check", exact=True).wait_for()
    reach(page, "button", "^Check$")
    press("Enter")
    page.get_by_text(re.compile(r"probable mistake")).first.wait_for()

    reach(page, "summary", "What directly follows what")
    press("Enter")
    page.get_by_label("What directly follows what", exact=True).locator(".edge").first.wait_for()

    page.reload()
    page.locator(".diagram .node.step").first.wait_for()
    reach(page, "a", "Data and graphs")
    press("Enter")
    page.get_by_role("link", name="Correct labels").first.wait_for()
    reach(page, "a", "Correct labels")
    press("Enter")
    page.locator(".segment").first.wait_for()
    reach(page, "select", "Video")
    press("Escape")
    press("j")
    expect(page.locator(".segment.chosen")).to_have_count(1)
    press(".")
    expect(page.locator(".save-state.saved")).to_be_visible()
    expect(page.locator(".segment.own.chosen")).to_have_count(1)
