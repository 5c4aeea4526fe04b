"""One cell of the experiment on state prediction: a row of its tables, in one simulated world. A pure function.

Cells know nothing of each other: they run in any order, anywhere, and what they find are a few plain numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.state_prediction.linear_probe import frame_examples, probe_accuracy
from msg2 import metrics
from msg2.errors import optional_dependency
from msg2.formats.feature_store import VideoFeatures
from msg2.inference import infer
from msg2.inference.delta import Delta
from msg2.metrics.detection import additions, roc_auc
from msg2.result_cache import Measurement
from msg2.simulation import NoiseOptions, Simulation, household_world, household_worlds, simulate, simulate_features
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions
from msg2.states.configuration import FillOptions, TrainingOptions
from msg2.task import Task, Video

if TYPE_CHECKING:
    from msg2.states.task_models import TrainedStateModel


@dataclass(frozen=True, slots=True)
class StateStudyOptions:
    """Of `python -m experiments states`: how large its models are, and what it goes through; sized for two cores."""

    worlds: tuple[str, ...] | None = None
    """Names of household worlds; None: all twelve."""
    videos: int = 54
    """Demonstrations per world."""
    rendered: int = 6
    """Worlds, the first of them, of which `python -m experiments rendered` draws videos: an hour on two cores."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of the simulation, the features and the training. The thresholds of the evidence models were chosen on seed 0."""
    unlabelled: float = 0.25
    """Share of what is performed that nobody labels: a quarter."""
    clutters: tuple[float, ...] = (4.0, 7.2, 10.0)
    """The difficulties of the curve."""
    deltas: tuple[Delta, ...] = (0.96, 0.8, "auto")
    """With which graphs are learnt; 0.96 is the paper's for ProceL."""
    t5: str = "t5-tiny"
    visualbert: str = "visualbert-tiny"
    vit: str = "vit-tiny"
    transformers: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(epochs=100, learning_rate=1e-3, warmup=20, patience=6, device="cpu")
    )
    """How models with a transformer are trained; the seed is the cell's."""
    evidence_models: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(epochs=60, warmup=10, validate_every=5, device="cpu")
    )
    """How models without one are."""
    resamples: int = 2000
    """Bootstrap samples behind an interval."""
    confidence: float = 0.95
    """Coverage of the intervals."""

    @staticmethod
    def of(options: ExperimentOptions) -> StateStudyOptions:
        """The size that was asked for."""
        if options.quick:
            brief = TrainingOptions(epochs=2, device="cpu")
            return StateStudyOptions(
                worlds=("Perform CPR",),
                videos=8,
                seeds=(1,),
                clutters=(7.2,),
                transformers=brief,
                evidence_models=brief,
            )
        return StateStudyOptions.full() if options.full else StateStudyOptions()

    @staticmethod
    def full() -> StateStudyOptions:
        """The paper's sizes, without weights, and its training (App. A); for a GPU."""
        return StateStudyOptions(
            t5="t5-large", visualbert="visualbert-base", vit="vit-large",
            transformers=TrainingOptions(save_seconds=3600.0),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatePredictor:
    """A state predictor of the ablation table."""

    variant: str
    """A name in `msg2.states.configuration.VARIANTS`."""
    encoder: Literal["t5", "visualbert", "vit"] | None = "t5"
    """Which of the encoders of the options; None: the model has none."""
    printed: str | None = None
    """Its name in the paper's Table A."""
    repeated: bool = False
    """Whether it runs with all seeds, or with the first alone."""


ROWS: Mapping[str, StatePredictor] = {
    "vision-only": StatePredictor("vision-only", printed="VisionOnly", repeated=True),
    "vision+asr": StatePredictor("vision+asr", printed="Vision + ASR"),
    "no-in-progress": StatePredictor("no-in-progress", printed="Ours (w/o in progress)"),
    "paper": StatePredictor("paper", printed="Ours (from scratch)", repeated=True),
    "visualbert": StatePredictor("visualbert", "visualbert", "VisualBERT"),
    "visualbert-direct": StatePredictor("visualbert-direct", "visualbert", "VisualBERT†"),
    "vit": StatePredictor("vit", "vit", "ViT"),
    "text-only": StatePredictor("text-only"),
    "evidence": StatePredictor("evidence", None, repeated=True),
}
"""In the order of the paper's table; what it lacks comes last."""

UNCALIBRATED = FillOptions(uncalibrated=True)
"""As in the paper, all steps are added whose score reaches the threshold."""
LABELS, ORACLE, PROBE = "labels alone", "oracle", "probe"
"""What else a cell can hold: graphs from the labels as they are, from complete ones, and the linear classifier."""


@dataclass(frozen=True, slots=True, order=True)
class StateCell:
    """What is measured, and on what."""

    row: str
    """A name in `ROWS`, or LABELS, ORACLE or PROBE."""
    world: str
    seed: int
    unlabelled: float
    clutter: float


def plan_cells(options: StateStudyOptions) -> list[StateCell]:
    """All cells of the experiment, each once, the most important first."""
    names = options.worlds or tuple(one.name for one in household_worlds())
    clutter, usual = FeatureOptions().clutter, NoiseOptions().unlabelled
    first = options.seeds[:1]
    single = [row for row, one in ROWS.items() if not one.repeated]
    stages: list[tuple[list[str], tuple[int, ...], float, tuple[float, ...]]] = [
        ([LABELS, ORACLE, "evidence", "paper"], options.seeds, options.unlabelled, (clutter,)),
        (["vision-only"], options.seeds, options.unlabelled, (clutter,)),
        ([LABELS, ORACLE, "evidence"], first, usual, (clutter,)),
        ([PROBE, "evidence"], first, options.unlabelled, options.clutters),
        (single, first, options.unlabelled, (clutter,)),
    ]
    cells = (
        StateCell(row, name, seed, unlabelled, difficulty)
        for rows, seeds, unlabelled, difficulties in stages
        for difficulty in difficulties
        for row in rows
        for seed in seeds
        for name in names
    )
    return list(dict.fromkeys(cells))


def measure_cell(cell: StateCell, options: StateStudyOptions) -> Measurement:
    """What the cell holds; the same cell and options give the same numbers.

    Parameters
    ----------
    cell : StateCell
        What is measured, and on what.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    noise = NoiseOptions(unlabelled=cell.unlabelled)
    simulation = simulate(household_world(cell.world), SimulationOptions(videos=options.videos, noise=noise), cell.seed)
    seen = {} if cell.row in (LABELS, ORACLE) else simulate_features(
        simulation, FeatureOptions(clutter=cell.clutter), cell.seed
    )  # fmt: skip
    return measure_row(cell.row, simulation, seen, cell.seed, options)


def measure_row(
    row: str, simulation: Simulation, seen: Mapping[str, VideoFeatures], seed: int, options: StateStudyOptions
) -> Measurement:
    """What a row holds for a simulation whose videos, by id, are `seen` as these features.

    Parameters
    ----------
    row : str
        A name in `ROWS`, or LABELS, ORACLE or PROBE.
    simulation : Simulation
        The videos, and what was really performed.
    seen : mapping
        The features of every video, by its id.
    seed : int
        Of everything random.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    if row == PROBE:
        return {"accuracy": probe_accuracy(simulation, frame_examples(simulation, seen))}
    if row in (LABELS, ORACLE):
        labels = simulation.task if row == LABELS else complete_labels(simulation)
        return {"graphs": _graph_scores(labels, simulation, options)}
    from msg2.states.loss_and_optimizer import single_thread

    with single_thread():
        return _predictor_scores(train_predictor(ROWS[row], simulation, seen, seed, options), simulation, options)


def complete_labels(simulation: Simulation) -> Task:
    """The labels, and every step that was performed and that they lack, at the time of its first performance.

    >>> simulation = simulate(household_world("Perform CPR"), SimulationOptions(videos=2), seed=0)
    >>> pairs = zip(complete_labels(simulation), simulation.performed)
    >>> all(set(true.sequence()) <= set(whole.sequence()) for whole, true in pairs)
    True
    """
    performed = {video.id: video.with_first_labels().segments for video in simulation.performed}

    def whole(video: Video) -> Video:
        labelled = set(video.sequence())
        missing = [segment for segment in performed[video.id] if segment.step not in labelled]
        return Video(video.id, [*video.segments, *missing])

    return simulation.task.with_videos(map(whole, simulation.task))


def _graph_scores(labels: Task, simulation: Simulation, options: StateStudyOptions) -> Measurement:
    """For every δ, the graph learnt from `labels` against the true one; compatibility is with the annotated labels."""
    annotated = simulation.task.with_first_labels()
    graphs = {str(delta): infer(labels.with_first_labels(), "msg2", delta=delta) for delta in options.deltas}
    return {delta: metrics.score_graph(graph, simulation.graph, annotated).to_json() for delta, graph in graphs.items()}


def fill_labels_with(row: str, simulation: Simulation, seed: int, options: StateStudyOptions) -> Task:
    """The labels and those that the predictor of this row adds, which has learnt from the same videos.

    Parameters
    ----------
    row : str
        A name in `ROWS`.
    simulation : Simulation
        The videos, and what was really performed.
    seed : int
        Of everything random.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    Task
        With more labels.
    """
    from msg2.states.loss_and_optimizer import single_thread

    seen = simulate_features(simulation, FeatureOptions(), seed)
    with single_thread():
        return train_predictor(ROWS[row], simulation, seen, seed, options).fill(UNCALIBRATED)


def train_predictor(
    row: StatePredictor,
    simulation: Simulation,
    seen: Mapping[str, VideoFeatures],
    seed: int,
    options: StateStudyOptions,
    *,
    calibrated: bool = False,
    inputs: Literal["fused", "vision", "text"] | None = None,
) -> TrainedStateModel:
    """Train the model of a row on the videos.

    Parameters
    ----------
    row : StatePredictor
        What is trained.
    simulation : Simulation
        The videos.
    seen : mapping
        The features of every video, by its id.
    seed : int
        Of the training.
    options : StateStudyOptions
        How it is trained.
    calibrated : bool
        Whether it is calibrated as well.
    inputs : str, optional
        What it learns from, beside the streams of the features; by default what its row says.

    Returns
    -------
    TrainedStateModel
        With the videos that it has learned from.
    """
    with optional_dependency("state prediction", "video"):
        import torch

        from msg2.states.checkpoint import load_checkpoint
        from msg2.states.configuration import get_variant
        from msg2.states.dataset import build_dataset
        from msg2.states.fill_calibration import calibrate_model
        from msg2.states.task_models import TrainedStateModel
        from msg2.states.training import train_model

    changes = {} if row.encoder is None else {"encoder": getattr(options, row.encoder)}
    changes |= {} if inputs is None else {"inputs": inputs}
    model, sampling, *_ = get_variant(row.variant).options(**changes)
    training = replace(options.transformers if model.context else options.evidence_models, seed=seed)
    streams = model.streams({name for features in seen.values() for name in features.streams})
    dataset = build_dataset(simulation.task, seen.get, text_only=model.inputs == "text", streams=streams)
    with tempfile.TemporaryDirectory() as folder:
        train_model(dataset, Path(folder), model=model, sampling=sampling, training=training)
        card, network = load_checkpoint(Path(folder))
        calibration = calibrate_model(simulation.task, dataset, Path(folder), card) if calibrated else None
    # The evidence models must know the videos they have learned from, to treat them as held out.
    device = torch.device("cuda" if torch.cuda.is_available() and training.device != "cpu" else "cpu")
    dataset = replace(dataset.to(device), training_videos=frozenset(card.videos["training"]))
    return TrainedStateModel(card, network.to(device), simulation.task, dataset, calibration)


def _predictor_scores(model: TrainedStateModel, simulation: Simulation, options: StateStudyOptions) -> Measurement:
    """Completion on held-out videos; of all videos the added labels, the presence of absent steps, and the graphs."""
    from msg2.states.dataset import COMPLETED
    from msg2.states.task_models import true_completion

    steps, performed, threshold = simulation.task.steps, simulation.performed, model.card.model.threshold
    held_out = model.predict(model.held_out())
    by_labels = [replace(one, scores=(one.state == COMPLETED).astype(np.float64)) for one in held_out]
    filled = model.fill(UNCALIBRATED)
    return {
        "completion": true_completion(held_out, steps, performed, threshold).to_json(),
        "completion by labels": true_completion(by_labels, steps, performed, 1.0).to_json(),
        "additions": additions(filled, performed).to_json(),
        "presence": presence_auc(model, performed),
        "graphs": _graph_scores(filled, simulation, options),
        "epochs": model.card.epoch,
        "best epoch": model.card.best.get("epoch"),
    }


def presence_auc(model: TrainedStateModel, performed: Task) -> float | None:
    """AUC of the highest score, over the borders, of the steps that a video's labels lack: performed there or not?

    Parameters
    ----------
    model : TrainedStateModel
        The predictor.
    performed : Task
        What was really performed.

    Returns
    -------
    float or None
        None where all steps are of one kind.
    """
    truth = {video.id: set(video.sequence()) for video in performed}
    scores, positive = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for reading in model.predict():
        absent = ~reading.labelled
        really = np.array([step in truth[reading.video] for step in performed.steps])
        scores.append(reading.scores.max(axis=0)[absent])
        positive.append(really[absent])
    return roc_auc(np.concatenate(scores), np.concatenate(positive))


def cell_options(cell: StateCell, options: StateStudyOptions) -> Measurement:
    """Those of the options that a cell depends on, as they go into JSON: with others it must be measured again.

    Parameters
    ----------
    cell : StateCell
        What is measured, and on what.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    chosen: Measurement = {"videos": options.videos}
    if cell.row != PROBE:
        chosen["deltas"] = [str(delta) for delta in options.deltas]
    return chosen | (predictor_options(cell.row, options) if cell.row in ROWS else {})


def predictor_options(row: str, options: StateStudyOptions) -> Measurement:
    """Those of the options that the predictor of this row depends on, as they go into JSON.

    Parameters
    ----------
    row : str
        Name of the row.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    encoder = ROWS[row].encoder
    training = asdict(options.evidence_models if encoder is None else options.transformers)
    where = ("captured", "device", "save_seconds", "seed")
    return {
        "encoder": encoder and getattr(options, encoder),
        "training": {name: value for name, value in training.items() if name not in where},
    }


def states_extra_installed() -> bool:
    """Whether the optional part is installed."""
    return all(map(find_spec, ("torch", "transformers")))
