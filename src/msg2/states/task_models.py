"""The state model of each task: train and calibrate it, load it, fill in labels with it, and evaluate it."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, require
from msg2.files import safe_names
from msg2.formats.conversion import Demonstrations, to_task, to_tasks_with_repeats
from msg2.formats.feature_store import FeatureStore, open_store
from msg2.metrics.detection import Completion, additions, completion, performed_video
from msg2.progress import Progress, no_progress
from msg2.sequences import FloatArray
from msg2.states.checkpoint import ModelCard, load_checkpoint, read_card
from msg2.states.configuration import VARIANT, FillOptions, StateModelOptions, get_variant
from msg2.states.dataset import COMPLETED, StateDataset, build_dataset
from msg2.states.fill_calibration import FillCalibration, calibrate_model, extra_trainings, read_calibration
from msg2.states.label_filling import StatePrediction, fill_labels, predict_states
from msg2.states.network import StateModel
from msg2.states.training import progress_part, select_device, tensorboard_curves, train_model
from msg2.task import Step, Task
from msg2.text import short_repr

EVALUATION_DRAWS = 10
"""How often labels of the held-out videos are hidden if nobody knows what was performed; the seeds are 0, 1, …"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskTraining:
    """The training of the model of a task."""

    task: str
    videos: int
    """Videos with labels and features."""
    card: ModelCard
    calibration: FillCalibration | None
    """None where there was to be none."""
    folder: Path


def train_tasks(
    data: Demonstrations,
    store: str | Path | FeatureStore,
    folder: str | Path,
    *,
    variant: str = VARIANT,
    tensorboard: bool = False,
    progress: Progress = no_progress,
    **changes: Any,
) -> list[TaskTraining]:
    """Train a model for every task that has two videos or more with labels and features.

    Parameters
    ----------
    data : path, Task, data frame, iterable or mapping
        The labels: whatever `msg2.infer` takes. Tasks with too few videos are left out, with a warning.
    store : path or FeatureStore
        The features of the videos.
    folder : str or Path
        Where the model goes; with several tasks, a folder each.
    variant, tensorboard
        As in `train_task`.
    progress : Progress
        Called after every epoch.
    **changes
        As in `train_task`.

    Returns
    -------
    list of TaskTraining
        What was trained, and where it is.

    Raises
    ------
    InputError
        Where no task has enough videos, or one of them cannot be trained.
    """
    tasks, store = to_tasks_with_repeats(data), open_store(store)
    chosen = trainable_tasks(tasks, store, Path(folder))
    trainings = []
    for number, (task, task_folder) in enumerate(chosen):
        show = progress_part(progress, number, len(chosen), "" if len(chosen) == 1 else f"{task.name}: ")
        options = {"variant": variant, "tensorboard": tensorboard, "progress": show, **changes}
        trainings.append(train_task(task, store, task_folder, **options))
    return trainings


def train_task(
    data: Demonstrations,
    store: str | Path | FeatureStore,
    folder: str | Path,
    *,
    variant: str = VARIANT,
    tensorboard: bool = False,
    progress: Progress = no_progress,
    **changes: Any,
) -> TaskTraining:
    """Train and calibrate the model of a task; a training that is already in the folder is resumed.

    Parameters
    ----------
    data : path, Task, data frame, iterable or mapping
        The labels of one task: whatever `msg2.infer` takes.
    store : path or FeatureStore
        The features of the videos.
    folder : str or Path
        Where the model goes.
    variant : str
        A name in `msg2.states.configuration.VARIANTS`.
    tensorboard : bool
        Whether the curves are also written for TensorBoard, into the folder `tensorboard`.
    progress : Progress
        Called after every epoch.
    **changes
        Options of the model, its sampling and training that differ from those of the variant, by the names of
        `msg2.states.configuration.STATE_OPTIONS`: ``encoder="t5-small", epochs=60``.

    Returns
    -------
    TaskTraining
        What was trained, and where it is.

    Raises
    ------
    InputError
        Where the model cannot be trained; see `train_model`.
    """
    task, store, folder = to_task(to_tasks_with_repeats(data)), open_store(store), Path(folder)
    options = get_variant(variant).options(**changes)
    if store.encoders.frame_width == 0 and options.model.inputs == "fused":
        _log.warning("%s: there are no frames, sentences take their place", store.folder)
        options = get_variant(variant).options(**{**changes, "inputs": "text"})
    dataset = load_dataset(task, store, options.model, options.model.streams(store.encoders.streams))
    if options.model.inputs == "fused" and not len(dataset.sentences) and not options.model.direct:
        _log.warning("%s: there are no sentences, frames do without them", store.folder)
        options = get_variant(variant).options(**{**changes, "inputs": "vision"})
    model, sampling, training, _ = options
    show = progress_part(progress, 0, 1 + (extra_trainings(dataset, model) if training.calibrate else 0))
    with tensorboard_curves(folder / "tensorboard") if tensorboard else nullcontext(lambda _: None) as on_epoch:
        card = train_model(
            dataset, folder, model=model, sampling=sampling, training=training, progress=show, on_epoch=on_epoch
        )  # fmt: skip
    calibration = calibrate_model(task, dataset, folder, card, progress) if training.calibrate else None
    return TaskTraining(task.name, len(dataset), card, calibration, folder)


