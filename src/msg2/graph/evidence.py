"""What the videos say for an edge and for a precondition: typed views of the `evidence` in a graph file.

Reading is tolerant, since files may come from elsewhere: unknown keys are ignored, and a value of the wrong type counts
as absent. `related_pairs` lists every edge and exclusive pair of a graph with its support.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, Strict, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import PydanticOmit, PydanticUseDefault

from msg2.graph.formula import Formula, FormulaKind
from msg2.task import Step, demonstrations_noun

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph

EdgeKind: TypeAlias = Literal["needs", "after"]
"""What an edge says: `after` needs `before`, or comes after it where both are done."""
PairKind: TypeAlias = EdgeKind | Literal["exclusive", "together", "free"]
"""What a graph says of an ordered pair of steps; see `msg2.graph.closure.PairKinds`. Two steps are `together` if most
videos have them at the same time, so that nothing can be said of their order."""
PAIR_KINDS: tuple[PairKind, ...] = ("needs", "after", "exclusive", "together", "free")
WEAK_BELOW = 5
"""A rule of which fewer videos tell is weak."""
WEAK_SHARE = 0.75
"""So is one that a smaller share of these videos supports."""


def _unless_valid(otherwise: type[Exception]) -> WrapValidator:
    """Have pydantic do something else than complain about a wrong value."""

    def read(value: object, validate: Callable[[object], object]) -> object:
        try:
            return validate(value)
        except ValidationError:
            raise otherwise from None

    return WrapValidator(read)


_OR_DEFAULT, _OR_OMITTED = _unless_valid(PydanticUseDefault), _unless_valid(PydanticOmit)
_Finite: TypeAlias = Annotated[float, Strict(), Field(gt=-(2.0**63), lt=2.0**63)]
_Videos: TypeAlias = Annotated[int, Strict(), Field(ge=0, lt=2**63)]
CountOrNone: TypeAlias = Annotated[_Videos | None, _OR_DEFAULT]
NumberOrNone: TypeAlias = Annotated[_Finite | None, _OR_DEFAULT]
NamesOrNone: TypeAlias = Annotated[tuple[str, ...] | None, _OR_DEFAULT]
_CONFIG = ConfigDict(use_attribute_docstrings=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Support:
    """The videos behind one edge; absent where the evidence does not say."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    before: CountOrNone = None
    """Videos in which the edge's first step comes before its second."""
    together: CountOrNone = None
    """Videos that order the two steps, either way round."""
    lacking: CountOrNone = None
    """Videos with the edge's second step that lack its first."""
    weak: Annotated[bool, Strict(), _OR_DEFAULT] = False
    """Whether these videos are so few that the edge may be chance."""
    probability: NumberOrNone = None
    """Share of the bootstrap samples whose graph has this order, directly or through other steps."""
    direct: NumberOrNone = None
    """Share of the bootstrap samples whose graph has this edge itself."""
    kinds: Annotated[Mapping[PairKind, _Finite] | None, _OR_DEFAULT] = None
    """Share of the bootstrap samples in which the pair is of each kind."""
    gain: NumberOrNone = None
    """By how much the edge makes the videos more probable than the graph without it, prior included (nats)."""
    careless: NumberOrNone = None
    """Of the videos that order the two steps the other way round, the share that is careless with other edges too."""
    simultaneous: CountOrNone = None
    """Videos with both steps that do not order them: they come at the same time, or overlap."""
    said_by: NamesOrNone = None
    """Who says so beside the videos, such as "text" for a written procedure."""

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
        """Read the entry of an edge in a graph file; of anything else, a support that says nothing.

        >>> support = Support.from_json({"before": 47, "together": 50, "probability": 0.98, "own": "kept elsewhere"})
        >>> support.share, support.weak
        (0.94, False)
        """
        return _SUPPORT.validate_python(value if isinstance(value, Mapping) else {})

    def to_json(self) -> dict[str, object]:
        """The entry of an edge in a graph file: what is known, in a fixed order."""
        return {key: value for key, value in asdict(self).items() if value is not None and value is not False}


