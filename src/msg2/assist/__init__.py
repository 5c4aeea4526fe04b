"""A graph at work: what comes next, what went wrong, what was left out. Pure: no files, no printing."""

from collections.abc import Callable, Mapping

from msg2.assist.evaluation import NextStepScore, evaluate, split
from msg2.assist.forecast import learned
from msg2.assist.mistakes import Mistake, Report, Skipped, StepTotal, check
from msg2.assist.next_step import Ranked, Ranker, bigram, next_steps, recency
from msg2.assist.outlook import Outlook, Wait, endings, outlook, waiting
from msg2.assist.policy import grprop
from msg2.graph import SubtaskGraph
from msg2.task import Task

RANKERS: Mapping[str, Callable[[SubtaskGraph], Ranker]] = {"recency": recency, "grprop": grprop}
"""Ways to rank the next steps with a graph, by name."""

LEARNT_RANKERS: Mapping[str, Callable[[SubtaskGraph, Task], Ranker]] = {
    "bigram": lambda graph, task: bigram(task),
    "learned": learned,
}
"""Ways that are learnt from the videos as well, or from them alone."""

__all__ = [
    "LEARNT_RANKERS", "RANKERS",
    "Mistake", "NextStepScore", "Outlook", "Ranked", "Ranker", "Report", "Skipped", "StepTotal", "Wait",
    "bigram", "check", "endings", "evaluate", "grprop", "learned", "next_steps", "outlook", "recency", "split",
    "waiting",
]  # fmt: skip
