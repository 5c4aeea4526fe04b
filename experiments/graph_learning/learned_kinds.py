"""Whether the kinds of pairs (needs, after if done, exclusive, free) are found: process trees and worlds of the suite.

Every method learns from the same logs, and the kind of each pair is read from its graph. Beside them: the answer that
all pairs are free, rules that count, and for process trees pm4py's inductive miner, where it is installed. Pairs count
where both steps are seen in the log. In the worlds a label that is missing and a step that was left out look the same:
`likelihood` is told the one (absent "unknown") and the other (absent "skipped"), and estimates how often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import kind_suite
from experiments.graph_learning.inductive_miner import find_pm4py, mine_logs, mined_tree_kinds, pm4py_version
from experiments.graph_learning.kind_scores import PairMap, always_free, counted_kinds, score_kinds
from experiments.graph_learning.kind_suite import (
    BOTH_BRANCHES,
    DEVELOPMENT,
    HELD_OUT,
    LabelledLog,
    household_log,
    tree_log,
    world_log,
)
from experiments.graph_learning.kind_tables import (
    FAMILIES,
    KindCell,
    tree_curves,
    tree_tables,
    world_curves,
    world_tables,
)
from experiments.result_tables import Result, save_plot
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.simulation import household_worlds
from msg2.task import Segment, Task, Video

TREE_METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "likelihood": ("likelihood", {"absent": "skipped"}),
    "msg2": ("msg2", {}),
    "always-before": ("always-before", {}),
}
WORLD_METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "likelihood, unknown": ("likelihood", {"absent": "unknown"}),
    "likelihood, skipped": ("likelihood", {"absent": "skipped"}),
    "msg2": ("msg2", {}),
    "always-before": ("always-before", {}),
}
BASELINES: Mapping[str, Callable[[LabelledLog], PairMap]] = {
    "always free": lambda log: always_free(log.seen),
    "counting": lambda log: counted_kinds(log.traces, log.seen, 0.0),
    "counting, 5 % exceptions": lambda log: counted_kinds(log.traces, log.seen, 0.05),
}
MINERS: Mapping[str, tuple[float, bool]] = {
    "inductive miner": (0.0, False),
    "inductive miner, threshold 0.2": (0.2, False),
    "inductive miner, threshold 0.2, no repeats": (0.2, True),
}
"""Of pm4py: the noise threshold, and whether it is shown the first event of each activity only, as msg2 is."""


@dataclass(frozen=True, slots=True)
class KindOptions:
    """How much of the suite is run (`python -m experiments kinds`)."""

    noise: tuple[float, ...] = kind_suite.NOISE
    cases: tuple[int, ...] = kind_suite.CASES
    missing: tuple[float, ...] = kind_suite.MISSING
    videos: tuple[int, ...] = kind_suite.VIDEOS
    trees: int = len(DEVELOPMENT.trees)
    worlds: int = len(DEVELOPMENT.worlds)
    household: int = len(household_worlds())

    @staticmethod
    def quick() -> KindOptions:
        """A minute's part of it."""
        return KindOptions((0.0, 0.05), (30, 100), (0.0, 0.3), (54,), trees=2, worlds=1, household=1)


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Share of the pairs whose kind is right, what was taken for what, and the share of missing labels that is found.

    Parameters
    ----------
    data : Path or None
        Folder of the annotation sets; an experiment that simulates does not read it.
    options : ExperimentOptions
        What can be set; `held_out` takes the held-out seeds.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables and the facts that make them repeatable; with a folder, plots are written into it.
    """
    chosen = KindOptions.quick() if options.quick else KindOptions()
    name = "kinds-held-out" if options.held_out else "kinds"
    python = find_pm4py()
    version = None if python is None else pm4py_version(python)
    file = None if options.folder is None else options.folder / f"{name}.cells.json"
    made_of = {"options": asdict(chosen), "methods": [TREE_METHODS, WORLD_METHODS], "pm4py": version}
    found = measure_cells(
        plan_cells(chosen, held_out=options.held_out),
        partial(measure_cell, options=chosen, python=python),
        cell_options=lambda _: made_of,
        file=file,
        jobs=options.jobs,
        progress=progress,
    )
    tree_rows = [*TREE_METHODS, *(MINERS if python else ()), *BASELINES]
    world_rows = [*WORLD_METHODS, *BASELINES]
    if options.folder is not None:
        from experiments.plots import grid_plot  # pictures, where they are wanted

        of_trees, of_worlds = tree_curves(found, tree_rows), world_curves(found, world_rows)
        title = "Kinds of pairs in logs of process trees"
        draw = partial(grid_plot, of_trees, title, across="cases", logarithmic=True)
        save_plot(options.folder / f"{name}.svg", draw)
        title = "Kinds of pairs and missing labels in worlds"
        draw = partial(grid_plot, of_worlds, title, across="labels missing, percent")
        save_plot(options.folder / f"{name}-missing.svg", draw)
    seeds = HELD_OUT if options.held_out else DEVELOPMENT
    facts = {"options": asdict(chosen), "seeds": asdict(seeds), "pm4py": version, "share right": _shares(found)}
    return Result(name, [*tree_tables(found, tree_rows, version), *world_tables(found, world_rows)], facts)


def plan_cells(options: KindOptions, *, held_out: bool) -> list[KindCell]:
    """All cells: every tree and every world once, with all its logs.

    Parameters
    ----------
    options : KindOptions
        How many of them.
    held_out : bool
        Whether the seeds are the held-out ones.

    Returns
    -------
    list of KindCell
    """
    count = dict(zip(FAMILIES, (options.trees, options.worlds, options.household, options.household), strict=True))
    return [KindCell(family, place, held_out) for family in FAMILIES for place in range(count[family])]


def measure_cell(cell: KindCell, options: KindOptions, python: Path | None) -> Measurement:
    """What every method finds in the logs of a tree or world.

    Parameters
    ----------
    cell : KindCell
        Which tree or world.
    options : KindOptions
        Which logs of it.
    python : Path or None
        The interpreter of the environment with pm4py.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    trees = cell.family == "trees"
    methods = TREE_METHODS if trees else WORLD_METHODS
    logs = list(_logs(cell, options))
    settings: list[Measurement] = []
    for (size, rate), log in logs:
        rows = {row: _score(log, partial(_learned_kinds, log, *method)) for row, method in methods.items()}
        rows |= {row: _score(log, partial(_with_no_rate, rule, log)) for row, rule in BASELINES.items()}
        settings.append({"size": size, "rate": rate, "rows": rows})
    if trees and python is not None:
        for setting, mined in zip(settings, _mine([log for _, log in logs], python), strict=True):
            setting["rows"] |= mined
    return {"settings": settings}


