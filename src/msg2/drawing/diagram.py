"""What a diagram shows, whatever the format: boxes, operators, arrows, groups; and how they differ from a truth."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

from msg2.errors import InputError
from msg2.graph import Link, Node, SubtaskGraph, Support, node_link_graph
from msg2.graph.evidence import NO_SUPPORT, EdgeKind
from msg2.graph.formula import FormulaKind
from msg2.task import Step
from msg2.text import short_repr, wrap

EdgeStatus: TypeAlias = Literal["common", "redundant", "missing"]
"""Of an arrow beside the truth: in both graphs, only in the drawn one, only in the truth."""
DrawnKind: TypeAlias = Literal[
    "needs", "alternative", "after", "exclusive", "optional", "repeats", "start", "all", "not", "share", "weak"
]
KIND_WORDS: dict[DrawnKind, str] = {
    "needs": "needs",
    "alternative": "one of these is enough",
    "after": "after, if done",
    "exclusive": "only one of these",
    "optional": "may be left out",
    "repeats": "done again in so many runs",
    "start": "can be done at once",
    "all": "all of these",
    "not": "only if not done",
    "share": "the wider, the more videos agree",
    "weak": "few videos tell",
}
"""What a diagram can say, in words for everyone."""
_SAID_BY_ITSELF: frozenset[DrawnKind] = frozenset({"start", "all", "not", "share", "weak"})
"""What only a full legend explains."""

OPERATOR_NAMES: dict[FormulaKind, str] = {"all": "and", "any": "or", "not": "not", "true": "true"}
"""What is written on an operator."""
WIDEST_LABEL = 22  # characters per line of a label
NARROWEST_LABEL = 14  # the same in deep graphs, whose boxes must be narrower
CHARACTERS_PER_ROW = 180  # characters of all labels from left to right that fit a screen
LONGEST_LABEL = 90
"""Characters of a label before it is cut with "…"; the full name is in the tooltip."""


@dataclass(frozen=True, slots=True)
class Box:
    """A step or an operator."""

    id: str
    kind: FormulaKind
    name: str
    """Of an operator, "and", "or" or "not"."""
    lines: tuple[str, ...]  # the name as it is written into the box
    is_start: bool = False  # whether nothing comes before the step
    note: tuple[str, ...] = ()  # a few words about the step, as lines
    is_optional: bool = False  # whether the step may be left out
    repeats: float | None = None  # share of the runs that do the step again


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another."""

    id: str
    source: str
    target: str
    before: Step | None  # the step it leaves; None for what leaves an operator
    after: Step  # the step it leads to, maybe through operators
    text: str  # what it says, for a tooltip
    support: Support = NO_SUPPORT
    status: EdgeStatus = "common"
    kind: EdgeKind = "needs"
    is_alternative: bool = False
    """Whether it leads into an "or"."""
    true_kind: EdgeKind | None = None  # what the true graph says about the two steps, where that is something else


