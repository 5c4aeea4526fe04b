"""Random process trees with known kinds of pairs, logs of them, and noise in the logs.

A process tree says in which order activities may happen: a sequence does its children one after the other, a parallel
node interleaves them, a choice does one of them, an optional node does its child or nothing. Only `add_loops` makes
loops, and every activity has one leaf. The kind of an ordered pair (a, b) is defined on the language of the tree, the
set of all its traces: *needs* where every trace with b has a before it; *exclusive* where no trace has both; *after*
where every trace with both has a first, and b does not need a; else *free*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise, permutations
from typing import Literal, TypeAlias

import numpy as np

from msg2.graph import PairKind

Operator: TypeAlias = Literal["activity", "sequence", "parallel", "choice", "optional", "loop"]
Trace: TypeAlias = tuple[str, ...]

ACTIVITIES = (8, 16)
"""Fewest and most activities of a tree, each number with equal chance."""
CHILDREN = (2, 3)
"""Fewest and most children of a sequence, a parallel node and a choice, each number with equal chance."""
OPERATOR_WEIGHTS: Mapping[Operator, float] = {"sequence": 0.5, "parallel": 0.25, "choice": 0.25}
"""How often an inner node has each operator. A child has another operator than its parent, and the root is no choice:
that would be several processes in one log."""
OPTIONAL_RATE = 0.15
"""How often a child of a sequence or a parallel node is optional."""
LEAST_SHARE = 0.2
"""The least probability of a branch of a choice, of doing an optional part, and of not doing it."""
LOOP_RATE, LOOP_SHARE = 0.4, (0.15, 0.35)
"""How often `add_loops` makes a loop of a sequence, and how often it is then done again."""
DEEPEST_CHOICE = 2
"""Most choices and optional nodes above a leaf: with two, every activity is in at least 4 % of the cases."""


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A node with what is below it.

    `shares` are the probabilities of the branches of a choice; of an optional node, that of doing its child; of a loop,
    that of doing its first child again, with the second one, if it has two, in between.

    >>> tree = ProcessTree("sequence", (activity("a"), ProcessTree("optional", (activity("b"),), shares=(0.5,))))
    >>> tree.activities
    ('a', 'b')
    """

    operator: Operator
    children: tuple[ProcessTree, ...] = ()
    label: str = ""
    shares: tuple[float, ...] = ()

    @property
    def activities(self) -> tuple[str, ...]:
        """The labels of the leaves, from left to right."""
        if self.operator == "activity":
            return (self.label,)
        return tuple(label for child in self.children for label in child.activities)

    @property
    def certain(self) -> frozenset[str]:
        """The activities that every trace has."""
        if self.operator == "activity":
            return frozenset({self.label})
        if self.operator in ("choice", "optional"):
            return frozenset()
        children = self.children[:1] if self.operator == "loop" else self.children
        return frozenset().union(*(child.certain for child in children))


def activity(label: str) -> ProcessTree:
    """Return the leaf that does one activity."""
    return ProcessTree("activity", label=label)


# -- random trees -----------------------------------------------------------------------------------------------


def random_tree(rng: np.random.Generator, activities: tuple[int, int] | None = None) -> ProcessTree:
    """Draw a tree, by default of `ACTIVITIES`; the names of its activities say nothing about their order.

    >>> 8 <= len(set(random_tree(np.random.default_rng(0)).activities)) <= 16
    True
    """
    count = int(rng.integers(*(activities or ACTIVITIES), endpoint=True))
    labels = [f"activity {number + 1:02d}" for number in rng.permutation(count).tolist()]
    return _draw_node(labels, None, 0, rng)


