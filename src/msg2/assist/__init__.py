"""A graph at work: what comes next, what went wrong, what was left out. Pure: no files, no printing."""

from msg2.assist.assistant import Assistant, Observation
from msg2.assist.events import MissingStep, NextStep, RunEnd, StepReport
from msg2.assist.forecasting import (
    EndForecaster,
    Lookahead,
    NextStepForecast,
    fit_end_probability,
    forecast,
    look_ahead,
)
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.mistakes import ACCUSED, CheckReport, Mistake, StepTotal, check
from msg2.assist.monitoring import OnlineMonitor, OnlineReport, StepAssessment, check_online, fit_monitor
from msg2.assist.next_step_evaluation import (
    NextStepEvaluation,
    NextStepScore,
    evaluate_next_step,
    evaluate_ranker,
    next_step_predictions,
    train_test_split,
)
from msg2.assist.planning import Plan, plan_steps
from msg2.assist.rankers import (
    GRAPH_RANKERS,
    RANKERS,
    RankedStep,
    Ranker,
    RankerFactory,
    bigram,
    grprop,
    make_ranker,
    next_steps,
    recency,
)
from msg2.assist.time_left import TimeLeft, WaitingTime, fit_time_left, fit_waiting_times

__all__ = [
    "ACCUSED", "GRAPH_RANKERS", "RANKERS", "Assistant", "CheckReport", "EndForecaster", "Lookahead", "MissingStep",
    "Mistake", "NextStep", "NextStepEvaluation", "NextStepForecast", "NextStepScore", "Observation",
    "OnlineMonitor", "OnlineReport", "Plan", "RankedStep", "Ranker", "RankerFactory", "RunEnd", "StepAssessment",
    "StepReport", "StepTotal", "TimeLeft", "WaitingTime", "bigram", "check", "check_online", "evaluate_next_step",
    "evaluate_ranker", "fit_end_probability", "fit_forecaster", "fit_monitor", "fit_time_left", "fit_waiting_times",
    "forecast", "grprop", "look_ahead", "make_ranker", "next_step_predictions", "next_steps",
    "plan_steps", "recency", "train_test_split",
]  # fmt: skip
