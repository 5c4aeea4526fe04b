"""What other tasks say about this one, for a task with few videos: steps with similar names behave alike.

With s[a, n] the similarity of step a of another task to step n of this one, its counts are carried over as

    shown'[n] = Σ_a s[a, n] shown[a],        before'[m, n] = Σ_{a, b} s[a, m] before[a, b] s[b, n],

summed over all tasks. How much they are worth is found on the other tasks: each in turn is forecast from as few videos
of its own as this one has, and from the rest of the tasks; the weights that were right there are where this one starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from msg2.assist.conditional_logit import (
    ChoiceSets,
    ObservedChoices,
    Penalty,
    concatenate_choices,
    fit_conditional_logit,
)
from msg2.assist.contexts import COUNT_FEATURES, StepIndices, TransitionCounts, count_transitions
from msg2.assist.learned_forecaster import (
    DEFAULT_PRIOR,
    TransferPrior,
    fit_features,
    observed_choices,
    subsample_evenly,
    training_sequences,
)
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.inference.likelihood.score import NameEncoder
from msg2.sequences import FloatArray
from msg2.task import Step, Task
from msg2.text import short_repr

SHARPNESS = 2.0
"""How much more alike step names count than half alike ones."""
TRANSFER_PENALTY = Penalty(terms=1.0, weights=3.0)
"""Of the weights that other tasks give."""
HELD_OUT_VIDEOS = 40
"""Videos per other task on which these weights are learned."""


@dataclass(frozen=True, slots=True, eq=False)
class _SourceTask:
    """Another task: a graph without preconditions, its sequences, their counts, and `vectors` of its step names."""

    graph: SubtaskGraph
    sequences: Sequence[StepIndices]
    counts: TransitionCounts
    vectors: FloatArray


def fit_transfer_prior(graph: SubtaskGraph, videos: int, others: Iterable[Task], encode: NameEncoder) -> TransferPrior:
    """Learn what other tasks say about the steps of a graph.

    Parameters
    ----------
    graph : SubtaskGraph
        Of the target task.
    videos : int
        Videos of its own that the target task has.
    others : iterable of Task
        Tasks to learn from; one with the name of the target is left out.
    encode : NameEncoder
        From names of steps to vectors, whose cosines are the similarities.

    Returns
    -------
    TransferPrior
        For `fit_forecaster`.

    Raises
    ------
    InputError
        Without any other task, or where the vectors do not have the right shape.
    """
    tasks = sorted((task for task in others if task.name != graph.task and len(task)), key=lambda task: task.name)
    if not tasks:
        raise InputError(f"there is no task other than {short_repr(graph.task)} to borrow from")
    sources = [_source_task(task, encode) for task in tasks]
    weights = np.concatenate([DEFAULT_PRIOR, np.zeros(len(COUNT_FEATURES))])
    if len(sources) > 1:
        choices = _pad_and_concatenate([_held_out_choices(one, sources, videos) for one in sources])
        weights = fit_conditional_logit(choices, TRANSFER_PENALTY, weights).weights
    return TransferPrior(_transfer_counts(sources, _encode_names(graph.steps, encode)), weights)


def _source_task(task: Task, encode: NameEncoder) -> _SourceTask:
    graph = SubtaskGraph(task.name, task.steps, {})
    sequences = training_sequences(graph, task)
    return _SourceTask(
        graph, sequences, count_transitions(sequences, len(graph.steps)), _encode_names(graph.steps, encode)
    )


def _held_out_choices(target: _SourceTask, sources: Sequence[_SourceTask], videos: int) -> ObservedChoices:
    """The choices in some videos of `target`, as they look from `videos` other ones and from the other sources."""
    size = len(target.sequences)
    own = set(subsample_evenly(range(size), min(videos, (size + 1) // 2)))
    held_out = subsample_evenly([number for number in range(size) if number not in own], HELD_OUT_VIDEOS)
    counts = _transfer_counts([one for one in sources if one is not target], target.vectors)
    extractor = fit_features([target.sequences[n] for n in own], target.graph, TransferPrior(counts, np.zeros(0)))
    return observed_choices([target.sequences[number] for number in held_out], extractor)


def _transfer_counts(sources: Sequence[_SourceTask], vectors: FloatArray) -> TransitionCounts:
    """The counts of all sources, for steps with these name `vectors` of shape (N, width)."""
    return reduce(add, (_map_counts(one.counts, sharpened_similarity(one.vectors, vectors)) for one in sources))


def sharpened_similarity(theirs: FloatArray, ours: FloatArray) -> FloatArray:
    """s[a, n] = max(0, cosine)^sharpness.

    Parameters
    ----------
    theirs, ours : array of shape (steps, width)
        Vectors of length 1 of the names of steps.

    Returns
    -------
    array of shape (their steps, our steps)
    """
    return np.asarray(np.clip(theirs @ ours.T, 0.0, 1.0) ** SHARPNESS)


def _map_counts(counts: TransitionCounts, similarity: FloatArray) -> TransitionCounts:
    """`counts` of one task's steps as counts of another's; the start of a video is the start of a video."""
    from_start = np.pad(similarity, (0, 1))
    from_start[-1, -1] = 1.0
    return TransitionCounts(
        videos=counts.videos * similarity.sum(axis=0),
        shown=counts.shown @ similarity,
        again=counts.again @ similarity,
        positions=counts.positions @ similarity,
        after=from_start.T @ counts.after @ similarity,
        second=from_start.T @ counts.second @ similarity,
        before=similarity.T @ counts.before @ similarity,
    )


def _encode_names(names: Sequence[Step], encode: NameEncoder) -> FloatArray:
    """Vectors of length 1 (or 0, where a name says nothing), shape (n, width)."""
    vectors = np.asarray(encode(list(names)), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise InputError(f"the text encoder gave an array of shape {vectors.shape} for {len(names)} texts")
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _pad_and_concatenate(parts: Sequence[ObservedChoices]) -> ObservedChoices:
    """Choices of tasks with different numbers of steps as one; a step that a task lacks is never available."""
    most = max(part.choice_sets.available.shape[1] for part in parts)
    padded = []
    for part in parts:
        sets, extra = part.choice_sets, most - part.choice_sets.available.shape[1]
        features = np.pad(sets.features, ((0, 0), (0, extra), (0, 0)))
        available = np.pad(sets.available, ((0, 0), (0, extra)))
        padded.append(ObservedChoices(ChoiceSets(np.zeros((len(part.chosen), 0)), features, available), part.chosen))
    return concatenate_choices(padded)
