"""Runs that a condition selects (`--where "step=pay"`, `--by channel`), and variants: which runs go alike.

A condition is a name, an operator (= != < <= > >=) and a value. `step` is whether a run has a step, `variant` the place
of its variant by how often that occurs, `start` and `end` its dates. Any other name is a column of a table, or an
attribute of XES: that of the run is its first value there.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at, require
from msg2.formats.reading import ReadNotes, ReadOptions, apply_options, choose_task
from msg2.formats.registry import find_reader, read_source
from msg2.formats.source import Source
from msg2.formats.times import TimestampParser
from msg2.metrics.group_differences import GroupDifference, compare_groups
from msg2.sequences import Sequences
from msg2.task import LabelColumns, Step, Task
from msg2.text import join_counts, short_repr

_CONDITION = re.compile(r"\s*(?P<name>[^<>=!]+?)\s*(?P<operator><=|>=|!=|<|>|=)\s*(?P<value>.+?)\s*")
_Compare: TypeAlias = Callable[[Any, Any], Any]  # of numbers, dates and texts, and of arrays of them
_OPERATORS: Mapping[str, _Compare] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OF_RUNS = ("step", "variant", "start", "end")  # names that mean something in any data
_MOST_GROUPS = 12
Selection: TypeAlias = NDArray[np.bool_]  # of runs, in their order


@dataclass(frozen=True, slots=True)
class RunVariant:
    """What some runs have in common: the same steps in the same order, repetitions included."""

    steps: tuple[tuple[Step, ...], ...]
    """In the order of their starts; those that start together are in no order."""
    runs: int
    share: float

    def to_english(self) -> str:
        """`a → b + c → d`, where b and c start together."""
        return " → ".join(" + ".join(together) for together in self.steps) or "nothing"


def find_variants(task: Task) -> tuple[list[RunVariant], NDArray[np.int64]]:
    """The variants of the runs of a task, the most frequent first, and the place of each run's variant, from 0."""
    sequences = Sequences.from_task(task)
    first = np.searchsorted(sequences.run, np.arange(len(sequences.weight) + 1)).tolist()
    steps, starts = [sequences.steps[step] for step in sequences.step.tolist()], sequences.start.tolist()
    known: dict[tuple[tuple[Step, ...], ...], int] = {}
    of_run = []
    for low, high in pairwise(first):
        by_start: dict[int, list[Step]] = {}
        for step, start in zip(steps[low:high], starts[low:high], strict=True):
            by_start.setdefault(start, []).append(step)
        of_run.append(known.setdefault(tuple(tuple(sorted(group)) for group in by_start.values()), len(known)))
    which = np.array(of_run, np.int64)[sequences.run_of_video]
    counts, names = np.bincount(which, minlength=len(known)).tolist(), [*known]
    ranked = sorted(range(len(names)), key=lambda number: (-counts[number], names[number]))
    place = np.empty(len(names), np.int64)
    place[ranked] = np.arange(len(names))
    return [RunVariant(names[n], counts[n], counts[n] / len(task)) for n in ranked], place[which]


def column_of(condition: str) -> tuple[str, ...]:
    """The column that has to be read for a condition, or for groups; none where any data will do."""
    parsed = _CONDITION.fullmatch(condition)
    name = parsed["name"] if parsed else condition.strip()
    return () if parsed and name in _OF_RUNS else (name,)


def select_runs(task: Task, conditions: Sequence[str], notes: ReadNotes) -> Selection:
    """Which runs meet all conditions."""
    chosen = np.ones(len(task), np.bool_)
    for text in conditions:
        if (parsed := _CONDITION.fullmatch(text)) is None:
            hint = "write step=pay, variant<=5, start>=2012-01-01, or the name of a column and a value"
            raise InputError(f"the condition {short_repr(text)} is not understood", hint=hint)
        chosen &= _meets(task, parsed["name"], parsed["operator"], parsed["value"], notes)
    return chosen


