"""The engine that follows a run: what is done, what may come next, and how each step deviates from the graph.

`msg2.assist.check` replays whole videos through it; a monitor steps through it live. What was done and what is accepted
are kept apart. A step that came too early, or in place of another, is rejected: it counts as done for the steps that
need it, so that one slip does not make mistakes of all that follow; but nothing is late for it, excluded by it or a
repetition of it. It is accepted when it is done again, rightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats import to_task, to_tasks
from msg2.graph import Formula, SubtaskGraph, any_of, is_tautology, negation, step
from msg2.graph.formula import unmet_clauses
from msg2.task import Absent, Segment, Step, Task
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

MistakeKind: TypeAlias = Literal["need", "order", "exclusive", "left out", "repeated", "unknown step"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One way in which a `step` deviates from the graph.

    - `need`: a `clause` of its precondition does not hold, even if all that is running is counted as done;
    - `order`: an `other` step that needs it, by that `clause`, or comes after it if done, has come before it;
    - `exclusive`: an `other` step has been done, and a run does only one of the two;
    - `left out`: a step that is missing: an `other` one, which this one needs, by that `clause`; or at the end of a run
      this one, or all the steps of the `clause`, one of which is required;
    - `repeated`: it has come before;
    - `unknown step`: no training video shows it.
    """

    kind: MistakeKind
    step: Step
    other: Step | None = None
    clause: Formula | None = None


