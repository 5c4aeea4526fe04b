"""Adam for the state predictor: its learning rates, and its moments as they are saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from msg2.errors import InputError
from msg2.options import TrainingOptions
from msg2.states.model import StateModel

_MOMENTS = ("exp_avg", "exp_avg_sq")


def adam(model: StateModel, options: TrainingOptions) -> torch.optim.Adam:
    """Adam over the parameters in groups, each with a "pace": its multiple of the learning rate.

    Witnesses and habits have few weights and start at none; the single numbers that weigh them go faster still.
    """
    witness = options.witness_rate / options.learning_rate
    groups: dict[float, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        quick = name == "bias" or name.startswith(("witnesses.", "habits.", "trust."))
        groups.setdefault((4 * witness if parameter.numel() == 1 else witness) if quick else 1.0, []).append(parameter)
    paces: list[dict[str, Any]] = [{"params": parameters, "pace": pace} for pace, parameters in groups.items()]
    on_gpu = model.device.type == "cuda"
    if on_gpu:  # where a CUDA graph of a step finds the rate
        for group in paces:
            group["lr"] = torch.zeros((), device=model.device)
    return torch.optim.Adam(paces, fused=on_gpu, capturable=on_gpu)


def set_rate(optimizer: torch.optim.Adam, rate: float) -> None:
    """Every group goes on at its pace times this learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * group["pace"])
        else:
            group["lr"] = rate * group["pace"]


def learning_rate(step: int, steps: int, options: TrainingOptions) -> float:
    """Linear over the warm-up, then half a cosine down to 0.

    >>> options = TrainingOptions(learning_rate=1.0, warmup=2)
    >>> [round(learning_rate(step, 6, options), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    warmup = min(options.warmup, steps // 2)  # a short training has a shorter warm-up
    if step < warmup:
        return options.learning_rate * ((step + 1) / warmup)
    return options.learning_rate * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2


def moments(model: StateModel, optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    """Of every parameter the steps that Adam has made with it and, where there are any, its two moments."""
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {"step": torch.zeros(())})
        found |= {f"adam.{key}.{name}": value for key, value in state.items()}
    return found


def restore(optimizer: torch.optim.Adam, model: StateModel, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Take up the `moments` among the tensors; they must be there, and fit."""
    for name, parameter in model.named_parameters():
        state = {key: tensors.get(f"adam.{key}.{name}") for key in ("step", *_MOMENTS)}
        step = state["step"]
        if step is not None and step.shape == () and step == 0:
            continue  # nothing was ever learnt there
        shapes = {"step": torch.Size(), **dict.fromkeys(_MOMENTS, parameter.shape)}
        if any(value is None or value.shape != shapes[key] for key, value in state.items()):
            hint = "train it again into another folder"
            raise InputError(f"the moments of {name} are missing or do not fit", where=where, hint=hint)
        optimizer.state[parameter] = {
            key: value.to(parameter.device) for key, value in state.items() if value is not None
        }
