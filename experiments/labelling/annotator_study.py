"""A simulated annotator with the true labels of CrossTask: videos until the graph is right, and keys pressed per label.

Which video is labelled next is chosen by the workbench or at random, on all tasks; drafts save keys, or cost them, on
the tasks with narration. Intervals are over tasks and over videos, paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.hidden_steps.narration_models import CachedTextEncoder, NarrationOptions
from experiments.hidden_steps.narration_study import listed_steps, select_tasks
from experiments.labelling.annotator_keys import KeyCount, Precision, label_video
from experiments.labelling.annotator_tables import annotator_chart, annotator_tables
from experiments.labelling.label_orders import (
    SIZES,
    ChosenOrder,
    agreement_curve,
    close_for_good,
    curve_sizes,
    first_close,
    labels_within,
    mean_agreement,
    most_drafted_first,
    random_order,
    simulated_drafts,
    workbench_order,
)
from experiments.provenance import fingerprint
from experiments.result_tables import Result
from msg2.formats import read_all
from msg2.inference import infer
from msg2.labelling.alignment import Aligner, AlignmentOptions
from msg2.labelling.drafts import LabelOptions, draft_with
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.server.dataset_functions import SAMPLES
from msg2.task import Segment, Step, Task, Video
from msg2.text_encoders import text_encoder

RANDOM = "at random"
RANDOM_ORDERS = 10
FEW = 10
"""Labelled videos that drafts are made from, where any are."""
DRAWS = 2
SPREAD_SECONDS = 5.0
"""Length of a draft of the baseline that listens to nothing."""
PRECISIONS: Sequence[Precision] = ("exact", "rough")


@dataclass(frozen=True, slots=True)
class DraftCell:
    """Drafts of a narrated task by an encoder."""

    task: str
    encoder: str


@dataclass(frozen=True, slots=True)
class OrderCell:
    """A task whose videos are labelled in an order that is chosen in this way."""

    task: str
    way: str
    seed: int = 0


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Orders on all tasks, and keys on those with transcripts: by hashed words and, where it is given, another encoder.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    folder = data / "crosstask"
    encoders = {Path(name).name: name for name in dict.fromkeys(("words", options.text_encoder))}
    size = NarrationOptions(tasks=1, videos=12) if options.quick else NarrationOptions()
    narrated, seconds = select_tasks(folder, size)
    names = [task.name for task in _labelled_tasks(folder)]
    if options.quick:
        names = [*narrated, next(name for name in names if name not in narrated)]
    sha256 = fingerprint(folder)["sha256"]
    file = options.folder and options.folder / "annotator.cells.json"
    drafted = measure_cells(
        [DraftCell(name, encoder) for encoder in encoders for name in narrated],
        partial(_measure_drafts, folder=folder, encoders=encoders, size=size),
        cell_options=lambda _: {"data": sha256, "few": FEW, "draws": DRAWS},
        file=file, jobs=options.jobs, progress=progress,
    )  # fmt: skip
    last = list(encoders)[-1]
    rates = draft_rates([found["presence"] for cell, found in drafted.items() if cell.encoder == last])
    drafts = {
        f"drafts, {encoder}": {
            cell.task: found["no labels"] for cell, found in drafted.items() if cell.encoder == encoder
        }
        for encoder in encoders
    }
    cells = [
        *(OrderCell(name, RANDOM, seed) for name in names for seed in range(RANDOM_ORDERS)),
        *(OrderCell(name, way) for way in PLAIN_WAYS for name in names),
        *(OrderCell(name, f"{way}: {source}") for source in drafts for way in DRAFT_WAYS for name in narrated),
        *(OrderCell(name, f"{way}: {source}") for source in SIMULATED for way in DRAFT_WAYS for name in names),
    ]
    facts = {"sizes": SIZES, "samples": SAMPLES, "rates of simulated drafts": rates, "data": sha256}
    orders = measure_cells(
        cells,
        partial(_measure_order, data=OrderData(folder, seconds, drafts, rates, size.videos)),
        cell_options=lambda _: facts,
        file=file, jobs=options.jobs, progress=progress,
    )  # fmt: skip
    found = [{**asdict(cell), **numbers} for cell, numbers in orders.items()]
    pressed = [{**asdict(cell), **_count_task(cell, one, folder, seconds)} for cell, one in drafted.items()]
    tables = annotator_tables(found, pressed, rates)
    return Result("annotator", tables, {**facts, "orders": found}, annotator_chart(found, pressed))


# -- orders -----------------------------------------------------------------------------------------------------------

DraftRow: TypeAlias = tuple[Step, float, float, float]
"""Step, start, end and confidence of a draft, as they lie in a file."""


@dataclass(frozen=True, slots=True)
class OrderData:
    """What the orders are made of."""

    folder: Path
    seconds: Mapping[str, float]
    drafts: Mapping[str, Mapping[str, Mapping[str, Sequence[DraftRow]]]]
    """By source, task and video."""
    rates: tuple[float, float]
    """Of simulated drafts."""
    videos: int | None
    """Of each task, the first ones; None: all."""


def _by_drafts(task: Task, drafts: Mapping[str, Video]) -> ChosenOrder:
    return ChosenOrder(most_drafted_first(task, drafts), ())


DRAFT_WAYS = {"workbench": workbench_order, "most steps": _by_drafts}
"""Ways to choose that see drafts."""
PLAIN_WAYS = ("workbench: no drafts", "longest video")
"""Ways to choose that see none."""
SIMULATED = ("steps known", "simulated drafts")
"""Drafts that there are of every task."""


def _measure_order(cell: OrderCell, data: OrderData) -> Measurement:
    task = next(task for task in _labelled_tasks(data.folder) if task.name == cell.task)
    task = task.with_videos(list(task)[: data.videos])
    way, _, source = cell.way.partition(": ")
    if source in data.drafts:
        seen = {name: Video(name, _segments(rows)) for name, rows in data.drafts[source][cell.task].items()}
    elif source == "simulated drafts":
        seen = simulated_drafts(task, *data.rates, cell.seed)
    else:
        seen = simulated_drafts(task, 1.0, 0.0, cell.seed) if source == "steps known" else {}
    if way in DRAFT_WAYS:
        order = DRAFT_WAYS[way](task, seen)
    elif way == RANDOM:
        order = ChosenOrder(random_order(task, cell.seed), ())
    else:
        by_length = sorted((video.id for video in task), key=lambda name: (-data.seconds.get(name, 0.0), name))
        order = ChosenOrder(tuple(by_length), ())
    return measure_order(task, order)


@cache
def _labelled_tasks(folder: Path) -> list[Task]:
    return read_all(folder / "crosstask_release")


def measure_order(task: Task, order: ChosenOrder) -> Measurement:
    """How soon the graph of an order agrees with that of all labels.

    Parameters
    ----------
    task : Task
        With its true labels.
    order : ChosenOrder

    Returns
    -------
    Measurement
        Also, where the workbench said at each size whether the labels are enough, when it said so first, and how the
        graph agreed then.
    """
    sizes = curve_sizes(len(task))
    agreement = agreement_curve(task, order.videos, infer(task.with_first_labels()))
    good = close_for_good(sizes, agreement)
    enough = next((place for place, one in enumerate(order.stability) if one.enough), None)
    return {
        "videos": len(task), "steps": len(task.steps), "agreement": agreement,
        "for good": good, "first": first_close(sizes, agreement), "mean F1": mean_agreement(sizes, agreement),
        "labels": labels_within(task, order.videos, good),
        "enough": None if enough is None else [sizes[enough], agreement[enough]],
    }  # fmt: skip


# -- keys -------------------------------------------------------------------------------------------------------------


def _measure_drafts(cell: DraftCell, folder: Path, encoders: Mapping[str, str], size: NarrationOptions) -> Measurement:
    tasks, seconds = select_tasks(folder, size)
    task, encode = tasks[cell.task], CachedTextEncoder(text_encoder(encoders[cell.encoder]))
    aligner = Aligner.prepare(task, listed_steps(folder)[cell.task], encode, AlignmentOptions(), seconds)
    names = [video.id for video in task]
    draws = [np.random.default_rng(seed).permutation(len(names))[:FEW] for seed in range(DRAWS)]
    without = _drafts(task, aligner, [])
    return {
        "no labels": {name: _rows(segments) for name, segments in without.items()},
        "few labels": [
            {name: _rows(segments) for name, segments in _drafts(task, aligner, [names[n] for n in labelled]).items()}
            for labelled in draws
        ],
        "presence": _presence(task, without),
    }


def _count_task(cell: DraftCell, drafted: Measurement, folder: Path, seconds: Mapping[str, float]) -> Measurement:
    """Keys by way, precision and video; and the labels of each video."""
    kept = next(one for one in read_all(folder / "crosstask_release", repeats="keep") if one.name == cell.task)
    truth, steps = {video.id: video.segments for video in kept}, listed_steps(folder)[cell.task]
    count = partial(count_keys, steps, seconds, truth)
    names = list(drafted["no labels"])
    few = [count({name: _segments(rows) for name, rows in draw.items()}) for draw in drafted["few labels"]]
    found = {
        "no drafts": count(dict.fromkeys(names, ())),
        "evenly spread": count({name: spread_drafts(steps, seconds[name]) for name in names}),
        "no labels": count({name: _segments(rows) for name, rows in drafted["no labels"].items()}),
        f"{FEW} labelled": _mean_counts(few),
    }
    return {"keys": found, "labels": {name: len(truth[name]) for name in names}}


def _drafts(task: Task, aligner: Aligner, labelled: Sequence[str]) -> dict[str, Sequence[Segment]]:
    """The drafts of the videos that are not labelled."""
    kept = [video if video.id in labelled else Video(video.id, (), video.sentences) for video in task]
    drafted = draft_with(aligner, task.with_videos(kept), LabelOptions()).task
    return {video.id: video.segments for video in drafted if video.id not in labelled}


def spread_drafts(steps: Sequence[Step], seconds: float) -> list[Segment]:
    """Drafts that follow each other evenly in the order of the list.

    Parameters
    ----------
    steps : sequence of Step
    seconds : float
        Length of the video.

    Returns
    -------
    list of Segment

    >>> [(segment.start, segment.end) for segment in spread_drafts(["brew", "pour"], 40)]
    [(7.5, 12.5), (27.5, 32.5)]
    """
    middles = [(place + 0.5) / len(steps) * seconds for place in range(len(steps))]
    half = SPREAD_SECONDS / 2
    return [
        Segment(step, max(middle - half, 0.0), min(middle + half, seconds))
        for step, middle in zip(steps, middles, strict=True)
    ]


def count_keys(
    steps: Sequence[Step],
    seconds: Mapping[str, float],
    truth: Mapping[str, Sequence[Segment]],
    drafts: Mapping[str, Sequence[Segment]],
) -> dict[str, dict[str, tuple[float, float]]]:
    """Count the keys that it takes to label videos.

    Parameters
    ----------
    steps : sequence of Step
        In the order of the workbench.
    seconds : mapping of str to float
        Lengths of videos.
    truth : mapping of str to sequence of Segment
        True labels of videos.
    drafts : mapping of str to sequence of Segment
        Of the videos that are labelled.

    Returns
    -------
    dict
        By precision and video: keys to decide, and keys to seek.
    """

    def count(name: str, precision: Precision) -> KeyCount:
        ends = [segment.end or 0.0 for segment in (*truth[name], *drafts[name])]
        return label_video(steps, max(seconds[name], *ends, 0.0), truth[name], drafts[name], precision).count()

    counts = {precision: {name: count(name, precision) for name in drafts} for precision in PRECISIONS}
    return {
        precision: {name: (float(one.deciding), float(one.seeking)) for name, one in of_video.items()}
        for precision, of_video in counts.items()
    }


def _mean_counts(draws: Sequence[Mapping[str, Mapping[str, tuple[float, float]]]]) -> Measurement:
    """By precision and video, the mean of the draws that have drafts of the video."""
    found: Measurement = {}
    for precision in PRECISIONS:
        names = sorted({name for draw in draws for name in draw[precision]})
        each = {name: [draw[precision][name] for draw in draws if name in draw[precision]] for name in names}
        found[precision] = {name: np.mean(pairs, axis=0).tolist() for name, pairs in each.items()}
    return found


def _presence(task: Task, drafts: Mapping[str, Sequence[Segment]]) -> list[int]:
    """Of the steps that a video shows: how many are drafted, and how many there are; and of those that it does not."""
    found = [0, 0, 0, 0]
    for video in task:
        shown, drafted = ({segment.step for segment in rows} for rows in (video.segments, drafts[video.id]))
        absent = set(task.steps) - shown
        counts = (len(shown & drafted), len(shown), len(absent & drafted), len(absent))
        found = [old + new for old, new in zip(found, counts, strict=True)]
    return found


def draft_rates(presence: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Share of drafted steps among those that a video shows, and among those that it does not.

    >>> draft_rates([[6, 10, 1, 5], [2, 6, 2, 5]])
    (0.5, 0.3)
    """
    drafted, shown, wrong, absent = np.sum(presence, axis=0).tolist()
    return drafted / max(shown, 1), wrong / max(absent, 1)


def _rows(segments: Sequence[Segment]) -> list[DraftRow]:
    return [(one.step, one.start or 0.0, one.end or 0.0, one.confidence or 0.0) for one in segments]


def _segments(rows: Sequence[DraftRow]) -> list[Segment]:
    return [Segment(step, start, end, confidence) for step, start, end, confidence in rows]
