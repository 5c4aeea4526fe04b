"""The whole pipeline, from videos or labels to a page: features, states, filled labels, graphs before and after."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from msg2 import drawing, metrics, states
from msg2.drawing.page_parts import comparison_section, filling_section
from msg2.drawing.plots import order_by_completion, timeline
from msg2.errors import InputError, MissingExtraError
from msg2.files import write_together
from msg2.formats.captions import CAPTION_SUFFIXES
from msg2.formats.conversion import Demonstrations, to_tasks_with_repeats
from msg2.formats.feature_import import array_files, import_features
from msg2.formats.feature_store import FeatureStore, is_feature_store, open_store
from msg2.formats.graph_reader import read_truths
from msg2.formats.reading import choose_task
from msg2.formats.step_table import to_csv
from msg2.formats.video_files import MEDIA_SUFFIXES, require_video_files
from msg2.graph import SubtaskGraph
from msg2.inference import METHODS, infer
from msg2.inference.registry import DEFAULT_METHOD, make_options
from msg2.labelling import LabelResult, label
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.metrics.detection import Additions, additions
from msg2.metrics.graph_scores import violation_rate
from msg2.options import Count, NonNegativeInteger, options_class
from msg2.progress import LOGGER, Progress, no_progress, prefix_messages, quiet_logs
from msg2.simulation import household_world, simulate
from msg2.simulation.simulated_features import write_simulation
from msg2.simulation.simulator import SimulationOptions
from msg2.states.configuration import VARIANT, FillOptions, get_variant
from msg2.task import Step, Task

DEMO_WORLD = "Make Coffee"
"""The household world that `msg2 demo` shows."""


@options_class
class RunOptions:
    """The pipeline (`msg2 run`, `msg2 demo`): the state model, then the usual inference."""

    variant: str = VARIANT
    """A name in `msg2.states.configuration.VARIANTS`."""
    encoder: str | None = None
    """The transformer, instead of the variant's own."""
    epochs: Count | None = None
    """Passes over the training videos, instead of the variant's own."""
    states: Mapping[str, object] = field(default_factory=dict)
    """Other options of the state model, its sampling, training and filling, that differ from the variant's own; by
    the names of `msg2.states.configuration.STATE_OPTIONS`."""
    method: str = DEFAULT_METHOD
    """How graphs are learned."""
    seed: NonNegativeInteger = 0
    """Everything random follows from it."""

    def state_changes(self) -> dict[str, Any]:
        """What differs from the variant, checked."""
        given: dict[str, Any] = {"encoder": self.encoder, "epochs": self.epochs}
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= {"seed": self.seed, **self.states}
        get_variant(self.variant).options(**changes)
        return changes


_PAGE, _SUMMARY = "page.html", "summary.json"


# -- one task ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What the pipeline made of one task."""

    filled: Task
    added: int
    before: SubtaskGraph
    """Learned from the annotated labels alone."""
    after: SubtaskGraph
    """Learned from the filled labels."""
    scores: Mapping[str, metrics.GraphScores]
    """"before" and "after", against the true graph where it is known; else empty."""
    additions: Additions | None
    """The added labels against what was really performed, where that is known."""
    note: str
    """How sure the added labels are, or why there are none."""
    files: Mapping[str, Path]
    """What each file holds."""

    def to_json(self) -> dict[str, object]:
        """Plain numbers; N/A is None."""
        return {
            "task": self.filled.name,
            "videos": len(self.filled),
            "labels": self.filled.labels - self.added,
            "added": self.added,
            "note": self.note,
            "edges": {"before": len(self.before.edges()), "after": len(self.after.edges())},
            "scores": {name: scores.to_json() for name, scores in self.scores.items()},
            "additions": None if self.additions is None else self.additions.to_json(),
        }


