"""`msg2 next` with videos to learn from: the learned ranker, times, and several steps ahead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import msg2 as package
from msg2 import assist
from msg2.options import SplitOptions


def test_learned_steps_times_and_horizon(msg2, graph: Path, table: Path) -> None:
    common = ("next", graph, "--data", table, "--done", "whisk")
    found = msg2(*common, "--ranker", "learned", "--horizon", 2, "--json").json
    learnt, task = package.read_graph(graph), package.read(table)
    ranker = assist.learned(learnt, task)
    ahead = assist.outlook(ranker, ["whisk"], 2, assist.endings(learnt, task))
    assert {one["step"]: one["probability"] for one in found["next"]} == pytest.approx(dict(ranker(["whisk"])))
    assert {one["step"]: one["within"] for one in found["next"]} == pytest.approx(ahead.within)
    assert (found["ranker"], found["horizon"], found["path"]) == ("learned", 2, list(ahead.path))
    assert found["ends"] == pytest.approx(ahead.ends)
    assert found["path_probability"] == pytest.approx(ahead.likely)
    wait_for = assist.waiting(task)
    for one in found["next"]:
        wait = wait_for("whisk", one["step"])
        assert one["seconds"] == (None if wait is None else pytest.approx(vars_of(wait)))
    said = msg2(*common, "--ranker", "learned", "--horizon", 2).out
    assert re.search(r"^step +percent +within 2", said)
    assert f"Most probable: {', then '.join(ahead.path)}" in said


def vars_of(wait: assist.Wait) -> dict[str, float]:
    return {"median": wait.median, "low": wait.low, "high": wait.high, "gaps": wait.gaps}


def test_a_horizon_needs_no_videos(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--horizon", 3, "--json").json
    assert found["ends"] == pytest.approx(0)
    assert sum(one["within"] for one in found["next"]) == pytest.approx(3)
    assert "seconds" not in found["next"][0]
    everything = [part for name in package.read_graph(graph).steps for part in ("--done", name)]
    assert msg2("next", graph, *everything, "--horizon", 2).out == "Nothing is left: all steps are done.\n"


def test_bigram_learns_from_data_too(msg2, graph: Path, table: Path) -> None:
    found = msg2("next", graph, "--data", table, "--ranker", "bigram", "--json").json["next"]
    assert {one["step"]: one["probability"] for one in found} == pytest.approx(
        dict(assist.bigram(package.read(table))([]))
    )


def test_accuracy_of_the_learned_ranker(msg2, many: Path) -> None:
    arguments = ("next", many, "--evaluate", "--splits", 1, "--delta", "0.7", "--task", "Make Coffee")
    ran = msg2(*arguments, "--ranker", "learned", "--json")
    training, test = assist.split(package.read(many, task="Make Coffee"), SplitOptions(seed=0))
    expected = assist.evaluate(assist.learned(package.infer(training, delta=0.7), training), test).accuracy
    assert ran.json["accuracy"] == pytest.approx(expected)
    assert (ran.json["ranker"], ran.json["method"]) == ("learned", "msg2")


def test_a_step_of_the_data_that_the_graph_lacks_is_named(msg2, graph: Path, tmp_path: Path) -> None:
    data = tmp_path / "other.csv"
    data.write_text("video,step\nv1,whisk\nv1,serve\n")
    ran = msg2("next", graph, "--data", data, "--ranker", "learned")
    assert "'serve' is not a step of the graph" in ran.complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ["next", "g.json", "--ranker", "learned"],
        ["next", "g.json", "--ranker", "nonsense"],
        ["next", "g.json", "--horizon", "0"],
        ["next", "g.json", "--repeats", "keep"],
        ["next", "t.csv", "--evaluate", "--horizon", "2"],
        ["next", "t.csv", "--evaluate", "--data", "t.csv"],
    ],
)
def test_options_that_mean_nothing_are_usage_errors(msg2, arguments: list[str]) -> None:
    assert msg2(*arguments).code == 2
