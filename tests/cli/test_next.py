"""`msg2 next`: what comes next, from a graph or learned from videos, and how often that is right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import msg2 as package
from msg2 import assist
from msg2.assist.forecasting import fit_end_probability, look_ahead
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import evaluate_ranker, train_test_split
from msg2.assist.rankers import bigram, grprop, recency
from msg2.assist.time_left import WaitingTime, fit_waiting_times
from tests.cli.conftest import TRUTH


def test_next_steps(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--done", "heat", "--done", "whisk", "--json").json
    assert (found["task"], found["done"], found["ranker"]) == ("toast", ["heat", "whisk"], "recency")
    expected = assist.next_steps(package.load(graph), ["heat", "whisk"])
    assert [(step["step"], step["rank"]) for step in found["next"]] == [(r.step, r.rank) for r in expected]
    shared = {"probability": None, "unmet": [], "ruled_out_by": [], "awaited": []}
    assert found["next"][0] == {"step": "dip", "rank": 1, "eligible": True, **shared}
    assert found["next"][1] == {"step": "fry", "rank": 2, "eligible": False, **shared, "unmet": ["dip"]}
    said = msg2("next", graph, "--done", "whisk").out
    assert re.search(r"^step +rank +still needs", said)
    assert re.search(r"^fry +3 +'dip'", said, re.MULTILINE)
    assert "percent" not in said


def test_the_order_of_what_is_done_counts(msg2, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    forks = {**TRUTH, "steps": ["a", "b", "c", "d"], "preconditions": {"c": "a", "d": "b"}}
    path.write_text(json.dumps(forks))
    for done, best in (("ab", "d"), ("ba", "c")):
        ran = msg2("next", path, "--done", done[0], "--done", done[1], "--json")
        assert ran.json["next"][0]["step"] == best


def test_what_is_done_rules_out_what_a_run_does_in_its_place(msg2, tmp_path: Path) -> None:
    path = tmp_path / "tea.json"
    kinds = {"order": [["sugar", "stir"]], "exclusive": [["bag", "leaves"]], "optional": ["sugar"]}
    steps = ["bag", "leaves", "stir", "sugar"]
    path.write_text(json.dumps({"format": "msg2.graph/2", "task": "tea", "steps": steps, "preconditions": {}, **kinds}))
    found = {one["step"]: one for one in msg2("next", path, "--done", "bag", "--json").json["next"]}
    assert {name: one["eligible"] for name, one in found.items()} == {"leaves": False, "stir": True, "sugar": True}
    assert found["leaves"]["rank"] == 3
    found = {one["step"]: one for one in msg2("next", path, "--done", "stir", "--json").json["next"]}
    assert {name: one["eligible"] for name, one in found.items()} == {"bag": True, "leaves": True, "sugar": False}
    for done, line in (
        ("bag", r"^leaves +3 +ruled out by 'bag'\s*$"),
        ("stir", r"^sugar +3 +ruled out by 'stir'\s*$"),
    ):
        assert re.search(line, msg2("next", path, "--done", done).out, re.MULTILINE)
    path.write_text(path.read_text().replace('"optional": ["sugar"]', '"optional": []'))
    assert re.search(r"^stir +\S+ +\(after 'sugar', if done\)\s*$", msg2("next", path).out, re.MULTILINE)


def test_grprop_ranks_by_its_own_numbers(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--ranker", "grprop", "--json").json["next"]
    policy = grprop(package.load(graph))([])
    assert [step["step"] for step in found] == sorted(policy, key=lambda name: -policy[name])
    assert {step["probability"] for step in found} == {None}


def test_a_step_that_is_not_there(msg2, graph: Path) -> None:
    assert (
        "'wisk' is not a step of the graph\n  did you mean 'whisk'?" in msg2("next", graph, "--done", "wisk").complaint
    )


def test_nothing_is_left(msg2, graph: Path) -> None:
    done = [argument for step in ("whisk", "dip", "fry", "heat") for argument in ("--done", step)]
    assert msg2("next", graph, *done, "--json").json["next"] == []
    assert msg2("next", graph, *done).code == 0


def test_when_all_is_done_nothing_is_left(msg2, graph: Path) -> None:
    done = [word for step in package.load(graph).steps for word in ("--done", step)]
    assert msg2("next", graph, *done).out == "Nothing is left: all steps are done.\n"


def test_a_step_may_begin_with_a_dash(msg2, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps({**TRUTH, "steps": ["-a", "--json"], "preconditions": {"--json": "-a"}}))
    assert msg2("next", path, "--done=-a", "--json").json["next"][0]["step"] == "--json"


def test_accuracy_on_held_out_videos(msg2, many: Path) -> None:
    arguments = ("next", many, "--evaluate", "--splits", 2, "--task", "Make Coffee", "--json")
    ran = msg2(*arguments, "--method", "msg2", "--set", "delta=0.7", "--ranker", "recency")
    task, shares = package.read(many, task="Make Coffee", repeats="keep"), []
    for seed in range(2):
        training, test = train_test_split(task, seed=seed)
        graph = package.infer(training, "msg2", delta=0.7)
        shares.append(evaluate_ranker(recency(graph), test).accuracy)
    assert ran.json["tasks"] == {"Make Coffee": pytest.approx(sum(shares) / 2)}
    assert (ran.json["method"], ran.json["splits"]) == ("msg2", 2)
    default = msg2(*arguments).json
    assert default["method"] == "likelihood"
    assert default["accuracy"] == pytest.approx(assist.evaluate_next_step(task, method="likelihood", splits=2).accuracy)
    all_tasks = msg2("next", many, "--evaluate", "--splits", 1, "--ranker", "bigram", "--json").json
    assert len(all_tasks["tasks"]) == 3
    assert all_tasks["accuracy"] == pytest.approx(sum(all_tasks["tasks"].values()) / 3)
    assert all_tasks["method"] is None
    assert "mean of tasks" in msg2("next", many, "--evaluate", "--splits", 1, "--ranker", "bigram").out


def test_a_task_with_one_video_does_not_stop_the_others(msg2, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("task,video,step\nA,1,x\nA,1,y\nB,1,x\nB,2,x\nB,1,y\nB,2,y\n")
    for command in (["next", table, "--evaluate"], ["sweep", table, "-o", tmp_path / "s.csv"]):
        ran = msg2(*command)
        assert ran.code == 0
        assert "A: left out" in ran.err
    only = msg2("next", table, "--evaluate", "--task", "A")
    assert "none can be held out" in only.complaint


def test_learned_steps_times_and_horizon(msg2, graph: Path, table: Path) -> None:
    common = ("next", graph, "--data", table, "--done", "whisk")
    found = msg2(*common, "--ranker", "learned", "--horizon", 2, "--json").json
    learnt, task = package.load(graph), package.read(table)
    ranker = fit_forecaster(learnt, task)
    ahead = look_ahead(ranker, ["whisk"], 2, fit_end_probability(learnt, task))
    assert {one["step"]: one["probability"] for one in found["next"]} == pytest.approx(dict(ranker(["whisk"])))
    assert {one["step"]: one["within"] for one in found["next"]} == pytest.approx(ahead.within)
    assert (found["ranker"], found["horizon"], found["path"]) == ("learned", 2, list(ahead.path))
    assert msg2(*common, "--horizon", 2, "--json").json == found  # the default where there are videos
    assert found["ends"] == pytest.approx(ahead.end_probability)
    assert found["path_probability"] == pytest.approx(ahead.path_probability)
    wait_for = fit_waiting_times(task)
    for one in found["next"]:
        wait = wait_for("whisk", one["step"])
        assert one["seconds"] == (None if wait is None else pytest.approx(vars_of(wait)))
    said = msg2(*common, "--ranker", "learned", "--horizon", 2).out
    assert re.search(r"^step +percent +within 2", said)
    assert f"Most probable: {', then '.join(ahead.path)}" in said


def vars_of(wait: WaitingTime) -> dict[str, float]:
    return {"median": wait.median, "low": wait.low, "high": wait.high, "gaps": wait.gaps}


def test_a_horizon_needs_no_videos(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--horizon", 3, "--json").json
    ahead = look_ahead(recency(package.load(graph)), [], 3)
    assert (found["path"], found["path_probability"], found["ends"]) == (list(ahead.path), None, None)
    assert {one["within"] for one in found["next"]} == {None}
    assert "seconds" not in found["next"][0]
    said = msg2("next", graph, "--horizon", 3).out
    assert said.endswith(f"Most probable: {', then '.join(ahead.path)}.\n")
    assert "%" not in said
    assert "within" not in said
    everything = [part for name in package.load(graph).steps for part in ("--done", name)]
    assert msg2("next", graph, *everything, "--horizon", 2).out == "Nothing is left: all steps are done.\n"


def test_bigram_learns_from_data_too(msg2, graph: Path, table: Path) -> None:
    found = msg2("next", graph, "--data", table, "--ranker", "bigram", "--json").json["next"]
    assert {one["step"]: one["probability"] for one in found} == pytest.approx(dict(bigram(package.read(table))([])))


def test_accuracy_of_the_learned_ranker(msg2, many: Path) -> None:
    arguments = (
        "next",
        many,
        "--evaluate",
        "--splits",
        1,
        "--method",
        "msg2",
        "--set",
        "delta=0.7",
        "--task",
        "Make Coffee",
    )
    ran = msg2(*arguments, "--ranker", "learned", "--json")
    training, test = train_test_split(package.read(many, task="Make Coffee", repeats="keep"), seed=0)
    expected = evaluate_ranker(fit_forecaster(package.infer(training, "msg2", delta=0.7), training), test).accuracy
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


def test_waits_of_days_are_told_in_days(msg2, tmp_path: Path) -> None:
    log, graph = tmp_path / "log.csv", tmp_path / "graph.json"
    rows = "".join(f"{case},a,2012-01-01\n{case},b,2012-01-0{4 + case % 2}\n" for case in range(30))
    log.write_text("case,activity,time\n" + rows)
    msg2("infer", log, "-o", graph)
    said = msg2("next", graph, "--data", log, "--done", "a").out
    assert "days" in said.splitlines()[0]
    assert re.search(r"^b .* [34]\.\d \(3\.\d to 4\.\d\)", said, re.MULTILINE)
