"""Real narration: steps hidden from models that hear what is said in three CrossTask tasks, beside honest baselines.

`hidden` is the protocol and `baselines` what the models must face. Every predictor learns from the training videos of a
fold alone. Intervals are over videos, paired where two predictors are compared.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

from msg2.assist import evaluate, recency, split
from msg2.experiments.baselines import by_labels, by_narration, prior
from msg2.experiments.heard import Memory, by_states, cross_filled, narrated_tasks
from msg2.experiments.hidden import Learner, Outcome, folds, learnt, outcome, with_other_narration
from msg2.experiments.resampling import Interval, Measure, accuracy, auc, auc_within, interval
from msg2.experiments.tables import Result, Table
from msg2.inference import infer
from msg2.media.text import text_encoder
from msg2.options import ExperimentOptions, NarrationOptions, SplitOptions
from msg2.task import Task

DELTA = 0.55
"""δ of the paper for CrossTask (App. B)."""
BAR = "labels + narration"
"""The baseline that a model must not be significantly below."""
LEARNERS: Mapping[str, Callable[[Memory, NarrationOptions], Learner]] = {
    "prior": lambda *_: prior,
    "labels": lambda *_: by_labels(),
    BAR: lambda encode, _: by_narration(encode),
    "model, text only": partial(by_states, "text-witness"),
    "model, text + labels": partial(by_states, "text+labels"),
}
HEARING = (BAR, "model, text only", "model, text + labels")
MEASURES: Mapping[str, tuple[Measure, str]] = {
    "(a) accuracy": (accuracy, "completion"),
    "(a) AUC": (auc, "completion"),
    "(b) AUC": (auc, "presence"),
    "(b) AUC within videos": (auc_within, "presence"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured on one task."""

    task: str
    videos: int
    values: Mapping[str, Mapping[str, Interval]]
    """Predictor -> measure -> value."""
    against: Mapping[str, Mapping[str, Interval]]
    """Model -> measure -> its value less that of the baseline `BAR`."""
    swapped: Mapping[str, Mapping[str, Interval]]
    """Predictor -> measure -> its value with the narration of another video, less that with its own."""
    next_step: Mapping[str, Sequence[float]]
    """Labels -> accuracy of the next step on the test videos of every split."""
    added: Sequence[int]
    """Labels that were filled in, per split."""


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """All tasks that have transcripts, each in a process of its own where there are several."""
    tasks, seconds = _narrated_tasks(data / "crosstask")
    chosen = NarrationOptions()
    if options.quick:
        chosen, tasks = NarrationOptions.quick(), [tasks[0].with_videos(tasks[0].videos[:12])]
    one = partial(_found, seconds=seconds, encoder=options.text_encoder, options=chosen)
    found = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for each in pool.map(one, tasks):
            found.append(each)
            report(f"{len(found)} of {len(tasks)} tasks ({each.task})")
    facts = {"text_encoder": Path(options.text_encoder).name, "found": [asdict(each) for each in found]}
    return Result("narration", [_values(found), _differences(found), _swapped(found), _next_steps(found)], facts)


def _narrated_tasks(folder: Path) -> tuple[list[Task], dict[str, float]]:
    """The tasks with transcripts, only their narrated videos, and the seconds of every video."""
    with (folder / "durations.csv").open(encoding="utf-8", newline="") as lines:
        seconds = {row["video"]: float(row["seconds"]) for row in csv.DictReader(lines)}
    heard = (
        task.with_videos(video for video in task if video.sentences and video.id in seconds)
        for task in narrated_tasks(folder).values()
    )
    return [task for task in heard if len(task)], seconds


def _found(task: Task, seconds: Mapping[str, float], encoder: str, options: NarrationOptions) -> Found:
    import torch

    torch.set_num_threads(1)
    encode = Memory(text_encoder(encoder))
    parts = folds(task, seconds)
    predictors = {name: learnt(make(encode, options), parts) for name, make in LEARNERS.items()}
    outcomes = {name: outcome(of_folds, parts) for name, of_folds in predictors.items()}
    others = {name: outcome(predictors[name], with_other_narration(parts)) for name in HEARING}
    next_step, added = _next_step(task, encode, options)
    return Found(
        task.name,
        sum(len(fold.questions) for fold in parts),
        {name: _measured(one) for name, one in outcomes.items()},
        {name: _measured(outcomes[name], outcomes[BAR]) for name in HEARING if name != BAR},
        {name: _measured(others[name], outcomes[name]) for name in HEARING},
        next_step,
        added,
    )


def _measured(one: Outcome, against: Outcome | None = None) -> dict[str, Interval]:
    return {
        name: interval(measure, getattr(one, what), None if against is None else getattr(against, what))
        for name, (measure, what) in MEASURES.items()
    }


def _next_step(task: Task, encode: Memory, options: NarrationOptions) -> tuple[dict[str, list[float]], list[int]]:
    """Next-step accuracy of graphs from the labels alone, and from the labels that the narration fills up."""
    shares: dict[str, list[float]] = {"MSG²-noSSP": [], "MSG²": []}
    added = []
    for seed in range(options.splits):
        training, test = split(task, SplitOptions(seed=seed))
        full = cross_filled(training, encode, options)
        added.append(sum(len(v.segments) for v in full) - sum(len(v.segments) for v in training))
        for name, labels in (("MSG²-noSSP", training), ("MSG²", full)):
            shares[name].append(100 * (evaluate(recency(infer(labels, delta=DELTA)), test).accuracy or 0.0))
    return shares, added


def _text(one: Interval) -> str:
    return f"{100 * one.value:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _rows(found: Sequence[Found], what: str) -> list[list[str]]:
    """A row per task and predictor of one of the measured things."""
    return [
        [each.task, name, *(_text(values[measure]) for measure in MEASURES)]
        for each in found
        for name, values in getattr(each, what).items()
    ]


def _values(found: Sequence[Found]) -> Table:
    return Table(
        "Hidden steps: (a) is it completed at the other steps' borders, (b) is it in the video at all; percent",
        ["task", "predictor", *MEASURES],
        _rows(found, "values"),
        [
            "5 folds over videos, 25 % of the labelled steps of each test video hidden; 95 % bootstrap intervals over "
            f"videos ({', '.join(f'{each.task}: {each.videos}' for each in found)}). Logistic regressions on the other "
            "labels and the position; with the similarity of step name and narration; and two models of states."
        ],
    )


def _differences(found: Sequence[Found]) -> Table:
    return Table(
        f"Models less the baseline {BAR}, points",
        ["task", "model", *MEASURES],
        _rows(found, "against"),
        ["Paired over videos; an interval without 0 is significant."],
    )


def _swapped(found: Sequence[Found]) -> Table:
    return Table(
        "With the narration of another video in the place of its own: change in points",
        ["task", "predictor", *MEASURES],
        _rows(found, "swapped"),
        ["What does not listen would not change."],
    )


def _next_steps(found: Sequence[Found]) -> Table:
    return Table(
        "Next step on the same test videos, percent",
        ["task", "MSG²-noSSP", "MSG², labels filled from the narration", "labels added"],
        [
            [each.task, mean(each.next_step["MSG²-noSSP"]), mean(each.next_step["MSG²"]), mean(each.added)]
            for each in found
        ],
        [
            f"Mean of seeded splits with {100 * SplitOptions().test_share:g} % test videos, δ = {DELTA}; the labels of "
            "a training video are filled by a model that has not learnt from it, and none has seen a test video."
        ],
    )
