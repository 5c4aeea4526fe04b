"""Speed changes nothing: on a GPU, the fast training follows the plain one in single precision."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from msg2.options import SamplingOptions, TrainingOptions
from msg2.states import encoders
from msg2.states.training import Progress, train
from tests.states.conftest import options, tiny_footage

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that PyTorch can use"),
]


def losses(folder: Path, given: TrainingOptions) -> list[float]:
    found: list[Progress] = []
    train(
        tiny_footage(8, steps=8), folder, model=options(dropout=0.0), sampling=SamplingOptions(), training=given,
        report=found.append,
    )  # fmt: skip
    return [one.loss for one in found]


@pytest.mark.filterwarnings("default")  # of the compiler, about the GPU
def test_mixed_precision_compilation_and_packing_follow_single_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, whose draws would differ: the losses of 20 steps, two an epoch."""
    monkeypatch.setattr(encoders.SIZES["t5-tiny"], "dropout_rate", 0.0)
    plain = TrainingOptions(
        epochs=10, batch=4, learning_rate=3e-3, warmup=3, validation=0, validate_every=10,
        device="cuda", precision="float32", compiled=False, row=0,
    )  # fmt: skip
    slow = losses(tmp_path / "slow", plain)
    for name, row in (("padded", 0), ("packed", None), ("packed long", 512)):
        fast = losses(tmp_path / name, replace(plain, precision="auto", compiled=None, row=row))
        assert all(math.isfinite(loss) for loss in fast)
        assert fast == pytest.approx(slow, rel=0.01)
    assert slow[-1] < 0.95 * slow[0]  # and there was something to learn
