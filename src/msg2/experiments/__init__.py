"""The paper's tables and ours, each repeatable with one command. A new one is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msg2.experiments import (
    calibration,
    captaincook4d,
    graphs,
    mistakes,
    names,
    next_step,
    noise,
    recovery,
    scale,
    transfer,
)
from msg2.experiments.tables import Result, Table
from msg2.options import ExperimentOptions

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Table"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What it shows, the annotation set it needs (None: it simulates), and how it runs."""

    shows: str
    needs: str | None
    run: Callable[[Any, ExperimentOptions, Callable[[str], None]], Result]
    long: bool = False
    """Whether it goes on after an interruption, runs in several processes, and has the paper's sizes as well."""
    of_a_step: bool = False
    """Whether a task and a step of it can be chosen."""


def _states(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    from msg2.experiments import states  # also a program of its own, which must not be imported before it runs

    return states.run(data, options, report)


def _narration(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    from msg2.experiments import narration  # needs the extra [states]

    return narration.run(data, options, report)


def _video_next_step(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    from msg2.experiments import video_baselines  # needs the extra [states]

    return video_baselines.run(data, options, report)


def _figures(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    from msg2.experiments import figures  # draws, which a machine that only measures need not be able to

    return figures.run(data, options, report)


def _rendered(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    from msg2.experiments import rendered  # needs the extras [states] and [media]

    return rendered.run(data, options, report)


EXPERIMENTS: Mapping[str, Experiment] = {
    "next-step": Experiment("next step on CrossTask, labels only (Table 2)", "crosstask", next_step.run),
    "video-next-step": Experiment(
        "next step from labels and narration: STAM, ViViT and ours (Table 2)", "crosstask", _video_next_step, long=True
    ),
    "transfer": Experiment("next step with few videos, and what other tasks lend", "crosstask", transfer.run),
    "captaincook4d": Experiment("edges against human task graphs", "captaincook4d", captaincook4d.run),
    "mistakes": Experiment("mistakes as they happen, one recording left out", "captaincook4d", mistakes.run),
    "graphs": Experiment("twelve worlds with known graphs (Table 1)", None, graphs.run, long=True),
    "figures": Experiment("graphs beside the truth, completion, the search (Fig. 3)", None, _figures, of_a_step=True),
    "names": Experiment("what the names of steps add to likelihood", "captaincook4d", names.run),
    "noise": Experiment("every method by noise and number of videos", None, noise.run, long=True),
    "scale": Experiment("seconds by size, as ratios", None, scale.run),
    "calibration": Experiment("how true the probabilities of the bootstrap are", None, calibration.run),
    "recovery": Experiment("exact recovery from noise-free random worlds", None, recovery.run),
    "states": Experiment("state prediction on twelve worlds (Table A, Table 1 again)", None, _states, long=True),
    "narration": Experiment("hidden steps from real narration (CrossTask)", "crosstask", _narration, long=True),
    "rendered": Experiment("state prediction from rendered videos", None, _rendered, long=True),
}
