"""The engine that follows a run: what is done, how each step deviates from the graph, and what may come next.

`msg2.assist.check` replays whole videos through it; the assistant follows a run live. A deviation is nothing in itself:
`msg2.assist.mistakes` says how probably it is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import compress, takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats import to_task, to_tasks
from msg2.graph import Formula, SubtaskGraph, any_of, step
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
    - `order`: an `other` step that comes after it, directly or through others, has come before it;
    - `exclusive`: an `other` step has been done, and a run does only one of the two;
    - `left out`: at the end of a run, this step is missing, or all the steps of the `clause`, one of which is required;
      with an `other` step, the clause should have followed that;
    - `repeated`: it has come before, and now again after the `other` step (None where several come at the same time);
    - `unknown step`: the graph does not have it.
    """

    kind: MistakeKind
    step: Step
    other: Step | None = None
    clause: Formula | None = None


class Run:
    """One run of the task, step by step."""

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self.first: dict[Step, tuple[int, Segment]] = {}
        """The position (from 1) and the first segment of each step."""
        self.last: dict[Step, tuple[int, Segment]] = {}
        """The same of the last segments."""
        self.length = 0
        self._completed: set[Step] = set()
        self._running: list[Segment] = []

    def step(self, segment: Segment, during: Set[Step] = frozenset()) -> tuple[Deviation, ...]:
        """Say how the segment that begins now deviates; steps that begin `during` it count as done."""
        running = [earlier for earlier in self._running if segment.is_timed and not earlier.before(segment)]
        self._completed.update(earlier.step for earlier in self._running if earlier not in running)
        self._running, self.length = [*running, segment], self.length + 1
        name, begun = segment.step, set(self.first)
        if name not in self.graph.index:
            return (Deviation("unknown step", name, nearest_step(name, self.graph)),)
        self.first.setdefault(name, (self.length, segment))
        deviations = [Deviation("repeated", name, self._just_done(segment))] if name in begun else []
        self.last[name] = self.length, segment
        if name not in begun:
            partners = sorted(self.graph.partners(name) & begun)
            deviations += [Deviation("exclusive", name, other, step(other)) for other in partners]
            later = compress(self.graph.steps, self.graph.pair_kinds.before[self.graph.index[name]])
            late_for = sorted(self._completed.intersection(later))  # overlaps say nothing
            deviations += [Deviation("order", name, other, step(name)) for other in late_for]
        done = self._completed.union(during, (earlier.step for earlier in running))
        unmet = unmet_clauses(self.graph.precondition(name), done)
        return (*deviations, *(Deviation("need", name, None, clause) for clause in unmet))

    def awaited(self) -> list[Step]:
        """The steps that are not done and should have come before one that is, in the order of the graph."""
        done = [place for place, name in enumerate(self.graph.steps) if name in self.first]
        awaited = np.flatnonzero(self.graph.pair_kinds.before[:, done].any(axis=1)).tolist()
        return [self.graph.steps[place] for place in awaited if place not in set(done)]

    def _just_done(self, segment: Segment) -> Step | None:
        """The step that came right before a segment; None where that was at the same time as another, or overlaps."""
        ends = [(place if last.end is None else last.end, place, last) for place, last in self.last.values()]
        *earlier, (end, _, last) = sorted(ends, key=lambda each: each[:2])
        sure = not segment.is_timed or (last.before(segment) and all(other < end for other, _, _ in earlier))
        return last.step if sure else None

    def to_follow(self) -> Iterator[tuple[Step, Formula]]:
        """What must still follow: a step that was done, and what has not begun after the last time."""
        for name, formula in self.graph.responses:
            if name in self.last:
                place, segment = self.last[name]
                others = (self.last[other] for other in formula.steps if other in self.last)
                if not any(not last.before(segment) if last.is_timed else at > place for at, last in others):
                    yield name, formula

    def left_out(self) -> Iterator[Deviation]:
        """What is missing if the run is over: required steps, groups of which one is required, what had to follow."""
        for name in self.graph.steps:
            if name in self.graph.required and name not in self.first:
                yield Deviation("left out", name)
        told: set[Step] = set()
        for group in self.graph.exclusive:
            required = self.graph.optional.isdisjoint(group)
            if required and self.first.keys().isdisjoint(group) and told.isdisjoint(group):
                told.update(group)  # a step of two groups is left out once
                yield Deviation("left out", self.most_usual(group), None, any_of(map(step, group)))
        told.update(name for name in self.graph.required if name not in self.first)
        for name, formula in self.to_follow():
            if told.isdisjoint(formula.steps):
                told.update(formula.steps)
                yield Deviation("left out", self.most_usual(formula.steps), name, formula)

    def most_usual(self, steps: Iterable[Step]) -> Step:
        """The step that most videos show."""
        return max(steps, key=lambda name: (self.graph.step_evidence(name).videos or 0, name))


