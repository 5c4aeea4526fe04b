"""A graph as a process model of another tool: BPMN 2.0 with its diagram, or a Petri net (PNML).

BPMN allows every run that the graph allows: steps run in parallel but for what must come first; optional steps and
exclusive groups are choices (exclusive gateways). The rules that gateways cannot express stand in the documentation of
the tasks. The complete firing sequences of the Petri net are the complete runs of the graph.
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, product
from typing import TypeAlias

from msg2.graph import Formula, SubtaskGraph, all_of, disjunctive_normal_form
from msg2.task import Step
from msg2.text import escape_control_characters, one_line, truncate

_NAMESPACES = {
    "xmlns:bpmn": "http://www.omg.org/spec/BPMN/20100524/MODEL",
    "xmlns:bpmndi": "http://www.omg.org/spec/BPMN/20100524/DI",
    "xmlns:dc": "http://www.omg.org/spec/DD/20100524/DC",
    "xmlns:di": "http://www.omg.org/spec/DD/20100524/DI",
    "targetNamespace": "http://bpmn.io/schema/bpmn",
}
_SIZES = {"task": (120, 80), "exclusiveGateway": (50, 50), "parallelGateway": (50, 50)}
_EVENT_SIZE = (36, 36)
_COLUMN, _ROW = 170, 110  # pixels from one element to the next

_Block: TypeAlias = tuple[Step, ...]
"""A step, or an exclusive group as one choice."""

_log = logging.getLogger("msg2")


def to_bpmn(graph: SubtaskGraph) -> str:
    """The BPMN text of `graph`; a warning counts the rules that gateways cannot express.

    >>> from msg2.graph import step
    >>> text = to_bpmn(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}, optional=["boil"]))
    >>> [text.count(f"<bpmn:{tag} ") for tag in ("task", "exclusiveGateway", "sequenceFlow")]
    [2, 2, 6]
    """
    blocks, before = _blocks(graph)
    missing = {name: list(_missing_rules(graph, name, blocks, before)) for name in graph.steps}
    if lost := sum(map(len, missing.values())):
        _log.warning("BPMN cannot express %d of the rules: they stand in the documentation of the tasks", lost)
    process = _Process(graph.task)
    ends = {block: _add_block(process, graph, block, missing) for block in blocks}
    followers = {block: [other for other in blocks if block in _direct(other, before)] for block in blocks}
    first, last = process.add("startEvent", "start"), process.add("endEvent", "end")
    split = process.add_split(first, sum(not before[block] for block in blocks))
    leaving = {block: process.add_split(ends[block][1], len(followers[block])) for block in blocks}
    for block in blocks:
        sources = [leaving[other] for other in blocks if other in _direct(block, before)] or [split]
        process.join(sources, ends[block][0])
    process.join([leaving[block] for block in blocks if not followers[block]] or [split], last)
    return process.to_xml()


# -- what comes before what -------------------------------------------------------------------------------------


def _blocks(graph: SubtaskGraph) -> tuple[list[_Block], dict[_Block, set[_Block]]]:
    """Steps and choices, and for each all that come before it.

    A token goes on even where a step was left out. So one block may come before another, through others as well, only
    if each of its steps comes before each of the other's in every run that has both.
    """
    groups: list[_Block] = []
    for group in graph.exclusive:
        groups += [] if any(set(group) & set(other) for other in groups) else [group]
    single = [(name,) for name in graph.steps if not any(name in group for group in groups)]
    blocks = sorted([*groups, *single], key=lambda block: graph.steps.index(block[0]))
    kinds = graph.pair_kinds
    index = {name: place for place, name in enumerate(kinds.steps)}
    ordered: dict[tuple[_Block, _Block], bool] = {}
    for one, other in product(blocks, blocks):
        pairs = [(index[a], index[b]) for a, b in product(one, other)]
        fits = one != other and all(kinds.before[pair] or kinds.exclusive[pair] for pair in pairs)
        ordered[one, other] = fits and any(kinds.before[pair] for pair in pairs)
    before: dict[_Block, set[_Block]] = {block: set() for block in blocks}
    for one, other in sorted(ordered, key=lambda pair: not kinds.needs[index[pair[0][0]], index[pair[1][0]]]):
        after = [block for block in blocks if other in before[block]]
        gained = list(product({one, *before[one]}, [other, *after]))
        if ordered[one, other] and all(ordered[pair] for pair in gained):
            for earlier, later in gained:
                before[later].add(earlier)
    return blocks, before


def _direct(block: _Block, before: Mapping[_Block, set[_Block]]) -> set[_Block]:
    """What comes before a block, with nothing between."""
    return before[block].difference(*(before[other] for other in before[block]))


def _missing_rules(
    graph: SubtaskGraph, name: Step, blocks: Sequence[_Block], before: Mapping[_Block, set[_Block]]
) -> Iterable[str]:
    """What the process does not say about a step."""
    block = next(one for one in blocks if name in one)
    certain = {step for step in graph.required if (step,) in before[block]}
    choices = [one for one in before[block] if len(one) > 1 and graph.optional.isdisjoint(one)]

    def is_said(clause: Formula) -> bool:
        options = [clause] if clause.kind == "step" else clause.operands if clause.kind == "any" else ()
        steps = {one.name for one in options if one.kind == "step"}
        return bool(steps & certain) or any(steps.issuperset(choice) for choice in choices)

    for clause in graph.precondition(name).clauses():
        if not is_said(clause):
            yield f"needs {clause.text(' and ', ' or ', 'not ', one_line)}"
    for other in sorted(graph.order_predecessors(name)):
        if not any(other in one for one in before[block]):
            yield f"after {one_line(other)}, if done"
    for other in sorted(graph.partners(name) - {*block}):
        yield f"never together with {one_line(other)}"


# -- the process ------------------------------------------------------------------------------------------------


def _add_block(
    process: _Process, graph: SubtaskGraph, block: _Block, missing: Mapping[Step, Sequence[str]]
) -> tuple[str, str]:
    """Add a step or a choice; where it begins and where it ends."""
    tasks = [process.add("task", name, missing[name]) for name in block]
    optional = not (graph.optional.isdisjoint(block) if len(block) > 1 else graph.required.issuperset(block))
    if len(tasks) == 1 and not optional:
        return tasks[0], tasks[0]
    choice, merged = process.add("exclusiveGateway"), process.add("exclusiveGateway")
    for task in tasks:
        process.flows += [(choice, task), (task, merged)]
    if optional:
        process.flows.append((choice, merged))
    return choice, merged


class _Process:
    """Elements and flows of a process, drawn in columns."""

    def __init__(self, name: str) -> None:
        self._root = ET.Element("bpmn:definitions", {**_NAMESPACES, "id": "definitions"})
        self._process = ET.SubElement(self._root, "bpmn:process", id="process", name=_text(name), isExecutable="false")
        self._kinds: dict[str, str] = {}
        self.flows: list[tuple[str, str]] = []

    def add(self, kind: str, name: str = "", notes: Sequence[str] = ()) -> str:
        """Add an element."""
        id = f"n{len(self._kinds)}"
        self._kinds[id] = kind
        element = ET.SubElement(self._process, f"bpmn:{kind}", {"id": id} | ({"name": _text(name)} if name else {}))
        if notes:
            ET.SubElement(element, "bpmn:documentation").text = _text("; ".join(notes))
        return id

    def add_split(self, source: str, ways: int) -> str:
        """Where `ways` flows begin: at the element itself, or at a gateway behind it."""
        if ways < 2:
            return source
        gateway = self.add("parallelGateway")
        self.flows.append((source, gateway))
        return gateway

    def join(self, sources: Sequence[str], target: str) -> None:
        """Lead several flows to an element, through a gateway that waits for all of them."""
        gateway = target if len(sources) < 2 else self.add("parallelGateway")
        self.flows += [(source, gateway) for source in sources]
        if gateway != target:
            self.flows.append((gateway, target))

    def to_xml(self) -> str:
        """The document, with the diagram."""
        for number, (source, target) in enumerate(self.flows):
            flow = {"id": f"f{number}", "sourceRef": source, "targetRef": target}
            ET.SubElement(self._process, "bpmn:sequenceFlow", flow)
        self._draw()
        return _to_text(self._root)

    def _draw(self) -> None:
        diagram = ET.SubElement(self._root, "bpmndi:BPMNDiagram", id="diagram")
        plane = ET.SubElement(diagram, "bpmndi:BPMNPlane", id="plane", bpmnElement="process")
        centres = self._centres()
        for id, (x, y) in centres.items():
            width, height = _SIZES.get(self._kinds[id], _EVENT_SIZE)
            shape = ET.SubElement(plane, "bpmndi:BPMNShape", id=f"{id}_shape", bpmnElement=id)
            corner = {"x": f"{x - width / 2:g}", "y": f"{y - height / 2:g}"}
            ET.SubElement(shape, "dc:Bounds", {**corner, "width": str(width), "height": str(height)})
        for number, (source, target) in enumerate(self.flows):
            edge = ET.SubElement(plane, "bpmndi:BPMNEdge", id=f"f{number}_edge", bpmnElement=f"f{number}")
            for x, y in self._waypoints(source, target, centres):
                ET.SubElement(edge, "di:waypoint", x=f"{x:g}", y=f"{y:g}")

    def _centres(self) -> dict[str, tuple[float, float]]:
        """Every element one column behind the last that leads to it, as near to those as there is room."""
        import networkx

        flows = networkx.DiGraph(self.flows)
        order = {id: place for place, id in enumerate(self._kinds)}
        columns: dict[str, int] = {}
        rows: dict[str, float] = {}
        for column, generation in enumerate(networkx.topological_generations(flows)):
            ids = sorted(generation, key=order.__getitem__)
            columns |= dict.fromkeys(ids, column)
            wanted = {id: sum(rows[one] for one in flows.pred[id]) / max(len(flows.pred[id]), 1) for id in ids}
            row = min(wanted.values()) - (len(ids) - 1) / 2
            for id in sorted(ids, key=wanted.__getitem__):
                rows[id] = row = max(row, wanted[id]) if len(ids) == 1 else row
                row += 1
        top = min(rows.values())
        return {id: (100 + _COLUMN * columns[id], 100 + _ROW * (rows[id] - top)) for id in self._kinds}

    def _waypoints(
        self, source: str, target: str, centres: Mapping[str, tuple[float, float]]
    ) -> list[tuple[float, float]]:
        """From side to side; past what may stand between, above it."""
        (x, y), (to_x, to_y) = centres[source], centres[target]
        start = x + _SIZES.get(self._kinds[source], _EVENT_SIZE)[0] / 2
        end = to_x - _SIZES.get(self._kinds[target], _EVENT_SIZE)[0] / 2
        if to_x - x <= _COLUMN or y != to_y:
            return [(start, y), (end, to_y)]
        above = y - _ROW / 2
        return [(start, y), (start + 15, above), (end - 15, above), (end, to_y)]


def _text(name: str) -> str:
    return truncate(escape_control_characters(one_line(name)), 2000)


def _to_text(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


# -- PNML -------------------------------------------------------------------------------------------------------

_PNML_NAMESPACE = "http://www.pnml.org/version-2009/grammar/pnml"
_NET_TYPE = "http://www.pnml.org/version-2009/grammar/pnmlcoremodel"

_NetPlace: TypeAlias = tuple[str, ...]
"""What a place is for, and the steps that it is about."""
_START: _NetPlace = ("start",)
_RUNNING: _NetPlace = ("running",)
_CLOSING: _NetPlace = ("closing",)
_END: _NetPlace = ("end",)


def to_pnml(graph: SubtaskGraph) -> str:
    """The PNML text of `graph`; its final marking is written as ProM and pm4py have it.

    >>> from msg2.graph import step
    >>> text = to_pnml(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))
    >>> [text.count(f"<{tag} ") for tag in ("place", "transition", "arc")]
    [8, 5, 12]
    """
    reduced = graph.transitive_reduction()
    net = _PetriNet(graph.task)
    required, terms = reduced.required, {}
    handed_on: dict[Step, set[Step]] = {}  # to whom a required step leaves a token
    looked_at: dict[str, set[Step]] = {"done": set(), "to do": set()}
    for name in reduced.steps:
        clauses = reduced.precondition(name).clauses()
        direct = {one.name for one in clauses if {name, one.name} <= required and one.kind == "step"}
        rest = all_of(one for one in clauses if one.name not in direct)
        direct |= reduced.order_predecessors(name) & required if name in required else set()
        for before in direct:
            handed_on.setdefault(before, set()).add(name)
        not_yet = {after for after in reduced.order_successors(name) if not {name, after} <= required}
        terms[name] = [
            [*((one, "done" if done else "to do") for one, done in sorted(term)),
             *((after, "to do") for after in sorted(not_yet))]
            for term in disjunctive_normal_form(rest)
        ]  # fmt: skip
        for one, state in chain.from_iterable(terms[name]):
            looked_at[state].add(one)

    certain = {group for group in reduced.exclusive if reduced.optional.isdisjoint(group)}
    # What is marked when a run begins, what it has to reach, and what is there when nothing is left to put away.
    at_first, reached, left = [_RUNNING], [_RUNNING], [_CLOSING]
    put_away: list[tuple[_NetPlace, _NetPlace]] = []
    for name in reduced.steps:
        own = [group for group in reduced.exclusive if name in group]
        taken: list[_NetPlace] = [("then", one, name) for one in reduced.steps if name in handed_on.get(one, ())]
        given: list[_NetPlace] = [("then", name, one) for one in reduced.steps if one in handed_on.get(name, ())]
        to_do, done, over = ("to do", name), ("done", name), ("over", name)
        if name in required:
            at_first += [to_do] if name in looked_at["to do"] or not taken else []
            reached += [done] if name in looked_at["done"] or not given else []
            given += [done] if done in reached else []
        elif not own or name in looked_at["to do"] | looked_at["done"]:
            at_first.append(to_do)
            left.append(over)
            put_away.append((to_do, over))
            put_away += [(done, over)] if name in looked_at["done"] else []
            given.append(done if name in looked_at["done"] else over)
        taken += [to_do] if to_do in at_first else []
        taken += [("free", *group) for group in own]
        given += [("one of", *group) for group in own]
        for term in terms[name]:
            reads: list[_NetPlace] = [(state, one) for one, state in term]
            net.add_transition(name, [*taken, *reads], [*given, *reads])
    for group in reduced.exclusive:
        at_first.append(("free", *group))
        (reached if group in certain else left).append(("one of", *group))
        put_away += [] if group in certain else [(("free", *group), ("one of", *group))]
    net.add_transition("begin", [_START], at_first, silent=True)
    net.add_transition("finish", reached, [_CLOSING], silent=True)
    for here, there in put_away:
        net.add_transition(f"put away {_place_name(here)}", [here, _CLOSING], [there, _CLOSING], silent=True)
    net.add_transition("end", left, [_END], silent=True)
    return net.to_xml()


class _PetriNet:
    """An XML document that grows: a place is there as soon as an arc leads to it or from it."""

    def __init__(self, name: str) -> None:
        self._root = ET.Element("pnml", xmlns=_PNML_NAMESPACE)
        self._net = ET.SubElement(self._root, "net", id="net", type=_NET_TYPE)
        _add_text(self._net, "name", name)
        self._page = ET.SubElement(self._net, "page", id="page")
        self._places: dict[_NetPlace, ET.Element] = {}
        self._arcs: list[tuple[str, str]] = []
        self._numbers = count()

    def _place_id(self, place: _NetPlace) -> str:
        if place not in self._places:
            self._places[place] = ET.SubElement(self._page, "place", id=f"p{len(self._places)}")
            _add_text(self._places[place], "name", _place_name(place))
        return self._places[place].attrib["id"]

    def add_transition(
        self, name: str, consumed: Iterable[_NetPlace], produced: Iterable[_NetPlace], *, silent: bool = False
    ) -> None:
        """Add a transition with its arcs."""
        id = f"t{next(self._numbers)}"
        self._arcs += [(self._place_id(place), id) for place in consumed]
        self._arcs += [(id, self._place_id(place)) for place in produced]
        transition = ET.SubElement(self._page, "transition", id=id)
        _add_text(transition, "name", name)
        if silent:
            ET.SubElement(transition, "toolspecific", tool="ProM", version="6.4", activity="$invisible$")

    def to_xml(self) -> str:
        """The document, with a token in the first place, and one in the last when all is over."""
        _add_text(self._places[_START], "initialMarking", "1")
        for number, (source, target) in enumerate(self._arcs):
            ET.SubElement(self._page, "arc", id=f"a{number}", source=source, target=target)
        marking = ET.SubElement(ET.SubElement(self._net, "finalmarkings"), "marking")
        ET.SubElement(ET.SubElement(marking, "place", idref=self._place_id(_END)), "text").text = "1"
        return _to_text(self._root)


def _place_name(place: _NetPlace) -> str:
    kind, *steps = place
    return f"{kind}: {', '.join(steps)}" if steps else kind


def _add_text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(ET.SubElement(parent, tag), "text").text = escape_control_characters(text)
