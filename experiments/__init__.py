"""The paper's tables and ours, each repeatable with one command. A new one is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table
from msg2.progress import Progress

__all__ = ["EXPERIMENTS", "Experiment", "Result", "Table"]

RunFunction: TypeAlias = Callable[[Any, ExperimentOptions, Progress], Result]
"""(folder of the annotation sets, or None; options; where progress is shown) -> the result."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """What an experiment shows, the annotation set it needs (None: it simulates), and how it runs."""

    summary: str
    dataset: str | None
    run: RunFunction
    resumable: bool = False
    """Whether it goes on after an interruption, and runs in several processes."""
    full: bool = False
    """Whether it has the paper's sizes as well."""
    takes_step: bool = False
    """Whether a task and a step of it can be chosen."""
    held_out: bool = False
    """Whether it has a held-out set, whose files are called NAME-held-out."""


def _lazy_run(module: str) -> RunFunction:
    """Return `run` of a module here, imported when it is called: many need optional parts, and `list` needs none."""

    def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
        result: Result = import_module(f"{__name__}.{module}").run(data, options, progress)
        return result

    return run


EXPERIMENTS: Mapping[str, Experiment] = {
    "next-step": Experiment(
        "next step on CrossTask, labels only (Table 2)", "crosstask", _lazy_run("forecasting.next_step_labels")
    ),
    "video-next-step": Experiment(
        "next step from labels and narration: STAM, ViViT and ours (Table 2)",
        "crosstask",
        _lazy_run("forecasting.next_step_video"),
        resumable=True,
    ),
    "next-event": Experiment(
        "next event of logs, repetitions too, beside an n-gram and an LSTM", "logs", _lazy_run("forecasting.next_event")
    ),
    "transfer": Experiment(
        "next step with few videos, and what other tasks lend",
        "crosstask",
        _lazy_run("forecasting.next_step_transfer"),
    ),
    "few-videos": Experiment(
        "next step with one to forty videos, beside bigrams", "crosstask", _lazy_run("forecasting.few_videos")
    ),
    "time-left": Experiment("how long a video still goes on", "crosstask", _lazy_run("forecasting.remaining_time")),
    "planning": Experiment(
        "steps between the first and the last of three or four",
        "crosstask",
        _lazy_run("forecasting.procedure_planning"),
    ),
    "contest": Experiment(
        "which of two traces fits better: the Process Discovery Contest 2025",
        "pdc2025",
        _lazy_run("process_discovery.discovery_contest"),
        resumable=True,
    ),
    "statements": Experiment(
        "what graphs state, against plain counts of the data that they were learned from",
        "logs",
        _lazy_run("process_discovery.true_statements"),
    ),
    "exported-models": Experiment(
        "PNML, BPMN and POWL of graphs, replayed by pm4py", None, _lazy_run("process_discovery.exported_models")
    ),
    "injected-errors": Experiment(
        "errors put into cases of random processes, found by check, DECLARE and the inductive miner",
        None,
        _lazy_run("process_discovery.injected_errors"),
    ),
    "captaincook4d": Experiment(
        "edges against human task graphs", "captaincook4d", _lazy_run("graph_learning.task_graph_edges")
    ),
    "mistakes": Experiment(
        "mistakes as they happen, one recording left out",
        "captaincook4d",
        _lazy_run("mistake_detection.online_mistakes"),
    ),
    "trial-mistakes": Experiment(
        "mistakes in whole trials as they happen, participants left out",
        "assembly101-mistakes",
        _lazy_run("mistake_detection.trial_mistakes"),
    ),
    "accusations": Experiment(
        "who is accused of a mistake: videos, swapped copies, recordings with errors",
        "captaincook4d",
        _lazy_run("mistake_detection.accusations"),
    ),
    "live": Experiment(
        "runs followed live behind a recogniser that errs",
        "captaincook4d",
        _lazy_run("mistake_detection.live"),
        resumable=True,
    ),
    "grounding": Experiment(
        "segments from per-frame scores: a graph, a bigram, or neither",
        "captaincook4d",
        _lazy_run("mistake_detection.grounding"),
        resumable=True,
    ),
    "graphs": Experiment(
        "twelve worlds with known graphs (Table 1)",
        None,
        _lazy_run("graph_learning.household_graphs"),
        resumable=True,
        full=True,
    ),
    "figures": Experiment(
        "graphs beside the truth, completion, the search (Fig. 3)",
        None,
        _lazy_run("paper_figures.figures_study"),
        takes_step=True,
    ),
    "names": Experiment(
        "what the names of steps add to likelihood", "captaincook4d", _lazy_run("graph_learning.step_name_prior")
    ),
    "text-priors": Experiment(
        "what a written order, or answers of a model, add to few recordings",
        "captaincook4d",
        _lazy_run("graph_learning.text_priors"),
    ),
    "noise": Experiment(
        "every method by noise and number of videos", None, _lazy_run("graph_learning.noise_curves"), resumable=True
    ),
    "scale": Experiment("seconds by size, as ratios", None, _lazy_run("graph_learning.runtime_scaling")),
    "calibration": Experiment(
        "how true the probabilities of the bootstrap are", None, _lazy_run("graph_learning.bootstrap_calibration")
    ),
    "recovery": Experiment(
        "exact recovery from noise-free random worlds", None, _lazy_run("graph_learning.exact_recovery")
    ),
    "ors": Experiment(
        "which ORs are found, and the score of the truth beside that of what was found",
        None,
        _lazy_run("graph_learning.or_recovery"),
        resumable=True,
    ),
    "kinds": Experiment(
        "kinds of pairs in process trees and in worlds with optional steps",
        None,
        _lazy_run("graph_learning.learned_kinds"),
        resumable=True,
        held_out=True,
    ),
    "kinds-ties": Experiment(
        "kinds of pairs with simultaneous events and coarse clocks", None, _lazy_run("graph_learning.tied_kinds")
    ),
    "states": Experiment(
        "state prediction on twelve worlds (Table A, Table 1 again)",
        None,
        _lazy_run("state_prediction.state_study"),
        resumable=True,
        full=True,
    ),
    "filling-calibration": Experiment(
        "how true the confidences of filled-in labels are",
        None,
        _lazy_run("state_prediction.filling_calibration"),
        resumable=True,
    ),
    "narration": Experiment(
        "hidden steps from real narration (CrossTask)",
        "crosstask",
        _lazy_run("hidden_steps.narration_study"),
        resumable=True,
    ),
    "labelling": Experiment(
        "drafts of labels from real narration (CrossTask)",
        "crosstask",
        _lazy_run("labelling.labelling_study"),
        resumable=True,
    ),
    "annotator": Experiment(
        "a simulated annotator: which video next, keys per label (CrossTask)",
        "crosstask",
        _lazy_run("labelling.annotator_study"),
        resumable=True,
    ),
    "rendered": Experiment(
        "state prediction from rendered videos",
        None,
        _lazy_run("state_prediction.rendered_videos"),
        resumable=True,
        full=True,
    ),
    "streams": Experiment(
        "what sound and motion add to frames and sentences in rendered worlds",
        None,
        _lazy_run("state_prediction.stream_ablation"),
        resumable=True,
    ),
}
