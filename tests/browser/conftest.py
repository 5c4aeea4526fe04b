"""A real browser, and pages in it that must not complain or ask for anything from outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120_000
"""Milliseconds after which a test gives up: nothing takes so long, however busy the machine is."""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs to look for; the first is the same engine without windows, and takes a third less time."""


def _without(reason: str) -> None:
    if os.environ.get("MSG2_REQUIRE_DATA") == "1":
        pytest.fail(f"MSG2_REQUIRE_DATA=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium; one for this folder, so that its event loop is gone before other tests run."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        _without("there is no Chromium on the path")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        _without("playwright is not installed")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which looks for what shuts people out of a page: `axe.run()`."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        _without("axe-playwright-python, which carries axe-core, is not installed")
    return Path(found.origin).with_name("axe.min.js").read_text("utf-8")


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens HTML from disk; at the end, nothing was said on the console and nothing asked for but the page."""
    said: list[str] = []
    asked: set[str] = set()
    contexts = []

    def opened(html: str, *, init: str = "", **settings: Any) -> Any:
        file = tmp_path / "page.html"
        file.write_text(html, "utf-8")
        context = browser.new_context(**{"viewport": {"width": 1300, "height": 850}, **settings})
        contexts.append(context)
        if init:
            context.add_init_script(init)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: asked.add(request.url.partition(":")[0]))
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not said
    assert asked <= {"file", "blob", "data"}


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """`tab(address)`: a page; at its end, nothing was said on the console, and nobody else was asked for anything.

    With `refusals`, the browser may note there that the server has refused something.
    """
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(address: str, refusals: bool = False, **settings: Any) -> Any:
        context = browser.new_context(viewport={"width": 1200, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}") if not refusals else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert all(url.startswith(("http://127.0.0.1:", "blob:", "data:", "file:")) for url in asked)
