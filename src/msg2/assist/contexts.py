"""What was done so far, in order, as numbers: the contexts that forecasts are made from.

Arrays have a row per context and a column per step of the task. Where videos do steps again, a step that is done may
come next as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.following import RunStateTracker
from msg2.graph import SubtaskGraph
from msg2.graph.formula import unmet_clauses
from msg2.sequences import FloatArray

StepIndices: TypeAlias = tuple[int, ...]
"""Steps done, in order, as their indices among the steps of the task."""

COUNT_FEATURES = ("after last", "after second last", "share", "after done", "before left", "position")
"""The features that `count_features` gives, in order."""
SIMILARITY_DECAY = 0.3
"""κ: what a past context weighs per difference from the present one, among similar contexts."""
BACK_OFF = 2.0
"""Observations that the share of videos with a step is worth."""
_PAIRS_AT_ONCE = 1_000_000
"""Pairs of contexts that are compared at once: memory stays bounded."""
_ALL = slice(None)
LONGEST = 3
"""Steps that an n-gram looks back."""


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """n contexts among N steps."""

    prefixes: Sequence[StepIndices]  # what was done in each, repetitions included
    done: FloatArray  # 1 for every step done, shape (n, N)
    last: FloatArray  # the last step, one-hot, shape (n, N + 1); the last column is for "none yet"
    second: FloatArray  # the step before the last one, likewise
    recency: FloatArray  # 2^−(steps since) of every step done, shape (n, N)
    length: FloatArray  # number of different steps done, shape (n,)
    last_step: NDArray[np.intp]  # shape (n,); N is for "none yet"
    packed: NDArray[np.uint64]  # `done` as bits, shape (n, ⌈N / 64⌉), with which contexts are compared quickly
    open: NDArray[np.bool_]  # what may come next, shape (n, N): what is left, and what videos do again

    @property
    def left(self) -> NDArray[np.bool_]:
        """Steps that are not done, shape (n, N)."""
        return np.asarray(self.done == 0)

    @property
    def context(self) -> FloatArray:
        """What each step has coefficients of its own for: 1, done, last and recency; shape (n, 3N + 2)."""
        return np.hstack([np.ones((len(self.done), 1)), self.done, self.last, self.recency])


def encode_contexts(prefixes: Sequence[StepIndices], size: int, repeated: NDArray[np.bool_] | None = None) -> Contexts:
    """Encode what was done as arrays; `repeated` are the steps that may be done again."""
    length = np.array([len(prefix) for prefix in prefixes], dtype=np.intp)
    done, recency = np.zeros((len(prefixes), size)), np.zeros((len(prefixes), size))
    row = np.repeat(np.arange(len(prefixes)), length)
    step = np.fromiter(chain.from_iterable(prefixes), dtype=np.intp, count=len(row))
    since_then = length[row] - 1 - np.arange(len(row)) + (np.cumsum(length) - length)[row]
    done[row, step], recency[row, step] = 1, 0.5**since_then  # of a repeated step the last time counts
    padded = np.full(len(row) + 2, size, dtype=np.intp)  # before every prefix, nothing was done
    padded[2:] = step
    end = np.cumsum(length) + 1
    last = np.where(length > 0, padded[end], size)
    second = np.where(length > 1, padded[end - 1], size)
    none_yet, flags = np.eye(size + 1), done.astype(np.bool_)
    possible = ~flags if repeated is None else ~flags | repeated
    return Contexts(
        prefixes, done, none_yet[last], none_yet[second], recency, done.sum(axis=1), last, pack_flags(flags), possible
    )


def pack_flags(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of flags as bits of whole numbers."""
    words = -(-flags.shape[1] // 64)
    padded = np.zeros((len(flags), 64 * words), dtype=np.bool_)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1).view(np.uint64)


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """Counts over videos of a task with N steps; those of other tasks have a number of videos per step."""

    videos: float | FloatArray
    shown: FloatArray  # videos that show a step, shape (N,)
    again: FloatArray  # those that do it more than once, likewise
    positions: FloatArray  # sum of the relative positions of a step, 0 … 1, over these videos, shape (N,)
    after: FloatArray  # how often a step comes directly after another, shape (N + 1, N); last row: as the first step
    second: FloatArray  # how often a step comes after another with one in between, likewise
    before: FloatArray  # how often a step comes any time before another, shape (N, N)

    @cached_property
    def log_purity(self) -> FloatArray:
        """[a, b]: log of the share of videos with both in which a comes before b, smoothed; shape (N, N)."""
        purity = np.log((self.before + 0.5) / (self.before + self.before.T + 1))
        np.fill_diagonal(purity, 0.0)
        return np.asarray(purity)

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        return TransitionCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count_transitions(sequences: Sequence[StepIndices], size: int) -> TransitionCounts:
    """Count steps, positions and pairs of steps; transitions also of what is done again."""
    shown, again, positions = np.zeros((3, size))
    after, second, before = np.zeros((size + 1, size)), np.zeros((size + 1, size)), np.zeros((size, size))
    for sequence in sequences:
        done = [*dict.fromkeys(sequence)]
        shown[done] += 1
        positions[done] += (np.array([sequence.index(step) for step in done]) + 0.5) / max(len(sequence), 1)
        again[[step for step, times in Counter(sequence).items() if times > 1]] += 1
        before[np.ix_(done, done)] += np.tri(len(done), k=-1).T
        padded = (size, size, *sequence)
        np.add.at(after, (padded[1:-1], sequence), 1)
        np.add.at(second, (padded[1:-2], sequence[1:]), 1)
    return TransitionCounts(float(len(sequences)), shown, again, positions, after, second, before)


