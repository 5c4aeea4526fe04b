"""Several people's graphs of one task as one: a clause stays when more than half of them have it.

That is how the paper's ground truth was made (App. A). Majorities may contradict each other (each of a<b, b<c, c<a can
have one), so the clearest join first, and none that closes a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from msg2.errors import InputError
from msg2.graph import FALSE, Formula, SubtaskGraph, all_of, any_of, disjunctive_normal_form, negation, step
from msg2.inference.clauses import Clauses
from msg2.inference.relations import transitive_closure
from msg2.json_values import fields_to_json
from msg2.metrics import match_step_names
from msg2.task import Step
from msg2.text import short_repr

VoteOutcome: TypeAlias = Literal["kept", "dropped", "tie", "contradiction"]
"""Of a clause: more than half of the graphs have it; fewer; exactly half; most, but clearer majorities exclude it."""


@dataclass(frozen=True, slots=True)
class Vote:
    """A clause of a step, the places (from 0) of the graphs that have it, of how many, and what became of it."""

    step: Step
    clause: Formula
    voters: tuple[int, ...]
    of: int
    outcome: VoteOutcome

    @property
    def agreement(self) -> float:
        """Share of the graphs that have the clause."""
        return len(self.voters) / self.of

    def to_json(self) -> dict[str, Any]:
        """Plain values; the clause as in a graph file."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The graph that most agree on, and the votes on every clause that is in it or that somebody wrote down."""

    graph: SubtaskGraph
    votes: tuple[Vote, ...]

    @property
    def disagreements(self) -> tuple[Vote, ...]:
        """The votes that were not unanimous."""
        return tuple(vote for vote in self.votes if len(vote.voters) < vote.of)


def merge_graphs(graphs: Sequence[SubtaskGraph]) -> MergeResult:
    """Several people's graphs of one task as one, by majority per clause of the conjunctive normal form.

    A graph has a clause when it holds whenever the step is eligible, so `a` is a vote for `a | b`, and a<b, b<c are one
    for a<c. Names of steps match as in `msg2.metrics.match_step_names`. The evidence has the agreement on every clause.

    >>> a, b = step("a"), step("b")
    >>> found = merge_graphs([SubtaskGraph("t", "abc", {"c": formula}) for formula in (a, b, any_of([a, b]))])
    >>> print(found.graph.precondition("c"))
    a | b
    >>> [(str(vote.clause), vote.voters, vote.outcome) for vote in found.disagreements]
    [('a', (0,), 'dropped'), ('b', (1,), 'dropped')]
    """
    if not graphs:
        raise InputError("there are no graphs to merge")
    said = [
        Clauses(_to_conjunctive_normal_form(_with_names_of_first(graph, graphs[0], number)))
        for number, graph in enumerate(graphs, start=1)
    ]
    found = _resolve_contradictions(
        [
            Vote(name, clause, voters, len(graphs), _vote_outcome(len(voters), len(graphs)))
            for name in sorted(graphs[0].steps)
            for clause in _clauses_to_vote_on(name, said)
            if (voters := tuple(place for place, one in enumerate(said) if one.has(name, clause)))
        ]
    )
    merged = SubtaskGraph(graphs[0].task, graphs[0].steps, _accepted_preconditions(found)).transitive_reduction()
    written = {(name, clause) for one in (*said, Clauses(merged)) for name, clause in _written_clauses(one.graph)}
    told = tuple(vote for vote in found if (vote.step, vote.clause) in written)
    method = {"name": "majority", "of": [graph.method.get("annotator") for graph in graphs]}
    return MergeResult(replace(merged, method=method, evidence=_agreement_evidence(merged, told)), told)


def conjunctive_normal_form(formula: Formula) -> tuple[Formula, ...]:
    """The clauses of the conjunctive normal form: the negated terms of the negation's disjunctive one.

    >>> a, b, c = map(step, "abc")
    >>> list(map(str, conjunctive_normal_form(any_of([a, all_of([b, c])]))))
    ['a | b', 'a | c']
    """
    return tuple(
        any_of(negation(step(name)) if value else step(name) for name, value in term)
        for term in disjunctive_normal_form(negation(formula))
    )


def _with_names_of_first(graph: SubtaskGraph, first: SubtaskGraph, number: int) -> SubtaskGraph:
    """The graph with the step names of the first one."""
    try:
        return match_step_names(graph, first)
    except InputError:
        alone = min(set(graph.steps) ^ set(first.steps))
        what = f"has not the steps of the first graph: {short_repr(alone)} is in one of them only"
        raise InputError(what, where=f"graph {number}", hint="all graphs must be of the same steps") from None


def _to_conjunctive_normal_form(graph: SubtaskGraph) -> SubtaskGraph:
    return replace(graph, preconditions={n: all_of(conjunctive_normal_form(f)) for n, f in graph.preconditions.items()})


def _written_clauses(graph: SubtaskGraph) -> list[tuple[Step, Formula]]:
    return [(name, clause) for name, formula in graph.preconditions.items() for clause in formula.clauses()]


def _clauses_to_vote_on(name: Step, said: Sequence[Clauses]) -> list[Formula]:
    """What any graph says of a step, also through the steps that it needs; shorter clauses first."""
    clauses = {clause for one in said for clause in (*one.of(name), *one.graph.precondition(name).clauses())}
    return sorted(clauses, key=lambda clause: (clause.literal_count, str(clause)))


def _vote_outcome(voters: int, of: int) -> VoteOutcome:
    return "kept" if 2 * voters > of else "tie" if 2 * voters == of else "dropped"


def _resolve_contradictions(votes: Sequence[Vote]) -> list[Vote]:
    """The votes; a majority that contradicts clearer ones, by a circle or by a NOT, is no longer kept."""
    place = {name: number for number, name in enumerate(sorted({vote.step for vote in votes}))}
    for vote in votes:
        for name in sorted(vote.clause.steps):
            place.setdefault(name, len(place))
    order = np.zeros((len(place), len(place)), dtype=np.bool_)
    formulas: dict[Step, Formula] = {}
    result = {(vote.step, vote.clause): vote for vote in votes}
    for vote in sorted((vote for vote in votes if vote.outcome == "kept"), key=lambda vote: -len(vote.voters)):
        column, rows = place[vote.step], [place[name] for name in vote.clause.steps]
        joined = all_of([formulas[vote.step], vote.clause]) if vote.step in formulas else vote.clause
        if column in rows or order[column, rows].any() or joined == FALSE:
            result[vote.step, vote.clause] = replace(vote, outcome="contradiction")
            continue
        formulas[vote.step] = joined
        order[rows, column] = True
        order = transitive_closure(order)
    return list(result.values())


def _accepted_preconditions(votes: Sequence[Vote]) -> dict[Step, Formula]:
    kept: dict[Step, list[Formula]] = {}
    for vote in votes:
        if vote.outcome == "kept":
            kept.setdefault(vote.step, []).append(vote.clause)
    return {name: all_of(clauses) for name, clauses in kept.items()}


def _agreement_evidence(graph: SubtaskGraph, votes: Sequence[Vote]) -> Mapping[Step, Any]:
    """Per step, every clause that was voted on with the share of the graphs that have it."""
    entries: dict[Step, Any] = {}
    for name in graph.steps:
        own = [vote for vote in votes if vote.step == name]
        if own:
            entries[name] = {
                "clauses": [
                    {"clause": v.clause.to_json(), "agreement": round(v.agreement, 6), "outcome": v.outcome}
                    for v in own
                ]
            }
    return entries
