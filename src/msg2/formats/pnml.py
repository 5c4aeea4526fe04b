"""A graph as a Petri net in PNML, for ProM, pm4py and others: its complete firing sequences are the complete runs.

Between two required steps, what comes first leaves a token in a place for the other one. The rest looks at a place
without emptying it, with an arc there and one back: at "done: x" for a need, at "to do: x" for what must not be done
yet (after, if done; not). An exclusive group shares one token. A step with alternatives has a transition for each of
them, all of the same name. Silent transitions begin and end a run, and put away what was left out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import TypeAlias

from msg2.graph import SubtaskGraph, all_of, disjunctive_normal_form
from msg2.task import Step
from msg2.text import escape_control_characters

_NAMESPACE = "http://www.pnml.org/version-2009/grammar/pnml"
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
        for term in terms[name]:
            for one, state in term:
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
        self._root = ET.Element("pnml", xmlns=_NAMESPACE)
        self._net = ET.SubElement(self._root, "net", id="net", type=_NET_TYPE)
        _add_text(self._net, "name", name)
        self._page = ET.SubElement(self._net, "page", id="page")
        self._places: dict[_NetPlace, ET.Element] = {}
        self._arcs: list[tuple[str, str]] = []
        self._transitions = 0

    def _place_id(self, place: _NetPlace) -> str:
        if place not in self._places:
            self._places[place] = ET.SubElement(self._page, "place", id=f"p{len(self._places)}")
            _add_text(self._places[place], "name", _place_name(place))
        return self._places[place].attrib["id"]

    def add_transition(
        self, name: str, consumed: Iterable[_NetPlace], produced: Iterable[_NetPlace], *, silent: bool = False
    ) -> None:
        """Add a transition with its arcs."""
        id = f"t{self._transitions}"
        self._transitions += 1
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
        _add_text(ET.SubElement(marking, "place", idref=self._place_id(_END)), "text", "1", nested=False)
        ET.indent(self._root)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(self._root, encoding="unicode")}\n'


def _place_name(place: _NetPlace) -> str:
    kind, *steps = place
    return f"{kind}: {', '.join(steps)}" if steps else kind


def _add_text(parent: ET.Element, tag: str, text: str, *, nested: bool = True) -> None:
    element = ET.SubElement(parent, tag)
    (ET.SubElement(element, "text") if nested else element).text = escape_control_characters(text)
