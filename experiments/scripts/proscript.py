"""proScript (Sakaguchi et al., 2021): scripts of everyday scenarios, partial orders of events that people wrote down.

JSON Lines, one script each. `events` is number -> text, "NONE" standing for the decision to begin;
`gold_edges_for_prediction` is a list of "0->6". `flatten_input_for_edge_prediction` and
`flatten_output_for_edge_prediction` say the same in the words that a text-to-text model reads and writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import networkx

from msg2.errors import InputError
from msg2.formats.json_files import member, parse_json
from msg2.formats.source import Source
from msg2.text import short_repr

Edge: TypeAlias = tuple[int, int]
"""Numbers of two events; the first comes before the second."""

_EDGE = re.compile(r"\s*(\d+)\s*->\s*(\d+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Script:
    """Events of a scenario, numbered in no particular order, and their partial order; edges are sorted.

    >>> Script("make tea", ("pour", "boil"), ((1, 0),)).question
    'make tea; step0: pour; step1: boil'
    """

    scenario: str
    events: tuple[str, ...]
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        if not self.events:
            raise InputError(f"the script {short_repr(self.scenario)} has no events")
        object.__setattr__(self, "edges", tuple(sorted(set(self.edges))))
        for edge in self.edges:
            if not all(0 <= number < len(self.events) for number in edge):
                raise InputError(f"the edge {edge[0]}->{edge[1]} is about an event that is not there")
        graph = networkx.DiGraph(self.edges)
        if not networkx.is_directed_acyclic_graph(graph):
            circle = [number for number, _ in networkx.find_cycle(graph)]
            raise InputError(f"the edges run in a circle ({' -> '.join(map(str, [*circle, circle[0]]))})")

    @property
    def question(self) -> str:
        """What a model is given: the scenario and its events."""
        return f"{self.scenario}; {_events_as_text(self.events)}"

    def renumber(self, order: Sequence[int]) -> Script:
        """The same script with the event `order[n]` as number n.

        >>> Script("make tea", ("pour", "boil"), ((1, 0),)).renumber([1, 0])
        Script(scenario='make tea', events=('boil', 'pour'), edges=((0, 1),))
        """
        new = {old: number for number, old in enumerate(order)}
        edges = tuple((new[first], new[second]) for first, second in self.edges)
        return Script(self.scenario, tuple(self.events[old] for old in order), edges)

    def reduced_edges(self) -> list[Edge]:
        """The edges that no path of others implies, as they come up when the events are gone through in order."""
        graph = networkx.DiGraph(self.edges)
        place = {number: n for n, number in enumerate(networkx.lexicographical_topological_sort(graph))}
        kept = networkx.transitive_reduction(graph).edges
        return sorted(kept, key=lambda edge: (place[edge[1]], place[edge[0]]))


def read_scripts(paths: Iterable[str | Path]) -> list[Script]:
    """All scripts of files in the proScript format: JSON Lines, or one JSON list; gzip allowed."""
    return [script for path in paths for script in _read_scripts(Source.at(path))]


def to_json_lines(scripts: Iterable[Script]) -> str:
    """The scripts in the proScript format.

    >>> print(to_json_lines([Script("make tea", ("pour", "boil"), ((1, 0),))]))  # doctest: +ELLIPSIS
    {"scenario": "make tea", "events": {"0": "pour", "1": "boil"}, "gold_edges_for_prediction": ["1->0"], ...
    """
    return "".join(json.dumps(_to_row(script), ensure_ascii=False) + "\n" for script in scripts)


def _to_row(script: Script) -> dict[str, Any]:
    return {
        "scenario": script.scenario,
        "events": {str(number): event for number, event in enumerate(script.events)},
        "gold_edges_for_prediction": [f"{first}->{second}" for first, second in script.edges],
        "flatten_input_for_edge_prediction": _events_as_text(script.events),
        "flatten_output_for_edge_prediction": "; ".join(
            f"step{first} -> step{second}" for first, second in script.edges
        ),
    }


def _events_as_text(events: Sequence[str]) -> str:
    return "; ".join(f"step{number}: {event}" for number, event in enumerate(events))


def _read_scripts(source: Source) -> Iterator[Script]:
    empty = True
    for where, value in _read_rows(source):
        empty = False
        try:
            yield _parse_script(value)
        except InputError as error:
            place = where if error.where is None else f"{where}, {error.where}"
            hint = "a script has scenario, events and gold_edges_for_prediction, as in proScript"
            raise InputError(error.what, where=place, hint=hint) from None
    if empty:
        raise InputError("holds no scripts", where=source.path, hint="give a file in the proScript format")


def _read_rows(source: Source) -> Iterator[tuple[str, Any]]:
    """(where, value) of every script."""
    if source.is_folder:
        raise InputError("is a folder", where=source.path, hint="name the files in it")
    if source.kind == "JSON":  # a list, or a single line
        document = source.document
        rows = document if isinstance(document, list) else [document]
        yield from ((f"{source.path}, script {number}", row) for number, row in enumerate(rows, start=1))
        return
    for number, line in enumerate(source.lines(), start=1):
        if line.strip():
            yield source.row(number), parse_json(line, source, number)


def _parse_script(row: Any) -> Script:
    if not isinstance(row, dict):
        raise InputError("is not a JSON object")
    scenario = member(row, "scenario", str, "script")
    events = member(row, "events", dict, "script")
    numbers = {str(number) for number in range(len(events))}
    if set(events) != numbers:
        raise InputError(f"is not numbered from 0 to {len(events) - 1}", where="script.events")
    texts = [member(events, str(number), str, "script.events") for number in range(len(events))]
    written = member(row, "gold_edges_for_prediction", list, "script")
    return Script(
        scenario,
        tuple(f"decided to {scenario}" if text == "NONE" else text for text in texts),
        tuple(_parse_edge(text) for text in written),
    )


def _parse_edge(text: Any) -> Edge:
    found = _EDGE.fullmatch(text[:100]) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"the edge {short_repr(str(text))} is not of the form 0->1")
    return int(found[1]), int(found[2])
