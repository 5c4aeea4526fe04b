"""Trained state models at work: which folder holds the model of which task, filling in labels, and evaluation."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from msg2.errors import InputError
from msg2.media.feature_store import FeatureStore
from msg2.metrics.completion import additions
from msg2.states.checkpoint import ModelCard, load_checkpoint, read_card
from msg2.states.configuration import FillOptions
from msg2.states.dataset import StateDataset
from msg2.states.fill_calibration import FillCalibration, read_calibration
from msg2.states.label_filling import fill_labels
from msg2.states.network import StateModel
from msg2.states.prediction import EVALUATION_DRAWS, StatePrediction, hidden_completion, predict_states, true_completion
from msg2.states.task_training import load_dataset
from msg2.task import Task
from msg2.text import short_repr

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedStateModel:
    """A trained model with a task and its dataset; see `load_trained_model`."""

    card: ModelCard
    model: StateModel
    task: Task
    """With the steps of the model."""
    dataset: StateDataset
    calibration: FillCalibration | None = None
    """None: that of a model which was trained by an earlier version, or without `train_task`."""

    @property
    def note(self) -> str | None:
        """Why no labels are added; None where they are."""
        if self.calibration is None:
            return "no labels are added: the model has no calibration, train it again or use --uncalibrated"
        return self.calibration.note

    def predict(
        self, numbers: Sequence[int] | None = None, hidden: Sequence[int] | None = None
    ) -> list[StatePrediction]:
        """Predict the states of every step."""
        chosen = range(len(self.dataset)) if numbers is None else numbers
        return list(predict_states(self.model, self.dataset, chosen, self.card.sampling, hidden=hidden))

    def fill(self, options: FillOptions) -> Task:
        """Return the task with the predicted labels added, or as it is where there is a `note`."""
        chosen = options.for_model(self.card.model)
        if chosen.uncalibrated:
            return fill_labels(self.task, self.predict(), chosen)
        return self.task if self.note else fill_labels(self.task, self.predict(), chosen, self.calibration)

    def held_out(self) -> list[int]:
        """The numbers of the videos that the model was not trained on."""
        known = set(self.card.videos["training"])
        return [number for number, video in enumerate(self.dataset.videos) if video.video not in known]

    def evaluate(self, performed: Task | None, options: FillOptions) -> dict[str, dict[str, float | int | None]]:
        """Measure how well completed steps are predicted, and what the added labels are worth."""
        threshold, numbers = self.card.model.threshold, self.held_out()
        if performed is None:
            if not numbers:
                raise InputError("every video was trained on", hint="give videos of the same task that were not")
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


def load_trained_model(folder: Path, task: Task, store: FeatureStore) -> TrainedStateModel:
    """Load a model ready to read the videos of a task, on a GPU where there is one.

    Parameters
    ----------
    folder : Path
        The folder of the model.
    task : Task
        The labels.
    store : FeatureStore
        The features of the videos.

    Returns
    -------
    TrainedStateModel
        The best model of the training.

    Raises
    ------
    InputError
        Where there is no model, it does not know a step, or it was trained on features of other widths.
    """
    card, model = load_checkpoint(folder)
    unknown = sorted(set(task.steps) - set(card.steps))
    if unknown:
        what = f"the model does not know the step {short_repr(unknown[0])} of task {short_repr(task.name)}"
        raise InputError(what, where=folder, hint="train a model on labels that have all steps")
    whole = Task(task.name, card.steps, task.videos, task.absent)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = load_dataset(whole, store, card.model)
    for vectors, width, what in (
        (dataset.frames, card.frame_width, "frames"),
        (dataset.sentences, card.text_width, "sentences"),
    ):
        if len(vectors) and vectors.shape[1] != width:
            what = f"the {what} are {vectors.shape[1]} wide, the model in {folder} was trained on {width}"
            raise InputError(what, where=store.folder, hint="make the features with the encoders of its training")
    dataset = replace(dataset.to(device), training_videos=frozenset(card.videos["training"]))
    return TrainedStateModel(card, model.to(device), whole, dataset, read_calibration(folder))


def load_trained_models(
    folder: Path, tasks: Sequence[Task], store: FeatureStore
) -> Iterator[tuple[str, TrainedStateModel]]:
    """Load the model of every task that has one; a single model is for the only task there is.

    Parameters
    ----------
    folder : Path
        The folder of a model, or of a folder per task.
    tasks : sequence of Task
        The labels. Tasks without a model are left out, with a warning.
    store : FeatureStore
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
    folders = _find_models(folder)
    if len(folders) == len(tasks) == 1:
        folders = {tasks[0].name: next(iter(folders.values()))}
    if not folders.keys() & {task.name for task in tasks}:
        listed = ", ".join(short_repr(name, 30) for name in sorted(folders)[:10])
        raise InputError("there is no model of a task in it", hint=f"there are models of {listed}")
    for task in tasks:
        if task.name in folders:
            yield task.name, load_trained_model(folders[task.name], task, store)
        else:
            _log.warning("%s: left out, there is no model of it", task.name)


def _find_models(folder: Path) -> dict[str, Path]:
    """Task -> folder of its model: `folder` itself holds one model, or there is a folder per task in it."""
    folders = (
        [folder] if (folder / "model.json").exists() else sorted(path.parent for path in folder.glob("*/model.json"))
    )
    models: dict[str, Path] = {}
    for each in folders or [folder]:
        task = read_card(each).task
        if task in models:
            raise InputError(f"holds two models of task {short_repr(task)}", where=folder, hint="name one of them")
        models[task] = each
    return models


def fill_tasks(
    folder: Path, tasks: Sequence[Task], store: FeatureStore, options: FillOptions | None = None
) -> dict[str, Task]:
    """Add the steps that were done but not labelled.

    Parameters
    ----------
    folder : Path
        The folder of a model, or of a folder per task.
    tasks : sequence of Task
        The labels.
    store : FeatureStore
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
    chosen, filled = options or FillOptions(), {}
    for name, model in load_trained_models(folder, tasks, store):
        filled[name] = model.fill(chosen)
        if not chosen.uncalibrated:
            if model.note or model.calibration is None:
                _log.warning("%s: %s", name, model.note)
            else:
                _log.info("%s: %s", name, model.calibration)
    return filled
