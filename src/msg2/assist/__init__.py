"""A graph at work: what comes next, what went wrong, what was left out. Pure: no files, no printing."""

from collections.abc import Callable, Mapping

from msg2.assist.evaluation import NextStepScore, evaluate, split
from msg2.assist.mistakes import Mistake, Report, Skipped, StepTotal, check
from msg2.assist.next_step import Ranked, Ranker, bigram, next_steps, recency
from msg2.assist.policy import grprop
from msg2.graph import SubtaskGraph

RANKERS: Mapping[str, Callable[[SubtaskGraph], Ranker]] = {"recency": recency, "grprop": grprop}
"""Ways to rank the next steps with a graph, by name."""

__all__ = [
    "RANKERS",
    "Mistake", "NextStepScore", "Ranked", "Ranker", "Report", "Skipped", "StepTotal",
    "bigram", "check", "evaluate", "grprop", "next_steps", "recency", "split",
]  # fmt: skip
