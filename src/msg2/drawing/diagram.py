"""What a diagram shows, whatever the format: steps and operators, arrows, groups; and how they differ from a truth."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from msg2.drawing.style import SELF_EVIDENT, SIGNS, EdgeStatus
from msg2.errors import InputError
from msg2.graph import Link, Node, SubtaskGraph, node_link_graph
from msg2.graph.evidence import Backing, EdgeKind
from msg2.graph.explanation import loop_in_words
from msg2.task import Step
from msg2.text import short_repr, wrap

WIDEST_LABEL = 22  # characters per line of a label
NARROWEST_LABEL = 14  # the same in deep graphs, whose boxes must be narrower
CHARACTERS_PER_ROW = 180  # characters of all labels from left to right that fit a screen
LONGEST_LABEL = 90
"""Characters of a label before it is cut with "…"; the full name is in the tooltip."""


@dataclass(frozen=True, slots=True)
class Arrow(Link):
    """A link as it is drawn."""

    id: str = ""
    status: EdgeStatus = "common"
    is_alternative: bool = False  # whether it leads into an "or"
    true_kind: EdgeKind | None = None  # what the true graph says about the two steps, where that is something else
    is_followed: bool = False  # whether the second step must follow the first, though not every run does it

    @property
    def text(self) -> str:
        """What it says, for a tooltip."""
        if self.before is None:
            return f"→ {self.after}"
        kind = "" if self.kind == "needs" else f" ({SIGNS[self.kind].words})"
        held, against = self.support.counts
        sure = Backing(held, None if held is None or against is None else held + against, self.support.weak)
        order = "" if held is None else f": in this order in {sure.words('videos')}"
        follows = f", {SIGNS['response'].words}" if self.is_followed else ""
        other = "" if self.true_kind is None else f"; in the true graph: {SIGNS[self.true_kind].words}"
        return f"{self.before} → {self.after}{kind}{order}{follows}{other}"

    @property
    def width(self) -> float:
        """Line width in points: 0.8 where the order is a coin toss up to 2.8 where it never fails; "after" is thin."""
        share = self.support.share
        width = 1.3 if share is None else 0.8 + 2.0 * max(0.0, 2.0 * share - 1.0)
        return round(width if self.kind == "needs" else 0.5 + 0.15 * width, 2)

    @property
    def is_dashed(self) -> bool:
        """Whether it has little support, or the graph does not have it."""
        return self.support.weak or self.status == "missing"


@dataclass(frozen=True, slots=True)
class ExclusiveGroup:
    """Steps of which a run does at most one."""

    id: str
    nodes: tuple[str, ...]  # their ids, what comes first, first
    at_start: bool  # whether nothing comes before any of them
    text: str  # what it says, for a tooltip
    status: EdgeStatus


@dataclass(frozen=True, slots=True)
class LoopArrow:
    """The way back to the first step of a part that is done again."""

    id: str
    sources: tuple[str, ...]
    target: str
    share: float
    text: str  # what it says, for a tooltip


@dataclass(frozen=True, slots=True)
class Diagram:
    """What is drawn of a graph: nodes, arrows and groups, in a fixed order; its steps have the ids s0, s1, …"""

    graph: SubtaskGraph
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    groups: tuple[ExclusiveGroup, ...]
    loops: tuple[LoopArrow, ...]
    notes: Mapping[Step, str]  # a few words about some of the steps
    compared: bool  # whether the arrows have a status beside a true graph
    omitted_edges: int  # edges that are not drawn because they follow from others

    def label(self, text: str, columns: int | None = None) -> list[str]:
        """A text in lines of so many characters; by default, the deeper the graph, the narrower its boxes."""
        ranks = 1 + max(self.graph.layer.values(), default=0)
        fitting = max(min(WIDEST_LABEL, CHARACTERS_PER_ROW // ranks), NARROWEST_LABEL)
        return wrap(text, columns or fitting, LONGEST_LABEL)

    @property
    def drawn_kinds(self) -> tuple[str, ...]:
        """Everything that occurs, of `SIGNS`."""
        operators = {node.kind for node in self.nodes}
        occurs = {
            "needs": any(arrow.kind == "needs" and not arrow.is_alternative for arrow in self.arrows),
            "alternative": "any" in operators,
            "after": any(arrow.kind == "after" for arrow in self.arrows),
            "response": any(arrow.is_followed for arrow in self.arrows),
            "loop": bool(self.loops),
            "exclusive": bool(self.groups),
            "optional": bool(self.graph.optional),
            "repeats": bool(self.graph.repeats),
            "start": any(not layer and step not in self.notes for step, layer in self.graph.layer.items()),
            "all": "all" in operators,
            "not": "not" in operators,
            "share": len({arrow.support.share for arrow in self.arrows} - {None}) > 1,
            "weak": any(arrow.support.weak for arrow in self.arrows),
        }
        return tuple(kind for kind in SIGNS if occurs[kind])

    @property
    def legend(self) -> tuple[str, ...]:
        """What needs to be explained: nothing where the arrows say no more than "needs"."""
        kinds = tuple(kind for kind in self.drawn_kinds if kind not in SELF_EVIDENT)
        return () if {*kinds} <= {"needs", "alternative"} else kinds


def build_diagram(
    graph: SubtaskGraph,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    reduce: bool = True,
) -> Diagram:
    """Decide what a diagram of a graph shows; an "and" is drawn only beside or inside of an "or"."""
    drawn = graph.transitive_reduction() if reduce else graph
    truth = compare.transitive_reduction() if compare is not None and reduce else compare
    for names, where in ((marks or {}, "marks"), (() if truth is None else truth.steps, "true graph")):
        for name in sorted(set(names) - set(graph.steps)):
            raise InputError(f"{short_repr(name)} is not a step of the graph", where=where)
    nodes, links = _without_plain_ands(*node_link_graph(drawn))
    omitted = len(graph.edge_pairs() - drawn.edge_pairs())
    arrows, groups = _arrows(drawn, nodes, links, truth), _exclusive_groups(drawn, truth)
    return Diagram(drawn, tuple(nodes), arrows, groups, _loops(drawn), marks or {}, compare is not None, omitted)


def _loops(drawn: SubtaskGraph) -> tuple[LoopArrow, ...]:
    """List the ways back: from the steps that lead back or, without any, from the last one of the part."""
    ids = {name: f"s{place}" for name, place in drawn.index.items()}
    return tuple(
        LoopArrow(f"l{number}", tuple(ids[name] for name in loop.back or loop.steps[-1:]), ids[loop.steps[0]],
                  loop.share, loop_in_words(drawn, loop))
        for number, loop in enumerate(drawn.loops)
    )  # fmt: skip


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


def _arrows(drawn: SubtaskGraph, nodes: list[Node], links: list[Link], truth: SubtaskGraph | None) -> tuple[Arrow, ...]:
    """List the links of the drawn graph, then the edges that only the true graph has."""
    kinds = {(edge.before, edge.after): edge.kind for edge in drawn.edges()}
    true_kinds = kinds if truth is None else {(edge.before, edge.after): edge.kind for edge in truth.edges()}
    ors = {node.id for node in nodes if node.kind == "any"}
    followed = {(name, other) for name, formula in drawn.responses for other in formula.steps - drawn.required}
    into = defaultdict[str, set[Step]](set)  # the steps that lead to a node; links into an operator precede those out
    arrows = []
    for number, link in enumerate(links):
        sources = into[link.source] if link.before is None else {link.before}
        into[link.target] |= sources
        pair = (link.before or "", link.after)
        status: EdgeStatus = "common" if any((name, link.after) in true_kinds for name in sources) else "redundant"
        other_kind = true_kinds.get(pair) if true_kinds.get(pair) != kinds.get(pair) else None
        ends = (link.source, link.target, link.before, link.after, link.support, link.kind)
        arrows.append(Arrow(*ends, f"e{number}", status, link.target in ors, other_kind, pair in followed))
    missing = sorted(true_kinds.keys() - kinds.keys(), key=lambda pair: (drawn.index[pair[1]], pair[0]))
    for number, (before, after) in enumerate(missing, start=len(links)):
        source, target = (f"s{drawn.index[name]}" for name in (before, after))
        kind = true_kinds[before, after]
        arrows.append(Arrow(source, target, before, after, kind=kind, id=f"e{number}", status="missing"))
    return tuple(arrows)


def _exclusive_groups(drawn: SubtaskGraph, truth: SubtaskGraph | None) -> tuple[ExclusiveGroup, ...]:
    """List the groups of the drawn graph, then those that only the true graph has."""

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
        text = f"{SIGNS['exclusive'].words}: {', '.join(drawn.steps[place] for place in places)}"
        at_start = not any(drawn.layer[name] for name in group)
        groups.append(ExclusiveGroup(f"x{number}", tuple(f"s{place}" for place in places), at_start, text, status))
    return tuple(groups)
