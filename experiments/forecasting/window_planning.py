"""Procedure planning: the first and the last of T consecutive steps are known, and those between are asked for.

What came before the window is not known, and steps may repeat. Of the middles m between the steps a and z,

    P(m | a, z) = (#(a m z) + κ q(m)) / (#(a · z) + κ),        q(m) ∝ exp Σ_f φ_f(a m z) w_f

is the share of the windows seen with these ends, drawn with the strength of κ windows towards a log-linear model q of
smoothed counts. Its few weights w have the highest penalised likelihood where each window is judged by the counts of
other videos (cross-fitting); they may be learned from many tasks together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from msg2.assist.conditional_logit import minimize_lbfgs
from msg2.assist.contexts import StepIndices
from msg2.assist.following import unknown_step_error
from msg2.assist.learned_forecaster import k_fold_split
from msg2.assist.planning import Plan
from msg2.errors import InputError, require
from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Step, Task

FEATURES = (
    "bigram", "trigram", "one step more between", "next but one", "repeated at once", "repeated later", "usual order",
    "frequency",
)  # fmt: skip
"""φ, in order; see `window_features`."""
DEFAULT_PRIOR = np.eye(len(FEATURES))[0]
"""w₀, towards which weights are drawn: a bigram."""
PENALTY = 1.0
"""λ of λ/2 |w − w₀|²."""
CONCENTRATION = 14.0
"""κ: windows that the log-linear model counts for. Of 5, 8, 10, 14 and 20, the best in a cross-validation within the
training videos of CrossTask's first split."""
MAX_CANDIDATES = 2000
"""Where more middles are possible, those are weighed that a bigram finds most probable, and those seen."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCounts:
    """How often each row of step indices was seen; rows are coded as numbers to the base of the number of steps."""

    size: int
    codes: NDArray[np.int64]
    counts: FloatArray

    def lookup(self, rows: NDArray[np.intp]) -> FloatArray:
        """The counts of rows, shape (rows, length) -> (rows,)."""
        if not len(self.codes):
            return np.zeros(len(rows))
        codes = _encode_rows(rows, self.size)
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[places] == codes, self.counts[places], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class WindowCounts:
    """What the features of windows of `length` steps are made of, for a task of N steps."""

    length: int
    frequency: FloatArray
    """Shape (N,), with the sum 1; no step has 0."""
    bigram: FloatArray
    """p(b | a), shape (N, N)."""
    next_but_one: FloatArray
    """p(c | a) for what comes two steps later, shape (N, N)."""
    usual_order: FloatArray
    """From −1 (b always comes first) to 1 (a does), shape (N, N)."""
    trigrams: RowCounts
    trigram_contexts: FloatArray
    """How often a pair was followed by anything, and by how many different steps, shape (2, N, N)."""
    windows: RowCounts
    longer_windows: RowCounts
    """Windows with one step more, with each of the steps between left out."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowPlanner:
    """Fitted to the videos of a task: call `plan`."""

    steps: tuple[Step, ...]
    counts: WindowCounts
    weights: FloatArray

    def plan(self, first: Step, last: Step, k: int = 1) -> list[Plan]:
        """Find the most probable windows with these ends."""
        require(k >= 1, f"k is {k}, it must be 1 or more")
        for name in (first, last):
            if name not in self.steps:
                raise unknown_step_error(name, SubtaskGraph("", self.steps, {}))
        rows = candidate_windows(self.counts, self.steps.index(first), self.steps.index(last))
        seen = self.counts.windows.lookup(rows)
        utility = window_features(self.counts, rows) @ self.weights
        base = np.exp(utility - utility.max())
        probabilities = (seen + CONCENTRATION * base / base.sum()) / (seen.sum() + CONCENTRATION)
        best = np.lexsort((*rows.T[::-1], -probabilities.round(9)))[:k]  # equals are in the order of the steps
        exact = len(rows) == len(self.steps) ** (self.counts.length - 2)
        return [Plan(tuple(self.steps[n] for n in rows[row]), float(probabilities[row]), exact) for row in best]


