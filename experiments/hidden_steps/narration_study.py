"""Real narration: steps hidden from models that hear what is said in three CrossTask tasks, beside honest baselines.

`hidden` is the protocol and `baselines` what the models must face. Every predictor learns from the training videos of a
fold alone. Intervals are over videos, paired where two predictors are compared.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from experiments.bootstrap_intervals import (
    WeightedMetric,
    auc_within_videos,
    bootstrap_interval,
    weighted_accuracy,
    weighted_auc,
)
from experiments.experiment_options import ExperimentOptions
from experiments.hidden_steps.baselines import frequency_baseline, label_baseline, narration_baseline
from experiments.hidden_steps.narration_models import (
    CachedTextEncoder,
    NarrationOptions,
    cross_fill_labels,
    read_narrated_tasks,
    state_model_learner,
)
from experiments.hidden_steps.protocol import (
    HiddenStepLearner,
    HiddenStepScores,
    HidingOptions,
    cross_validation_folds,
    fit_predictors,
    score_predictors,
    swap_narration,
)
from experiments.logistic_regression import BaselineOptions
from experiments.provenance import fingerprint
from experiments.result_tables import Dot, Result, Table
from experiments.state_prediction.state_cells import states_extra_installed
from msg2.assist.next_step_evaluation import TEST_SHARE, evaluate_ranker, train_test_split
from msg2.assist.rankers import recency
from msg2.errors import MissingExtraError
from msg2.inference import infer
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.task import Task
from msg2.text_encoders import text_encoder

DELTA = 0.55
"""δ of the paper for CrossTask (App. B)."""
REFERENCE = "labels + narration"
"""The baseline that a model must not be significantly below."""
LEARNERS: Mapping[str, Callable[[CachedTextEncoder, NarrationOptions], HiddenStepLearner]] = {
    "prior": lambda *_: frequency_baseline,
    "labels": lambda *_: label_baseline(),
    REFERENCE: lambda encode, _: narration_baseline(encode),
    "model, text only": partial(state_model_learner, "text-evidence"),
    "model, text + labels": partial(state_model_learner, "text+labels"),
}
NARRATION_LEARNERS = (REFERENCE, "model, text only", "model, text + labels")
MEASURES: Mapping[str, tuple[WeightedMetric, str]] = {
    "(a) accuracy": (weighted_accuracy, "completion"),
    "(a) AUC": (weighted_auc, "completion"),
    "(b) AUC": (weighted_auc, "presence"),
    "(b) AUC within videos": (auc_within_videos, "presence"),
}


@dataclass(frozen=True, slots=True)
class NarrationCell:
    """One part of what is measured on one task."""

    task: str
    part: str
    """A name in `PARTS`."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """All parts on all tasks that have transcripts.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets; an experiment that simulates does not read it.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    if not states_extra_installed():
        raise MissingExtraError("the models of narration", "video")
    chosen = NarrationOptions.quick() if options.quick else NarrationOptions()
    folder, encoder = data / "crosstask", Path(options.text_encoder).name
    inputs = {
        "options": asdict(chosen), "hiding": asdict(HidingOptions()), "baselines": asdict(BaselineOptions()),
        "text_encoder": encoder, "data": fingerprint(folder)["sha256"],
    }  # fmt: skip
    names = list(select_tasks(folder, chosen)[0])
    cells = measure_cells(
        [NarrationCell(name, part) for part in PARTS for name in names],
        partial(_measure_cell, folder=folder, encoder=options.text_encoder, options=chosen),
        cell_options=lambda _: inputs,
        file=options.folder and options.folder / "narration.cells.json", jobs=options.jobs, progress=progress,
    )  # fmt: skip
    found = [{"task": name, **{key: one for part in PARTS for key, one in cells[NarrationCell(name, part)].items()}}
             for name in names]  # fmt: skip
    facts = {"text_encoder": encoder, "found": found}
    tables = [
        _metric_table(found, encoder),
        _difference_table(found),
        _swapped_narration_table(found),
        _next_step_table(found),
    ]
    return Result("narration", tables, facts, _chart(found))


def listed_steps(folder: Path) -> dict[str, list[str]]:
    """The steps of every primary task of CrossTask in the order of the release, about that in which they are done."""
    blocks = (folder / "crosstask_release" / "tasks_primary.txt").read_text("utf-8").split("\n\n")
    entries = [block.strip().splitlines() for block in blocks if block.strip()]
    return {name: steps.split(",") for _, name, _, _, steps in entries}


def select_tasks(folder: Path, options: NarrationOptions) -> tuple[dict[str, Task], dict[str, float]]:
    """The tasks with transcripts, only their narrated videos, and the seconds of every video.

    Parameters
    ----------
    folder : Path
        CrossTask, with transcripts and durations.
    options : NarrationOptions
        How many tasks and videos.

    Returns
    -------
    dict of str to Task, and dict of str to float
    """
    with (folder / "durations.csv").open(encoding="utf-8", newline="") as lines:
        seconds = {row["video"]: float(row["seconds"]) for row in csv.DictReader(lines)}
    heard = (
        task.with_videos([video for video in task if video.sentences and video.id in seconds][: options.videos])
        for task in read_narrated_tasks(folder).values()
    )
    tasks = [task for task in heard if len(task)][: options.tasks]
    return {task.name: task for task in tasks}, seconds


def _measure_cell(cell: NarrationCell, folder: Path, encoder: str, options: NarrationOptions) -> Measurement:
    from msg2.states.loss_and_optimizer import single_thread

    tasks, seconds = select_tasks(folder, options)
    with single_thread():
        return PARTS[cell.part](tasks[cell.task], seconds, CachedTextEncoder(text_encoder(encoder)), options)


