"""Training the networks as the state predictor is trained: a cosine with warm-up, and the best validation is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from experiments.forecasting.video_transformers.labelled_videos import LabelledVideos
from experiments.forecasting.video_transformers.networks import NETWORKS, InputSizes, Network
from experiments.forecasting.video_transformers.step_histories import StepHistories, step_histories
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from msg2.errors import InputError
from msg2.states.loss_and_optimizer import learning_rate, optimizer_step, set_learning_rate, single_thread, torch_seed


@dataclass(frozen=True, slots=True, eq=False)
class TrainedNetwork:
    """A trained network, and how its training went."""

    network: Network
    options: VideoTransformerOptions
    training_videos: tuple[str, ...]
    """The ids of the videos that it was trained on; the others decided when to stop."""
    losses: tuple[float, ...]
    """On these others, after every epoch."""


def train_network(name: str, videos: LabelledVideos, options: VideoTransformerOptions) -> TrainedNetwork:
    """The network of this name in `NETWORKS`, learnt from all the videos that have labels, two at least.

    Parameters
    ----------
    name : str
        A name in `NETWORKS`.
    videos : LabelledVideos
        To learn from; two of them at least must have labels.
    options : VideoTransformerOptions
        What can be set.

    Returns
    -------
    TrainedNetwork
        With the best weights on the validation videos.
    """
    training = options.training
    labelled = [number for number, video in enumerate(videos) if len(video.steps)]
    if len(labelled) < 2:
        what = f"there are {len(labelled)} labelled videos to learn from"
        raise InputError(what, hint="two are needed, one of them for validation")
    order = np.random.default_rng(training.seed).permutation(labelled).tolist()
    held = min(max(1, round(training.validation * len(order))), len(order) - 1)
    kept, learnt = sorted(order[:held]), sorted(order[held:])
    torch.manual_seed(torch_seed(training.seed))
    with single_thread():
        network = NETWORKS[name](InputSizes.of(videos), options)
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=options.weight_decay)
        asked = step_histories(videos, kept, options)
        losses: list[float] = []
        best: dict[str, Tensor] = {}
        for epoch in range(training.epochs):
            network.train()
            torch.manual_seed(torch_seed(training.seed, epoch))
            batches = _batches(videos, learnt, options, epoch)
            for number, part in enumerate(batches, start=epoch * len(batches)):
                steps = training.epochs * len(batches)
                rate = learning_rate(number, steps, peak=training.learning_rate, warmup=training.warmup)
                set_learning_rate(optimizer, rate)
                optimizer_step(optimizer, network.parameters(), partial(_loss, network, videos, part), training.clip)
            losses.append(_validation_loss(network, videos, asked))
            ago = len(losses) - 1 - losses.index(min(losses))
            if ago == 0:
                best = {key: value.clone() for key, value in network.state_dict().items()}
            if training.patience is not None and ago >= training.patience:
                break
    network.load_state_dict(best)
    return TrainedNetwork(network, options, tuple(videos.videos[number].video for number in learnt), tuple(losses))


def predict_probabilities(trained: TrainedNetwork, videos: LabelledVideos) -> Tensor:
    """(M, N): the probability of every step to be next, before each step of all videos in turn; 0 for what is done.

    Parameters
    ----------
    trained : TrainedNetwork
        The network.
    videos : LabelledVideos
        The videos, of the same task.

    Returns
    -------
    Tensor
        Shape (M, N), one row before each step of all videos.
    """
    asked = step_histories(videos, range(len(videos)), trained.options)
    trained.network.eval()
    with torch.no_grad(), single_thread():
        return trained.network(asked, videos).double().softmax(-1)  # type: ignore[no-any-return]


def _batches(
    videos: LabelledVideos, numbers: Sequence[int], options: VideoTransformerOptions, epoch: int
) -> list[StepHistories]:
    """All histories of the videos of these numbers; what is random in them follows from the seed and the epoch."""
    rng = np.random.default_rng([options.training.seed, epoch])
    seen = step_histories(videos, numbers, options, rng)
    size, order = options.training.batch, rng.permutation(len(seen))
    return [seen[torch.from_numpy(order[begin : begin + size])] for begin in range(0, len(seen), size)]


def _loss(network: Network, videos: LabelledVideos, histories: StepHistories) -> Tensor:
    """−log p of the steps that came, on average."""
    return F.cross_entropy(network(histories, videos), histories.next_step)


@torch.no_grad()
def _validation_loss(network: Network, videos: LabelledVideos, asked: StepHistories) -> float:
    network.eval()
    loss = float(_loss(network, videos, asked))
    return loss if math.isfinite(loss) else math.inf
