"""What the videos say for an edge and for a precondition: typed views of the `evidence` in a graph file.

Graph files may come from elsewhere and may hold keys of their own, so reading is tolerant: unknown keys are ignored, a
value of the wrong type counts as absent, and nothing here raises an exception.

What a graph says of pairs of steps, as rows: every edge and exclusive pair with its support and confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msg2.errors import InputError
from msg2.graph.formula import Formula, formula_from_json
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph


_TOO_LARGE = 2**63
"""Numbers beyond it, infinity included, are no evidence."""

EdgeKind: TypeAlias = Literal["needs", "after"]
"""What an edge says: `after` needs `before`, or comes after it where both are done."""
PairKind: TypeAlias = EdgeKind | Literal["exclusive", "free"]
"""What a graph says of an ordered pair of steps; see `msg2.graph.pair_kinds`."""
PAIR_KINDS: tuple[PairKind, ...] = ("needs", "after", "exclusive", "free")


@dataclass(frozen=True, slots=True)
class Support:
    """The videos behind one edge; None where the evidence does not say.

    >>> support = Support.from_json({"before": 47, "together": 50, "probability": 0.98, "own": "kept elsewhere"})
    >>> support.share, support.weak
    (0.94, False)
    """

    before: int | None = None
    """Videos in which the edge's first step comes before its second."""
    together: int | None = None
    """Videos that order the two steps, either way round."""
    lacking: int | None = None
    """Videos with the edge's second step that lack its first."""
    weak: bool = False
    """Whether these videos are so few that the edge may be chance."""
    probability: float | None = None
    """Share of the bootstrap samples whose graph has this order, directly or through other steps."""
    direct: float | None = None
    """Share of the bootstrap samples whose graph has this edge itself."""
    kinds: Mapping[PairKind, float] | None = None
    """Share of the bootstrap samples in which the pair is of each kind."""
    gain: float | None = None
    """By how much the edge makes the videos more probable than the graph without it, prior included (nats)."""

    @property
    def share(self) -> float | None:
        """The share `before / together`; None where it is unknown or cannot be right."""
        supporting, _ = self.counts
        return None if supporting is None or not self.together else supporting / self.together

    @property
    def counts(self) -> tuple[int, int] | tuple[None, None]:
        """Videos with the edge's first step first, and with its second one first; None as for `share`."""
        if self.before is None or not self.together or not 0 <= self.before <= self.together:
            return None, None
        return self.before, self.together - self.before

    @staticmethod
    def from_json(value: object) -> Support:
        """Read the entry of an edge in a graph file; of anything else, a support that says nothing."""
        entry = _mapping(value)
        return Support(
            _count(entry.get("before")),
            _count(entry.get("together")),
            _count(entry.get("lacking")),
            entry.get("weak") is True,
            _number(entry.get("probability")),
            _number(entry.get("direct")),
            _kind_shares(entry.get("kinds")),
            _number(entry.get("gain")),
        )

    def to_json(self) -> dict[str, Any]:
        """The entry of an edge in a graph file: what is known, in a fixed order."""
        counts = {"before": self.before, "together": self.together, "lacking": self.lacking, "weak": self.weak or None}
        kinds = None if self.kinds is None else dict(self.kinds)
        shares = {"probability": self.probability, "direct": self.direct, "kinds": kinds, "gain": self.gain}
        return {key: value for key, value in (counts | shares).items() if value is not None}


NO_SUPPORT = Support()
"""The support of an edge of which the evidence does not say anything."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency between two steps, with the videos that support it (None where the graph has no evidence)."""

    before: Step
    after: Step
    support: Support | None = None
    kind: EdgeKind = "needs"


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best precondition of a step, and its score."""

    precondition: Formula
    score: float | None = None


@dataclass(frozen=True, slots=True)
class StepEvidence:
    """What the videos say about the precondition of one step; None where the evidence does not say.

    >>> evidence = StepEvidence.from_json({"videos": 10, "holds": 9, "edges": {"heat pan": {"weak": True}}})
    >>> evidence.holds, evidence.edges["heat pan"].weak, evidence.score
    (9, True, None)
    """

    videos: int | None = None
    """Videos with the step."""
    holds: int | None = None
    """Those of them in which its precondition held."""
    confidence: float | None = None
    """Share of the bootstrap samples with this precondition."""
    score: float | None = None
    """How good the learner found the precondition."""
    examples: tuple[str, ...] | None = None
    """Some videos in which the precondition held."""
    violations: tuple[str, ...] | None = None
    """The videos in which it did not."""
    runner_up: RunnerUp | None = None
    """The second best precondition."""
    edges: Mapping[Step, Support] = field(default_factory=dict)
    """The support of each step in the precondition."""
    optional: tuple[int, int] | None = None
    """Where the step is optional: videos without it, and videos in all."""
    instead: tuple[Step, ...] | None = None
    """Steps that take its place in other videos."""
    exclusive: Mapping[Step, int] = field(default_factory=dict)
    """Of each exclusive partner, the videos that show both."""
    exclusive_probability: Mapping[Step, float] = field(default_factory=dict)
    """Of each exclusive partner, the share of the bootstrap samples in which the two are exclusive."""
    any_gain: float | None = None
    """As `Support.gain`, of the weakest OR in the precondition."""

    @staticmethod
    def from_json(value: object) -> StepEvidence:
        """Read the entry of a step in a graph file; of anything else, evidence that says nothing."""
        entry = _mapping(value)
        optional = _mapping(entry.get("optional"))
        without, videos = _count(optional.get("without")), _count(optional.get("videos"))
        return StepEvidence(
            _count(entry.get("videos")),
            _count(entry.get("holds")),
            _number(entry.get("confidence")),
            _number(entry.get("score")),
            _texts(entry.get("examples")),
            _texts(entry.get("violations")),
            _runner_up(entry.get("runner_up")),
            {
                before: Support.from_json(counts)
                for before, counts in _mapping(entry.get("edges")).items()
                if isinstance(counts, Mapping)
            },
            None if without is None or videos is None else (without, videos),
            _texts(entry.get("instead")),
            {
                partner: both
                for partner, value in _mapping(entry.get("exclusive")).items()
                if (both := _count(value)) is not None
            },
            {
                partner: share
                for partner, value in _mapping(entry.get("exclusive_probability")).items()
                if (share := _number(value)) is not None
            },
            _number(entry.get("any_gain")),
        )


def _kind_shares(value: object) -> Mapping[PairKind, float] | None:
    entry = _mapping(value)
    shares = {kind: share for kind in PAIR_KINDS if (share := _number(entry.get(kind))) is not None}
    return shares or None


def _runner_up(value: object) -> RunnerUp | None:
    entry = _mapping(value)
    try:
        return RunnerUp(formula_from_json(entry.get("precondition")), _number(entry.get("score")))
    except InputError:
        return None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -_TOO_LARGE < value < _TOO_LARGE else None


def _texts(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list) else None


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
