"""Where a demonstration stands: what is completed, and how long each step has been possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches

from msg2.errors import InputError, shortened
from msg2.graph import Formula, SubtaskGraph
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class Progress:
    """`completed` steps, the `eligible` ones, and `waited`: per step that has ever been eligible, Δ.

    Δ is the number of steps completed since the *first* moment at which the precondition held; a step that is eligible
    at the very start has waited for as many steps as are completed.
    """

    completed: Set[Step]
    eligible: Set[Step]
    waited: Mapping[Step, int]


class ProgressOf:
    """`ProgressOf(graph)(done)`: the progress after the steps `done`, in their order; repeated steps count once.

    The dependants of each step are looked up once per graph, so one call costs as much as the graph has edges.

    >>> from msg2.graph import step
    >>> progress = ProgressOf(SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")}))
    >>> progress("a").waited, sorted(progress("a").eligible)
    ({'a': 1, 'b': 0}, ['a', 'b'])
    """

    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph = graph
        self._dependants: dict[Step, list[Step]] = {name: [] for name in graph.steps}
        for before, after in sorted(graph.edges()):
            self._dependants[before].append(after)
        self._eligible_at_start = graph.eligible(())

    def __call__(self, done: Iterable[Step]) -> Progress:
        """The progress after `done`; a step that the graph does not have is an `InputError`."""
        sequence = tuple(dict.fromkeys(done))
        completed: set[Step] = set()
        eligible = set(self._eligible_at_start)
        since = dict.fromkeys(eligible, 0)
        for time, name in enumerate(sequence, start=1):
            if name not in self._dependants:
                raise unknown_step(name, self.graph)
            completed.add(name)
            for dependant in self._dependants[name]:
                if self.graph.precondition(dependant).evaluate(completed):
                    eligible.add(dependant)
                    since.setdefault(dependant, time)
                else:
                    eligible.discard(dependant)  # a negation: it was eligible and is no longer
        return Progress(completed, eligible, {name: len(sequence) - time for name, time in since.items()})


def unmet_clauses(formula: Formula, completed: Set[Step]) -> tuple[Formula, ...]:
    """The top-level conjuncts of a precondition that do not hold; none when it is satisfied.

    >>> from msg2.graph import all_of, step
    >>> unmet_clauses(all_of([step("a"), step("b")]), {"a"})
    (<Formula b>,)
    """
    return tuple(clause for clause in formula.clauses() if not clause.evaluate(completed))


def unknown_step(name: Step, graph: SubtaskGraph, where: str | None = None) -> InputError:
    """The error for a step that the graph does not have, with the nearest name that it has."""
    nearest = get_close_matches(name[:200], graph.steps, n=1)
    hint = f"did you mean {shortened(nearest[0])}?" if nearest else None
    return InputError(f"{shortened(name)} is not a step of the graph", where=where, hint=hint)
