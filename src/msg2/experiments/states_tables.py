"""The tables of the experiment on state prediction, computed from its cells alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from msg2.experiments import paper
from msg2.experiments.resampling import Numbers
from msg2.experiments.states_cells import LABELS, ORACLE, PROBE, ROWS
from msg2.experiments.states_outcome import Outcome, mean_and_spread, mean_of, number, paired_interval
from msg2.experiments.tables import Cell as Value
from msg2.experiments.tables import Dot, Table
from msg2.options import FeatureOptions, NoiseOptions

METRICS: Mapping[str, str] = {"accuracy": "accuracy", "SPOC": "spoc", "compatibility": "compatibility", "edge F1": "f1"}
"""Of graphs: the name in tables, and in cells."""
AUTO = "auto"
NEEDED: Mapping[str, float] = {"accuracy": 2.0, "SPOC": 2.0, "precision of the added labels": 80.0}
"""What filling in the labels must gain, in points, and how many of the added labels must be right, in percent."""


def ablation(outcome: Outcome) -> Table:
    """The paper's Table A: accuracy of completion per world and on average, the paper's average beside."""
    letters = [f"({chr(ord('a') + place)})" for place in range(len(outcome.worlds))]
    by_labels = 100 * outcome.values("witness", ("completion by labels", "accuracy"))
    rows = [[LABELS, *_per_world(by_labels), None]]
    for row, one in ROWS.items():
        found = 100 * outcome.values(row, ("completion", "accuracy"))
        rows.append([row, *_per_world(found), None if one.printed is None else paper.STATES[one.printed][-1]])
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
            f"of {many} seeds, the others have seed {one_only}. Seed 0 is left out: the threshold of the witnesses "
            "was chosen on it.",
            f"Encoders: {outcome.options.t5}, {outcome.options.visualbert}, {outcome.options.vit}, all without "
            "pretrained weights" + (", small, with early stopping" if small else "") + "; so the rows paper and "
            "from-scratch are one and the same, and the paper's average beside it is that of from-scratch (with "
            f"weights it prints {paper.STATES['Ours'][-1]:.2f}).",
            f'"{LABELS}" calls a step completed after its label has ended: what is to be beaten.',
        ],
    )  # fmt: skip


def _per_world(found: Numbers) -> list[Value]:
    """Of shape (seeds, worlds): the mean over seeds for each world, the mean of all, and the spread of the seeds."""
    means = mean_of(found, 0)
    return [*map(number, means), *((None, None) if np.isnan(means).any() else mean_and_spread(found))]


def printed_ablation() -> Table:
    """The paper's Table A as it stands."""
    return Table(
        "The paper's Table A (ProceL videos, states annotated by hand), percent",
        ["predictor", *(f"({letter})" for letter in "abcdefghijkl"), "average"],
        [[row, *values] for row, values in paper.STATES.items()],
        ["Other videos and features: only the order of the rows can be compared."],
    )


def qualities(outcome: Outcome) -> Table:
    """What accuracy does not tell: ranking, and what is added to the labels."""
    rows: list[list[Value]] = []
    for row in ROWS:
        ranked, present = (100 * outcome.values(row, path) for path in (("completion", "auc"), ("presence",)))
        added = outcome.values(row, ("additions", "added"))
        graphs = [100 * mean_of(outcome.gains(row, AUTO, metric)) for metric in ("accuracy", "spoc")]
        rows.append([
            row, number(mean_of(ranked)), *outcome.shares(row), number(added.mean() / outcome.options.videos),
            number(mean_of(present)), *map(number, graphs),
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


def graphs(outcome: Outcome, unlabelled: float, rows: Sequence[str], seeds: Sequence[int]) -> Table:
    """The paper's Table 1 again: graphs learnt with msg2 from the labels and from filled labels."""
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


def gains(outcome: Outcome, unlabelled: float, rows: Sequence[str], seeds: Sequence[int]) -> Table:
    """What filling in gains, with paired intervals."""
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


def bar(outcome: Outcome, row: str) -> Table:
    """Whether a predictor reaches what was asked of it before it was built."""
    precision, _ = outcome.shares(row)
    lines: list[list[Value]] = []
    for delta in map(str, outcome.options.deltas):
        for name, key in (("accuracy", "accuracy"), ("SPOC", "spoc")):
            gained = number(100 * mean_of(outcome.gains(row, delta, key)))
            lines.append([f"gain of {name}, δ {delta}", NEEDED[name], gained, _met(gained, NEEDED[name])])
    name = "precision of the added labels"
    lines.append([name, NEEDED[name], precision, _met(precision, NEEDED[name])])
    title = f"The bar for {row}, {100 * outcome.options.unlabelled:g} % unlabelled"
    return Table(title, ["of", "needed", "found", "met"], lines)


def _met(found: float | None, needed: float) -> str:
    return "yes" if found is not None and found >= needed else "no"


def curve(outcome: Outcome) -> Table:
    """From easy to difficult features."""
    seeds = outcome.options.seeds[:1]
    lines: list[list[Value]] = []
    for clutter in outcome.options.clutters:
        seen = outcome.values(PROBE, ("accuracy",), clutter=clutter, seeds=seeds)
        line: list[Value] = [clutter, float(100 * seen.mean())]
        present = outcome.values("witness", ("presence",), clutter=clutter, seeds=seeds)
        gained = [outcome.gains("witness", AUTO, key, clutter=clutter, seeds=seeds) for key in ("accuracy", "spoc")]
        shares = outcome.shares("witness", clutter=clutter, seeds=seeds)
        lines.append([*line, *shares, *(number(100 * mean_of(one)) for one in (present, *gained))])
    measures = ("precision", "recall", "AUC of presence", "accuracy gained", "SPOC gained")
    return Table(
        "How it depends on the difficulty of the features, percent",
        ["clutter", "probe", *(f"witness: {measure}" for measure in measures)],
        lines,
        [
            "probe: a linear classifier that names the step of single frames of held-out videos. The default clutter, "
            f"{FeatureOptions().clutter:g}, was fixed by it before any training. δ auto, seed {seeds[0]}. After a "
            "first look at a training, what is shown and said out of place was limited to steps that are performed in "
            "the video, so that a skipped step is never visible; the probe was run again, the clutter stayed.",
        ],
    )


def chart(made: Sequence[Table]) -> dict[str, dict[str, Dot]]:
    """Of all `tables`, the ablation beside the paper's, and what accuracy does not tell."""
    ours, _, others, *_ = made
    average = ours.dots("average", spread=True, printed="paper's average")
    shown = ("AUC of completion", "AUC of presence", "precision of added labels")
    return {"accuracy of completion": average, **{column: others.dots(column) for column in shown}}


def tables(outcome: Outcome) -> list[Table]:
    """All of them."""
    quarter, usual, seeds = outcome.options.unlabelled, NoiseOptions().unlabelled, outcome.options.seeds
    return [
        ablation(outcome),
        printed_ablation(),
        qualities(outcome),
        graphs(outcome, quarter, [LABELS, "paper", "witness", ORACLE], seeds),
        gains(outcome, quarter, ["paper", "witness", ORACLE], seeds),
        bar(outcome, "witness"),
        bar(outcome, "paper"),
        graphs(outcome, usual, [LABELS, "witness", ORACLE], seeds[:1]),
        gains(outcome, usual, ["witness", ORACLE], seeds[:1]),
        curve(outcome),
    ]
