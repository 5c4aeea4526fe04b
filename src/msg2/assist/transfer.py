"""What other tasks say about this one, for a task with few videos: steps with similar names behave alike.

With s[a, n] the likeness of step a of another task to step n of this one, its counts are carried over as

    shown'[n] = Σ_a s[a, n] shown[a],        before'[m, n] = Σ_{a, b} s[a, m] before[a, b] s[b, n],

summed over all tasks. How much they are worth is found on the other tasks: each in turn is forecast from as few videos
of its own as this one has, and from the rest of the tasks; the weights that were right there are where this one starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.choice import Choices, Moments, Numbers, Penalty, fitted, joined
from msg2.assist.forecast import OWN_PRIOR, Borrowed, choices, known, places, thinned
from msg2.assist.situations import COUNTED, Counts, Places, counts
from msg2.errors import InputError, shortened
from msg2.graph import SubtaskGraph
from msg2.options import ForecastOptions
from msg2.task import Step, Task

TextEncoder: TypeAlias = Callable[[Sequence[str]], NDArray[Any]]
"""From n texts to vectors of shape (n, width); the cosine of two vectors is their likeness."""


@dataclass(frozen=True, slots=True, eq=False)
class _Lender:
    """Another task: a graph without preconditions, its sequences, their counts, and `vectors` of its step names."""

    graph: SubtaskGraph
    sequences: Sequence[Places]
    counts: Counts
    vectors: Numbers


def borrowed(
    graph: SubtaskGraph,
    videos: int,
    others: Iterable[Task],
    encode: TextEncoder,
    options: ForecastOptions | None = None,
) -> Borrowed:
    """What `others` say about the steps of `graph`, whose task has so many `videos` of its own.

    A task of the same name is left out: nothing is borrowed from the videos of the task itself.
    """
    options = options or ForecastOptions()
    tasks = sorted((task for task in others if task.name != graph.task and len(task)), key=lambda task: task.name)
    if not tasks:
        raise InputError(f"there is no task other than {shortened(graph.task)} to borrow from")
    lenders = [_lender(task, encode, options) for task in tasks]
    weights = np.concatenate([OWN_PRIOR, np.zeros(len(COUNTED))])
    if len(lenders) > 1:
        tried = _padded([_rehearsed(one, lenders, videos, options) for one in lenders])
        weights = fitted(tried, Penalty(1.0, options.lent_penalty), weights).weights
    return Borrowed(_carried_over(lenders, _vectors(graph.steps, encode), options), weights)


def _lender(task: Task, encode: TextEncoder, options: ForecastOptions) -> _Lender:
    graph = SubtaskGraph(task.name, task.steps, {})
    sequences = thinned([places(video.sequence(), graph) for video in task], options.most_videos)
    return _Lender(graph, sequences, counts(sequences, len(graph.steps)), _vectors(graph.steps, encode))


def _rehearsed(target: _Lender, lenders: Sequence[_Lender], videos: int, options: ForecastOptions) -> Choices:
    """The choices in some videos of `target`, as they look from `videos` other ones and from the other lenders."""
    size = len(target.sequences)
    own = set(thinned(range(size), min(videos, (size + 1) // 2)))
    asked = thinned([number for number in range(size) if number not in own], options.rehearsals)
    lent = _carried_over([one for one in lenders if one is not target], target.vectors, options)
    seen = known([target.sequences[n] for n in own], target.graph, options, Borrowed(lent, np.zeros(0)))
    return choices([target.sequences[number] for number in asked], seen)


def _carried_over(lenders: Sequence[_Lender], vectors: Numbers, options: ForecastOptions) -> Counts:
    """The counts of all lenders, for steps with these name `vectors` of shape (N, width)."""
    return reduce(add, (_translated(one.counts, likeness(one.vectors, vectors, options.sharpness)) for one in lenders))


def likeness(theirs: Numbers, ours: Numbers, sharpness: float) -> Numbers:
    """s[a, n] = max(0, cosine)^sharpness, shape (theirs, ours)."""
    return np.asarray(np.clip(theirs @ ours.T, 0.0, 1.0) ** sharpness)


def _translated(counts: Counts, alike: Numbers) -> Counts:
    """`counts` of one task's steps as counts of another's; the start of a video is the start of a video."""
    from_start = np.pad(alike, (0, 1))
    from_start[-1, -1] = 1.0
    return Counts(
        videos=counts.videos * alike.sum(axis=0),
        shown=counts.shown @ alike,
        places=counts.places @ alike,
        after=from_start.T @ counts.after @ alike,
        second=from_start.T @ counts.second @ alike,
        before=alike.T @ counts.before @ alike,
    )


def _vectors(names: Sequence[Step], encode: TextEncoder) -> Numbers:
    """Vectors of length 1 (or 0, where a name says nothing), shape (n, width)."""
    vectors = np.asarray(encode(list(names)), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise InputError(f"the text encoder gave an array of shape {vectors.shape} for {len(names)} texts")
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _padded(parts: Sequence[Choices]) -> Choices:
    """Choices of tasks with different numbers of steps as one; a step that a task lacks is never open."""
    most = max(part.moments.open.shape[1] for part in parts)
    wide = []
    for part in parts:
        extra = most - part.moments.open.shape[1]
        features = np.pad(part.moments.features, ((0, 0), (0, extra), (0, 0)))
        moments = Moments(np.zeros((len(part.came), 0)), features, np.pad(part.moments.open, ((0, 0), (0, extra))))
        wide.append(Choices(moments, part.came))
    return joined(wide)