def trainable_tasks(tasks: Sequence[Task], store: FeatureStore, folder: Path) -> list[tuple[Task, Path]]:
    """Choose the tasks with two videos or more that have labels and features, each with a folder for its results."""
    folders = [folder] if len(tasks) == 1 else [folder / name for name in safe_names([task.name for task in tasks])]
    chosen, left_out = [], []
    for task, task_folder in zip(tasks, folders, strict=True):
        known = (video for video in task if video.segments and store.features(task.name, video.id) is not None)
        if len(list(islice(known, 2))) == 2:
            chosen.append((task, task_folder))
        else:
            left_out.append(task.name)
    labelled, encoded = ([short_repr(name) for name in names][:1] for names in (
        (video.id for task in tasks for video in task), (video for _, video in store.entries)
    ))  # fmt: skip
    hint = f"do the names agree? The labels speak of {', '.join(labelled)}, the features of {', '.join(encoded)}"
    require(chosen, "no task has two videos with labels and features", where=store.folder, hint=hint)
    for name in left_out:
        _log.warning("%s: left out, it has fewer than two videos with labels and features", name)
    return chosen


def load_dataset(
    task: Task, store: FeatureStore, model: StateModelOptions, streams: Iterable[str] = ()
) -> StateDataset:
    """Load the videos of a task with their features, as a model with these options and streams reads them."""
    text_only = model.inputs == "text"
    dataset = build_dataset(task, lambda video: store.features(task.name, video), text_only=text_only, streams=streams)
    if missing := sum(bool(video.segments) for video in task) - len(dataset):
        _log.warning("%s: %d of its %d videos have no features", task.name, missing, missing + len(dataset))
    return dataset


