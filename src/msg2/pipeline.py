"""The whole way, from demonstrations to a page: features, states, filled labels, graphs before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msg2 import drawing, metrics
from msg2.drawing.sections import comparison_section, filling_section
from msg2.errors import InputError, MissingExtraError
from msg2.files import write_together
from msg2.graph import SubtaskGraph
from msg2.inference import METHODS, infer
from msg2.media.store import Encoders, FeatureStore, open_store, write_store
from msg2.options import (
    DemoOptions,
    FeatureOptions,
    FillOptions,
    RenderOptions,
    RunOptions,
    TrainingOptions,
    WorldOptions,
)
from msg2.task import Task
from msg2.worlds import Simulation, as_table, simulate, simulated_features, violation_rate, world
from msg2.worlds.render import write_videos

if TYPE_CHECKING:
    from msg2.states.scoring import Additions
    from msg2.states.training import Progress

Report = Callable[[int, int, str], None]
"""Is told after every epoch of a training, or video: how many are done, of how many, and the news."""
_PAGE = "page.html"


# -- one task ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """What the whole way made of one task."""

    filled: Task
    added: int
    before: SubtaskGraph
    """Learnt from the annotated labels alone."""
    after: SubtaskGraph
    """Learnt from the filled labels."""
    scores: Mapping[str, metrics.Scores]
    """"before" and "after", against the true graph where it is known; else empty."""
    additions: Additions | None
    """The added labels against what was really performed, where that is known."""
    files: Mapping[str, Path]
    """What each file holds."""

    def to_json(self) -> dict[str, Any]:
        """Plain numbers; N/A is None."""
        return {
            "task": self.filled.name,
            "videos": len(self.filled),
            "labels": sum(len(video.segments) for video in self.filled) - self.added,
            "added": self.added,
            "edges": {"before": len(self.before.edges()), "after": len(self.after.edges())},
            "scores": {name: found.to_json() for name, found in self.scores.items()},
            "additions": None if self.additions is None else self.additions.to_json(),
        }


def run(
    task: Task,
    store: FeatureStore,
    folder: Path,
    options: RunOptions,
    *,
    truth: SubtaskGraph | None = None,
    performed: Task | None = None,
    media: Path | None = None,
    report: Report = lambda *_: None,
    **inference: Any,
) -> Run:
    """Train a state predictor on `task`, fill in its labels, and learn its graph before and after: files in `folder`.

    `task` has all its labels, repeated ones too. A training that was interrupted there goes on. `inference` are options
    of the method. The graphs are scored against `truth`, the added labels against what was `performed`. The page plays
    the videos in the folder `media`.
    """
    states = state_prediction()
    addresses = None if media is None else drawing.films(task, media, folder / _PAGE)
    if truth is not None:  # a truth about something else is refused before the work, not after it
        metrics.matched(SubtaskGraph(task.name, task.steps, {}), truth)
    encoder = {} if options.encoder is None else {"encoder": options.encoder}
    model, sampling = states.trained.options_for(options.variant, store, **encoder)
    training = TrainingOptions(epochs=options.epochs, warmup=options.warmup, seed=options.seed)
    seen = states.trained.footage_of(task, store, model)
    states.training.train(
        seen,
        folder / "model",
        model=model,
        sampling=sampling,
        training=training,
        report=lambda now: report(now.epoch, now.epochs, standing(now)),
    )
    filled = states.trained.trained(folder / "model", task, store).filled(FillOptions())
    graphs = {
        name: infer(labels.with_first_labels(), options.method, seed=options.seed, **inference)
        for name, labels in (("before", task), ("after", filled))
    }
    done = Run(
        filled,
        sum(len(video.segments) for video in filled) - sum(len(video.segments) for video in task),
        graphs["before"],
        graphs["after"],
        {} if truth is None else {name: metrics.scores(one, truth, task) for name, one in graphs.items()},
        None if performed is None else states.scoring.additions(filled, performed),
        {},
    )
    return replace(done, files=_written(done, folder, truth, performed, addresses))


def _written(
    done: Run, folder: Path, truth: SubtaskGraph | None, performed: Task | None, media: Mapping[str, str] | None
) -> dict[str, Path]:
    true = None if truth is None else metrics.matched(truth, done.after)
    sections = filling_section(done.filled, performed) + comparison_section(drawing.svg(done.before), done.scores)
    contents = {
        "labels": ("filled.csv", as_table([done.filled])),
        "before": ("before.json", done.before.dumps()),
        "after": ("after.json", done.after.dumps()),
        "numbers": ("summary.json", json.dumps(done.to_json(), ensure_ascii=False, indent=1) + "\n"),
    }
    if true is not None:
        contents["compared"] = ("compared.svg", drawing.svg(done.after, compare=true))
    page = drawing.page(done.after, done.filled, compare=true, media=media, sections=sections)
    contents["page"] = (_PAGE, page)
    write_together({folder / name: content for name, content in contents.values()})
    return {"model": folder / "model", **{kind: folder / name for kind, (name, _) in contents.items()}}


def standing(progress: Progress) -> str:
    """How a training stands, in a few words."""
    accuracy = "" if progress.accuracy is None else f", {progress.accuracy:.1%} right"
    return f"loss {progress.loss:.3f}{accuracy}"


def state_prediction() -> Any:
    """The room `msg2.states` with its modules that need PyTorch; an error that says what to install without it."""
    try:
        import msg2.states.scoring
        import msg2.states.trained
        import msg2.states.training
    except ImportError:
        raise MissingExtraError("state prediction", "states") from None
    return msg2.states


# -- where things are -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sources:
    """The labels of a run, and what lies beside them; None where there is no such thing."""

    labels: Path
    features: Path | None
    videos: Path | None
    truth: Path | None
    performed: Path | None

    @staticmethod
    def at(data: Path) -> Sources:
        """All that `msg2 simulate -o DATA` writes with --features or --render, or only the labels at `data`."""
        beside = [data / name for name in ("features", "videos", "truth.json", "truth/performed.csv")]
        labels = data / "steps.csv"
        return Sources(labels if labels.exists() else data, *(path if path.exists() else None for path in beside))


def write_simulation(
    folder: Path,
    simulation: Simulation,
    seed: int,
    *,
    features: bool = False,
    render: RenderOptions | None = None,
    report: Report = lambda *_: None,
) -> list[Path]:
    """Write a simulation as `Sources.at` finds it, and return the paths of what was written.

    `report` is told after every video that is rendered.
    """
    store, videos = folder / "features", folder / "videos"
    if features:
        options = FeatureOptions()
        versions = {package: version(package) for package in ("msg2", "numpy")}
        encoders = Encoders("simulated", "simulated", options.width, options.width, versions)
        found = simulated_features(simulation, options, seed)
        write_store(store, {(simulation.task.name, video): one for video, one in found.items()}, encoders)
    elif store.exists():
        raise InputError("holds the features of another simulation", where=store, hint="add --features, or remove it")
    if render is not None:
        write_videos(videos, simulation, render, seed, report)
    elif videos.exists():
        raise InputError("holds the videos of another simulation", where=videos, hint="add --render, or remove it")
    files = {
        folder / "steps.csv": as_table([simulation.task]),
        folder / "truth" / "performed.csv": as_table([simulation.performed]),
        folder / "truth.json": simulation.graph.dumps(),
    }
    write_together(files)
    return [*files, *([store] if features else []), *([videos] if render is not None else [])]


# -- the demonstration ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demonstration of the system made."""

    graph: SubtaskGraph
    videos: int
    violation_rate: float
    scores: Mapping[str, metrics.Scores]
    """By method, from the labels alone, against the true graph."""
    table: Path
    graph_file: Path
    truth_file: Path
    page: Path
    comparison: Path
    run: Run | None
    """With state prediction; None where that part of msg2 is not installed."""


