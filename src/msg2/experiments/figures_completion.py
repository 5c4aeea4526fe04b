"""The paper's completion figure: in one video, the steps that were labelled, inferred, and really performed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msg2 import pipeline
from msg2.drawing.timeline import INFERRED, in_order, timeline
from msg2.experiments.tables import Cell, Table, kept_plot
from msg2.media.store import open_store
from msg2.options import ExperimentOptions, FigureOptions, RunOptions, WorldOptions
from msg2.task import Step, Video
from msg2.worlds import Simulation, simulate, world


def table(options: ExperimentOptions, chosen: FigureOptions, report: Callable[[str], None]) -> Table:
    """When each step of a video is completed, in seconds; with a folder, also the picture in it.

    The labels are filled in as `msg2 demo` does it. Of all videos it is the one in which most that was performed has no
    label; of several, the first.
    """
    pipeline.state_prediction()  # raises where this part of msg2 is not installed
    simulation = simulate(world(chosen.completion), WorldOptions(), chosen.seed)
    annotated, performed = ({video.id: video for video in task} for task in (simulation.task, simulation.performed))
    most = max(annotated, key=lambda one: len({*performed[one].sequence()} - {*annotated[one].sequence()}))
    done = _run(simulation, options.quick, chosen.seed, report)
    filled, truth = next(video for video in done.filled if video.id == most), performed[most]
    steps, title = in_order(truth, done.filled.steps), f"{simulation.task.name}, video {most}"
    if options.folder is not None:
        seconds = max(segment.end or 0.0 for segment in (*filled.segments, *truth.segments))
        shown = Video(title, filled.segments)
        path = options.folder / "figures-completion.svg"
        kept_plot(path, lambda: timeline(shown, steps, seconds, performed=truth), report)
    added = done.additions
    assert added is not None
    return Table(
        f"{title}: when each step is completed, seconds",
        ["step", "labelled", "inferred", "confidence, percent", "really"],
        [[step, *_cells(filled, step), _end(truth, step)] for step in steps],
        [
            f"In all {len(annotated)} videos, {added.missing} performed steps have no label; {added.added} were "
            f"inferred, {added.right} of them rightly."
        ],
    )


def _run(simulation: Simulation, quick: bool, seed: int, report: Callable[[str], None]) -> pipeline.Run:
    name = simulation.task.name
    options = RunOptions(epochs=1, warmup=1, seed=seed) if quick else RunOptions(seed=seed)
    with TemporaryDirectory() as place:
        folder = Path(place)
        pipeline.write_simulation(folder, simulation, seed, features=True)
        return pipeline.run(
            simulation.task,
            open_store(folder / "features"),
            folder / "run",
            options,
            performed=simulation.performed,
            report=lambda epoch, of, news: report(f"{name}: epoch {epoch} of {of}, {news}"),
        )


def _end(video: Video, step: Step) -> float | None:
    """When the step is completed for the first time."""
    return next((segment.end for segment in video.segments if segment.step == step), None)


def _cells(filled: Video, step: Step) -> tuple[Cell, Cell, Cell]:
    """When it was labelled, or else when it is inferred and how surely."""
    first = next((segment for segment in filled.segments if segment.step == step), None)
    if first is None:
        return None, None, None
    if first.source != INFERRED:
        return first.end, None, None
    return None, first.end, None if first.confidence is None else 100 * first.confidence
