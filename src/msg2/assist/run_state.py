"""Where a run of a task stands: what is completed, and how long each step has been eligible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.task import Step
from msg2.text import short_repr


@dataclass(frozen=True, slots=True)
class RunState:
    """What is completed and what is eligible after some steps."""

    completed: frozenset[Step]
    eligible: frozenset[Step]
    waited: Mapping[Step, int]
    """Per step that has ever been eligible, Δ: the number of steps completed since the *first* moment at which its
    precondition held. A step that is eligible at the very start has waited for as many steps as are completed."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """What was eligible after some steps, and since how many steps each of them has been."""

    done: tuple[Step, ...]
    eligible: frozenset[Step]
    since: Mapping[Step, int]
    state: RunState


class RunStateTracker:
    """Finds the state of a run from the steps done.

    What each step affects is looked up once per graph, so one state costs as much as the graph has edges; and a run
    that goes on is followed from where it was last asked about.

    >>> from msg2.graph import step
    >>> tracker = RunStateTracker(SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")}))
    >>> state = tracker.state_after("a")
    >>> state.waited, sorted(state.eligible)
    ({'a': 1, 'b': 0}, ['a', 'b'])
    """

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self._affected: dict[Step, set[Step]] = {
            name: set(graph.partners(name) | graph.order_predecessors(name)) for name in graph.steps
        }
        for after in graph.preconditions:
            for before in graph.parents(after):
                self._affected[before].add(after)
        clauses = {name: graph.precondition(name).clauses() for name in graph.steps}
        self.needed_steps = {name: {one.name for one in of if one.kind == "step"} for name, of in clauses.items()}
        """Per step the clauses of its precondition that are single steps."""
        self.other_clauses = {name: [one for one in of if one.kind != "step"] for name, of in clauses.items()}
        """The other ones."""
        at_start = graph.eligible(())
        since = dict.fromkeys(at_start, 0)
        self._at_start = _Moment((), at_start, since, RunState(frozenset(), at_start, since))
        self._last = self._at_start

    def state_after(self, done: Iterable[Step]) -> RunState:
        """The state after the steps `done`, in order; repeated ones count once, an unknown one is an `InputError`."""
        sequence, known = tuple(dict.fromkeys(done)), self._last
        if sequence == known.done:
            return known.state
        if sequence[: len(known.done)] != known.done:  # not a run that has gone on since it was last asked about
            known = self._at_start
        completed, eligible, since = set(known.done), set(known.eligible), dict(known.since)
        for time, name in enumerate(sequence[len(known.done) :], start=len(known.done) + 1):
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
        state = RunState(frozenset(completed), frozenset(eligible), waited)
        self._last = _Moment(sequence, state.eligible, since, state)
        return state

    def _is_eligible(self, name: Step, completed: Set[Step]) -> bool:
        """As `SubtaskGraph.eligible`, of one step."""
        graph = self.graph
        ruled_out = completed & (graph.partners(name) | graph.order_successors(name))
        met = self.needed_steps[name] <= completed and all(one.evaluate(completed) for one in self.other_clauses[name])
        return met and not ruled_out


def unknown_step_error(name: Step, graph: SubtaskGraph, where: str | None = None) -> InputError:
    """The error for a step that the graph does not have."""
    nearest = get_close_matches(name[:200], graph.steps, n=1)
    hint = f"did you mean {short_repr(nearest[0])}?" if nearest else None
    return InputError(f"{short_repr(name)} is not a step of the graph", where=where, hint=hint)
