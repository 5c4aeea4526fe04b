"""`msg2 check --online`: what is said and what JSON holds, against the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msg2 as package
from msg2.assist.online import watch

Msg2 = Callable[..., Any]


def table(path: Path, **videos: list[str]) -> Path:
    rows = [f"{video},{step}" for video, steps in videos.items() for step in steps]
    path.write_text("\n".join(["video,step", *rows]) + "\n")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return table(tmp_path / "old.csv", **{f"v{number}": ["whisk", "dip", "fry"] for number in range(9)})


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return table(tmp_path / "new.csv", n1=["whisk", "fry", "dip", "dip", "juggle"], n2=["whisk", "dip", "fry"])


@pytest.fixture
def graph(msg2: Msg2, tmp_path: Path, old: Path) -> Path:
    path = tmp_path / "graph.json"
    assert msg2("infer", old, "-o", path).code == 0
    return path


def test_all_verdicts_as_json(msg2: Msg2, graph: Path, old: Path, new: Path) -> None:
    found = msg2("check", graph, new, "--online", "--data", old, "--json").json
    judge = watch(package.read_graph(graph), package.read(old, repeats="keep"))
    videos = package.read(new, repeats="keep")
    expected = {video.id: [verdict.to_json() for verdict in judge.video(video)] for video in videos}
    assert found == {"task": "old", "threshold": 0.5, "videos": expected}
    assert [verdict["mistake"] for verdict in found["videos"]["n1"]] == [False, True, True, True, True]


def test_mistakes_in_words(msg2: Msg2, graph: Path, old: Path, new: Path) -> None:
    early, late, again, unknown, _, total = msg2("check", graph, new, "--online", "--data", old).out.splitlines()
    assert early.startswith("n1  as step 2: 'fry', ")
    assert early.endswith("before 'dip' (as in 0 of 9 videos), without 'dip'")
    assert late.endswith("after 'fry', which needs it (as in 0 of 9 videos)")
    assert again.endswith("once more (as in 0 of 9 videos)")
    assert unknown.endswith("never seen in 9 videos")
    assert total.startswith("4 of 8 labels in 2 videos are mistakes")


def test_without_training_each_video_is_judged_by_the_others(msg2: Msg2, graph: Path, tmp_path: Path) -> None:
    usual = {f"v{number}": ["whisk", "dip", "fry"] for number in range(9)}
    data = table(tmp_path / "mixed.csv", **usual, w=["dip", "whisk", "fry"])
    found = msg2("check", graph, data, "--online", "--json").json["videos"]
    (finding,) = found["w"][0]["findings"]
    assert (finding["times"], finding["chances"]) == (0, 9)
    assert {video for video, verdicts in found.items() if any(verdict["mistake"] for verdict in verdicts)} == {"w"}


def test_options_that_do_not_go_together(msg2: Msg2, graph: Path, old: Path, new: Path, tmp_path: Path) -> None:
    for arguments in (["--data", old], ["--online", "-o", tmp_path / "x.svg"]):
        ran = msg2("check", graph, new, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "--online" in ran.err
    assert not (tmp_path / "x.svg").exists()
