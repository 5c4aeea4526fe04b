"""Pictures of the page and the app for the docs: `python docs/screenshots.py`, with playwright and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from msg2 import drawing, infer, write
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Task, Video

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
        write_narrated_drafts(task, Path(folder))
        with serving(Path(folder)) as address:
            correcting(browser, address)
            following(browser, address)
        browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of an app with the data of the task."""
    data = ["coffee.csv", "films", "draft.csv"]
    program = Path(sys.executable).with_name("msg2")
    command = [program, "serve", *data, "--folder", "work", "--port", "0", "--no-token", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield next(word for word in server.stdout.readline().split() if word.startswith("http"))
        server.terminate()


def write_narrated_drafts(task: Task, folder: Path) -> None:
    """Captions that name the steps of some videos, and a table in which the labels of one of them are drafts."""
    videos = list(task)[:8]
    (folder / "films").mkdir()
    for video in videos:
        cues = [
            f"{_clock(one.start)} --> {_clock(one.end)}\nnow {one.step}, and take your time" for one in video.segments
        ]
        (folder / "films" / f"{video.id}.vtt").write_text("\n\n".join(["WEBVTT", *cues]) + "\n")
    sure = (0.93, 0.55, 0.87, 0.71, 0.96, 0.62)
    first = [
        replace(one, source="draft", confidence=sure[place % len(sure)]) for place, one in enumerate(videos[0].segments)
    ]
    write([task.with_videos([Video(videos[0].id, first), *videos[1:]])], folder / "draft.csv")


def _clock(seconds: float | None) -> str:
    return f"{int(seconds or 0) // 60:02}:{(seconds or 0) % 60:06.3f}"


def correcting(browser: Browser, address: str) -> None:
    """The workbench, in the middle of the drafts of a video."""
    page = browser.new_page(viewport={"width": 1280, "height": 740})
    page.goto(address)
    page.get_by_role("row", name="draft.csv").get_by_text("Correct labels").click()
    page.locator(".segment.draft").first.wait_for()
    page.keyboard.press("Escape")
    for place in range(3):
        page.keyboard.press("j" if place == 0 else "Enter")
        page.wait_for_timeout(200)
    page.locator(".live-graph svg").wait_for(timeout=60_000)
    page.wait_for_timeout(2500)
    page.screenshot(path=IMAGES / "app-labels.png")


def following(browser: Browser, address: str) -> None:
    """The app on a phone, in the middle of a run, after a step that came too early."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    page.get_by_role("row", name="coffee.csv").get_by_text("Learn a graph").click()
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