def begun_during(segments: Sequence[Segment], position: int) -> set[Step]:
    """The other steps that begin before the segment at a position (from 1) has ended, or at the same instant."""
    segment = segments[position - 1]
    if segment.start is None or segment.end is None:
        return set()
    start, end = segment.start, segment.end
    overlapping = takewhile(lambda later: (later.start or 0.0) < end or later.start == start, segments[position:])
    return {later.step for later in overlapping if later.step != segment.step and not segment.before(later)}


def reversed_pairs(
    graph: SubtaskGraph, spans: Mapping[Step, Segment], every: Set[Step] = frozenset()
) -> list[tuple[Step, Step]]:
    """The pairs (late, early) of steps that came the wrong way round.

    A pair that is no edge and follows from others is told by them, if one of these is the wrong way round; but the
    late steps in `every` are told in any case.
    """
    names = list(spans)
    places = np.array([graph.index[name] for name in names], dtype=np.intp)
    before = graph.pair_kinds.before[np.ix_(places, places)]
    wrong = before & earlier_pairs([(span.start or 0.0, span.end or 0.0) for span in spans.values()]).T
    if not wrong.any():
        return []
    chain, edges = before.astype(np.float32), graph.edge_matrix[np.ix_(places, places)]
    told = wrong & (edges | ~(wrong @ chain + chain @ wrong > 0))
    silent = ~told.any(axis=1) & np.array([name in every for name in names], dtype=np.bool_)
    told |= wrong & silent[:, None]
    return [(names[late], names[early]) for late, early in np.argwhere(told).tolist()]


def first_spans(segments: Iterable[Segment]) -> dict[Step, Segment]:
    """Step -> its first segment, with times; without, its place and the next."""
    first: dict[Step, Segment] = {}
    for position, segment in enumerate(segments):
        timed = segment if segment.is_timed else Segment(segment.step, position, position + 1)
        first.setdefault(segment.step, timed)
    return first


def earlier_pairs(spans: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    """[a, b]: whether a ended no later than b starts, as `Segment.before` says."""
    start, end = np.array(spans, dtype=np.float64).reshape(-1, 2).T
    return np.asarray((end[:, None] <= start) & ~(end <= start[:, None]))


_MOST_STATES = 20_000
"""That are remembered."""

# -- what may come next ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunState:
    """What is completed and what is eligible after some steps."""

    completed: frozenset[Step]
    eligible: frozenset[Step]
    waited: Mapping[Step, int]
    """Per step that has ever been eligible, Δ: the number of steps completed since it *first* was."""


class RunStateTracker:
    """Finds the state of a run from the steps done, and remembers the states it has found."""

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self._affected: dict[Step, set[Step]] = {
            name: set(graph.partners(name) | graph.order_predecessors(name)) for name in graph.steps
        }
        for after in graph.preconditions:
            for before in graph.parents(after):
                self._affected[before].add(after)
        at_start = graph.eligible(())
        self._states: dict[tuple[Step, ...], RunState] = {
            (): RunState(frozenset(), at_start, dict.fromkeys(at_start, 0))
        }

    def state_after(self, done: Iterable[Step]) -> RunState:
        """The state after the steps `done`, in order; repeated ones count once, an unknown one is an `InputError`."""
        sequence = tuple(dict.fromkeys(done))
        known = len(sequence)
        while sequence[:known] not in self._states:
            known -= 1
        state = self._states[sequence[:known]]
        if len(self._states) > _MOST_STATES:
            self._states = {(): self._states[()], sequence[:known]: state}
        for time in range(known, len(sequence)):
            state = self._states[sequence[: time + 1]] = self._extend(state, sequence[time])
        return state

    def _extend(self, state: RunState, name: Step) -> RunState:
        """The state after one more step."""
        if name not in self._affected:
            raise unknown_step_error(name, self.graph)
        completed, eligible = state.completed | {name}, set(state.eligible)
        waited = {other: waiting + 1 for other, waiting in state.waited.items()}
        for other in sorted(self._affected[name]):
            if self._is_eligible(other, completed):
                eligible.add(other)
                waited.setdefault(other, 0)
            else:
                eligible.discard(other)  # by a negation, an exclusive partner or a step that comes after it
        return RunState(completed, frozenset(eligible), waited)

    def _is_eligible(self, name: Step, completed: Set[Step]) -> bool:
        """As `SubtaskGraph.eligible`, of one step."""
        return completed.isdisjoint(self.graph.ruled_out_by(name)) and self.graph.precondition(name).evaluate(completed)


# -- the data that a graph is used with --------------------------------------------------------------------------------


def nearest_step(name: str, graph: SubtaskGraph) -> Step | None:
    """The step of a graph whose name is most like another one; None where none is like it."""
    nearest = get_close_matches(name[:200], graph.steps, n=1)
    return nearest[0] if nearest else None


def unknown_step_error(name: Step, graph: SubtaskGraph, where: str | None = None) -> InputError:
    """The error for a step that the graph does not have."""
    nearest = nearest_step(name, graph)
    hint = f"did you mean {short_repr(nearest)}?" if nearest is not None else None
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