def _logs(cell: KindCell, options: KindOptions) -> Iterator[tuple[tuple[int, float], LabelledLog]]:
    seeds = HELD_OUT if cell.held_out else DEVELOPMENT
    sizes, rates = (options.cases, options.noise) if cell.family == "trees" else (options.videos, options.missing)
    for size in sizes:
        for rate in rates:
            match cell.family:
                case "trees":
                    log = tree_log(seeds.trees[cell.place], size, rate)
                case "optional":
                    log = world_log(seeds.worlds[cell.place], size, rate)
                case _:
                    both = BOTH_BRANCHES if cell.family == "household" else 0.0
                    log = household_log(cell.place, size, rate, both, seeds.household)
            yield (size, rate), log


def _score(log: LabelledLog, find: Callable[[], tuple[PairMap, float | None]]) -> Measurement:
    """How right the kinds are that are found, the share of missing labels with them, and the seconds that it took."""
    begun = time.perf_counter()
    kinds, absent_rate = find()
    seconds = time.perf_counter() - begun
    return {**asdict(score_kinds(kinds, log.kinds, log.seen)), "seconds": seconds, "absent rate": absent_rate}


def _learned_kinds(log: LabelledLog, method: str, options: Mapping[str, Any]) -> tuple[PairMap, float | None]:
    videos = (Video(f"{number:04d}", map(Segment, trace)) for number, trace in enumerate(log.traces))
    graph = infer(Task("task", log.seen, videos).with_first_labels(), method, **options)
    return {pair: graph.kind(*pair) for pair in permutations(log.seen, 2)}, _absent_rate(graph)


def _absent_rate(graph: SubtaskGraph) -> float | None:
    """The share of the labels that a method takes to be missing, where it says."""
    rate: float | None = graph.method.get("model", {}).get("absent_rate")
    return rate


def _with_no_rate(rule: Callable[[LabelledLog], PairMap], log: LabelledLog) -> tuple[PairMap, float | None]:
    return rule(log), None


def _mine(logs: list[LabelledLog], python: Path) -> Iterator[dict[str, Measurement]]:
    """What pm4py finds in each log, by row."""
    thresholds = sorted({threshold for threshold, _ in MINERS.values()})
    whole = mine_logs([log.traces for log in logs], thresholds, python)
    first = mine_logs([[tuple(dict.fromkeys(trace)) for trace in log.traces] for log in logs], thresholds, python)
    for place, log in enumerate(logs):
        rows = {}
        for row, (threshold, no_repeats) in MINERS.items():
            mined = (first if no_repeats else whole)[place][thresholds.index(threshold)]
            score = score_kinds(mined_tree_kinds(mined.tree, log.seen), log.kinds, log.seen)
            rows[row] = {**asdict(score), "seconds": mined.seconds, "absent rate": None}
        yield rows


def _shares(found: Mapping[KindCell, Measurement]) -> list[dict[str, Any]]:
    """Of every tree and world, log and method: the share of the pairs that is right."""
    return [
        {
            "family": cell.family, "place": cell.place, "size": setting["size"], "rate": setting["rate"],
            "right": {row: one["right"] / one["pairs"] for row, one in setting["rows"].items()},
        }
        for cell, one in found.items()
        for setting in one["settings"]
    ]  # fmt: skip