def measure_hidden_steps(
    task: Task, seconds: Mapping[str, float], encode: CachedTextEncoder, options: NarrationOptions
) -> Measurement:
    """By predictor and measure.

    values: with the narration of the video itself; against: models, less the baseline `REFERENCE`; swapped: with the
    narration of another video, less that with its own.

    Parameters
    ----------
    task : Task
        The task.
    seconds : mapping
        The length of every video in seconds, by its id.
    encode : CachedTextEncoder
        From texts to vectors.
    options : NarrationOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    parts = cross_validation_folds(task, seconds)
    predictors = {name: fit_predictors(make(encode, options), parts) for name, make in LEARNERS.items()}
    outcomes = {name: score_predictors(of_folds, parts) for name, of_folds in predictors.items()}
    others = {name: score_predictors(predictors[name], swap_narration(parts)) for name in NARRATION_LEARNERS}
    return {
        "videos": sum(len(fold.questions) for fold in parts),
        "values": {name: _intervals(one) for name, one in outcomes.items()},
        "against": {
            name: _intervals(outcomes[name], outcomes[REFERENCE]) for name in NARRATION_LEARNERS if name != REFERENCE
        },
        "swapped": {name: _intervals(others[name], outcomes[name]) for name in NARRATION_LEARNERS},
    }


def _intervals(one: HiddenStepScores, against: HiddenStepScores | None = None) -> dict[str, dict[str, float]]:
    return {
        name: asdict(
            bootstrap_interval(measure, getattr(one, what), None if against is None else getattr(against, what))
        )
        for name, (measure, what) in MEASURES.items()
    }


def measure_next_step(
    task: Task, seconds: Mapping[str, float], encode: CachedTextEncoder, options: NarrationOptions
) -> Measurement:
    """By split: next-step accuracy of graphs from the labels alone, and from those that the narration fills up.

    Parameters
    ----------
    task : Task
        The task.
    seconds : mapping
        The length of every video in seconds, by its id.
    encode : CachedTextEncoder
        From texts to vectors.
    options : NarrationOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    shares: dict[str, list[float]] = {"MSG²-noSSP": [], "MSG²": []}
    added = []
    for seed in range(options.splits):
        training, test = train_test_split(task, seed=seed)
        full = cross_fill_labels(training, encode, options)
        added.append(sum(len(v.segments) for v in full) - sum(len(v.segments) for v in training))
        for name, labels in (("MSG²-noSSP", training), ("MSG²", full)):
            ranker = recency(infer(labels, "msg2", delta=DELTA))
            shares[name].append(100 * (evaluate_ranker(ranker, test).accuracy or 0.0))
    return {"next_step": shares, "added": added}


PARTS: Mapping[str, Callable[[Task, Mapping[str, float], CachedTextEncoder, NarrationOptions], Measurement]] = {
    "hidden steps": measure_hidden_steps,
    "next step": measure_next_step,
}


def _format_interval(one: Mapping[str, float]) -> str:
    return f"{100 * one['value']:.1f} [{100 * one['low']:.1f}, {100 * one['high']:.1f}]"


def _rows(found: Sequence[Measurement], what: str) -> list[list[str]]:
    """A row per task and predictor of one of the measured things."""
    return [
        [each["task"], name, *(_format_interval(each[what][name][measure]) for measure in MEASURES)]
        for each in found
        for name in LEARNERS
        if name in each[what]
    ]


def _metric_table(found: Sequence[Measurement], encoder: str) -> Table:
    videos = ", ".join(f"{each['task']}: {each['videos']}" for each in found)
    return Table(
        "Hidden steps: (a) is it completed at the other steps' borders, (b) is it in the video at all; percent",
        ["task", "predictor", *MEASURES],
        _rows(found, "values"),
        [
            "5 folds over videos, 25 % of the labelled steps of each test video hidden; 95 % bootstrap intervals over "
            f"videos ({videos}). Logistic regressions on the other "
            "labels and the position; with the similarity of step name and narration; and two models of states. Texts "
            + ("are hashed words: no weights." if encoder == "words" else f"by the sentence encoder {encoder}.")
        ],
    )


def _chart(found: Sequence[Measurement]) -> dict[str, dict[str, Dot]]:
    """Both AUC with their intervals, in percent."""
    return {
        f"{each['task']}: {measure}": {
            name: Dot(*(100 * each["values"][name][measure][key] for key in ("value", "low", "high")))
            for name in LEARNERS
        }
        for measure in ("(a) AUC", "(b) AUC")
        for each in found
    }


def _difference_table(found: Sequence[Measurement]) -> Table:
    return Table(
        f"Models less the baseline {REFERENCE}, points",
        ["task", "model", *MEASURES],
        _rows(found, "against"),
        ["Paired over videos; an interval without 0 is significant."],
    )


def _swapped_narration_table(found: Sequence[Measurement]) -> Table:
    return Table(
        "With the narration of another video in the place of its own: change in points",
        ["task", "predictor", *MEASURES],
        _rows(found, "swapped"),
        ["What does not listen would not change."],
    )


def _next_step_table(found: Sequence[Measurement]) -> Table:
    return Table(
        "Next step on the same test videos, percent",
        ["task", "MSG²-noSSP", "MSG², labels filled from the narration", "labels added"],
        [
            [each["task"], *(mean(each["next_step"][name]) for name in ("MSG²-noSSP", "MSG²")), mean(each["added"])]
            for each in found
        ],
        [
            f"Mean of seeded splits with {100 * TEST_SHARE:g} % test videos, δ = {DELTA}; the labels of "
            "a training video are filled by a model that has not learnt from it, and none has seen a test video."
        ],
    )
