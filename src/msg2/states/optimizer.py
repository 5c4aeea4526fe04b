"""Adam for the state model: one step, the learning rates, and the moments as they are saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from msg2.errors import InputError
from msg2.states.configuration import TrainingOptions
from msg2.states.state_model import StateModel

_MOMENTS = ("exp_avg", "exp_avg_sq")


def build_optimizer(model: StateModel, options: TrainingOptions) -> torch.optim.Adam:
    """Build Adam over the parameters in groups, each with a "rate_factor": its multiple of the learning rate.

    The evidence and co-occurrence models have few weights and start at zero; the single numbers that scale them learn
    faster still.

    Parameters
    ----------
    model : StateModel
        The model that is to learn.
    options : TrainingOptions
        The learning rates.

    Returns
    -------
    torch.optim.Adam
        Fused on a GPU.
    """
    fast = options.evidence_rate / options.learning_rate
    groups: dict[float, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        factor = 1.0
        if name == "bias" or name.startswith(("evidence_models.", "cooccurrence.", "presence_scale.")):
            factor = 4 * fast if parameter.numel() == 1 else fast
        groups.setdefault(factor, []).append(parameter)
    settings: list[dict[str, Any]] = [
        {"params": parameters, "rate_factor": factor} for factor, parameters in groups.items()
    ]
    on_gpu = model.device.type == "cuda"
    if on_gpu:  # where a CUDA graph of a step finds the rate
        for group in settings:
            group["lr"] = torch.zeros((), device=model.device)
    return torch.optim.Adam(settings, fused=on_gpu, capturable=on_gpu)


def optimizer_step(
    optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor], loss: Callable[[], Tensor], clip: float
) -> Tensor:
    """Take one step: loss, gradient, clipping, update.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Over the parameters.
    parameters : iterable of Tensor
        Those whose gradient is clipped.
    loss : callable
        Gives the loss, a tensor of shape ().
    clip : float
        Longest gradient.

    Returns
    -------
    Tensor of shape ()
        The loss.
    """
    optimizer.zero_grad(set_to_none=True)
    value = loss()
    value.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()
    return value.detach()


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group the learning rate times its "rate_factor", which is 1 where it has none.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Whose groups are set.
    rate : float
        The learning rate.
    """
    for group in optimizer.param_groups:
        value = rate * group.get("rate_factor", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(value)
        else:
            group["lr"] = value


def learning_rate(step: int, steps: int, *, peak: float, warmup: int) -> float:
    """The learning rate of a step: linear over the warm-up, then half a cosine down to 0.

    Parameters
    ----------
    step : int
        Number of the step, from 0 up.
    steps : int
        Steps of the whole training; a short one has a shorter warm-up.
    peak : float
        The highest learning rate.
    warmup : int
        Steps until it is reached.

    Returns
    -------
    float
        The learning rate.

    >>> [round(learning_rate(step, 6, peak=1.0, warmup=2), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    warmup = min(warmup, steps // 2)
    if step < warmup:
        return peak * ((step + 1) / warmup)
    return peak * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2


def adam_moments(model: nn.Module, optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    """The state of Adam as named tensors.

    Parameters
    ----------
    model : nn.Module
        The model that learns.
    optimizer : torch.optim.Adam
        Over its parameters.

    Returns
    -------
    dict from str to Tensor
        Of every parameter the number of its steps and, where there were any, its two moments.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {"step": torch.zeros(())})
        tensors |= {f"adam.{key}.{name}": value for key, value in state.items()}
    return tensors


def restore_moments(optimizer: torch.optim.Adam, model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put saved moments back into Adam.

    Parameters
    ----------
    optimizer : torch.optim.Adam
        Over the parameters of the model.
    model : nn.Module
        The model that learns.
    tensors : mapping from str to Tensor
        Holds what `adam_moments` returned.
    where : Path
        The file they come from, for the error.

    Raises
    ------
    InputError
        Where moments are missing or have another shape.
    """
    for name, parameter in model.named_parameters():
        state = {key: tensors.get(f"adam.{key}.{name}") for key in ("step", *_MOMENTS)}
        step = state["step"]
        if step is not None and step.shape == () and step == 0:
            continue  # nothing was ever learned there
        shapes = {"step": torch.Size(), **dict.fromkeys(_MOMENTS, parameter.shape)}
        if any(value is None or value.shape != shapes[key] for key, value in state.items()):
            hint = "train it again into another folder"
            raise InputError(f"the moments of {name} are missing or do not fit", where=where, hint=hint)
        optimizer.state[parameter] = {
            key: value.to(parameter.device) for key, value in state.items() if value is not None
        }
