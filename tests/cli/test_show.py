"""`msg2 show`: every format, comparisons, and the page with its videos."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from msg2.drawing import SUFFIXES


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format(msg2, graph: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / "new folder" / f"toast{suffix.upper()}"
    ran = msg2("show", graph, "-o", out)
    assert (ran.code, ran.out, ran.err) == (0, f"{out}\n", "")
    first = out.read_bytes()
    assert b"whisk" in first or suffix in (".png", ".pdf")
    assert msg2("show", graph, "-o", out).code == 0
    assert out.read_bytes() == first


def test_a_comparison_is_coloured(msg2, graph: Path, truth: Path, tmp_path: Path) -> None:
    out = tmp_path / "toast.svg"
    assert msg2("show", graph, "-o", out, "--compare", truth).code == 0
    assert "missing" in out.read_text()
    assert "whisk" in out.read_text()
    assert "Whisk" not in out.read_text()


def test_formats_that_cannot(msg2, graph: Path, tmp_path: Path) -> None:
    assert "no format msg2 can write" in msg2("show", graph, "-o", tmp_path / "toast.gif").complaint
    assert "without a suffix" in msg2("show", graph, "-o", tmp_path / "toast").complaint
    assert "cannot show a comparison" in msg2("show", graph, "-o", tmp_path / "t.pddl", "--compare", graph).complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toast.csv", "toast.json"]


def videos_of(page: Path) -> list[dict[str, Any]]:
    (data,) = re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    found: list[dict[str, Any]] = json.loads(data)["videos"]
    return found


def test_a_page_with_videos_and_their_files(msg2, graph: Path, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "toast.html"
    ran = msg2("show", graph, "-o", page, "--data", table)
    assert (ran.code, ran.out, ran.err) == (0, f"{page}\n", "")
    videos = videos_of(page)
    assert videos
    assert not any("file" in video for video in videos)
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / f"{videos[0]['id']}.mp4").touch()
    assert msg2("show", graph, "-o", page, "--data", table, "--media", tmp_path / "films").code == 0
    assert [video.get("file") for video in videos_of(page)][:2] == [f"../films/{videos[0]['id']}.mp4", None]


def test_a_comparison_keeps_the_names_of_the_graph_and_its_videos(
    msg2, graph: Path, table: Path, tmp_path: Path
) -> None:
    truth = tmp_path / "truth.json"
    content = json.loads(graph.read_text("utf-8"))
    truth.write_text(json.dumps({**content, "steps": [n.upper() for n in content["steps"]], "preconditions": {}}))
    page = tmp_path / "toast.html"
    assert msg2("show", graph, "-o", page, "--data", table, "--compare", truth).code == 0
    assert videos_of(page)
    assert "Compared with the true graph" in page.read_text("utf-8")


def test_what_does_not_go_together(msg2, graph: Path, table: Path, tmp_path: Path) -> None:
    assert msg2("show", graph, "-o", tmp_path / "x.html", "--media", tmp_path).code == 2
    assert "is no page" in msg2("show", graph, "-o", tmp_path / "x.svg", "--data", table).complaint
    assert (
        "holds no videos"
        in msg2("show", graph, "-o", tmp_path / "x.html", "--data", table, "--media", tmp_path).complaint
    )
    assert not list(tmp_path.glob("x.*"))


def test_pictures_for_papers(msg2, graph: Path, tmp_path: Path) -> None:
    plain, narrow = tmp_path / "plain.svg", tmp_path / "narrow.svg"
    assert msg2("show", graph, "-o", plain).code == 0
    assert msg2("show", graph, "-o", narrow, "--width", "4cm", "--direction", "TB", "--font-size", "9").code == 0
    widths = [
        int(found[1]) for path in (plain, narrow) if (found := re.search(r'<svg width="(\d+)pt', path.read_text()))
    ]
    assert widths[1] <= 4 / 2.54 * 72 + 1 < widths[0]
    assert "can be done at once" not in plain.read_text()
    assert msg2("show", graph, "-o", plain, "--legend").code == 0
    assert "can be done at once" in plain.read_text()
    assert msg2("show", graph, "-o", tmp_path / "toast.mmd", "--direction", "TB").code == 0
    assert (tmp_path / "toast.mmd").read_text().startswith("flowchart TB\n")


def test_options_that_a_format_does_not_have(msg2, graph: Path, tmp_path: Path) -> None:
    for name, *options in (
        ("x.svg", "--dpi", "300"),
        ("x.html", "--font-size", "9"),
        ("x.mmd", "--width", "8cm"),
        ("x.pddl", "--direction", "TB"),
        ("x.html", "--no-legend"),
    ):
        assert f"takes no {options[0].removeprefix('--no-').removeprefix('--').replace('-', ' ')}" in (
            msg2("show", graph, "-o", tmp_path / name, *options).complaint
        )
    for options in (["--width", "8"], ["--width", "0cm"], ["--dpi", "3"], ["--font-size", "0"], ["--direction", "RL"]):
        assert msg2("show", graph, "-o", tmp_path / "x.png", *options).code == 2
    assert not list(tmp_path.glob("x.*"))


def test_what_directly_follows_what(msg2, graph: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "data.svg"
    assert msg2("show", table, "-o", out, "--view", "directly-follows").code == 0
    assert "whisk" in out.read_text()
    assert "is a graph, not data" in msg2("show", graph, "-o", out, "--view", "directly-follows").complaint
    assert msg2("show", table, "-o", out, "--view", "directly-follows", "--compare", graph).code == 2
    assert msg2("show", graph, "-o", out, "--task", "toast").code == 2
