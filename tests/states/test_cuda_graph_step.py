"""Speed changes nothing: on a GPU, the fast training follows the plain one in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from msg2.states import loss_and_optimizer as step_module
from msg2.states import transformer_encoders
from msg2.states.checkpoint import load_checkpoint, read_card, read_tensors
from msg2.states.configuration import SamplingOptions, TrainingOptions
from msg2.states.dataset import Batch
from msg2.states.training import EpochReport, train_model
from tests.states.conftest import VARIANTS, options, tensors_in, tiny_dataset

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that PyTorch can use"),
]

PLAIN = TrainingOptions(
    epochs=10, batch=4, learning_rate=3e-3, warmup=3, validation=0, validate_every=10,
    device="cuda", precision="float32", captured=False, row=0,
)  # fmt: skip
"""20 steps, two an epoch."""


def losses(
    folder: Path, given: TrainingOptions, dropout: float = 0.1, report: Callable[[EpochReport], None] = lambda _: None
) -> list[float]:
    found: list[float] = []

    def note(progress: EpochReport) -> None:
        found.append(progress.loss)
        report(progress)

    train_model(
        tiny_dataset(8, steps=8), folder, model=options(dropout=dropout), sampling=SamplingOptions(), training=given,
        on_epoch=note,
    )  # fmt: skip
    return found


def replays(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """Notes the shape of every batch that goes through a graph."""
    found: list[torch.Size] = []
    plain = Batch.copy_from

    def noted(self: Batch, other: Batch) -> None:
        found.append(other.kind.shape)
        plain(self, other)

    monkeypatch.setattr(Batch, "copy_from", noted)
    return found


def test_mixed_precision_graphs_and_packing_follow_single_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, whose draws would differ."""
    monkeypatch.setitem(transformer_encoders.SIZES["t5-tiny"], "dropout_rate", 0.0)
    slow = losses(tmp_path / "slow", PLAIN, dropout=0.0)
    for name, row in (("padded", 0), ("packed", None), ("packed long", 512)):
        fast = losses(tmp_path / name, replace(PLAIN, precision="auto", captured=True, row=row), dropout=0.0)
        assert all(math.isfinite(loss) for loss in fast)
        assert fast == pytest.approx(slow, rel=0.01)
    assert slow[-1] < 0.95 * slow[0]  # and there was something to learn


@pytest.mark.parametrize("most", [1, 16])
def test_graphs_change_nothing(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the draws of dropout: same batches, same losses, whether or not there is a graph for every shape."""
    monkeypatch.setattr("msg2.states.training.ROW_MULTIPLE", 1)
    monkeypatch.setattr(step_module, "MAX_GRAPHS", most)
    given = replace(PLAIN, row=128, batch=5)  # a batch of 5 and one of 3: two shapes and more
    slow = losses(tmp_path / "slow", given)
    replayed = replays(monkeypatch)
    fast = losses(tmp_path / "fast", replace(given, captured=True))
    assert fast == pytest.approx(slow, rel=1e-3)
    assert len(replayed) >= 5
    assert 1 <= len(set(replayed)) <= most


def test_taken_up_on_a_gpu(tmp_path: Path) -> None:
    """Weights, moments and draws go on as they were; a GPU adds in any order, so they are the same up to rounding."""
    given = replace(PLAIN, captured=True, row=None, validation=0.25, validate_every=2)
    whole = losses(tmp_path / "whole", given)

    def stop(progress: EpochReport) -> None:
        if progress.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        losses(tmp_path / "cut", given, report=stop)
    assert read_card(tmp_path / "cut").epoch == 4
    assert losses(tmp_path / "cut", given) == pytest.approx(whole[4:], rel=1e-3)
    first, second = (read_tensors(tensors_in(tmp_path / name, "last")) for name in ("whole", "cut"))
    torch.testing.assert_close(first, second, atol=2e-3, rtol=2e-2)


def test_a_training_goes_on_on_a_cpu(tmp_path: Path) -> None:
    given = replace(PLAIN, captured=True)

    def stop(progress: EpochReport) -> None:
        if progress.epoch == 5:
            raise KeyboardInterrupt

    whole = losses(tmp_path / "whole", given, dropout=0.0)
    with pytest.raises(KeyboardInterrupt):
        losses(tmp_path / "cut", given, dropout=0.0, report=stop)
    rest = losses(tmp_path / "cut", replace(given, device="cpu"), dropout=0.0)
    assert rest == pytest.approx(whole[5:], rel=0.1)  # the encoder's own dropout differs
    assert load_checkpoint(tmp_path / "cut")[1].device.type == "cpu"


@pytest.mark.parametrize("name", [name for name in VARIANTS if "direct" not in name])
def test_every_variant_trains_on_a_gpu(name: str, tmp_path: Path) -> None:
    held = tiny_dataset(8, text_only=True) if "text" in name else tiny_dataset(8)
    seen: list[EpochReport] = []
    given = replace(PLAIN, epochs=20, precision="auto", captured=True, row=None)
    train_model(held, tmp_path, model=VARIANTS[name], sampling=SamplingOptions(), training=given, on_epoch=seen.append)
    assert seen[-1].loss < 0.95 * seen[0].loss
