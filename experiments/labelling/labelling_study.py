"""Drafts from the real narration of three CrossTask tasks: recall without labels and with few, order, graphs.

The constants of the alignment were set with all three tasks in view; to show what that flatters, they are also drawn
from wide ranges, and chosen for each task on the two others. Intervals are over videos, paired where two ways are
compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from experiments.bootstrap_intervals import Numbers
from experiments.experiment_options import ExperimentOptions
from experiments.hidden_steps.narration_models import CachedTextEncoder, NarrationOptions
from experiments.hidden_steps.narration_study import listed_steps, select_tasks
from experiments.labelling.draft_baselines import logistic_times, nearest_times, spread_times, uniform_hits
from experiments.labelling.draft_protocol import DraftTruth, recall_interval
from experiments.provenance import fingerprint
from experiments.result_tables import Dot, Result, Table
from msg2 import metrics
from msg2.inference import infer
from msg2.labelling.alignment import LEAST_VIDEOS, Aligner, AlignmentOptions
from msg2.labelling.drafts import (
    FEW_LABELS,
    LABEL_USES,
    LEAST_DRAFTS,
    UNCHECKED,
    LabelOptions,
    check_calibration,
    cross_fitted,
    draft_with,
    fit_calibrator,
    held_out_drafts,
)
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.task import Task, Video
from msg2.text_encoders import text_encoder

SIZES = (1, 3, 5, 10, 20)
"""Labelled videos, drawn at random."""
GRAPH_SIZES = (1, 3, 5, 10)
DRAWS = 2
FOLDS = 5
"""Each is drafted from the labels of the others: 80 %."""
RANGES = {
    "name_weight": (0.05, 0.8), "prototype_weight": (0.05, 0.8), "position_weight": (0.05, 0.8),
    "prototype_count": (5, 100), "position_count": (2, 100), "order_count": (0.3, 30), "order_decay": (0.5, 3),
    "backward": (0.01, 0.5), "step_seconds": (3, 20), "adjacent": (0.05, 0.5), "presence": (0.4, 0.9),
}  # fmt: skip
"""Constants of the alignment are drawn from these, evenly in their logarithms; the others are as they are."""
DRAWN = 32
SURE = 0.9
ORDERED, NAMES, MOST = "no labels, ordered list", "no labels, names", "80 % labelled"
NESTED = (NAMES, ORDERED, MOST)
"""Measured with constants that were chosen on the other tasks, too."""
WAYS = (
    "uniform", "order of the list", "nearest window", NAMES, ORDERED,
    *(f"{size} labelled{more}" for size in SIZES for more in ("", ", ordered list")),
    "logistic regression, 80 %", MOST,
)  # fmt: skip
"""In the order of the tables."""


@dataclass(frozen=True, slots=True)
class LabellingCell:
    """What is measured: on which task, with which encoder, and with how many draws of constants besides."""

    task: str
    encoder: str
    draws: int


def drawn_constants(draws: int) -> list[AlignmentOptions]:
    """Draw constants of the alignment, a Sobol sequence."""
    unit = qmc.Sobol(len(RANGES), seed=0).random(draws)
    low, high = np.log(np.array(list(RANGES.values()), float)).T
    rows = np.exp(low + unit * (high - low)).tolist()
    return [AlignmentOptions(**dict(zip(RANGES, row, strict=True))) for row in rows]


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """All tasks that have transcripts, with hashed words and with a sentence encoder where one is given.

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
    encoders = {Path(options.text_encoder).name: options.text_encoder, "words": "words"}
    size = NarrationOptions(tasks=2, videos=24) if options.quick else NarrationOptions()
    names = list(select_tasks(folder, size)[0])
    draws = {next(iter(encoders)): 2 if options.quick else DRAWN}
    used = {"data": fingerprint(folder)["sha256"], "ranges": RANGES}
    cells = [LabellingCell(name, encoder, draws.get(encoder, 0)) for encoder in encoders for name in names]
    measured = measure_cells(
        cells,
        measure=partial(_measure_cell, folder=folder, encoders=encoders, size=size),
        cell_options=lambda _: used,
        file=options.folder and options.folder / "labelling.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    found = [{"task": cell.task, "encoder": cell.encoder, **measured[cell]} for cell in cells]
    facts = {"encoders": list(encoders), "ranges": RANGES, "found": found}
    tables = [
        _recall_table(found),
        _nested_table([each for each in found if each["draws"]]),
        _difference_table(found),
        _order_table(found),
        _graph_table(found),
        _truth_table(found),
    ]
    return Result("labelling", tables, facts, _chart(found))


def _measure_cell(
    cell: LabellingCell, folder: Path, encoders: Mapping[str, str], size: NarrationOptions
) -> Measurement:
    tasks, seconds = select_tasks(folder, size)
    task = tasks[cell.task]
    order = listed_steps(folder)[cell.task]
    encode = CachedTextEncoder(text_encoder(encoders[cell.encoder]))
    aligner = Aligner.prepare(task, order, encode, AlignmentOptions(), seconds)
    truth = DraftTruth.of(aligner.grid, task.steps)
    drawn = drawn_constants(cell.draws) if cell.draws else []
    return {
        **measure_drafts(aligner, truth, encode(task.steps).astype(np.float64)),
        **measure_graphs(task, aligner),
        "draws": [measure_nested(replace(aligner, options=options), truth) for options in drawn],
    }


def measure_nested(aligner: Aligner, truth: DraftTruth) -> Measurement:
    """The recall of the ways of `NESTED`.

    Parameters
    ----------
    aligner : Aligner
        With the order of the list.
    truth : DraftTruth

    Returns
    -------
    Measurement
    """
    free, fold = replace(aligner, ranks=None), _folds(aligner)
    most = np.zeros(truth.annotated.shape)
    for number in range(FOLDS):
        drafts = free.draft(np.flatnonzero(fold != number).tolist(), LABEL_USES[-1])
        most[fold == number] = truth.hits(drafts.bins)[fold == number]
    hits = {ORDERED: truth.hits(aligner.draft([]).bins), NAMES: truth.hits(free.draft([]).bins), MOST: most}
    return {way: asdict(recall_interval(one.astype(float), truth.annotated)) for way, one in hits.items()}


def _folds(aligner: Aligner) -> NDArray[np.intp]:
    return np.random.default_rng(0).permutation(len(aligner.grid.videos)) % FOLDS


# -- recall and order -------------------------------------------------------------------------------------------------


def measure_drafts(aligner: Aligner, truth: DraftTruth, names: Numbers) -> Measurement:
    """By way: recall with its interval, the same less that of the baseline, and clear pairs in the right order.

    Parameters
    ----------
    aligner : Aligner
        With the order of the list.
    truth : DraftTruth
    names : array of shape (N, width)
        Vectors of the names of the steps.

    Returns
    -------
    Measurement
    """
    grid = aligner.grid
    videos = len(grid.videos)
    fold = _folds(aligner)
    free = replace(aligner, ranks=None)
    times: dict[str, NDArray[np.intp]] = {
        "nearest window": nearest_times(grid, names),
        "order of the list": spread_times(grid, aligner.ranks or ()),
        "logistic regression, 80 %": logistic_times(grid, truth.inside, fold),
        NAMES: free.draft([]).bins,
        ORDERED: aligner.draft([]).bins,
    }
    hits: dict[str, Numbers] = {"uniform": uniform_hits(truth.inside, grid.bins)}
    hits |= {name: truth.hits(bins).astype(float) for name, bins in times.items()}
    for size in SIZES:
        hits[f"{size} labelled"] = _hits_with_labels(free, truth, size)
        hits[f"{size} labelled, ordered list"] = _hits_with_labels(aligner, truth, size)
    most, calibration = _cross_validated(free, truth, fold)
    hits[MOST] = most
    asked = {name: truth.annotated & ~np.isnan(one) for name, one in hits.items()}
    recall = {name: asdict(recall_interval(np.nan_to_num(one), asked[name])) for name, one in hits.items()}
    pairs = (
        (NAMES, "nearest window"),
        (ORDERED, "nearest window"),
        (ORDERED, "order of the list"),
        (MOST, "logistic regression, 80 %"),
    )
    against = {
        f"{one} − {other}": asdict(recall_interval(hits[one], truth.annotated, hits[other])) for one, other in pairs
    }
    order = {name: truth.ordered_pairs(bins) for name, bins in times.items()}
    unchecked = aligner.draft([])
    own = check_calibration(UNCHECKED * unchecked.confidence, truth.hits(unchecked.bins))
    return {
        "videos": videos, "clear": int(truth.clear.sum()), "recall": recall, "against": against, "order": order,
        "calibration": calibration | {"unchecked": own.error},
    }  # fmt: skip


def _hits_with_labels(aligner: Aligner, truth: DraftTruth, size: int) -> Numbers:
    """Share of hits in videos whose labels were not known, over draws of a few labelled ones; NaN in others."""
    drawn = np.zeros((DRAWS, *truth.annotated.shape))
    for seed in range(DRAWS):
        labelled = np.random.default_rng(seed).permutation(len(aligner.grid.videos))[:size].tolist()
        use = held_out_drafts(aligner, labelled).use if size >= LEAST_VIDEOS else FEW_LABELS
        drawn[seed] = truth.hits(aligner.draft(labelled, use).bins)
        drawn[seed, labelled] = np.nan
    tested = (~np.isnan(drawn)).sum(axis=0)
    return np.where(tested > 0, np.nansum(drawn, axis=0) / np.maximum(tested, 1), np.nan)


def _cross_validated(aligner: Aligner, truth: DraftTruth, fold: NDArray[np.intp]) -> tuple[Numbers, Measurement]:
    """Hits of every video from the labels of the other folds, and how true the confidences are there."""
    hits, sure = np.zeros(truth.annotated.shape), np.zeros(truth.annotated.shape)
    for number in range(FOLDS):
        labelled = np.flatnonzero(fold != number).tolist()
        held_out = held_out_drafts(aligner, labelled)
        drafts = aligner.draft(labelled, held_out.use)
        test = fold == number
        hits[test] = truth.hits(drafts.bins)[test]
        calibrate = fit_calibrator(held_out.confidence.ravel(), held_out.is_hit.ravel())
        sure[test] = calibrate(drafts.confidence)[test]
    few = np.random.default_rng(0).permutation(len(hits))[:20].tolist()
    small = held_out_drafts(aligner, few)
    drafts = aligner.draft(few, small.use)
    rest = np.setdiff1d(np.arange(len(hits)), few)
    twenty = fit_calibrator(small.confidence.ravel(), small.is_hit.ravel())(drafts.confidence)
    certain = sure >= SURE
    return hits, {
        "error, 80 %": check_calibration(sure, hits > 0).error,
        "checked with 20": bool(small.is_hit.size >= LEAST_DRAFTS),
        "error, 20 labelled": check_calibration(twenty[rest], truth.hits(drafts.bins)[rest]).error,
        "cross-fitted on 20": check_calibration(cross_fitted(small.confidence, small.is_hit), small.is_hit).error,
        "sure": int(certain.sum()),
        "sure and right": int(hits[certain].sum()),
    }


# -- graphs -----------------------------------------------------------------------------------------------------------


def measure_graphs(task: Task, aligner: Aligner) -> Measurement:
    """Edge F1 and accuracy of graphs from drafts and from a few labels, against the graph of all labels.

    Parameters
    ----------
    task : Task
        With all its labels.
    aligner : Aligner

    Returns
    -------
    Measurement
    """
    truth = infer(task.with_first_labels())
    found: dict[str, list[tuple[float, float]]] = {}

    def score(name: str, labels: Task) -> None:
        scores = metrics.score_graph(infer(labels.with_first_labels()), truth)
        found.setdefault(name, []).append((scores.edges.f1 or 0.0, scores.accuracy))

    def drafted(labelled: Sequence[str], way: Aligner) -> Task:
        kept = [video if video.id in labelled else Video(video.id, (), video.sentences) for video in task]
        return draft_with(way, task.with_videos(kept), LabelOptions()).for_graph()

    score("drafts, no labels", drafted([], aligner))
    for size in GRAPH_SIZES:
        for seed in range(DRAWS):
            numbers = np.random.default_rng(seed).permutation(len(aligner.grid.videos))[:size]
            labelled = [aligner.grid.videos[number].id for number in numbers]
            score(f"{size} labelled", task.with_videos([video for video in task if video.id in labelled]))
            score(f"{size} labelled + drafts", drafted(labelled, replace(aligner, ranks=None)))
    return {"graphs": {name: [mean(one) for one in zip(*pairs, strict=True)] for name, pairs in found.items()}}


# -- tables -----------------------------------------------------------------------------------------------------------


def _interval(one: Mapping[str, float]) -> str:
    return f"{100 * one['value']:.1f} [{100 * one['low']:.1f}, {100 * one['high']:.1f}]"


def _columns(found: Sequence[Measurement]) -> list[str]:
    return [f"{each['task']}, {each['encoder']}" for each in found]


def _recall_table(found: Sequence[Measurement]) -> Table:
    rows = [[way, *(_interval(each["recall"][way]) for each in found)] for way in WAYS]
    videos = ", ".join(f"{each['task']}: {each['videos']}" for each in found if each["encoder"] == found[0]["encoder"])
    note = (
        f"One time per step and video; a hit is a second that an annotated segment touches, CrossTask's own protocol; "
        f"videos: {videos}. 95 % bootstrap intervals over videos. Few labels: mean of {DRAWS} draws, on the other "
        f"videos; 80 %: {FOLDS} folds."
    )
    return Table("Steps found at the right time, percent of those annotated", ["way", *_columns(found)], rows, [note])


def _nested_table(found: Sequence[Measurement]) -> Table:
    """Recalls of every task with the drawn constants that are best on the other tasks."""

    def best_on_others(task: Measurement, way: str) -> Measurement:
        others = [each["draws"] for each in found if each is not task]
        best = max(range(len(task["draws"])), key=lambda number: sum(one[number][way]["value"] for one in others))
        return dict(task["draws"][best][way])

    rows = [[way, *(_interval(best_on_others(each, way)) for each in found)] for way in NESTED]
    note = (
        f"Of {len(found[0]['draws'])} draws of the constants from wide ranges, for each way the one that is best on "
        "the two other tasks. The table above has the constants of msg2, which were set with all three tasks in view."
    )
    return Table("The same with constants that did not see the task", ["way", *_columns(found)], rows, [note])


def _difference_table(found: Sequence[Measurement]) -> Table:
    rows = [[name, *(_interval(each["against"][name]) for each in found)] for name in found[0]["against"]]
    return Table("The same: differences in points, paired over videos", ["difference", *_columns(found)], rows)


def _order_table(found: Sequence[Measurement]) -> Table:
    rows = [[way, *(f"{100 * each['order'][way]:.0f}" for each in found)] for way in WAYS if way in found[0]["order"]]
    rows.append(["clear pairs", *(str(each["clear"]) for each in found)])
    note = "Of the pairs that labels order 7 : 3 or clearer, those that most videos have in this order, by their times."
    return Table("Order of clear pairs, percent right", ["way", *_columns(found)], rows, [note])


def _graph_table(found: Sequence[Measurement]) -> Table:
    rows = [
        [name, *(" / ".join(f"{100 * value:.0f}" for value in each["graphs"][name]) for each in found)]
        for name in ["drafts, no labels", *(f"{n} labelled{more}" for n in GRAPH_SIZES for more in ("", " + drafts"))]
    ]
    note = f"Edge F1 / accuracy of the graph, against that of all labels; mean of {DRAWS} draws."
    return Table("Graphs of drafts and of few labels", ["labels", *_columns(found)], rows, [note])


def _truth_table(found: Sequence[Measurement]) -> Table:
    keys = ("error, 80 %", "error, 20 labelled", "unchecked")
    rows = [[key, *(f"{100 * each['calibration'][key]:.1f}" for each in found)] for key in keys]
    rows.append(
        [
            "checked with 20 labelled",
            *("yes" if each["calibration"]["checked with 20"] else "too few drafts" for each in found),
        ]
    )
    rows.append(
        [
            f"drafts at {SURE} and above, right",
            *(f"{each['calibration']['sure and right']} of {each['calibration']['sure']}" for each in found),
        ]
    )
    note = "On videos whose labels had no part in it; `unchecked` is the model's own confidence, without labels."
    return Table("Calibration error of confidences, percent", ["", *_columns(found)], rows, [note])


def _chart(found: Sequence[Measurement]) -> dict[str, dict[str, Dot]]:
    return {
        f"{each['task']}, {each['encoder']}: recall": {
            name: Dot(*(100 * one[key] for key in ("value", "low", "high"))) for name, one in each["recall"].items()
        }
        for each in found
    }
