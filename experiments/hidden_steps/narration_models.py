"""Models of states as predictors of hidden steps: what they hear is all that tells them of a video, besides labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments.hidden_steps.protocol import HiddenStepLearner, HiddenStepPrediction, HiddenStepPredictor
from msg2.formats import read_all
from msg2.formats.feature_store import VideoFeatures
from msg2.media.narration import add_narration
from msg2.states.configuration import FillOptions, TrainingOptions
from msg2.task import Sentence, Task, Video
from msg2.text_encoders import TextEncoder

if TYPE_CHECKING:
    from msg2.states.checkpoint import ModelCard
    from msg2.states.label_filling import StatePrediction
    from msg2.states.network import StateModel


@dataclass(frozen=True, slots=True)
class NarrationOptions:
    """How models of states learn from real narration."""

    epochs: int = 100
    warmup: int = 20
    splits: int = 3
    """Seeded splits into training and test videos for the next step."""
    folds: int = 2
    """The labels of a training video are filled by a model of the other folds."""
    tasks: int | None = None
    """The first ones; None: all that have transcripts."""
    videos: int | None = None
    """Of each task, the first ones; None: all that are narrated."""

    @staticmethod
    def quick() -> NarrationOptions:
        """A small part of it."""
        return NarrationOptions(epochs=2, warmup=1, splits=1, tasks=1, videos=12)


class CachedTextEncoder:
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


def state_model_learner(variant: str, encode: CachedTextEncoder, options: NarrationOptions) -> HiddenStepLearner:
    """Learns a model of this variant; completion is σ(ŝ - b), presence what it says of that, or its highest score.

    Parameters
    ----------
    variant : str
        A name in `msg2.states.configuration.VARIANTS`.
    encode : CachedTextEncoder
        From texts to vectors.
    options : NarrationOptions
        What can be set.

    Returns
    -------
    HiddenStepLearner
        It trains a model on the training videos.
    """
    from msg2.states.dataset import END, START

    def learn(training: Task, seconds: Mapping[str, float]) -> HiddenStepPredictor:
        card, model = _train_model(variant, training, encode, options)

        def predict(video: Video, length: float) -> HiddenStepPrediction:
            (read,) = _predict_states(card, model, training.with_videos([video]), encode)
            place = {(step, kind): row for row, (step, kind) in enumerate(zip(read.step, read.kind, strict=True))}
            order = [
                place[training.steps.index(segment.step), kind] for segment in video.segments for kind in (START, END)
            ]
            presence = read.scores.max(axis=0) if read.presence is None else read.presence
            return HiddenStepPrediction(expit(read.scores - card.model.threshold)[order], presence)

        return predict

    return learn


def cross_fill_labels(task: Task, encode: CachedTextEncoder, options: NarrationOptions) -> Task:
    """`task` with predicted labels, each video's by a model that has not learnt from it.

    Parameters
    ----------
    task : Task
        The task.
    encode : CachedTextEncoder
        From texts to vectors.
    options : NarrationOptions
        What can be set.

    Returns
    -------
    Task
        The same videos with more labels.
    """
    from msg2.states.label_filling import fill_labels

    done: list[Video] = []
    for fold in range(options.folds):
        held = [video for place, video in enumerate(task) if place % options.folds == fold]
        rest = task.with_videos(video for place, video in enumerate(task) if place % options.folds != fold)
        card, model = _train_model("text+labels", rest, encode, options)
        part = task.with_videos(held)
        done += fill_labels(part, _predict_states(card, model, part, encode), FillOptions().for_model(card.model))
    return task.with_videos(done)


def _train_model(
    variant: str, task: Task, encode: CachedTextEncoder, options: NarrationOptions
) -> tuple[ModelCard, StateModel]:
    from msg2.states.checkpoint import load_checkpoint
    from msg2.states.configuration import get_variant
    from msg2.states.dataset import build_dataset
    from msg2.states.training import train_model

    model, sampling, *_ = get_variant(variant).options()
    training = TrainingOptions(epochs=options.epochs, warmup=options.warmup, device="cpu")
    with TemporaryDirectory() as folder:
        seen = build_dataset(task, _features(task, encode).get, text_only=True)
        train_model(seen, Path(folder), model=model, sampling=sampling, training=training)
        return load_checkpoint(Path(folder))


def _predict_states(card: ModelCard, model: StateModel, task: Task, encode: CachedTextEncoder) -> list[StatePrediction]:
    from msg2.states.dataset import build_dataset
    from msg2.states.label_filling import predict_states

    seen = build_dataset(task, _features(task, encode).get, text_only=True)
    return list(predict_states(model, seen, range(len(seen)), card.sampling))


def _features(task: Task, encode: CachedTextEncoder) -> dict[str, VideoFeatures]:
    return {video.id: narration_features(video.sentences, encode) for video in task}


def narration_features(sentences: Iterable[Sentence], encoder: TextEncoder) -> VideoFeatures:
    """Encode the narration of a video of which nothing else is known.

    Parameters
    ----------
    sentences : iterable of Sentence
        What is said, in any order.
    encoder : TextEncoder
        What makes vectors of texts.

    Returns
    -------
    VideoFeatures
        The sentences in the order of a `Video`, and no frames, of width 0.

    >>> from msg2.text_encoders import HashedWords
    >>> narration_features([Sentence("now flip the bread", 60.0, 62.5)], HashedWords(8)).sentences.shape
    (1, 8)
    """
    ordered = sorted(sentences, key=lambda sentence: (sentence.start, sentence.end, sentence.text))
    times = np.array([(sentence.start, sentence.end) for sentence in ordered]).reshape(-1, 2)
    return VideoFeatures(
        np.zeros(0), np.zeros((0, 0), np.float32), times, encoder([sentence.text for sentence in ordered])
    )


@cache
def read_narrated_tasks(folder: Path) -> Mapping[str, Task]:
    """The CrossTask tasks of which some videos have a transcript in `folder`, with all their videos, by name."""
    tasks = add_narration(read_all(folder / "crosstask_release"), folder / "transcripts")
    return {task.name: task for task in tasks}
