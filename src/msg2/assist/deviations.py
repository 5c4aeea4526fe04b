"""How a step deviates from a graph at the moment it begins. Whether that is a mistake is not decided here.

What was done and what is accepted are kept apart. A step that came too early, or in place of another, is rejected: it
counts as done for the steps that need it, so that one slip does not make mistakes of all that follow; but nothing is
late for it, excluded by it or a repetition of it. It is accepted when it is done again, rightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, is_tautology, negation
from msg2.graph.formula import step, unmet_clauses
from msg2.task import Segment, Step
from msg2.text import short_repr

DeviationKind: TypeAlias = Literal["premature", "out of order", "exclusive", "repeated", "never seen", "skipped"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One way in which a `step` deviates.

    - `premature`: a `clause` of its precondition does not hold, even if all that is running is counted as done;
    - `out of order`: an `other` step that needs it, by that `clause`, or comes after it if done, has come before it;
    - `exclusive`: an `other` step has been done, and a run does only one of the two;
    - `repeated`: it has come before;
    - `never seen`: no training video shows it;
    - `skipped`: not this step but an `other` one, which this one needs, by that `clause`, has been left out so far.
    """

    kind: DeviationKind
    step: Step
    other: Step | None = None
    clause: Formula | None = None


class DeviationDetector:
    """Follows one run of the task, step by step.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
    >>> detector = DeviationDetector(graph)
    >>> [(deviation.kind, deviation.other) for deviation in detector.detect(Segment("dip"))]
    [('premature', None), ('skipped', 'whisk')]
    >>> [(deviation.kind, deviation.other) for deviation in detector.detect(Segment("whisk"))]
    [('out of order', 'dip')]
    """

    corrects: tuple[Step, ...] = ()
    """The rejected step that the last segment does again, if it does."""

    def __init__(self, graph: SubtaskGraph) -> None:
        self.length = 0
        self.rejected: frozenset[Step] = frozenset()
        """Steps that were mistakes, and have not been done again, rightly."""
        self._told: frozenset[Step] = frozenset()  # of them and of those that others were late for, no more is said
        self._graph, self._steps = graph, frozenset(graph.steps)
        self._completed: set[Step] = set()
        self._running: list[Segment] = []
        self._begun: set[Step] = set()
        self._last: Segment | None = None
        self._missing: dict[Step, dict[Step, Formula]] = {}  # step -> those that came without it, and by which clause

    def detect(self, segment: Segment) -> tuple[Deviation, ...]:
        """The deviations of the segment that begins now; a step that the graph does not have is at most repeated."""
        self._advance(segment)
        name = segment.step
        deviations = [Deviation("repeated", name)] if name in self._begun - self.rejected else []
        without = self._missing.pop(name, {})
        self.corrects = (name,) if name in self.rejected else ()
        self.rejected -= {name}
        self._told -= {name}
        self._begun.add(name)
        completed = self._completed - self._told  # overlaps say nothing
        late_for = {other: clause for other, clause in without.items() if other in completed}
        if name in self._steps and not deviations:
            late_for |= {other: step(name) for other in sorted(self._graph.order_successors(name) & completed)}
            partners = sorted(self._graph.partners(name) & (self._begun - self._told - {name}))
            deviations += [Deviation("exclusive", name, other, step(other)) for other in partners]
        deviations += [Deviation("out of order", name, other, clause) for other, clause in late_for.items()]
        lacking: set[Step] = set()
        begun = self._completed | {earlier.step for earlier in self._running if earlier is not segment}
        for clause in unmet_clauses(self._graph.precondition(name), begun) if name in self._steps else ():
            deviations.append(Deviation("premature", name, None, clause))
            for missing in self._find_missing(clause, lacking):
                self._missing.setdefault(missing, {}).setdefault(name, clause)
                deviations.append(Deviation("skipped", name, missing, clause))
        return tuple(deviations)

    def reject(self, mistakes: Iterable[Deviation]) -> None:
        """Do not accept what these deviations of the last segment say was done wrongly."""
        for deviation in mistakes:
            match deviation.kind:
                case "premature" | "exclusive":
                    self.rejected |= {deviation.step}
                    self._told |= {deviation.step}
                case "out of order" if deviation.other is not None:  # the other one came too early
                    self._told |= {deviation.other}
                    if deviation.step in self._graph.parents(deviation.other):
                        self.rejected |= {deviation.other}

    def accept(self, name: Step) -> None:
        """Take a step for done, rightly, whether it came or not, and so what came without it and lacks nothing else."""
        self._begun.add(name)
        self._completed.add(name)
        without = self._missing.pop(name, {}).keys()
        lacking = {other for others in self._missing.values() for other in others}
        self.rejected -= {name, *(without - lacking)}
        self._told -= {name, *(without - lacking)}

    def copy(self) -> DeviationDetector:
        """Return a detector of a run that has been the same so far."""
        other = DeviationDetector.__new__(DeviationDetector)
        other.__dict__.update(self.__dict__)
        other._completed, other._begun, other._running = set(self._completed), set(self._begun), list(self._running)
        other._missing = {name: dict(found) for name, found in self._missing.items()}
        return other

    def _advance(self, segment: Segment) -> None:
        """Everything that has ended when `segment` starts is completed."""
        last = self._last
        if last is not None and last.is_timed != segment.is_timed:
            raise InputError(
                f"step {short_repr(segment.step)} comes {'with' if segment.is_timed else 'without'} a time, "
                f"{short_repr(last.step)} came {'with' if last.is_timed else 'without'}",
                hint="give times to all steps, or to none",
            )
        if last is not None and last.start is not None and segment.start is not None and segment.start < last.start:
            raise InputError(
                f"step {short_repr(segment.step)} starts at {segment.start:g}, before the last one at {last.start:g}",
                hint="steps are watched in the order of their starts",
            )
        running = [earlier for earlier in self._running if segment.is_timed and not earlier.before(segment)]
        self._completed.update(earlier.step for earlier in self._running if earlier not in running)
        self._running, self._last = [*running, segment], segment
        self.length += 1

    def _find_missing(self, clause: Formula, lacking: set[Step]) -> Iterator[Step]:
        """The steps not begun without which an unmet clause cannot hold, and those that these lack in turn.

        Each is added to `lacking`, and none that is in there comes again.
        """
        facts = dict.fromkeys(clause.steps & self._completed, True)
        for name in sorted(clause.steps - self._begun):
            if name not in lacking and is_tautology(negation(clause.substitute({**facts, name: False}))):
                lacking.add(name)
                yield name
                for further in unmet_clauses(self._graph.precondition(name), self._completed):
                    yield from self._find_missing(further, lacking)
