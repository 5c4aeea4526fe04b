"""Drafts from the real narration of three CrossTask tasks: recall without labels and with few, order, graphs.

The weights of the alignment are chosen for each task on the two others, without labels. Intervals are over videos,
paired where two ways are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import Numbers
from experiments.experiment_options import ExperimentOptions
from experiments.hidden_steps.narration_models import CachedTextEncoder, NarrationOptions
from experiments.hidden_steps.narration_study import select_tasks
from experiments.labelling.draft_baselines import logistic_times, nearest_times, spread_times, uniform_hits
from experiments.labelling.draft_protocol import DraftTruth, recall_interval
from experiments.provenance import fingerprint
from experiments.result_cache import Measurement, measure_cells
from experiments.result_tables import Dot, Result, Table
from msg2 import metrics
from msg2.formats.crosstask import listed_steps
from msg2.inference import infer
from msg2.labelling.alignment import AlignmentOptions
from msg2.labelling.draft_confidence import check_calibration, cross_fitted, fit_calibrator
from msg2.labelling.drafts import FEW_LABELS, LEAST_VIDEOS, Aligner, held_out_drafts
from msg2.labelling.label_drafting import UNCHECKED, LabelOptions, draft_with, make_aligner
from msg2.media.text_encoders import text_encoder
from msg2.progress import Progress
from msg2.task import Task, Video

SIZES = (1, 3, 5, 10, 20)
"""Labelled videos, drawn at random."""
GRAPH_SIZES = (1, 3, 5, 10)
DRAWS = 2
FOLDS = 5
"""Each is drafted from the labels of the others: 80 %."""
CANDIDATES: Sequence[AlignmentOptions] = tuple(
    replace(AlignmentOptions(), step_seconds=seconds, prototype_weight=weight)
    for seconds in (6.0, 9.0)
    for weight in (0.1, 0.2)
)
"""Weights to choose from."""
SURE = 0.9


@dataclass(frozen=True, slots=True)
class LabellingCell:
    """What is measured: on which task, with which encoder, and with which of the candidates (None: all, no labels)."""

    task: str
    encoder: str
    candidate: int | None


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
    size = NarrationOptions(tasks=2, videos=12) if options.quick else NarrationOptions()
    names = list(select_tasks(folder, size)[0])
    used = {"data": fingerprint(folder)["sha256"], "candidates": list(map(asdict, CANDIDATES))}
    measure = partial(
        measure_cells,
        measure=partial(_measure_cell, folder=folder, encoders=encoders, size=size),
        cell_options=lambda _: used,
        file=options.folder and options.folder / "labelling.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    first = [LabellingCell(name, encoder, None) for encoder in encoders for name in names]
    recalls = measure(first)
    chosen = {
        cell: max(
            range(len(CANDIDATES)),
            key=lambda number: mean(
                recalls[replace(cell, task=other)]["recall"][number] for other in names if other != cell.task
            ),
        )
        for cell in first
    }
    second = [replace(cell, candidate=number) for cell, number in chosen.items()]
    cells = measure(second)
    found = [{"task": cell.task, "encoder": cell.encoder, **numbers} for cell, numbers in cells.items()]
    facts = {
        "encoders": list(encoders),
        "candidates": list(map(asdict, CANDIDATES)),
        "chosen": {f"{cell.task}, {cell.encoder}": number for cell, number in chosen.items()},
        "recall of candidates": {f"{cell.task}, {cell.encoder}": one["recall"] for cell, one in recalls.items()},
        "found": found,
    }
    tables = [
        _recall_table(found),
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
    used = CANDIDATES[cell.candidate or 0]
    aligner = make_aligner(task, order, encode, used, seconds)
    truth = DraftTruth.of(aligner.grid, task.steps)
    if cell.candidate is None:
        ways = [replace(aligner, options=options).draft([]).bins for options in CANDIDATES]
        return {"recall": [recall_interval(truth.hits(bins).astype(float), truth.annotated).value for bins in ways]}
    return measure_drafts(aligner, truth, encode(task.steps).astype(np.float64)) | measure_graphs(task, aligner)


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
    fold = np.random.default_rng(0).permutation(videos) % FOLDS
    free = replace(aligner, ranks=None)
    times: dict[str, NDArray[np.intp]] = {
        "nearest window": nearest_times(grid, names),
        "order of the list": spread_times(grid, aligner.ranks or ()),
        "logistic regression, 80 %": logistic_times(grid, truth.inside, fold),
        "no labels, names": free.draft([]).bins,
        "no labels, ordered list": aligner.draft([]).bins,
    }
    hits: dict[str, Numbers] = {"uniform": uniform_hits(truth.inside, grid.bins)}
    hits |= {name: truth.hits(bins).astype(float) for name, bins in times.items()}
    for size in SIZES:
        drawn = np.array([_hits_with_labels(free, truth, seed, size) for seed in range(DRAWS)])
        tested = (~np.isnan(drawn)).sum(axis=0)
        hits[f"{size} labelled"] = np.where(tested > 0, np.nansum(drawn, axis=0) / np.maximum(tested, 1), np.nan)
    most, calibration = _cross_validated(free, truth, fold)
    hits["80 % labelled"] = most
    asked = {name: truth.annotated & ~np.isnan(one) for name, one in hits.items()}
    recall = {name: asdict(recall_interval(np.nan_to_num(one), asked[name])) for name, one in hits.items()}
    pairs = (
        ("no labels, names", "nearest window"),
        ("no labels, ordered list", "nearest window"),
        ("no labels, ordered list", "order of the list"),
        ("80 % labelled", "logistic regression, 80 %"),
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


def _hits_with_labels(aligner: Aligner, truth: DraftTruth, seed: int, size: int) -> Numbers:
    """Hits with the labels of a few videos, NaN in these; shape (V, N)."""
    labelled = np.random.default_rng(seed).permutation(len(aligner.grid.videos))[:size].tolist()
    use = held_out_drafts(aligner, labelled).use if size >= LEAST_VIDEOS else FEW_LABELS
    hits = truth.hits(aligner.draft(labelled, use).bins).astype(float)
    hits[labelled] = np.nan
    return hits


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
    ways = list(found[0]["recall"])
    rows = [[way, *(_interval(each["recall"][way]) for each in found)] for way in ways]
    videos = ", ".join(f"{each['task']}: {each['videos']}" for each in found if each["encoder"] == found[0]["encoder"])
    note = (
        f"One time per step and video; a hit lies in an annotated segment; videos: {videos}. 95 % bootstrap intervals "
        f"over videos. Few labels: mean of {DRAWS} draws, on the other videos; 80 %: {FOLDS} folds. Weights chosen on "
        "the two other tasks."
    )
    return Table("Steps found at the right time, percent of those annotated", ["way", *_columns(found)], rows, [note])


def _difference_table(found: Sequence[Measurement]) -> Table:
    rows = [[name, *(_interval(each["against"][name]) for each in found)] for name in found[0]["against"]]
    return Table("The same: differences in points, paired over videos", ["difference", *_columns(found)], rows)


def _order_table(found: Sequence[Measurement]) -> Table:
    ways = list(found[0]["order"])
    rows = [[way, *(f"{100 * each['order'][way]:.0f}" for each in found)] for way in ways]
    rows.append(["clear pairs", *(str(each["clear"]) for each in found)])
    note = "Of the pairs that labels order 7 : 3 or clearer, those that most videos have in this order, by their times."
    return Table("Order of clear pairs, percent right", ["way", *_columns(found)], rows, [note])


def _graph_table(found: Sequence[Measurement]) -> Table:
    rows = [
        [name, *(" / ".join(f"{100 * value:.0f}" for value in each["graphs"][name]) for each in found)]
        for name in found[0]["graphs"]
    ]
    note = f"Edge F1 / accuracy of the graph, against that of all labels; mean of {DRAWS} draws."
    return Table("Graphs of drafts and of few labels", ["labels", *_columns(found)], rows, [note])


def _truth_table(found: Sequence[Measurement]) -> Table:
    keys = ("error, 80 %", "error, 20 labelled", "unchecked")
    rows = [[key, *(f"{100 * each['calibration'][key]:.1f}" for each in found)] for key in keys]
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
