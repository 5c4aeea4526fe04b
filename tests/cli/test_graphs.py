"""`msg2 evaluate`, `next`, `check` and `show`: a graph at work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import msg2 as package
from msg2 import assist, metrics
from msg2.drawing import SUFFIXES
from msg2.options import SplitOptions

TRUTH = {
    "format": "msg2.graph/1",
    "task": "toast",
    "steps": ["Whisk ", "HEAT", "dip", "fry"],
    "preconditions": {"dip": "Whisk ", "fry": {"all": ["dip", "HEAT"]}},
}


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(TRUTH))
    return path


# -- evaluate ---------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_metrics(msg2, graph: Path, truth: Path, table: Path) -> None:
    ran = msg2("evaluate", graph, "--truth", truth, "--data", table, "--json")
    assert ran.err == ""
    ours, theirs, task = package.read_graph(graph), package.read_graph(truth), package.read(table)
    edges, inner = metrics.edge_scores(ours, theirs, ends=True), metrics.edge_scores(ours, theirs, ends=False)
    assert ran.json == {
        "accuracy": metrics.accuracy(ours, theirs),
        "spoc": metrics.spoc(ours, theirs),
        "compatibility": metrics.compatibility(ours, task),
        "precision": edges.precision,
        "recall": edges.recall,
        "f1": edges.f1,
        "inner_precision": 1.0,
        "inner_recall": inner.recall,
        "inner_f1": 0.8,
    }
    words = msg2("evaluate", graph, "--truth", truth).out
    assert re.search(r"^inner_recall +66.67$", words, re.MULTILINE)
    assert re.search(r"^compatibility +N/A$", words, re.MULTILINE)
    assert msg2("evaluate", graph, "--truth", truth, "--json").json["compatibility"] is None


def test_a_captaincook4d_graph_is_a_truth(msg2, graph: Path, tmp_path: Path) -> None:
    truth = tmp_path / "cook.json"
    steps = {"0": "START", "1": "whisk", "2": "dip", "3": "fry", "4": "heat", "5": "END"}
    edges = [[0, 1], [1, 2], [2, 3], [0, 4], [3, 5], [4, 5]]
    truth.write_text(json.dumps({"steps": steps, "edges": edges}))
    assert msg2("evaluate", graph, "--truth", truth, "--json").json["f1"] == 1.0


def test_captaincook4d_from_annotations_to_scores(msg2, data: Path, tmp_path: Path) -> None:
    folder = data / "captaincook4d"
    recipe, out = "Coffee", tmp_path / "coffee.json"
    annotations = folder / "task_graph_generation_annotations.json"
    assert msg2("infer", annotations, "-o", out, "--task", recipe, "--method", "always-before").code == 0
    [truth] = [path for path in (folder / "task_graphs").iterdir() if path.stem.lower() == recipe.lower()]
    found = msg2("evaluate", out, "--truth", truth, "--data", annotations, "--json").json
    assert 0.5 < found["f1"] <= 1
    assert 0.5 < found["compatibility"] <= 1
    by_time = msg2("evaluate", out, "--truth", truth, "--data", annotations, "--order", "time", "--json")
    assert by_time.code == 0


def test_graphs_that_cannot_be_compared(msg2, graph: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    for steps, expected in ((["whisk", "dip", "fry"], "'heat'"), (["whisk", "dip", "fry", "Heat", "heat "], "'Heat'")):
        other.write_text(json.dumps({**TRUTH, "steps": steps, "preconditions": {}}))
        assert expected in msg2("evaluate", graph, "--truth", other).complaint
        assert expected in msg2("show", graph, "-o", tmp_path / "x.svg", "--compare", other).complaint
        assert not (tmp_path / "x.svg").exists()


# -- next -------------------------------------------------------------------------------------------------------


def test_next_steps(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--done", "heat", "--done", "whisk", "--json").json
    assert (found["task"], found["done"], found["ranker"]) == ("toast", ["heat", "whisk"], "recency")
    expected = assist.next_steps(package.read_graph(graph), ["heat", "whisk"])
    assert [(step["step"], step["probability"]) for step in found["next"]] == [
        (r.step, r.probability) for r in expected
    ]
    assert found["next"][0] == {"step": "dip", "probability": 1.0, "eligible": True, "unmet": []}
    assert found["next"][1] == {"step": "fry", "probability": 0.0, "eligible": False, "unmet": ["dip"]}
    assert re.search(r"^fry +0.00 +'dip'", msg2("next", graph, "--done", "whisk").out, re.MULTILINE)


def test_the_order_of_what_is_done_counts(msg2, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    forks = {**TRUTH, "steps": ["a", "b", "c", "d"], "preconditions": {"c": "a", "d": "b"}}
    path.write_text(json.dumps(forks))
    for done, best in (("ab", "d"), ("ba", "c")):
        ran = msg2("next", path, "--done", done[0], "--done", done[1], "--json")
        assert ran.json["next"][0]["step"] == best


def test_grprop_ranks_by_its_own_probabilities(msg2, graph: Path) -> None:
    found = msg2("next", graph, "--ranker", "grprop", "--json").json["next"]
    chances = [step["probability"] for step in found]
    assert chances == sorted(chances, reverse=True)
    assert {step["step"]: step["probability"] for step in found} == assist.grprop(package.read_graph(graph))([])


def test_a_step_that_is_not_there(msg2, graph: Path) -> None:
    assert (
        "'wisk' is not a step of the graph\n  did you mean 'whisk'?" in msg2("next", graph, "--done", "wisk").complaint
    )


def test_nothing_is_left(msg2, graph: Path) -> None:
    done = [argument for step in ("whisk", "dip", "fry", "heat") for argument in ("--done", step)]
    assert msg2("next", graph, *done, "--json").json["next"] == []
    assert msg2("next", graph, *done).code == 0


def test_a_step_may_begin_with_a_dash(msg2, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps({**TRUTH, "steps": ["-a", "--json"], "preconditions": {"--json": "-a"}}))
    assert msg2("next", path, "--done=-a", "--json").json["next"][0]["step"] == "--json"


def test_accuracy_on_held_out_videos(msg2, many: Path) -> None:
    ran = msg2("next", many, "--evaluate", "--splits", 2, "--delta", "0.7", "--task", "Make Coffee", "--json")
    task, shares = package.read(many, task="Make Coffee"), []
    for seed in range(2):
        training, test = assist.split(task, SplitOptions(seed=seed))
        shares.append(assist.evaluate(assist.recency(package.infer(training, delta=0.7)), test).accuracy)
    assert ran.json["tasks"] == {"Make Coffee": pytest.approx(sum(shares) / 2)}
    assert (ran.json["method"], ran.json["splits"]) == ("msg2", 2)
    all_tasks = msg2("next", many, "--evaluate", "--splits", 1, "--ranker", "bigram", "--json").json
    assert len(all_tasks["tasks"]) == 3
    assert all_tasks["accuracy"] == pytest.approx(sum(all_tasks["tasks"].values()) / 3)
    assert all_tasks["method"] is None
    assert "mean of tasks" in msg2("next", many, "--evaluate", "--splits", 1, "--ranker", "bigram").out


# -- check ------------------------------------------------------------------------------------------------------


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
    assert ran.json == assist.check(package.read_graph(graph), package.read(wrong)).to_json()
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


# -- show -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format(msg2, graph: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / "new folder" / f"toast{suffix.upper()}"
    ran = msg2("show", graph, "-o", out)
    assert (ran.code, ran.out, ran.err) == (0, f"{out}\n", "")
    first = out.read_bytes()
    assert b"whisk" in first or suffix == ".png"
    assert msg2("show", graph, "-o", out).code == 0
    assert out.read_bytes() == first


def test_a_comparison_is_coloured(msg2, graph: Path, truth: Path, tmp_path: Path) -> None:
    out = tmp_path / "toast.svg"
    assert msg2("show", graph, "-o", out, "--compare", truth).code == 0
    assert "missing" in out.read_text()
    assert "whisk" in out.read_text()
    assert "Whisk" not in out.read_text()


def test_formats_that_cannot(msg2, graph: Path, tmp_path: Path) -> None:
    assert "no format msg2 can write" in msg2("show", graph, "-o", tmp_path / "toast.pdf").complaint
    assert "without a suffix" in msg2("show", graph, "-o", tmp_path / "toast").complaint
    assert "cannot show a comparison" in msg2("show", graph, "-o", tmp_path / "t.pddl", "--compare", graph).complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toast.csv", "toast.json"]


# -- as the data was read ---------------------------------------------------------------------------------------


def test_a_graph_remembers_how_its_data_was_read(msg2, tmp_path: Path) -> None:
    table, graph = tmp_path / "t.csv", tmp_path / "g.json"
    rows = [f"v{v},{step},{start},{start + 8}" for v in range(9) for start, step in enumerate("abb")]
    table.write_text("\n".join(["video,step,start,end", *rows]))
    assert msg2("infer", table, "-o", graph, "--overlap", "start", "--repeats", "keep", "--delta", "0.9").code == 0
    assert json.loads(graph.read_text())["method"]["reading"] == {"overlap": "start", "repeats": "keep"}
    labels = {total["step"]: total["occurrences"] for total in msg2("check", graph, table, "--json").json["totals"]}
    assert labels == {"a": 9, "b": 18}
    assert msg2("check", graph, table, "--json").json["mistakes"] == []
    as_told = msg2("check", graph, table, "--json", "--overlap", "unordered", "--repeats", "first").json
    assert len(as_told["mistakes"]) == 9


def test_a_task_with_one_video_does_not_stop_the_others(msg2, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("task,video,step\nA,1,x\nA,1,y\nB,1,x\nB,2,x\nB,1,y\nB,2,y\n")
    for command in (["next", table, "--evaluate"], ["sweep", table, "-o", tmp_path / "s.csv"]):
        ran = msg2(*command)
        assert ran.code == 0
        assert "A: left out" in ran.err
    only = msg2("next", table, "--evaluate", "--task", "A")
    assert "none can be held out" in only.complaint


def test_when_all_is_done_nothing_is_left(msg2, graph: Path) -> None:
    done = [word for step in package.read_graph(graph).steps for word in ("--done", step)]
    assert msg2("next", graph, *done).out == "Nothing is left: all steps are done.\n"
