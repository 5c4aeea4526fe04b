"""Forecasters of the steps of a video, learned from training videos: by their labels, their states, or a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
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
    states: str = "t5-tiny"
    """The transformer of the paper's state model, whose other options are the paper's but for `filling`."""

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


def predicted_state_forecaster(training: Task, inputs: VideoInputs, options: VideoNextStepOptions) -> VideoForecaster:
    """App. C as printed: completion comes from the labels and from the states that the paper's model predicts.

    The model fills up the labels of its training videos, for the graph. Of a test video it sees the labels and features
    up to the step that is asked for; a step without a label that it calls completed (ŝ ≥ 0) at one of the borders so
    far is completed there, and is not predicted any more. (What graph filling reads one border later is read at the
    border itself here: the next one is what is asked for.)

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
        It ranks by the graph, given the labels and the predicted states.
    """
    from msg2.states.checkpoint import load_checkpoint
    from msg2.states.configuration import get_variant
    from msg2.states.dataset import StateDataset, build_dataset
    from msg2.states.label_filling import fill_labels, first_completion, predict_states
    from msg2.states.training import train_model

    brief = {"epochs": options.filling.epochs, "warmup": options.filling.warmup, "device": "cpu"}
    variant = get_variant("text-only" if inputs.text_only else "paper")
    model, sampling, how, filling = variant.options(encoder=options.states, **brief)
    filling = filling.for_model(model)

    def dataset(task: Task) -> StateDataset:
        known = {video.id: inputs.features(video) for video in task}
        return build_dataset(task, known.get, text_only=inputs.text_only)

    def tells(features: VideoFeatures) -> bool:
        return len(features.sentences) > 0 and (inputs.text_only or len(features.frames) > 0)

    told = training.with_videos(video for video in training if tells(inputs.features(video)))
    with TemporaryDirectory() as folder:
        train_model(dataset(told), Path(folder), model=model, sampling=sampling, training=how)
        _, network = load_checkpoint(Path(folder))
    predicted = predict_states(network, dataset(told), range(len(told)), sampling)
    silent = [video for video in training if not tells(inputs.features(video))]
    full = training.with_videos([*fill_labels(told, predicted, filling), *silent])
    ranker = recency(infer(full, "msg2", delta=DELTA))
    at_border = replace(filling, read_at="same")

    def completed(video: Video, place: int) -> list[Step]:
        """The steps that are completed when the step at this place begins, in their order."""
        segments = video.with_first_labels().segments
        seen = Video(video.id, segments[:place])
        heard = cut_features(inputs.features(video), segments[place].start or 0.0)
        if not place or not tells(heard):
            return [segment.step for segment in seen.segments]
        so_far = training.with_videos([seen])
        given = build_dataset(so_far, {video.id: heard}.get, text_only=inputs.text_only)
        (states,) = predict_states(network, given, [0], sampling)
        ends = {segment.step: float(segment.end or 0.0) for segment in seen.segments}
        for number, step in enumerate(training.steps):
            border = first_completion(states.scores[:, number], states.kind, at_border)
            if step not in ends and border is not None:
                ends[step] = float(states.time[border])
        return sorted(ends, key=lambda step: (ends[step], step))

    return lambda video: [ranker(completed(video, place)) for place in range(len(video.sequence()))]


def cut_features(features: VideoFeatures, now: float) -> VideoFeatures:
    """Return what is seen and said by a moment in seconds.

    Parameters
    ----------
    features : VideoFeatures
        Of the whole video.
    now : float
        The moment.

    Returns
    -------
    VideoFeatures
        Frames up to it, and sentences that are over.
    """
    seen, said = features.frame_times <= now, features.sentence_times[:, 1] <= now
    return VideoFeatures(
        features.frame_times[seen], features.frames[seen], features.sentence_times[said], features.sentences[said]
    )


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
