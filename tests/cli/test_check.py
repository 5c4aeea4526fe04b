"""`msg2 check`: mistakes of whole videos, and with --online every step as it comes, against the library."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import msg2 as package
from msg2 import assist
from tests.cli.conftest import Msg2


def steps_table(path: Path, **videos: list[str]) -> Path:
    rows = [f"{video},{step}" for video, steps in videos.items() for step in steps]
    path.write_text("\n".join(["video,step", *rows]) + "\n")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return steps_table(tmp_path / "old.csv", **{f"v{number}": ["whisk", "dip", "fry"] for number in range(60)})


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return steps_table(tmp_path / "new.csv", n1=["whisk", "fry", "dip"], n2=["whisk", "dip", "fry"])


@pytest.fixture
def usual_graph(msg2: Msg2, tmp_path: Path, old: Path) -> Path:
    """First whisk, then dip, then fry."""
    path = tmp_path / "graph.json"
    assert msg2("infer", old, "-o", path).code == 0
    return path


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    """A graph with all kinds, made by hand: all that breaks it is a mistake for sure."""
    path = tmp_path / "tea.json"
    path.write_text(
        json.dumps(
            {
                "format": "msg2.graph/2",
                "task": "tea",
                "steps": ["boil", "bag", "leaves", "pour", "sugar", "spoon", "stir"],
                "preconditions": {
                    "pour": {"all": ["boil", {"any": ["bag", "leaves"]}]},
                    "stir": {"all": ["pour", "spoon"]},
                },
                "order": [["sugar", "stir"]],
                "exclusive": [["bag", "leaves"]],
                "optional": ["sugar", "spoon", "stir"],
                "repeats": {"stir": 0.4},
            }
        )
    )
    return path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """One video for each kind of mistake, and one without any."""
    boil = ["boil", "bag", "pour"]
    return steps_table(
        tmp_path / "wrong.csv",
        v_both=["boil", "bag", "leaves", "pour"], v_late=["bag", "pour", "boil"], v_left=["boil", "bag"],
        v_need=[*boil, "stir"], v_order=[*boil, "spoon", "stir", "sugar"], v_right=boil,
    )  # fmt: skip


def test_mistakes_in_words(msg2: Msg2, tea: Path, wrong: Path) -> None:
    ran = msg2("check", tea, wrong, "--absent", "skipped")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:6] == [
        "v_both  as step 3: 'leaves' as well as 'bag' (100 %)",
        "v_late  as step 3: 'boil' after 'pour' (100 %)",
        "v_left  without 'pour' (100 %)",
        "v_need  as step 4: 'stir' without 'spoon' (100 %)",
        "v_order  as step 6: 'sugar' after 'stir' (100 %)",
        "",
    ]
    assert re.search(r"^pour +5 +0 +1$", ran.out, re.MULTILINE)
    assert lines[-1] == (
        "5 of 6 videos have a mistake that is more probable than not; --json has 0 less probable ones and 0 steps that "
        "were not seen."
    )


def test_what_may_lack_its_label_is_not_accused(msg2: Msg2, tea: Path, wrong: Path) -> None:
    for options in ((), ("--absent", "unknown")):  # a table of steps says nothing else
        ran = msg2("check", tea, wrong, *options)
        assert [line.split(" ")[0] for line in ran.out.splitlines()[:4]] == ["v_both", "v_late", "v_order", ""]
        assert ran.out.splitlines()[-1].startswith("3 of 6 videos have a mistake")
        assert "2 steps that were not seen" in ran.out
        found = msg2("check", tea, wrong, "--json", *options).json
        assert found["accused"] == ["v_both", "v_late", "v_order"]
        assert [(one["video"], one["kind"], one["step"]) for one in found["not_seen"]] == [
            ("v_left", "left out", "pour"),
            ("v_need", "need", "stir"),
        ]


def test_the_contract_of_the_json(msg2: Msg2, tea: Path, wrong: Path) -> None:
    found = msg2("check", tea, wrong, "--absent", "skipped", "--json").json
    expected = [
        {"video": "v_both", "step": "leaves", "kind": "exclusive", "unmet": ["bag"], "position": 3},
        {"video": "v_late", "step": "boil", "kind": "order", "unmet": ["pour"], "position": 3},
        {"video": "v_left", "step": "pour", "kind": "left out", "unmet": [], "position": None},
        {"video": "v_need", "step": "stir", "kind": "need", "unmet": ["spoon"], "position": 4},
        {"video": "v_order", "step": "sugar", "kind": "order", "unmet": ["stir"], "position": 6},
    ]
    assert found["mistakes"] == [{**one, "probability": 1.0, "start": None} for one in expected]
    assert found["fit"].keys() == {"v_both", "v_late", "v_left", "v_need", "v_order", "v_right"}
    assert all(value < 0 for value in found["fit"].values())
    assert max(found["fit"], key=found["fit"].get) == "v_right"
    accused = {one["video"] for one in found["mistakes"] if one["probability"] >= 0.5}
    assert set(found["accused"]) == accused
    assert found == assist.check(package.load(tea), package.read(wrong), "skipped").to_json()


def test_repetitions_where_the_data_keep_them(msg2: Msg2, tea: Path, tmp_path: Path) -> None:
    data = steps_table(tmp_path / "again.csv", v=["boil", "boil", "bag", "pour"])
    assert msg2("check", tea, data, "--json").json["mistakes"] == []
    (again,) = msg2("check", tea, data, "--repeats", "keep", "--json").json["mistakes"]
    assert (again["kind"], again["step"], again["position"]) == ("repeated", "boil", 2)


def test_less_probable_mistakes_are_in_the_json_only(msg2: Msg2, usual_graph: Path, tmp_path: Path) -> None:
    """Ten of the 40 videos behind the graph dip first: that is usual."""
    graph = json.loads(usual_graph.read_text())
    graph["evidence"]["dip"]["edges"]["whisk"] |= {"before": 30, "together": 40}
    usual_graph.write_text(json.dumps(graph))
    data = steps_table(tmp_path / "data.csv", n=["dip", "whisk", "fry"])
    (found,) = msg2("check", usual_graph, data, "--json").json["mistakes"]
    assert (found["step"], found["unmet"]) == ("whisk", ["dip"])
    assert 0 < found["probability"] < 0.5
    assert msg2("check", usual_graph, data, "--json").json["accused"] == []
    ran = msg2("check", usual_graph, data)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "")
    assert ran.out.splitlines()[-1].startswith("0 of 1 videos have a mistake that is more probable than not")
    assert "--json has 1 less probable ones" in ran.out


def test_as_the_graph_was_learnt_unless_said_otherwise(msg2: Msg2, old: Path, tmp_path: Path) -> None:
    graph, data = tmp_path / "graph.json", steps_table(tmp_path / "short.csv", n=["whisk", "dip"])
    for absent, other in (("skipped", "unknown"), ("unknown", "skipped")):
        assert msg2("infer", old, "-o", graph, "--absent", absent).code == 0
        for options, skipped in (((), absent == "skipped"), (("--absent", other), other == "skipped")):
            found = msg2("check", graph, data, "--json", *options).json
            assert [one["kind"] for one in found["mistakes" if skipped else "not_seen"]] == ["left out"]
            assert found["not_seen" if skipped else "mistakes"] == []
    ran = msg2("check", graph, data, "--absent", "perhaps")
    assert (ran.code, ran.out) == (2, "")


def test_mistakes_on_the_picture(msg2: Msg2, usual_graph: Path, tmp_path: Path) -> None:
    data = steps_table(tmp_path / "late.csv", n=["dip", "whisk", "fry"], m=["whisk", "dip", "fry"])
    ran = msg2("check", usual_graph, data, "--json", "-o", tmp_path / "mistakes.svg")
    assert [(one["video"], one["step"], one["unmet"]) for one in ran.json["mistakes"]] == [("n", "whisk", ["dip"])]
    assert "1 of 2 wrong" in (tmp_path / "mistakes.svg").read_text()


def test_overlapping_segments_accuse_nobody(msg2: Msg2, usual_graph: Path, tmp_path: Path) -> None:
    data = tmp_path / "overlap.csv"
    data.write_text("video,step,start,end\nv,dip,0,9\nv,whisk,5,12\nv,fry,20,25\n")
    assert msg2("check", usual_graph, data, "--json").json["mistakes"] == []
    (late,) = msg2("check", usual_graph, data, "--overlap", "start", "--json").json["mistakes"]
    assert (late["step"], late["unmet"], late["start"]) == ("whisk", ["dip"], 5)
    assert "at 0:05: 'whisk' after 'dip'" in msg2("check", usual_graph, data, "--overlap", "start").out


def test_the_task_that_the_graph_is_about(msg2: Msg2, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    msg2("infer", many, "-o", out, "--task", "Make Coffee")
    found = msg2("check", out, many, "--json").json
    assert found["videos"] == len(package.read(many, task="Make Coffee"))


def test_data_of_another_task(msg2: Msg2, usual_graph: Path, many: Path, tmp_path: Path) -> None:
    assert "holds no task 'old'" in msg2("check", usual_graph, many).complaint
    other = steps_table(tmp_path / "other.csv", v=["stir"])
    ran = msg2("check", usual_graph, other, "-o", tmp_path / "x.svg")
    assert "data of another task: 'stir' is not a step of the graph" in ran.complaint
    assert not (tmp_path / "x.svg").exists()


# -- online -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", ["skipped", "unknown"])
def test_all_online_verdicts_as_json(msg2: Msg2, usual_graph: Path, new: Path, absent: str) -> None:
    found = msg2("check", usual_graph, new, "--online", "--json", "--absent", absent).json
    graph = package.load(usual_graph)
    assert found == assist.check_online(graph, package.read(new, repeats="keep"), absent=absent).to_json()
    skipped = absent == "skipped"  # else a step without the one that it needs claims nothing
    assert [verdict["mistake"] for verdict in found["videos"]["n1"]] == [False, skipped, True]
    assert [verdict["mistake"] for verdict in found["videos"]["n2"]] == [False] * 3


def test_online_mistakes_in_words(msg2: Msg2, usual_graph: Path, new: Path) -> None:
    early, late, _, total = msg2("check", usual_graph, new, "--online", "--absent", "skipped").out.splitlines()
    assert re.fullmatch(r"n1  as step 2: 'fry' without 'dip' \(9\d %\)", early)
    assert re.fullmatch(r"n1  as step 3: 'dip' after 'fry' \(9\d %\)", late)
    assert total.startswith("2 of 6 labels in 2 videos are mistakes")
    unknown = msg2("check", usual_graph, new, "--online").out.splitlines()
    assert unknown == [late, "", total.replace("2 of 6", "1 of 6")]


def test_online_and_afterwards_the_last_step_is_judged_alike(msg2: Msg2, usual_graph: Path, new: Path) -> None:
    online = msg2("check", usual_graph, new, "--online", "--json", "--absent", "skipped").json["videos"]["n1"]
    afterwards = msg2("check", usual_graph, new, "--json", "--absent", "skipped").json["mistakes"]
    assert online[-1]["mistakes"] == afterwards


def test_what_a_graph_made_by_hand_forbids_in_words(msg2: Msg2, tea: Path, wrong: Path) -> None:
    ran = msg2("check", tea, wrong, "--online", "--absent", "skipped")
    assert ran.out.splitlines()[:5] == [
        "v_both  as step 3: 'leaves' as well as 'bag' (100 %)",
        "v_late  as step 2: 'pour' without 'boil' (100 %)",
        "v_late  as step 3: 'boil' after 'pour' (100 %)",
        "v_need  as step 4: 'stir' without 'spoon' (100 %)",
        "v_order  as step 6: 'sugar' after 'stir' (100 %)",
    ]


def test_a_step_that_the_graph_does_not_have(msg2: Msg2, usual_graph: Path, tmp_path: Path) -> None:
    data = steps_table(tmp_path / "other.csv", v=["whisk", "stir"])
    (first, *_) = msg2("check", usual_graph, data, "--online").out.splitlines()
    assert re.fullmatch(r"v  as step 2: 'stir', which is no step of the graph \(\d\d %\)", first)
    (first, *_) = msg2("check", usual_graph, data, "--absent", "skipped").out.splitlines()
    assert re.fullmatch(r"v  as step 2: 'stir', which is no step of the graph \(\d\d %\)", first)


def test_a_stated_rule_is_certain_whatever_the_recordings_do(msg2: Msg2, tmp_path: Path) -> None:
    data = steps_table(
        tmp_path / "repairs.csv",
        a=["open case", "unplug", "swap disk"], b=["open case", "unplug", "swap disk"],
        c=["unplug", "open case", "swap disk"],
    )  # fmt: skip
    graph = tmp_path / "repair.json"
    assert msg2("infer", data, "-o", graph, "--absent", "skipped", "--require", "unplug<open case").code == 0
    assert json.loads(graph.read_text())["rules"] == [{"before": "unplug", "after": "open case", "kind": "needs"}]
    for options in ((), ("--online",)):
        lines = msg2("check", graph, data, "--absent", "skipped", *options).out.splitlines()
        assert "a  as step 2: 'unplug' after 'open case' (100 %)" in lines
    assert lines[0] == "a  as step 1: 'open case' without 'unplug' (100 %)"


def test_a_picture_is_of_whole_videos(msg2: Msg2, usual_graph: Path, new: Path, tmp_path: Path) -> None:
    ran = msg2("check", usual_graph, new, "--online", "-o", tmp_path / "x.svg")
    assert (ran.code, ran.out) == (2, "")
    assert "--online" in ran.err
    assert not (tmp_path / "x.svg").exists()
