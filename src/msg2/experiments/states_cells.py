"""One cell of the experiment on state prediction: a row of its tables, in one simulated world. A pure function.

Cells know nothing of each other: they run in any order, anywhere, and what they find are a few plain numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from msg2 import metrics
from msg2.errors import MissingExtraError
from msg2.experiments.cells import Found
from msg2.experiments.probe import frames_of, probe_accuracy
from msg2.inference import infer
from msg2.media.features import Features
from msg2.options import (
    FeatureOptions,
    FillOptions,
    NoiseOptions,
    ProbeOptions,
    SplitOptions,
    StatesExperimentOptions,
    WorldOptions,
)
from msg2.task import Task, Video
from msg2.worlds import Simulation, simulate, simulated_features, world, worlds

if TYPE_CHECKING:
    from msg2.states.trained import Trained


@dataclass(frozen=True, slots=True)
class Row:
    """A state predictor of the ablation table."""

    variant: str
    """A name in `msg2.states.variants.VARIANTS`."""
    encoder: Literal["t5", "visualbert", "vit"] | None = "t5"
    """Which of the encoders of the options; None: the model has none."""
    printed: str | None = None
    """Its name in the paper's Table A."""
    repeated: bool = False
    """Whether it runs with all seeds, or with the first alone."""


ROWS: Mapping[str, Row] = {
    "vision-only": Row("vision-only", printed="VisionOnly", repeated=True),
    "vision+asr": Row("vision+asr", printed="Vision + ASR"),
    "no-in-progress": Row("no-in-progress", printed="Ours (w/o in progress)"),
    "paper": Row("paper", printed="Ours (from scratch)", repeated=True),
    "visualbert": Row("visualbert", "visualbert", "VisualBERT"),
    "visualbert-direct": Row("visualbert-direct", "visualbert", "VisualBERT†"),
    "vit": Row("vit", "vit", "ViT"),
    "text-only": Row("text-only"),
    "witness": Row("witness", None, repeated=True),
}
"""In the order of the paper's table; what it lacks comes last."""

LABELS, ORACLE, PROBE = "labels alone", "oracle", "probe"
"""What else a cell can hold: graphs from the labels as they are, from complete ones, and the linear classifier."""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """What is measured, and on what."""

    row: str
    """A name in `ROWS`, or LABELS, ORACLE or PROBE."""
    world: str
    seed: int
    unlabelled: float
    clutter: float


def planned(options: StatesExperimentOptions) -> list[Cell]:
    """All cells of the experiment, each once, the most important first."""
    names = options.worlds or tuple(one.name for one in worlds())
    clutter, usual = FeatureOptions().clutter, NoiseOptions().unlabelled
    first = options.seeds[:1]
    single = [row for row, one in ROWS.items() if not one.repeated]
    stages: list[tuple[list[str], tuple[int, ...], float, tuple[float, ...]]] = [
        ([LABELS, ORACLE, "witness", "paper"], options.seeds, options.unlabelled, (clutter,)),
        (["vision-only"], options.seeds, options.unlabelled, (clutter,)),
        ([LABELS, ORACLE, "witness"], first, usual, (clutter,)),
        ([PROBE, "witness"], first, options.unlabelled, options.clutters),
        (single, first, options.unlabelled, (clutter,)),
    ]
    cells = (
        Cell(row, name, seed, unlabelled, difficulty)
        for rows, seeds, unlabelled, difficulties in stages
        for difficulty in difficulties
        for row in rows
        for seed in seeds
        for name in names
    )
    return list(dict.fromkeys(cells))


def measured(cell: Cell, options: StatesExperimentOptions) -> Found:
    """What the cell holds; the same cell and options give the same numbers."""
    noise = NoiseOptions(unlabelled=cell.unlabelled)
    simulation = simulate(world(cell.world), WorldOptions(videos=options.videos, noise=noise), cell.seed)
    seen = {} if cell.row in (LABELS, ORACLE) else simulated_features(
        simulation, FeatureOptions(clutter=cell.clutter), cell.seed
    )  # fmt: skip
    return measured_row(cell.row, simulation, seen, cell.seed, options)


def measured_row(
    row: str, simulation: Simulation, seen: Mapping[str, Features], seed: int, options: StatesExperimentOptions
) -> Found:
    """What a row holds for a simulation whose videos, by id, are `seen` as these features."""
    if row == PROBE:
        return {"accuracy": probe_accuracy(simulation, frames_of(simulation, seen), ProbeOptions(), SplitOptions())}
    if row in (LABELS, ORACLE):
        labels = simulation.task if row == LABELS else completed(simulation)
        return {"graphs": _graph_scores(labels, simulation, options)}
    from msg2.states.threads import one_thread

    with one_thread():
        return _state_scores(_trained(ROWS[row], simulation, seen, seed, options), simulation, options)


