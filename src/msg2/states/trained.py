"""Models in folders, labels and a feature store brought together: what is to be trained, and who reads what."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from msg2.errors import InputError, shortened
from msg2.media.store import FeatureStore
from msg2.options import FillOptions, SamplingOptions, StateEvaluationOptions, StateModelOptions
from msg2.states.card import Card
from msg2.states.checkpoint import load_model, read_card
from msg2.states.fill import filled
from msg2.states.footage import Footage, footage
from msg2.states.model import StateModel
from msg2.states.reading import Reading, readings
from msg2.states.scoring import additions, hidden_completion, true_completion
from msg2.states.variants import variant
from msg2.task import Task, Video

_log = logging.getLogger(__name__)


def options_for(name: str, store: FeatureStore, **model: Any) -> tuple[StateModelOptions, SamplingOptions]:
    """The options of the variant `name`, those in `model` winning; sentences stand in for frames that are not there."""
    chosen, sampling = variant(name).options(**model)
    if store.encoders.frame_width == 0 and chosen.inputs == "fused":
        _log.warning("%s: there are no frames, sentences take their place", store.folder)
        chosen, sampling = variant(name).options(**{"inputs": "text", **model})
    return chosen, sampling


def trainable(tasks: Sequence[Task], store: FeatureStore) -> list[Task]:
    """The tasks with two videos or more that have labels and features; the others are named in a warning."""
    enough = [task for task in tasks if len(list(islice(_seen(task, store), 2))) == 2]
    if not enough:
        what = "no task has two videos with labels and features"
        raise InputError(what, where=store.folder, hint="are these the features of this data?")
    for task in tasks:
        if task not in enough:
            _log.warning("%s: left out, it has fewer than two videos with labels and features", task.name)
    return enough


def _seen(task: Task, store: FeatureStore) -> Iterator[Video]:
    return (video for video in task if video.segments and store.features(task.name, video.id) is not None)


def footage_of(task: Task, store: FeatureStore, model: StateModelOptions) -> Footage:
    """The videos of `task` with their features, as a model with these options reads them."""
    found = footage(task, lambda video: store.features(task.name, video), text_only=model.inputs == "text")
    blind = sum(bool(video.segments) for video in task) - len(found)
    if blind:
        _log.warning("%s: %d of its %d videos have no features", task.name, blind, blind + len(found))
    return found


def model_folders(folder: Path) -> dict[str, Path]:
    """Task -> folder of its model: `folder` itself holds one model, or there is a folder per task in it."""
    folders = (
        [folder] if (folder / "model.json").exists() else sorted(path.parent for path in folder.glob("*/model.json"))
    )
    found: dict[str, Path] = {}
    for one in folders or [folder]:
        task = read_card(one).task
        if task in found:
            raise InputError(f"holds two models of task {shortened(task)}", where=folder, hint="name one of them")
        found[task] = one
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained model with a task and its footage; see `trained`."""

    card: Card
    model: StateModel
    task: Task
    """With the steps of the model."""
    footage: Footage

    def readings(self, numbers: Sequence[int] | None = None, hidden: Sequence[int] | None = None) -> list[Reading]:
        """What the model says about the clips of these numbers, by default all; `hidden` is a seed, see `readings`."""
        chosen = range(len(self.footage)) if numbers is None else numbers
        return list(readings(self.model, self.footage, chosen, self.card.sampling, hidden=hidden))

    def filled(self, options: FillOptions) -> Task:
        """The task with the predicted labels added."""
        return filled(self.task, self.readings(), options.suited_to(self.card.model))

    def held_out(self) -> list[int]:
        """The numbers of the clips that the model was not trained on."""
        known = set(self.card.videos["training"])
        return [number for number, clip in enumerate(self.footage.clips) if clip.video not in known]

    def measured(self, performed: Task | None, options: FillOptions) -> dict[str, dict[str, float | int | None]]:
        """What is measured -> its numbers: of hidden labels of held-out videos, or against what was performed."""
        threshold, numbers = self.card.model.threshold, self.held_out()
        if performed is None:
            if not numbers:
                raise InputError("every video was trained on", hint="give videos of the same task that were not")
            draws = [one for seed in range(StateEvaluationOptions().draws) for one in self.readings(numbers, [seed])]
            return {"hidden steps": hidden_completion(draws, threshold).to_json()}
        after = {video.id: video for video in self.filled(options)}
        found = {}
        for name, part in (("held-out videos", numbers), ("all videos", range(len(self.footage)))):
            if part:
                completed = true_completion(self.readings(part), self.task.steps, performed, threshold)
                added = additions([after[self.footage.clips[number].video] for number in part], performed)
                found[name] = completed.to_json() | added.to_json()
        return found


def trained(folder: Path, task: Task, store: FeatureStore) -> Trained:
    """The model in `folder` ready to read the videos of `task`, on a GPU where there is one."""
    card, model = load_model(folder)
    strange = sorted(set(task.steps) - set(card.steps))
    if strange:
        what = f"the model does not know the step {shortened(strange[0])} of task {shortened(task.name)}"
        raise InputError(what, where=folder, hint="train a model on labels that have all steps")
    whole = Task(task.name, card.steps, task.videos)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = footage_of(whole, store, card.model)
    for vectors, width, what in (
        (found.frames, card.frame_width, "frames"),
        (found.sentences, card.text_width, "sentences"),
    ):
        if len(vectors) and vectors.shape[1] != width:
            what = f"the {what} are {vectors.shape[1]} wide, the model in {folder} was trained on {width}"
            raise InputError(what, where=store.folder, hint="make the features with the encoders of its training")
    known = replace(found.to(device), learnt=frozenset(card.videos["training"]))
    return Trained(card, model.to(device), whole, known)
