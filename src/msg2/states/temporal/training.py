"""Training the networks as the state predictor is trained: a cosine with warm-up, and the best validation is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError
from msg2.options import ForeseeingOptions
from msg2.states.card import torch_seed
from msg2.states.optimizer import learning_rate, set_rate
from msg2.states.temporal.films import Films
from msg2.states.temporal.moments import Moments, moments
from msg2.states.temporal.networks import NETWORKS, Network, Sizes
from msg2.states.threads import one_thread


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """A trained network, and how its training went."""

    network: Network
    options: ForeseeingOptions
    learnt: tuple[str, ...]
    """The ids of the videos that it was trained on; the others decided when to stop."""
    losses: tuple[float, ...]
    """On these others, after every epoch."""


def trained(name: str, films: Films, options: ForeseeingOptions) -> Foresight:
    """The network of this name in `NETWORKS`, learnt from all the films that have labels, two at least."""
    training = options.training
    labelled = [number for number, film in enumerate(films) if len(film.steps)]
    if len(labelled) < 2:
        what = f"there are {len(labelled)} labelled videos to learn from"
        raise InputError(what, hint="two are needed, one of them for validation")
    order = np.random.default_rng(training.seed).permutation(labelled).tolist()
    held = min(max(1, round(training.validation * len(order))), len(order) - 1)
    kept, learnt = sorted(order[:held]), sorted(order[held:])
    torch.manual_seed(torch_seed(training.seed))
    with one_thread():
        network = NETWORKS[name](Sizes.of(films), options)
        optimizer = torch.optim.AdamW(
            [{"params": list(network.parameters()), "pace": 1.0}], weight_decay=options.weight_decay
        )
        asked = moments(films, kept, options)
        losses: list[float] = []
        best: dict[str, Tensor] = {}
        for epoch in range(training.epochs):
            network.train()
            torch.manual_seed(torch_seed(training.seed, epoch))
            batches = _batches(films, learnt, options, epoch)
            for number, part in enumerate(batches, start=epoch * len(batches)):
                set_rate(optimizer, learning_rate(number, training.epochs * len(batches), training))
                _learn(network, optimizer, films, part, training.clip)
            losses.append(_loss(network, films, asked))
            ago = len(losses) - 1 - losses.index(min(losses))
            if ago == 0:
                best = {key: value.clone() for key, value in network.state_dict().items()}
            if training.patience is not None and ago >= training.patience:
                break
    network.load_state_dict(best)
    return Foresight(network, options, tuple(films.films[number].video for number in learnt), tuple(losses))


def foreseen(foresight: Foresight, films: Films) -> Tensor:
    """(M, N): the probability of every step to be next, before each step of all films in turn; 0 for what is done."""
    asked = moments(films, range(len(films)), foresight.options)
    foresight.network.eval()
    with torch.no_grad(), one_thread():
        return foresight.network(asked, films).double().softmax(-1)  # type: ignore[no-any-return]


def _batches(films: Films, numbers: Sequence[int], options: ForeseeingOptions, epoch: int) -> list[Moments]:
    """All moments of the films of these numbers; what is random in them follows from the seed and the epoch."""
    rng = np.random.default_rng([options.training.seed, epoch])
    seen = moments(films, numbers, options, rng)
    size, order = options.training.batch, rng.permutation(len(seen))
    return [seen[torch.from_numpy(order[begin : begin + size])] for begin in range(0, len(seen), size)]


def _learn(network: Network, optimizer: torch.optim.AdamW, films: Films, part: Moments, clip: float) -> None:
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(network(part, films), part.came).backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), clip)
    optimizer.step()


@torch.no_grad()
def _loss(network: Network, films: Films, asked: Moments) -> float:
    """−log p of the steps that came, on average."""
    network.eval()
    loss = float(F.cross_entropy(network(asked, films), asked.came))
    return loss if math.isfinite(loss) else math.inf
