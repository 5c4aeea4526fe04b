"""msg2 learns how a task works from many imperfect demonstrations of it.

>>> import msg2
>>> seen = [["whisk", "dip", "fry"], ["whisk", "heat", "dip", "fry"], ["heat", "whisk", "dip", "fry"]]
>>> videos = [msg2.Video(f"v{number}", map(msg2.Segment, steps)) for number, steps in enumerate(seen)]
>>> graph = msg2.infer(msg2.Task("toast", ["whisk", "heat", "dip", "fry"], videos), method="msg2")
>>> print(graph.precondition("dip"))
whisk
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msg2 import metrics
    from msg2.assist import check, next_steps
    from msg2.errors import InputError
    from msg2.graph import SubtaskGraph
    from msg2.inference import infer
    from msg2.inference.estimator import SubtaskGraphEstimator
    from msg2.readers import read, read_all, read_graph
    from msg2.readers.frames import from_dataframe
    from msg2.task import Segment, Sentence, Task, Video
    from msg2.worlds.export import to_dataframe, write

_HOME = {
    "InputError": "errors",
    "Segment": "task",
    "Sentence": "task",
    "SubtaskGraph": "graph",
    "SubtaskGraphEstimator": "inference.estimator",
    "Task": "task",
    "Video": "task",
    "check": "assist",
    "from_dataframe": "readers.frames",
    "infer": "inference",
    "next_steps": "assist",
    "read": "readers",
    "read_all": "readers",
    "read_graph": "readers",
    "to_dataframe": "worlds.export",
    "write": "worlds.export",
}
"""Where each public name lives; it is imported when it is first used."""

__all__ = [
    "InputError",
    "Segment",
    "Sentence",
    "SubtaskGraph",
    "SubtaskGraphEstimator",
    "Task",
    "Video",
    "check",
    "from_dataframe",
    "infer",
    "metrics",
    "next_steps",
    "read",
    "read_all",
    "read_graph",
    "to_dataframe",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("msg2")
    if name == "metrics":
        return importlib.import_module("msg2.metrics")
    if name in _HOME:
        return getattr(importlib.import_module(f"msg2.{_HOME[name]}"), name)
    raise AttributeError(f"module 'msg2' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
