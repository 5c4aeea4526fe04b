"""What two graphs agree and differ in: kinds of pairs, optional steps, preconditions, what must follow, loops."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from msg2.errors import InputError
from msg2.graph import PAIR_KINDS, Formula, PairKind, SubtaskGraph, all_of, are_equivalent, related_pairs, step
from msg2.metrics.graph_scores import match_step_names
from msg2.options import fields_to_json
from msg2.task import Step
from msg2.text import join_names


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Pairs of steps that have a kind in the first graph, in the second one, and in both in the same direction."""

    first: int
    second: int
    both: int


@dataclass(frozen=True, slots=True)
class PairDifference:
    """Two steps, and the kind of this ordered pair in either graph, and in the true one where there is one."""

    before: Step
    after: Step
    first: PairKind
    second: PairKind
    truth: PairKind | None = None


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
    edges: tuple[PairDifference, ...]
    """Those of them that are an edge or an exclusive pair of one of the graphs; the others follow from edges."""
    optional_in_both: tuple[Step, ...]
    optional_in_first: tuple[Step, ...]
    """Only in the first graph, as `optional_in_second` only in the second."""
    optional_in_second: tuple[Step, ...]
    preconditions: tuple[PreconditionDifference, ...]
    """Those that differ."""
    steps_in_first: tuple[Step, ...] = ()
    """Only in the first graph, as `steps_in_second` only in the second; all else is about the steps of both."""
    steps_in_second: tuple[Step, ...] = ()
    said_in_first: tuple[str, ...] = ()
    """What must follow and what is done again, in words, only in the first graph."""
    said_in_second: tuple[str, ...] = ()
    right_in_first: float | None = None
    """Share of all pairs that are of their true kind in the first graph; None where no truth is given."""
    right_in_second: float | None = None

    @property
    def agreement(self) -> float:
        """Share of all pairs of steps that are of the same kind in both graphs; 1 where there is no pair."""
        pairs = sum(counts.first for counts in self.kinds.values())
        return sum(counts.both for counts in self.kinds.values()) / pairs if pairs else 1.0

    def to_json(self) -> dict[str, Any]:
        """Plain values; formulas as in a graph file."""
        return {"agreement": self.agreement, **fields_to_json(self)}


def compare_graphs(first: SubtaskGraph, second: SubtaskGraph, truth: SubtaskGraph | None = None) -> GraphComparison:
    """Tell what two graphs of a task agree and differ in: of two methods, two data sets, before and after a constraint.

    Parameters
    ----------
    first, second : SubtaskGraph
        Steps of the same name are the same, see `match_step_names`; what only one graph has is named.
    truth : SubtaskGraph, optional
        The true graph, with all steps that the two have in common.

    Returns
    -------
    GraphComparison
        The pairs by kind (`msg2.graph.closure.PairKinds`), the optional steps, and the preconditions that differ.

    Raises
    ------
    InputError
        Where the steps of the graphs cannot be matched, or fewer than two are in both.

    >>> from msg2.graph import step
    >>> tea = ["boil", "pour", "sugar"]
    >>> first = SubtaskGraph("tea", tea, {"pour": step("boil")}, order=[("sugar", "pour")], optional=["sugar"])
    >>> comparison = compare_graphs(first, SubtaskGraph("tea", tea, {"pour": step("boil")}))
    >>> comparison.kinds["needs"], comparison.optional_in_first
    (KindCounts(first=1, second=1, both=1), ('sugar',))
    >>> comparison.pairs
    (PairDifference(before='sugar', after='pour', first='after', second='free', truth=None),)
    """
    other = match_step_names(second, first, called=("second graph", "first graph"), partial=True)
    common = tuple(name for name in first.steps if name in other.index)
    if len(common) < 2 < len(first.steps) + len(second.steps):
        raise InputError("the two graphs do not share two steps", hint="compare graphs of the same task")
    true = None
    if truth is not None:
        true = match_step_names(truth, first, called=("truth", "first graph"), partial=True)
        if missing := [name for name in common if name not in true.index]:
            raise InputError(f"the truth lacks {join_names(missing)}", hint="it must have every step of both graphs")
    counts, right = Counter[tuple[PairKind, str]](), Counter[str]()
    pairs: list[PairDifference] = []
    for a, b in combinations(common, 2):
        both_ways = [
            PairDifference(*pair, first.kind(*pair), other.kind(*pair), None if true is None else true.kind(*pair))
            for pair in ((a, b), (b, a))
        ]
        there, back = both_ways
        for graph in ("first", "second"):
            kind = getattr(back if getattr(there, graph) == "free" else there, graph)
            counts[kind, graph] += 1
            right[graph] += all(getattr(each, graph) == each.truth for each in both_ways)
        if all(each.first == each.second for each in both_ways):
            counts[kind, "both"] += 1
        else:
            ordered = [each for each in both_ways if {each.first, each.second} & {"needs", "after"}]
            pairs += ordered or both_ways[:1]
    full, other_full = _full_preconditions(first), _full_preconditions(other)
    reduced, other_reduced = first.transitive_reduction(), other.transitive_reduction()
    drawn = {frozenset({pair.before, pair.after}) for pair in related_pairs(reduced) + related_pairs(other_reduced)}
    said, other_said = _follow_ups(first, common), _follow_ups(other, common)
    number = len(common) * (len(common) - 1) / 2
    return GraphComparison(
        {kind: KindCounts(*(counts[kind, name] for name in ("first", "second", "both"))) for kind in PAIR_KINDS},
        tuple(pairs),
        tuple(pair for pair in pairs if {pair.before, pair.after} in drawn),
        tuple(name for name in common if name in first.optional & other.optional),
        tuple(name for name in common if name in first.optional - other.optional),
        tuple(name for name in common if name in other.optional - first.optional),
        tuple(
            PreconditionDifference(name, reduced.precondition(name), other_reduced.precondition(name))
            for name in common
            if not are_equivalent(full[name], other_full[name])
            and not are_equivalent(reduced.precondition(name), other_reduced.precondition(name))
        ),
        tuple(name for name in first.steps if name not in common),
        tuple(name for name in other.steps if name not in common),
        tuple(text for text in said if text not in other_said),
        tuple(text for text in other_said if text not in said),
        *(None if true is None or not number else right[graph] / number for graph in ("first", "second")),
    )


def _follow_ups(graph: SubtaskGraph, steps: tuple[Step, ...]) -> list[str]:
    """What must follow each of some steps, and the parts of them that are done again."""
    responses = [(before, formula) for before, formula in graph.responses if {before, *formula.steps} <= {*steps}]
    loops = [sorted({*loop.steps, *loop.back}) for loop in graph.loops if {*loop.steps, *loop.back} <= {*steps}]
    told = [f"after '{before}' comes {formula.to_english()}" for before, formula in responses]
    return [*told, *(f"again and again: {join_names(loop)}" for loop in loops)]


def _full_preconditions(graph: SubtaskGraph) -> dict[Step, Formula]:
    """What each step needs, with what it needs only through other steps."""
    return {name: all_of([graph.precondition(name), *map(step, sorted(graph.necessary[name]))]) for name in graph.steps}
