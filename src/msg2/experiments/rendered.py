"""State prediction from video files: rendered worlds, seen and heard by encoders that need no weights.

The way is that of a user: mp4 and captions -> features -> states -> filled labels -> graph. The measures are those of
the experiment `states`, with which it can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msg2.errors import InputError
from msg2.experiments.cells import Found
from msg2.experiments.states_cells import LABELS, ORACLE, PROBE, Cell, measured_row
from msg2.experiments.states_outcome import Outcome, mean_of, number
from msg2.experiments.states_tables import bar, gains, graphs
from msg2.experiments.tables import Cell as Value
from msg2.experiments.tables import Result, Table
from msg2.files import safe_names, write_whole
from msg2.media.engines import Died, in_processes
from msg2.media.job import feature_job
from msg2.media.recordings import recordings
from msg2.media.store import open_store
from msg2.options import (
    ExperimentOptions,
    ExtractionOptions,
    FeatureOptions,
    NoiseOptions,
    RenderOptions,
    StatesExperimentOptions,
    WorldOptions,
)
from msg2.remarks import kept_remarks
from msg2.worlds import simulate, world, worlds
from msg2.worlds.render import write_videos

PREDICTORS = ("witness", "paper")
MEASURED = (LABELS, ORACLE, PROBE, *PREDICTORS)


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Render, encode and measure every world; what is done is kept beside the results, and not done again."""
    whole = StatesExperimentOptions.of(options)
    names = whole.worlds or tuple(one.name for one in worlds())
    chosen = replace(whole, seeds=whole.seeds[:1], worlds=names if options.full else names[: whole.rendered])
    names = chosen.worlds or ()
    found: dict[str, Found] = {}
    with ExitStack() as stack:
        root = options.folder / "rendered" if options.folder else Path(stack.enter_context(TemporaryDirectory()))
        for name, made in in_processes(partial(_measured, root, chosen), names, options.jobs):
            if isinstance(made, Died):
                hint = "it may have run out of memory: take fewer --jobs"
                raise InputError(f"the process that measured {name} has been ended from outside", hint=hint)
            found[name] = made
            report(f"{len(found)} of {len(names)} worlds ({name})")
    seen, *others = tables(found, chosen)
    chart = {column: seen.dots(column) for column in seen.columns[2:]}
    return Result("rendered", [seen, *others], {"options": asdict(chosen), "worlds": found}, chart)


def _measured(root: Path, options: StatesExperimentOptions, name: str) -> Found:
    """What every row holds in one world; kept in a file beside its videos and features."""
    (seed,), folder = options.seeds, root / safe_names([name])[0]
    file, made_with = folder / "found.json", json.loads(json.dumps(asdict(replace(options, worlds=None))))
    known = _known(file)
    if known.get("options") == made_with:
        return known["found"]  # type: ignore[no-any-return]
    noise = NoiseOptions(unlabelled=options.unlabelled)
    simulation = simulate(world(name), WorldOptions(videos=options.videos, noise=noise), seed)
    write_videos(folder / "videos", simulation, RenderOptions(jobs=1), seed)
    job = feature_job(recordings(folder / "videos").found, folder / "features", ExtractionOptions())
    for dealt in job.run():
        if dealt.failure is not None:
            raise InputError(dealt.failure)
    store = open_store(folder / "features")
    seen = {video: store.read((None, video)) for _, video in store.entries}
    with kept_remarks():  # those on single graphs would drown the news
        found = {row: measured_row(row, simulation, seen, seed, options) for row in MEASURED}
    write_whole(file, json.dumps({"options": made_with, "found": found}, indent=1) + "\n")
    return found


def _known(file: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=file, hint="remove it: it is measured again") from None
    return known


def tables(found: dict[str, Found], options: StatesExperimentOptions) -> list[Table]:
    """Those of the experiment `states` that can be had here."""
    (seed,), clutter = options.seeds, FeatureOptions().clutter
    cells = {
        Cell(row, name, seed, options.unlabelled, clutter): one
        for name, rows in found.items()
        for row, one in rows.items()
    }
    outcome = Outcome(cells, options)
    rows = [*PREDICTORS, ORACLE]
    return [
        _seen(outcome),
        graphs(outcome, options.unlabelled, [LABELS, *rows], options.seeds),
        gains(outcome, options.unlabelled, rows, options.seeds),
        *(bar(outcome, row) for row in PREDICTORS),
    ]


def _seen(outcome: Outcome) -> Table:
    seen = number(100 * mean_of(outcome.values(PROBE, ("accuracy",))))
    rows: list[list[Value]] = []
    for row in PREDICTORS:
        measures = (("completion", "accuracy"), ("completion", "auc"), ("presence",))
        found = [number(100 * mean_of(outcome.values(row, path))) for path in measures]
        rows.append([row, seen, *found, *outcome.shares(row)])
    return Table(
        "What is seen in rendered videos, percent",
        ["predictor", "probe", "accuracy of completion", "AUC of completion", "AUC of presence",
         "precision of added labels", "recall"],
        rows,
        [
            f"Videos of {len(outcome.worlds)} worlds, seed {outcome.options.seeds[0]}; frames by classical "
            "descriptors, captions by hashed words: no weights, no CLIP. probe: a linear classifier that names the "
            "step of single frames of held-out videos.",
        ],
    )  # fmt: skip
