"""The next step, learned from the videos: a conditional logit over the steps that are left.

Each step has its own coefficients for what was done, what was done last and how long ago; all steps share the weights
of what came in similar contexts, of transitions and usual positions, and of the graph. The rows a model is trained on
get their counts from other videos, as the rows it is asked about will (cross-fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from msg2.arrays import FloatArray
from msg2.assist.conditional_logit import (
    ChoiceSets,
    ConditionalLogit,
    ObservedChoices,
    Penalty,
    best_penalty,
    concatenate_choices,
    fit_conditional_logit,
)
from msg2.assist.context_features import (
    BACK_OFF,
    COUNT_FEATURES,
    SIMILARITY_DECAY,
    Contexts,
    GraphFeatures,
    PastChoices,
    StepIndices,
    TransitionCounts,
    count_features,
    count_transitions,
    encode_contexts,
    similarity_features,
)
from msg2.assist.next_step import RHO
from msg2.assist.run_state import RunStateTracker, unknown_step_error
from msg2.graph import SubtaskGraph
from msg2.task import Step, Task
from msg2.validation import require

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
    sequences: Sequence[StepIndices]
    """The steps of each video."""
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
    """Count what the features are made of.

    Parameters
    ----------
    sequences : sequence of StepIndices
        The steps of each video.
    graph : SubtaskGraph
        Of the same steps.
    transfer : TransferPrior, optional
        What other tasks say.
    from_graph : GraphFeatures, optional
        What the graph says, where that is known already.

    Returns
    -------
    ForecastFeatures
    """
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

    def to_json(self) -> dict[str, Any]:
        """Plain values that, with the graph, give the same probabilities elsewhere; steps are places among `steps`.

        What other tasks say is not among them: a forecaster that uses it is an `InputError`.
        """
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


def fit_forecaster(graph: SubtaskGraph, task: Task, transfer: TransferPrior | None = None) -> LearnedForecaster:
    """Learn to rank the next steps from the videos of a task, on top of a graph.

    Parameters
    ----------
    graph : SubtaskGraph
        Of the same steps; it may have no preconditions.
    task : Task
        The training videos.
    transfer : TransferPrior, optional
        What other tasks say; `experiments.forecasting.transfer_learning` learns it.

    Returns
    -------
    LearnedForecaster
        A ranker.

    Raises
    ------
    InputError
        For a step that the graph does not have.

    >>> from msg2.task import Segment, Video
    >>> task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc")) for n in range(9)])
    >>> best = fit_forecaster(SubtaskGraph("t", "abc", {}), task)(["a"])
    >>> max(best, key=best.get), round(sum(best.values()), 6)
    ('b', 1.0)
    """
    sequences = training_sequences(graph, task)
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
    """Every step of some videos as a choice.

    Parameters
    ----------
    sequences : sequence of StepIndices
        The steps of each video.
    extractor : ForecastFeatures
        Fitted on other videos.

    Returns
    -------
    ObservedChoices
    """
    choices = PastChoices.from_sequences(sequences, len(extractor.graph.steps))
    return ObservedChoices(extractor.choice_sets(choices.contexts), choices.chosen)


def cross_fit_choices(
    sequences: Sequence[StepIndices], extractor_from: Callable[[Sequence[StepIndices]], ForecastFeatures]
) -> ObservedChoices:
    """Every step as a choice, with features from the videos of the other folds.

    Parameters
    ----------
    sequences : sequence of StepIndices
        The steps of each video.
    extractor_from : callable
        From sequences to a `ForecastFeatures`.

    Returns
    -------
    ObservedChoices
    """
    return concatenate_choices(
        [observed_choices(inside, extractor_from(others)) for inside, others in k_fold_split(sequences)]
    )


def k_fold_split(
    sequences: Sequence[StepIndices], folds: int = FOLDS
) -> list[tuple[Sequence[StepIndices], Sequence[StepIndices]]]:
    """Each fold, and all the other folds.

    Parameters
    ----------
    sequences : sequence of StepIndices
        The steps of each video.
    folds : int
        Number of folds; at most as many as there are sequences, and at least one, are made.

    Returns
    -------
    list of (fold, others)

    >>> k_fold_split([(0,), (1,), (2,)], 2)
    [([(0,), (2,)], [(1,)]), ([(1,)], [(0,), (2,)])]
    """
    used = max(1, min(folds, len(sequences)))
    numbered = list(enumerate(sequences))
    return [
        ([one for number, one in numbered if number % used == fold], [one for n, one in numbered if n % used != fold])
        for fold in range(used)
    ]


def training_sequences(graph: SubtaskGraph, task: Task) -> Sequence[StepIndices]:
    """The steps of videos that a forecaster learns from.

    Parameters
    ----------
    graph : SubtaskGraph
        It has the steps of the task.
    task : Task
        The videos; of those with many labels together, some (`MAX_LABELS`).

    Returns
    -------
    sequence of StepIndices
        Of the videos with any step.

    Raises
    ------
    InputError
        For a step that the graph does not have.
    """
    sequences = [step_indices(video.sequence(), graph) for video in task if video.segments]
    most = max(2 * FOLDS, MAX_LABELS * len(sequences) // max(sum(map(len, sequences)), 1))
    return subsample_evenly(sequences, most)


def subsample_evenly(items: Sequence[Element], most: int) -> Sequence[Element]:
    """At most so many of the items, evenly spaced.

    Parameters
    ----------
    items : sequence
        All of them.
    most : int
        How many to keep.

    Returns
    -------
    sequence

    >>> subsample_evenly("abcd", 2)
    ['a', 'c']
    """
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]


def step_indices(done: Sequence[Step], graph: SubtaskGraph) -> StepIndices:
    """The indices of steps among those of a graph, each once.

    Parameters
    ----------
    done : sequence of Step
        In order.
    graph : SubtaskGraph
        It has these steps.

    Returns
    -------
    StepIndices

    Raises
    ------
    InputError
        For a step that the graph does not have.
    """
    index = {name: place for place, name in enumerate(graph.steps)}
    for name in done:
        if name not in index:
            raise unknown_step_error(name, graph)
    return tuple(index[name] for name in dict.fromkeys(done))
