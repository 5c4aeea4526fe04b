"""Petri nets and BPMN read by a parser of its own, and every complete run of them found by playing the token game."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msg2.graph import SubtaskGraph

Run = tuple[str, ...]
Marking = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class PetriNet:
    """Transitions as (label or None, what is taken, what is given)."""

    transitions: tuple[tuple[str | None, Counter[str], Counter[str]], ...]
    initial: Counter[str]
    final: Counter[str]

    def runs(self) -> set[Run]:
        """The labels of all firing sequences from the initial to the final marking."""
        found: set[Run] = set()
        open_states, seen = [(self._freeze(self.initial), ())], set()
        final = self._freeze(self.final)
        while open_states:
            state = open_states.pop()
            if state in seen:
                continue
            seen.add(state)
            marking, run = Counter(dict(state[0])), state[1]
            found |= {run} if state[0] == final else set()
            for label, taken, given in self.transitions:
                if all(marking[place] >= count for place, count in taken.items()):
                    after = marking.copy()
                    after.subtract(taken)
                    after.update(given)
                    assert max(after.values()) <= 1, "the net is not safe"
                    open_states.append((self._freeze(after), run if label is None else (*run, label)))
        return found

    def allows(self, run: Sequence[str]) -> bool:
        """Whether some firing sequence from the initial to the final marking has these labels."""
        moves = [(label, frozenset(taken), frozenset(given)) for label, taken, given in self.transitions]
        states = {frozenset(self.initial)}
        for name in [*run, None]:
            open_states = [*states]
            for state in open_states:  # it grows by what silent transitions reach
                after = [(state - taken) | given for label, taken, given in moves if label is None and taken <= state]
                open_states += {*after}.difference(open_states)
            if name is None:
                return frozenset(self.final) in open_states
            states = {
                (state - taken) | given
                for state in open_states
                for label, taken, given in moves
                if label == name and taken <= state
            }
        return False

    @staticmethod
    def _freeze(marking: Counter[str]) -> Marking:
        return frozenset((place, count) for place, count in marking.items() if count)


def read_pnml(text: str) -> PetriNet:
    root = ET.fromstring(text)
    space = {"p": root.tag.partition("}")[0][1:]}
    taken: dict[str, Counter[str]] = {}
    given: dict[str, Counter[str]] = {}
    for arc in root.findall(".//p:arc", space):
        source, target = arc.attrib["source"], arc.attrib["target"]
        if target.startswith("t"):
            taken.setdefault(target, Counter())[source] += 1
        else:
            given.setdefault(source, Counter())[target] += 1
    transitions = []
    for one in root.findall(".//p:transition", space):
        silent = one.find("p:toolspecific[@activity='$invisible$']", space) is not None
        label = None if silent else one.findtext("p:name/p:text", namespaces=space)
        transitions.append((label, taken[one.attrib["id"]], given[one.attrib["id"]]))
    places = root.findall(".//p:page/p:place", space)
    initial = Counter(one.attrib["id"] for one in places if one.find("p:initialMarking", space) is not None)
    final = Counter(one.attrib["idref"] for one in root.findall(".//p:finalmarkings//p:place", space))
    return PetriNet(tuple(transitions), initial, final)


def read_bpmn(text: str) -> PetriNet:
    """The net of a BPMN process: a place for every flow; an exclusive gateway takes and gives one of its flows."""
    root = ET.fromstring(text)
    space = {"b": "http://www.omg.org/spec/BPMN/20100524/MODEL"}
    process = root.find("b:process", space)
    assert process is not None
    into: dict[str, list[str]] = {}
    out_of: dict[str, list[str]] = {}
    for flow in process.findall("b:sequenceFlow", space):
        into.setdefault(flow.attrib["targetRef"], []).append(flow.attrib["id"])
        out_of.setdefault(flow.attrib["sourceRef"], []).append(flow.attrib["id"])
    transitions: list[tuple[str | None, Counter[str], Counter[str]]] = []
    for node in process:
        kind, id = node.tag.partition("}")[2], node.attrib.get("id", "")
        before, after = into.get(id, []), out_of.get(id, [])
        if kind == "startEvent":
            transitions.append((None, Counter(["start"]), Counter(after)))
        elif kind == "endEvent":
            transitions.append((None, Counter(before), Counter(["end"])))
        elif kind == "task":
            assert len(before) == len(after) == 1
            transitions.append((node.attrib["name"], Counter(before), Counter(after)))
        elif kind == "parallelGateway":
            transitions.append((None, Counter(before), Counter(after)))
        elif kind == "exclusiveGateway":
            transitions += [(None, Counter([one]), Counter([other])) for one in before for other in after]
        else:
            assert kind in ("sequenceFlow", "documentation", "textAnnotation", "association"), kind
    return PetriNet(tuple(transitions), Counter(["start"]), Counter(["end"]))


def complete_runs(graph: SubtaskGraph) -> set[Run]:
    """By brute force: every order of every set of steps, each eligible at its time, with all that a run must have."""
    choices = [set(group) for group in graph.exclusive if graph.optional.isdisjoint(group)]
    found = set()
    for size in range(len(graph.steps) + 1):
        for run in itertools.permutations(graph.steps, size):
            if not graph.required <= set(run) or not all(group & set(run) for group in choices):
                continue
            if all(name in graph.eligible(run[:place]) for place, name in enumerate(run)):
                found.add(run)
    return found