class Run:
    """One run of the task, step by step."""

    corrects: tuple[Step, ...] = ()
    """The rejected step that the last segment does again, if it does."""

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self.first: dict[Step, tuple[int, Segment]] = {}
        """The position (from 1) and the first segment of each step."""
        self.length = 0
        self.rejected: frozenset[Step] = frozenset()  # mistakes that have not been done again, rightly
        self._told: frozenset[Step] = frozenset()  # of them and of those that others were late for, no more is said
        self._steps = frozenset(graph.steps)
        self._completed: set[Step] = set()
        self._running: list[Segment] = []
        self._begun: set[Step] = set()
        self._last: Segment | None = None
        self._missing: dict[Step, dict[Step, Formula]] = {}  # step -> those that came without it, and by which clause

    def step(self, segment: Segment, during: Set[Step] | None = None) -> tuple[Deviation, ...]:
        """Say how the segment that begins now deviates; a step that the graph does not have is at most repeated.

        In hindsight, steps that begin `during` it count as done; `reversed_pairs` and `left_out` tell what it lacks.
        """
        self._advance(segment)
        name = segment.step
        self.first.setdefault(name, (self.length, segment))
        deviations = [Deviation("repeated", name)] if name in self._begun - self.rejected else []
        without = self._missing.pop(name, {})
        self.corrects = (name,) if name in self.rejected else ()
        self.rejected -= {name}
        self._told -= {name}
        self._begun.add(name)
        completed = self._completed - self._told  # overlaps say nothing
        late_for = {other: clause for other, clause in without.items() if other in completed}
        if name in self._steps and not deviations:
            late_for |= {other: step(name) for other in sorted(self.graph.order_successors(name) & completed)}
            partners = sorted(self.graph.partners(name) & (self._begun - self._told - {name}))
            deviations += [Deviation("exclusive", name, other, step(other)) for other in partners]
        deviations += [Deviation("order", name, other, clause) for other, clause in late_for.items()]
        lacking: set[Step] = set()
        begun = self._completed.union(
            during or (), (earlier.step for earlier in self._running if earlier is not segment)
        )
        for clause in unmet_clauses(self.graph.precondition(name), begun) if name in self._steps else ():
            deviations.append(Deviation("need", name, None, clause))
            for missing in self._find_missing(clause, lacking) if during is None else ():
                self._missing.setdefault(missing, {}).setdefault(name, clause)
                deviations.append(Deviation("left out", name, missing, clause))
        return tuple(deviations)

    def reject(self, mistakes: Iterable[Deviation]) -> None:
        """Do not accept what these deviations of the last segment say was done wrongly."""
        for deviation in mistakes:
            match deviation.kind:
                case "need" | "exclusive":
                    self.rejected |= {deviation.step}
                    self._told |= {deviation.step}
                case "order" if deviation.other is not None:  # the other one came too early
                    self._told |= {deviation.other}
                    if deviation.step in self.graph.parents(deviation.other):
                        self.rejected |= {deviation.other}

    def accept(self, name: Step) -> None:
        """Take a step for done, rightly, whether it came or not, and so what came without it and lacks nothing else."""
        self._begun.add(name)
        self._completed.add(name)
        without = self._missing.pop(name, {}).keys()
        lacking = {other for others in self._missing.values() for other in others}
        self.rejected -= {name, *(without - lacking)}
        self._told -= {name, *(without - lacking)}

    def copy(self) -> Run:
        """Return a run that has been the same so far."""
        other = Run.__new__(Run)
        other.__dict__.update(self.__dict__)
        other.first = dict(self.first)
        other._completed, other._begun, other._running = set(self._completed), set(self._begun), list(self._running)
        other._missing = {name: dict(without) for name, without in self._missing.items()}
        return other

    def is_before(self, name: Step, other: Step) -> bool:
        """Whether one step came before another, both for the first time."""
        (position, segment), (other_position, other_segment) = self.first[name], self.first[other]
        return segment.before(other_segment) if segment.is_timed else position < other_position

    def reversed_pairs(self) -> list[tuple[Step, Step]]:
        """The pairs (late, early) of steps that are the wrong way round, and follow from no other such pairs."""
        shown = [name for name in self.graph.steps if name in self.first]
        before = self.graph.pair_kinds.among(shown)
        spans = [
            (segment.start or 0.0, segment.end or 0.0) if segment.is_timed else (position, position + 1)
            for position, segment in map(self.first.__getitem__, shown)
        ]
        wrong = before & earlier_pairs(spans).T
        # A pair that follows from others is told by them, if one of these is the wrong way round: overlaps are not.
        chain = before.astype(np.float32)
        follows = wrong @ chain + chain @ wrong > 0
        return [(shown[late], shown[early]) for late, early in np.argwhere(wrong & ~follows).tolist()]

    def left_out(self) -> Iterator[Deviation]:
        """What is missing if the run is over: required steps, and groups of steps of which one is required."""
        for name in self.graph.steps:
            if name in self.graph.required and name not in self._begun:
                yield Deviation("left out", name)
        told: set[Step] = set()
        for group in self.graph.exclusive:
            required = self.graph.optional.isdisjoint(group)
            if required and self._begun.isdisjoint(group) and told.isdisjoint(group):
                told.update(group)  # a step of two groups is left out once
                usual = max(group, key=lambda name: (self.graph.step_evidence(name).videos or 0, name))
                yield Deviation("left out", usual, None, any_of(map(step, group)))

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
        """The steps not begun without which a clause cannot hold, and what these lack; each is added to `lacking`."""
        facts = dict.fromkeys(clause.steps & self._completed, True)
        for name in sorted(clause.steps - self._begun):
            if name not in lacking and is_tautology(negation(clause.substitute({**facts, name: False}))):
                lacking.add(name)
                yield name
                for further in unmet_clauses(self.graph.precondition(name), self._completed):
                    yield from self._find_missing(further, lacking)


def begun_during(segments: Sequence[Segment], position: int) -> set[Step]:
    """The other steps that begin before the segment at a position (from 1) has ended, or at the same instant."""
    segment = segments[position - 1]
    if segment.start is None or segment.end is None:
        return set()
    start, end = segment.start, segment.end
    overlapping = takewhile(lambda later: (later.start or 0.0) < end or later.start == start, segments[position:])
    return {later.step for later in overlapping if later.step != segment.step and not segment.before(later)}


