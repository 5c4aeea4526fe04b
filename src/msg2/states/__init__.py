"""Labels + features -> completed labels: a model of the state of every step, its training, and what it fills in.

The functions here need PyTorch and are imported when they are first used. The options in
`msg2.states.configuration` need no PyTorch.
"""

import importlib
from typing import TYPE_CHECKING

from msg2.errors import optional_dependency

if TYPE_CHECKING:
    from msg2.states.task_models import fill_tasks, load_trained_model, load_trained_models, train_task, train_tasks

__all__ = ["fill_tasks", "load_trained_model", "load_trained_models", "require_torch", "train_task", "train_tasks"]


def require_torch() -> None:
    """Import what every state model needs; if that is missing, an error says what to install."""
    with optional_dependency("state prediction", "video"):
        import safetensors  # noqa: F401
        import torch  # noqa: F401


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'msg2.states' has no attribute {name!r}")
    require_torch()
    return getattr(importlib.import_module("msg2.states.task_models"), name)
