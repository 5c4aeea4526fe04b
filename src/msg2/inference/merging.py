"""Several people's graphs of one task as one: what more than half of them say stays, clause by clause (App. A).

Majorities may contradict each other (each of a<b, b<c, c<a can have one), so the clearest join first, and none that
closes a cycle or makes a step impossible.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from msg2.errors import InputError, require
from msg2.graph import FALSE, TRUE, Formula, SubtaskGraph, all_of, any_of, disjunctive_normal_form, negation, step
from msg2.graph.closure import clique_cover, transitive_closure
from msg2.inference.result import clauses_of, has_clause
from msg2.metrics import match_step_names
from msg2.options import fields_to_json
from msg2.task import Step
from msg2.text import short_repr

VoteOutcome: TypeAlias = Literal["kept", "dropped", "tie", "contradiction"]
"""More than half of the graphs say so; fewer; exactly half; most, but clearer majorities exclude it."""
MAX_CLAUSES = 64
"""Clauses of a precondition that are voted on, one by one and with what each of them implies."""
VoteKind: TypeAlias = Literal["needs", "after", "exclusive", "optional"]


@dataclass(frozen=True, slots=True)
class Vote:
    """A statement about a step, which graphs make it, and what became of it."""

    step: Step
    clause: Formula  # what the step needs, comes after or excludes; TRUE for an optional step
    voters: tuple[int, ...]  # indices of the graphs that say so
    of: int  # number of graphs
    outcome: VoteOutcome
    kind: VoteKind = "needs"

    @property
    def agreement(self) -> float:
        """Share of the graphs that say so."""
        return len(self.voters) / self.of

    def to_json(self) -> dict[str, object]:
        """Plain values; the clause as in a graph file."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The graph that most agree on, and the votes on everything that is in it or that somebody wrote down."""

    graph: SubtaskGraph
    votes: tuple[Vote, ...]

    @property
    def disagreements(self) -> tuple[Vote, ...]:
        """The votes that were not unanimous."""
        return tuple(vote for vote in self.votes if len(vote.voters) < vote.of)


def merge_graphs(graphs: Sequence[SubtaskGraph]) -> MergeResult:
    """Several people's graphs of one task as one, by majority per clause of the conjunctive normal form.

    A graph has a clause when it holds whenever the step is eligible, so `a` is a vote for `a | b`, and a<b, b<c are one
    for a<c. Who says that b needs a also votes for "a comes first where both are done", so that this may have a
    majority where the need has none. A share of repetition is the mean of those given. Names of steps match as in
    `msg2.metrics.match_step_names`. The evidence has the agreement on everything that was voted on.

    >>> a, b = step("a"), step("b")
    >>> merged = merge_graphs([SubtaskGraph("t", "abc", {"c": formula}) for formula in (a, b, any_of([a, b]))])
    >>> print(merged.graph.precondition("c"))
    a | b
    >>> [(str(vote.clause), vote.voters, vote.outcome) for vote in merged.disagreements]
    [('a', (0,), 'dropped'), ('b', (1,), 'dropped')]
    >>> merge_graphs([SubtaskGraph("t", "ab", {"b": a}), SubtaskGraph("t", "ab", {}, order=["ab"])]).graph.order
    (('a', 'b'),)
    """
    require(graphs, "there are no graphs to merge")
    for number, graph in enumerate(graphs, start=1):
        for name, formula in graph.preconditions.items():
            what = f"what {short_repr(name)} needs is more than {MAX_CLAUSES} statements that could be voted on"
            hint = "write it with fewer alternatives of several steps"
            require(_count_clauses(formula) <= MAX_CLAUSES, what, where=f"graph {number}", hint=hint)
    said = [_normalise(graph, graphs[0], number) for number, graph in enumerate(graphs, start=1)]
    votes = _resolve_contradictions(_collect_votes(said), said[0].steps)
    written = {statement for graph in said for statement in _written_statements(graph)}
    merged = _accepted_graph(votes, said, written)
    written.update(_written_statements(merged))
    told = tuple(vote for vote in votes if (vote.kind, vote.step, vote.clause) in written)
    method = {"name": "majority", "of": [graph.method.get("annotator") for graph in graphs]}
    # Per step, all that was voted on with the share of the graphs that say so; what is no need has its kind.
    evidence: dict[Step, dict[str, list[dict[str, object]]]] = {}
    for name in merged.steps:
        for vote in (vote for vote in told if vote.step == name):
            kind = {} if vote.kind == "needs" else {"kind": vote.kind}
            agreement = {"agreement": round(vote.agreement, 6), "outcome": vote.outcome}
            entry: dict[str, object] = {**kind, "clause": vote.clause.to_json(), **agreement}
            evidence.setdefault(name, {"clauses": []})["clauses"].append(entry)
    return MergeResult(replace(merged, method=method, evidence=evidence), told)


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