def count_features(contexts: Contexts, counts: TransitionCounts) -> FloatArray:
    """The `COUNT_FEATURES`; 0 for steps that cannot come.

    log p(n | last) and log p(n | second last), smoothed by the share of videos with n; the log of that share (of a step
    that is done: of those that do it again); the mean log purities of n after what is done, and before what is left;
    and how far its usual position is from here.
    """
    left, may_come = contexts.left, contexts.open
    share = (counts.shown + 0.5) / (counts.videos + 1)
    share_now = np.where(left, share, (counts.again + 0.5) / (counts.shown + 1))
    back_off = _normalize_rows(share_now * may_come)
    purity, length = counts.log_purity, contexts.length
    here = (length + 0.5) / max(float(share.sum()), 0.5)
    usual = (counts.positions + 0.5) / (counts.shown + 1)
    columns = [
        np.log(_normalize_rows(contexts.last @ counts.after * may_come + BACK_OFF * back_off) + ~may_come),
        np.log(_normalize_rows(contexts.second @ counts.second * may_come + BACK_OFF * back_off) + ~may_come),
        np.log(share_now) * may_come,
        contexts.done @ purity / np.maximum(length, 1)[:, None] * left,
        (share * left) @ purity.T / np.maximum((share * left).sum(axis=1), 0.5)[:, None] * left,
        -np.abs(here[:, None] - usual) * left,
    ]
    return np.asarray(np.stack(columns, axis=2))


