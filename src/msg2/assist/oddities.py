"""What is odd about a step at the moment it comes, as a graph sees it. Whether that is a mistake is not said here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.assist.progress import unmet_clauses
from msg2.errors import InputError, shortened
from msg2.graph import Formula, SubtaskGraph, always, negation
from msg2.task import Segment, Step

Kind: TypeAlias = Literal["premature", "out of order", "repeated", "never seen", "skipped"]


@dataclass(frozen=True, slots=True)
class Oddity:
    """What can be odd about a `step`.

    - `premature`: a `clause` of its precondition does not hold;
    - `out of order`: an `other` step that needs it, by that `clause`, has come before it;
    - `repeated`: it has come before;
    - `never seen`: no training video shows it;
    - `skipped`: not this step but an `other` one, which this one needs, by that `clause`, has been left out so far.
    """

    kind: Kind
    step: Step
    other: Step | None = None
    clause: Formula | None = None


class Trail:
    """What one demonstration has shown so far.

    >>> from msg2.graph import step
    >>> trail = Trail(SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")}))
    >>> [(odd.kind, odd.other) for odd in trail.oddities(Segment("dip"))]
    [('premature', None), ('skipped', 'whisk')]
    >>> [(odd.kind, odd.other) for odd in trail.oddities(Segment("whisk"))]
    [('out of order', 'dip')]
    """

    def __init__(self, graph: SubtaskGraph) -> None:
        self.length = 0
        self._graph, self._known = graph, frozenset(graph.steps)
        self._completed: set[Step] = set()
        self._running: list[Segment] = []
        self._shown: set[Step] = set()
        self._last: Segment | None = None
        self._owed: dict[Step, dict[Step, Formula]] = {}  # step -> those that came without it, and by which clause

    def oddities(self, segment: Segment) -> tuple[Oddity, ...]:
        """What is odd about the segment that comes now; a step that the graph does not have is at most repeated."""
        self._advance(segment)
        name = segment.step
        odd = [Oddity("repeated", name)] if name in self._shown else []
        self._shown.add(name)
        odd += [Oddity("out of order", name, other, clause) for other, clause in self._owed.pop(name, {}).items()]
        lacking: set[Step] = set()
        for clause in unmet_clauses(self._graph.precondition(name), self._completed) if name in self._known else ():
            odd.append(Oddity("premature", name, None, clause))
            for missing in self._missing(clause, lacking):
                self._owed.setdefault(missing, {}).setdefault(name, clause)
                odd.append(Oddity("skipped", name, missing, clause))
        return tuple(odd)

    def _advance(self, segment: Segment) -> None:
        """Everything that has ended when `segment` starts is completed."""
        last = self._last
        if last is not None and last.timed != segment.timed:
            raise InputError(
                f"step {shortened(segment.step)} comes {'with' if segment.timed else 'without'} a time, "
                f"{shortened(last.step)} came {'with' if last.timed else 'without'}",
                hint="give times to all steps, or to none",
            )
        if last is not None and last.start is not None and segment.start is not None and segment.start < last.start:
            raise InputError(
                f"step {shortened(segment.step)} starts at {segment.start:g}, before the last one at {last.start:g}",
                hint="steps are watched in the order of their starts",
            )
        running = [earlier for earlier in self._running if segment.timed and not earlier.before(segment)]
        self._completed.update(earlier.step for earlier in self._running if earlier not in running)
        self._running, self._last = [*running, segment], segment
        self.length += 1

    def _missing(self, clause: Formula, lacking: set[Step]) -> Iterator[Step]:
        """The steps not begun without which an unmet clause cannot hold, and those that these lack in turn.

        Each is added to `lacking`, and none that is in there comes again.
        """
        facts = dict.fromkeys(clause.support & self._completed, True)
        for name in sorted(clause.support - self._shown):
            if name not in lacking and always(negation(clause.given({**facts, name: False}))):
                lacking.add(name)
                yield name
                for further in unmet_clauses(self._graph.precondition(name), self._completed):
                    yield from self._missing(further, lacking)
