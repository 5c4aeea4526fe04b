"""Task -> SubtaskGraph, by any method of the registry. Pure: no files, no printing."""

from msg2.inference.constraints import Constraints
from msg2.inference.inference import infer, infer_all, sweep
from msg2.inference.likelihood.statements import OrderStatements
from msg2.inference.merging import merge_graphs
from msg2.inference.registry import METHODS, Method, register

__all__ = [
    "METHODS", "Constraints", "Method", "OrderStatements", "infer", "infer_all", "merge_graphs", "register", "sweep",
]  # fmt: skip