def run_task(
    task: Task,
    store: FeatureStore,
    folder: Path,
    options: RunOptions,
    *,
    truth: SubtaskGraph | None = None,
    performed: Task | None = None,
    media: Path | None = None,
    progress: Progress = no_progress,
    **inference: Any,
) -> TaskRun:
    """Train a state model on one task, fill in its labels, and learn its graph before and after."""
    states.require_torch()
    make_options(options.method, inference)  # refuse unknown options before the work, not after it
    addresses = None if media is None else drawing.find_video_links(task, media, folder / _PAGE)
    if truth is not None:  # the same for a truth about something else
        metrics.match_step_names(SubtaskGraph(task.name, task.steps, {}), truth)
    changes = options.state_changes()
    chosen = get_variant(options.variant).options(**changes)
    states.train_task(task, store, folder / "model", variant=options.variant, progress=progress, **changes)
    trained = states.load_trained_model(folder / "model", task, store, chosen.training.device)
    filled = trained.fill(chosen.filling)
    graphs = {
        name: infer(labels.with_first_labels(), options.method, seed=options.seed, **inference)
        for name, labels in (("before", task), ("after", filled))
    }
    scores = {} if truth is None else {name: metrics.score_graph(graphs[name], truth, task) for name in graphs}
    result = TaskRun(
        filled, filled.labels - task.labels, graphs["before"], graphs["after"], scores,
        None if performed is None else additions(filled, performed), trained.describe_filling(chosen.filling), {},
    )  # fmt: skip
    true = None if truth is None else metrics.match_step_names(truth, result.after)
    sections = filling_section(filled, performed) + comparison_section(drawing.svg(result.before), scores)
    contents = {
        "labels": ("filled.csv", to_csv([filled])),
        "before": ("before.json", result.before.dumps()),
        "after": ("after.json", result.after.dumps()),
        "numbers": (_SUMMARY, ""),
    }
    if true is not None:
        contents["compared"] = ("compared.svg", drawing.svg(result.after, compare=true))
    page = drawing.html_page(result.after, filled, compare=true, media=addresses, sections=sections)
    contents["page"] = _PAGE, page
    hashes = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in contents.values() if content}
    summary = json.dumps({**result.to_json(), "files": hashes}, ensure_ascii=False, indent=1) + "\n"
    files = _write_files(folder, contents | {"numbers": (_SUMMARY, summary)})
    return replace(result, files={"model": folder / "model", **files})


def _write_files(folder: Path, contents: Mapping[str, tuple[str, str]]) -> dict[str, Path]:
    """Write the file of each kind, given its name and content, the summary last; return where they are."""
    ordered = sorted(contents.values(), key=lambda file: file[0] == _SUMMARY)
    write_together({folder / name: content for name, content in ordered})
    return {kind: folder / name for kind, (name, _) in contents.items()}


def plot_completion(
    model: Path,
    task: Task,
    video: str,
    store: FeatureStore,
    options: FillOptions | None = None,
    *,
    steps: Sequence[Step] | None = None,
    suffix: str = ".svg",
) -> bytes:
    """Draw when each step of a video was completed, by its labels and those that a trained model adds."""
    alone = task.with_videos([each for each in task if each.id == video])
    ((_, trained),) = states.load_trained_models(model, [alone], store)
    (filled,) = trained.fill(options or FillOptions())
    ends = (segment.end for segment in filled.segments if segment.end is not None)
    seconds = max([0.0, *trained.dataset.videos[0].frame_times[-1:].tolist(), *ends])
    rows = order_by_completion(filled, trained.task.steps) if steps is None else steps
    return timeline(filled, rows, seconds, suffix=suffix)


# -- many tasks, from whatever there is --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The labels of a run, and what lies beside them; None where there is no such thing."""

    labels: Demonstrations
    features: Path | None = None
    videos: Path | None = None
    truth: Path | None = None
    performed: Path | None = None

    @staticmethod
    def at(data: Path) -> RunInputs:
        """Find what `msg2 simulate --features -o DATA` writes, and videos beside it; or only the labels at `data`."""
        beside = [data / name for name in ("features", "videos", "truth.json", "truth/performed.csv")]
        labels = data / "steps.csv"
        return RunInputs(labels if labels.exists() else data, *(path if path.exists() else None for path in beside))


