"""What is known beforehand: steps that must come before others, and steps that must not be asked for.

Required a<b: b is never eligible before a is completed, whichever way is taken. Forbidden a<b: a is no ancestor of b,
neither in its precondition nor in those of its ancestors. Both are obeyed exactly, whatever the method: the learnt
preconditions are repaired. Hints are softer: n videos that show nothing but a, then b, are learnt from as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, shortened
from msg2.evidence import Evidence
from msg2.graph import Formula, SubtaskGraph, all_of, step
from msg2.inference.clauses import changed, kept, required_by, tidied
from msg2.inference.layers import closure
from msg2.inference.learnt import Learnt
from msg2.task import Segment, Step, Task, Video

Pair: TypeAlias = tuple[Step, Step]
"""(before, after)."""
Relation: TypeAlias = NDArray[np.bool_]
"""Shape (steps, steps): [a, b] for a before b."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Pairs (before, after) that are `required` or `forbidden`, and `hints` (before, after, videos).

    What contradicts itself is refused, and the contradiction is named.

    >>> Knowledge(required=[("boil", "pour"), ("pour", "drink")], forbidden=[("boil", "drink")])
    Traceback (most recent call last):
    msg2.errors.InputError: boil<drink is forbidden, but it follows from what is required: boil<pour, pour<drink
    """

    required: frozenset[Pair]
    forbidden: frozenset[Pair]
    hints: frozenset[tuple[Step, Step, int]]

    def __init__(
        self,
        required: Iterable[Pair] = (),
        forbidden: Iterable[Pair] = (),
        hints: Iterable[tuple[Step, Step, int]] = (),
    ) -> None:
        object.__setattr__(self, "required", frozenset(required))
        object.__setattr__(self, "forbidden", frozenset(forbidden))
        object.__setattr__(self, "hints", frozenset(hints))
        for before, after in sorted(self.pairs):
            if before == after:
                raise InputError(f"{_text(before, after)} speaks of one step only")
        for before, after, videos in sorted(self.hints):
            if videos < 1:
                raise InputError(f"{_text(before, after)} has the weight {videos}, it must be 1 or more videos")
        for before, after in sorted(self.required):
            if back := _way(self.required, after, before):
                raise InputError(f"what is required runs in a circle: {_chain([before, *back])}")
        for before, after in sorted(self.forbidden):
            if way := _way(self.required, before, after):
                what = f"{_text(before, after)} is forbidden, but it follows from what is required: {_chain(way)}"
                raise InputError(what)

    @property
    def pairs(self) -> frozenset[Pair]:
        """All pairs that it speaks of."""
        return self.required | self.forbidden | {(before, after) for before, after, _ in self.hints}

    def about(self, steps: Iterable[Step]) -> Knowledge:
        """The part that speaks of these steps only."""
        known = frozenset(steps)

        def part(pairs: frozenset[Any]) -> frozenset[Any]:
            return frozenset(pair for pair in pairs if known.issuperset(pair[:2]))

        return Knowledge(part(self.required), part(self.forbidden), part(self.hints))

    def check(self, task: Task) -> None:
        """Refuse knowledge about steps that the task does not have."""
        for name in sorted({name for pair in self.pairs for name in pair} - set(task.steps)):
            raise InputError(f"{shortened(name)} is required, forbidden or hinted at, but no step of {task.name!r}")

    def to_json(self) -> dict[str, list[Any]]:
        """As it stands in a graph file; nothing is said of what there is none of.

        >>> Knowledge(required=[("boil", "pour")]).to_json()
        {'required': [['boil', 'pour']]}
        """
        kinds = {"required": self.required, "forbidden": self.forbidden, "hints": self.hints}
        return {kind: [list(pair) for pair in sorted(pairs)] for kind, pairs in kinds.items() if pairs}


class Learning(Protocol):
    """A method: what it learns from evidence, with options of its own class."""

    def __call__(self, evidence: Evidence, options: Any) -> Learnt:
        """Preconditions, and what there is to say about them."""


@dataclass(frozen=True, slots=True)
class Obeying:
    """A method that obeys: it learns from the hints as well, and what it has learnt is repaired."""

    learn: Learning
    knowledge: Knowledge

    def __call__(self, evidence: Evidence, options: Any) -> Learnt:
        """What is learnt from `evidence`, as `learn` of any method."""
        learnt = self.learn(_hinted(evidence, self.knowledge), options)
        return changed(learnt, obeyed(evidence.steps, learnt.preconditions, self.knowledge, evidence.before))


def obeyed(
    steps: tuple[Step, ...], preconditions: Mapping[Step, Formula], knowledge: Knowledge, before: NDArray[np.int64]
) -> dict[Step, Formula]:
    """The preconditions of all steps, repaired: only clauses that contradict the knowledge go, each as a whole.

    `before` (steps, steps) counts how often one step came before another: where one of several relations has to go, the
    clearer ones stay, and none goes that could have stayed. What is required and not said is added.

    >>> chain = {"b": step("a"), "c": step("b")}
    >>> told = obeyed(("a", "b", "c"), chain, Knowledge(forbidden=[("b", "c")]), np.zeros((3, 3), dtype=np.int64))
    >>> str(told["b"]), str(told["c"])
    ('a', 'a')
    """
    graph = SubtaskGraph("", steps, preconditions)
    index = {name: place for place, name in enumerate(steps)}
    known = closure(_relation(knowledge.required, index))
    order = _agreeing(_learnt_order(graph, index), known, _relation(knowledge.forbidden, index), before)

    def allowed(name: Step, clause: Formula) -> bool:
        column = index[name]
        rows = [index[one] for one in clause.support]
        # Neither "never", nor a NOT of something that must come first, says what comes before a step.
        hopeless = "not" in clause.kinds and known[rows or slice(None), column].any()
        return bool(order[rows, column].all()) and not hopeless

    formulas = kept(graph, allowed)
    needed: dict[Step, frozenset[Step]] = {}
    for name in sorted(steps, key=lambda name: (order[:, index[name]].sum(), name)):  # in that order, or one like it
        missing = {one for one, other in knowledge.required if other == name} - required_by(formulas[name], needed)
        formulas[name] = all_of([formulas[name], *map(step, sorted(missing))])
        needed[name] = required_by(formulas[name], needed)
    return tidied(SubtaskGraph("", steps, formulas), preconditions)


def _agreeing(learnt: Relation, known: Relation, forbidden: Relation, before: NDArray[np.int64]) -> Relation:
    """A strict order with all that is `known`, nothing `forbidden`, and as many `learnt` pairs as can be.

    Pairs that no contradiction leads through are in it. The others join one by one, those that most videos agree on
    first, unless they contradict what is there already; so none that was left out could be added.
    """
    itself = np.eye(len(learnt), dtype=np.bool_)
    everything = closure(learnt | known)
    wrong = everything & (forbidden | itself)
    reach = (everything | itself).astype(np.float32)
    disputed = reach.T @ wrong.astype(np.float32) @ reach.T > 0  # [a, b]: x ≤ a and b ≤ y for a wrong pair (x, y)
    order = closure(known | (learnt & ~disputed))
    agreed = before - before.T
    for a, b in sorted(np.argwhere(learnt & disputed).tolist(), key=lambda pair: (-agreed[*pair], pair)):
        implied = np.outer(order[:, a] | itself[a], order[b] | itself[b])
        if not (implied & (forbidden | itself | order.T)).any():
            order |= implied
    return order


def _learnt_order(graph: SubtaskGraph, index: Mapping[Step, int]) -> Relation:
    """The ancestors of every step, by `index`."""
    places = [index[name] for name in graph.steps]
    order = np.zeros((len(places), len(places)), dtype=np.bool_)
    order[np.ix_(places, places)] = graph.order
    return order


def _relation(pairs: Iterable[Pair], index: Mapping[Step, int]) -> Relation:
    relation = np.zeros((len(index), len(index)), dtype=np.bool_)
    for before, after in pairs:
        relation[index[before], index[after]] = True
    return relation


def _hinted(evidence: Evidence, knowledge: Knowledge) -> Evidence:
    """The evidence with the videos of the hints: each shows one step, then another."""
    shown = [
        Video(f"{number}.{copy}", [Segment(before), Segment(after)])
        for number, (before, after, videos) in enumerate(sorted(knowledge.hints))
        for copy in range(videos)
    ]
    return evidence.with_more(Evidence.of(Task("hints", evidence.steps, shown))) if shown else evidence


def _way(pairs: frozenset[Pair], start: Step, end: Step) -> list[Step]:
    """The shortest way through the pairs, by name of equal ones; none where there is none."""
    ways = {start: [start]}
    for here in (queue := [start]):
        for _, there in sorted(pair for pair in pairs if pair[0] == here):
            if there not in ways:
                ways[there] = [*ways[here], there]
                queue.append(there)
    return ways.get(end, [])


def _text(before: Step, after: Step) -> str:
    return f"{before}<{after}"


def _chain(steps: Iterable[Step]) -> str:
    return ", ".join(_text(*pair) for pair in pairwise(steps))
