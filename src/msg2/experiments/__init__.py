"""The paper's tables and ours, each repeatable with one command. A new one is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from msg2.experiments.tables import Result, Table
from msg2.options import ExperimentOptions

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Table"]

Run: TypeAlias = Callable[[Any, ExperimentOptions, Callable[[str], None]], Result]
"""(folder of the annotation sets, or None; options; where news go) -> what was found."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """What it shows, the annotation set it needs (None: it simulates), and how it runs."""

    shows: str
    needs: str | None
    run: Run
    long: bool = False
    """Whether it goes on after an interruption, and runs in several processes."""
    full: bool = False
    """Whether it has the paper's sizes as well."""
    of_a_step: bool = False
    """Whether a task and a step of it can be chosen."""


def _of(module: str) -> Run:
    """`run` of a module here, which is imported when it runs: many need optional parts, and `list` should need none."""

    def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
        found: Result = import_module(f"{__name__}.{module}").run(data, options, report)
        return found

    return run


EXPERIMENTS: Mapping[str, Experiment] = {
    "next-step": Experiment("next step on CrossTask, labels only (Table 2)", "crosstask", _of("next_step")),
    "video-next-step": Experiment(
        "next step from labels and narration: STAM, ViViT and ours (Table 2)",
        "crosstask",
        _of("video_baselines"),
        long=True,
    ),
    "transfer": Experiment("next step with few videos, and what other tasks lend", "crosstask", _of("transfer")),
    "captaincook4d": Experiment("edges against human task graphs", "captaincook4d", _of("captaincook4d")),
    "mistakes": Experiment("mistakes as they happen, one recording left out", "captaincook4d", _of("mistakes")),
    "graphs": Experiment("twelve worlds with known graphs (Table 1)", None, _of("graphs"), long=True, full=True),
    "figures": Experiment(
        "graphs beside the truth, completion, the search (Fig. 3)", None, _of("figures"), of_a_step=True
    ),
    "names": Experiment("what the names of steps add to likelihood", "captaincook4d", _of("names")),
    "noise": Experiment("every method by noise and number of videos", None, _of("noise"), long=True),
    "scale": Experiment("seconds by size, as ratios", None, _of("scale")),
    "calibration": Experiment("how true the probabilities of the bootstrap are", None, _of("calibration")),
    "recovery": Experiment("exact recovery from noise-free random worlds", None, _of("recovery")),
    "states": Experiment(
        "state prediction on twelve worlds (Table A, Table 1 again)", None, _of("states"), long=True, full=True
    ),
    "narration": Experiment("hidden steps from real narration (CrossTask)", "crosstask", _of("narration"), long=True),
    "rendered": Experiment("state prediction from rendered videos", None, _of("rendered"), long=True, full=True),
}
