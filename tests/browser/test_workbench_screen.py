"""From a folder of transcripts to a graph and its page, by keyboard alone, with a server that is killed on the way."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect

from tests.server.live import app_address, start_server  # noqa: E402

Tab = Callable[..., Any]
STEPS = ("heat pan", "crack eggs", "whisk", "dip bread", "fry", "serve")
SECONDS = 10


def make_films(folder: Path, count: int) -> None:
    """Transcripts, and a table of drafts of them; in every film, one draft is unsure and a second too early."""
    rows = ["video,step,start,end,confidence,source"]
    (folder / "films").mkdir()
    for number in range(count):
        steps = (STEPS[1], STEPS[0], *STEPS[2:]) if number % 2 else STEPS
        cues = ["WEBVTT"]
        for place, step in enumerate(steps):
            start = SECONDS * place
            cues.append(f"00:{start:02}.000 --> 00:{start + 4:02}.000\nnow you {step} and so on")
            sure = 0.4 if place == number % len(steps) else 0.9
            rows.append(f"film{number},{step},{start + 1},{start + 6},{sure},draft")
        (folder / "films" / f"film{number}.vtt").write_text("\n\n".join(cues) + "\n")
    (folder / "draft.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Callable[[int], tuple[subprocess.Popen[str], str]]]:
    """`servers(port)`: the program with a folder of transcripts and a table of drafts; all are ended at the end."""
    make_films(tmp_path, 6)
    started = []

    def start(port: int = 0) -> tuple[subprocess.Popen[str], str]:
        server, address = start_server(tmp_path, "films", "draft.csv", port=port)
        started.append(server)
        return server, address

    yield start
    for server in started:
        if server.poll() is None:
            server.kill()
            server.communicate()


def saved_labels(folder: Path) -> dict[str, list[tuple[str, float, float]]]:
    """What is on the disk, by video."""
    documents = [json.loads(path.read_bytes()) for path in (folder / "work").rglob("people/*/*.json")]
    return {
        each["video"]: [(row["step"], row["start"], row["end"]) for row in each["labels"]] for each in documents
    }  # fmt: skip


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_folder_drafts_corrections_graph_page_and_a_kill_in_between(
    servers: Any,
    tab: Tab,
    tmp_path: Path,
) -> None:
    server, address = servers()
    port = int(address.rstrip("/").rpartition(":")[2])
    page = tab(address, refusals=True)  # the console notes that the server is not there for a while
    page.set_viewport_size({"width": 1280, "height": 800})
    # A folder of transcripts; its drafts come from the table.
    page.get_by_role("row", name="films").get_by_role("link", name="Label").click()
    page.get_by_label("Get drafts").select_option("from draft.csv")
    expect(page.locator(".segment.draft")).to_have_count(6)
    expect(page.locator(".lane.spoken")).to_contain_text("now you heat pan")
    expect(page.locator(".segment.draft").first).to_contain_text("40 %")
    expect(page.locator(".segment.draft.chosen")).to_have_count(1)
    # Ten corrections by keyboard, in two films: moved, shortened, begun and ended elsewhere, rejected, renamed, new.
    press(page, ",", ",", ",")  # 1-3: heat pan is 0.3 s earlier
    press(page, "j", "<")  # 4: crack eggs ends 0.1 s earlier
    press(page, "j", "ArrowRight", "[")  # 5: whisk starts 2 s later
    press(page, "j", "ArrowRight", "]")  # 6: dip bread ends 2 s after its start
    press(page, "j", "x")  # 7: fry is rejected
    press(page, "Enter")
    expect(page.locator(".segment.draft")).to_have_count(0)
    press(page, "n")
    expect(page.locator(".segment.draft")).to_have_count(6)
    press(page, "Enter", "Enter", "Shift+Digit5", "j", "j", "Enter")  # 8: what was called whisk is fry
    expect(page.locator(".segment.own")).to_have_count(4)
    expect(page.locator(".save-state.saved")).to_be_visible()
    before = saved_labels(tmp_path)
    assert before["film0"] == [
        ("heat pan", 0.7, 5.7), ("crack eggs", 11, 15.9), ("whisk", 23, 26), ("dip bread", 31, 33), ("serve", 51, 56),
    ]  # fmt: skip
    # The server is killed in the middle: the page says so, keeps what is not saved, and sends it later.
    server.send_signal(signal.SIGKILL)
    server.communicate()
    press(page, "z")  # 9: taken back
    press(page, "Escape", "6", "[")  # 10: a new label
    expect(page.locator(".save-state.waiting")).to_contain_text("trying again")
    assert saved_labels(tmp_path) == before
    servers(port)
    expect(page.locator(".save-state.saved")).to_be_visible()
    after = saved_labels(tmp_path)
    assert after["film0"] == before["film0"]
    assert after["film1"] != before["film1"]
    shown = page.locator(".segment.own").count()
    assert shown == len(after["film1"])
    page.reload()
    expect(page.locator(".segment.own")).to_have_count(shown)
    expect(page.get_by_label("Video", exact=True)).to_have_value("film1")
    press(page, "p")
    expect(page.locator(".segment.own")).to_have_count(5)
    expect(page.locator(".segment.draft")).to_have_count(0)  # what was rejected does not come back
    # The other films: all drafts are right. The graph grows beside them, and says when it is enough.
    for number in range(2, 6):
        if number == 5:
            press(page, "Shift+N")  # the only one that is left
        else:
            press(page, *["n"] * (2 if number == 2 else 1))
        expect(page.get_by_label("Video", exact=True)).to_have_value(f"film{number}")
        expect(page.locator(".segment.draft")).to_have_count(6)
        press(page, *["Enter"] * 6)
        expect(page.locator(".segment.draft")).to_have_count(0)
    expect(page.locator(".enough")).to_contain_text("6 videos")
    expect(page.locator(".enough")).to_contain_text("%")
    expect(page.locator(".next-video")).to_contain_text("Every video has labels")
    expect(page.locator(".live-graph svg .node.step")).to_have_count(6)
    page.get_by_role("button", name="Open its page").click()
    page.locator(".diagram g.step").first.wait_for()
    expect(page.locator(".diagram g.step")).to_have_count(6)


def test_the_workbench_by_another_person_at_a_small_laptop(servers: Any, tab: Tab) -> None:
    _, address = servers()
    page = tab(address, color_scheme="dark")
    page.set_viewport_size({"width": 1024, "height": 700})
    page.get_by_role("row", name="draft.csv").get_by_role("link", name="Correct labels").click()
    for person, keys in (("Ann", ("x", "Enter")), ("Ben", ("Enter", "Enter"))):
        name = page.get_by_label("Your name")
        name.fill(person)
        with page.expect_navigation():
            name.press("Enter")
        expect(page.locator(".segment.draft")).to_have_count(6)
        if person == "Ann":
            press(page, "n")  # the address keeps the video
        expect(page.get_by_label("Video", exact=True)).to_have_value("film1")
        expect(page.locator(".segment.draft")).to_have_count(6)
        press(page, *keys)
        expect(page.locator(".segment.draft")).to_have_count(4)
        expect(page.locator(".save-state.saved")).to_be_visible()
    page.reload()
    page.get_by_text("Agreement with somebody else").click()
    expect(page.locator(".agreement")).to_contain_text("1 video labelled by both")
    expect(page.locator(".agreement tr", has_text="crack eggs")).to_contain_text("1 / 0 / 0")
    # Only unsure drafts: of film1 it is the second one, which Ben has accepted; so the next film with one is opened.
    press(page, "u", "j")
    expect(page.get_by_label("Video", exact=True)).to_have_value("film2")
    expect(page.locator(".segment.draft.chosen")).to_have_count(1)
    expect(page.locator(".caption-line .now")).to_contain_text("whisk")  # it stays this film
    expect(page.get_by_label("Video", exact=True)).to_have_value("film2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1024
    # The clock runs over the captions, and the keys are told.
    press(page, "Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    press(page, "Space", "?")
    expect(page.get_by_role("dialog")).to_contain_text("Everything by keyboard")
    press(page, "Escape", "+", "+")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("(t => t.scrollWidth > 1.5 * t.clientWidth)(document.querySelector('.timeline'))")


def wait_for_time(page: Any, holds: Callable[[float], bool]) -> float:
    """The time of the video, once it is as it should be (the app's policy forbids `wait_for_function`)."""
    end = time.monotonic() + 300
    while not holds(seconds := page.evaluate("document.querySelector('video').currentTime")):
        assert time.monotonic() < end, seconds
        page.wait_for_timeout(100)
    return float(seconds)


def test_a_video_is_streamed_and_follows_the_labels(tab: Tab, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    make_films(tmp_path, 1)
    with av.open(str(tmp_path / "films" / "film0.webm"), "w") as film:
        stream = film.add_stream("libvpx", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(5 * 60):
            picture = np.full((48, 64, 3), number % 256, dtype=np.uint8)
            film.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        film.mux(stream.encode())
    with app_address(tmp_path, "films", "draft.csv") as address:
        page = tab(address)
        page.get_by_role("row", name="draft.csv").get_by_role("link", name="Correct labels").click()
        video = page.locator("video")
        expect(video).to_be_visible()
        expect(page.locator(".clock")).to_contain_text("0:01.0")  # where the first draft starts
        press(page, "j", "j")
        expect(page.locator(".clock")).to_contain_text("0:21.0 / 1:0")
        wait_for_time(page, lambda seconds: seconds == 21)
        expect(page.locator(".caption-line .now")).to_contain_text("whisk")
        press(page, "Space")
        wait_for_time(page, lambda seconds: seconds > 21.5)
        press(page, "Space", "]")
        end = wait_for_time(page, lambda seconds: seconds > 21.5)
        expect(page.locator(".save-state.saved")).to_be_visible()
        expect(page.locator(".segment.own")).to_have_count(1)
        page.goto(address)  # so that nobody asks any more when the server ends
        page.get_by_role("row", name="draft.csv").wait_for()
    assert saved_labels(tmp_path)["film0"] == [("whisk", 21, pytest.approx(end, abs=0.3))]
