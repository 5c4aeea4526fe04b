"""Tables and chart of the simulated annotator: ways to choose the next video, and keys pressed per label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from experiments.bootstrap_intervals import ConfidenceInterval, Numbers, ratio_interval
from experiments.labelling.label_orders import CURVE_VIDEOS
from experiments.result_tables import Dot, Table, Value
from msg2.result_cache import Measurement

MEASURES = ("for good", "first", "mean F1", "labels")
"""What is measured of an order, the main one first."""
BASELINE, NO_DRAFTS = "at random", "no drafts"


def annotator_tables(
    found: Sequence[Measurement], keys: Sequence[Measurement], rates: tuple[float, float]
) -> list[Table]:
    """All tables of the experiment.

    Parameters
    ----------
    found : sequence of Measurement
        Of orders, with `task`, `way` and `seed`.
    keys : sequence of Measurement
        Of drafts, with `task` and `encoder`.
    rates : tuple of float
        Of simulated drafts: of steps that a video shows, and of those that it does not show.

    Returns
    -------
    list of Table
    """
    shown, absent = (f"{100 * rate:.0f} %" for rate in rates)
    note = (
        "Edge F1 of 95 % or more counts as within 5 %; at random: mean of 10 orders. Simulated drafts name "
        f"{shown} of the steps that a video shows and {absent} of the others, as the drafts of the narrated tasks do; "
        "steps known: all and no other, which nobody knows before labelling. N/A: no narration."
    )
    means = task_means(found)
    return [_difference_table(means), _task_table(found, means, [note]), _enough_table(found), _key_table(keys)]


def task_means(found: Sequence[Measurement]) -> dict[str, dict[str, dict[str, float]]]:
    """Measures by way and task, mean over seeds.

    >>> orders = [{"way": "w", "task": "t", "for good": n, "first": 1, "mean F1": 0.5, "labels": 8} for n in (2, 4)]
    >>> task_means(orders)["w"]["t"]["for good"]
    3.0
    """
    ways = dict.fromkeys((one["way"], one["task"]) for one in found)
    means: dict[str, dict[str, dict[str, float]]] = {}
    for way, task in ways:
        each = [one for one in found if (one["way"], one["task"]) == (way, task)]
        means.setdefault(way, {})[task] = {
            "for good": fmean(one["for good"] for one in each),
            "first": fmean(one["first"] for one in each),
            "mean F1": 100 * fmean(one["mean F1"] for one in each),
            "labels": fmean(one["labels"] for one in each),
        }
    return means


def _task_table(
    found: Sequence[Measurement], means: Mapping[str, Mapping[str, Mapping[str, float]]], notes: Sequence[str]
) -> Table:
    """The main measure, task by task."""
    key = MEASURES[0]
    videos = {one["task"]: one["videos"] for one in found}
    rows: list[list[Value]] = [
        [task, count, *(of_task[task][key] if task in of_task else None for of_task in means.values())]
        for task, count in videos.items()
    ]
    complete = [fmean(one[key] for one in of_task.values()) if len(of_task) == len(videos) else None
                for of_task in means.values()]  # fmt: skip
    rows.append(["mean", round(fmean(videos.values())), *complete])
    title = "Videos until the graph is within 5 % of that of all labels, and stays so"
    return Table(title, ["task", "videos", *means], rows, notes)


def _difference_table(means: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    rows: list[list[Value]] = []
    for way, of_task in means.items():
        if way == BASELINE:
            whole = {key: fmean(one[key] for one in of_task.values()) for key in MEASURES}
            rows.append([f"{way} (the values themselves)", len(of_task), *(f"{value:.1f}" for value in whole.values())])
        else:
            against = {key: _difference(of_task, means[BASELINE], key) for key in MEASURES}
            rows.append([way, len(of_task), *map(_interval, against.values())])
    columns = ["way", "tasks", "videos, for good", "videos, first time", f"mean F1 of {CURVE_VIDEOS} videos", "labels"]
    notes = [
        "Differences to random orders, mean over tasks; 95 % bootstrap intervals over tasks, paired. Less is better "
        "but for F1. Labels: of the videos that were labelled until the graph was close for good."
    ]
    return Table("Which video next: what a choice is worth beside a random one", columns, rows, notes)


def _difference(
    of_task: Mapping[str, Mapping[str, float]], baseline: Mapping[str, Mapping[str, float]], key: str
) -> ConfidenceInterval:
    apart: Numbers = np.array([of_task[task][key] - baseline[task][key] for task in of_task])
    return ratio_interval(apart, np.ones(len(apart)))


def _enough_table(found: Sequence[Measurement]) -> Table:
    """When the workbench says that the labels are enough, in the order that it chooses by simulated drafts."""
    orders = [one for one in found if one["way"] == "workbench: simulated drafts"]
    rows: list[list[Value]] = []
    for one in orders:
        said, agreed = one["enough"] or (None, None)
        rows.append([one["task"], one["videos"], said, None if agreed is None else 100 * agreed, one["for good"]])
    notes = [f"In the order that the workbench chooses by simulated drafts. N/A: not within {CURVE_VIDEOS} videos."]
    columns = ["task", "videos", "enough said after", "edge F1 then, percent", "close for good after"]
    return Table("“Enough?”: when the workbench says so, and how close the graph is then", columns, rows, notes)


# -- keys -------------------------------------------------------------------------------------------------------------


def _per_label(
    one: Measurement, way: str, precision: str, *, seeking: bool, against: str | None = None
) -> ConfidenceInterval:
    """Keys per label over the videos that have drafts in this way, or how many more than in another."""

    def total(of_way: str, name: str) -> float:
        deciding, moves = one["keys"][of_way][precision][name]
        return float(deciding + moves * seeking)

    names = sorted(one["keys"][way][precision])
    pressed = np.array([total(way, name) - (total(against, name) if against else 0.0) for name in names])
    return ratio_interval(pressed, np.array([one["labels"][name] for name in names], float))


def _key_table(keys: Sequence[Measurement]) -> Table:
    """Keys without drafts, and how many more or fewer there are with each kind of draft."""
    rows: list[list[Value]] = [
        [
            f"{one['task']}, {one['encoder']}",
            f"{precision}, {'seeking by arrow keys' if seeking else 'while the video plays'}",
            *(
                _interval(
                    _per_label(one, way, precision, seeking=seeking, against=None if way == NO_DRAFTS else NO_DRAFTS)
                )
                for way in one["keys"]
            ),
        ]
        for one in keys
        for precision in one["keys"][NO_DRAFTS]
        for seeking in (False, True)
    ]
    videos = ", ".join(f"{one['task']}: {len(one['labels'])} videos, {sum(one['labels'].values())} labels"
                       for one in keys if one["encoder"] == keys[0]["encoder"])  # fmt: skip
    notes = [
        f"{NO_DRAFTS}: keys per label; the other columns: how many more (less than 0: drafts save keys). "
        "exact: both ends of every label within a second; rough: its middle in the true segment. With 10 labelled "
        f"videos the others are drafted, mean of two draws. Intervals: 95 %, over videos, paired. {videos}."
    ]
    return Table("Keys pressed per label", ["task, encoder", "annotator", *keys[0]["keys"]], rows, notes)


def annotator_chart(found: Sequence[Measurement], keys: Sequence[Measurement]) -> dict[str, dict[str, Dot]]:
    """What is best looked at: differences to random orders, and keys per label.

    Parameters
    ----------
    found : sequence of Measurement
        Of orders.
    keys : sequence of Measurement
        Of drafts.

    Returns
    -------
    dict
        Panel -> row -> value.
    """
    means = task_means(found)
    panels = {
        "videos until close for good, less than at random": "for good",
        f"mean F1 of {CURVE_VIDEOS} videos, more than at random": "mean F1",
    }
    chart = {
        title: {way: _dot(_difference(one, means[BASELINE], key)) for way, one in means.items() if way != BASELINE}
        for title, key in panels.items()
    }
    for seeking in (False, True):
        title = f"keys per label, exact, {'seeking by arrow keys' if seeking else 'while the video plays'}"
        chart[title] = {
            f"{one['task']}, {one['encoder']}: {way}": _dot(_per_label(one, way, "exact", seeking=seeking))
            for one in keys
            for way in one["keys"]
        }
    return chart


def _dot(one: ConfidenceInterval) -> Dot:
    return Dot(one.value, one.low, one.high)


def _interval(one: ConfidenceInterval) -> str:
    return f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"
