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

    completed: Set[Step]
    eligible: Set[Step]
    waited: Mapping[Step, int]
    """Per step that has ever been eligible, Δ: the number of steps completed since the *first* moment at which its
    precondition held. A step that is eligible at the very start has waited for as many steps as are completed."""


class RunStateTracker:
    """Finds the state of a run from the steps done.

    What each step affects is looked up once per graph, so one state costs as much as the graph has edges.

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
        self._eligible_at_start = graph.eligible(())

    def state_after(self, done: Iterable[Step]) -> RunState:
        """The state after the steps `done`, in order; repeated ones count once, an unknown one is an `InputError`."""
        sequence = tuple(dict.fromkeys(done))
        completed: set[Step] = set()
        eligible = set(self._eligible_at_start)
        since = dict.fromkeys(eligible, 0)
        for time, name in enumerate(sequence, start=1):
            if name not in self._affected:
                raise unknown_step_error(name, self.graph)
            completed.add(name)
            for other in sorted(self._affected[name]):
                if self._is_eligible(other, completed):
                    eligible.add(other)
                    since.setdefault(other, time)
                else:
                    eligible.discard(other)  # by a negation, an exclusive partner or a step that comes after it
        return RunState(completed, eligible, {name: len(sequence) - time for name, time in since.items()})

    def _is_eligible(self, name: Step, completed: Set[Step]) -> bool:
        """As `SubtaskGraph.eligible`, of one step."""
        graph = self.graph
        ruled_out = completed & (graph.partners(name) | graph.order_successors(name))
        return not ruled_out and graph.precondition(name).evaluate(completed)


def unknown_step_error(name: Step, graph: SubtaskGraph, where: str | None = None) -> InputError:
    """The error for a step that the graph does not have.

    Parameters
    ----------
    name : Step
        The unknown step.
    graph : SubtaskGraph
        The nearest of its names is the hint.
    where : str, optional
        The place in the input.

    Returns
    -------
    InputError
        To be raised.
    """
    nearest = get_close_matches(name[:200], graph.steps, n=1)
    hint = f"did you mean {short_repr(nearest[0])}?" if nearest else None
    return InputError(f"{short_repr(name)} is not a step of the graph", where=where, hint=hint)
