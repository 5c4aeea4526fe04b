"""What is known before each step of a demonstration, as numbers: the context, and features of every candidate.

A situation is what has been done, in order. All arrays have a row per situation and a column per step of the task, in
one fixed order; counts come from videos that the situation is not part of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.choice import Numbers
from msg2.assist.progress import ProgressOf, unmet_clauses
from msg2.graph import SubtaskGraph
from msg2.options import ForecastOptions

Places: TypeAlias = tuple[int, ...]
"""Steps done, in order, as their places among the steps of the task."""


@dataclass(frozen=True, slots=True, eq=False)
class Situations:
    """n situations among N steps.

    `done` (n, N) and `last`, `second` (n, N + 1) are one-hot, the last column for "none yet"; `recency` (n, N) is
    2^−(steps since).
    """

    prefixes: Sequence[Places]
    done: Numbers
    last: Numbers
    second: Numbers
    recency: Numbers

    @property
    def length(self) -> Numbers:
        """Number of steps done, shape (n,)."""
        return np.asarray(self.done.sum(axis=1))

    @property
    def left(self) -> NDArray[np.bool_]:
        """Steps that are not done, shape (n, N)."""
        return np.asarray(self.done == 0)

    @property
    def context(self) -> Numbers:
        """What each step has an answer of its own to: 1, done, last and recency; shape (n, 3N + 2)."""
        return np.hstack([np.ones((len(self.done), 1)), self.done, self.last, self.recency])


def situations(prefixes: Sequence[Places], size: int) -> Situations:
    """The situations after `prefixes`, of a task with `size` steps.

    >>> situations([(), (1, 0)], 2).recency.tolist()
    [[0.0, 0.0], [1.0, 0.5]]
    """
    found = [np.zeros((len(prefixes), width)) for width in (size, size + 1, size + 1, size)]
    done, last, second, recency = found
    for row, prefix in enumerate(prefixes):
        done[row, list(prefix)] = 1
        recency[row, list(prefix)] = 0.5 ** np.arange(len(prefix) - 1, -1, -1)
        last[row, prefix[-1] if prefix else size] = 1
        second[row, prefix[-2] if len(prefix) > 1 else size] = 1
    return Situations(prefixes, *found)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What `videos` show: how many show a step (N,), and the sum of its relative `places` in them, 0 … 1 (N,).

    `after` (N + 1, N) counts "directly after" and `second` (N + 1, N) "after the one before", from the last row for
    the start of a video; `before` (N, N) counts "any time before". Borrowed counts have a number of videos per step.
    """

    videos: float | Numbers
    shown: Numbers
    places: Numbers
    after: Numbers
    second: Numbers
    before: Numbers

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def counts(sequences: Sequence[Places], size: int) -> Counts:
    """The counts of videos with these sequences of steps.

    >>> counts([(0, 1)], 2).after.tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    shown, places = np.zeros(size), np.zeros(size)
    after, second, before = np.zeros((size + 1, size)), np.zeros((size + 1, size)), np.zeros((size, size))
    for sequence in sequences:
        for place, step in enumerate(sequence):
            shown[step] += 1
            places[step] += (place + 0.5) / len(sequence)
            after[sequence[place - 1] if place else size, step] += 1
            if place:
                second[sequence[place - 2] if place > 1 else size, step] += 1
            before[list(sequence[:place]), step] += 1
    return Counts(float(len(sequences)), shown, places, after, second, before)


COUNTED = ("after last", "after second last", "share", "after done", "before left", "position")
"""The features that `counted` gives, in order."""


def counted(seen: Situations, known: Counts) -> Numbers:
    """Features from counts, shape (n, N, 6); 0 for steps that are done.

    log p(n | last) and log p(n | second last), among the steps left, smoothed by the share of videos with n; the log of
    that share; how surely n comes after what is done, and before what is left (mean log purities); and how
    far its usual place is from here.
    """
    left = seen.left
    share = (known.shown + 0.5) / (known.videos + 1)
    back_off = _normalised(share * left)
    first = (known.before + 0.5) / (known.before + known.before.T + 1)  # [a, b]: a comes before b
    purity = np.log(first)
    np.fill_diagonal(purity, 0.0)
    length = seen.length
    here = (length + 0.5) / max(float(share.sum()), 0.5)
    usual = (known.places + 0.5) / (known.shown + 1)
    columns = [
        np.log(_normalised(seen.last @ known.after * left + _BACK_OFF * back_off) + ~left),
        np.log(_normalised(seen.second @ known.second * left + _BACK_OFF * back_off) + ~left),
        np.broadcast_to(np.log(share), left.shape),
        seen.done @ purity / np.maximum(length, 1)[:, None],
        (share * left) @ purity.T / np.maximum((share * left).sum(axis=1), 0.5)[:, None],
        -np.abs(here[:, None] - usual),
    ]
    return np.asarray(np.stack(columns, axis=2) * left[..., None])


_BACK_OFF = 2.0
"""Observations that the share of videos with a step is worth."""


def similar(seen: Situations, past: Situations, came: NDArray[np.intp], options: ForecastOptions) -> Numbers:
    """log p of what came in `past` situations, weighted by their likeness to this one; shape (n, N, 1).

    A past situation weighs κ per step that only one of the two has done, and κ if their last steps differ.
    """
    size = seen.done.shape[1]
    outcome = np.eye(size)[came]
    share = (outcome.sum(axis=0) + 0.5) / (len(came) + 0.5 * size)
    likely = np.zeros(seen.done.shape)
    for rows in np.array_split(np.arange(len(likely)), 1 + len(likely) * len(came) // _AT_ONCE):
        common = seen.done[rows] @ past.done.T
        apart = seen.length[rows][:, None] + past.length - 2 * common + 1 - seen.last[rows] @ past.last.T
        likely[rows] = options.likeness**apart @ outcome
    likely = _normalised((likely + share) * seen.left)
    return np.asarray(np.log(likely + ~seen.left)[..., None])


_AT_ONCE = 4_000_000
"""Pairs of situations that are compared at once: memory stays bounded."""


def under_graph(seen: Situations, graph: SubtaskGraph, rho: float) -> Numbers:
    """Features from the graph, shape (n, N, 3): eligible, ρ^Δ since then (0: not eligible), number of unmet clauses."""
    if not graph.preconditions:  # everything is equally eligible: nothing to tell steps apart
        return np.zeros((*seen.done.shape, 3))
    progress_of = ProgressOf(graph)
    found: dict[Places, Numbers] = {}
    for prefix in seen.prefixes:
        if prefix in found:
            continue
        progress = progress_of(graph.steps[place] for place in prefix)
        unmet = [len(unmet_clauses(graph.precondition(name), progress.completed)) for name in graph.steps]
        fresh = [rho ** progress.waited[name] if name in progress.eligible else 0.0 for name in graph.steps]
        found[prefix] = np.array([[count == 0 for count in unmet], fresh, unmet], dtype=np.float64).T
    stacked = np.array([found[prefix] for prefix in seen.prefixes]).reshape(*seen.done.shape, 3)
    return np.asarray(stacked * seen.left[..., None])


def _normalised(weights: Numbers) -> Numbers:
    """Rows with the sum 1; a row of zeros stays one."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))
