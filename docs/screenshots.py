"""Pictures of the page and the app for the docs: `python docs/screenshots.py`, with playwright, Chromium and Pillow.

They are small: one pixel per point, in a palette.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from msg2 import drawing, infer, write
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Task, Video

IMAGES = Path(__file__).parent / "images"
COLOURS = 96
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
DESKTOP, PHONE = (1200, 760), (390, 760)
LOG = """Order;What was done;When;Who
4711;pack;13.05.2024 09:00;Kim
4711;ship;13.05.2024 11:30;Lee
4712;pack;14.05.2024 08:15;Kim
"""


def save(page: Page, name: str) -> None:
    """Take a picture of what is seen, as a PNG with a palette."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    taken.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        IMAGES / name, optimize=True
    )


def explored(page: Page) -> None:
    """A video in the midst of being played, and why a step is there."""
    page.locator("#seek").evaluate("seek => { seek.value = 0.62 * seek.max; seek.oninput(); }")
    page.locator("g.step", has_text="wet the grounds").locator("text").click()


def ticked_off(page: Page) -> None:
    """A checklist with two steps done."""
    page.locator("#follow").click()
    for _ in range(2):
        page.locator("#checklist ul.next label").first.click()


def opened(page: Page) -> None:
    """The page as it opens."""


SHOTS: dict[str, tuple[tuple[int, int], str, Callable[[Page], None]]] = {
    "page-graph.png": ((1360, 780), "light", explored),
    "page-desktop-dark.png": (DESKTOP, "dark", explored),
    "page-phone-light.png": (PHONE, "light", opened),
    "page-phone-dark.png": (PHONE, "dark", ticked_off),
}


def main() -> None:
    """Draw the page of a simulated task, and take its pictures."""
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(), 0)
    task = simulation.task.with_first_labels()
    with TemporaryDirectory() as folder, sync_playwright() as started:
        file = drawing.show(infer(task), Path(folder) / "coffee.html", videos=task, compare=simulation.graph)
        program = next(filter(None, map(shutil.which, BROWSERS)))
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, ((width, height), theme, prepare) in SHOTS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
            page.goto(file.as_uri())
            prepare(page)
            save(page, name)
        write([task], Path(folder) / "coffee.csv")
        write_narrated_drafts(task, Path(folder))
        with serving(Path(folder)) as address:
            correcting(browser, address)
            following(browser, address)
            looking(browser, address)
        browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of an app with the data of the task."""
    data = ["coffee.csv", "films", "draft.csv"]
    program = Path(sys.executable).with_name("msg2")
    command = [program, "serve", *data, "--folder", "work", "--port", "0", "--no-token", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(word for word in server.stdout.readline().split() if word.startswith("http"))
        finally:
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
    save(page, "app-labels.png")


def following(browser: Browser, address: str) -> None:
    """A run: the step to do, on a phone; and the stop where a stated rule would be broken, on a desktop."""
    page = browser.new_page(viewport={"width": 390, "height": 700}, has_touch=True)
    page.goto(address)
    datasets = {entry["name"]: entry["id"] for entry in page.request.get(f"{address}api/data").json()["data"]}
    rule = ["add coffee to filter", "wet the grounds"]
    job = {"data": datasets["coffee.csv"], "options": {"absent": "skipped"}, "require": [rule]}
    graph = page.request.post(f"{address}api/work", data=job).json()["id"]
    page.goto(f"{address}graph/{graph}")
    page.get_by_text("Follow along").click()
    for step in ("grind beans", "set dripper on mug", "put filter in dripper"):
        page.get_by_role("button", name="Another step").click()
        page.locator(".others summary").click()
        page.locator(".every button", has_text=step).click()
        page.get_by_role("button", name="Done").click()
        page.locator(".every .done", has_text=step).wait_for(state="attached")
        page.locator(".others summary").evaluate("summary => { summary.parentElement.open = false; }")
    save(page, "app-follow.png")
    desk = browser.new_page(viewport={"width": 1200, "height": 760}, color_scheme="dark")
    desk.goto(page.url)
    desk.locator(".every button", has_text="wet the grounds").click()
    save(desk, "app-follow-stop.png")


def looking(browser: Browser, address: str) -> None:
    """The graph on a desktop, by day, and on a phone, by night; the other screens the other way round."""
    graph = ""
    for name, (width, height), theme in (
        ("app-desktop-light.png", DESKTOP, "light"), ("app-phone-dark.png", PHONE, "dark"),
        ("app-desktop-dark.png", DESKTOP, "dark"), ("app-phone-light.png", PHONE, "light"),
    ):  # fmt: skip
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
        page.goto(graph or address)
        if name == "app-desktop-light.png":
            page.get_by_role("button", name="Try an example").click()
            page.locator(".diagram .node.step").first.wait_for(timeout=60_000)
            graph = page.url
        if name in ("app-desktop-light.png", "app-phone-dark.png"):
            page.locator(".diagram .node.step", has_text="wet the grounds").click()
        else:
            page.goto(address)
            page.get_by_role("row", name="coffee.csv").first.wait_for()
        if name == "app-desktop-dark.png":
            log = {"name": "orders.csv", "mimeType": "text/csv", "buffer": LOG.encode()}
            page.set_input_files("#upload", log)  # type: ignore[arg-type]
            page.get_by_role("radio", name="an event log").check()
            for column, role in (("Order", "case"), ("What was done", "activity"), ("When", "time")):
                page.get_by_label(f"What “{column}” is").select_option(role)
        save(page, name)


if __name__ == "__main__":
    main()
