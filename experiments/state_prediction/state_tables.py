"""The tables of the experiment on state prediction, computed from its cells alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments import paper_results
from experiments.bootstrap_intervals import Numbers
from experiments.result_tables import Dot, Table, Value
from experiments.state_prediction.state_cells import LABELS, ORACLE, PROBE, ROWS
from experiments.state_prediction.state_summary import (
    StateSummary,
    finite_or_none,
    mean_and_spread,
    nan_mean,
    paired_interval,
)
from msg2.simulation import NoiseOptions
from msg2.simulation.simulated_features import FeatureOptions

METRICS: Mapping[str, str] = {"accuracy": "accuracy", "SPOC": "spoc", "compatibility": "compatibility", "edge F1": "f1"}
"""Of graphs: the name in tables, and in cells."""
AUTO = "auto"
TARGETS: Mapping[str, float] = {"accuracy": 2.0, "SPOC": 2.0, "precision of the added labels": 80.0}
"""What filling in the labels must gain, in points, and how many of the added labels must be right, in percent."""


def ablation_table(outcome: StateSummary) -> Table:
    """The paper's Table A: accuracy of completion per world and on average, the paper's average beside."""
    letters = [f"({chr(ord('a') + place)})" for place in range(len(outcome.worlds))]
    by_labels = 100 * outcome.values("evidence", ("completion by labels", "accuracy"))
    rows = [[LABELS, *_world_means(by_labels), None]]
    for row, one in ROWS.items():
        found = 100 * outcome.values(row, ("completion", "accuracy"))
        rows.append([row, *_world_means(found), None if one.printed is None else paper_results.STATES[one.printed][-1]])
    many, one_only = len(outcome.options.seeds), outcome.options.seeds[0]
    small = outcome.options.t5.endswith("tiny")
    return Table(
        "Table A: is the step completed? Accuracy against what was really performed, percent",
        ["predictor", *letters, "average", "± seeds", "paper's average"],
        rows,
        [
            ", ".join(f"{letter} {name}" for letter, name in zip(letters, outcome.worlds, strict=True)) + ".",
            "All steps at the borders of the labels of the validation videos (15 %), ŝ ≥ b; "
            f"{100 * outcome.options.unlabelled:g} % of what was performed is unlabelled. Rows with a spread are means "
            f"of {many} seeds, the others have seed {one_only}. Seed 0 is left out: the threshold of the evidence "
            "models was chosen on it.",
            f"Encoders: {outcome.options.t5}, {outcome.options.visualbert}, {outcome.options.vit}, all without "
            "pretrained weights" + (", small, with early stopping" if small else "") + "; so the rows paper and "
            "from-scratch are one and the same, and the paper's average beside it is that of from-scratch (with "
            f"weights it prints {paper_results.STATES['Ours'][-1]:.2f}).",
            f'"{LABELS}" calls a step completed after its label has ended: what is to be beaten.',
        ],
    )  # fmt: skip


def _world_means(found: Numbers) -> list[Value]:
    """Of shape (seeds, worlds): the mean over seeds for each world, the mean of all, and the spread of the seeds."""
    means = nan_mean(found, 0)
    return [*map(finite_or_none, means), *((None, None) if np.isnan(means).any() else mean_and_spread(found))]


def paper_ablation_table() -> Table:
    """The paper's Table A as it stands."""
    return Table(
        "The paper's Table A (ProceL videos, states annotated by hand), percent",
        ["predictor", *(f"({letter})" for letter in "abcdefghijkl"), "average"],
        [[row, *values] for row, values in paper_results.STATES.items()],
        ["Other videos and features: only the order of the rows can be compared."],
    )


def quality_table(outcome: StateSummary) -> Table:
    """What accuracy does not tell: ranking, and what is added to the labels."""
    rows: list[list[Value]] = []
    for row in ROWS:
        ranked, present = (100 * outcome.values(row, path) for path in (("completion", "auc"), ("presence",)))
        added = outcome.values(row, ("additions", "added"))
        graphs = [100 * nan_mean(outcome.gains(row, AUTO, metric)) for metric in ("accuracy", "spoc")]
        rows.append([
            row, finite_or_none(nan_mean(ranked)), *outcome.shares(row),
            finite_or_none(added.mean() / outcome.options.videos),
            finite_or_none(nan_mean(present)), *map(finite_or_none, graphs),
        ])  # fmt: skip
    return Table(
        "What else the predictors say, percent",
        ["predictor", "AUC of completion", "precision of added labels", "recall", "added per video",
         "AUC of presence", "accuracy gained", "SPOC gained"],
        rows,
        [
            "AUC of completion: all steps at the borders in validation videos. Added labels: all videos, a step that "
            "the labels lack is right where it was performed. Presence: the highest score of every absent step, "
            "performed or not. Gained: points of the graph learnt with δ auto, after filling in less before.",
        ],
    )  # fmt: skip


def graph_table(outcome: StateSummary, unlabelled: float, rows: Sequence[str], seeds: Sequence[int]) -> Table:
    """The paper's Table 1 again: graphs learnt with msg2 from the labels and from filled labels.

    Parameters
    ----------
    outcome : StateSummary
        All cells of the experiment.
    unlabelled : float
        Share of what was performed that nobody labels.
    rows : sequence
        Names of the rows.
    seeds : sequence
        The seeds that are pooled.

    Returns
    -------
    Table
        The table.
    """
    lines: list[list[Value]] = []
    for delta in map(str, outcome.options.deltas):
        for row in rows:
            found = [
                100 * outcome.values(row, ("graphs", delta, key), unlabelled=unlabelled, seeds=seeds)
                for key in METRICS.values()
            ]
            lines.append([row, delta, *(value for one in found for value in mean_and_spread(one))])
    return Table(
        f"Table 1 with {100 * unlabelled:g} % of what was performed unlabelled, percent",
        ["labels", "δ", *(name for metric in METRICS for name in (metric, "± seeds"))],
        lines,
        [
            f"{LABELS}: MSG²-noSSP. Others: labels filled in by that predictor; {ORACLE}: by what was really "
            "performed, at its true time. Compatibility is with the annotated labels.",
        ],
    )


