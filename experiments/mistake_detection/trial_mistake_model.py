"""How probably an action of a trial is a mistake: logistic regressions over its features, one for each direction.

The first regression knows no estimates of earlier actions; its own, of trials that were held out, are features of the
second, and so on. Weights of evidence and the penalty are those with the least log-loss on held-out participants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from experiments.logistic_regression import (
    BaselineOptions,
    LogisticRegression,
    Numbers,
    RegressionData,
    fit_cross_validated,
)
from experiments.mistake_detection.assembly_experience import EvidenceWeights, Experience
from experiments.mistake_detection.assembly_trials import Trial
from experiments.mistake_detection.trial_features import ATTACHING, DETACHING, ESTIMATED, describe_trial, to_matrix

ROUNDS = 3
"""Regressions one after the other, each with the estimates of the one before."""
EVIDENCE = tuple(
    EvidenceWeights(family, other, smoothing)
    for family, other in ((0.2, 0.05), (0.3, 0.1), (0.5, 0.2))
    for smoothing in (0.5, 1.5)
)
"""Weights of evidence to choose from."""
OPTIONS = BaselineOptions(penalties=(300.0, 100.0, 30.0, 10.0, 3.0), folds=6)


@dataclass(frozen=True, slots=True, eq=False)
class TrialMistakeModel:
    """The regressions of every round, of attaching and of detaching, and what they learnt from."""

    rounds: tuple[tuple[LogisticRegression, ...], ...]
    trials: tuple[Trial, ...]
    weights: EvidenceWeights
    penalties: tuple[float, ...]
    loss: float
    """Mean log-loss on held-out participants, nats."""

    def probabilities(self, trial: Trial) -> Numbers:
        """How probably each action is a mistake, by nothing that comes later."""
        experience = Experience.of(trial, self.trials, self.weights)
        estimates = np.full(len(trial.actions), 0.5)
        for number, regressions in enumerate(self.rounds):
            features = describe_trial(trial, experience, estimates.tolist())
            attaching, detaching = feature_names(number)
            for place, (action, of_action) in enumerate(zip(trial.actions, features, strict=True)):
                columns = to_matrix([of_action], detaching if action.detaches else attaching)
                estimates[place] = expit(regressions[action.detaches].log_odds(columns)[0])
        return estimates


def fit_trial_mistakes(trials: Sequence[Trial], evidence: Sequence[EvidenceWeights] = EVIDENCE) -> TrialMistakeModel:
    """Learn from labelled trials.

    Parameters
    ----------
    trials : sequence of Trial
        With their labels. What the regressions know about one of them comes from other participants.
    evidence : sequence of EvidenceWeights
        To choose from.

    Returns
    -------
    TrialMistakeModel
        The one with the least log-loss on held-out participants.
    """
    experiences = [
        Experience.of(trial, [one for one in trials if one.participant != trial.participant], evidence[0])
        for trial in trials
    ]
    return min((_fit_rounds(trials, experiences, weights) for weights in evidence), key=lambda model: model.loss)


def _fit_rounds(
    trials: Sequence[Trial], experiences: Sequence[Experience], weights: EvidenceWeights
) -> TrialMistakeModel:
    participants = sorted({trial.participant for trial in trials})
    who = np.array([participants.index(trial.participant) for trial in trials for _ in trial.actions])
    truth = np.array([action.mistake for trial in trials for action in trial.actions])
    detaches = np.array([action.detaches for trial in trials for action in trial.actions])
    ends = np.cumsum([len(trial.actions) for trial in trials])[:-1]
    known = [replace(experience, weights=weights) for experience in experiences]
    estimates, fits = np.full(len(truth), 0.5), []
    for number in range(ROUNDS):
        described = [
            action
            for trial, experience, of_trial in zip(trials, known, np.split(estimates, ends), strict=True)
            for action in describe_trial(trial, experience, of_trial.tolist())
        ]
        groups = [
            RegressionData(to_matrix([described[row] for row in np.flatnonzero(rows)], names), truth[rows], who[rows])
            for rows, names in zip((~detaches, detaches), feature_names(number), strict=True)
        ]
        fits.append(fit_cross_validated(groups, OPTIONS))
        estimates[~detaches], estimates[detaches] = map(expit, fits[-1].held_out)
    loss = -float(np.log(np.where(truth, estimates, 1 - estimates)).mean())
    rounds, penalties = tuple(fit.regressions for fit in fits), tuple(fit.penalty for fit in fits)
    return TrialMistakeModel(rounds, tuple(trials), weights, penalties, loss)


def feature_names(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Of attaching and of detaching, in a round (from 0); the first has no estimates, and none for detaching."""
    return (ATTACHING, ()) if number == 0 else ((*ATTACHING, *ESTIMATED), DETACHING)
