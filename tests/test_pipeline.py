"""The demonstration: what it makes is what its files hold, and is the same every time."""

from __future__ import annotations

from pathlib import Path

import msg2
from msg2 import metrics
from msg2.inference import METHODS
from msg2.options import DemoOptions
from msg2.pipeline import demo
from msg2.worlds import violation_rate


def test_the_demonstration_holds_together(tmp_path: Path) -> None:
    made = demo(tmp_path / "demo", DemoOptions(world="Perform CPR", seed=4))
    task, truth = msg2.read(made.table), msg2.read_graph(made.truth_file)
    assert msg2.read_graph(made.graph_file) == made.graph == msg2.infer(task, seed=4)
    assert made.videos == len(task)
    assert made.violation_rate == violation_rate(task, truth)
    assert list(made.scores) == list(METHODS)
    for method, scores in made.scores.items():
        assert scores == metrics.scores(msg2.infer(task, method, seed=4), truth, task)
    assert "<svg" in made.comparison.read_text(encoding="utf-8")
    assert made.page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_twice_the_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        demo(folder, DemoOptions())
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == two
    assert sorted(one) == ["compared.svg", "graph.html", "graph.json", "steps.csv", "truth.json"]
