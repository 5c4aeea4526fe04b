"""The next step, learned from the videos: a conditional logit over the steps that may come.

Each step has its own coefficients for what was done, what was done last and how long ago (`msg2.assist.contexts`); all
steps share the weights of what came in similar contexts, of n-grams, transitions and usual positions, and of the graph.
The rows a model is trained on get their counts from other videos, as the rows it is asked about will (cross-fitting).
Where videos do steps again, so does the forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from msg2.assist.conditional_logit import (
    ChoiceSets,
    ConditionalLogit,
    ObservedChoices,
    Penalty,
    best_penalty,
    concatenate_choices,
    fit_conditional_logit,
)
from msg2.assist.contexts import (
    BACK_OFF,
    COUNT_FEATURES,
    SIMILARITY_DECAY,
    Contexts,
    GraphFeatures,
    NGrams,
    PastChoices,
    StepIndices,
    TransitionCounts,
    count_features,
    count_transitions,
    encode_contexts,
    similarity_features,
)
from msg2.assist.following import task_of_graph, unknown_step_error
from msg2.assist.rankers import RHO
from msg2.errors import require
from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Step, Task

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

Element = TypeVar("Element")

FEATURES = (
    "similar contexts", "n-gram", "done already", *COUNT_FEATURES, "eligible", "freshly eligible", "unmet clauses"
)  # fmt: skip
"""What all steps share the weights of, in order; counts of other tasks come after them."""
_PRIOR_WEIGHTS = {
    "after last": 0.5, "similar contexts": 0.2, "n-gram": 0.2, "after done": 0.2, "before left": 0.4, "position": 0.4,
    "freshly eligible": 0.4,
}  # fmt: skip
DEFAULT_PRIOR = np.array([_PRIOR_WEIGHTS.get(feature, 0.0) for feature in FEATURES])
"""w₀ without other tasks: with few videos nearly a bigram, which the usual order of steps and the graph correct."""
PENALTIES = (Penalty(terms=30.0, weights=100.0), Penalty(10.0, 30.0), Penalty(3.0, 30.0))
"""The best for held-out videos is taken."""
FOLDS = 5
"""Of the videos: for the penalties, and for counts that a context is not part of."""
QUICK_LABELS = 2000
"""Labels among which similar contexts are looked for, and with which penalties are compared."""
MAX_CELLS = 150_000
"""Labels times steps that the coefficients are learned from, but no fewer than the labels above."""


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
    n_grams: NGrams
    from_graph: GraphFeatures
    transfer: TransferPrior | None

    def choice_sets(self, contexts: Contexts) -> ChoiceSets:
        """Context and features of each step that may come."""
        features = [
            similarity_features(contexts, self.past),
            self.n_grams.log_probabilities(contexts),
            (contexts.done * contexts.open)[..., None],
            count_features(contexts, self.counts),
            self.from_graph.of(contexts),
        ]
        if self.transfer is not None:
            features.append(count_features(contexts, self.transfer.counts))
        return ChoiceSets(contexts.context, np.concatenate(features, axis=2), contexts.open)


def fit_features(
    sequences: Sequence[StepIndices],
    graph: SubtaskGraph,
    transfer: TransferPrior | None = None,
    from_graph: GraphFeatures | None = None,
) -> ForecastFeatures:
    """Count what the features are made of."""
    size = len(graph.steps)
    counts = count_transitions(sequences, size)
    past = PastChoices.from_sequences(limit_labels(sequences, QUICK_LABELS), size)
    said = from_graph or GraphFeatures(graph, RHO)
    return ForecastFeatures(graph, sequences, counts, past, NGrams.count(sequences, size), said, transfer)


@dataclass(frozen=True, slots=True, eq=False)
class LearnedForecaster:
    """A ranker: called with the steps done so far, it gives the probability of each step that is left."""

    extractor: ForecastFeatures
    model: ConditionalLogit

    def __call__(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """In the order of the graph; a step that the graph does not have is an `InputError`."""
        (probabilities,) = self.after([step_indices(done, self.extractor.graph)])
        steps = self.extractor.graph.steps
        return {name: share for name, share in zip(steps, probabilities.tolist(), strict=True) if share > 0}

    @property
    def repeated(self) -> frozenset[int]:
        """The steps that some video does again."""
        return frozenset(np.flatnonzero(self.extractor.past.repeated).tolist())

    def after(self, prefixes: Sequence[StepIndices]) -> FloatArray:
        """The probability of each step after each of some beginnings, shape (n, N); 0 where all is done."""
        size, repeated = len(self.extractor.graph.steps), self.extractor.past.repeated
        asked = [row for row, prefix in enumerate(prefixes) if repeated.any() or len(set(prefix)) < size]
        shares = np.zeros((len(prefixes), size))
        if asked:
            contexts = encode_contexts([prefixes[row] for row in asked], size, repeated)
            shares[asked] = np.exp(self.model.log_probabilities(self.extractor.choice_sets(contexts)))
        return shares

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
    graph: SubtaskGraph, task: Demonstrations, transfer: TransferPrior | None = None, labels: int | None = None
) -> LearnedForecaster:
    """Learn to rank the next steps from the videos of a task, on top of a graph, and of what other tasks say.

    Of more `labels`, videos are taken evenly; by default of as many as can be learned from in a second or two.
    """
    sequences = training_sequences(graph, task_of_graph(graph, task), labels)
    from_graph = GraphFeatures(graph, RHO)

    def extractor_from(others: Sequence[StepIndices]) -> ForecastFeatures:
        return fit_features(others, graph, transfer, from_graph)

    trials = (
        (cross_fit_choices(others, extractor_from), observed_choices(held_out, extractor_from(others)))
        for held_out, others in k_fold_split(limit_labels(sequences, QUICK_LABELS))
        if len(sequences) > 1
    )
    prior = DEFAULT_PRIOR if transfer is None else transfer.weights
    penalty, start = best_penalty(trials, prior, PENALTIES)
    model = fit_conditional_logit(cross_fit_choices(sequences, extractor_from), penalty, prior, start)
    return LearnedForecaster(extractor_from(sequences), model)


def load_forecaster(graph: SubtaskGraph, task: Task, model: ConditionalLogit) -> LearnedForecaster:
    """The forecaster of a model that was fitted to the same videos before."""
    return LearnedForecaster(fit_features(training_sequences(graph, task), graph), model)


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


def training_sequences(graph: SubtaskGraph, task: Task, labels: int | None = None) -> Sequence[StepIndices]:
    """The steps of videos that a forecaster learns from, with about so many labels at most."""
    sequences = [step_indices([s.step for s in video.segments], graph) for video in task if video.segments]
    return limit_labels(sequences, labels or max(QUICK_LABELS, MAX_CELLS // max(len(graph.steps), 1)))


def limit_labels(sequences: Sequence[StepIndices], labels: int) -> Sequence[StepIndices]:
    """About so many labels at most, of evenly spaced videos."""
    return subsample_evenly(sequences, max(2 * FOLDS, labels * len(sequences) // max(sum(map(len, sequences)), 1)))


def subsample_evenly(items: Sequence[Element], most: int) -> Sequence[Element]:
    """At most so many of the items, evenly spaced."""
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]


def step_indices(done: Sequence[Step], graph: SubtaskGraph) -> StepIndices:
    """The indices of steps among those of a graph."""
    index = {name: number for number, name in enumerate(graph.steps)}
    for name in done:
        if name not in index:
            raise unknown_step_error(name, graph)
    return tuple(index[name] for name in done)
