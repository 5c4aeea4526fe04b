"""Next step on the CrossTask tasks with narration (Table 2): STAM and ViViT beside graphs, counts and a model of ours.

All rows learn from the same training videos and are asked before the same steps of the same test videos, which are
those of the experiment `next-step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean, pstdev

import numpy as np

from msg2.assist import bigram, learned, recency, split
from msg2.errors import MissingExtraError
from msg2.experiments import paper
from msg2.experiments.cells import Found, filled_in
from msg2.experiments.foretelling import Learner, Senses, by_filled_labels, by_labels, by_network, right
from msg2.experiments.heard import Memory, narrated_tasks
from msg2.experiments.logistic_ranker import logistic
from msg2.experiments.next_step import DELTA
from msg2.experiments.provenance import fingerprint
from msg2.experiments.states_cells import states_can_be_predicted
from msg2.experiments.tables import Cell as Value
from msg2.experiments.tables import Result, Table
from msg2.inference import infer
from msg2.media.features import Features
from msg2.media.store import open_store
from msg2.media.text import narration_features, text_encoder
from msg2.options import ExperimentOptions, SplitOptions, VideoNextStepOptions
from msg2.task import Task

ROWS: Mapping[str, Learner] = {
    "MSG²-noSSP": by_labels(lambda task: recency(infer(task, "msg2", delta=DELTA))),
    "MSG²": by_filled_labels,
    "bigram": by_labels(bigram),
    "logistic": by_labels(logistic),
    "learned": by_labels(lambda task: learned(infer(task, "msg2", delta=DELTA), task)),
    "STAM": by_network("stam"),
    "ViViT": by_network("vivit"),
    "STAM, no labels": by_network("stam", labels=False),
    "ViViT, no labels": by_network("vivit", labels=False),
    "text + labels": by_network("text+labels"),
    "text + labels, deaf": by_network("text+labels", heard=0),
}
PRINTED: Mapping[str, Mapping[str, float]] = {
    **paper.NEXT_STEP_OF_NETWORKS,
    "MSG²-noSSP": {task: no_ssp for task, (_, _, no_ssp, _) in paper.NEXT_STEP.items()},
    "MSG²": {task: full for task, (_, _, _, full) in paper.NEXT_STEP.items()},
}
"""App. C of the paper, CrossTask, percent."""

_EMPTY = np.zeros((0, 0), np.float32)
NOTHING = Features(np.zeros(0), _EMPTY, np.zeros((0, 2)), _EMPTY)
"""Of a video that a feature store lacks."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row on one split of one task."""

    row: str
    task: str
    seed: int


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Accuracy in percent by task, mean over seeded splits; and the same without the first step of every video."""
    if not states_can_be_predicted():
        raise MissingExtraError("foreseeing steps with networks", "states")
    chosen = VideoNextStepOptions.quick() if options.quick else VideoNextStepOptions()
    folder, seeds = data / "crosstask", range(options.splits)
    tasks = narrated_tasks(folder)
    planned = [Cell(row, name, seed) for name in tasks for seed in seeds for row in ROWS]
    text_only = not (folder / "features").is_dir()
    settings = {"options": asdict(chosen), "text_encoder": Path(options.text_encoder).name, "text_only": text_only}
    inputs = {**settings, "data": fingerprint(folder)["sha256"]}
    found = filled_in(
        planned, partial(measured, folder=folder, encoder=options.text_encoder, options=chosen),
        depends=lambda _: inputs, file=options.folder and options.folder / "video-next-step.cells.json",
        jobs=options.jobs, report=report,
    )  # fmt: skip
    tests = {name: {seed: [video.id for video in _split(task, seed)[1]] for seed in seeds}
             for name, task in tasks.items()}  # fmt: skip
    facts = {**settings, "seeds": list(seeds), "delta": DELTA, "test_videos": tests,
             "cells": [{**asdict(cell), **one} for cell, one in found.items()]}  # fmt: skip
    every, later = tables(found, chosen, text_only)
    chart = {
        "all steps, mean of tasks": every.dots("mean", spread=True, printed=every.columns[-1]),
        "without the first step of every video": later.dots("mean", spread=True),
    }
    return Result("video-next-step", [every, later], facts, chart)


def measured(cell: Cell, folder: Path, encoder: str, options: VideoNextStepOptions) -> Found:
    """How many steps of the test videos were foretold, in all and without the first of each video."""
    training, test = _split(narrated_tasks(folder)[cell.task], cell.seed)
    foretold = ROWS[cell.row](training, senses(folder, encoder, cell.task), options)
    found = [right(foretold, video) for video in test]
    later = [one[1:] for one in found]
    return {
        "right": sum(map(sum, found)), "steps": sum(map(len, found)),
        "later_right": sum(map(sum, later)), "later_steps": sum(map(len, later)),
    }  # fmt: skip


@cache
def senses(folder: Path, encoder: str, task: str) -> Senses:
    """Features from the store in `folder`/features, where there is one; else the narration alone."""
    encode = Memory(text_encoder(encoder))
    if not (folder / "features").is_dir():
        return Senses(lambda video: narration_features(video.sentences, encode), True, encode)
    store = open_store(folder / "features")
    return Senses(lambda video: store.features(task, video.id) or NOTHING, False, encode)


def _split(task: Task, seed: int) -> tuple[Task, Task]:
    return split(task, SplitOptions(seed=seed))


# -- what the cells say together --------------------------------------------------------------------------------


def tables(found: Mapping[Cell, Found], options: VideoNextStepOptions, text_only: bool) -> list[Table]:
    """By row and task: all steps, and all but the first of each video."""
    seeds = len({cell.seed for cell in found})
    net = options.network
    frames = (
        "There are no video features: sentences stand in the place of frames, and STAM and ViViT see nothing."
        if text_only
        else "Frames and sentences are those of the feature store."
    )
    notes = [
        f"Mean of {seeds} seeded splits with {100 * SplitOptions().test_share:g} % test videos, those of `next-step`; "
        "all rows learn from the same videos and are asked before the same steps, the first of each video included. "
        "Ties count with their expected value. Steps that are done are never foretold.",
        f"{frames} MSG² has the labels of its training videos filled up by a state predictor that hears them; graphs "
        f"are at δ = {DELTA}. STAM, ViViT and text + labels hear what was said before the step begins; no labels: "
        "frames are not told which step they show; deaf: no sentences.",
        f"The networks are small and start without weights (width {net.width}, {net.layers} layers, {net.frames} "
        "frames per step): the official weights of STAM and ViViT were not run. The paper's values are for CLIP "
        "features of the pictures and for a split of its own; they do not compare with these rows number by number.",
        "The paper's rows do not share a test set: by the printed fractions, STAM and ViViT are counted over 51, 112 "
        "and 215 predictions (or multiples) in these tasks, the graphs over 77, 145 and 311.",
    ]
    all_steps = "Next step on CrossTask tasks with narration, accuracy in percent"
    later = "The same without the first step of every video, before which no step has been seen"
    return [
        _with_paper(_table(all_steps, found, ("right", "steps"), notes)),
        _table(later, found, ("later_right", "later_steps"), []),
    ]


def _table(title: str, found: Mapping[Cell, Found], keys: tuple[str, str], notes: Sequence[str]) -> Table:
    names = list(dict.fromkeys(cell.task for cell in found))
    rows: list[list[Value]] = []
    for row in ROWS:
        shares = {name: _shares(found, row, name, keys) for name in names}
        splits = [mean(values) for values in zip(*shares.values(), strict=True)]
        rows.append([row, *(mean(values) for values in shares.values()), mean(splits), pstdev(splits)])
    return Table(title, ["method", *names, "mean", "spread over splits"], rows, notes)


def _with_paper(table: Table) -> Table:
    """One more column: what the paper prints, on average over the tasks of the table."""
    names = table.columns[1:-2]
    printed = [[PRINTED.get(str(row[0]), {}).get(name) for name in names] for row in table.rows]
    means = [None if None in values else mean(filter(None, values)) for values in printed]
    rows = [[*row, value] for row, value in zip(table.rows, means, strict=True)]
    return replace(table, columns=[*table.columns, "paper, mean of these tasks"], rows=rows)


def _shares(found: Mapping[Cell, Found], row: str, task: str, keys: tuple[str, str]) -> list[float]:
    """Percent foretold, of every split."""
    right_key, steps_key = keys
    cells = [one for cell, one in found.items() if (cell.row, cell.task) == (row, task)]
    return [100 * one[right_key] / max(1, one[steps_key]) for one in cells]