def earlier_pairs(spans: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    """[a, b]: whether a ended no later than b starts, as `Segment.before` says."""
    start, end = np.array(spans, dtype=np.float64).reshape(-1, 2).T
    return np.asarray((end[:, None] <= start) & ~(end <= start[:, None]))


# -- what may come next ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunState:
    """What is completed and what is eligible after some steps."""

    completed: frozenset[Step]
    eligible: frozenset[Step]
    waited: Mapping[Step, int]
    """Per step that has ever been eligible, Δ: the number of steps completed since it *first* was."""


class RunStateTracker:
    """Finds the state of a run from the steps done; a run that goes on is followed from the last question on."""

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self._affected: dict[Step, set[Step]] = {
            name: set(graph.partners(name) | graph.order_predecessors(name)) for name in graph.steps
        }
        for after in graph.preconditions:
            for before in graph.parents(after):
                self._affected[before].add(after)
        at_start = graph.eligible(())
        self._done: tuple[Step, ...] = ()  # of the last question, with its answer
        self._state = self._start = RunState(frozenset(), at_start, dict.fromkeys(at_start, 0))

    def state_after(self, done: Iterable[Step]) -> RunState:
        """The state after the steps `done`, in order; repeated ones count once, an unknown one is an `InputError`."""
        sequence, known, state = tuple(dict.fromkeys(done)), len(self._done), self._state
        if sequence == self._done:
            return state
        if sequence[:known] != self._done:  # not a run that has gone on since it was last asked about
            known, state = 0, self._start
        completed, eligible = set(sequence[:known]), set(state.eligible)
        since = {name: known - waited for name, waited in state.waited.items()}
        for time, name in enumerate(sequence[known:], start=known + 1):
            if name not in self._affected:
                raise unknown_step_error(name, self.graph)
            completed.add(name)
            for other in sorted(self._affected[name]):
                if self._is_eligible(other, completed):
                    eligible.add(other)
                    since.setdefault(other, time)
                else:
                    eligible.discard(other)  # by a negation, an exclusive partner or a step that comes after it
        waited = {name: len(sequence) - time for name, time in since.items()}
        self._done, self._state = sequence, RunState(frozenset(completed), frozenset(eligible), waited)
        return self._state

    def _is_eligible(self, name: Step, completed: Set[Step]) -> bool:
        """As `SubtaskGraph.eligible`, of one step."""
        return completed.isdisjoint(self.graph.ruled_out_by(name)) and self.graph.precondition(name).evaluate(completed)


# -- the data that a graph is used with --------------------------------------------------------------------------------


def unknown_step_error(name: Step, graph: SubtaskGraph, where: str | None = None) -> InputError:
    """The error for a step that the graph does not have."""
    nearest = get_close_matches(name[:200], graph.steps, n=1)
    hint = f"did you mean {short_repr(nearest[0])}?" if nearest else None
    return InputError(f"{short_repr(name)} is not a step of the graph", where=where, hint=hint)


def videos_learned_from(graph: SubtaskGraph) -> list[str]:
    """The ids of the videos that a graph was learned from; none where it does not say."""
    videos = graph.method.get("videos")
    return [*map(str, videos)] if isinstance(videos, list | tuple) else []


def absent_meaning(graph: SubtaskGraph, task: Task | None) -> Absent:
    """Say whether a step without a label was skipped: as the graph was learned, else as the data say."""
    options = graph.method.get("options")
    recorded = options.get("absent") if isinstance(options, Mapping) else None
    if recorded == "skipped":
        return "skipped"
    return "unknown" if recorded == "unknown" or task is None else task.absent


def task_of_graph(graph: SubtaskGraph, data: Demonstrations, **reading: str) -> Task:
    """The task that a graph is about, from whatever `msg2.infer` takes; a `Task` is taken as it is."""
    if isinstance(data, Task):
        return data
    tasks = to_tasks(data, **reading)
    return tasks[0] if len(tasks) == 1 else to_task(tasks, graph.task)
