"""msg2 learns how a task works from many imperfect demonstrations of it.

>>> import msg2
>>> graph = msg2.infer([["whisk", "dip", "fry"], ["whisk", "heat", "dip", "fry"], ["heat", "whisk", "dip", "fry"]])
>>> print(graph.precondition("dip"))
heat & whisk
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msg2 import metrics
    from msg2.assist import Assistant, check, check_online, evaluate_next_step, forecast, next_steps
    from msg2.benchmarking import benchmark
    from msg2.errors import InputError
    from msg2.estimator import SubtaskGraphEstimator
    from msg2.formats import read, read_all, summarize, write
    from msg2.formats import read_graph as load
    from msg2.formats.conversion import from_dataframe, to_dataframe
    from msg2.graph import SubtaskGraph
    from msg2.inference import Constraints, infer, infer_all, merge_graphs, sweep
    from msg2.labelling import label
    from msg2.pipeline import run
    from msg2.task import Segment, Sentence, Task, Video

_NAMES = {
    "assist": ("Assistant", "check", "check_online", "evaluate_next_step", "forecast", "next_steps"),
    "benchmarking": ("benchmark",),
    "errors": ("InputError",),
    "estimator": ("SubtaskGraphEstimator",),
    "formats": ("load", "read", "read_all", "summarize", "write"),
    "formats.conversion": ("from_dataframe", "to_dataframe"),
    "graph": ("SubtaskGraph",),
    "inference": ("Constraints", "infer", "infer_all", "merge_graphs", "sweep"),
    "labelling": ("label",),
    "pipeline": ("run",),
    "task": ("Segment", "Sentence", "Task", "Video"),
}
"""The public names of each module, which is imported when one of them is first used."""

__all__ = [
    "Assistant", "Constraints", "InputError", "Segment", "Sentence", "SubtaskGraph", "SubtaskGraphEstimator",
    "Task", "Video", "benchmark", "check", "check_online", "evaluate_next_step", "forecast", "from_dataframe",
    "infer", "infer_all", "label", "load", "merge_graphs", "metrics", "next_steps", "read", "read_all", "run",
    "summarize", "sweep", "to_dataframe", "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("msg2")
    if name == "metrics":
        return importlib.import_module("msg2.metrics")
    for module, names in _NAMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"msg2.{module}"), "read_graph" if name == "load" else name)
            return globals().setdefault(name, value)
    raise AttributeError(f"module 'msg2' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
