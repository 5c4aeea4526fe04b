"""The next step, learned from the videos: a conditional logit over the steps that are left.

A context is what has been done, in order; arrays have a row per context and a column per step of the task. Each step
has its own coefficients for what was done, what was done last and how long ago; all steps share the weights of what
came in similar contexts, of transitions and usual positions, and of the graph. The rows a model is trained on get
their counts from other videos, as the rows it is asked about will (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.assist.conditional_logit import (
    ChoiceSets,
    ConditionalLogit,
    ObservedChoices,
    Penalty,
    best_penalty,
    concatenate_choices,
    fit_conditional_logit,
)
from msg2.assist.following import RunStateTracker, task_of_graph, unknown_step_error
from msg2.assist.rankers import RHO
from msg2.errors import require
from msg2.graph import SubtaskGraph
from msg2.graph.formula import unmet_clauses
from msg2.sequences import FloatArray
from msg2.task import Step, Task

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

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


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """n contexts among N steps."""

    prefixes: Sequence[StepIndices]  # what was done in each
    done: FloatArray  # 1 for every step done, shape (n, N)
    last: FloatArray  # the last step, one-hot, shape (n, N + 1); the last column is for "none yet"
    second: FloatArray  # the step before the last one, likewise
    recency: FloatArray  # 2^−(steps since) of every step done, shape (n, N)
    length: FloatArray  # number of steps done, shape (n,)
    last_step: NDArray[np.intp]  # shape (n,); N is for "none yet"
    packed: NDArray[np.uint8]  # `done` as bits, shape (n, ⌈N / 8⌉), with which contexts are compared quickly

    @property
    def left(self) -> NDArray[np.bool_]:
        """Steps that are not done, shape (n, N)."""
        return np.asarray(self.done == 0)

    @property
    def context(self) -> FloatArray:
        """What each step has coefficients of its own for: 1, done, last and recency; shape (n, 3N + 2)."""
        return np.hstack([np.ones((len(self.done), 1)), self.done, self.last, self.recency])


def encode_contexts(prefixes: Sequence[StepIndices], size: int) -> Contexts:
    """Encode what was done as arrays."""
    done, last, second, recency = (np.zeros((len(prefixes), width)) for width in (size, size + 1, size + 1, size))
    for row, prefix in enumerate(prefixes):
        done[row, list(prefix)] = 1
        recency[row, list(prefix)] = 0.5 ** np.arange(len(prefix) - 1, -1, -1)
        last[row, prefix[-1] if prefix else size] = 1
        second[row, prefix[-2] if len(prefix) > 1 else size] = 1
    length = np.array([len(prefix) for prefix in prefixes], dtype=np.float64)
    packed = np.packbits(done.astype(np.bool_), axis=1)
    return Contexts(prefixes, done, last, second, recency, length, last.argmax(axis=1), packed)


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """Counts over videos of a task with N steps; those of other tasks have a number of videos per step."""

    videos: float | FloatArray
    shown: FloatArray  # videos that show a step, shape (N,)
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
    """Count steps, positions and pairs of steps."""
    shown, positions = np.zeros(size), np.zeros(size)
    after, second, before = np.zeros((size + 1, size)), np.zeros((size + 1, size)), np.zeros((size, size))
    for sequence in sequences:
        for position, step in enumerate(sequence):
            shown[step] += 1
            positions[step] += (position + 0.5) / len(sequence)
            after[sequence[position - 1] if position else size, step] += 1
            if position:
                second[sequence[position - 2] if position > 1 else size, step] += 1
            before[list(sequence[:position]), step] += 1
    return TransitionCounts(float(len(sequences)), shown, positions, after, second, before)


def count_features(contexts: Contexts, counts: TransitionCounts) -> FloatArray:
    """The `COUNT_FEATURES`; 0 for steps that are done.

    log p(n | last) and log p(n | second last), smoothed by the share of videos with n; the log of that share; the mean
    log purities of n after what is done, and before what is left; and how far its usual position is from here.
    """
    left = contexts.left
    share = (counts.shown + 0.5) / (counts.videos + 1)
    back_off = _normalize_rows(share * left)
    purity, length = counts.log_purity, contexts.length
    here = (length + 0.5) / max(float(share.sum()), 0.5)
    usual = (counts.positions + 0.5) / (counts.shown + 1)
    columns = [
        np.log(_normalize_rows(contexts.last @ counts.after * left + BACK_OFF * back_off) + ~left),
        np.log(_normalize_rows(contexts.second @ counts.second * left + BACK_OFF * back_off) + ~left),
        np.broadcast_to(np.log(share), left.shape),
        contexts.done @ purity / np.maximum(length, 1)[:, None],
        (share * left) @ purity.T / np.maximum((share * left).sum(axis=1), 0.5)[:, None],
        -np.abs(here[:, None] - usual),
    ]
    return np.asarray(np.stack(columns, axis=2) * left[..., None])


@dataclass(frozen=True, slots=True, eq=False)
class PastChoices:
    """m contexts of other videos, and the step that came in each of them."""

    contexts: Contexts
    chosen: NDArray[np.intp]  # shape (m,)
    outcome: FloatArray  # the same one-hot, shape (m, N)
    share: FloatArray  # of the choices, those of each step, smoothed; shape (N,)

    @staticmethod
    def from_sequences(sequences: Sequence[StepIndices], size: int) -> PastChoices:
        """Take every step of every video as a choice."""
        prefixes = [sequence[:length] for sequence in sequences for length in range(len(sequence))]
        chosen = np.array([step for sequence in sequences for step in sequence], dtype=np.intp)
        share = (np.bincount(chosen, minlength=size) + 0.5) / (len(chosen) + 0.5 * size)
        return PastChoices(encode_contexts(prefixes, size), chosen, np.eye(size)[chosen], np.asarray(share, np.float64))


def similarity_features(contexts: Contexts, past: PastChoices, decay: float = SIMILARITY_DECAY) -> FloatArray:
    """log p of what came in past contexts, weighted by their similarity to this one."""
    weights = np.zeros(contexts.done.shape)
    at_once = max(1, _PAIRS_AT_ONCE // max(len(past.chosen), 1))
    for low in range(0, len(weights), at_once):
        rows = slice(low, low + at_once)
        weights[rows] = similarity_weights(contexts, past.contexts, decay, rows) @ past.outcome
    weights = _normalize_rows((weights + past.share) * contexts.left)
    return np.asarray(np.log(weights + ~contexts.left)[..., None])


def similarity_weights(
    contexts: Contexts, past: Contexts, decay: float = SIMILARITY_DECAY, rows: NDArray[np.intp] | slice = _ALL
) -> FloatArray:
    """Weigh past contexts: κ per step that only one of the two has done, and κ if their last steps differ."""
    differences = np.bitwise_count(contexts.packed[rows][:, None] ^ past.packed).sum(axis=2, dtype=np.intp)
    differences += contexts.last_step[rows][:, None] != past.last_step
    powers = decay ** np.arange(contexts.done.shape[1] + 2)
    return np.asarray(powers[differences])


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """Features from the graph: those of contexts that are `known` are looked up."""

    tracker: RunStateTracker
    rho: float
    known: Mapping[StepIndices, FloatArray] = field(default_factory=dict)

    def of(self, contexts: Contexts) -> FloatArray:
        """Whether a step is eligible, ρ^Δ since then, and its number of unmet clauses, shape (n, N, 3); 0 if done."""
        shape = (*contexts.done.shape, 3)
        if not self.tracker.graph.preconditions:  # everything is equally eligible: nothing to tell steps apart
            return np.zeros(shape)
        rows = [self.known[prefix] if prefix in self.known else self._row(prefix) for prefix in contexts.prefixes]
        return np.array(rows).reshape(shape)

    def look_up(self, sequences: Iterable[StepIndices]) -> GraphFeatures:
        """Return the same features, with those of all contexts of some videos known."""
        if not self.tracker.graph.preconditions:
            return self
        prefixes = dict.fromkeys(sequence[:length] for sequence in sequences for length in range(len(sequence)))
        return replace(self, known={prefix: self._row(prefix) for prefix in prefixes})

    def _row(self, prefix: StepIndices) -> FloatArray:
        steps = self.tracker.graph.steps
        state = self.tracker.state_after(steps[index] for index in prefix)
        row = np.zeros((len(steps), 3))
        for index in set(range(len(steps))).difference(prefix):
            name = steps[index]
            unmet = len(unmet_clauses(self.tracker.graph.precondition(name), state.completed))
            fresh = self.rho ** state.waited[name] if name in state.eligible else 0.0
            row[index] = unmet == 0, fresh, unmet
        return row


def _normalize_rows(weights: FloatArray) -> FloatArray:
    """Rows with the sum 1; a row of zeros stays one."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))


