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

from msg2.assist import evaluate, recency, split
from msg2.errors import MissingExtraError
from msg2.experiments.baselines import by_labels, by_narration, prior
from msg2.experiments.cells import Found, filled_in
from msg2.experiments.heard import Memory, by_states, cross_filled, narrated_tasks
from msg2.experiments.hidden import Learner, Outcome, folds, learnt, outcome, with_other_narration
from msg2.experiments.provenance import fingerprint
from msg2.experiments.resampling import Measure, accuracy, auc, auc_within, interval
from msg2.experiments.states_cells import states_can_be_predicted
from msg2.experiments.tables import Dot, Result, Table
from msg2.inference import infer
from msg2.media.text import text_encoder
from msg2.options import BaselineOptions, ExperimentOptions, HidingOptions, NarrationOptions, SplitOptions
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
class Cell:
    """One part of what is measured on one task."""

    task: str
    part: str
    """A name in `PARTS`."""


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """All parts on all tasks that have transcripts."""
    if not states_can_be_predicted():
        raise MissingExtraError("the models of narration", "states")
    chosen = NarrationOptions.quick() if options.quick else NarrationOptions()
    folder, encoder = data / "crosstask", Path(options.text_encoder).name
    inputs = {
        "options": asdict(chosen), "hiding": asdict(HidingOptions()), "baselines": asdict(BaselineOptions()),
        "text_encoder": encoder, "data": fingerprint(folder)["sha256"],
    }  # fmt: skip
    names = list(_narrated_tasks(folder, chosen)[0])
    cells = filled_in(
        [Cell(name, part) for part in PARTS for name in names],
        partial(_measured, folder=folder, encoder=options.text_encoder, options=chosen), depends=lambda _: inputs,
        file=options.folder and options.folder / "narration.cells.json", jobs=options.jobs, report=report,
    )  # fmt: skip
    found = [{"task": name, **{key: one for part in PARTS for key, one in cells[Cell(name, part)].items()}}
             for name in names]  # fmt: skip
    facts = {"text_encoder": encoder, "found": found}
    tables = [_values(found, encoder), _differences(found), _swapped(found), _next_steps(found)]
    return Result("narration", tables, facts, _chart(found))


def _narrated_tasks(folder: Path, options: NarrationOptions) -> tuple[dict[str, Task], dict[str, float]]:
    """The tasks with transcripts, only their narrated videos, and the seconds of every video."""
    with (folder / "durations.csv").open(encoding="utf-8", newline="") as lines:
        seconds = {row["video"]: float(row["seconds"]) for row in csv.DictReader(lines)}
    heard = (
        task.with_videos([video for video in task if video.sentences and video.id in seconds][: options.videos])
        for task in narrated_tasks(folder).values()
    )
    tasks = [task for task in heard if len(task)][: options.tasks]
    return {task.name: task for task in tasks}, seconds


def _measured(cell: Cell, folder: Path, encoder: str, options: NarrationOptions) -> Found:
    from msg2.states.threads import one_thread

    tasks, seconds = _narrated_tasks(folder, options)
    with one_thread():
        return PARTS[cell.part](tasks[cell.task], seconds, Memory(text_encoder(encoder)), options)


def hidden_steps(task: Task, seconds: Mapping[str, float], encode: Memory, options: NarrationOptions) -> Found:
    """By predictor and measure.

    values: with the narration of the video itself; against: models, less the baseline `BAR`; swapped: with the
    narration of another video, less that with its own.
    """
    parts = folds(task, seconds)
    predictors = {name: learnt(make(encode, options), parts) for name, make in LEARNERS.items()}
    outcomes = {name: outcome(of_folds, parts) for name, of_folds in predictors.items()}
    others = {name: outcome(predictors[name], with_other_narration(parts)) for name in HEARING}
    return {
        "videos": sum(len(fold.questions) for fold in parts),
        "values": {name: _intervals(one) for name, one in outcomes.items()},
        "against": {name: _intervals(outcomes[name], outcomes[BAR]) for name in HEARING if name != BAR},
        "swapped": {name: _intervals(others[name], outcomes[name]) for name in HEARING},
    }


def _intervals(one: Outcome, against: Outcome | None = None) -> dict[str, dict[str, float]]:
    return {
        name: asdict(interval(measure, getattr(one, what), None if against is None else getattr(against, what)))
        for name, (measure, what) in MEASURES.items()
    }


def next_step(task: Task, seconds: Mapping[str, float], encode: Memory, options: NarrationOptions) -> Found:
    """By split: next-step accuracy of graphs from the labels alone, and from those that the narration fills up."""
    shares: dict[str, list[float]] = {"MSG²-noSSP": [], "MSG²": []}
    added = []
    for seed in range(options.splits):
        training, test = split(task, SplitOptions(seed=seed))
        full = cross_filled(training, encode, options)
        added.append(sum(len(v.segments) for v in full) - sum(len(v.segments) for v in training))
        for name, labels in (("MSG²-noSSP", training), ("MSG²", full)):
            shares[name].append(100 * (evaluate(recency(infer(labels, delta=DELTA)), test).accuracy or 0.0))
    return {"next_step": shares, "added": added}


PARTS: Mapping[str, Callable[[Task, Mapping[str, float], Memory, NarrationOptions], Found]] = {
    "hidden steps": hidden_steps,
    "next step": next_step,
}


def _text(one: Mapping[str, float]) -> str:
    return f"{100 * one['value']:.1f} [{100 * one['low']:.1f}, {100 * one['high']:.1f}]"


def _rows(found: Sequence[Found], what: str) -> list[list[str]]:
    """A row per task and predictor of one of the measured things."""
    return [
        [each["task"], name, *(_text(each[what][name][measure]) for measure in MEASURES)]
        for each in found
        for name in LEARNERS
        if name in each[what]
    ]


def _values(found: Sequence[Found], encoder: str) -> Table:
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


def _chart(found: Sequence[Found]) -> dict[str, dict[str, Dot]]:
    """Both AUC with their intervals, in percent."""
    return {
        f"{each['task']}: {measure}": {
            name: Dot(*(100 * each["values"][name][measure][key] for key in ("value", "low", "high")))
            for name in LEARNERS
        }
        for measure in ("(a) AUC", "(b) AUC")
        for each in found
    }


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
            [each["task"], *(mean(each["next_step"][name]) for name in ("MSG²-noSSP", "MSG²")), mean(each["added"])]
            for each in found
        ],
        [
            f"Mean of seeded splits with {100 * SplitOptions().test_share:g} % test videos, δ = {DELTA}; the labels of "
            "a training video are filled by a model that has not learnt from it, and none has seen a test video."
        ],
    )
