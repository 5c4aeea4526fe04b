"""`msg2 show -o page.html`: the page with its videos."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


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
