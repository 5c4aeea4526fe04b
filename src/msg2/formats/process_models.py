"""A graph as a process model of another tool: BPMN 2.0 with its diagram, or a Petri net (PNML).

BPMN allows every run that the graph allows: steps run in parallel but for what must come first; optional steps and
exclusive groups are choices (exclusive gateways). The rules that gateways cannot express stand in the documentation of
the tasks. The complete firing sequences of the Petri net are the complete runs of the graph.
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import TypeAlias

from msg2.formats.process_blocks import LEAST_REPEATED, Block, to_blocks, unsaid_rules
from msg2.graph import SubtaskGraph, all_of, disjunctive_normal_form
from msg2.task import Step
from msg2.text import escape_control_characters, one_line, truncate

_NAMESPACES = {
    "xmlns:bpmn": "http://www.omg.org/spec/BPMN/20100524/MODEL",
    "xmlns:bpmndi": "http://www.omg.org/spec/BPMN/20100524/DI",
    "xmlns:dc": "http://www.omg.org/spec/DD/20100524/DC",
    "xmlns:di": "http://www.omg.org/spec/DD/20100524/DI",
    "targetNamespace": "http://bpmn.io/schema/bpmn",
}
_SIZES = {"task": (120, 80), "exclusiveGateway": (50, 50), "parallelGateway": (50, 50)}  # events: 36 by 36
_COLUMN, _ROW = 170, 110  # pixels from one element to the next

_log = logging.getLogger("msg2")


def to_bpmn(graph: SubtaskGraph) -> str:
    """The BPMN text of `graph`; a warning counts the rules that gateways cannot express."""
    root, process = to_blocks(graph), _Process(graph.task)
    unsaid = unsaid_rules(graph, root)
    if unsaid:
        _log.warning(
            "BPMN cannot express %d of the rules: see the documentation of the tasks", sum(map(len, unsaid.values()))
        )
    first, last = process.add("startEvent", "start"), process.add("endEvent", "end")
    if graph.steps:
        begin, end = _add_block(process, root, unsaid)
        process.flows += [(first, begin), (end, last)]
    else:
        process.flows.append((first, last))
    return process.to_xml()


def _add_block(process: _Process, block: Block, notes: Mapping[Step, Sequence[str]]) -> tuple[int, int]:
    """Add a block; where it begins and where it ends."""
    if block.kind == "step":
        task = process.add("task", block.name, notes.get(block.name, ()))
        return task, task
    if block.kind == "order":
        return _add_partial_order(process, block, notes)
    begin, end = process.add("exclusiveGateway"), -1
    inner = block.parts[0]
    options = inner.parts if block.kind == "optional" and inner.kind == "choice" else block.parts
    if block.kind == "loop":
        options, back = options[:1], options[1:]
    ends = [_add_block(process, part, notes) for part in options]
    end = process.add("exclusiveGateway")
    for part_begin, part_end in ends:
        process.flows += [(begin, part_begin), (part_end, end)]
    if block.kind == "optional":
        process.flows.append((begin, end))
    if block.kind == "loop":
        process.back.append((end, begin))
        for part in back:  # what leads back may be left out
            back_begin, back_end = _add_block(process, part.parts[0], notes)
            process.flows.append((end, back_begin))
            process.back.append((back_end, begin))
    return begin, end


def _add_partial_order(process: _Process, block: Block, notes: Mapping[Step, Sequence[str]]) -> tuple[int, int]:
    """Add parts that run in parallel but for what comes first."""
    ends = [_add_block(process, part, notes) for part in block.parts]
    places = range(len(ends))
    followers = {place: [b for a, b in block.order if a == place] for place in places}
    before = {place: [a for a, b in block.order if b == place] for place in places}
    heads, tails = ([place for place in places if not ways[place]] for ways in (before, followers))
    begin = ends[heads[0]][0] if len(heads) == 1 else process.add("parallelGateway")
    leaving = {place: process.add_split(ends[place][1], len(followers[place])) for place in places}
    for place in places:
        sources = [leaving[other] for other in before[place]]
        process.join(sources or [begin] * (len(heads) > 1), ends[place][0])
    end = leaving[tails[0]] if len(tails) == 1 else process.add("parallelGateway")
    process.flows += [(leaving[place], end) for place in tails if len(tails) > 1]
    return begin, end


class _Process:
    """Elements, which are numbered, and flows of a process, drawn in columns."""

    def __init__(self, name: str) -> None:
        self._root = ET.Element("bpmn:definitions", {**_NAMESPACES, "id": "definitions"})
        self._process = ET.SubElement(self._root, "bpmn:process", id="process", name=_text(name), isExecutable="false")
        self._sizes: list[tuple[int, int]] = []
        self.flows: list[tuple[int, int]] = []
        self.back: list[tuple[int, int]] = []  # the flows that lead back to where a loop begins

    def add(self, kind: str, name: str = "", notes: Sequence[str] = ()) -> int:
        """Add an element."""
        names = {"id": f"n{len(self._sizes)}"} | ({"name": _text(name)} if name else {})
        element = ET.SubElement(self._process, f"bpmn:{kind}", names)
        if notes:
            ET.SubElement(element, "bpmn:documentation").text = _text("; ".join(notes))
        self._sizes.append(_SIZES.get(kind, (36, 36)))
        return len(self._sizes) - 1

    def add_split(self, source: int, ways: int) -> int:
        """Where `ways` flows begin: at the element itself, or at a gateway behind it."""
        if ways < 2:
            return source
        gateway = self.add("parallelGateway")
        self.flows.append((source, gateway))
        return gateway

    def join(self, sources: Sequence[int], target: int) -> None:
        """Lead several flows to an element, through a gateway that waits for all of them."""
        gateway = target if len(sources) < 2 else self.add("parallelGateway")
        self.flows += [(source, gateway) for source in sources]
        if gateway != target:
            self.flows.append((gateway, target))

    def to_xml(self) -> str:
        """The document, with the diagram."""
        diagram = ET.SubElement(self._root, "bpmndi:BPMNDiagram", id="diagram")
        plane = ET.SubElement(diagram, "bpmndi:BPMNPlane", id="plane", bpmnElement="process")
        centres = self._centres()
        for number, ((x, y), (width, height)) in enumerate(zip(centres, self._sizes, strict=True)):
            shape = ET.SubElement(plane, "bpmndi:BPMNShape", id=f"n{number}_shape", bpmnElement=f"n{number}")
            corner = {"x": f"{x - width / 2:g}", "y": f"{y - height / 2:g}"}
            ET.SubElement(shape, "dc:Bounds", {**corner, "width": str(width), "height": str(height)})
        for number, (source, target) in enumerate([*self.flows, *self.back]):
            flow = {"id": f"f{number}", "sourceRef": f"n{source}", "targetRef": f"n{target}"}
            ET.SubElement(self._process, "bpmn:sequenceFlow", flow)
            edge = ET.SubElement(plane, "bpmndi:BPMNEdge", id=f"f{number}_edge", bpmnElement=f"f{number}")
            (x, y), (to_x, to_y) = centres[source], centres[target]
            start, end = x + self._sizes[source][0] / 2, to_x - self._sizes[target][0] / 2
            above = min(y, to_y) - _ROW / 2
            is_long = to_x <= x or (to_x - x > _COLUMN and y == to_y)  # it passes above what may stand between
            between = [(start + 15, above), (end - 15, above)] if is_long else []
            for point_x, point_y in [(start, y), *between, (end, to_y)]:
                ET.SubElement(edge, "di:waypoint", x=f"{point_x:g}", y=f"{point_y:g}")
        return _to_text(self._root)

    def _centres(self) -> list[tuple[float, float]]:
        """Every element one column behind the last that leads to it, as near to those as there is room."""
        import networkx

        flows = networkx.DiGraph(self.flows)
        before = flows.pred
        columns: dict[int, int] = {}
        rows: dict[int, float] = {}
        for column, generation in enumerate(networkx.topological_generations(flows)):
            columns |= dict.fromkeys(generation, column)
            wanted = {n: sum(rows[m] for m in before[n]) / max(len(before[n]), 1) for n in sorted(generation)}
            first = min(wanted.values()) - (len(wanted) - 1) / 2
            rows |= {n: first + place for place, n in enumerate(sorted(wanted, key=wanted.__getitem__))}
        top = min(rows.values())
        return [(100 + _COLUMN * columns[n], 100 + _ROW * (rows[n] - top)) for n in range(len(self._sizes))]


def _text(name: str) -> str:
    return truncate(escape_control_characters(one_line(name)), 2000)


def _to_text(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


# -- PNML -------------------------------------------------------------------------------------------------------

_PNML = "http://www.pnml.org/version-2009/grammar/pnml"
_NetPlace: TypeAlias = tuple[str, ...]
"""What a place is for, and the steps that it is about."""
_START, _RUNNING, _CLOSING, _END = ("start",), ("running",), ("closing",), ("end",)
_Transition: TypeAlias = tuple[str, Sequence[_NetPlace], Sequence[_NetPlace]]
"""Its name, the places whose tokens it takes, and those that it puts one into."""


def to_pnml(graph: SubtaskGraph) -> str:
    """The PNML text of `graph`; its final marking is written as ProM and pm4py have it.

    Without loops the complete firing sequences are the complete runs: where blocks say all rules, the net is made of
    them, else of what each step looks at. With loops the net is made of blocks, whatever they say.
    """
    root = to_blocks(graph)
    unsaid = sum(map(len, unsaid_rules(graph, root).values()))
    if unsaid and not graph.loops:
        return _exact_net(graph)
    if unsaid:
        _log.warning("the net has loops and cannot express %d of the rules", unsaid)
    places = (("place", str(number)) for number in count())
    moves = [*_block_transitions(root, [_START], [_END], places)]
    return _write_net(graph.task, *([move for move in moves if bool(move[0]) == shown] for shown in (True, False)))


def _exact_net(graph: SubtaskGraph) -> str:
    """The net that says of each step what it looks at and what it leaves behind."""
    reduced = graph.transitive_reduction()
    required, terms = reduced.required, {}
    handed_on: dict[Step, set[Step]] = {name: set() for name in reduced.steps}  # to whom a required step leaves a token
    looked_at: dict[str, set[Step]] = {"done": set(), "to do": set()}
    for name in reduced.steps:
        clauses = reduced.precondition(name).clauses()
        direct = {clause.name for clause in clauses if {name, clause.name} <= required and clause.kind == "step"}
        rest = all_of(clause for clause in clauses if clause.name not in direct)
        direct |= reduced.order_predecessors(name) & required if name in required else set()
        for before in direct:
            handed_on[before].add(name)
        not_yet = {after for after in reduced.order_successors(name) if not {name, after} <= required}
        terms[name] = [
            [*((other, "done" if done else "to do") for other, done in sorted(term)),
             *((after, "to do") for after in sorted(not_yet))]
            for term in disjunctive_normal_form(rest)
        ]  # fmt: skip
        for other, state in chain.from_iterable(terms[name]):
            looked_at[state].add(other)

    certain = {group for group in reduced.exclusive if reduced.optional.isdisjoint(group)}
    # What is marked when a run begins, what it has to reach, and what is there when nothing is left to put away.
    at_first: list[_NetPlace] = [_RUNNING]
    reached: list[_NetPlace] = [_RUNNING]
    left: list[_NetPlace] = [_CLOSING]
    visible: list[_Transition] = []
    put_away: list[tuple[_NetPlace, _NetPlace]] = []
    for name in reduced.steps:
        own = [group for group in reduced.exclusive if name in group]
        consumed: list[_NetPlace] = [("then", other, name) for other in reduced.steps if name in handed_on[other]]
        produced: list[_NetPlace] = [("then", name, other) for other in reduced.steps if other in handed_on[name]]
        to_do, done, over = ("to do", name), ("done", name), ("over", name)
        if name in required:
            at_first += [to_do] if name in looked_at["to do"] or not consumed else []
            reached += [done] if name in looked_at["done"] or not produced else []
            produced += [done] if done in reached else []
        elif not own or name in looked_at["to do"] | looked_at["done"]:
            at_first.append(to_do)
            left.append(over)
            put_away.append((to_do, over))
            put_away += [(done, over)] if name in looked_at["done"] else []
            produced.append(done if name in looked_at["done"] else over)
        consumed += [to_do] if to_do in at_first else []
        consumed += [("free", *group) for group in own]
        produced += [("one of", *group) for group in own]
        for term in terms[name]:
            reads: list[_NetPlace] = [(state, other) for other, state in term]
            visible.append((name, [*consumed, *reads], [*produced, *reads]))
    for group in reduced.exclusive:
        at_first.append(("free", *group))
        (reached if group in certain else left).append(("one of", *group))
        put_away += [] if group in certain else [(("free", *group), ("one of", *group))]
    again = {name for name, share in graph.repeats.items() if share >= LEAST_REPEATED}
    undone = [("", produced, consumed) for name, consumed, produced in visible if name in again]
    silent: list[_Transition] = [*undone, ("begin", [_START], at_first), ("finish", reached, [_CLOSING])]
    silent += [(f"put away {_place_name(here)}", [here, _CLOSING], [there, _CLOSING]) for here, there in put_away]
    return _write_net(graph.task, visible, [*silent, ("end", left, [_END])])


def _block_transitions(
    block: Block, taken: Sequence[_NetPlace], given: Sequence[_NetPlace], new: Iterator[_NetPlace]
) -> Iterator[_Transition]:
    """The transitions of a block, from the places that it takes tokens from to those that it puts them into."""
    parts = block.parts
    if block.kind == "step":
        yield block.name, taken, given
    elif block.kind == "loop":
        begun, done = next(new), next(new)
        yield "", taken, [begun]
        yield from _block_transitions(parts[0], [begun], [done], new)
        yield from _block_transitions(parts[1] if parts[1:] else Block("order"), [done], [begun], new)
        yield "", [done], given
    elif not parts:
        yield "", taken, given
    elif block.kind != "order":
        for part in parts:
            yield from _block_transitions(part, taken, given, new)
        if block.kind == "optional":
            yield "", taken, given
    else:
        between = {pair: next(new) for pair in block.order}
        enter = {place: next(new) for place in range(len(parts)) if place not in {b for _, b in block.order}}
        leave = {place: next(new) for place in range(len(parts)) if place not in {a for a, _ in block.order}}
        if len(enter) != 1:
            yield "", taken, [*enter.values()]
        if len(leave) != 1:
            yield "", [*leave.values()], given
        for place, part in enumerate(parts):
            ins = [spot for (_, b), spot in between.items() if b == place] or [enter[place]]
            outs = [spot for (a, _), spot in between.items() if a == place] or [leave[place]]
            is_first, is_last = [place] == [*enter], [place] == [*leave]
            yield from _block_transitions(part, taken if is_first else ins, given if is_last else outs, new)


def _write_net(name: str, visible: Sequence[_Transition], silent: Sequence[_Transition]) -> str:
    """A net as text, with a token in the first place, and one in the last when all is over."""
    root = ET.Element("pnml", xmlns=_PNML)
    net = ET.SubElement(root, "net", id="net", type=f"{_PNML}coremodel")
    _add_text(net, "name", name)
    page = ET.SubElement(net, "page", id="page")
    places: dict[_NetPlace, ET.Element] = {}
    arcs: list[tuple[str, str]] = []
    for number, (label, consumed, produced) in enumerate([*visible, *silent]):
        for place in (*consumed, *produced):
            if place not in places:
                places[place] = ET.SubElement(page, "place", id=f"p{len(places)}")
                _add_text(places[place], "name", _place_name(place))
        arcs += [(places[place].attrib["id"], f"t{number}") for place in consumed]
        arcs += [(f"t{number}", places[place].attrib["id"]) for place in produced]
        element = ET.SubElement(page, "transition", id=f"t{number}")
        _add_text(element, "name", label)
        if number >= len(visible):
            ET.SubElement(element, "toolspecific", tool="ProM", version="6.4", activity="$invisible$")
    _add_text(places[_START], "initialMarking", "1")
    for number, (source, target) in enumerate(arcs):
        ET.SubElement(page, "arc", id=f"a{number}", source=source, target=target)
    marking = ET.SubElement(ET.SubElement(net, "finalmarkings"), "marking")
    ET.SubElement(ET.SubElement(marking, "place", idref=places[_END].attrib["id"]), "text").text = "1"
    return _to_text(root)


def _place_name(place: _NetPlace) -> str:
    kind, *steps = place
    return f"{kind}: {', '.join(steps)}" if steps else kind


def _add_text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(ET.SubElement(parent, tag), "text").text = escape_control_characters(text)
