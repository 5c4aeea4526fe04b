"""`--variant paper` is what the paper says; all of it can be changed by name; nothing else is done."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from msg2.errors import InputError
from msg2.formats.feature_store import open_store
from msg2.pipeline import RunOptions, run_task
from msg2.simulation import household_world, simulate
from msg2.simulation.simulated_features import write_simulation
from msg2.simulation.simulator import SimulationOptions
from msg2.states import load_trained_model
from msg2.states.configuration import STATE_OPTIONS, VARIANTS, TrainingOptions, get_variant
from msg2.states.dataset import START
from msg2.states.training import select_device
from msg2.task import PREDICTED, Task

BRIEF = {"--epochs": 2, "--encoder": "t5-tiny"}


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    folder = tmp_path_factory.mktemp("coffee")
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(videos=9), seed=2)
    write_simulation(folder, simulation, 2, features=True)
    return folder, simulation.task


def test_the_numbers_of_appendix_a() -> None:
    model, sampling, training, filling = get_variant("paper").options()
    assert (training.epochs, training.warmup, training.batch, training.learning_rate) == (600, 100, 32, 3e-4)
    assert (model.encoder, model.heads, model.threshold, model.in_progress) == ("google/t5-v1_1-large", 16, 1.0, True)
    assert (sampling.per_segment, sampling.most_frames, sampling.sentences, sampling.dropped) == (3, 190, 3, 0.25)
    assert (sampling.frames, model.inputs, model.skip, training.calibrate) == ("segments", "fused", False, False)
    filled = filling.for_model(model)
    assert (filled.read_at, filled.threshold) == ("next", 0.0)
    for name, variant in VARIANTS.items():  # the paper's rows are read as the paper reads them, ours are calibrated
        assert variant.options().training.calibrate == (name in ("evidence", "text-evidence", "text+labels"))


def test_every_option_has_one_name_and_changes_what_it_names() -> None:
    changed = get_variant("paper").options(
        heads=8, b=2.0, dropout=0.0, dropped=0.5, device="cuda:1", precision="float32", threshold=0.5, warmup=7
    )
    model, sampling, training, filling = changed
    assert (model.heads, model.threshold, model.dropout, sampling.dropped) == (8, 2.0, 0.0, 0.5)
    assert (training.device, training.precision, training.warmup) == ("cuda:1", "float32", 7)
    assert filling.for_model(model).threshold == 0.5
    assert {"b", "threshold", "per_segment", "read_at", "calibrate", "batch", "learning_rate"} <= STATE_OPTIONS.keys()
    with pytest.raises(InputError, match="there is no option 'head'"):
        get_variant("paper").options(head=8)
    with pytest.raises(InputError, match="device is 'tpu', it must be auto, cpu, cuda, cuda:NUMBER or mps"):
        TrainingOptions(device="tpu")


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert select_device("auto").type == select_device("cpu").type == "cpu"
    for device in ("cuda", "cuda:1"):
        with pytest.raises(InputError, match=f"there is no GPU '{device}'"):
            select_device(device)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    chosen: list[object] = []
    monkeypatch.setattr("torch.cuda.set_device", chosen.append)
    assert (str(select_device("auto")), str(select_device("cuda:1")), len(chosen)) == ("cuda", "cuda:1", 1)
    with pytest.raises(InputError, match="'cuda:2' that PyTorch can use\n  there are 2, numbered from cuda:0"):
        select_device("cuda:2")


def test_a_run_reads_states_as_the_paper_does(msg2, coffee: tuple[Path, Task], tmp_path: Path) -> None:
    """Added is what the scores say one border of the same kind later, counted here by hand."""
    folder, task = coffee
    settings = ["--set", "heads=4", "--set", "b=0.5", "--set", "warmup=1", "--set", "delta=0.8"]
    brief = [word for pair in BRIEF.items() for word in pair]
    command = ("run", folder, "-o", tmp_path, "--variant", "paper", "--method", "msg2", *brief, *settings)
    ran = msg2(*command)
    assert ran.code == 0, ran
    assert "labels are added whose score reaches 0; their confidences are not calibrated" in ran.err
    card = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (card["model"]["heads"], card["model"]["threshold"], card["training"]["warmup"]) == (4, 0.5, 1)
    assert (card["training"]["epochs"], card["training"]["batch"]) == (2, 32)
    assert not (tmp_path / "model" / "calibration.json").exists()
    trained = load_trained_model(tmp_path / "model", task, open_store(folder / "features"))
    wanted = set()
    for prediction in trained.predict():
        for number, step in enumerate(trained.task.steps):
            read = []
            for kind in np.unique(prediction.kind):
                read += [prediction.scores[row, number] for row in np.flatnonzero(prediction.kind == kind)[1:]]
            read.append(prediction.scores[-1, number])
            if not prediction.labelled[number] and max(read) >= 0:
                wanted.add((prediction.video, step))
        assert START in prediction.kind
    filled = trained.fill(get_variant("paper").options().filling)
    added = {(video.id, each.step) for video in filled for each in video.segments if each.source == PREDICTED}
    assert added == wanted != set()
    assert json.loads((tmp_path / "summary.json").read_text())["added"] == len(added)


def test_calibration_can_be_switched(msg2, coffee: tuple[Path, Task], tmp_path: Path) -> None:
    folder, _ = coffee
    train = ("states", "train", folder / "steps.csv", "--features", folder / "features", "--epochs", 1, "-o")
    assert msg2(*train, tmp_path / "no", "--set", "calibrate=no").code == 0
    assert not (tmp_path / "no" / "calibration.json").exists()
    assert (
        msg2(*train, tmp_path / "yes", "--variant", "paper", "--encoder", "t5-tiny", "--set", "calibrate=yes").code == 0
    )
    assert (tmp_path / "yes" / "calibration.json").exists()
    wrong = msg2(*train, tmp_path / "x", "--set", "delta=0.5")
    assert (wrong.code, "there is no option 'delta=0.5'" in wrong.err) == (2, True)
    assert msg2(*train, tmp_path / "x", "--set", "heads=many").code == 2
    said = msg2("states", "train", "x", "--features", "y", "-o", "z", "--set", "help").out
    assert all(f"  {name}=" in said for name in STATE_OPTIONS)


def test_an_interrupted_training_is_named(
    coffee: tuple[Path, Task], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, task = coffee
    store = open_store(folder / "features")

    def stop(done: int, total: int | None, message: str) -> None:
        if done == 5:
            raise KeyboardInterrupt

    options = RunOptions(epochs=9)
    with pytest.raises(KeyboardInterrupt):
        run_task(task, store, tmp_path, options, progress=stop)
    with caplog.at_level(logging.WARNING):
        load_trained_model(tmp_path / "model", task, store)
    assert "its training was interrupted after epoch 5 of 9, and goes on when the same command" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        run_task(task, store, tmp_path, options)
    assert "going on after epoch 5 of 9" in caplog.text
    assert "interrupted" not in caplog.text
