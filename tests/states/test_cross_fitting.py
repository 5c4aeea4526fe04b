"""Every label is hidden once, and asked of a model that has not learned from its video."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msg2.states import fill_calibration
from msg2.states.checkpoint import load_checkpoint
from msg2.states.configuration import SamplingOptions, TrainingOptions
from msg2.states.dataset import FRAME, sample_without
from msg2.states.fill_calibration import (
    FillCalibration,
    HeldOutScores,
    calibrate_model,
    extra_trainings,
    read_calibration,
)
from msg2.states.training import train_model
from tests.states.conftest import VARIANTS, tiny_dataset, tiny_task

BRIEF = TrainingOptions(epochs=2, batch=4, validation=0.2, device="cpu")


def calibrate(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[FillCalibration, HeldOutScores, list[tuple[int, int]]]:
    """Train a model of six tiny videos and calibrate it; the scores that it is calibrated on, and the progress."""
    held, told, found = tiny_dataset(6), [], []
    fit = fill_calibration.fit_calibration
    monkeypatch.setattr(fill_calibration, "can_be_calibrated", lambda labels, videos: True)
    monkeypatch.setattr(
        fill_calibration, "fit_calibration", lambda scores, rate: found.append(scores) or fit(scores, rate)
    )
    card = train_model(held, folder, model=VARIANTS[name], sampling=SamplingOptions(), training=BRIEF)
    calibration = calibrate_model(tiny_task(6), held, folder, card, lambda done, total, _: told.append((done, total)))
    return calibration, found[0], told


@pytest.mark.parametrize("name", ["evidence", "evidence, co-occurrence", "t5"])
def test_every_label_is_hidden_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, read = tiny_dataset(6), []

    def load(folder: Path):  # type: ignore[no-untyped-def]
        card, model = load_checkpoint(folder)
        read.append(card)
        return card, model

    monkeypatch.setattr(fill_calibration, "load_checkpoint", load)
    calibration, scores, told = calibrate(name, tmp_path, monkeypatch)
    trainings = extra_trainings(held, VARIANTS[name])
    labels = [len(video.steps) for video in held.videos]
    assert sorted(scores.video[scores.is_hidden].tolist()) == np.repeat(range(6), labels).tolist()
    assert sorted(scores.video[~scores.is_hidden].tolist()) == np.repeat(range(6), 4 - np.array(labels)).tolist()
    assert (calibration.labels, calibration.videos) == (sum(labels), 6)
    assert read_calibration(tmp_path) == calibration
    assert not (tmp_path / "folds").exists()
    assert len(read) == max(trainings, 1)
    if trainings:
        learned = [set(card.videos["training"] + card.videos["validation"]) for card in read]
        everything = {video.video for video in held.videos}
        assert sorted(video for part in learned for video in everything - part) == sorted(everything)
        assert told == [(2 * (fold + 1) + epoch, 8) for fold in range(3) for epoch in (1, 2)]


def test_only_the_evidence_model_needs_no_further_training(monkeypatch: pytest.MonkeyPatch) -> None:
    held = tiny_dataset(6)
    assert {extra_trainings(held, chosen) for chosen in VARIANTS.values()} == {0}, "there are too few labels anyway"
    monkeypatch.setattr(fill_calibration, "can_be_calibrated", lambda labels, videos: True)
    for chosen in VARIANTS.values():
        alone = chosen.evidence and not chosen.context and not chosen.cooccurrence
        assert extra_trainings(held, chosen) == (0 if alone else 3)


def test_a_calibration_is_read_and_not_made_again(tmp_path: Path) -> None:
    known = FillCalibration((0.0,), (0.5,), 7, 3, None, informative=False)
    known.save(tmp_path)
    held = tiny_dataset(6)
    card = train_model(held, tmp_path, model=VARIANTS["evidence"], sampling=SamplingOptions(), training=BRIEF)
    assert calibrate_model(tiny_task(6), held, tmp_path, card) == known


def test_nothing_tells_of_the_hidden_label() -> None:
    """The tokens are those of a video that never had the label."""
    held = tiny_dataset(6)
    for video in held.videos:
        for label, step in enumerate(video.steps.tolist()):
            tokens = sample_without(video, label, 4, SamplingOptions())
            assert step not in tokens.step[tokens.kind != FRAME]
            assert not tokens.labelled[step]
            assert not tokens.inside[:, step].any()
            assert not tokens.state[:, step].any()
            assert tokens.labelled.sum() == len(video.steps) - 1