NO_SUPPORT = Support()
"""The support of an edge of which the evidence does not say anything."""


def is_weak(held: int, videos: int) -> bool:
    """Whether the videos that tell of a rule are so few, or so divided, that it may be chance."""
    return videos < WEAK_BELOW or held < WEAK_SHARE * videos


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
    score: NumberOrNone = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many videos do without a step, of how many."""

    without: _Videos
    videos: _Videos


@dataclass(frozen=True, slots=True)
class Response:
    """How many videos do what must follow a step, of how many."""

    follows: Formula
    held: _Videos
    videos: _Videos
    lacking: CountOrNone = None
    """Those of them that never show what must follow."""
    confidence: NumberOrNone = None
    """Share of the bootstrap samples that say so."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """In how many videos one of several steps came before the one that needs one of them, of how many that tell."""

    clause: Formula
    held: _Videos
    videos: _Videos
    confidence: NumberOrNone = None
    """Share of the bootstrap samples with this clause."""


@dataclass(frozen=True, slots=True)
class StepEvidence:
    """What the videos say about the precondition of one step; absent where the evidence does not say."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    videos: CountOrNone = None
    """Videos with the step."""
    holds: CountOrNone = None
    """Those of them in which its precondition held."""
    confidence: NumberOrNone = None
    """Share of the bootstrap samples with this precondition."""
    score: NumberOrNone = None
    """How good the learner found the precondition."""
    examples: NamesOrNone = None
    """Some videos in which the precondition held."""
    violations: NamesOrNone = None
    """The videos in which it did not."""
    runner_up: Annotated[RunnerUp | None, _OR_DEFAULT] = None
    """The second best precondition."""
    edges: Annotated[Mapping[Step, Annotated[Support, _OR_OMITTED]], _OR_DEFAULT] = field(default_factory=dict)
    """The support of each step in the precondition."""
    alternatives: Annotated[tuple[Alternatives, ...], _OR_DEFAULT] = ()
    """The same of each OR."""
    optional: Annotated[LeftOut | None, _OR_DEFAULT] = None
    """Where the step is optional: how many videos do without it."""
    instead: NamesOrNone = None
    """Steps that take its place in other videos."""
    exclusive: Annotated[Mapping[Step, Annotated[_Videos, _OR_OMITTED]], _OR_DEFAULT] = field(default_factory=dict)
    """Of each exclusive partner, the videos that show both."""
    exclusive_probability: Annotated[Mapping[Step, Annotated[_Finite, _OR_OMITTED]], _OR_DEFAULT] = field(
        default_factory=dict
    )
    """Of each exclusive partner, the share of the bootstrap samples in which the two are exclusive."""
    any_gain: NumberOrNone = None
    """As `Support.gain`, of the weakest OR in the precondition."""
    together: Annotated[Mapping[Step, Annotated[Support, _OR_OMITTED]], _OR_DEFAULT] = field(default_factory=dict)
    """The steps that mostly happen at the same time; `before`: videos in which such a step comes before this one."""
    responses: Annotated[tuple[Response, ...], _OR_DEFAULT] = ()
    """What must follow this step."""

    @staticmethod
    def from_json(value: object) -> StepEvidence:
        """Read the entry of a step in a graph file; of anything else, evidence that says nothing.

        >>> evidence = StepEvidence.from_json({"videos": 10, "holds": 9, "edges": {"heat pan": {"weak": True}}})
        >>> evidence.holds, evidence.edges["heat pan"].weak, evidence.score
        (9, True, None)
        """
        return _STEP_EVIDENCE.validate_python(value if isinstance(value, Mapping) else {})


_SUPPORT, _STEP_EVIDENCE = TypeAdapter(Support), TypeAdapter(StepEvidence)


