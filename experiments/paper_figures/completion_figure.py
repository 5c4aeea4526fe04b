"""The paper's completion figure: in one video, the steps that were labelled, inferred, and really performed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.experiment_options import ExperimentOptions
from experiments.paper_figures import SEED
from experiments.result_tables import Table, Value, save_plot
from msg2 import pipeline
from msg2.drawing.plots import order_by_completion, timeline
from msg2.errors import optional_dependency
from msg2.formats.feature_store import open_store
from msg2.pipeline import RunOptions
from msg2.progress import Progress
from msg2.simulation import Simulation, household_world, simulate
from msg2.simulation.simulated_features import write_simulation
from msg2.simulation.simulator import SimulationOptions
from msg2.task import PREDICTED, Step, Video

WORLD = "Tie Tie"
"""The household world of the video whose unlabelled steps are filled in; that of the paper."""


def completion_table(options: ExperimentOptions, progress: Progress) -> Table:
    """When each step of a video is completed, in seconds; with a folder, also the picture in it.

    The labels are filled in as `msg2 demo` does it. Of all videos it is the one in which most that was performed has no
    label; of several, the first.

    Parameters
    ----------
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Table
        The table.
    """
    with optional_dependency("state prediction", "video"):
        import torch  # noqa: F401
    simulation = simulate(household_world(WORLD), SimulationOptions(), SEED)
    annotated, performed = ({video.id: video for video in task} for task in (simulation.task, simulation.performed))
    most = max(annotated, key=lambda one: len({*performed[one].sequence()} - {*annotated[one].sequence()}))
    done = _run_pipeline(simulation, options.quick, progress)
    filled, truth = next(video for video in done.filled if video.id == most), performed[most]
    steps, title = order_by_completion(truth, done.filled.steps), f"{simulation.task.name}, video {most}"
    if options.folder is not None:
        seconds = max(segment.end or 0.0 for segment in (*filled.segments, *truth.segments))
        shown = Video(title, filled.segments)
        path = options.folder / "figures-completion.svg"
        save_plot(path, lambda: timeline(shown, steps, seconds, performed=truth))
    added = done.additions
    assert added is not None
    return Table(
        f"{title}: when each step is completed, seconds",
        ["step", "labelled", "inferred", "confidence, percent", "really"],
        [[step, *_label_values(filled, step), _completion_seconds(truth, step)] for step in steps],
        [
            f"In all {len(annotated)} videos, {added.missing} performed steps have no label; {added.added} were "
            f"inferred, {added.right} of them rightly."
        ],
    )


def _run_pipeline(simulation: Simulation, quick: bool, progress: Progress) -> pipeline.TaskRun:
    options = RunOptions(epochs=1, states={"warmup": 1}, seed=SEED) if quick else RunOptions(seed=SEED)
    with TemporaryDirectory() as place:
        folder = Path(place)
        write_simulation(folder, simulation, SEED, features=True)
        return pipeline.run_task(
            simulation.task,
            open_store(folder / "features"),
            folder / "run",
            options,
            performed=simulation.performed,
            progress=progress,
        )


def _completion_seconds(video: Video, step: Step) -> float | None:
    """When the step is completed for the first time."""
    return next((segment.end for segment in video.segments if segment.step == step), None)


def _label_values(filled: Video, step: Step) -> tuple[Value, Value, Value]:
    """When it was labelled, or else when it is inferred and how surely."""
    first = next((segment for segment in filled.segments if segment.step == step), None)
    if first is None:
        return None, None, None
    if first.source != PREDICTED:
        return first.end, None, None
    return None, first.end, None if first.confidence is None else 100 * first.confidence
