"""What two graphs of the same steps agree and differ in: the kind of every pair, optional steps, preconditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from msg2.graph import PAIR_KINDS, Formula, PairKind, SubtaskGraph, all_of, are_equivalent, step
from msg2.graph.reduction import necessary_steps
from msg2.json_values import fields_to_json
from msg2.metrics.graph_scores import match_step_names
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Pairs of steps that have a kind in the first graph, in the second one, and in both in the same direction."""

    first: int
    second: int
    both: int


@dataclass(frozen=True, slots=True)
class PairDifference:
    """Two steps, and the kind of this ordered pair in either graph."""

    before: Step
    after: Step
    first: PairKind
    second: PairKind


@dataclass(frozen=True, slots=True)
class PreconditionDifference:
    """A step, and what it needs in either graph, written without what follows from the rest."""

    step: Step
    first: Formula
    second: Formula


@dataclass(frozen=True, slots=True)
class GraphComparison:
    """What two graphs agree and differ in; names of steps are those of the first."""

    kinds: Mapping[PairKind, KindCounts]
    """Every two steps count once."""
    pairs: tuple[PairDifference, ...]
    """Those that differ. Two steps are there twice where the graphs order them in opposite ways."""
    optional_in_both: tuple[Step, ...]
    optional_in_first: tuple[Step, ...]
    """Only in the first graph, as `optional_in_second` only in the second."""
    optional_in_second: tuple[Step, ...]
    preconditions: tuple[PreconditionDifference, ...]
    """Those that differ."""

    @property
    def agreement(self) -> float:
        """Share of all pairs of steps that are of the same kind in both graphs; 1 where there is no pair."""
        pairs = sum(counts.first for counts in self.kinds.values())
        return sum(counts.both for counts in self.kinds.values()) / pairs if pairs else 1.0

    def to_json(self) -> dict[str, Any]:
        """Plain values; formulas as in a graph file."""
        return {"agreement": self.agreement, **fields_to_json(self)}


def compare_graphs(first: SubtaskGraph, second: SubtaskGraph) -> GraphComparison:
    """Tell what two graphs of the same steps agree and differ in.

    Parameters
    ----------
    first, second : SubtaskGraph
        Their steps have the same names, see `match_step_names`.

    Returns
    -------
    GraphComparison
        The pairs by kind (`msg2.graph.pair_kinds`), the optional steps, and the preconditions that differ.

    Raises
    ------
    InputError
        Where the steps of the two graphs cannot be matched.

    >>> from msg2.graph import step
    >>> tea = ["boil", "pour", "sugar"]
    >>> first = SubtaskGraph("tea", tea, {"pour": step("boil")}, order=[("sugar", "pour")], optional=["sugar"])
    >>> found = compare_graphs(first, SubtaskGraph("tea", tea, {"pour": step("boil")}))
    >>> found.kinds["needs"], found.optional_in_first
    (KindCounts(first=1, second=1, both=1), ('sugar',))
    >>> found.pairs
    (PairDifference(before='sugar', after='pour', first='after', second='free'),)
    """
    other = match_step_names(second, first, called=("second graph", "first graph"))
    counts = {kind: [0, 0, 0] for kind in PAIR_KINDS}
    pairs: list[PairDifference] = []
    for a, b in combinations(first.steps, 2):
        both_ways = [PairDifference(*pair, first.kind(*pair), other.kind(*pair)) for pair in ((a, b), (b, a))]
        of_first = _unordered_kind(*(each.first for each in both_ways))
        of_second = _unordered_kind(*(each.second for each in both_ways))
        same = all(each.first == each.second for each in both_ways)
        counts[of_first][0] += 1
        counts[of_second][1] += 1
        counts[of_first][2] += same
        ordered = [each for each in both_ways if {each.first, each.second} & {"needs", "after"}]
        pairs += [] if same else ordered or both_ways[:1]
    full, other_full = _full_preconditions(first), _full_preconditions(other)
    differing = [name for name in first.steps if not are_equivalent(full[name], other_full[name])]
    reduced, other_reduced = first.transitive_reduction(), other.transitive_reduction()
    return GraphComparison(
        {kind: KindCounts(*found) for kind, found in counts.items()},
        tuple(pairs),
        tuple(name for name in first.steps if name in first.optional & other.optional),
        tuple(name for name in first.steps if name in first.optional - other.optional),
        tuple(name for name in first.steps if name in other.optional - first.optional),
        tuple(
            PreconditionDifference(name, reduced.precondition(name), other_reduced.precondition(name))
            for name in differing
        ),
    )


def _full_preconditions(graph: SubtaskGraph) -> dict[Step, Formula]:
    """What each step needs, with what it needs only through other steps."""
    needed = necessary_steps(graph.steps, graph.preconditions)
    return {name: all_of([graph.precondition(name), *map(step, sorted(needed[name]))]) for name in graph.steps}


def _unordered_kind(forward: PairKind, backward: PairKind) -> PairKind:
    """The kind of two steps, whichever comes first."""
    return backward if forward == "free" else forward
