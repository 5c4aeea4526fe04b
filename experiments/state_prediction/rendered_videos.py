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

from experiments.experiment_options import ExperimentOptions
from experiments.rendering.scenes import RenderOptions
from experiments.rendering.video_writer import write_videos
from experiments.result_tables import Result, Table, Value
from experiments.state_prediction.state_cells import LABELS, ORACLE, PROBE, StateCell, StateStudyOptions, measure_row
from experiments.state_prediction.state_summary import StateSummary, finite_or_none, nan_mean
from experiments.state_prediction.state_tables import gain_table, graph_table, target_table
from msg2.errors import InputError
from msg2.files import safe_names, write_whole
from msg2.formats.feature_store import VideoFeatures, open_store
from msg2.formats.video_files import find_video_files
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.progress import Progress, collect_logs
from msg2.result_cache import Measurement, measure_in_parallel
from msg2.simulation import NoiseOptions, Simulation, household_world, household_worlds, simulate
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions

PREDICTORS = ("evidence", "paper")
ROWS = (LABELS, ORACLE, PROBE, *PREDICTORS)


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Render, encode and measure every world; what is done is kept beside the results, and not done again.

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
    whole = StateStudyOptions.of(options)
    names = whole.worlds or tuple(one.name for one in household_worlds())
    chosen = replace(whole, seeds=whole.seeds[:1], worlds=names if options.full else names[: whole.rendered])
    names = chosen.worlds or ()
    found: dict[str, Measurement] = {}
    with ExitStack() as stack:
        root = options.folder / "rendered" if options.folder else Path(stack.enter_context(TemporaryDirectory()))
        for name, measured in measure_in_parallel(partial(_measure_world, root, chosen), names, options.jobs):
            found[name] = measured
            progress(len(found), len(names), name)
    seen, *others = rendered_tables(found, chosen)
    chart = {column: seen.dots(column) for column in seen.columns[2:]}
    return Result("rendered", [seen, *others], {"options": asdict(chosen), "worlds": found}, chart)


def _measure_world(root: Path, options: StateStudyOptions, name: str) -> Measurement:
    """What every row holds in one world; kept in a file beside its videos and features."""
    (seed,), folder = options.seeds, root / safe_names([name])[0]
    made_with = asdict(replace(options, worlds=None))

    def measure() -> Measurement:
        noise = NoiseOptions(unlabelled=options.unlabelled)
        simulation = simulate(household_world(name), SimulationOptions(videos=options.videos, noise=noise), seed)
        seen = see_and_hear(folder, simulation, RenderOptions(), ExtractionOptions(), seed)
        return {row: measure_row(row, simulation, seen, seed, options) for row in ROWS}

    return measure_once(folder / "found.json", made_with, measure)


def see_and_hear(
    folder: Path, simulation: Simulation, scenes: RenderOptions, extraction: ExtractionOptions, seed: int
) -> dict[str, VideoFeatures]:
    """Render the videos of a simulation into a folder, and make features of them; by video."""
    write_videos(folder / "videos", simulation, scenes, seed)
    for result in extract_features(find_video_files(folder / "videos").found, folder / "features", extraction):
        if result.failure is not None:
            raise InputError(result.failure)
    store = open_store(folder / "features")
    return {video: store.read((None, video)) for _, video in store.entries}


def measure_once(file: Path, made_with: Measurement, measure: Callable[[], Measurement]) -> Measurement:
    """What a file holds that was made with these options; else it is measured, and written."""
    wanted = json.loads(json.dumps(made_with))
    try:
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=file, hint="remove it: it is measured again") from None
    if known.get("options") == wanted:
        return known["found"]  # type: ignore[no-any-return]
    with collect_logs():  # those on single graphs would drown the news
        found = measure()
    write_whole(file, json.dumps({"options": wanted, "found": found}, indent=1) + "\n")
    return found


def rendered_tables(found: dict[str, Measurement], options: StateStudyOptions) -> list[Table]:
    """Those of the experiment `states` that can be had here.

    Parameters
    ----------
    found : dict[str, Measurement]
        What was measured.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    list[Table]
        The tables.
    """
    (seed,), clutter = options.seeds, FeatureOptions().clutter
    cells = {
        StateCell(row, name, seed, options.unlabelled, clutter): one
        for name, rows in found.items()
        for row, one in rows.items()
    }
    outcome = StateSummary(cells, options)
    rows = [*PREDICTORS, ORACLE]
    return [
        _prediction_table(outcome),
        graph_table(outcome, options.unlabelled, [LABELS, *rows], options.seeds),
        gain_table(outcome, options.unlabelled, rows, options.seeds),
        *(target_table(outcome, row) for row in PREDICTORS),
    ]


def _prediction_table(outcome: StateSummary) -> Table:
    seen = finite_or_none(100 * nan_mean(outcome.values(PROBE, ("accuracy",))))
    rows: list[list[Value]] = []
    for row in PREDICTORS:
        measures = (("completion", "accuracy"), ("completion", "auc"), ("presence",))
        found = [finite_or_none(100 * nan_mean(outcome.values(row, path))) for path in measures]
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