def demonstrations(graph: SubtaskGraph) -> str:
    """What the graph was learned from: "runs" of an event log, else "videos"."""
    options = graph.method.get("options")
    return demonstrations_noun(options.get("absent") if isinstance(options, Mapping) else None)


@dataclass(frozen=True, slots=True)
class Backing:
    """What stands behind a rule: of the videos that tell, how many say so; None where nobody has counted."""

    held: int | None = None
    videos: int | None = None
    weak: bool = False
    share: float | None = None
    """Of the bootstrap samples, those that say the same."""
    stated: bool = False
    """Whether a person said so, whatever the videos say."""
    at_once: int = 0
    """Videos that tell nothing, since both steps happen at the same time in them."""
    said_by: tuple[str, ...] = ()
    """Who says so beside the videos."""

    @property
    def doubt(self) -> str:
        """Why it is weak, if it is."""
        if not self.weak or self.held is None or self.videos is None:
            return ""
        return "few tell" if self.videos < WEAK_BELOW else f"{self.videos - self.held} contradict"

    def words(self, noun: str = "") -> str:
        """Put it into words, such as "7 of 15 runs: 8 contradict, 62 %"."""
        if self.stated:
            return "stated"
        counts = "" if self.held is None else f"{self.held} of {self.videos} {noun}".rstrip()
        share = "" if self.share is None else f"{100 * self.share:.0f} %"
        at_once = f"{self.at_once} at the same time" if self.at_once > (self.videos or 0) else ""
        told = [f"from the {source}" for source in self.said_by]
        return ", ".join(filter(None, [": ".join(filter(None, [counts, self.doubt])), at_once, share, *told]))


def edge_backing(graph: SubtaskGraph, before: Step, after: Step) -> Backing:
    """Count for and against an edge. In a log, the runs that lack what is needed are against it.

    >>> from msg2.graph import SubtaskGraph, step
    >>> evidence = {"pour": {"edges": {"boil": {"before": 7, "together": 10, "weak": True}}}}
    >>> graph = SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}, None, evidence)
    >>> edge_backing(graph, "boil", "pour").words("videos")
    '7 of 10 videos: 3 contradict'
    """
    support = graph.support(before, after)
    if support is None or (before, after) in graph.stated:
        return Backing(stated=(before, after) in graph.stated)
    (held, against), share = support.counts, support.probability
    if any(clause.kind == "step" and clause.name == before for clause in graph.precondition(after).clauses()):
        share = share if support.kinds is None else support.kinds.get("needs", 0.0)
        if against is not None and demonstrations(graph) == "runs":
            against += support.lacking or 0
    videos = None if held is None or against is None else held + against
    at_once, said_by = support.simultaneous or 0, support.said_by or ()
    return Backing(held, videos, support.weak, share, at_once=at_once, said_by=said_by)


RelationKind: TypeAlias = EdgeKind | Literal["exclusive", "together"]


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
    """Videos that speak for it: this share, counted; of a pair that happens together, `simultaneous`."""
    opposing: int | None
    """Videos that speak against it: the others of them. In a log, also the runs that lack what is needed."""
    weak: bool
    """Whether these videos are so few, or so divided, that the edge may be chance."""
    probability: float | None
    """Share of the bootstrap samples that say the same."""
    confidence: float | None
    """The probability where there were bootstrap samples, else the share."""
    simultaneous: int | None = None
    """Videos with both that do not order them: they come at the same time, or overlap."""

    @property
    def doubt(self) -> str:
        """Why it is weak, if it is."""
        return Backing(self.supporting, (self.supporting or 0) + (self.opposing or 0), self.weak).doubt


def edge_pairs_with_support(graph: SubtaskGraph) -> list[RelatedPair]:
    """Every edge of a graph, in the order of `graph.edges()`, then the pairs that mostly happen together."""
    return [
        *(_row(edge.before, edge.after, edge.kind, edge.support or NO_SUPPORT, graph) for edge in graph.edges()),
        *(_row(first, second, "together", support, graph) for first, second, support in together_pairs(graph)),
    ]


