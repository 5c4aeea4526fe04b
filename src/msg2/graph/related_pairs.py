"""What a graph says of pairs of steps, as rows: every edge and exclusive pair with its support and confidence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

from msg2.graph.support import NO_SUPPORT, EdgeKind, Support
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph

RelationKind: TypeAlias = EdgeKind | Literal["exclusive"]


@dataclass(frozen=True, slots=True)
class RelatedPair:
    """Two steps, how they are related, and what the videos say for it; None where the evidence does not say."""

    before: Step
    after: Step
    kind: RelationKind
    together: int | None
    """Videos that order the two steps; of an exclusive pair, videos with either."""
    share: float | None
    """Share of these with the first step first; of an exclusive pair, with only one of the two."""
    supporting: int | None
    """Videos that speak for it: this share, counted."""
    opposing: int | None
    """Videos that speak against it: the others of them."""
    weak: bool
    """Whether these videos are so few that the edge may be chance."""
    probability: float | None
    """Share of the bootstrap samples that say the same."""
    confidence: float | None
    """The probability where there were bootstrap samples, else the share."""


def edge_pairs_with_support(graph: SubtaskGraph) -> list[RelatedPair]:
    """Every edge of a graph, in the order of `graph.edges()`."""
    return [_row(edge.before, edge.after, edge.kind, edge.support or NO_SUPPORT) for edge in graph.edges()]


def related_pairs(graph: SubtaskGraph) -> list[RelatedPair]:
    """Every edge and exclusive pair of a graph, the surest first; last those with few videos, and without evidence.

    >>> from msg2.graph import SubtaskGraph, step
    >>> evidence = {"pour": {"edges": {"boil": {"before": 9, "together": 10}}}}
    >>> tea = ["boil", "honey", "pour", "sugar"]
    >>> graph = SubtaskGraph("tea", tea, {"pour": step("boil")}, None, evidence, exclusive=[["honey", "sugar"]])
    >>> [(pair.before, pair.after, pair.kind, pair.confidence) for pair in related_pairs(graph)]
    [('boil', 'pour', 'needs', 0.9), ('honey', 'sugar', 'exclusive', None)]
    """
    apart = sorted({pair for group in graph.exclusive for pair in combinations(group, 2)})
    rows = [
        *edge_pairs_with_support(graph),
        *(_row(one, other, "exclusive", _exclusive_support(graph, one, other)) for one, other in apart),
    ]
    return sorted(
        rows, key=lambda row: (row.confidence is None, row.weak, -(row.confidence or 0), -(row.together or 0))
    )


def _row(before: Step, after: Step, kind: RelationKind, support: Support) -> RelatedPair:
    share, probability = support.share, support.probability
    confidence = share if probability is None else probability
    supporting, opposing = support.counts
    return RelatedPair(
        before, after, kind, support.together, share, supporting, opposing, support.weak, probability, confidence
    )


def _exclusive_support(graph: SubtaskGraph, one: Step, other: Step) -> Support:
    """The videos with either of two steps, and those of them with only one."""
    ours, theirs = graph.step_evidence(one), graph.step_evidence(other)
    both = ours.exclusive.get(other)
    if both is None or ours.videos is None or theirs.videos is None:
        return NO_SUPPORT
    either = ours.videos + theirs.videos - both
    return Support(either - both, either, probability=ours.exclusive_probability.get(other))