def _draw_node(labels: Sequence[str], above: Operator | None, choices: int, rng: np.random.Generator) -> ProcessTree:
    """Draw the tree of these activities, below a node with the operator `above`, under so many choices."""
    if above in ("sequence", "parallel") and choices < DEEPEST_CHOICE and rng.random() < OPTIONAL_RATE:
        share = float(rng.uniform(LEAST_SHARE, 1 - LEAST_SHARE))
        return ProcessTree("optional", (_draw_node(labels, "optional", choices + 1, rng),), shares=(share,))
    if len(labels) == 1:
        return activity(labels[0])
    operator = _draw_operator(above, choices, rng)
    count = min(int(rng.integers(*CHILDREN, endpoint=True)), len(labels))
    cuts = [0, *sorted((1 + rng.permutation(len(labels) - 1)[: count - 1]).tolist()), len(labels)]
    below = choices + (operator == "choice")
    parts = [labels[start:end] for start, end in pairwise(cuts)]
    children = tuple(_draw_node(part, operator, below, rng) for part in parts)
    if operator != "choice":
        return ProcessTree(operator, children)
    shares = LEAST_SHARE + (1 - count * LEAST_SHARE) * rng.dirichlet(np.ones(count))
    return ProcessTree(operator, children, shares=tuple(shares.tolist()))


def _draw_operator(above: Operator | None, choices: int, rng: np.random.Generator) -> Operator:
    may_choose = above not in (None, "optional") and choices < DEEPEST_CHOICE
    weights = {
        operator: weight
        for operator, weight in OPERATOR_WEIGHTS.items()
        if operator != above and (operator != "choice" or may_choose)
    }
    whole = sum(weights.values())
    return list(weights)[int(rng.choice(len(weights), p=[weight / whole for weight in weights.values()]))]


def add_loops(tree: ProcessTree, rng: np.random.Generator) -> ProcessTree:
    """Make loops of some of the sequences below the root; in one of two, an activity of its own leads back."""
    children = tuple(add_loops(child, rng) for child in tree.children)
    looped = []
    for child in children:
        if child.operator == "sequence" and rng.random() < LOOP_RATE:
            back = (activity(f"again {child.activities[0]}"),) if rng.random() < 0.5 else ()
            child = ProcessTree("loop", (child, *back), shares=(float(rng.uniform(*LOOP_SHARE)),))
        looped.append(child)
    return replace(tree, children=tuple(looped))


def accepts(tree: ProcessTree, trace: Trace) -> bool:
    """Whether a trace is of the language of a tree."""
    if tree.operator == "activity":
        return trace == (tree.label,)
    if tree.operator == "optional":
        return not trace or accepts(tree.children[0], trace)
    if tree.operator == "choice":
        return any(accepts(child, trace) for child in tree.children)
    if tree.operator == "loop":
        reached, body = {0}, tree.children[0]
        back = tree.children[1].activities if tree.children[1:] else ()
        for end in range(1, len(trace) + 1):
            if any(
                accepts(body, trace[start + bool(start and back) : end])
                for start in reached
                if not (start and back) or trace[start : start + 1] == back
            ):
                reached.add(end)
        return len(trace) in reached and bool(trace or accepts(body, ()))
    where = {label: place for place, child in enumerate(tree.children) for label in child.activities}
    if not where.keys() >= set(trace):
        return False
    places = [where[label] for label in trace]
    own = (tuple(compress(trace, (at == place for at in places))) for place in range(len(tree.children)))
    in_order = tree.operator == "parallel" or places == sorted(places)
    return in_order and all(accepts(child, part) for child, part in zip(tree.children, own, strict=True))


# -- logs -------------------------------------------------------------------------------------------------------