def gain_table(outcome: StateSummary, unlabelled: float, rows: Sequence[str], seeds: Sequence[int]) -> Table:
    """What filling in gains, with paired intervals.

    Parameters
    ----------
    outcome : StateSummary
        All cells of the experiment.
    unlabelled : float
        Share of what was performed that nobody labels.
    rows : sequence
        Names of the rows.
    seeds : sequence
        The seeds that are pooled.

    Returns
    -------
    Table
        The table.
    """
    lines: list[list[Value]] = []
    for delta in map(str, outcome.options.deltas):
        for row in rows:
            line: list[Value] = [row, delta]
            for key in ("accuracy", "spoc", "f1"):
                gained = 100 * outcome.gains(row, delta, key, unlabelled=unlabelled, seeds=seeds)
                found = paired_interval(gained, outcome.options)
                line += [found.value, found.low, found.high]
            lines.append(line)
    return Table(
        f"Gained by filling in, {100 * unlabelled:g} % unlabelled, points",
        ["labels filled by", "δ", "accuracy", "from", "to", "SPOC", "from", "to", "edge F1", "from", "to"],
        lines,
        [
            f"After less before, same world and seed; from … to: {100 * outcome.options.confidence:g} % of "
            f"{outcome.options.resamples} bootstrap samples of the {len(outcome.worlds) * len(seeds)} "
            "pairs of world and seed.",
        ],
    )


def target_table(outcome: StateSummary, row: str) -> Table:
    """Whether a predictor reaches what was asked of it before it was built.

    Parameters
    ----------
    outcome : StateSummary
        All cells of the experiment.
    row : str
        Name of the row.

    Returns
    -------
    Table
        The table.
    """
    precision, _ = outcome.shares(row)
    lines: list[list[Value]] = []
    for delta in map(str, outcome.options.deltas):
        for name, key in (("accuracy", "accuracy"), ("SPOC", "spoc")):
            gained = finite_or_none(100 * nan_mean(outcome.gains(row, delta, key)))
            lines.append([f"gain of {name}, δ {delta}", TARGETS[name], gained, _meets_target(gained, TARGETS[name])])
    name = "precision of the added labels"
    lines.append([name, TARGETS[name], precision, _meets_target(precision, TARGETS[name])])
    title = f"The bar for {row}, {100 * outcome.options.unlabelled:g} % unlabelled"
    return Table(title, ["of", "needed", "found", "met"], lines)


def _meets_target(found: float | None, needed: float) -> str:
    return "yes" if found is not None and found >= needed else "no"


def difficulty_curve_table(outcome: StateSummary) -> Table:
    """From easy to difficult features."""
    seeds = outcome.options.seeds[:1]
    lines: list[list[Value]] = []
    for clutter in outcome.options.clutters:
        seen = outcome.values(PROBE, ("accuracy",), clutter=clutter, seeds=seeds)
        line: list[Value] = [clutter, float(100 * seen.mean())]
        present = outcome.values("evidence", ("presence",), clutter=clutter, seeds=seeds)
        gained = [outcome.gains("evidence", AUTO, key, clutter=clutter, seeds=seeds) for key in ("accuracy", "spoc")]
        shares = outcome.shares("evidence", clutter=clutter, seeds=seeds)
        lines.append([*line, *shares, *(finite_or_none(100 * nan_mean(one)) for one in (present, *gained))])
    measures = ("precision", "recall", "AUC of presence", "accuracy gained", "SPOC gained")
    return Table(
        "How it depends on the difficulty of the features, percent",
        ["clutter", "probe", *(f"evidence: {measure}" for measure in measures)],
        lines,
        [
            "probe: a linear classifier that names the step of single frames of held-out videos. The default clutter, "
            f"{FeatureOptions().clutter:g}, was fixed by it before any training. δ auto, seed {seeds[0]}. After a "
            "first look at a training, what is shown and said out of place was limited to steps that are performed in "
            "the video, so that a skipped step is never visible; the probe was run again, the clutter stayed.",
        ],
    )


def ablation_chart(made: Sequence[Table]) -> dict[str, dict[str, Dot]]:
    """Of all `state_tables`, the ablation beside the paper's, and what accuracy does not tell."""
    ours, _, others, *_ = made
    average = ours.dots("average", spread=True, printed="paper's average")
    shown = ("AUC of completion", "AUC of presence", "precision of added labels")
    return {"accuracy of completion": average, **{column: others.dots(column) for column in shown}}


def state_tables(outcome: StateSummary) -> list[Table]:
    """All of them."""
    quarter, usual, seeds = outcome.options.unlabelled, NoiseOptions().unlabelled, outcome.options.seeds
    return [
        ablation_table(outcome),
        paper_ablation_table(),
        quality_table(outcome),
        graph_table(outcome, quarter, [LABELS, "paper", "evidence", ORACLE], seeds),
        gain_table(outcome, quarter, ["paper", "evidence", ORACLE], seeds),
        target_table(outcome, "evidence"),
        target_table(outcome, "paper"),
        graph_table(outcome, usual, [LABELS, "evidence", ORACLE], seeds[:1]),
        gain_table(outcome, usual, ["evidence", ORACLE], seeds[:1]),
        difficulty_curve_table(outcome),
    ]
