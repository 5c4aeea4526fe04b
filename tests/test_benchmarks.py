"""The benchmarks run, and measure what they say; how fast msg2 is they tell themselves (`make benchmark`)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import assistant, gpu, likelihood, media, states, training
from experiments.graph_learning.runtime_scaling import growth_exponent
from msg2.states import transformer_encoders
from msg2.states.configuration import StateModelOptions, TrainingOptions


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    logging.getLogger("msg2").setLevel(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)  # a benchmark is silent to its end


def test_a_power_law_is_fitted_exactly() -> None:
    assert growth_exponent([10, 20, 40], [3 * size**2 for size in (10, 20, 40)]) == pytest.approx(2)


def test_the_benchmark_of_likelihood_runs_also_with_another_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(likelihood, "BEFORE_SIZES", likelihood.SIZES[:1])
    monkeypatch.setattr("sys.argv", ["likelihood", "--quick", "--before", str(Path(__file__).parents[1])])
    assert likelihood.main() == 0
    before, now = capsys.readouterr().out.splitlines()
    assert "s before" in before
    assert "x always-before" in now


def test_the_benchmark_of_live_runs_runs() -> None:
    """A run that is saved and loaded in the middle goes on as it was; the milliseconds are not asserted here."""
    found = assistant.measure_runs(assistant.trained_assistant(steps=8, videos=12), runs=12, noisy=2)
    kinds = ("did + next", "saw", "observe")
    assert all(0 <= found[f"{kind}: median"] <= found[f"{kind}: 99th percentile"] for kind in kinds)
    assert found["memory of a run, MB"] < assistant.MOST_RUN_MB
    assert found["growth of memory, MB"] < assistant.MOST_GROWTH_MB


def test_the_naive_loop_is_the_program_s_without_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a baseline only if it learns the same thing from the same batches."""
    monkeypatch.setitem(transformer_encoders.SIZES["t5-tiny"], "dropout_rate", 0.0)
    model = StateModelOptions(encoder="t5-tiny", dropout=0.0)
    given = TrainingOptions(epochs=20, batch=3, validation=0, validate_every=20, device="cpu")
    held = training.synthetic(5, 16)
    plain = training.naive(held, range(5), model, given, 3)
    own = training.program(held, model, given, 3)
    assert own.losses == pytest.approx(plain.losses, rel=1e-4)
    assert plain.losses[0] != pytest.approx(plain.losses[2], rel=1e-3)


def test_videos_are_as_long_as_they_are_said_to_be() -> None:
    varied, full = (training.synthetic(30, 4, full=full) for full in (False, True))
    given = TrainingOptions(batch=30)
    ((lengths, _),) = training._batches(varied, range(30), given, 0)
    ((most, _),) = training._batches(full, range(30), given, 0)
    assert min(most) >= 190
    assert max(most + lengths) <= 190 + 2 * 12
    assert sum(lengths) < 0.8 * sum(most)


@pytest.mark.slow
def test_the_benchmark_of_the_gpu_runs_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUT", str(tmp_path))
    assert gpu.main(["--smoke"]) == 0
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert len(found["timings"]) == 6
    assert found["task"]["steps"] == 12
    assert all(one["useful_teraflops"] <= one["done_teraflops"] for one in found["timings"])


def test_the_benchmark_of_states_runs_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert states.main(["--smoke"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row[0].strip() for row in rows[1:]] == list(states.VARIANTS)


@pytest.mark.slow
def test_the_benchmark_of_media_runs_anywhere() -> None:
    pytest.importorskip("av")
    # In a process of its own, since it measures the memory of the process that it is in.
    command, root = [sys.executable, "-m", "benchmarks.media", "--smoke"], Path(__file__).parents[1]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    rows = [line.split("|")[1:-1] for line in ran.stdout.splitlines() if line.startswith("| ")]
    assert [row[0].strip() for row in rows[1:3]] == ["60 s of 640 x 360", "One video of 2 s"]
    assert len(rows) == (1 + 1) + (1 + 5) + (1 + 2)
    assert 10 < float(rows[1][1]) < 1500
    assert float(rows[3][2]) == float(rows[-2][2]) == 1.0


def test_the_benchmark_of_media_fails_where_an_hour_takes_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("av")
    monkeypatch.setattr(media, "long", lambda _: media.Long(1.0, media.MOST_MEGABYTES + 1.0))
    monkeypatch.setattr(media, "fastest", lambda runs, _: dict.fromkeys(runs, 1.0))
    assert media.main(["--smoke"]) == 1
