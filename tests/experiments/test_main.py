"""`python -m experiments`: what it lists, writes and refuses, and how it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, Result, __main__
from experiments.experiment_options import ExperimentOptions
from msg2.cli.app import main
from msg2.progress import Progress


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


def test_an_interrupt_is_one_line(experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the signal is handled at the next line of Python")

    interrupted = replace(EXPERIMENTS["recovery"], run=interrupt)
    monkeypatch.setattr(__main__, "EXPERIMENTS", {"recovery": interrupted})
    assert experiments("recovery", "-o", tmp_path / "out") == Ran(130, "", "experiments: interrupted\n")
    assert list(tmp_path.iterdir()) == []
