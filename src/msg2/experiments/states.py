"""State prediction on twelve worlds whose truth is known: the paper's Table A and its Table 1 with the full MSG²."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from msg2.experiments.cells import Found, filled_in
from msg2.experiments.states_cells import Cell, measured, planned, size
from msg2.experiments.states_outcome import Outcome
from msg2.experiments.states_tables import chart, tables
from msg2.experiments.tables import Result
from msg2.options import ExperimentOptions, StatesExperimentOptions

_log = logging.getLogger(__name__)

CELLS = "states.cells.json"
"""The file with what was measured so far, in the folder of the results."""


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Measure what is missing in the file of cells, then make the tables."""
    chosen = StatesExperimentOptions.of(options)
    file = None if options.folder is None else options.folder / CELLS
    return result(chosen, file, options.jobs, report)


def result(options: StatesExperimentOptions, file: Path | None, jobs: int, report: Callable[[str], None]) -> Result:
    """The tables of the experiment with these options; its cells are kept in `file`."""
    cells = measured_cells(options, file=file, jobs=jobs, report=report)
    kept = [{**asdict(cell), "found": found} for cell, found in cells.items()]
    made = tables(Outcome(cells, options))
    return Result("states", made, {"options": asdict(options), "cells": kept}, chart(made))


def measured_cells(options: StatesExperimentOptions, **how: Any) -> dict[Cell, Found]:
    """All cells of the experiment; `how` is for `filled_in`."""
    return filled_in(
        planned(options), partial(measured, options=options), depends=partial(size, options=options), **how
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure the cells without the command line of msg2, for a machine that lacks what that needs."""
    parser = argparse.ArgumentParser("python -m msg2.experiments.states", description=main.__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help=f"{CELLS} is kept there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="then no more are begun")
    parser.add_argument("--full", action="store_true", help="the paper's sizes")
    given = parser.parse_args(arguments)
    options = StatesExperimentOptions.full() if given.full else StatesExperimentOptions()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("msg2").setLevel(logging.ERROR)
    measured_cells(options, file=given.output / CELLS, jobs=given.jobs, seconds=given.seconds, report=_log.info)


if __name__ == "__main__":
    main()
