"""`msg2 states`: from labels and features to completed labels, and what goes wrong on the way."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import msg2 as package
from msg2.formats.feature_store import Encoders, VideoFeatures, write_store
from msg2.states.fill_calibration import FillCalibration

STEPS = ("boil", "milk", "pour", "stir", "sip")
HIDDEN = {"v3": "milk", "v7": "pour"}
"""Steps that everybody can see in the features, and nobody has labelled."""
EVIDENCE = ["--variant", "evidence", "--learning-rate", 0.02, "--device", "cpu"]


def seen(number: int) -> tuple[VideoFeatures, list[tuple[str, float, float]]]:
    """A video of 60 seconds with a step every ten, from 3 to 7; what is seen is the step itself, and a little noise."""
    rng = np.random.default_rng(number)
    times = np.arange(60.0)
    frames = rng.normal(0, 0.1, (60, 8))
    performed = [(step, 10.0 * place + 3, 10.0 * place + 7) for place, step in enumerate(STEPS)]
    for place, (_, start, end) in enumerate(performed):
        frames[(times >= start) & (times <= end), place] += 1
    return VideoFeatures(times, frames, times[:, None] + [0, 1], frames.copy()), performed


@pytest.fixture(scope="session")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve videos of two tasks, of which only "tea" has features; a repeated label, and some that are missing."""
    folder = tmp_path_factory.mktemp("tea")
    rows = ["task,video,step,start,end", "other,v0,boil,0,1", "other,v0,pour,1,2"]
    performed = ["task,video,step,start,end"]
    features = {}
    for number in range(12):
        name = f"v{number}"
        features["tea", name], labels = seen(number)
        for step, start, end in labels:
            performed.append(f"tea,{name},{step},{start},{end}")
            if HIDDEN.get(name) != step:
                rows.append(f"tea,{name},{step},{start},{end}")
    rows.append("tea,v0,boil,55,56")
    (folder / "steps.csv").write_text("\n".join(rows) + "\n")
    (folder / "tea.csv").write_text("\n".join(row for row in rows if not row.startswith("other")) + "\n")
    (folder / "performed.csv").write_text("\n".join(performed) + "\n")
    write_store(folder / "features", features, Encoders("see", "hear", 8, 8))
    return folder


@pytest.fixture(scope="session")
def model(tea: Path) -> Path:
    """A model of "tea", well trained."""
    command = [
        Path(sys.executable).with_name("msg2"),
        "states",
        "train",
        tea / "tea.csv",
        "--features",
        tea / "features",
    ]
    subprocess.run(
        [*command, "-o", tea / "model", *map(str, EVIDENCE), "--epochs", "60"], check=True, capture_output=True
    )
    return tea / "model"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as table:
        return list(csv.DictReader(table))


# -- training ---------------------------------------------------------------------------------------------------


def test_a_folder_per_task_and_tasks_without_features_are_left_out(msg2, tea: Path, tmp_path: Path) -> None:
    train = ("states", "train", tea / "steps.csv", "--features", tea / "features", "-o", tmp_path / "models", *EVIDENCE)
    ran = msg2(*train, "--epochs", 2)
    assert ran.code == 0, ran
    few = (
        "no labels are added: to see how sure they are, 250 labels of 30 videos must be hidden, and there are 58 of 12"
    )
    left_out = "other: left out, it has fewer than two videos with labels and features"
    assert ran.err == f"warning: {left_out}\nwarning: tea: {few}\n"
    assert ran.out.splitlines()[1].split()[:3] == ["tea", "12", "2"]
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tea"]
    card = json.loads((tmp_path / "models" / "tea" / "model.json").read_text())
    assert (card["task"], card["finished"]) == ("tea", True)
    assert "holds another training" in msg2(*train, "--epochs", 3).complaint
    one = msg2(*train[:-2], "--device", "cpu", "--task", "other", "--epochs", 1)
    assert "no task has two videos with labels and features" in one.complaint