Element = TypeVar("Element")

FEATURES = ("similar contexts", *COUNT_FEATURES, "eligible", "freshly eligible", "unmet clauses")
"""What all steps share the weights of, in order; counts of other tasks come after them."""
DEFAULT_PRIOR = np.eye(len(FEATURES))[0]
"""w₀ without other tasks: what came in similar contexts, as it stands."""
PENALTIES = tuple(Penalty(terms, weights=30.0) for terms in (30.0, 10.0, 3.0))
"""The best for held-out videos is taken."""
FOLDS = 5
"""Of the videos: for the penalties, and for counts that a context is not part of."""
MAX_LABELS = 2000
"""Videos are subsampled evenly so that they have no more labels than these: enough to learn from, and quick to ask."""


@dataclass(frozen=True, slots=True, eq=False)
class TransferPrior:
    """What other tasks say about the steps of this one: `counts`, and the `weights` w₀ that proved right there."""

    counts: TransitionCounts
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ForecastFeatures:
    """What videos of the task, its graph and other tasks tell about a context."""

    graph: SubtaskGraph
    sequences: Sequence[StepIndices]  # the steps of each video
    counts: TransitionCounts
    past: PastChoices
    from_graph: GraphFeatures
    transfer: TransferPrior | None

    def choice_sets(self, contexts: Contexts) -> ChoiceSets:
        """Context and features of each step that is left."""
        features = [
            similarity_features(contexts, self.past),
            count_features(contexts, self.counts),
            self.from_graph.of(contexts),
        ]
        if self.transfer is not None:
            features.append(count_features(contexts, self.transfer.counts))
        return ChoiceSets(contexts.context, np.concatenate(features, axis=2), contexts.left)


