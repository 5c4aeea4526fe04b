"""`msg2 check`: mistakes of whole videos, and with --online every step as it comes, against the library."""

from __future__ import annotations

from pathlib import Path

import pytest

import msg2 as package
from msg2 import assist
from msg2.assist.online_monitoring import fit_monitor
from tests.cli.conftest import Msg2


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.csv"
    path.write_text("video,step,start,end\nv,dip,0,1\nv,whisk,2.5,3\nw,whisk,0,1\nw,dip,1,2\nx,fry,0,1\n")
    return path


def test_mistakes_in_words(msg2, graph: Path, wrong: Path) -> None:
    ran = msg2("check", graph, wrong)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "v  at 0.0 s: 'dip' before 'whisk'"
    assert lines[1] == "x  at 0.0 s: 'fry' before 'dip' and 'whisk'"
    assert lines[2] == "x  without 'whisk', needed by 'fry'"
    assert lines[-1] == "2 of 5 labels in 3 videos too early, 2 steps skipped."


def test_mistakes_as_json_and_picture(msg2, graph: Path, wrong: Path, tmp_path: Path) -> None:
    ran = msg2("check", graph, wrong, "--json", "-o", tmp_path / "mistakes.svg")
    assert ran.json == assist.check(package.load(graph), package.read(wrong)).to_json()
    first = {"video": "v", "step": "dip", "start": 0.0, "position": 1, "unmet": ["whisk"], "completed": []}
    assert ran.json["mistakes"][0] == first
    assert "1 of 2 too early" in (tmp_path / "mistakes.svg").read_text()


def test_the_task_that_the_graph_is_about(msg2, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    msg2("infer", many, "-o", out, "--task", "Make Coffee", "--delta", "0.8")
    found = msg2("check", out, many, "--json").json
    assert found["videos"] == len(package.read(many, task="Make Coffee"))


def test_data_of_another_task(msg2, graph: Path, many: Path, tmp_path: Path) -> None:
    assert "holds no task 'toast'" in msg2("check", graph, many).complaint
    other = tmp_path / "other.csv"
    other.write_text("video,step\nv,stir\n")
    ran = msg2("check", graph, other, "-o", tmp_path / "x.svg")
    assert "video 'v': 'stir' is not a step of the graph" in ran.complaint
    assert not (tmp_path / "x.svg").exists()


def steps_table(path: Path, **videos: list[str]) -> Path:
    rows = [f"{video},{step}" for video, steps in videos.items() for step in steps]
    path.write_text("\n".join(["video,step", *rows]) + "\n")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return steps_table(tmp_path / "old.csv", **{f"v{number}": ["whisk", "dip", "fry"] for number in range(9)})


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return steps_table(tmp_path / "new.csv", n1=["whisk", "fry", "dip", "dip", "juggle"], n2=["whisk", "dip", "fry"])


@pytest.fixture
def usual_graph(msg2: Msg2, tmp_path: Path, old: Path) -> Path:
    path = tmp_path / "graph.json"
    assert msg2("infer", old, "-o", path).code == 0
    return path


def test_all_online_verdicts_as_json(msg2: Msg2, usual_graph: Path, old: Path, new: Path) -> None:
    found = msg2("check", usual_graph, new, "--online", "--data", old, "--json").json
    judge = fit_monitor(package.load(usual_graph), package.read(old, repeats="keep"))
    videos = package.read(new, repeats="keep")
    expected = {video.id: [verdict.to_json() for verdict in judge.video(video)] for video in videos}
    assert found == {"task": "old", "threshold": 0.5, "videos": expected}
    assert [verdict["mistake"] for verdict in found["videos"]["n1"]] == [False, True, True, True, True]


def test_online_mistakes_in_words(msg2: Msg2, usual_graph: Path, old: Path, new: Path) -> None:
    early, late, again, unknown, _, total = msg2("check", usual_graph, new, "--online", "--data", old).out.splitlines()
    assert early.startswith("n1  as step 2: 'fry', ")
    assert early.endswith("before 'dip' (as in 0 of 9 videos), without 'dip'")
    assert late.endswith("after 'fry', which needs it (as in 0 of 9 videos)")
    assert again.endswith("once more (as in 0 of 9 videos)")
    assert unknown.endswith("never seen in 9 videos")
    assert total.startswith("4 of 8 labels in 2 videos are mistakes")


def test_without_training_each_video_is_judged_by_the_others(msg2: Msg2, usual_graph: Path, tmp_path: Path) -> None:
    usual = {f"v{number}": ["whisk", "dip", "fry"] for number in range(9)}
    data = steps_table(tmp_path / "mixed.csv", **usual, w=["dip", "whisk", "fry"])
    found = msg2("check", usual_graph, data, "--online", "--json").json["videos"]
    (finding,) = found["w"][0]["findings"]
    assert (finding["times"], finding["chances"]) == (0, 9)
    assert {video for video, verdicts in found.items() if any(verdict["mistake"] for verdict in verdicts)} == {"w"}


def test_options_that_do_not_go_together(msg2: Msg2, usual_graph: Path, old: Path, new: Path, tmp_path: Path) -> None:
    for arguments in (["--data", old], ["--online", "-o", tmp_path / "x.svg"]):
        ran = msg2("check", usual_graph, new, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "--online" in ran.err
    assert not (tmp_path / "x.svg").exists()