@dataclass(frozen=True, slots=True, eq=False)
class TrainedStateModel:
    """A trained model with a task and its dataset; see `load_trained_model`."""

    card: ModelCard
    model: StateModel
    task: Task
    """With the steps of the model."""
    dataset: StateDataset
    calibration: FillCalibration | None = None
    """None: there was to be none, or the model was trained by an earlier version, or without `train_task`."""

    def is_calibrated(self, options: FillOptions) -> bool:
        """Whether labels are added by their calibrated confidence, and not by the score alone."""
        return self.card.training.calibrate and not options.uncalibrated

    def note(self, options: FillOptions) -> str | None:
        """Why no labels are added; None where they are."""
        if not self.is_calibrated(options):
            return None
        if self.calibration is None:
            return "no labels are added: the model has no calibration, train it again or use --uncalibrated"
        return self.calibration.note

    def describe_filling(self, options: FillOptions) -> str:
        """How sure the added labels are, or why there are none."""
        if self.is_calibrated(options):
            return self.note(options) or str(self.calibration)
        known = options.for_model(self.card.model)
        return f"labels are added whose score reaches {known.threshold:g}; their confidences are not calibrated"

    def predict(
        self, numbers: Sequence[int] | None = None, hidden: Sequence[int] | None = None
    ) -> list[StatePrediction]:
        """Predict the states of every step."""
        chosen = range(len(self.dataset)) if numbers is None else numbers
        return list(predict_states(self.model, self.dataset, chosen, self.card.sampling, hidden=hidden))

    def fill(self, options: FillOptions) -> Task:
        """Return the task with the predicted labels added, or as it is where there is a `note`."""
        if self.note(options):
            return self.task
        calibration = self.calibration if self.is_calibrated(options) else None
        return fill_labels(self.task, self.predict(), options.for_model(self.card.model), calibration)

    def held_out(self) -> list[int]:
        """The numbers of the videos that the model was not trained on."""
        known = set(self.card.videos["training"])
        return [number for number, video in enumerate(self.dataset.videos) if video.video not in known]

    def evaluate(self, performed: Task | None, options: FillOptions) -> dict[str, dict[str, float | int | None]]:
        """Measure how well completed steps are predicted, and what the added labels are worth."""
        threshold, numbers = self.card.model.threshold, self.held_out()
        if performed is None:
            require(numbers, "every video was trained on", hint="give videos of the same task that were not")
            draws = [each for seed in range(EVALUATION_DRAWS) for each in self.predict(numbers, [seed])]
            return {"hidden steps": hidden_completion(draws, threshold).to_json()}
        filled = {video.id: video for video in self.fill(options)}
        scores = {}
        for name, part in (("held-out videos", numbers), ("all videos", range(len(self.dataset)))):
            if part:
                completed = true_completion(self.predict(part), self.task.steps, performed, threshold)
                added = additions([filled[self.dataset.videos[number].video] for number in part], performed)
                scores[name] = completed.to_json() | added.to_json()
        return scores


def hidden_completion(predictions: Iterable[StatePrediction], threshold: float) -> Completion:
    """Score the steps whose labels were hidden from the model, at the borders of the other labels."""
    pairs = [(each.scores[:, each.hidden], each.state[:, each.hidden] == COMPLETED) for each in predictions]
    return _pool(pairs, threshold)


def true_completion(
    predictions: Iterable[StatePrediction], steps: tuple[Step, ...], performed: Task, threshold: float
) -> Completion:
    """Score all steps at the borders of all labels; a step is completed from the end of its first performance on."""
    truth = {video.id: video for video in performed}
    pairs = []
    for prediction in predictions:
        segments = performed_video(truth, prediction.video).with_first_labels().segments
        ends = {segment.step: segment.end for segment in segments}
        end = np.array([np.inf if (last := ends.get(step)) is None else last for step in steps])
        pairs.append((prediction.scores, end <= prediction.time[:, None]))
    return _pool(pairs, threshold)


def _pool(pairs: Sequence[tuple[FloatArray, NDArray[np.bool_]]], threshold: float) -> Completion:
    scores = np.concatenate([np.zeros(0), *(scores.ravel() for scores, _ in pairs)])
    completed = np.concatenate([np.zeros(0, np.bool_), *(completed.ravel() for _, completed in pairs)])
    return completion(scores, completed, threshold)


