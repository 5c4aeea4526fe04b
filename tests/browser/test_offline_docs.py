"""The documentation as a folder on the disk: it opens without a server, is searched, and asks for nothing outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_folder_opens_from_disk_and_is_searched(browser: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "OFFLINE": "true"}, check=True)
    context = browser.new_context(viewport={"width": 1300, "height": 850})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "site" / "index.html").as_uri())
    page.locator(".md-search__input").first.click()
    page.keyboard.type("glossary")
    page.locator(".md-search-result__link", has_text="Upgrading from 0.1").first.click()
    page.wait_for_url("**/glossary.html*")
    assert "Upgrading from 0.1" in page.title()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()
