"""The whole way: what it makes is what its files hold, and is the same every time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import msg2
from msg2 import metrics, pipeline, states
from msg2.errors import InputError, MissingExtraError
from msg2.formats.feature_store import open_store
from msg2.inference import METHODS
from msg2.metrics.graph_scores import violation_rate
from msg2.pipeline import RunInputs, RunOptions, run_demo, run_task
from msg2.simulation import Simulation, household_world, simulate
from msg2.simulation.simulated_features import write_simulation
from msg2.simulation.simulator import SimulationOptions


@pytest.fixture(scope="session")
def coffee() -> Simulation:
    return simulate(household_world("Make Coffee"), SimulationOptions(videos=9), seed=2)


@pytest.fixture(scope="session")
def folder(coffee: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation with its features."""
    pytest.importorskip("torch")
    made = tmp_path_factory.mktemp("coffee")
    write_simulation(made, coffee, 2, features=True)
    return made


def test_a_run_holds_together(coffee: Simulation, folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    made = run_task(
        coffee.task, open_store(folder / "features"), tmp_path, RunOptions(method="msg2", epochs=3), delta=0.8,
        truth=coffee.graph, performed=coffee.performed, progress=lambda *news: told.append(news),
    )  # fmt: skip
    assert [(epoch, of) for epoch, of, _ in told] == [(1, 3), (2, 3), (3, 3)]
    filled = msg2.read(made.files["labels"], repeats="keep")
    assert filled.videos == made.filled.videos
    for before, after in zip(coffee.task, filled, strict=True):
        assert tuple(segment for segment in after.segments if segment.source != "predicted") == before.segments
    for name, graph, labels in (("before", made.before, coffee.task), ("after", made.after, made.filled)):
        assert msg2.load(made.files[name]) == graph == msg2.infer(labels.with_first_labels(), "msg2", delta=0.8)
        assert made.scores[name] == metrics.score_graph(graph, coffee.graph, coffee.task)
    summary = json.loads(made.files["numbers"].read_text())
    assert summary.pop("files").keys() == {"filled.csv", "before.json", "after.json", "compared.svg", "page.html"}
    assert summary == made.to_json()
    assert made.additions is not None
    assert made.additions.added == made.added == made.to_json()["added"]
    assert all(path.exists() for path in made.files.values())
    again = run_task(
        coffee.task, open_store(folder / "features"), tmp_path, RunOptions(method="msg2", epochs=3), delta=0.8
    )
    assert again.filled == made.filled, "the model that is there is taken"
    assert "compared" not in again.files, "there is nothing to compare with"
    with pytest.raises(InputError, match="but not in the"):
        run_task(coffee.task, open_store(folder / "features"), tmp_path, RunOptions(), truth=made.before.rename_steps(
            {made.before.steps[0]: "sip"}))  # fmt: skip


def test_all_in_one_call(coffee: Simulation, folder: Path, tmp_path: Path) -> None:
    """`msg2.run` of a folder of videos, their labels and simulated features, does what `run_task` does."""
    (tmp_path / "videos").mkdir()
    for video in coffee.task:
        (tmp_path / "videos" / f"{video.id}.mp4").touch()
    told: list[tuple[int, int | None, str]] = []
    results = msg2.run(
        tmp_path / "videos", labels=folder / "steps.csv", out=tmp_path / "out", features=folder / "features",
        truth=folder / "truth.json", options=RunOptions(method="msg2", epochs=2), delta=0.8,
        progress=lambda *news: told.append(news),
    )  # fmt: skip
    (made,) = results
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]
    labels = msg2.read(folder / "steps.csv", repeats="keep")
    alone = run_task(
        labels, open_store(folder / "features"), tmp_path / "alone", RunOptions(method="msg2", epochs=2), delta=0.8,
        truth=coffee.graph,
    )  # fmt: skip
    assert (made.filled, made.before, made.after) == (alone.filled, alone.before, alone.after)
    assert made.scores == alone.scores
    assert made.additions is None, "nobody has said what was performed"
    names = {"after.json", "before.json", "compared.svg", "filled.csv", "model", "page.html", "summary.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert {path.name for path in made.files.values()} == names
    assert "../videos/" in made.files["page"].read_text(encoding="utf-8"), "the page plays the videos"


def test_one_call_extracts_the_features_itself(tmp_path: Path) -> None:
    """From captions, which need no model; the folder is that of the "videos"."""
    pytest.importorskip("torch")
    rows = ["task,video,step,start,end"]
    (tmp_path / "videos").mkdir()
    for task in ("tea", "coffee"):
        for number in range(3):
            cues = [f"00:{10 * n:02}.000 --> 00:{10 * n + 5:02}.000\nnow {step}\n" for n, step in enumerate("ab")]
            (tmp_path / "videos" / f"{task}{number}.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
            rows += [f"{task},{task}{number},{step},{10 * n},{10 * n + 5}" for n, step in enumerate("ab")]
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    told: list[str] = []
    results = msg2.run(
        tmp_path / "videos", labels=tmp_path / "steps.csv", out=tmp_path / "out", options=RunOptions(epochs=1),
        progress=lambda done, total, message: told.append(message),
    )  # fmt: skip
    assert [one.filled.name for one in results] == ["coffee", "tea"]
    assert len(open_store(tmp_path / "out" / "features").entries) == 6
    assert told[0] == "loading encoders"
    assert [message.partition(":")[0] for message in told[-2:]] == ["coffee", "tea"], "the tasks are named"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["coffee", "features", "tea"]
    only = msg2.run(
        tmp_path / "videos", labels=tmp_path / "steps.csv", out=tmp_path / "tea", task="tea",
        features=tmp_path / "out" / "features", options=RunOptions(epochs=1),
    )  # fmt: skip
    assert [one.filled for one in only] == [results[1].filled]


def test_one_call_without_anything_to_see(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are neither features nor videos beside the labels"):
        msg2.run(folder / "steps.csv", out=tmp_path / "out")
    with pytest.raises(InputError, match="no option 'nonsense'"):
        msg2.run(folder, out=tmp_path / "out", options=RunOptions(epochs=1), nonsense=1)
    assert not (tmp_path / "out").exists()


def test_what_lies_beside_the_labels(folder: Path, tmp_path: Path) -> None:
    assert RunInputs.at(folder) == RunInputs(
        folder / "steps.csv", folder / "features", None, folder / "truth.json", folder / "truth" / "performed.csv"
    )
    assert RunInputs.at(tmp_path / "steps.csv") == RunInputs(tmp_path / "steps.csv", None, None, None, None)


def test_the_demonstration_holds_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(pipeline, "RunOptions", partial(RunOptions, epochs=2))
    made = run_demo(tmp_path / "demo", "Perform CPR", 4)
    task, truth = msg2.read(made.files["labels"]), msg2.load(made.files["truth"])
    assert msg2.load(made.files["graph"]) == made.graph == msg2.infer(task, seed=4)
    assert made.videos == len(task)
    assert made.violation_rate == violation_rate(task, truth)
    assert list(made.scores) == list(METHODS)
    for method, scores in made.scores.items():
        assert scores == metrics.score_graph(msg2.infer(task, method, seed=4), truth, task)
    assert made.run is not None
    assert made.run.before == made.graph
    assert "<svg" in made.files["compared"].read_text(encoding="utf-8")
    for page in (made.files["page"], made.run.files["page"]):
        assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.slow
@pytest.mark.parametrize("complete", [False, True])
def test_twice_the_same_bytes(complete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if complete:
        pytest.importorskip("torch")
        monkeypatch.setattr(pipeline, "RunOptions", partial(RunOptions, epochs=2))
    else:
        monkeypatch.setattr(states, "require_torch", _missing)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert (run_demo(folder).run is not None) == complete
    one, two = ({str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert one == two
    alone = {"compared.svg", "graph.html", "graph.json", "steps.csv", "truth.json", "truth/performed.csv"}
    assert set(one) > alone if complete else set(one) == alone


def _missing() -> None:
    raise MissingExtraError("state prediction", "video")
