"""Pictures of the page and the app for the docs: `python docs/screenshots.py`, with playwright and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from msg2 import drawing, infer, write
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions

IMAGES = Path(__file__).parent / "images"


def explored(page: Page) -> None:
    """A video in the midst of being played, and why a step is there."""
    page.locator("#seek").evaluate("seek => { seek.value = 0.62 * seek.max; seek.oninput(); }")
    page.locator("g.step", has_text="wet the grounds").locator("text").click()


def ticked_off(page: Page) -> None:
    """A checklist with two steps done."""
    page.locator("#follow").click()
    for _ in range(2):
        page.locator("#checklist ul.next label").first.click()


SHOTS: dict[str, tuple[tuple[int, int], str, Callable[[Page], None]]] = {
    "page-graph.png": ((1360, 780), "light", explored),
    "page-checklist.png": ((390, 760), "dark", ticked_off),
}


def main() -> None:
    """Draw the page of a simulated task, and take its pictures."""
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(), 0)
    task = simulation.task.with_first_labels()
    with TemporaryDirectory() as folder, sync_playwright() as started:
        file = drawing.show(infer(task), Path(folder) / "coffee.html", videos=task, compare=simulation.graph)
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, ((width, height), theme, prepare) in SHOTS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
            page.goto(file.as_uri())
            prepare(page)
            page.mouse.move(0, 0)
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / name)
        write([task], Path(folder) / "coffee.csv")
        with serving(Path(folder)) as address:
            correcting(browser, address)
            following(browser, address)
        browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of an app with the data of the task."""
    command = [Path(sys.executable).with_name("msg2"), "serve", "coffee.csv", "--folder", "work", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield next(word for word in server.stdout.readline().split() if word.startswith("http"))
        server.terminate()


def correcting(browser: Browser, address: str) -> None:
    """The app, with the labels of a video on their timeline."""
    page = browser.new_page(viewport={"width": 1180, "height": 760})
    page.goto(address)
    page.get_by_text("Correct labels").first.click()
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / "app-labels.png")


def following(browser: Browser, address: str) -> None:
    """The app on a phone, in the middle of a run, after a step that came too early."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    page.get_by_text("Learn a graph").first.click()
    page.get_by_role("button", name="Learn the graph").click()
    page.get_by_text("Follow along").click()
    for _ in range(2):
        page.locator(".step.first").click()
        page.wait_for_timeout(1000)
    page.get_by_text("All steps").click()
    page.locator(".every button", has_text="wet the grounds").click()
    page.get_by_text("All steps").click()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / "app-follow.png")


if __name__ == "__main__":
    main()