def load_trained_model(
    folder: str | Path, task: Demonstrations, store: str | Path | FeatureStore, device: str = "auto"
) -> TrainedStateModel:
    """Load a model ready to read the videos of a task; a warning tells when its training was interrupted.

    Parameters
    ----------
    folder : str or Path
        The folder of the model.
    task : path, Task, data frame, iterable or mapping
        The labels of one task: whatever `msg2.infer` takes.
    store : path or FeatureStore
        The features of the videos.
    device : str
        Where it runs, as in `TrainingOptions`: by default on a GPU where there is one.

    Returns
    -------
    TrainedStateModel
        The best model of the training.

    Raises
    ------
    InputError
        Where there is no model, it does not know a step, or it was trained on features of other widths.
    """
    folder, store = Path(folder), open_store(store)
    task = to_task(to_tasks_with_repeats(task))
    card, model = load_checkpoint(folder)
    if not card.finished:
        what = "%s: its training was interrupted after epoch %d of %d, and goes on when the same command is given again"
        _log.warning(what, folder, card.epoch, card.training.epochs)
    if unknown := sorted(set(task.steps) - set(card.steps)):
        what = f"the model does not know the step {short_repr(unknown[0])} of task {short_repr(task.name)}"
        raise InputError(what, where=folder, hint="train a model on labels that have all steps")
    whole = Task(task.name, card.steps, task.videos, task.absent)
    hint = "make the features with the encoders of its training"
    for stream in card.streams.keys() - store.encoders.streams.keys():
        raise InputError(f"holds no {stream}, which the model in {folder} needs", where=store.folder, hint=hint)
    dataset, chosen = load_dataset(whole, store, card.model, card.streams), select_device(device)
    known = {"frames": card.frame_width, "sentences": card.text_width, **card.streams}
    for what, vectors in {"frames": dataset.frames, "sentences": dataset.sentences, **dataset.streams}.items():
        if len(vectors) and vectors.shape[1] != known[what]:
            what = f"the {what} are {vectors.shape[1]} wide, the model in {folder} was trained on {known[what]}"
            raise InputError(what, where=store.folder, hint=hint)
    dataset = replace(dataset.to(chosen), training_videos=frozenset(card.videos["training"]))
    return TrainedStateModel(card, model.to(chosen), whole, dataset, read_calibration(folder))


def load_trained_models(
    folder: str | Path, data: Demonstrations, store: str | Path | FeatureStore
) -> Iterator[tuple[str, TrainedStateModel]]:
    """Load the model of every task that has one; a single model is for the only task there is.

    Parameters
    ----------
    folder : str or Path
        The folder of a model, or of a folder per task.
    data : path, Task, data frame, iterable or mapping
        The labels: whatever `msg2.infer` takes. Tasks without a model are left out, with a warning.
    store : path or FeatureStore
        The features of the videos.

    Yields
    ------
    tuple of str and TrainedStateModel
        The name of a task, and its model.

    Raises
    ------
    InputError
        Where no task has a model, or one cannot be loaded.
    """
    tasks, folders, features = to_tasks_with_repeats(data), _find_models(Path(folder)), open_store(store)
    if len(folders) == len(tasks) == 1:
        folders = {tasks[0].name: next(iter(folders.values()))}
    if not folders.keys() & {task.name for task in tasks}:
        listed = ", ".join(short_repr(name, 30) for name in sorted(folders)[:10])
        raise InputError("there is no model of a task in it", hint=f"there are models of {listed}")
    for task in tasks:
        if task.name in folders:
            yield task.name, load_trained_model(folders[task.name], task, features)
        else:
            _log.warning("%s: left out, there is no model of it", task.name)


def _find_models(folder: Path) -> dict[str, Path]:
    """Task -> folder of its model: `folder` itself holds one model, or there is a folder per task in it."""
    inside = [] if (folder / "model.json").exists() else sorted(path.parent for path in folder.glob("*/model.json"))
    models: dict[str, Path] = {}
    for each in inside or [folder]:
        if (task := read_card(each).task) in models:
            raise InputError(f"holds two models of task {short_repr(task)}", where=folder, hint="name one of them")
        models[task] = each
    return models


def fill_tasks(
    folder: str | Path, data: Demonstrations, store: str | Path | FeatureStore, options: FillOptions | None = None
) -> dict[str, Task]:
    """Add the steps that were done but not labelled.

    Parameters
    ----------
    folder : str or Path
        The folder of a model, or of a folder per task.
    data : path, Task, data frame, iterable or mapping
        The labels: whatever `msg2.infer` takes.
    store : path or FeatureStore
        The features of the videos.
    options : FillOptions, optional
        How scores become labels.

    Returns
    -------
    dict from str to Task
        By name, the tasks that have a model, with the predicted labels. Why there are none, or how sure they are, is
        logged.

    Raises
    ------
    InputError
        Where no task has a model, or one cannot be loaded.
    """
    options, filled = options or FillOptions(), {}
    for name, model in load_trained_models(folder, data, store):
        filled[name] = model.fill(options)
        if not options.uncalibrated:
            level = logging.WARNING if model.note(options) else logging.INFO
            _log.log(level, "%s: %s", name, model.describe_filling(options))
    return filled