def run(
    data: Demonstrations,
    labels: Demonstrations | None = None,
    out: str | Path = "msg2-run",
    *,
    steps: str | Path | None = None,
    features: str | Path | None = None,
    fps: float | None = None,
    captions: str | Path | None = None,
    truth: str | Path | None = None,
    task: str | None = None,
    options: RunOptions | None = None,
    extraction: ExtractionOptions | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
    **inference: Any,
) -> list[TaskRun]:
    """Run the whole pipeline: features, the state model, filled labels, graphs before and after, a page.

    Parameters
    ----------
    data : path, Task, data frame, iterable or mapping
        A folder of videos, with `labels`; or labels (whatever `msg2.infer` takes) with `features` or `captions`, or
        with features or videos beside them as `msg2 simulate` leaves them; or a folder of narrated videos or captions
        alone, whose labels are drafted.
    labels : path, Task, data frame, iterable or mapping, optional
        The labels, where `data` are the videos: whatever `msg2.infer` takes.
    out : path
        The folder of the results; with several tasks, of a folder each. An interrupted run is resumed there.
    steps : path, optional
        Names of the steps, where labels are drafted.
    features : path, optional
        The feature store of the videos, or a folder of vectors as `msg2 features import` reads it; by default they
        are extracted, or found beside the labels.
    fps : float, optional
        Rows per second of such vectors, where their files do not say.
    captions : path, optional
        Folder of captions; by default those beside the videos.
    truth : path, optional
        The true graph, or a folder of one per task, to score against.
    task : str, optional
        Only this task.
    options : RunOptions, optional
        How states and graphs are learned.
    extraction : ExtractionOptions, optional
        How videos become features.
    jobs : int
        Number of videos whose features are extracted at the same time.
    progress : Progress
        Called after every video and every epoch.
    **inference
        Options of the method that learns the graphs.

    Returns
    -------
    list of TaskRun
        One for every task that has features.

    Raises
    ------
    InputError
        Where there is neither a store nor anything to make one from, or any input cannot be used.

    >>> (coffee,) = run("videos", labels="steps.csv", out="result", delta=0.9)  # doctest: +SKIP
    >>> coffee.after.show("graph.html")  # doctest: +SKIP
    """
    options, out = options or RunOptions(), Path(out)
    options.state_changes()  # refuse unknown options before the work, not after it
    extraction = extraction or ExtractionOptions()
    folder = Path(data) if isinstance(data, str | PathLike) else None
    if folder is not None and labels is None and (steps is not None or _is_narration_only(folder)):
        drafted = label(
            folder, steps, task=task, captions=captions, text_encoder=extraction.text_encoder or "words",
            speech_model=extraction.speech_model, phrase_model=extraction.phrase_model, progress=progress,
        )  # fmt: skip
        return [_run_drafts(drafted, out, options, inference)]
    inputs = RunInputs(data) if folder is None else RunInputs.at(folder)
    if labels is not None:
        inputs = RunInputs(labels, videos=folder)
    where = inputs.labels if isinstance(inputs.labels, str | Path) else "the labels"
    tasks = to_tasks_with_repeats(inputs.labels)
    tasks = tasks if task is None else [choose_task(tasks, task, where)]
    truths = truth or inputs.truth
    graphs = {} if truths is None else read_truths(truths, [task.name for task in tasks])
    true_tasks = [] if inputs.performed is None else to_tasks_with_repeats(inputs.performed)
    performed = {each.name: each for each in true_tasks}
    states.require_torch()
    make_options(options.method, inference)
    known, videos = features or inputs.features, inputs.videos or captions
    if known is None:
        if videos is None:
            hint = "give videos with --labels, a store with --features, or captions with --captions"
            what = "there are neither features nor videos beside the labels"
            raise InputError(what, where=folder or where, hint=hint)
        known, labelled = out / "features", [video.id for each in tasks for video in each]
        files = require_video_files(Path(videos), None if captions is None else Path(captions), labelled, None)
        for video in extract_features(files, known, extraction, jobs=jobs, progress=progress):
            if video.failure is not None:
                LOGGER.warning("%s has no features: %s", video.video, video.failure)
    elif not is_feature_store(Path(known)) and array_files(Path(known)):
        import_features(known, out / "features", fps)
        known = out / "features"
    from msg2.states.task_models import trainable_tasks  # needs PyTorch

    store = open_store(known)
    results = []
    for each, task_folder in trainable_tasks(tasks, store, out):
        show = progress if len(tasks) == 1 else prefix_messages(progress, each.name)
        with quiet_logs() if len(tasks) > 1 else nullcontext():
            result = run_task(
                each, store, task_folder, options, truth=graphs.get(each.name),
                performed=performed.get(each.name), media=inputs.videos, progress=show, **inference,
            )  # fmt: skip
        results.append(result)
    return results


