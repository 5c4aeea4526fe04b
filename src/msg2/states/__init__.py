"""Labels + features -> completed labels: a model of the state of every step, its training, and what it fills in.

The functions here need PyTorch and are imported when they are first used. The options in
`msg2.states.configuration` need no PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from msg2.errors import optional_dependency

if TYPE_CHECKING:
    from msg2.states.task_training import task_folders, train_task, train_tasks, trainable_tasks
    from msg2.states.trained_model import fill_tasks, load_trained_model, load_trained_models

_HOME = {
    "fill_tasks": "trained_model",
    "load_trained_model": "trained_model",
    "load_trained_models": "trained_model",
    "task_folders": "task_training",
    "train_task": "task_training",
    "train_tasks": "task_training",
    "trainable_tasks": "task_training",
}
"""The module of each name that needs PyTorch."""

__all__ = [
    "fill_tasks",
    "load_trained_model",
    "load_trained_models",
    "require_torch",
    "task_folders",
    "train_task",
    "train_tasks",
    "trainable_tasks",
]


def require_torch() -> None:
    """Import what every state model needs; if that is missing, an error says what to install."""
    with optional_dependency("state prediction", "video"):
        import safetensors  # noqa: F401
        import torch  # noqa: F401


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'msg2.states' has no attribute {name!r}")
    require_torch()
    return getattr(importlib.import_module(f"msg2.states.{_HOME[name]}"), name)