def fit_window_planner(task: Task, length: int, weights: FloatArray | None = None) -> WindowPlanner:
    """Learn which steps come between two others.

    Parameters
    ----------
    task : Task
        The training videos. Repeated steps count where the task has them (``read(path, repeats="keep")``).
    length : int
        T, the number of steps of a window with both ends: 3 or more.
    weights : array of shape (features,), optional
        From `fit_window_weights` of several tasks; by default they are learned from this task alone.

    Returns
    -------
    WindowPlanner

    Raises
    ------
    InputError
        For a shorter length, or one that is too long for the number of steps.

    >>> from msg2.task import Segment, Video
    >>> task = Task("t", "abcd", [Video(f"v{n}", map(Segment, "abcd" if n % 4 else "acbd")) for n in range(20)])
    >>> best, second = fit_window_planner(task, length=4).plan("a", "d", k=2)
    >>> best.steps, second.steps
    (('a', 'b', 'c', 'd'), ('a', 'c', 'b', 'd'))
    """
    counts = count_windows(_index_sequences(task), len(task.steps), length)
    return WindowPlanner(task.steps, counts, fit_window_weights([task], length) if weights is None else weights)


def fit_window_weights(tasks: Sequence[Task], length: int) -> FloatArray:
    """Learn the weights of the features from the videos of some tasks."""
    parts = [
        _observed_windows(inside, count_windows(others, len(task.steps), length))
        for task in tasks
        for inside, others in k_fold_split(_index_sequences(task))
    ]
    observed = [part for part in parts if part is not None]
    if not observed:
        return np.array(DEFAULT_PRIOR)
    return minimize_lbfgs(penalised_loss(_concatenate_windows(observed)), DEFAULT_PRIOR, 2.2e-9)


def count_windows(sequences: Sequence[StepIndices], size: int, length: int) -> WindowCounts:
    """Count windows, and what smooths them."""
    require(length >= 3, f"length is {length}, it must be 3 or more: nothing is to plan between two steps")
    if (length + 1) * np.log2(max(size, 2)) >= 63:
        raise InputError(f"windows of {length} of {size} steps are too long", hint="ask for fewer steps")
    single, pairs, triples = (_windows_of(sequences, n) for n in (1, 2, 3))
    frequency: FloatArray = (np.bincount(single[:, 0], minlength=size) + 1.0) / (len(single) + size)
    longer = _windows_of(sequences, length + 1)
    shortened = [np.delete(longer, place, axis=1) for place in range(1, length)]
    trigrams = _count_rows(triples, size)
    context, once = trigrams.codes // size, np.ones(len(trigrams.codes))
    contexts = [np.bincount(context, weights, minlength=size**2) for weights in (trigrams.counts, once)]
    return WindowCounts(
        length,
        frequency,
        _smooth(_count_pairs(pairs, size), frequency),
        _smooth(_count_pairs(triples[:, [0, 2]], size), frequency),
        _usual_order(sequences, size),
        trigrams,
        np.reshape(contexts, (2, size, size)).astype(float),
        _count_rows(_windows_of(sequences, length), size),
        _count_rows(np.concatenate(shortened), size),
    )


