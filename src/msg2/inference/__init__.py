"""Task -> SubtaskGraph, by any method of the registry. Pure: no files, no printing."""

from msg2.inference.constraints import Constraints, read_constraints
from msg2.inference.delta import SweepPoint
from msg2.inference.inference import InferenceResult, infer, infer_all, run_inference, run_inference_on_all, sweep
from msg2.inference.merging import MergeResult, merge_graphs
from msg2.inference.registry import DEFAULT_METHOD, METHODS, Method, find_method, make_options, register

__all__ = [
    "DEFAULT_METHOD", "METHODS", "Constraints", "InferenceResult", "MergeResult", "Method", "SweepPoint",
    "find_method", "infer", "infer_all", "make_options", "merge_graphs", "read_constraints", "register",
    "run_inference", "run_inference_on_all", "sweep",
]  # fmt: skip
