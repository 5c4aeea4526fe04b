"""What the model of mistakes in trials is measured against: trivial scores, and the judge of `msg2.assist`.

Every scorer takes a trial and gives one number for each of its actions, higher for what is more probably a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from experiments.logistic_regression import Numbers, RegressionData, fit_cross_validated
from experiments.mistake_detection.assembly_experience import EvidenceWeights, Experience
from experiments.mistake_detection.assembly_trials import Trial
from experiments.mistake_detection.trial_mistake_model import EVIDENCE, OPTIONS
from msg2.assist.following import absent_meaning
from msg2.assist.mistakes import ACCUSED, Judge
from msg2.inference import infer
from msg2.task import Step, Task

MODEL = "regressions over the run so far"
ONLINE = "msg2 online, graph of right actions"
KNOWN_ONLY = "the same, actions that the graph does not have score 0"
OFFLINE = "position relative to the length, offline"
TrialScorer: TypeAlias = Callable[[Trial], Sequence[float] | Numbers]


def control_scorers(training: Sequence[Trial]) -> Mapping[str, TrialScorer]:
    """The trivial rows.

    Parameters
    ----------
    training : sequence of Trial
        Of other participants, with their labels.

    Returns
    -------
    mapping
        Name of the row -> scorer.
    """
    return {
        "chance": lambda trial: [0.0] * len(trial.actions),
        **single_scorers(training),
        "regression over the five above": _control_regression(training),
        "mistake rate of the verb and parts": _rate_scorer(training, EVIDENCE),
        "the same, weights of evidence fixed": _rate_scorer(training, EVIDENCE[:1]),
        OFFLINE: lambda trial: [seconds / (60 * trial.minutes) for seconds in _elapsed_seconds(trial)],
    }


def single_scorers(training: Sequence[Trial]) -> Mapping[str, TrialScorer]:
    """What one look at an action gives.

    Parameters
    ----------
    training : sequence of Trial
        Of other participants.

    Returns
    -------
    mapping
        Name of the row -> scorer.
    """
    of_toy: dict[str, set[Step]] = {}
    for trial in training:
        of_toy.setdefault(trial.toy, set()).update(action.step for action in trial.actions)
    seen = {step for steps in of_toy.values() for step in steps}
    return {
        "position in the video, seconds so far": _elapsed_seconds,
        "number of the step": lambda trial: [float(number) for number in range(1, len(trial.actions) + 1)],
        "step never seen in videos of the toy": lambda trial: [
            float(action.step not in of_toy.get(trial.toy, ())) for action in trial.actions
        ],
        "step never seen in any other video": lambda trial: [float(one.step not in seen) for one in trial.actions],
        "verb is detach": lambda trial: [float(action.detaches) for action in trial.actions],
    }


def online_scorer(training: Sequence[Trial], unknown: float = 1.0) -> TrialScorer:
    """The judge of `msg2.assist`, with a graph of the right actions of the toy's other trials.

    Parameters
    ----------
    training : sequence of Trial
        Of other participants. Their mistakes and corrections are left out.
    unknown : float
        Score of an action that the graph does not have.

    Returns
    -------
    TrialScorer
        Of a toy that no other trial shows, every action scores 0.
    """

    @cache
    def judge_of(toy: str) -> Judge | None:
        right = [
            one.to_video(action for action in one.actions if action.label == "correct")
            for one in training
            if one.toy == toy
        ]
        if not right:
            return None
        steps = sorted({segment.step for video in right for segment in video.segments})
        task = Task(toy, steps, right)
        graph = infer(task)
        return Judge(graph, absent_meaning(graph, task))

    def score(trial: Trial) -> list[float]:
        judge = judge_of(trial.toy)
        if judge is None:
            return [0.0] * len(trial.actions)
        known = [action for action in trial.actions if action.step in judge.graph.index]
        judged = iter(judge.follow(trial.to_video(known), ACCUSED))
        return [next(judged).probability if action.step in judge.graph.index else unknown for action in trial.actions]

    return score


def _rate_scorer(training: Sequence[Trial], evidence: Sequence[EvidenceWeights]) -> TrialScorer:
    """How often the same was a mistake; weights with the least log-loss where participants are left out."""
    known = [
        Experience.of(trial, [one for one in training if one.participant != trial.participant], evidence[0])
        for trial in training
    ]
    truth = np.array([action.mistake for trial in training for action in trial.actions])

    def loss(weights: EvidenceWeights) -> float:
        pairs = zip(training, known, strict=True)
        rates = np.concatenate([_rates(trial, replace(experience, weights=weights)) for trial, experience in pairs])
        return -float(np.log(np.where(truth, rates, 1 - rates)).mean())

    chosen = min(evidence, key=loss)
    return lambda trial: _rates(trial, Experience.of(trial, training, chosen))


def _rates(trial: Trial, experience: Experience) -> list[float]:
    verbs = ("detach" if action.detaches else "attach" for action in trial.actions)
    return [experience.rate(verb, action.joint) for verb, action in zip(verbs, trial.actions, strict=True)]


def _control_regression(training: Sequence[Trial]) -> TrialScorer:
    """Logistic regression over the single scores; those of a training trial come from other participants."""
    participants = sorted({trial.participant for trial in training})
    features, truth, who = [], [], []
    for number, participant in enumerate(participants):
        scorers = single_scorers([trial for trial in training if trial.participant != participant])
        for trial in (one for one in training if one.participant == participant):
            features.append(_columns(scorers, trial))
            truth += [action.mistake for action in trial.actions]
            who += [number] * len(trial.actions)
    rows = RegressionData(np.vstack(features), np.array(truth), np.array(who))
    regression = fit_cross_validated([rows], OPTIONS).regressions[0]
    scorers = single_scorers(training)
    return lambda trial: expit(regression.log_odds(_columns(scorers, trial)))


def _columns(scorers: Mapping[str, TrialScorer], trial: Trial) -> Numbers:
    return np.array([score(trial) for score in scorers.values()], np.float64).T


def _elapsed_seconds(trial: Trial) -> list[float]:
    return [action.start - trial.actions[0].start for action in trial.actions]
