"""Train a state model per task, from labels and a feature store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypedDict, Unpack

from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats.conversion import Demonstrations, to_task, to_tasks_with_repeats
from msg2.media.feature_store import FeatureStore, open_store
from msg2.progress import Progress, no_progress
from msg2.states.checkpoint import ModelCard
from msg2.states.configuration import VARIANT, StateModelOptions, TrainingOptions, get_variant
from msg2.states.dataset import StateDataset, build_dataset
from msg2.states.fill_calibration import FillCalibration, calibrate_model, extra_trainings
from msg2.states.training import tensorboard_curves, train_model
from msg2.task import Task

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskTraining:
    """The training of the model of a task."""

    task: str
    videos: int
    """Videos with labels and features."""
    card: ModelCard
    calibration: FillCalibration
    folder: Path


class TrainTaskOptions(TypedDict, total=False):
    """The options of `train_task`."""

    variant: str
    encoder: str | None
    training: TrainingOptions | None
    tensorboard: bool


def train_tasks(
    data: Demonstrations,
    store: str | Path | FeatureStore,
    folder: str | Path,
    *,
    progress: Progress = no_progress,
    **options: Unpack[TrainTaskOptions],
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
    progress : Progress
        Called after every epoch.
    **options
        Those of `train_task`.

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

        def show(done: int, total: int | None, message: str, number: int = number, name: str = task.name) -> None:
            epochs, prefix = total or 0, "" if len(chosen) == 1 else f"{name}: "
            progress(number * epochs + done, len(chosen) * epochs, prefix + message)

        trainings.append(train_task(task, store, task_folder, progress=show, **options))
    return trainings


def train_task(
    data: Demonstrations,
    store: str | Path | FeatureStore,
    folder: str | Path,
    *,
    variant: str = VARIANT,
    encoder: str | None = None,
    training: TrainingOptions | None = None,
    tensorboard: bool = False,
    progress: Progress = no_progress,
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
    encoder : str, optional
        The transformer, in the place of the variant's own.
    training : TrainingOptions, optional
        How the model is trained; by default as `Variant.training` says.
    tensorboard : bool
        Whether the curves are also written for TensorBoard, into the folder `tensorboard`.
    progress : Progress
        Called after every epoch.

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
    changes = {} if encoder is None else {"encoder": encoder}
    model, sampling = get_variant(variant).options(**changes)
    if store.encoders.frame_width == 0 and model.inputs == "fused":
        _log.warning("%s: there are no frames, sentences take their place", store.folder)
        model, sampling = get_variant(variant).options(inputs="text", **changes)
    dataset = load_dataset(task, store, model)
    trainings = 1 + extra_trainings(dataset, model)

    def show(done: int, total: int | None, message: str) -> None:
        progress(done, None if total is None else trainings * total, message)

    with tensorboard_curves(folder / "tensorboard") if tensorboard else nullcontext(lambda _: None) as on_epoch:
        card = train_model(
            dataset, folder, model=model, sampling=sampling, training=training or get_variant(variant).training(),
            progress=show, on_epoch=on_epoch,
        )  # fmt: skip
    return TaskTraining(task.name, len(dataset), card, calibrate_model(task, dataset, folder, card, progress), folder)


def trainable_tasks(tasks: Sequence[Task], store: FeatureStore, folder: Path) -> list[tuple[Task, Path]]:
    """Choose the tasks with two videos or more that have labels and features; others are named in a warning.

    With each comes where its results go: of a single task into the folder, of several into a folder each.
    """
    folders = [folder] if len(tasks) == 1 else [folder / name for name in safe_names([task.name for task in tasks])]
    chosen, left_out = [], []
    for task, task_folder in zip(tasks, folders, strict=True):
        known = (video for video in task if video.segments and store.features(task.name, video.id) is not None)
        if len(list(islice(known, 2))) == 2:
            chosen.append((task, task_folder))
        else:
            left_out.append(task.name)
    if not chosen:
        what = "no task has two videos with labels and features"
        raise InputError(what, where=store.folder, hint="are these the features of this data?")
    for name in left_out:
        _log.warning("%s: left out, it has fewer than two videos with labels and features", name)
    return chosen


def load_dataset(task: Task, store: FeatureStore, model: StateModelOptions) -> StateDataset:
    """Load the videos of a task with their features, as a model with these options reads them."""
    dataset = build_dataset(task, lambda video: store.features(task.name, video), text_only=model.inputs == "text")
    missing = sum(bool(video.segments) for video in task) - len(dataset)
    if missing:
        _log.warning("%s: %d of its %d videos have no features", task.name, missing, missing + len(dataset))
    return dataset
