"""Models of states as predictors of hidden steps: what they hear is all that tells them of a video, besides labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from msg2.experiments.hidden import Learner, Prediction, Predictor
from msg2.media.features import Features
from msg2.media.text import TextEncoder, narration_features
from msg2.options import FillOptions, NarrationOptions, TrainingOptions
from msg2.readers import read_all
from msg2.readers.captions import narrated, read_captions
from msg2.task import Task, Video

if TYPE_CHECKING:
    from msg2.states.card import Card
    from msg2.states.model import StateModel
    from msg2.states.reading import Reading


class Memory:
    """An encoder that encodes every text once."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder, self.name, self.width, self.versions = encoder, encoder.name, encoder.width, encoder.versions
        self.known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, self.encoder(new), strict=True))
        return np.array([self.known[text] for text in texts]).reshape(len(texts), self.width)


def by_states(variant: str, encode: Memory, options: NarrationOptions) -> Learner:
    """Learns a model of this variant; completion is σ(ŝ - b), presence what it says of that, or its highest score."""
    from msg2.states.sampling import END, START

    def learn(training: Task, seconds: Mapping[str, float]) -> Predictor:
        card, model = _trained(variant, training, encode, options)

        def predict(video: Video, length: float) -> Prediction:
            (read,) = _readings(card, model, training.with_videos([video]), encode)
            place = {(step, kind): row for row, (step, kind) in enumerate(zip(read.step, read.kind, strict=True))}
            order = [
                place[training.steps.index(segment.step), kind] for segment in video.segments for kind in (START, END)
            ]
            presence = read.scores.max(axis=0) if read.presence is None else read.presence
            return Prediction(expit(read.scores - card.model.threshold)[order], presence)

        return predict

    return learn


def cross_filled(task: Task, encode: Memory, options: NarrationOptions) -> Task:
    """`task` with predicted labels, each video's by a model that has not learnt from it."""
    from msg2.states.fill import filled

    done: list[Video] = []
    for fold in range(options.folds):
        held = [video for place, video in enumerate(task) if place % options.folds == fold]
        rest = task.with_videos(video for place, video in enumerate(task) if place % options.folds != fold)
        card, model = _trained("text+labels", rest, encode, options)
        part = task.with_videos(held)
        done += filled(part, _readings(card, model, part, encode), FillOptions().suited_to(card.model))
    return task.with_videos(done)


def _trained(variant: str, task: Task, encode: Memory, options: NarrationOptions) -> tuple[Card, StateModel]:
    from msg2.states.checkpoint import load_model
    from msg2.states.footage import footage
    from msg2.states.training import train
    from msg2.states.variants import variant as named

    model, sampling = named(variant).options()
    training = TrainingOptions(epochs=options.epochs, warmup=options.warmup, device="cpu")
    with TemporaryDirectory() as folder:
        seen = footage(task, _features(task, encode).get, text_only=True)
        train(seen, Path(folder), model=model, sampling=sampling, training=training)
        return load_model(Path(folder))


def _readings(card: Card, model: StateModel, task: Task, encode: Memory) -> list[Reading]:
    from msg2.states.footage import footage
    from msg2.states.reading import readings

    seen = footage(task, _features(task, encode).get, text_only=True)
    return list(readings(model, seen, range(len(seen)), card.sampling))


def _features(task: Task, encode: Memory) -> dict[str, Features]:
    return {video.id: narration_features(video.sentences, encode) for video in task}


@cache
def narrated_tasks(folder: Path) -> Mapping[str, Task]:
    """The CrossTask tasks of which some videos have a transcript in `folder`, with all their videos, by name."""
    captions = read_captions(folder / "transcripts")
    tasks = (narrated(task, captions) for task in read_all(folder / "crosstask_release"))
    return {task.name: task for task in tasks if any(video.sentences for video in task)}
