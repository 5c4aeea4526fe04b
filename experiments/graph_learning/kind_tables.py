"""Tables and curves of what was found of kinds of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TypeAlias

from experiments.graph_learning.kind_scores import FOUND
from experiments.result_tables import Table, Value
from msg2.graph import PAIR_KINDS
from msg2.result_cache import Measurement

FAMILIES = {
    "trees": "process trees",
    "optional": "random worlds with optional steps",
    "one branch": "household worlds, one branch of each OR",
    "household": "household worlds, sometimes several branches",
}
ESTIMATES = ("likelihood, unknown", "likelihood, skipped")
"""The rows of worlds that estimate how many labels are missing."""

Curves: TypeAlias = dict[tuple[str, str], dict[str, list[tuple[float, float]]]]
"""By row and column of a grid of plots, then by name: (x, y)."""


@dataclass(frozen=True, slots=True)
class KindCell:
    """A tree or world: the family, its place in the list of seeds (or of the household worlds), and which list."""

    family: str
    place: int
    held_out: bool


@dataclass(frozen=True, slots=True)
class _MeasuredSetting:
    """What was measured in one family, with logs of one size, at one rate of noise or of missing labels."""

    size: int
    rate: float
    rows: Sequence[Mapping[str, Measurement]]
    """One per tree or world: by method, what it found."""

    def shares(self, row: str) -> list[float]:
        """Of each tree or world the percentage of the pairs that is right."""
        return [100 * one[row]["right"] / one[row]["pairs"] for one in self.rows]

    def recall(self, row: str, kind: str) -> Value:
        """Of all pairs of a kind, the percentage that is found."""
        counts = self.confusion(row, kind)
        whole = sum(counts.values())
        return 100 * counts[kind] / whole if whole else None

    def confusion(self, row: str, kind: str) -> dict[str, int]:
        """What the pairs of a kind were taken for."""
        found = [one[row]["confusion"].get(kind, {}) for one in self.rows]
        return {taken_for: sum(one.get(taken_for, 0) for one in found) for taken_for in FOUND}

    def estimates(self, row: str) -> list[float]:
        """Of each world the percentage of the labels that is estimated to be missing, where it is."""
        return [100 * one[row]["absent rate"] for one in self.rows if one[row]["absent rate"] is not None]


def _settings(found: Mapping[KindCell, Measurement], family: str) -> list[_MeasuredSetting]:
    every = [one["settings"] for cell, one in found.items() if cell.family == family]
    return [
        _MeasuredSetting(together[0]["size"], together[0]["rate"], [one["rows"] for one in together])
        for together in zip(*every, strict=True)
    ]


def _values(settings: Sequence[_MeasuredSetting], name: str) -> list[float]:
    return list(dict.fromkeys(getattr(setting, name) for setting in settings))


# -- process trees ----------------------------------------------------------------------------------------------


def tree_tables(found: Mapping[KindCell, Measurement], rows: Sequence[str], version: str | None) -> list[Table]:
    """Tables of process trees: kinds that are right, by kind, what was taken for what, and seconds.

    Parameters
    ----------
    found : mapping
        What was measured.
    rows : sequence of str
        The methods, in the order of the tables; the first is looked at more closely.
    version : str or None
        Of pm4py; None: it is not installed.

    Returns
    -------
    list of Table
    """
    settings = _settings(found, "trees")
    sizes = _values(settings, "size")
    peer = f"inductive miner: of pm4py {version}." if version else "The inductive miner of pm4py is not installed here."
    tables = []
    for noise in _values(settings, "rate"):
        here = [setting for setting in settings if setting.rate == noise]
        notes = [f"{len(here[0].rows)} trees; mean and standard deviation over them. {peer}"]
        columns = [name for size in sizes for name in (f"{size} cases", f"± ({size})")]
        body = [[row, *_means(here, row)] for row in rows]
        tables.append(Table(f"Kinds right, {_noise(noise)}, percent", ["method", *columns], body, notes))
    most = [setting for setting in settings if setting.size == max(sizes)]
    tables += [
        Table(
            f"Of each kind the share that is found, {_noise(setting.rate)}, {setting.size} cases, percent",
            ["method", *PAIR_KINDS],
            [[row, *(setting.recall(row, kind) for kind in PAIR_KINDS)] for row in rows],
        )
        for setting in most
    ]
    tables += [_confusion_table(setting, rows[0], _noise(setting.rate), f"{setting.size} cases") for setting in most]
    seconds: list[list[Value]] = [
        [
            row,
            *(
                fmean(one[row]["seconds"] for each in settings if each.size == size for one in each.rows)
                for size in sizes
            ),
        ]
        for row in rows
    ]
    note = "Mean over trees and rates of noise; pm4py's without its start and without reading the log."
    tables.append(Table("Seconds per log", ["method", *(f"{size} cases" for size in sizes)], seconds, [note]))
    return tables


def _means(settings: Sequence[_MeasuredSetting], row: str) -> list[Value]:
    shares = [setting.shares(row) for setting in settings]
    return [value for some in shares for value in (fmean(some), pstdev(some))]


def _noise(rate: float) -> str:
    return f"{100 * rate:g} % of the cases disturbed" if rate else "no noise"


def _confusion_table(setting: _MeasuredSetting, row: str, *where: str) -> Table:
    counts = [[kind, *setting.confusion(row, kind).values()] for kind in PAIR_KINDS]
    notes = ["Pairs; rows are the truth. reversed: needs or after, in the wrong direction."]
    return Table(f"What {row} takes each kind for, {', '.join(where)}", ["truth", *FOUND], counts, notes)


def tree_curves(found: Mapping[KindCell, Measurement], rows: Sequence[str]) -> Curves:
    """The share of the kinds that is right against the number of cases, one plot per rate of noise.

    Parameters
    ----------
    found : mapping
        What was measured.
    rows : sequence of str
        The methods.

    Returns
    -------
    Curves
    """
    settings = _settings(found, "trees")
    return {
        ("kinds right", _noise(noise)): {
            row: [(each.size, fmean(each.shares(row))) for each in settings if each.rate == noise] for row in rows
        }
        for noise in _values(settings, "rate")
    }


# -- worlds -----------------------------------------------------------------------------------------------------


def world_tables(found: Mapping[KindCell, Measurement], methods: Sequence[str]) -> list[Table]:
    """Tables of worlds, by the share of the labels that is missing: kinds that are right, and the share estimated.

    Parameters
    ----------
    found : mapping
        What was measured.
    methods : sequence of str
        In the order of the tables.

    Returns
    -------
    list of Table
    """
    tables = []
    for family, words in list(FAMILIES.items())[1:]:
        settings = _settings(found, family)
        rates = _values(settings, "rate")
        missing = [f"{100 * rate:g} % missing" for rate in rates]
        rows: list[list[Value]] = [
            [row, size, *(fmean(each.shares(row)) for each in settings if each.size == size)]
            for size in map(int, _values(settings, "size"))
            for row in methods
        ]
        notes = [
            f"{len(settings[0].rows)} worlds. Labels are missing at random; steps that were left out look the same."
        ]
        tables.append(Table(f"Kinds right, {words}, percent", ["method", "videos", *missing], rows, notes))
        most = [setting for setting in settings if setting.size == max(_values(settings, "size"))]
        recalls = [[kind, *(each.recall(ESTIMATES[0], kind) for each in most)] for kind in PAIR_KINDS]
        title = f"Of each kind the share that is found, {words}, {ESTIMATES[0]}, {most[0].size} videos, percent"
        tables.append(Table(title, ["kind", *missing], recalls))
    return [*tables, _estimate_table(found)]


def _estimate_table(found: Mapping[KindCell, Measurement]) -> Table:
    rows: list[list[Value]] = []
    for family, words in list(FAMILIES.items())[1:]:
        for setting in _settings(found, family):
            for row in ESTIMATES:
                values = setting.estimates(row)
                apart = [abs(value - 100 * setting.rate) for value in values]
                summary = [fmean(values), pstdev(values), fmean(apart)] if values else [None] * 3
                rows.append([words, setting.size, row, 100 * setting.rate, *summary])
    columns = ["worlds", "videos", "method", "true, percent", "found, percent", "±", "mean error"]
    return Table("Labels that are missing: the true share, and what is found", columns, rows)


def world_curves(found: Mapping[KindCell, Measurement], methods: Sequence[str]) -> Curves:
    """Kinds that are right, and the share of missing labels that is found, against the true share; most videos.

    Parameters
    ----------
    found : mapping
        What was measured.
    methods : sequence of str
        In the order of the legend.

    Returns
    -------
    Curves
    """
    curves: Curves = {}
    for family in list(FAMILIES)[1:]:
        settings = _settings(found, family)
        most = [setting for setting in settings if setting.size == max(_values(settings, "size"))]
        curves["kinds right", family] = {
            row: [(100 * each.rate, fmean(each.shares(row))) for each in most] for row in methods
        }
        estimates = {row: [(100 * each.rate, each.estimates(row)) for each in most] for row in ESTIMATES}
        curves["missing labels found", family] = {
            **{
                row: [(rate, fmean(some)) for rate, some in each if some]
                for row, each in estimates.items()
                if each[0][1]
            },
            "truth": [(100 * each.rate, 100 * each.rate) for each in most],
        }
    return curves
