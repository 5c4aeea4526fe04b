"""`python -m experiments`: what it lists, writes and refuses, and how it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, __main__
from experiments.experiment_options import ExperimentOptions
from msg2.cli.app import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def experiments(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`experiments("recovery", "-o", out)`: runs an experiment in this process."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(__main__.app, "experiments")
        captured = capfd.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


def test_experiments_are_listed(experiments) -> None:
    lines = experiments("list").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(EXPERIMENTS)


def test_an_experiment_writes_its_tables(experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "ExperimentOptions", lambda: ExperimentOptions(random_worlds=1))
    ran = experiments("recovery", "-o", tmp_path / "results")
    assert ran.code == 0
    assert (tmp_path / "results" / "recovery.md").read_text(encoding="utf-8").strip() == ran.out.strip()
    assert json.loads((tmp_path / "results" / "recovery.json").read_text(encoding="utf-8"))["tables"]
    assert "likelihood" in (tmp_path / "results" / "recovery.svg").read_text(encoding="utf-8")


def test_experiments_that_cannot_run(experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSG2_DATA", raising=False)
    assert "there is no experiment 'x'" in experiments("x").err
    assert "--data" in experiments("next-step").err
    assert "has no --held-out" in experiments("recovery", "--held-out").err
    missing = experiments("next-step", "--data", tmp_path)
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("experiments: ")
    assert len(missing.err.splitlines()) <= 3
    assert "there is no folder 'crosstask'" in missing.err


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "experiments", "recovery", "-o", tmp_path / "out"]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    ) as process:
        time.sleep(4)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "experiments: interrupted\n")
    assert list(tmp_path.iterdir()) == []
