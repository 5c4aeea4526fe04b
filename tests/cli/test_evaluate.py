"""`msg2 evaluate`: a graph against the true one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msg2 as package
from msg2 import metrics
from tests.cli.conftest import TRUTH


def test_scores_are_those_of_the_metrics(msg2, graph: Path, truth: Path, table: Path) -> None:
    ran = msg2("evaluate", graph, "--truth", truth, "--data", table, "--json")
    assert ran.err == ""
    ours, theirs, task = package.load(graph), package.load(truth), package.read(table)
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
        "edits": len(metrics.match_step_names(ours, theirs).reduced_edge_pairs(True) ^ theirs.reduced_edge_pairs(True)),
    }
    words = msg2("evaluate", graph, "--truth", truth).out
    assert re.search(r"^inner_recall +66.67 +% *$", words, re.MULTILINE)
    assert re.search(r"^compatibility +N/A +% *$", words, re.MULTILINE)
    assert re.search(rf"^edits +{ran.json['edits']} +edges$", words, re.MULTILINE)
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


def test_a_folder_of_graphs_against_a_folder_of_truths(msg2, graph: Path, truth: Path, tmp_path: Path) -> None:
    """Matched by the name of the task or of the file, whatever its case; the mean is that of the tasks."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder, source, names in ((ours, graph, ("Make Toast", "tea")), (theirs, truth, ("other", "Tea!"))):
        for name, task in zip(("make-toast.json", "2.json"), names, strict=True):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps({**json.loads(source.read_text()), "task": task}))
    (ours / "2.json").write_text((theirs / "2.json").read_text())  # one of the two is perfect
    alone = msg2("evaluate", graph, "--truth", truth, "--json").json
    found = msg2("evaluate", ours, "--truth", theirs, "--json").json
    assert found["tasks"]["Make Toast"] == alone
    assert found["tasks"]["Tea!"]["accuracy"] == 1
    assert found["mean"]["edits"] == alone["edits"] / 2
    assert found["mean"]["f1"] == (1 + alone["f1"]) / 2
    assert found["mean"]["compatibility"] is None
    words = msg2("evaluate", ours, "--truth", theirs).out
    assert re.search(rf"^mean .* {50 * (1 + alone['f1']):.2f} +{alone['edits'] / 2:g}$", words, re.MULTILINE)
    (theirs / "2.json").unlink()
    assert "holds no graph of 'Tea!'" in msg2("evaluate", ours, "--truth", theirs).complaint
    (tmp_path / "empty").mkdir()
    assert "empty: holds no graph" in msg2("evaluate", tmp_path / "empty", "--truth", theirs).complaint
    (theirs / "2.json").write_text((ours / "2.json").read_text())
    (theirs / "3.json").write_text((theirs / "make-toast.json").read_text())
    assert "is the second graph of 'other'" in msg2("evaluate", ours, "--truth", theirs).complaint