def window_features(counts: WindowCounts, rows: NDArray[np.intp]) -> FloatArray:
    """What the log-linear model knows of windows with the same ends.

    The logarithms of the smoothed probabilities of its bigrams, trigrams, windows with one step more, and steps two
    apart; how many steps are repeated at once, and later; how far pairs are in their usual order; and the logarithm
    of the frequency of the steps between.
    """
    places = range(rows.shape[1])
    bigram = [counts.bigram[rows[:, i], rows[:, j]] for i, j in pairwise(places)]
    trigram = [bigram[0], *(_trigram(counts, rows[:, i : i + 3]) for i in places[:-2])]
    log_trigram = np.log(trigram).sum(axis=0)
    likely = np.exp(log_trigram - log_trigram.max())
    again = {(i, j): rows[:, i] == rows[:, j] for i, j in combinations(places, 2)}
    zero = np.zeros(len(rows))
    columns = [
        np.log(bigram).sum(axis=0),
        log_trigram,
        np.log(_smooth(counts.longer_windows.lookup(rows), likely / likely.sum())),
        np.log([counts.next_but_one[rows[:, i], rows[:, i + 2]] for i in places[:-2]]).sum(axis=0),
        sum((same for (i, j), same in again.items() if j == i + 1), zero),
        sum((same for (i, j), same in again.items() if j > i + 1), zero),
        sum((counts.usual_order[rows[:, i], rows[:, j]] for i, j in again), zero),
        np.log(counts.frequency[rows[:, 1:-1]]).sum(axis=1),
    ]
    return np.stack(columns, axis=1)


def candidate_windows(counts: WindowCounts, first: int, last: int) -> NDArray[np.intp]:
    """All windows with these ends, or where they are too many, the most probable of a bigram and all that were seen."""
    size, length = len(counts.frequency), counts.length
    logs = np.log(counts.bigram)
    to_last = [logs[:, last]]  # the best that can follow each step, from the last place but one backwards
    for _ in range(length - 3):
        to_last.append((logs + to_last[-1]).max(axis=1))
    rows, scores = np.full((1, 1), first, dtype=np.intp), np.zeros(1)
    for best_rest in reversed(to_last):  # so the best whole windows survive each cut
        scores = (scores[:, None] + logs[rows[:, -1]]).ravel()
        rows = np.column_stack([np.repeat(rows, size, axis=0), np.tile(np.arange(size), len(rows))])
        if len(rows) > MAX_CANDIDATES:
            kept = np.sort(np.argsort(-(scores + best_rest[rows[:, -1]]), kind="stable")[:MAX_CANDIDATES])
            rows, scores = rows[kept], scores[kept]
    rows = np.column_stack([rows, np.full(len(rows), last)])
    if len(rows) == size ** (length - 2):
        return rows
    seen = _decode_rows(counts.windows.codes, size, length)
    seen = seen[(seen[:, 0] == first) & (seen[:, -1] == last)]
    return np.unique(np.concatenate([rows, seen]), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedWindows:
    """Windows that came, each with all candidates for its ends; Q questions have R candidates one after another."""

    features: FloatArray
    """Shape (R, features)."""
    seen: FloatArray
    """How often each candidate was seen in other videos, shape (R,)."""
    starts: NDArray[np.intp]
    """Where the candidates of each question begin, shape (Q,)."""
    came: FloatArray
    """How often each candidate came, shape (R,)."""


def penalised_loss(observed: ObservedWindows) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """−Σ log P + λ/2 |w − w₀|², a function of the weights that also gives its gradient."""
    sizes = np.diff(observed.starts, append=len(observed.seen))
    question = np.repeat(np.arange(len(sizes)), sizes)
    total = np.add.reduceat(observed.seen, observed.starts)[question]

    def loss_and_gradient(weights: FloatArray) -> tuple[float, FloatArray]:
        utility = observed.features @ weights
        base = np.exp(utility - np.maximum.reduceat(utility, observed.starts)[question])
        base /= np.add.reduceat(base, observed.starts)[question]
        drawn = CONCENTRATION * base
        share = observed.came * drawn / (observed.seen + drawn)  # how far a window that came is the model's merit
        residual = share - base * np.add.reduceat(share, observed.starts)[question]
        away = weights - DEFAULT_PRIOR
        fit = float(observed.came @ np.log((observed.seen + drawn) / (total + CONCENTRATION)))
        return PENALTY / 2 * float(away @ away) - fit, PENALTY * away - observed.features.T @ residual

    return loss_and_gradient


def _observed_windows(sequences: Sequence[StepIndices], counts: WindowCounts) -> ObservedWindows | None:
    """The windows of some videos, judged by the counts of others; None where the videos are too short."""
    size = len(counts.frequency)
    windows = _windows_of(sequences, counts.length)
    came = _count_rows(windows, size)
    parts = [candidate_windows(counts, first, last) for first, last in np.unique(windows[:, [0, -1]], axis=0).tolist()]
    if not parts:
        return None
    rows = np.concatenate(parts)
    return ObservedWindows(
        np.concatenate([window_features(counts, part) for part in parts]),
        counts.windows.lookup(rows),
        np.cumsum([0, *(len(part) for part in parts[:-1])]),
        came.lookup(rows),
    )


def _concatenate_windows(parts: Sequence[ObservedWindows]) -> ObservedWindows:
    offsets = np.cumsum([0, *(len(part.seen) for part in parts[:-1])]).tolist()
    return ObservedWindows(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.seen for part in parts]),
        np.concatenate([part.starts + offset for part, offset in zip(parts, offsets, strict=True)]),
        np.concatenate([part.came for part in parts]),
    )


