"""A graph at work: what comes next, what went wrong, what was left out. Pure: no files, no printing."""

from msg2.assist.evaluation import NextStepScore, evaluate, split
from msg2.assist.mistakes import Mistake, Report, Skipped, StepTotal, check
from msg2.assist.next_step import Ranked, Ranker, bigram, next_steps, recency
from msg2.assist.policy import grprop

__all__ = [
    "Mistake", "NextStepScore", "Ranked", "Ranker", "Report", "Skipped", "StepTotal",
    "bigram", "check", "evaluate", "grprop", "next_steps", "recency", "split",
]  # fmt: skip