@dataclass(frozen=True, slots=True)
class ExclusiveGroup:
    """Steps of which a run does at most one."""

    id: str
    boxes: tuple[str, ...]  # their ids, what comes first, first
    at_start: bool  # whether nothing comes before any of them
    text: str  # what it says, for a tooltip
    status: EdgeStatus = "common"


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes, arrows and groups of a task, in a fixed order."""

    task: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    compared: bool  # whether the arrows have a status beside a true graph
    omitted_edges: int  # edges that are not drawn because they follow from others
    groups: tuple[ExclusiveGroup, ...] = ()

    @property
    def drawn_kinds(self) -> tuple[DrawnKind, ...]:
        """Everything that occurs, in the order of a full legend."""
        operators = {box.kind for box in self.boxes}
        occurs: dict[DrawnKind, bool] = {
            "needs": any(arrow.kind == "needs" and not arrow.is_alternative for arrow in self.arrows),
            "alternative": "any" in operators,
            "after": any(arrow.kind == "after" for arrow in self.arrows),
            "exclusive": bool(self.groups),
            "optional": any(box.is_optional for box in self.boxes),
            "repeats": any(box.repeats is not None for box in self.boxes),
            "start": any(box.is_start and not box.note for box in self.boxes),
            "all": "all" in operators,
            "not": "not" in operators,
            "share": len({arrow.support.share for arrow in self.arrows} - {None}) > 1,
            "weak": any(arrow.support.weak for arrow in self.arrows),
        }
        return tuple(kind for kind, does in occurs.items() if does)

    @property
    def legend(self) -> tuple[DrawnKind, ...]:
        """What needs to be explained: nothing where the arrows say no more than "needs"."""
        kinds = tuple(kind for kind in self.drawn_kinds if kind not in _SAID_BY_ITSELF)
        return () if {*kinds} <= {"needs", "alternative"} else kinds


def build_diagram(
    graph: SubtaskGraph,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    reduce: bool = True,
    label_columns: int | None = None,
) -> Diagram:
    """Lay out what a diagram of a graph shows; an "and" is drawn only beside or inside of an "or"."""
    drawn = graph.transitive_reduction() if reduce else graph
    truth = compare.transitive_reduction() if compare is not None and reduce else compare
    notes = marks or {}
    _check_names(graph, notes, "marks")
    _check_names(graph, () if truth is None else truth.steps, "true graph")
    nodes, links = _without_plain_ands(*node_link_graph(drawn))
    columns = label_columns or _label_columns(drawn)

    def lines(text: str) -> tuple[str, ...]:
        return tuple(wrap(text, columns, LONGEST_LABEL))

    boxes = [
        Box(node.id, node.kind, node.label, lines(node.label), node.layer == 0,
            lines(notes[node.label]) if node.label in notes else (),
            node.label in drawn.optional, drawn.repeats.get(node.label))
        if node.kind == "step"
        else Box(node.id, node.kind, OPERATOR_NAMES[node.kind], (OPERATOR_NAMES[node.kind],))
        for node in nodes
    ]  # fmt: skip
    omitted = len(graph.edge_pairs() - drawn.edge_pairs())
    groups = _exclusive_groups(drawn, truth)
    ors = {node.id for node in nodes if node.kind == "any"}
    return Diagram(graph.task, tuple(boxes), _arrows(drawn, links, truth, ors), compare is not None, omitted, groups)


def _without_plain_ands(nodes: list[Node], links: list[Link]) -> tuple[list[Node], list[Link]]:
    """Lead what an "and" joins straight to its step, where no "or" is among it."""
    kinds = {node.id: node.kind for node in nodes}
    beside_or = {link.target for link in links if kinds[link.source] == "any"}
    plain = {
        link.source: link.target
        for link in links
        if kinds[link.source] == "all" and kinds[link.target] == "step" and link.source not in beside_or
    }
    direct = [replace(link, target=plain.get(link.target, link.target)) for link in links if link.source not in plain]
    return [node for node in nodes if node.id not in plain], direct


def _arrows(drawn: SubtaskGraph, links: list[Link], truth: SubtaskGraph | None, ors: Set[str]) -> tuple[Arrow, ...]:
    """The links of the drawn graph, then the edges of the true one that it does not have."""
    kinds = {(edge.before, edge.after): edge.kind for edge in drawn.edges()}
    true_kinds = kinds if truth is None else {(edge.before, edge.after): edge.kind for edge in truth.edges()}
    arrows = []
    for number, (link, sources) in enumerate(zip(links, _source_steps(links), strict=True)):
        pairs = {(before, link.after) for before in sources}
        differing = {true_kinds[pair] for pair in pairs & true_kinds.keys() if true_kinds[pair] != kinds[pair]}
        true_kind = differing.pop() if differing and link.before is not None else None
        status: EdgeStatus = "redundant" if pairs.isdisjoint(true_kinds) else "common"
        arrows.append(
            Arrow(f"e{number}", link.source, link.target, link.before, link.after, _arrow_text(link, true_kind),
                  link.support, status, link.kind, link.target in ors, true_kind)
        )  # fmt: skip
    missing = sorted(true_kinds.keys() - kinds.keys(), key=lambda pair: (drawn.steps.index(pair[1]), pair[0]))
    for number, (before, after) in enumerate(missing, start=len(links)):
        kind = true_kinds[before, after]
        source, target = (f"s{drawn.steps.index(name)}" for name in (before, after))
        text = _pair_text(before, after, kind)
        arrows.append(Arrow(f"e{number}", source, target, before, after, text, status="missing", kind=kind))
    return tuple(arrows)


def _label_columns(graph: SubtaskGraph) -> int:
    """Characters per line: the deeper the graph, the narrower its boxes, so that a row of them fits a screen."""
    ranks = 1 + max(graph.layer.values(), default=0)
    return max(min(WIDEST_LABEL, CHARACTERS_PER_ROW // ranks), NARROWEST_LABEL)


def _check_names(graph: SubtaskGraph, names: Mapping[Step, str] | tuple[Step, ...], where: str) -> None:
    for name in sorted(set(names) - set(graph.steps)):
        raise InputError(f"{short_repr(name)} is not a step of the graph", where=where)


def _exclusive_groups(drawn: SubtaskGraph, truth: SubtaskGraph | None) -> tuple[ExclusiveGroup, ...]:
    """The groups of the drawn graph, then those of the true one that it does not have."""

    def excludes(graph: SubtaskGraph, group: tuple[Step, ...]) -> bool:
        known = set(group) <= set(graph.steps)
        return known and all(graph.kind(*pair) == "exclusive" for pair in combinations(group, 2))

    statuses: list[tuple[tuple[Step, ...], EdgeStatus]] = [
        (group, "common" if truth is None or excludes(truth, group) else "redundant") for group in drawn.exclusive
    ]
    statuses += [(group, "missing") for group in (truth.exclusive if truth else ()) if not excludes(drawn, group)]
    groups = []
    for number, (group, status) in enumerate(statuses):
        places = sorted(map(drawn.steps.index, group))
        text = f"{KIND_WORDS['exclusive']}: {', '.join(drawn.steps[place] for place in places)}"
        at_start = not any(drawn.layer[name] for name in group)
        groups.append(ExclusiveGroup(f"x{number}", tuple(f"s{place}" for place in places), at_start, text, status))
    return tuple(groups)


def _arrow_text(link: Link, true_kind: EdgeKind | None) -> str:
    if link.before is None:
        return f"→ {link.after}"
    share = link.support.share
    order = "" if share is None else f": in this order in {100 * share:.0f} % of the videos with both"
    weak = ", little support" if link.support.weak else ""
    other = "" if true_kind is None else f"; in the true graph: {KIND_WORDS[true_kind]}"
    return f"{_pair_text(link.before, link.after, link.kind)}{order}{weak}{other}"


def _pair_text(before: Step, after: Step, kind: EdgeKind) -> str:
    return f"{before} → {after}" if kind == "needs" else f"{before} → {after} ({KIND_WORDS[kind]})"


def _source_steps(links: list[Link]) -> list[frozenset[Step]]:
    """Per link, the steps it leads from, operators looked through; links into an operator come before those out."""
    into: dict[str, frozenset[Step]] = {}
    sources = []
    for link in links:
        sources.append(into.get(link.source, frozenset()) if link.before is None else frozenset({link.before}))
        into[link.target] = into.get(link.target, frozenset()) | sources[-1]
    return sources