def sample_trace(tree: ProcessTree, rng: np.random.Generator) -> Trace:
    """Draw a trace of the tree.

    Parameters
    ----------
    tree : ProcessTree
        Where its branches have shares, they are drawn with them.
    rng : numpy.random.Generator
        Random numbers.

    Returns
    -------
    tuple of str
        Activities in their order. All interleavings of parallel children are equally probable.
    """
    if tree.operator == "activity":
        return (tree.label,)
    if tree.operator == "optional":
        return sample_trace(tree.children[0], rng) if rng.random() < tree.shares[0] else ()
    if tree.operator == "choice":
        return sample_trace(tree.children[int(rng.choice(len(tree.children), p=tree.shares))], rng)
    if tree.operator == "loop":
        trace = sample_trace(tree.children[0], rng)
        while rng.random() < tree.shares[0]:
            for child in (*tree.children[1:], tree.children[0]):
                trace += sample_trace(child, rng)
        return trace
    traces = [sample_trace(child, rng) for child in tree.children]
    if tree.operator == "sequence":
        return tuple(label for trace in traces for label in trace)
    turns = rng.permutation([child for child, trace in enumerate(traces) for _ in trace]).tolist()
    waiting = [iter(trace) for trace in traces]
    return tuple(next(waiting[child]) for child in turns)


def disturb(trace: Trace, activities: Sequence[str], rng: np.random.Generator) -> Trace:
    """Remove an event, insert a random activity anywhere, or swap two neighbours, whichever is possible.

    Parameters
    ----------
    trace : tuple of str
        What happened.
    activities : sequence of str
        What may be inserted.
    rng : numpy.random.Generator
        Random numbers.

    Returns
    -------
    tuple of str
        The trace after one such operation; each that is possible has the same chance.
    """
    possible = ["insert", *(["remove"] if trace else []), *(["swap"] if len(trace) > 1 else [])]
    operation = possible[int(rng.integers(len(possible)))]
    if operation == "insert":
        place = int(rng.integers(len(trace) + 1))
        return (*trace[:place], activities[int(rng.integers(len(activities)))], *trace[place:])
    if operation == "remove":
        place = int(rng.integers(len(trace)))
        return trace[:place] + trace[place + 1 :]
    place = int(rng.integers(len(trace) - 1))
    return (*trace[:place], trace[place + 1], trace[place], *trace[place + 2 :])


def simulate_log(tree: ProcessTree, cases: int, noise: float, seed: int) -> list[Trace]:
    """Draw a log; more cases leave the earlier ones as they are, and all rates of noise disturb the same traces.

    Parameters
    ----------
    tree : ProcessTree
        The process.
    cases : int
        Number of traces.
    noise : float
        Probability that a case is disturbed by one operation (see `disturb`).
    seed : int
        0 or more; everything follows from it.

    Returns
    -------
    list of tuple of str
        The traces.
    """
    rng, noise_rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    activities = sorted(tree.activities)
    traces = []
    for _ in range(cases):
        trace = sample_trace(tree, rng)
        traces.append(disturb(trace, activities, noise_rng) if noise_rng.random() < noise else trace)
    return traces


# -- kinds ------------------------------------------------------------------------------------------------------


def tree_kinds(tree: ProcessTree) -> dict[tuple[str, str], PairKind]:
    """The kind of every ordered pair of activities, from the lowest node above both.

    Below a choice two activities are exclusive, and below a parallel node they are free. In a sequence the left one is
    first; the right one needs it where the left child does it in every trace.

    >>> tree = ProcessTree("sequence", (activity("a"), ProcessTree("optional", (activity("b"),)), activity("c")))
    >>> kinds = tree_kinds(tree)
    >>> kinds["a", "c"], kinds["b", "c"], kinds["c", "b"]
    ('needs', 'after', 'free')
    """
    kinds: dict[tuple[str, str], PairKind] = {}
    for child in tree.children:
        kinds.update(tree_kinds(child))
    for (left, first), (right, second) in permutations(enumerate(tree.children), 2):
        for a in first.activities:
            for b in second.activities:
                if tree.operator == "choice":
                    kinds[a, b] = "exclusive"
                elif tree.operator == "sequence" and left < right:
                    kinds[a, b] = "needs" if a in first.certain else "after"
                else:
                    kinds[a, b] = "free"
    return kinds