def _index_sequences(task: Task) -> list[StepIndices]:
    """The steps of each video by their places in the task, with repeats."""
    index = {name: place for place, name in enumerate(task.steps)}
    return [tuple(index[segment.step] for segment in video.segments) for video in task]


def _windows_of(sequences: Sequence[StepIndices], length: int) -> NDArray[np.intp]:
    """All runs of so many consecutive steps, shape (windows, length)."""
    rows = [one[start : start + length] for one in sequences for start in range(len(one) - length + 1)]
    return np.array(rows, dtype=np.intp).reshape(-1, length)


def _encode_rows(rows: NDArray[np.intp], size: int) -> NDArray[np.int64]:
    return np.asarray(rows.astype(np.int64) @ size ** np.arange(rows.shape[1], dtype=np.int64)[::-1])


def _decode_rows(codes: NDArray[np.int64], size: int, length: int) -> NDArray[np.intp]:
    return (codes[:, None] // size ** np.arange(length, dtype=np.int64)[::-1] % size).astype(np.intp)


def _count_rows(rows: NDArray[np.intp], size: int) -> RowCounts:
    codes, counts = np.unique(_encode_rows(rows, size), return_counts=True)
    return RowCounts(size, codes, counts.astype(float))


def _count_pairs(pairs: NDArray[np.intp], size: int) -> FloatArray:
    return np.bincount(_encode_rows(pairs, size), minlength=size**2).reshape(size, size).astype(float)


def _smooth(counts: FloatArray, backoff: FloatArray) -> FloatArray:
    """Witten and Bell's estimate along the last axis: as many are held back as there are different outcomes."""
    held_back = np.maximum((counts > 0).sum(axis=-1, keepdims=True), 1)
    return np.asarray((counts + held_back * backoff) / (counts.sum(axis=-1, keepdims=True) + held_back))


def _trigram(counts: WindowCounts, rows: NDArray[np.intp]) -> FloatArray:
    """p(c | a, b) of rows (a, b, c), smoothed by the bigram as in `_smooth`."""
    total, distinct = counts.trigram_contexts[:, rows[:, 0], rows[:, 1]]
    held_back = np.maximum(distinct, 1)
    backoff = counts.bigram[rows[:, 1], rows[:, 2]]
    return np.asarray((counts.trigrams.lookup(rows) + held_back * backoff) / (total + held_back))


def _usual_order(sequences: Sequence[StepIndices], size: int) -> FloatArray:
    """(videos with a before b − videos with b before a) / (their sum + 1); a video with both orders counts in both."""
    before = np.zeros((size, size))
    for sequence in sequences:
        for pair in set(combinations(sequence, 2)):
            before[pair] += 1
    return (before - before.T) / (before + before.T + 1)
