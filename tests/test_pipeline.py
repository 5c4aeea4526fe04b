"""The whole way: what it makes is what its files hold, and is the same every time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import msg2
from msg2 import metrics, pipeline
from msg2.errors import InputError, MissingExtraError
from msg2.inference import METHODS
from msg2.media.store import open_store
from msg2.options import DemoOptions, RunOptions, WorldOptions
from msg2.pipeline import Sources, demo, run, write_simulation
from msg2.worlds import Simulation, simulate, violation_rate, world


@pytest.fixture(scope="session")
def coffee() -> Simulation:
    return simulate(world("Make Coffee"), WorldOptions(videos=9), seed=2)


@pytest.fixture(scope="session")
def folder(coffee: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation with its features."""
    pytest.importorskip("torch")
    made = tmp_path_factory.mktemp("coffee")
    write_simulation(made, coffee, 2, features=True)
    return made


def test_a_run_holds_together(coffee: Simulation, folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    made = run(
        coffee.task, open_store(folder / "features"), tmp_path, RunOptions(epochs=3), delta=0.8,
        truth=coffee.graph, performed=coffee.performed, report=lambda *news: told.append(news),
    )  # fmt: skip
    assert [(epoch, of) for epoch, of, _ in told] == [(1, 3), (2, 3), (3, 3)]
    filled = msg2.read(made.files["labels"], repeats="keep")
    assert filled.videos == made.filled.videos
    for before, after in zip(coffee.task, filled, strict=True):
        assert tuple(segment for segment in after.segments if segment.source != "predicted") == before.segments
    for name, graph, labels in (("before", made.before, coffee.task), ("after", made.after, made.filled)):
        assert msg2.read_graph(made.files[name]) == graph == msg2.infer(labels.with_first_labels(), delta=0.8)
        assert made.scores[name] == metrics.scores(graph, coffee.graph, coffee.task)
    assert json.loads(made.files["numbers"].read_text()) == made.to_json()
    assert made.additions is not None
    assert made.additions.added == made.added == made.to_json()["added"]
    assert all(path.exists() for path in made.files.values())
    again = run(coffee.task, open_store(folder / "features"), tmp_path, RunOptions(epochs=3), delta=0.8)
    assert again.filled == made.filled, "the model that is there is taken"
    assert "compared" not in again.files, "there is nothing to compare with"
    with pytest.raises(InputError, match="but not in the"):
        run(coffee.task, open_store(folder / "features"), tmp_path, RunOptions(), truth=made.before.with_steps_renamed(
            {made.before.steps[0]: "sip"}))  # fmt: skip


def test_what_lies_beside_the_labels(folder: Path, tmp_path: Path) -> None:
    assert Sources.at(folder) == Sources(
        folder / "steps.csv", folder / "features", None, folder / "truth.json", folder / "truth" / "performed.csv"
    )
    assert Sources.at(tmp_path / "steps.csv") == Sources(tmp_path / "steps.csv", None, None, None, None)


def test_the_demonstration_holds_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(pipeline, "RunOptions", partial(RunOptions, epochs=2))
    made = demo(tmp_path / "demo", DemoOptions(world="Perform CPR", seed=4))
    task, truth = msg2.read(made.table), msg2.read_graph(made.truth_file)
    assert msg2.read_graph(made.graph_file) == made.graph == msg2.infer(task, seed=4)
    assert made.videos == len(task)
    assert made.violation_rate == violation_rate(task, truth)
    assert list(made.scores) == list(METHODS)
    for method, scores in made.scores.items():
        assert scores == metrics.scores(msg2.infer(task, method, seed=4), truth, task)
    assert made.run is not None
    assert made.run.before == made.graph
    assert "<svg" in made.comparison.read_text(encoding="utf-8")
    for page in (made.page, made.run.files["page"]):
        assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize("complete", [False, True])
def test_twice_the_same_bytes(complete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if complete:
        pytest.importorskip("torch")
        monkeypatch.setattr(pipeline, "RunOptions", partial(RunOptions, epochs=2))
    else:
        monkeypatch.setattr(pipeline, "state_prediction", _missing)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert (demo(folder, DemoOptions()).run is not None) == complete
    one, two = ({str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert one == two
    alone = {"compared.svg", "graph.html", "graph.json", "steps.csv", "truth.json", "truth/performed.csv"}
    assert set(one) > alone if complete else set(one) == alone


def _missing() -> None:
    raise MissingExtraError("state prediction", "states")