def _is_narration_only(data: Path) -> bool:
    """Whether a folder holds videos or captions and nothing else that could be labels."""
    if not data.is_dir() or RunInputs.at(data).labels != data:
        return False
    names = [path.name.lower() for path in data.iterdir() if path.is_file()]
    return bool(names) and all(name.endswith((*CAPTION_SUFFIXES, *MEDIA_SUFFIXES)) for name in names)


def _run_drafts(drafted: LabelResult, out: Path, options: RunOptions, inference: Mapping[str, Any]) -> TaskRun:
    """Learn the graph of drafted labels, and write both."""
    drafts = f"there are no labels: they were drafted from {drafted.way}"
    for note in (f"{drafts}; correct them in labels.csv, then: msg2 infer", *drafted.notes):
        LOGGER.info("%s", note)
    graph = infer(drafted.for_graph(), options.method, seed=options.seed, **inference)
    page = drawing.html_page(graph, drafted.task)
    contents = {"labels": ("labels.csv", to_csv([drafted.task])), "after": ("graph.json", graph.dumps())}
    files = _write_files(out, contents | {"page": (_PAGE, page)})
    return TaskRun(drafted.task, drafted.drafted, graph, graph, {}, None, " ".join(drafted.notes), files)


# -- the demonstration ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demonstration of the system made."""

    graph: SubtaskGraph
    videos: int
    violation_rate: float
    scores: Mapping[str, metrics.GraphScores]
    """By method, from the labels alone, against the true graph."""
    files: Mapping[str, Path]
    """What each file holds: "labels", "graph", "truth", "compared" and "page"."""
    run: TaskRun | None
    """With state prediction; None where that part of msg2 is not installed."""


def run_demo(folder: Path, world: str = DEMO_WORLD, seed: int = 0, *, progress: Progress = no_progress) -> DemoResult:
    """Simulate a household task, learn its graph from the noisy labels, fill these in, and learn it again."""
    simulation = simulate(household_world(world), SimulationOptions(), seed)
    task, truth = simulation.task.with_first_labels(), simulation.graph
    complete = False
    with suppress(MissingExtraError):
        states.require_torch()
        complete = True
    table, _, truth_file, *_ = write_simulation(folder, simulation, seed, features=complete)
    graphs = {method: infer(task, method, seed=seed) for method in METHODS}
    graph = graphs[DEFAULT_METHOD]
    graph_file = graph.save(folder / "graph.json")
    made = None
    if complete:
        made = run_task(
            simulation.task, open_store(folder / "features"), folder / "run", RunOptions(seed=seed),
            truth=truth, performed=simulation.performed, progress=progress,
        )  # fmt: skip
    scores = {method: metrics.score_graph(graph, truth, task) for method, graph in graphs.items()}
    files = {
        "labels": table,
        "graph": graph_file,
        "truth": truth_file,
        "compared": graph.show(folder / "compared.svg", compare=truth),
        "page": drawing.show(graph, folder / "graph.html", videos=task, compare=truth),
    }
    return DemoResult(graph, len(task), violation_rate(task, truth), scores, files, made)
