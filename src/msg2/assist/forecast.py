"""What comes next, learnt from the videos: a softmax over the steps that are left (see `msg2.assist.choice`).

Each step answers for itself to what was done, what was done last and how long ago; all steps share the weights of what
came in similar situations, of transitions and usual places, and of the graph. The rows a model is trained on get their
counts from other videos, as the rows it is asked about will.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.assist.choice import Choices, Model, Moments, Numbers, best_penalty, fitted, joined, penalties
from msg2.assist.progress import unknown_step
from msg2.assist.situations import (
    COUNTED,
    Counts,
    Places,
    Situations,
    counted,
    counts,
    similar,
    situations,
    under_graph,
)
from msg2.graph import SubtaskGraph
from msg2.options import ForecastOptions, NextStepOptions
from msg2.task import Step, Task

Item = TypeVar("Item")

FEATURES = ("similar situations", *COUNTED, "eligible", "freshly eligible", "unmet clauses")
"""What all steps share the weights of, in order; borrowed counts come after them."""
OWN_PRIOR = np.eye(len(FEATURES))[0]
"""w₀ without other tasks: what came in similar situations, as it stands."""


@dataclass(frozen=True, slots=True, eq=False)
class Borrowed:
    """What other tasks say about the steps of this one: `counts`, and the `weights` w₀ that proved right there."""

    counts: Counts
    weights: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What videos of the task, its graph and other tasks tell about a situation."""

    graph: SubtaskGraph
    counts: Counts
    past: Situations
    came: NDArray[np.intp]
    borrowed: Borrowed | None
    options: ForecastOptions

    def moments(self, seen: Situations) -> Moments:
        """Context and features of the situations."""
        features = [
            similar(seen, self.past, self.came, self.options),
            counted(seen, self.counts),
            under_graph(seen, self.graph, NextStepOptions().rho),
        ]
        if self.borrowed is not None:
            features.append(counted(seen, self.borrowed.counts))
        return Moments(seen.context, np.concatenate(features, axis=2), seen.left)


def known(
    sequences: Sequence[Places], graph: SubtaskGraph, options: ForecastOptions, borrowed: Borrowed | None = None
) -> Known:
    """What is known from these sequences of steps."""
    past, came = places_of(sequences, len(graph.steps))
    return Known(graph, counts(sequences, len(graph.steps)), past, came, borrowed, options)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """A ranker: called with the steps done so far, it gives the probability of each step that is left."""

    known: Known
    model: Model

    def __call__(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """In the order of the graph; a step that the graph does not have is an `InputError`."""
        steps = self.known.graph.steps
        prefix = places(done, self.known.graph)
        if len(prefix) == len(steps):
            return {}
        moments = self.known.moments(situations([prefix], len(steps)))
        chances = np.exp(self.model.log_probabilities(moments)[0]).tolist()
        return {name: chances[place] for place, name in enumerate(steps) if place not in prefix}


def learned(
    graph: SubtaskGraph, task: Task, options: ForecastOptions | None = None, borrowed: Borrowed | None = None
) -> Learned:
    """The ranker learnt from the videos of `task`, on top of a graph of the same steps.

    `borrowed` is what other tasks know (see `msg2.assist.transfer.borrowed`).

    >>> from msg2.task import Segment, Video
    >>> task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc")) for n in range(9)])
    >>> best = learned(SubtaskGraph("t", "abc", {}), task)(["a"])
    >>> max(best, key=best.get), round(sum(best.values()), 6)
    ('b', 1.0)
    """
    options = options or ForecastOptions()
    sequences = thinned([places(video.sequence(), graph) for video in task], options.most_videos)

    def known_from(others: Sequence[Places]) -> Known:
        return known(others, graph, options, borrowed)

    trials = (
        (crossed(others, known_from, options.folds), choices(held_out, known_from(others)))
        for held_out, others in folded(sequences, options.folds)
        if len(sequences) > 1
    )
    prior = OWN_PRIOR if borrowed is None else borrowed.weights
    penalty = best_penalty(trials, prior, penalties(options.term_penalties, options.weight_penalties))
    model = fitted(crossed(sequences, known_from, options.folds), penalty, prior)
    return Learned(known_from(sequences), model)


def choices(sequences: Sequence[Places], from_others: Known) -> Choices:
    """Every step of `sequences` as a choice, with what is known from other videos."""
    seen, came = places_of(sequences, len(from_others.graph.steps))
    return Choices(from_others.moments(seen), came)


def crossed(sequences: Sequence[Places], known_from: Callable[[Sequence[Places]], Known], folds: int) -> Choices:
    """Every step of `sequences` as a choice, with what is known from the sequences of other folds."""
    return joined([choices(inside, known_from(others)) for inside, others in folded(sequences, folds)])


def folded(sequences: Sequence[Places], folds: int) -> list[tuple[Sequence[Places], Sequence[Places]]]:
    """Each fold, and all the other folds; at most as many folds as there are sequences, and at least one.

    >>> folded([(0,), (1,), (2,)], 2)
    [([(0,), (2,)], [(1,)]), ([(1,)], [(0,), (2,)])]
    """
    used = max(1, min(folds, len(sequences)))
    numbered = list(enumerate(sequences))
    return [
        ([one for number, one in numbered if number % used == fold], [one for n, one in numbered if n % used != fold])
        for fold in range(used)
    ]


def places_of(sequences: Sequence[Places], size: int) -> tuple[Situations, NDArray[np.intp]]:
    """The situation before every step of every sequence, and the step that came."""
    prefixes = [sequence[:place] for sequence in sequences for place in range(len(sequence))]
    came = [step for sequence in sequences for step in sequence]
    return situations(prefixes, size), np.array(came, dtype=np.intp)


def thinned(items: Sequence[Item], most: int) -> Sequence[Item]:
    """At most so many of them, evenly spaced.

    >>> thinned("abcd", 2)
    ['a', 'c']
    """
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]


def places(done: Sequence[Step], graph: SubtaskGraph) -> Places:
    """The places of the steps in the graph, each once; an unknown step is an `InputError`."""
    place_of = {name: place for place, name in enumerate(graph.steps)}
    for name in done:
        if name not in place_of:
            raise unknown_step(name, graph)
    return tuple(place_of[name] for name in dict.fromkeys(done))
