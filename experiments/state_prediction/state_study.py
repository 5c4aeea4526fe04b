"""State prediction on twelve worlds whose truth is known: the paper's Table A and its Table 1 with the full MSG²."""

from __future__ import annotations

import argparse
import logging
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result
from experiments.state_prediction.state_cells import (
    StateCell,
    StateStudyOptions,
    cell_options,
    measure_cell,
    plan_cells,
)
from experiments.state_prediction.state_summary import StateSummary
from experiments.state_prediction.state_tables import ablation_chart, state_tables
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells

_log = logging.getLogger(__name__)

CELLS = "states.cells.json"
"""The file with what was measured so far, in the folder of the results."""


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Measure what is missing in the file of cells, then make the tables.

    Parameters
    ----------
    data : Path or None
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
    chosen = StateStudyOptions.of(options)
    file = None if options.folder is None else options.folder / CELLS
    return state_result(chosen, file, options.jobs, progress)


def state_result(options: StateStudyOptions, file: Path | None, jobs: int, progress: Progress) -> Result:
    """The tables of the experiment with these options; its cells are kept in `file`.

    Parameters
    ----------
    options : StateStudyOptions
        What can be set.
    file : Path or None
        Where cells are kept; None: nowhere.
    jobs : int
        Cells at a time.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    cells = measure_all_cells(options, file=file, jobs=jobs, progress=progress)
    kept = [{**asdict(cell), "found": found} for cell, found in cells.items()]
    made = state_tables(StateSummary(cells, options))
    return Result("states", made, {"options": asdict(options), "cells": kept}, ablation_chart(made))


def measure_all_cells(
    options: StateStudyOptions, seconds: float = float("inf"), **how: Any
) -> dict[StateCell, Measurement]:
    """All cells of the experiment; `how` is for `measure_cells`.

    Parameters
    ----------
    options : StateStudyOptions
        What can be set.
    seconds : float
        After so many, no more cells are begun.
    **how
        As in `measure_cells`.

    Returns
    -------
    mapping
        By cell.
    """
    return measure_cells(
        plan_cells(options),
        partial(_measure_in_time, options=options, deadline=time.monotonic() + seconds),
        cell_options=partial(cell_options, options=options),
        **how,
    )


def _measure_in_time(cell: StateCell, options: StateStudyOptions, deadline: float) -> Measurement | None:
    """Measure a cell; None after the deadline, a time of the monotonic clock of this machine."""
    return measure_cell(cell, options) if time.monotonic() < deadline else None


def _log_progress(done: int, total: int | None, message: str) -> None:
    _log.info("%d of %s cells (%s)", done, total, message)


def main(arguments: list[str] | None = None) -> None:
    """Measure the cells without the command line of msg2, for a machine that lacks what that needs."""
    parser = argparse.ArgumentParser("python -m experiments.state_prediction.state_study", description=main.__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help=f"{CELLS} is kept there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="then no more are begun")
    parser.add_argument("--full", action="store_true", help="the paper's sizes")
    given = parser.parse_args(arguments)
    options = StateStudyOptions.full() if given.full else StateStudyOptions()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("msg2").setLevel(logging.ERROR)
    measure_all_cells(
        options, file=given.output / CELLS, jobs=given.jobs, seconds=given.seconds, progress=_log_progress
    )


if __name__ == "__main__":
    main()