def completed(simulation: Simulation) -> Task:
    """The labels, and every step that was performed and that they lack, at the time of its first performance.

    >>> simulation = simulate(world("Perform CPR"), WorldOptions(videos=2), seed=0)
    >>> pairs = zip(completed(simulation), simulation.performed)
    >>> all(set(true.sequence()) <= set(whole.sequence()) for whole, true in pairs)
    True
    """
    performed = {video.id: video.with_first_labels().segments for video in simulation.performed}

    def whole(video: Video) -> Video:
        labelled = set(video.sequence())
        missing = [segment for segment in performed[video.id] if segment.step not in labelled]
        return Video(video.id, [*video.segments, *missing])

    return simulation.task.with_videos(map(whole, simulation.task))


def _graph_scores(labels: Task, simulation: Simulation, options: StatesExperimentOptions) -> Found:
    """For every δ, the graph learnt from `labels` against the true one; compatibility is with the annotated labels."""
    annotated = simulation.task.with_first_labels()
    graphs = {str(delta): infer(labels.with_first_labels(), delta=delta) for delta in options.deltas}
    return {delta: metrics.scores(graph, simulation.graph, annotated).to_json() for delta, graph in graphs.items()}


def filled_up(row: str, simulation: Simulation, seed: int, options: StatesExperimentOptions) -> Task:
    """The labels and those that the predictor of this row adds, which has learnt from the same videos."""
    from msg2.states.threads import one_thread

    seen = simulated_features(simulation, FeatureOptions(), seed)
    with one_thread():
        return _trained(ROWS[row], simulation, seen, seed, options).filled(FillOptions())


def _trained(
    row: Row, simulation: Simulation, seen: Mapping[str, Features], seed: int, options: StatesExperimentOptions
) -> Trained:
    """The model of the row, trained on the videos."""
    states = _state_prediction()
    import torch

    encoder = {} if row.encoder is None else {"encoder": getattr(options, row.encoder)}
    model, sampling = states.variants.variant(row.variant).options(**encoder)
    training = replace(options.transformers if model.context else options.witnesses, seed=seed)
    footage = states.footage.footage(simulation.task, seen.get, text_only=model.inputs == "text")
    with tempfile.TemporaryDirectory() as folder:
        states.training.train(footage, Path(folder), model=model, sampling=sampling, training=training)
        card, network = states.checkpoint.load_model(Path(folder))
    # The witnesses must know whom they have learnt from, to judge them as strangers.
    device = torch.device("cuda" if torch.cuda.is_available() and training.device != "cpu" else "cpu")
    footage = replace(footage.to(device), learnt=frozenset(card.videos["training"]))
    trained: Trained = states.trained.Trained(card, network.to(device), simulation.task, footage)
    return trained


def _state_scores(model: Trained, simulation: Simulation, options: StatesExperimentOptions) -> Found:
    """Completion on held-out videos; of all videos the added labels, the presence of absent steps, and the graphs."""
    states = _state_prediction()
    scoring = states.scoring
    steps, performed, threshold = simulation.task.steps, simulation.performed, model.card.model.threshold
    held_out = model.readings(model.held_out())
    by_labels = [replace(one, scores=(one.state == states.sampling.COMPLETED).astype(np.float64)) for one in held_out]
    filled = model.filled(FillOptions())
    return {
        "completion": scoring.true_completion(held_out, steps, performed, threshold).to_json(),
        "completion by labels": scoring.true_completion(by_labels, steps, performed, 1.0).to_json(),
        "additions": scoring.additions(filled, performed).to_json(),
        "presence": presence(model, performed),
        "graphs": _graph_scores(filled, simulation, options),
        "epochs": model.card.epoch,
        "best epoch": model.card.best.get("epoch"),
    }


def presence(model: Trained, performed: Task) -> float | None:
    """AUC of the highest score, over the borders, of the steps that a video's labels lack: performed there or not?"""
    truth = {video.id: set(video.sequence()) for video in performed}
    scores, positive = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for reading in model.readings():
        absent = ~reading.labelled
        really = np.array([step in truth[reading.video] for step in performed.steps])
        scores.append(reading.scores.max(axis=0)[absent])
        positive.append(really[absent])
    found: float | None = _state_prediction().scoring.auc(np.concatenate(scores), np.concatenate(positive))
    return found


def size(cell: Cell, options: StatesExperimentOptions) -> Found:
    """Those of the options that a cell depends on, as they go into JSON: with others it must be measured again."""
    chosen: Found = {"videos": options.videos}
    if cell.row != PROBE:
        chosen["deltas"] = [str(delta) for delta in options.deltas]
    return chosen | (model_size(cell.row, options) if cell.row in ROWS else {})


def model_size(row: str, options: StatesExperimentOptions) -> Found:
    """Those of the options that the predictor of this row depends on, as they go into JSON."""
    encoder = ROWS[row].encoder
    training = asdict(options.witnesses if encoder is None else options.transformers)
    where = ("captured", "device", "save_seconds", "seed")
    return {
        "encoder": encoder and getattr(options, encoder),
        "training": {name: value for name, value in training.items() if name not in where},
    }


def states_can_be_predicted() -> bool:
    """Whether the optional part is installed."""
    return all(map(find_spec, ("torch", "transformers")))


def _state_prediction() -> Any:
    try:
        import msg2.states.scoring
        import msg2.states.trained
        import msg2.states.training
    except ImportError:
        raise MissingExtraError("state prediction", "states") from None
    return msg2.states