def group_runs(task: Task, by: str, notes: ReadNotes) -> dict[str, tuple[Selection, Selection]]:
    """Groups of runs, and the runs that each is compared with: by a condition, or by the values of a column."""
    if _CONDITION.fullmatch(by):
        chosen = select_runs(task, [by], notes)
        groups = {by.strip(): (chosen, ~chosen)}
    else:
        values = _values(task, by.strip(), notes)
        counts = Counter(sorted(value for value in values if value is not None))
        if len(counts) > _MOST_GROUPS:
            hint = f"give a condition, such as --by {by}=VALUE; there are {join_counts(dict(counts.most_common(3)))}, …"
            raise InputError(f"{short_repr(by)} has {len(counts)} values", hint=hint)
        known = np.array([value is not None for value in values], np.bool_)
        own = {value: np.array([each == value for each in values], np.bool_) for value in counts}
        groups = {f"{by.strip()}={value}": (chosen, known & ~chosen) for value, chosen in own.items()}
        groups = dict([*groups.items()][:1]) if len(groups) == 2 else groups
    for name, (chosen, others) in groups.items():
        require(chosen.any() and others.any(), f"{short_repr(name)} holds for {'no' if others.any() else 'every'} run")
    return groups


def compare_runs(path: str | Path, by: str, task: str | None = None, **options: Any) -> tuple[GroupDifference, ...]:
    """In what groups of runs differ: before and after a date, or with one value of a column and with others.

    Parameters
    ----------
    path : str or Path
        A file or folder in any format that msg2 reads.
    by : str
        A column, or a condition such as ``"start<2012-06-01"``.
    task : str, optional
        Which task, where there are several.
    **options
        Those of `ReadOptions`.

    Returns
    -------
    tuple of GroupDifference
        See `msg2.metrics.compare_groups`.

    Raises
    ------
    InputError
        Where the data cannot be read, or has no such groups.
    """
    source, chosen = Source.of_data(path), ReadOptions(**(options | {"repeats": "keep", "keep": column_of(by)}))
    result = read_source(source, find_reader(source, chosen.columns), chosen)
    runs = apply_options(choose_task(result.tasks, task, path), chosen)
    with errors_at(source.path):
        return compare_groups(Sequences.from_task(runs), group_runs(runs, by, result.notes))


def run_dates(columns: LabelColumns) -> tuple[NDArray[np.datetime64], NDArray[np.datetime64]] | None:
    """When each run starts and ends; None where the data has no dates."""
    if columns.began is None:
        return None
    last = np.zeros(len(columns))
    np.maximum.at(last, columns.video, columns.end)
    start = columns.began.astype("datetime64[us]")
    return start, start + (last * 1e6).round().astype("timedelta64[us]")


def _meets(task: Task, name: str, sign: str, value: str, notes: ReadNotes) -> Selection:
    compare, columns = _OPERATORS[sign], task.columns
    if name == "step":
        require(sign in ("=", "!="), f"a step is there or not: write step={value} or step!={value}")
        require(value in task.steps, f"there is no step {short_repr(value)}")
        has = np.zeros(len(task), np.bool_)
        has[columns.video[columns.step == task.steps.index(value)]] = True
        return has if sign == "=" else ~has
    if name == "variant":
        require(value.isdecimal(), f"variant is {short_repr(value)}, it must be a whole number")
        return np.asarray(compare(find_variants(task)[1] + 1, int(value)))
    if name in ("start", "end"):
        dates = run_dates(columns)
        if dates is None:
            raise InputError(f"the data has no dates, so that {name} means nothing")
        moment = np.datetime64(TimestampParser().parse(value), "us")
        return np.asarray(compare(dates[name == "end"], moment))
    own = _values(task, name, notes)
    return np.array([_compare_texts(compare, each, value) for each in own], np.bool_)


def _values(task: Task, name: str, notes: ReadNotes) -> list[str | None]:
    """The value of each run in a column."""
    hint = f"there are {', '.join(_OF_RUNS)}, columns of tables and attributes of XES"
    require(name in notes.attributes, f"no run has a {short_repr(name)}", hint=hint)
    return [notes.attributes[name].get((task.name, video)) for video in task.columns.videos]


def _compare_texts(compare: _Compare, own: str | None, value: str) -> bool:
    """Compare as numbers, where both are; what is missing is only unequal."""
    if own is None:
        return compare is operator.ne
    try:
        return bool(compare(float(own), float(value)))
    except ValueError:
        return bool(compare(own, value))