@dataclass(frozen=True, slots=True, eq=False)
class NGrams:
    """How often each step came after the last ones, `LONGEST` of them at most, and after fewer."""

    counts: Mapping[StepIndices, tuple[list[int], list[int]]]  # which steps came after these, and how often
    size: int
    known: dict[StepIndices, FloatArray] = field(default_factory=dict, repr=False)  # see `_after`

    @staticmethod
    def count(sequences: Sequence[StepIndices], size: int) -> NGrams:
        """Count every step of every sequence."""
        counts = Counter[StepIndices]()
        for sequence in sequences:
            counts.update(zip(sequence, strict=True))
            padded = (-1, *sequence)  # −1 stands for the beginning
            for last in range(1, LONGEST + 1):
                counts.update(zip(*(padded[place:] for place in range(last + 1)), strict=False))
        found: defaultdict[StepIndices, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for steps, count in counts.items():
            found[steps[:-1]][0].append(steps[-1])
            found[steps[:-1]][1].append(count)
        return NGrams(dict(found), size)

    def log_probabilities(self, contexts: Contexts) -> FloatArray:
        """log p of each step after the last ones, by Witten and Bell's interpolation; shape (n, N, 1), 0 if impossible.

        p(n | k steps) = (count + T p(n | k − 1 steps)) / (total + T), where T different steps came after those k.
        """
        rows = np.empty(contexts.done.shape)
        for row, prefix in zip(rows, contexts.prefixes, strict=True):
            row[:] = self._after((-1, *prefix[-LONGEST:])[-LONGEST:])
        shares = _normalize_rows(rows * contexts.open)
        return np.asarray(np.log(shares + ~contexts.open)[..., None])

    def _after(self, last: StepIndices) -> FloatArray:
        """p of each step after these, as far as they were seen; worked out once."""
        while last and last not in self.counts:
            last = last[1:]
        if last not in self.known:
            row = self._after(last[1:]) if last else np.full(self.size, 1 / self.size)
            if last in self.counts:
                steps, count = self.counts[last]
                row = row * len(steps)
                row[steps] += count
                row /= sum(count) + len(steps)
            self.known[last] = row
        return self.known[last]


@dataclass(frozen=True, slots=True, eq=False)
class PastChoices:
    """m contexts of other videos, and the step that came in each of them."""

    contexts: Contexts
    chosen: NDArray[np.intp]  # shape (m,)
    share: FloatArray  # of the choices, those of each step, smoothed; shape (N,)
    repeated: NDArray[np.bool_]  # steps that some video does again, likewise

    @staticmethod
    def from_sequences(sequences: Sequence[StepIndices], size: int) -> PastChoices:
        """Take every step of every video as a choice."""
        prefixes = [sequence[:length] for sequence in sequences for length in range(len(sequence))]
        chosen = np.array([step for sequence in sequences for step in sequence], dtype=np.intp)
        share = (np.bincount(chosen, minlength=size) + 0.5) / (len(chosen) + 0.5 * size)
        repeated = np.zeros(size, dtype=np.bool_)
        repeated[[step for sequence in sequences for step, times in Counter(sequence).items() if times > 1]] = True
        return PastChoices(encode_contexts(prefixes, size, repeated), chosen, np.asarray(share, np.float64), repeated)


def similarity_features(contexts: Contexts, past: PastChoices, decay: float = SIMILARITY_DECAY) -> FloatArray:
    """log p of what came in past contexts, weighted by their similarity to this one."""
    weights, size = np.zeros(contexts.done.shape), len(past.share)
    at_once = max(1, _PAIRS_AT_ONCE // max(len(past.chosen), 1))
    for low in range(0, len(weights), at_once):
        alike = similarity_weights(contexts, past.contexts, decay, slice(low, low + at_once))
        for row, weight in enumerate(alike, low):
            weights[row] = np.bincount(past.chosen, weight, minlength=size)
    weights = _normalize_rows((weights + past.share) * contexts.open)
    return np.asarray(np.log(weights + ~contexts.open)[..., None])


def similarity_weights(
    contexts: Contexts, past: Contexts, decay: float = SIMILARITY_DECAY, rows: NDArray[np.intp] | slice = _ALL
) -> FloatArray:
    """Weigh past contexts: κ per step that only one of the two has done, and κ if their last steps differ."""
    differences = (contexts.last_step[rows][:, None] != past.last_step).astype(np.intp)
    for here, there in zip(contexts.packed[rows].T, past.packed.T, strict=True):
        differences += np.bitwise_count(here[:, None] ^ there)
    powers = decay ** np.arange(contexts.done.shape[1] + 2)
    return np.asarray(powers[differences])


class GraphFeatures:
    """Features from the graph."""

    def __init__(self, graph: SubtaskGraph, rho: float) -> None:
        self.tracker, self.rho = RunStateTracker(graph), rho
        clauses = [(graph.index[name], clause) for name, formula in graph.preconditions.items()
                   for clause in formula.clauses()]  # fmt: skip
        self._is_simple = all(clause.kinds <= {"step", "any"} for _, clause in clauses)
        self._owners, self._first = np.unique([owner for owner, _ in clauses], return_index=True)
        self._members = _padded(
            [[graph.index[name] for name in clause.steps] for _, clause in clauses], len(graph.steps)
        )
        ruled_out_by = [[graph.index[other] for other in graph.ruled_out_by(name)] for name in graph.steps]
        self._ruled_out_by = _padded(ruled_out_by, len(graph.steps))

    def of(self, contexts: Contexts) -> FloatArray:
        """Whether a step is eligible, ρ^Δ since then, and its number of unmet clauses, shape (n, N, 3); 0 if done."""
        shape = (*contexts.done.shape, 3)
        if not len(self._owners):  # everything is equally eligible: nothing to tell steps apart
            return np.zeros(shape)
        if not self._is_simple:
            return np.array([self._row(prefix) for prefix in contexts.prefixes]).reshape(shape)
        when = np.full((shape[0], shape[1] + 1), np.inf)
        for row, prefix in zip(when, contexts.prefixes, strict=True):
            distinct = [*dict.fromkeys(prefix)]
            row[distinct] = np.arange(1, len(distinct) + 1)
        length = contexts.length[:, None]
        met = when[:, self._members].min(axis=2)
        unmet, since = np.zeros(shape[:2]), np.zeros(shape[:2])
        unmet[:, self._owners] = np.add.reduceat(np.isinf(met), self._first, axis=1)
        since[:, self._owners] = np.maximum.reduceat(met, self._first, axis=1)
        ruled_out = when[:, self._ruled_out_by].min(axis=2)
        eligible = (length >= since) & np.isinf(ruled_out)
        fresh = np.where(eligible, self.rho ** np.where(eligible, length - since, 0), 0)
        return np.asarray(np.stack([unmet == 0, fresh, unmet], axis=2) * contexts.left[..., None])

    def _row(self, prefix: StepIndices) -> FloatArray:
        """The same, for one context and any formulas."""
        graph, state = self.tracker.graph, self.tracker.state_after(self.tracker.graph.steps[index] for index in prefix)
        row = np.zeros((len(graph.steps), 3))
        for index in set(range(len(graph.steps))).difference(prefix):
            name = graph.steps[index]
            unmet = len(unmet_clauses(graph.precondition(name), state.completed))
            fresh = self.rho ** state.waited[name] if name in state.eligible else 0.0
            row[index] = unmet == 0, fresh, unmet
        return row


def _padded(rows: Sequence[Sequence[int]], filling: int) -> NDArray[np.intp]:
    """Rows of several lengths as an array."""
    table = np.full((len(rows), max([1, *map(len, rows)])), filling, dtype=np.intp)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


def _normalize_rows(weights: FloatArray) -> FloatArray:
    """Rows with the sum 1; a row of zeros stays one."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))