def _count_clauses(formula: Formula, negated: bool = False) -> int:
    """At most so many clauses has the conjunctive normal form: those of an AND add up, those of an OR multiply."""
    if formula.kind == "not":
        return _count_clauses(formula.operands[0], not negated)
    counts = [_count_clauses(operand, negated) for operand in formula.operands]
    return sum(counts) if (formula.kind == "all") != negated and counts else math.prod(counts)


def _normalise(graph: SubtaskGraph, first: SubtaskGraph, number: int) -> SubtaskGraph:
    """The graph with the step names of the first one, and its preconditions in conjunctive normal form."""
    try:
        renamed = match_step_names(graph, first)
    except InputError:
        alone = min(set(graph.steps) ^ set(first.steps))
        what = f"has not the steps of the first graph: {short_repr(alone)} is in one of them only"
        raise InputError(what, where=f"graph {number}", hint="all graphs must be of the same steps") from None
    clauses = {name: all_of(conjunctive_normal_form(formula)) for name, formula in renamed.preconditions.items()}
    return replace(renamed, preconditions=clauses)


def _written_statements(graph: SubtaskGraph) -> list[tuple[VoteKind, Step, Formula]]:
    """What stands in a graph, each as the kind, step and clause of a vote."""
    return [
        *(("needs", name, clause) for name, formula in graph.preconditions.items() for clause in formula.clauses()),
        *(("after", after, step(before)) for before, after in graph.order),
        *(("exclusive", a, step(b)) for group in graph.exclusive for a, b in combinations(sorted(group), 2)),
        *(("optional", name, TRUE) for name in graph.optional),
    ]


def _collect_votes(said: Sequence[SubtaskGraph]) -> list[Vote]:
    """The votes on everything that any graph says, also through the steps that a step needs."""
    votes: list[Vote] = []

    def vote(name: Step, clause: Formula, ballots: Sequence[bool], kind: VoteKind) -> None:
        voters, of = tuple(place for place, says_so in enumerate(ballots) if says_so), len(ballots)
        twice = 2 * len(voters)
        outcome: VoteOutcome = "kept" if twice > of else "tie" if twice == of else "dropped"
        if voters:
            votes.append(Vote(name, clause, voters, of, outcome, kind))

    names = sorted(said[0].steps)
    for name in names:  # shorter clauses first
        clauses = {clause for own in said for clause in (*clauses_of(own, name), *own.precondition(name).clauses())}
        for clause in sorted(clauses, key=lambda clause: (clause.literal_count, str(clause))):
            vote(name, clause, [has_clause(own, name, clause) for own in said], "needs")
    # The order of pairs that some graph has without a need, and exclusive pairs; shape (graphs, steps, steps).
    relations = []
    for graph in said:
        places = [graph.steps.index(name) for name in names]
        kinds, own = graph.pair_kinds, np.ix_(np.array(places, np.intp), np.array(places, np.intp))
        relations.append(np.stack([kinds.before[own], kinds.needs[own], np.triu(kinds.exclusive[own])]))
    before, needs, exclusive = np.stack(relations, axis=1)
    for a, b in np.argwhere((before & ~needs).any(axis=0)).tolist():
        vote(names[b], step(names[a]), before[:, a, b].tolist(), "after")
    for a, b in np.argwhere(exclusive.any(axis=0)).tolist():
        vote(names[a], step(names[b]), exclusive[:, a, b].tolist(), "exclusive")
    for name in names:
        vote(name, TRUE, [name in graph.optional for graph in said], "optional")
    return votes


