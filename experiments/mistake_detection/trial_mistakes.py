"""Mistakes in whole trials of Assembly101: how probably each action is one, when it begins, participants left out.

Every participant is scored with what those of the other folds teach: controls, the judge of `msg2.assist` on graphs
of the toy's other trials, and regressions over the run so far (`trial_mistake_model`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import (
    ConfidenceInterval,
    ScoredItems,
    WeightedMetric,
    bootstrap_interval,
    weighted_auc,
)
from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection.alarm_metrics import average_precision, recall_at_rate
from experiments.mistake_detection.assembly_trials import (
    PREVIOUS_MISTAKE,
    WRONG_ORDER,
    Trial,
    participant_folds,
    read_trials,
)
from experiments.mistake_detection.trial_mistake_model import (
    EVIDENCE,
    ROUNDS,
    TrialMistakeModel,
    feature_names,
    fit_trial_mistakes,
)
from experiments.mistake_detection.trial_scorers import KNOWN_ONLY, MODEL, ONLINE, control_scorers, online_scorer
from experiments.result_tables import Dot, Result, Table, Value
from msg2.metrics.calibration import CalibrationScores, NextStepPrediction, score_calibration
from msg2.progress import Progress

FOLDS, DEVELOPED_ON = 8, 5
"""Folds of participants; the form of the model was chosen on the first five, by cross-validation among them."""
VARIANTS, LOOKS = 10, 2
"""Variants of the model compared there, and how often results on the last three folds were looked at."""
AHEAD = "average precision of the regressions above it"
RATES = {"0.1 false alarms": 0.1, "1 false alarm": 1.0}
"""Of false alarms a minute."""
CAUSES: Mapping[str, str | None] = {
    "all mistakes": None,
    "wrong order alone": WRONG_ORDER,
    "previous one is a mistake, alone": PREVIOUS_MISTAKE,
}

NOTES = (
    "Mistakes are the actions labelled so; correct actions and corrections are not. For one cause alone, the mistakes "
    "of other causes are left out. An action is scored when it begins, by its names, its start and what came before "
    "it; only the offline control knows how long the video is. Where a start goes back in time, another recording of "
    "the same participant and toy begins (26 of the 145 videos have two): it is scored as a trial of its own. "
    "Intervals are over videos, both recordings of one together.",
    "Eight folds of participants. Controls: later, or a higher number, counts as more probably a mistake. The rows of "
    "msg2 judge each action as `check_online` does, by a graph that `msg2.infer` learns from the correct actions of "
    "the toy's other videos; an action that none of these shows scores 1 or 0, and of a toy without any all do 0. "
    "Equal scores are one step of average precision, and share the false alarms that are allowed. In the rows with a "
    "choice of weights or a penalty, it is made by cross-validation over the training participants.",
    "More than half of the mistakes are detachments. To the annotators it is a mistake to take apart what was rightly "
    "attached, and a correction to take apart what was not, with hardly an exception: at a detachment the question is "
    "whether attaching was right. Corrections are negatives with many alarms, which costs precision where a cause of "
    "attaching stands alone.",
)

Scores: TypeAlias = dict[str, dict[str, Sequence[float]]]
"""Row -> trial -> score of every action."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Score every action of every trial, participants left out.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        `quick` takes the trials of two families of toys, two folds and one choice of weights.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    trials = read_trials(data / "assembly101-mistakes" / "mistakes.csv")
    folds, evidence = FOLDS, EVIDENCE
    if options.quick:
        trials, folds, evidence = [one for one in trials if one.family in ("c04", "c12")], 2, EVIDENCE[:1]
    fold = participant_folds(trials, folds)
    scores: Scores = {}
    models = []
    for held_out in range(folds):
        progress(held_out, folds, f"participants of fold {held_out + 1}")
        training = [trial for trial in trials if fold[trial.participant] != held_out]
        models.append(fit_trial_mistakes(training, evidence))
        rows = {
            **control_scorers(training),
            ONLINE: online_scorer(training),
            KNOWN_ONLY: online_scorer(training, unknown=0.0),
            MODEL: models[-1].probabilities,
        }
        for trial in (one for one in trials if fold[one.participant] == held_out):
            for row, score in rows.items():
                scores.setdefault(row, {})[trial.id] = [float(value) for value in score(trial)]
    unseen = {trial.id: fold[trial.participant] >= DEVELOPED_ON * folds // FOLDS for trial in trials}
    return _result(trials, scores, models, unseen)


def pooled_items(trials: Sequence[Trial], scores: Mapping[str, Sequence[float]], cause: str | None) -> ScoredItems:
    """The actions of all trials; where a cause is asked for, without the mistakes of other causes.

    Parameters
    ----------
    trials : sequence of Trial
        The trials.
    scores : mapping
        Trial -> score of every action.
    cause : str or None
        Of the mistakes that count.

    Returns
    -------
    ScoredItems
        Numbered by video, of which some have two trials.
    """
    videos = {video: place for place, video in enumerate(sorted({trial.video for trial in trials}))}
    chosen = [
        (videos[trial.video], action.mistake, score)
        for trial in trials
        for action, score in zip(trial.actions, scores[trial.id], strict=True)
        if cause is None or not action.mistake or action.cause == cause
    ]
    video, truth, score = zip(*chosen, strict=True)
    return ScoredItems(np.array(video, np.intp), np.array(truth, np.bool_), np.array(score, np.float64))


def calibration(items: ScoredItems) -> CalibrationScores:
    """How often what was given a probability is a mistake, by the probability."""
    pairs = zip(items.score.tolist(), items.truth.tolist(), strict=True)
    return score_calibration([NextStepPrediction(p, float(true), p if true else 1 - p) for p, true in pairs])


def _result(
    trials: Sequence[Trial], scores: Scores, models: Sequence[TrialMistakeModel], unseen: Mapping[str, bool]
) -> Result:
    videos = sorted({trial.video for trial in trials})
    minutes = np.array([sum(trial.minutes for trial in trials if trial.video == video) for video in videos])
    metrics: dict[str, WeightedMetric] = {"average precision": average_precision, "AUC": weighted_auc}
    metrics |= {f"recall at {name} a minute": recall_at_rate(minutes, rate) for name, rate in RATES.items()}
    tables: list[Table] = []
    found: dict[str, dict[str, dict[str, ConfidenceInterval]]] = {}
    for title, cause in CAUSES.items():
        items = {row: pooled_items(trials, of_row, cause) for row, of_row in scores.items()}
        found[title] = {
            row: {name: bootstrap_interval(metric, of_row) for name, metric in metrics.items()}
            | {AHEAD: bootstrap_interval(average_precision, items[MODEL], of_row)}
            for row, of_row in items.items()
        }
        rows = [[row, *(_percent(of_row[name]) for name in metrics), None if row == MODEL else _percent(of_row[AHEAD])]
                for row, of_row in found[title].items()]  # fmt: skip
        ahead = {row: of_row[AHEAD] for row, of_row in found[title].items() if row != MODEL}
        notes = [f"{_describe_items(items[MODEL], minutes)} {_describe_lead(ahead)}", *(() if tables else NOTES)]
        tables.append(Table(_sentence(title), ["row", *metrics, AHEAD], rows, notes))
    calibrated = calibration(pooled_items(trials, scores[MODEL], None))
    tables += [_development_table(trials, scores, unseen), _calibration_table(calibrated), _weights_table(models)]
    facts = {
        "folds": FOLDS,
        "looks": LOOKS,
        "variants": VARIANTS,
        "chosen": [asdict(one.weights) | {"penalties": one.penalties, "held-out loss": one.loss} for one in models],
        "calibration error": calibrated.expected_calibration_error,
        "log loss": calibrated.log_loss,
        "intervals": {
            title: {row: {name: asdict(one) for name, one in of_row.items()} for row, of_row in of_title.items()}
            for title, of_title in found.items()
        },
    }
    chart = {
        f"{_sentence(title)}: {name}": {row: _dot(of_row[name]) for row, of_row in of_title.items()}
        for title, of_title in found.items()
        for name in ("average precision", "AUC")
    }
    return Result("trial-mistakes", tables, facts, chart)


def _development_table(trials: Sequence[Trial], scores: Scores, unseen: Mapping[str, bool]) -> Table:
    """Average precision of those participants on whom the form of the model was chosen, and of all others."""
    parts = [[trial for trial in trials if unseen[trial.id] == new] for new in (False, True)]
    rows: list[list[Value]] = []
    for row, of_row in scores.items():
        cells: list[Value] = [row]
        for part in parts:
            items, ours = (pooled_items(part, of_one, None) for of_one in (of_row, scores[MODEL]))
            cells.append(_percent(bootstrap_interval(average_precision, items)))
            cells.append(None if row == MODEL else _percent(bootstrap_interval(average_precision, ours, items)))
        rows.append(cells)
    columns = ["row", "developed on", AHEAD, "others", f"{AHEAD} "]
    people = [len({trial.participant for trial in part}) for part in parts]
    note = (
        f"Average precision, all mistakes. The features were chosen on {people[0]} participants (folds 1 to "
        f"{DEVELOPED_ON}): their videos were read, and {VARIANTS} variants were compared by cross-validation among "
        f"them. Of the other {people[1]} nothing was known but how many actions of the whole set have which label, "
        f"verb and cause. Their results were looked at {LOOKS} times before this was written. After the first, the "
        "model was not changed; the choice of weights for the mistake rate of the verb and parts was added, which did "
        "not help it, and both are shown."
    )
    return Table("Participants that the model was developed on, and others", columns, rows, [note])


def _calibration_table(scores: CalibrationScores) -> Table:
    rows: list[list[Value]] = [[one.count, 100 * one.confidence, 100 * one.accuracy] for one in scores.bins]
    note = (
        f"Expected calibration error {100 * scores.expected_calibration_error:.2f} %, log loss {scores.log_loss:.3f} "
        "nats. These are the regressions' own probabilities; nothing is adjusted afterwards."
    )
    return Table("Calibration of the regressions", ["actions", "predicted, %", "mistakes, %"], rows, [note])


def _weights_table(models: Sequence[TrialMistakeModel]) -> Table:
    """The weights of the last regressions."""
    rows: list[list[Value]] = []
    for group, (title, names) in enumerate(zip(("attach", "detach"), feature_names(ROUNDS - 1), strict=True)):
        weights = np.array([model.rounds[-1][group].weights for model in models])
        means, spreads = weights.mean(axis=0), weights.std(axis=0)
        order = np.argsort(-np.abs(means), kind="stable")
        rows += [[title, names[place], float(means[place]), float(spreads[place])] for place in order]
    note = "Log-odds of a mistake for one standard deviation of the feature; mean and spread over the folds."
    return Table("What the model goes by", ["action", "feature", "weight", "spread"], rows, [note])


def _describe_items(items: ScoredItems, minutes: NDArray[np.float64]) -> str:
    return (
        f"{len(minutes)} videos, {minutes.sum():.0f} minutes, {len(items.truth)} actions, {items.truth.sum()} of them "
        "mistakes. Percent, with 95 % intervals over videos."
    )


def _describe_lead(ahead: Mapping[str, ConfidenceInterval]) -> str:
    """Which rows the model is not above in average precision, and which not for certain."""
    below = [row for row, one in ahead.items() if one.value <= 0]
    unsure = [row for row, one in ahead.items() if one.value > 0 >= one.low]
    said = [f"not above: {', '.join(below)}"] if below else ["above every other row"]
    said += [f"above, but with an interval that includes 0: {', '.join(unsure)}"] if unsure else []
    return f"In average precision the regressions are {'; '.join(said)}."


def _dot(interval: ConfidenceInterval) -> Dot:
    return Dot(100 * interval.value, 100 * interval.low, 100 * interval.high)


def _percent(interval: ConfidenceInterval) -> str:
    return f"{100 * interval.value:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _sentence(title: str) -> str:
    return title[0].upper() + title[1:]
