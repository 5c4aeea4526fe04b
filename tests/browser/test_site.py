"""The documentation as a site, and as a folder that opens from disk: complete, searched, nothing from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TEN_SCREENS = 8000
"""Pixels, of ten screens of 1280 x 800."""


def build(folder: Path, **environment: str) -> str:
    """Build the site from another folder; return what mkdocs says."""
    options = ["--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(folder / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow  # it runs the notebooks
def test_the_site_builds_without_a_warning_and_no_page_is_long(browser: Any, tmp_path: Path) -> None:
    assert "WARNING -" not in build(tmp_path)
    text = (tmp_path / "site/results-next-step/index.html").read_text(encoding="utf-8")
    assert "Make French Strawberry Cake" in text  # the tables are in it
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', text)  # and nothing from outside
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    heights = {}
    for file in sorted((tmp_path / "site").rglob("index.html")):
        page.goto(file.as_uri())
        heights[str(file.parent)] = page.evaluate("document.documentElement.scrollHeight")
    page.close()
    assert {name: height for name, height in heights.items() if height > TEN_SCREENS} == {}


@pytest.mark.slow
def test_the_folder_opens_from_disk_and_is_searched(browser: Any, tmp_path: Path) -> None:
    build(tmp_path, OFFLINE="true")
    page = browser.new_page(viewport={"width": 1300, "height": 850})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "site" / "index.html").as_uri())
    page.locator(".md-search__input").first.click()
    page.keyboard.type("glossary")
    page.locator(".md-search-result__link", has_text="Glossary").first.click()
    page.wait_for_url("**/glossary.html*")
    assert "Glossary" in page.title()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()
