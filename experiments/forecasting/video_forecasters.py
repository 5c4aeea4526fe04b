"""Forecasters of the steps of a video, learned from training videos: by their labels alone, or by a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from experiments.forecasting.next_step_labels import DELTA
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from experiments.hidden_steps.narration_models import CachedTextEncoder, NarrationOptions, cross_fill_labels
from msg2.assist import Ranker
from msg2.assist.next_step_evaluation import tie_aware_accuracy
from msg2.assist.rankers import recency
from msg2.formats.feature_store import VideoFeatures
from msg2.inference import infer
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True)
class VideoNextStepOptions:
    """What the rows of `python -m experiments video-next-step` are learned with."""

    network: VideoTransformerOptions = field(default_factory=VideoTransformerOptions)
    filling: NarrationOptions = field(default_factory=NarrationOptions)
    """Of the state predictor that fills labels up for the full MSG²."""

    @staticmethod
    def quick() -> VideoNextStepOptions:
        """A minute's part of it."""
        brief = replace(VideoTransformerOptions().training, epochs=2)
        return VideoNextStepOptions(VideoTransformerOptions(training=brief), NarrationOptions(epochs=2, warmup=1))


VideoForecaster: TypeAlias = Callable[[Video], Sequence[Mapping[Step, float]]]
"""From a video to the probability of each step that is left, before every step of `video.sequence()`."""


@dataclass(frozen=True, slots=True)
class VideoInputs:
    """What is known of videos besides their labels."""

    features: Callable[[Video], VideoFeatures]
    text_only: bool
    """There are no frames: sentences stand in their place."""
    encode: CachedTextEncoder
    """Of sentences, for the state predictor."""


ForecasterLearner: TypeAlias = Callable[[Task, VideoInputs, VideoNextStepOptions], VideoForecaster]


def label_forecaster(ranker_from: Callable[[Task], Ranker]) -> ForecasterLearner:
    """What a ranker says, which knows only the steps that are done."""
    return lambda training, *_: _forecast_with_ranker(ranker_from(training))


def filled_label_forecaster(training: Task, inputs: VideoInputs, options: VideoNextStepOptions) -> VideoForecaster:
    """Full MSG²: the graph of labels that the state predictor filled up; videos that say nothing stay as they are.

    Parameters
    ----------
    training : Task
        The training videos.
    inputs : VideoInputs
        What is known of the videos besides their labels.
    options : VideoNextStepOptions
        What can be set.

    Returns
    -------
    VideoForecaster
        It ranks by the graph.
    """
    heard = training.with_videos(video for video in training if video.sentences)
    silent = [video for video in training if not video.sentences]
    full = training.with_videos([*cross_fill_labels(heard, inputs.encode, options.filling), *silent])
    return _forecast_with_ranker(recency(infer(full, "msg2", delta=DELTA)))


def network_forecaster(name: str, **changed: Any) -> ForecasterLearner:
    """Return the learner of a network.

    Parameters
    ----------
    name : str
        A name in `experiments.forecasting.video_transformers.networks.NETWORKS`.
    **changed
        Options of the network that differ from the experiment's.

    Returns
    -------
    ForecasterLearner
        It trains the network on the training videos.
    """

    def learn(training: Task, inputs: VideoInputs, options: VideoNextStepOptions) -> VideoForecaster:
        from experiments.forecasting.video_transformers.labelled_videos import labelled_videos
        from experiments.forecasting.video_transformers.network_training import predict_probabilities, train_network

        known = labelled_videos(training, inputs.features, text_only=inputs.text_only)
        network = train_network(name, known, replace(options.network, **changed))

        def forecast(video: Video) -> list[Mapping[Step, float]]:
            seen = labelled_videos(training.with_videos([video]), inputs.features, text_only=inputs.text_only)
            return [
                {step: p for step, p in zip(training.steps, row, strict=True) if step not in video.sequence()[:place]}
                for place, row in enumerate(predict_probabilities(network, seen).tolist())
            ]

        return forecast

    return learn


def expected_hits(forecast: VideoForecaster, video: Video) -> list[float]:
    """Of each step of the video, the chance that it was the predicted one; as `evaluate_ranker` has it.

    Parameters
    ----------
    forecast : VideoForecaster
        The forecaster.
    video : Video
        The video.

    Returns
    -------
    list[float]
        For each step of the video, between 0 and 1.
    """
    return [tie_aware_accuracy(said, came) for said, came in zip(forecast(video), video.sequence(), strict=True)]


def _forecast_with_ranker(ranker: Ranker) -> VideoForecaster:
    return lambda video: [ranker(video.sequence()[:place]) for place in range(len(video.sequence()))]
