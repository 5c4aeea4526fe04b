"""What is known beforehand: steps that must come before others, and steps that must not be asked for.

Required a<b: b is never eligible before a is completed, whichever way is taken. Forbidden a<b: a is no ancestor of b,
neither in its precondition nor in those of its ancestors. Both are obeyed exactly, whatever the method: the learnt
preconditions are repaired. Hints are softer: n videos that show nothing but a, then b, are learnt from as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, all_of, step
from msg2.graph.reduction import required_steps
from msg2.inference.clauses import keep_clauses, reduce_changed, replace_preconditions
from msg2.inference.relations import Relation, transitive_closure
from msg2.inference.result import LearnedPreconditions
from msg2.sequences import Sequences
from msg2.task import Segment, Step, Task, Video
from msg2.text import short_repr

StepPair: TypeAlias = tuple[Step, Step]
"""(before, after)."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Pairs (before, after) that are `required` or `forbidden`, and `hints` (before, after, videos).

    What contradicts itself is refused, and the contradiction is named.

    >>> Constraints(required=[("boil", "pour"), ("pour", "drink")], forbidden=[("boil", "drink")])
    Traceback (most recent call last):
    msg2.errors.InputError: boil<drink is forbidden, but it follows from what is required: boil<pour, pour<drink
    """

    required: frozenset[StepPair]
    forbidden: frozenset[StepPair]
    hints: frozenset[tuple[Step, Step, int]]

    def __init__(
        self,
        required: Iterable[StepPair] = (),
        forbidden: Iterable[StepPair] = (),
        hints: Iterable[tuple[Step, Step, int]] = (),
    ) -> None:
        object.__setattr__(self, "required", frozenset(required))
        object.__setattr__(self, "forbidden", frozenset(forbidden))
        object.__setattr__(self, "hints", frozenset(hints))
        for before, after in sorted(self.pairs):
            if before == after:
                raise InputError(f"{_format_pair(before, after)} speaks of one step only")
        for before, after, videos in sorted(self.hints):
            if videos < 1:
                raise InputError(f"{_format_pair(before, after)} has the weight {videos}, it must be 1 or more videos")
        for before, after in sorted(self.required):
            if back := _shortest_path(self.required, after, before):
                raise InputError(f"what is required runs in a circle: {_format_path([before, *back])}")
        for before, after in sorted(self.forbidden):
            if way := _shortest_path(self.required, before, after):
                pair, path = _format_pair(before, after), _format_path(way)
                raise InputError(f"{pair} is forbidden, but it follows from what is required: {path}")

    @property
    def pairs(self) -> frozenset[StepPair]:
        """All pairs that it speaks of."""
        return self.required | self.forbidden | {(before, after) for before, after, _ in self.hints}

    def about(self, steps: Iterable[Step]) -> Constraints:
        """The part that speaks of these steps only."""
        known = frozenset(steps)

        def part(pairs: frozenset[Any]) -> frozenset[Any]:
            return frozenset(pair for pair in pairs if known.issuperset(pair[:2]))

        return Constraints(part(self.required), part(self.forbidden), part(self.hints))

    def check(self, task: Task) -> None:
        """Refuse constraints about steps that the task does not have."""
        for name in sorted({name for pair in self.pairs for name in pair} - set(task.steps)):
            raise InputError(f"{short_repr(name)} is required, forbidden or hinted at, but no step of {task.name!r}")

    def to_json(self) -> dict[str, list[Any]]:
        """As it stands in a graph file; nothing is said of what there is none of.

        >>> Constraints(required=[("boil", "pour")]).to_json()
        {'required': [['boil', 'pour']]}
        """
        kinds = {"required": self.required, "forbidden": self.forbidden, "hints": self.hints}
        return {kind: [list(pair) for pair in sorted(pairs)] for kind, pairs in kinds.items() if pairs}


@dataclass(frozen=True, slots=True)
class ConstrainedLearner:
    """A method that obeys: it learns from the hints as well, and what it has learnt is repaired."""

    learn: Callable[..., LearnedPreconditions]
    """Of any method, with options of its own class."""
    constraints: Constraints

    def __call__(self, sequences: Sequences, options: Any) -> LearnedPreconditions:
        """What is learnt from `sequences`, as `learn` of any method."""
        learnt = self.learn(_add_hint_videos(sequences, self.constraints), options)
        return replace_preconditions(
            learnt, apply_constraints(sequences.steps, learnt.preconditions, self.constraints, sequences.before)
        )


def apply_constraints(
    steps: tuple[Step, ...], preconditions: Mapping[Step, Formula], constraints: Constraints, before: NDArray[np.int64]
) -> dict[Step, Formula]:
    """Repair preconditions so that they obey constraints.

    Only clauses that contradict the constraints go, each as a whole, and none that could have stayed. What is required
    and not said is added.

    Parameters
    ----------
    steps : tuple of str
        All steps.
    preconditions : mapping of str to Formula
        What was learned.
    constraints : Constraints
        What must hold.
    before : array of shape (steps, steps)
        How often one step came before another: where one of several relations has to go, the clearer ones stay.

    Returns
    -------
    dict of str to Formula
        The preconditions of all steps.

    >>> chain = {"b": step("a"), "c": step("b")}
    >>> constraints, before = Constraints(forbidden=[("b", "c")]), np.zeros((3, 3), dtype=np.int64)
    >>> repaired = apply_constraints(("a", "b", "c"), chain, constraints, before)
    >>> str(repaired["b"]), str(repaired["c"])
    ('a', 'a')
    """
    graph = SubtaskGraph("", steps, preconditions)
    index = {name: place for place, name in enumerate(steps)}
    known = transitive_closure(_relation_matrix(constraints.required, index))
    order = _largest_consistent_order(
        graph.ancestor_matrix_in_order(steps), known, _relation_matrix(constraints.forbidden, index), before
    )

    def allowed(name: Step, clause: Formula) -> bool:
        column = index[name]
        rows = [index[one] for one in clause.steps]
        # Neither "never", nor a NOT of something that must come first, says what comes before a step.
        hopeless = "not" in clause.kinds and known[rows or slice(None), column].any()
        return bool(order[rows, column].all()) and not hopeless

    formulas = keep_clauses(graph, allowed)
    needed: dict[Step, frozenset[Step]] = {}
    for name in sorted(steps, key=lambda name: (order[:, index[name]].sum(), name)):  # in that order, or one like it
        missing = {one for one, other in constraints.required if other == name} - required_steps(formulas[name], needed)
        formulas[name] = all_of([formulas[name], *map(step, sorted(missing))])
        needed[name] = required_steps(formulas[name], needed)
    return reduce_changed(SubtaskGraph("", steps, formulas), preconditions)


def _largest_consistent_order(
    learnt: Relation, known: Relation, forbidden: Relation, before: NDArray[np.int64]
) -> Relation:
    """A strict order with all that is `known`, nothing `forbidden`, and as many `learnt` pairs as can be.

    Pairs that no contradiction leads through are in it. The others join one by one, those that most videos agree on
    first, unless they contradict what is there already; so none that was left out could be added.
    """
    itself = np.eye(len(learnt), dtype=np.bool_)
    everything = transitive_closure(learnt | known)
    wrong = everything & (forbidden | itself)
    reach = (everything | itself).astype(np.float32)
    disputed = reach.T @ wrong.astype(np.float32) @ reach.T > 0  # [a, b]: x ≤ a and b ≤ y for a wrong pair (x, y)
    order = transitive_closure(known | (learnt & ~disputed))
    agreed = before - before.T
    for a, b in sorted(np.argwhere(learnt & disputed).tolist(), key=lambda pair: (-agreed[*pair], pair)):
        implied = np.outer(order[:, a] | itself[a], order[b] | itself[b])
        if not (implied & (forbidden | itself | order.T)).any():
            order |= implied
    return order


def _relation_matrix(pairs: Iterable[StepPair], index: Mapping[Step, int]) -> Relation:
    relation = np.zeros((len(index), len(index)), dtype=np.bool_)
    for before, after in pairs:
        relation[index[before], index[after]] = True
    return relation


def _add_hint_videos(sequences: Sequences, constraints: Constraints) -> Sequences:
    """The sequences with the videos of the hints: each shows one step, then another."""
    shown = [
        Video(f"{number}.{copy}", [Segment(before), Segment(after)])
        for number, (before, after, videos) in enumerate(sorted(constraints.hints))
        for copy in range(videos)
    ]
    return sequences.concatenate(Sequences.from_task(Task("hints", sequences.steps, shown))) if shown else sequences


def _shortest_path(pairs: frozenset[StepPair], start: Step, end: Step) -> list[Step]:
    """The shortest way through the pairs, by name of equal ones; none where there is none."""
    ways = {start: [start]}
    for here in (queue := [start]):
        for _, there in sorted(pair for pair in pairs if pair[0] == here):
            if there not in ways:
                ways[there] = [*ways[here], there]
                queue.append(there)
    return ways.get(end, [])


def _format_pair(before: Step, after: Step) -> str:
    return f"{before}<{after}"


def _format_path(steps: Iterable[Step]) -> str:
    return ", ".join(_format_pair(*pair) for pair in pairwise(steps))