def fit_features(
    sequences: Sequence[StepIndices],
    graph: SubtaskGraph,
    transfer: TransferPrior | None = None,
    from_graph: GraphFeatures | None = None,
) -> ForecastFeatures:
    """Count what the features are made of."""
    size = len(graph.steps)
    past, counts = PastChoices.from_sequences(sequences, size), count_transitions(sequences, size)
    said = from_graph or GraphFeatures(RunStateTracker(graph), RHO)
    return ForecastFeatures(graph, sequences, counts, past, said, transfer)


@dataclass(frozen=True, slots=True, eq=False)
class LearnedForecaster:
    """A ranker: called with the steps done so far, it gives the probability of each step that is left."""

    extractor: ForecastFeatures
    model: ConditionalLogit

    def __call__(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """In the order of the graph; a step that the graph does not have is an `InputError`."""
        steps = self.extractor.graph.steps
        prefix = step_indices(done, self.extractor.graph)
        if len(prefix) == len(steps):
            return {}
        choice_sets = self.extractor.choice_sets(encode_contexts([prefix], len(steps)))
        probabilities = np.exp(self.model.log_probabilities(choice_sets)[0]).tolist()
        return {name: probabilities[index] for index, name in enumerate(steps) if index not in prefix}

    def to_json(self) -> dict[str, object]:
        """Plain values that, with the graph, give the same probabilities elsewhere; not with other tasks."""
        features = self.extractor
        require(features.transfer is None, "a forecaster that uses other tasks cannot be written down")
        return {
            "steps": list(features.graph.steps),
            "sequences": [list(sequence) for sequence in features.sequences],
            "terms": self.model.terms.tolist(),
            "weights": self.model.weights.tolist(),
            "similarity_decay": SIMILARITY_DECAY,
            "back_off": BACK_OFF,
            "rho": features.from_graph.rho,
        }


def fit_forecaster(
    graph: SubtaskGraph, task: Demonstrations, transfer: TransferPrior | None = None
) -> LearnedForecaster:
    """Learn to rank the next steps from the videos of a task, on top of a graph, and of what other tasks say."""
    sequences = training_sequences(graph, task_of_graph(graph, task))
    from_graph = GraphFeatures(RunStateTracker(graph), RHO).look_up(sequences)

    def extractor_from(others: Sequence[StepIndices]) -> ForecastFeatures:
        return fit_features(others, graph, transfer, from_graph)

    trials = (
        (cross_fit_choices(others, extractor_from), observed_choices(held_out, extractor_from(others)))
        for held_out, others in k_fold_split(sequences)
        if len(sequences) > 1
    )
    prior = DEFAULT_PRIOR if transfer is None else transfer.weights
    penalty = best_penalty(trials, prior, PENALTIES)
    model = fit_conditional_logit(cross_fit_choices(sequences, extractor_from), penalty, prior)
    return LearnedForecaster(fit_features(sequences, graph, transfer), model)


def observed_choices(sequences: Sequence[StepIndices], extractor: ForecastFeatures) -> ObservedChoices:
    """Every step of some videos as a choice."""
    choices = PastChoices.from_sequences(sequences, len(extractor.graph.steps))
    return ObservedChoices(extractor.choice_sets(choices.contexts), choices.chosen)


def cross_fit_choices(
    sequences: Sequence[StepIndices], extractor_from: Callable[[Sequence[StepIndices]], ForecastFeatures]
) -> ObservedChoices:
    """Every step as a choice, with features from the videos of the other folds."""
    return concatenate_choices(
        [observed_choices(inside, extractor_from(others)) for inside, others in k_fold_split(sequences)]
    )


def k_fold_split(
    sequences: Sequence[StepIndices], folds: int = FOLDS
) -> list[tuple[Sequence[StepIndices], Sequence[StepIndices]]]:
    """Each fold, and all the other folds."""
    used = max(1, min(folds, len(sequences)))
    return [
        (sequences[fold::used], [sequence for number, sequence in enumerate(sequences) if number % used != fold])
        for fold in range(used)
    ]


def training_sequences(graph: SubtaskGraph, task: Task) -> Sequence[StepIndices]:
    """The steps of videos that a forecaster learns from."""
    sequences = [step_indices(video.sequence(), graph) for video in task if video.segments]
    most = max(2 * FOLDS, MAX_LABELS * len(sequences) // max(sum(map(len, sequences)), 1))
    return subsample_evenly(sequences, most)


def subsample_evenly(items: Sequence[Element], most: int) -> Sequence[Element]:
    """At most so many of the items, evenly spaced."""
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]


def step_indices(done: Sequence[Step], graph: SubtaskGraph) -> StepIndices:
    """The indices of steps among those of a graph, each once."""
    index = {name: number for number, name in enumerate(graph.steps)}
    for name in done:
        if name not in index:
            raise unknown_step_error(name, graph)
    return tuple(index[name] for name in dict.fromkeys(done))