def demo(folder: Path, options: DemoOptions, report: Report = lambda *_: None) -> Demo:
    """Simulate a household task, learn its graph from the noisy labels, fill these in, learn again: in `folder`."""
    simulation = simulate(world(options.world), WorldOptions(), options.seed)
    task, truth = simulation.task.with_first_labels(), simulation.graph
    try:
        state_prediction()
        complete = True
    except MissingExtraError:
        complete = False
    table, _, truth_file, *_ = write_simulation(folder, simulation, options.seed, features=complete)
    graphs = {method: infer(task, method, seed=options.seed) for method in METHODS}
    graph = graphs["msg2"]
    graph_file = folder / "graph.json"
    write_together({graph_file: graph.dumps()})
    made = None
    if complete:
        made = run(
            simulation.task, open_store(folder / "features"), folder / "run", RunOptions(seed=options.seed),
            truth=truth, performed=simulation.performed, report=report,
        )  # fmt: skip
    return Demo(
        graph,
        len(task),
        violation_rate(task, truth),
        {method: metrics.scores(graph, truth, task) for method, graph in graphs.items()},
        table,
        graph_file,
        truth_file,
        drawing.show(graph, folder / "graph.html", videos=task, compare=truth),
        graph.show(folder / "compared.svg", compare=truth),
        made,
    )
