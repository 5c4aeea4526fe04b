"""What preconditions say must have happened, clause by clause, and preconditions of which only some clauses are left.

A clause of a step is a condition that holds whenever the step is eligible: a step that must come first, or an OR. The
steps that a step needs have clauses of their own, and these are clauses of the step as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

from msg2.graph import FALSE, TRUE, Formula, SubtaskGraph, all_of, step
from msg2.graph.reduction import necessary_steps, required_steps
from msg2.inference.result import LearnedPreconditions
from msg2.task import Step


@dataclass(frozen=True)
class Clauses:
    """The clauses of every step of a graph, its own and those of the steps it needs."""

    graph: SubtaskGraph

    @cached_property
    def necessary(self) -> Mapping[Step, frozenset[Step]]:
        """For every step those that must come first, whichever way is taken."""
        return necessary_steps(self.graph.steps, self.graph.preconditions)

    def of(self, name: Step) -> list[Formula]:
        """All clauses of a step: the steps that it needs, the last ones first, then the ORs."""
        needed = [step(one) for one in reversed(self.graph.steps) if one in self.necessary[name]]
        return [*needed, *self._alternatives(name)]

    def has(self, name: Step, clause: Formula) -> bool:
        """Tell whether a clause holds whenever the step is eligible; one with a NOT only where it is written so."""
        sure = dict.fromkeys(self.necessary[name], True)
        if "not" in clause.kinds:
            return clause in self.graph.precondition(name).clauses()
        if clause.substitute(sure) == TRUE:
            return True
        return clause.kind != "step" and any(
            all(self._after(branch, clause.substitute(sure)) for branch in alternative.operands)
            for alternative in self._alternatives(name)
        )

    def _after(self, branch: Formula, clause: Formula) -> bool:
        """Whether the clause holds once the branch does."""
        return clause.substitute(dict.fromkeys(required_steps(branch, self.necessary), True)) == TRUE

    def _alternatives(self, name: Step) -> list[Formula]:
        """The ORs that hold whenever the step is eligible; one with a NOT may hold no longer, and is left out."""
        return [
            clause
            for one in self.graph.steps
            if one == name or one in self.necessary[name]
            for clause in self.graph.precondition(one).clauses()
            if clause.kind == "any" and "not" not in clause.kinds
        ]


def keep_clauses(graph: SubtaskGraph, keep: Callable[[Step, Formula], bool]) -> dict[Step, Formula]:
    """Keep only some clauses of the preconditions of a graph, each as a whole.

    A clause that a step only had through another one, which is gone, is written out:
    """
    said = Clauses(graph)
    result: dict[Step, Formula] = {}
    needed: dict[Step, frozenset[Step]] = {}
    for place, name in enumerate(graph.steps):  # a step comes after all that it needs
        own = graph.precondition(name).clauses()
        result[name] = all_of(clause for clause in own if keep(name, clause))
        # Also in a branch of an OR: what all branches need is needed.
        behind = compress(graph.steps, graph.ancestor_matrix[:, place])
        touched = any(result[one] != graph.precondition(one) for one in (name, *behind))
        for clause in said.of(name) if touched else ():
            if clause.kind == "step":
                there = clause.name in required_steps(result[name], needed)
            else:
                there = Clauses(SubtaskGraph("", graph.steps, result)).has(name, clause)
            more = all_of([result[name], clause])
            if not there and keep(name, clause) and more != FALSE:  # a NOT of it may have been learnt
                result[name] = more
        needed[name] = required_steps(result[name], needed)
    return result


def reduce_changed(graph: SubtaskGraph, before: Mapping[Step, Formula]) -> dict[Step, Formula]:
    """Drop what already follows from those preconditions that have changed."""
    short = graph.transitive_reduction().preconditions
    return {
        name: formula if formula == before.get(name, TRUE) or short.get(name) == FALSE else short.get(name, TRUE)
        for name, formula in ((name, graph.precondition(name)) for name in graph.steps)
    }


def replace_preconditions(learnt: LearnedPreconditions, preconditions: Mapping[Step, Formula]) -> LearnedPreconditions:
    """Give what was learned other preconditions; where they differ, no candidate has been scored."""
    same = {name for name, formula in preconditions.items() if formula == learnt.preconditions.get(name, TRUE)}
    candidates = {name: tried for name, tried in learnt.candidates.items() if name in same}
    return replace(learnt, preconditions=preconditions, candidates=candidates)