def test_by_default_nobody_touches_the_network(
    msg2, tea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def connect(_: object, address: object) -> None:
        asked.append(address)
        raise OSError("there is no network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *where, **_: connect(None, where))
    train = ("states", "train", tea / "tea.csv", "--features", tea / "features", "--epochs", 1, "--device", "cpu", "-o")
    assert msg2(*train, tmp_path / "model").code == 0
    assert msg2(*train, tmp_path / "small", "--variant", "paper", "--encoder", "t5-tiny").code == 0
    assert asked == []
    named = msg2(*train, tmp_path / "named", "--encoder", "no-such/encoder", "--variant", "paper")
    assert "none came from the Hugging Face hub" in named.complaint
    assert asked != []


@pytest.mark.slow
def test_an_interrupted_training_goes_on_and_ends_alike(tea: Path, command: Path, tmp_path: Path) -> None:
    train = [command, "states", "train", tea / "tea.csv", "--features", tea / "features", *map(str, EVIDENCE)]
    train += ["--epochs", "80", "-o"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*train, tmp_path / "one"], env=environment, stderr=subprocess.PIPE, text=True) as process:
        waited = time.monotonic()
        while not (tmp_path / "one" / "log.jsonl").exists() and time.monotonic() < waited + 600:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (130, "msg2: interrupted; the same command goes on from here\n")
    reached = json.loads((tmp_path / "one" / "model.json").read_text())["epoch"]
    assert 0 < reached < 80
    again = subprocess.run([*train, tmp_path / "one"], env=environment, capture_output=True, text=True, check=True)
    assert f"tea: going on after epoch {reached} of 80" in again.stderr
    subprocess.run([*train, tmp_path / "two"], env=environment, capture_output=True, check=True)
    tensors = sorted(path.name for path in (tmp_path / "two").glob("*.safetensors"))
    assert [name.partition("-")[0] for name in tensors] == ["best", "last"]
    for name in tensors:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_curves_for_tensorboard(msg2, tea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path / "model" / "tensorboard")

        def add_scalar(self, name: str, value: float, epoch: int) -> None:
            written.append((name, epoch))

        def close(self) -> None:
            written.append(("closed", 0))

    train = ("states", "train", tea / "tea.csv", "--features", tea / "features", "-o", tmp_path / "model", *EVIDENCE)
    stand_in = types.ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    assert msg2(*train, "--epochs", 5, "--tensorboard").code == 0
    every = [(name, epoch) for epoch in range(1, 6) for name in ("training loss", "learning rate")]
    assert written == [*every, ("validation loss", 5), ("validation accuracy", 5), ("closed", 0)]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    complaint = msg2(*train, "--epochs", 5, "--tensorboard").complaint
    assert complaint.splitlines()[1] == "  pip install tensorboard"


# -- filling ----------------------------------------------------------------------------------------------------


def test_what_nobody_labelled_is_added_and_all_else_stays(msg2, tea: Path, model: Path, tmp_path: Path) -> None:
    fill = ("states", "fill", model, tea / "tea.csv", "--features", tea / "features", "--uncalibrated", "-o")
    ran = msg2(*fill, tmp_path / "filled.csv")
    assert (ran.code, ran.err) == (0, "")
    annotated, filled = rows_of(tea / "tea.csv"), rows_of(tmp_path / "filled.csv")
    kept = [row for row in filled if row["source"] != "predicted"]

    def key(row: dict[str, str]) -> tuple[Any, ...]:
        return row["task"], row["video"], row["step"], float(row["start"]), float(row["end"])

    assert sorted(map(key, kept)) == sorted(map(key, annotated))
    assert {(row["confidence"], row["source"]) for row in kept} == {("", "")}
    added = [row for row in filled if row["source"] == "predicted"]
    assert {row["video"]: row["step"] for row in added} == HIDDEN
    assert all(0 < float(row["confidence"]) < 1 for row in added)
    assert ran.out.splitlines()[-1] == f"2 labels added to 59 in 12 videos: {tmp_path / 'filled.csv'}"
    assert sum(len(video.segments) for video in package.read(tmp_path / "filled.csv", repeats="keep")) == 61
    none = msg2(*fill, tmp_path / "none.csv", "--threshold", 1000, "--read-at", "same")
    assert none.out.splitlines()[-1].startswith("0 labels added")


def test_only_what_is_surely_right_is_added(msg2, tea: Path, model: Path, tmp_path: Path) -> None:
    """Twelve videos are too few to tell; were they not, the two steps that everybody can see would be added."""
    shutil.copytree(model, tmp_path / "model")
    model = tmp_path / "model"
    fill = ("states", "fill", model, tea / "tea.csv", "--features", tea / "features", "-o")
    ran = msg2(*fill, tmp_path / "none.csv")
    assert (ran.code, "250 labels of 30 videos must be hidden, and there are 58 of 12" in ran.err) == (0, True)
    assert "predicted" not in (tmp_path / "none.csv").read_text()
    FillCalibration((-1.0, 1.0), (0.1, 0.85), 300, 40, 0.03, informative=True).save(model)
    ran = msg2(*fill, tmp_path / "some.csv")
    assert ran.err == "tea: confidences from 300 hidden labels, calibration error 3.0%\n"
    added = [row for row in rows_of(tmp_path / "some.csv") if row["source"] == "predicted"]
    assert {row["video"]: row["step"] for row in added} == HIDDEN
    assert {float(row["confidence"]) for row in added} == {0.85}
    assert msg2(*fill, tmp_path / "none.csv", "--confidence", 0.86).out.splitlines()[-1].startswith("0 labels added")
    (model / "calibration.json").write_text('{"scores": [0]}')
    assert "calibration.json: is damaged" in msg2(*fill, tmp_path / "broken.csv").complaint
    (model / "calibration.json").unlink()
    assert "tea: no labels are added: the model has no calibration" in msg2(*fill, tmp_path / "old.csv").err
    assert msg2(*fill, tmp_path / "x.csv", "--confidence", 2).code == 2


def test_the_defaults_need_no_network(tea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, msg2) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this would touch the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    ran = msg2("states", "train", tea / "tea.csv", "--features", tea / "features", "-o", tmp_path / "model")
    assert ran.code == 0, ran
    assert json.loads((tmp_path / "model" / "model.json").read_text())["training"]["epochs"] == 60


def test_tasks_without_a_model_stay_as_they_are(msg2, tea: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    ran = msg2("states", "fill", model, tea / "steps.csv", "--features", tea / "features", "-o", out, "--uncalibrated")
    assert ran.err == "warning: other: left out, there is no model of it\n"
    assert sum(row["task"] == "other" for row in rows_of(out)) == 2


def test_a_model_and_data_that_do_not_fit(msg2, tea: Path, model: Path, tmp_path: Path) -> None:
    def fill(model: Path, data: Path, features: Path = tea / "features") -> str:
        return str(msg2("states", "fill", model, data, "--features", features, "-o", tmp_path / "out.csv").complaint)

    strange = tmp_path / "strange.csv"
    strange.write_text("task,video,step,start,end\ntea,v0,spill,0,1\n")
    assert "does not know the step 'spill'" in fill(model, strange)
    assert "is no trained model" in fill(tmp_path, tea / "tea.csv")
    strange.write_text("task,video,step,start,end\nx,v0,boil,0,1\ny,v0,boil,0,1\n")
    assert "there are models of 'tea'" in fill(model, strange)
    wide = VideoFeatures(np.arange(9.0), np.ones((9, 3)), np.zeros((0, 2)), np.zeros((0, 3)))
    write_store(tmp_path / "wide", {("tea", "v0"): wide}, Encoders("a", "b", 3, 3))
    assert "the frames are 3 wide" in fill(model, tea / "tea.csv", tmp_path / "wide")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.json").write_text((model / "model.json").read_text())
    (best,) = model.glob("best-*.safetensors")
    (broken / best.name).write_bytes(best.read_bytes()[:-9])
    assert f"{best.name}: is damaged" in fill(broken, tea / "tea.csv")
    assert "is the data" in msg2("states", "fill", model, tea / "tea.csv", "--features", tea / "features",
                                 "-o", tea / "tea.csv").complaint  # fmt: skip
    assert not (tmp_path / "out.csv").exists()


# -- evaluating and drawing -------------------------------------------------------------------------------------


def test_hidden_labels_and_the_truth(msg2, tea: Path, model: Path) -> None:
    evaluate = ("states", "evaluate", model, tea / "tea.csv", "--features", tea / "features")
    hidden = msg2(*evaluate, "--json").json["tasks"]["tea"]
    assert list(hidden) == ["hidden steps"]
    assert hidden["hidden steps"]["asked"] > 0
    assert hidden["hidden steps"]["accuracy"] > 0.8
    evaluate = (*evaluate, "--uncalibrated")
    true = msg2(*evaluate, "--truth", tea / "performed.csv", "--json").json["tasks"]["tea"]
    assert list(true) == ["held-out videos", "all videos"]
    assert (true["all videos"]["added"], true["all videos"]["right"], true["all videos"]["missing"]) == (2, 2, 2)
    assert true["all videos"]["accuracy"] > 0.8
    assert true["all videos"]["asked"] == 5 * 2 * 58  # five steps at both borders of every first label
    table = msg2(*evaluate, "--truth", tea / "performed.csv").out.splitlines()
    assert table[1].split() == ["percent", "accuracy", "auc", "precision", "recall"]
    assert table[3].split()[-2:] == ["100.00", "100.00"]
    lacking = tea / "lacking.csv"
    lacking.write_text("task,video,step,start,end\ntea,v0,boil,3,7\n")
    assert "does not say what was performed in video" in msg2(*evaluate, "--truth", lacking).complaint


def test_a_picture_of_a_video(msg2, tea: Path, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = ("states", "plot", model, tea / "steps.csv", "--features", tea / "features", "--task", "tea")
    plot = (*plot, "--uncalibrated", "-o")
    assert msg2(*plot, tmp_path / "v3.svg", "--video", "v3").out == f"{tmp_path / 'v3.svg'}\n"
    svg = (tmp_path / "v3.svg").read_text(encoding="utf-8")
    assert [step for step in STEPS if f">{step}<" in svg] == list(STEPS)
    assert "inferred" in svg
    assert msg2(*plot, tmp_path / "v1.svg", "--video", "v1").code == 0
    assert "inferred" not in (tmp_path / "v1.svg").read_text(encoding="utf-8")
    assert "no task has a video 'v99'" in msg2(*plot, tmp_path / "x.svg", "--video", "v99").complaint
    assert msg2(*plot, tmp_path / "x.gif", "--video", "v3").code == 2


# -- usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["--epochs", 0],
        ["--batch", 0],
        ["--learning-rate", -1],
        ["--patience", 0],
        ["--variant", "x"],
        ["--device", "x"],
    ],
)
def test_options_out_of_range(msg2, tea: Path, tmp_path: Path, options: list[object]) -> None:
    ran = msg2("states", "train", tea / "tea.csv", "--features", tea / "features", "-o", tmp_path / "model", *options)
    assert (ran.code, ran.out) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_an_example(msg2) -> None:
    for name in ("train", "fill", "evaluate", "plot"):
        assert "Example" in msg2("states", name, "--help").out


def test_without_torch_it_says_what_to_install(
    msg2, tea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    data = (tea / "tea.csv", "--features", tea / "features", "-o", tmp_path / "out.csv")
    for command in (["train"], ["fill", tmp_path]):
        assert msg2("states", *command, *data).complaint == (
            "msg2: state prediction needs an optional part of msg2 that is not installed\n  pip install 'msg2[video]'\n"
        )