def _resolve_contradictions(votes: Sequence[Vote], steps: Sequence[Step]) -> list[Vote]:
    """Drop majorities that contradict clearer ones: by a cycle, by a NOT, or by making a step impossible."""
    index = {name: place for place, name in enumerate(steps)}
    order = np.zeros((len(steps), len(steps)), dtype=np.bool_)
    formulas, apart, result = dict.fromkeys(steps, TRUE), list[tuple[Step, Step]](), list(votes)
    kept = [number for number, vote in enumerate(votes) if vote.outcome == "kept" and vote.kind != "optional"]
    for number in sorted(kept, key=lambda number: (votes[number].kind == "exclusive", -len(votes[number].voters))):
        vote = votes[number]
        column, rows = index[vote.step], [index[name] for name in vote.clause.steps]
        if vote.kind == "exclusive":
            pairs = [*apart, (vote.step, vote.clause.name)]
            graph = SubtaskGraph("", steps, formulas, exclusive=pairs)
            needed = ((earlier, name) for name in steps for earlier in graph.necessary[name])
            if not any(graph.kind(*pair) == "exclusive" for pair in needed):
                apart = pairs
                continue
        else:
            joined = all_of([formulas[vote.step], *([vote.clause] if vote.kind == "needs" else [])])
            if column not in rows and not order[column, rows].any() and joined != FALSE:
                formulas[vote.step] = joined
                order[rows, column] = True
                order = transitive_closure(order)
                continue
        result[number] = replace(vote, outcome="contradiction")
    return result


def _accepted_graph(
    votes: Sequence[Vote], said: Sequence[SubtaskGraph], written: set[tuple[VoteKind, Step, Formula]]
) -> SubtaskGraph:
    """The graph of all that is kept: of pairs, those that somebody wrote down, and others that do not follow."""
    kept = [vote for vote in votes if vote.outcome == "kept"]
    needs = [vote for vote in kept if vote.kind == "needs"]

    def pairs(kind: VoteKind, by_hand: bool) -> list[tuple[Step, Step]]:
        chosen = [vote for vote in kept if vote.kind == kind]
        return [(v.clause.name, v.step) for v in chosen if ((kind, v.step, v.clause) in written) == by_hand]

    # The mean share of repetition of the steps of which more than half of the graphs give one.
    shares = {name: [graph.repeats[name] for graph in said if name in graph.repeats] for name in said[0].steps}
    repeats = {n: round(math.fsum(own) / len(own), 6) for n, own in shares.items() if 2 * len(own) > len(said)}
    graph = SubtaskGraph(
        said[0].task,
        said[0].steps,
        {name: all_of(vote.clause for vote in needs if vote.step == name) for name in said[0].steps},
        order=pairs("after", True),
        exclusive=clique_cover(pairs("exclusive", True)),
        optional=[vote.step for vote in kept if vote.kind == "optional"],
        repeats=repeats,
    )
    apart = [pair for pair in pairs("exclusive", False) if graph.kind(*pair) != "exclusive"]
    graph = replace(graph, exclusive=clique_cover([*pairs("exclusive", True), *apart]))
    ordered = [pair for pair in pairs("after", False) if graph.kind(*pair) == "free"]
    return replace(graph, order=(*graph.order, *ordered)).transitive_reduction()
