"""A graph at work: what comes next, what went wrong, what was left out. Pure: no files, no printing."""

from msg2.assist.assistant import Assistant
from msg2.assist.events import MissingStep, NextStep, RunEnd, StepReport
from msg2.assist.forecasting import NextStepForecast, forecast
from msg2.assist.mistakes import CheckReport, Mistake, OnlineReport, StepAssessment, check, check_online
from msg2.assist.next_step_evaluation import NextStepEvaluation, evaluate_next_step
from msg2.assist.planning import Plan
from msg2.assist.rankers import RANKERS, RankedStep, Ranker, RankerFactory, next_steps
from msg2.assist.run_log import Observation
from msg2.assist.time_left import TimeLeft

__all__ = [
    "RANKERS", "Assistant", "CheckReport", "MissingStep", "Mistake", "NextStep", "NextStepEvaluation",
    "NextStepForecast", "Observation", "OnlineReport", "Plan", "RankedStep", "Ranker", "RankerFactory", "RunEnd",
    "StepAssessment", "StepReport", "TimeLeft", "check", "check_online", "evaluate_next_step", "forecast", "next_steps",
]  # fmt: skip