def related_pairs(graph: SubtaskGraph) -> list[RelatedPair]:
    """Every pair of a graph that is related, the surest first; last those with few videos, and without evidence.

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
        *(_row(first, second, "exclusive", exclusive_support(graph, first, second), graph) for first, second in apart),
    ]
    return sorted(
        rows, key=lambda row: (row.confidence is None, row.weak, -(row.confidence or 0), -(row.together or 0))
    )


def together_pairs(graph: SubtaskGraph) -> list[tuple[Step, Step, Support]]:
    """The pairs of steps that mostly happen at the same time, each once, with their support."""
    return [
        (first, second, support)
        for second in graph.steps
        for first, support in sorted(graph.step_evidence(second).together.items())
        if graph.index.get(first, len(graph.steps)) < graph.index[second] and graph.kind(first, second) == "together"
    ]


def _row(before: Step, after: Step, kind: RelationKind, support: Support, graph: SubtaskGraph) -> RelatedPair:
    share, probability, at_once, weak = support.share, support.probability, support.simultaneous, support.weak
    supporting, opposing = support.counts
    sure = share if probability is None else probability
    if kind == "together":
        supporting, opposing, weak = at_once or 0, support.together or 0, False
        sure = supporting / max(supporting + opposing, 1)
    elif kind == "needs" and supporting is not None:
        opposing = (edge_backing(graph, before, after).videos or supporting) - supporting
    return RelatedPair(
        before, after, kind, support.together, share, supporting, opposing, weak, probability, sure, at_once
    )


def exclusive_support(graph: SubtaskGraph, first: Step, second: Step) -> Support:
    """The videos with either of two steps, and those of them with only one."""
    evidence, videos = graph.step_evidence(first), graph.step_evidence(second).videos
    both = evidence.exclusive.get(second)
    if both is None or evidence.videos is None or videos is None:
        return NO_SUPPORT
    either = evidence.videos + videos - both
    return Support(either - both, either, probability=evidence.exclusive_probability.get(second))


OPERATOR_SYMBOLS: dict[FormulaKind, str] = {"all": "&", "any": "|", "not": "¬", "true": "true"}
"""What is written on an operator node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step (`kind` "step", `label` its name) or an operator on the way to a step."""

    id: str
    kind: FormulaKind
    label: str
    layer: int


@dataclass(frozen=True, slots=True)
class Link:
    """From the node with the id `source` to the one with the id `target`: steps or operators."""

    source: str
    target: str
    before: Step | None
    """The step it leaves; None for what leaves an operator."""
    after: Step
    """The step whose precondition it belongs to."""
    support: Support = NO_SUPPORT
    """The videos that have `before` before `after`; without evidence, a support that says nothing."""
    kind: EdgeKind = "needs"


def node_link_graph(graph: SubtaskGraph) -> tuple[list[Node], list[Link]]:
    """Nodes and links of `graph`, in a fixed order. Node ids are safe in any format: s0, s1, … and o0, o1, …"""
    nodes = [Node(f"s{i}", "step", name, graph.layer[name]) for i, name in enumerate(graph.steps)]
    ids = {node.label: node.id for node in nodes}
    links: list[Link] = []
    operators: list[Node] = []

    def connect(formula: Formula, target: str, after: Step) -> None:
        if formula.kind == "step":
            support = graph.support(formula.name, after) or NO_SUPPORT
            links.append(Link(ids[formula.name], target, formula.name, after, support))
            return
        node = Node(f"o{len(operators)}", formula.kind, OPERATOR_SYMBOLS[formula.kind], graph.layer[after])
        operators.append(node)
        for operand in formula.operands:
            connect(operand, node.id, after)
        links.append(Link(node.id, target, None, after))

    for name, formula in graph.preconditions.items():
        connect(formula, ids[name], name)
    for before, after in graph.order:
        support = graph.support(before, after) or NO_SUPPORT
        links.append(Link(ids[before], ids[after], before, after, support, "after"))
    return nodes + operators, links
