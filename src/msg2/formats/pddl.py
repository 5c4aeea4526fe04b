"""A graph as PDDL, for planners: a domain with one action per step, and the problem that goes with it.

Order and exclusive groups are predicates of their own, (not-done-x), which doing x takes away: so plain STRIPS planners
read them too, and only a `not` in a precondition asks for more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain, count
from pathlib import Path

from msg2.graph import SubtaskGraph
from msg2.graph.closure import necessary_steps
from msg2.graph.formula import Formula
from msg2.task import Step
from msg2.text import one_line

_LONGEST = 48  # characters of an identifier, before the number that makes it unique
_RESERVED = ("and", "or", "not", "when", "imply", "forall", "exists", "either", "define", "domain", "object", "number")


def to_pddl(graph: SubtaskGraph) -> str:
    """The domain of `graph` as it stands: a step can be done where it is eligible, and that makes `(done-step)` true.

    >>> from msg2.graph import step
    >>> print(to_pddl(SubtaskGraph("tea", ["boil water", "pour"], {"pour": step("boil water")})))
    ; tea
    (define (domain tea)
      (:requirements :strips)
      (:predicates
        (done-boil-water)
        (done-pour))
    <BLANKLINE>
      ; boil water
      (:action boil-water
        :parameters ()
        :precondition (and)
        :effect (done-boil-water))
    <BLANKLINE>
      ; pour
      (:action pour
        :parameters ()
        :precondition (done-boil-water)
        :effect (done-pour)))
    <BLANKLINE>
    """
    names = pddl_identifiers(graph.steps)
    kinds = frozenset().union(*(formula.kinds for formula in graph.preconditions.values()))
    beyond = {"any": ":disjunctive-preconditions", "not": ":negative-preconditions"}
    requirements = " ".join([":strips", *(need for kind, need in beyond.items() if kind in kinds)])
    hindering, choices = _hindering_steps(graph), _choices(graph)
    predicates = "".join(f"\n    (done-{names[step]})" for step in graph.steps)
    predicates += "".join(f"\n    (not-done-{names[step]})" for step in hindering)
    predicates += "".join(f"\n    ({choice})" for choice in choices)
    actions = ""
    for step in graph.steps:
        effects = [f"(done-{names[step]})"]
        effects += [f"(not (not-done-{names[step]}))"] if step in hindering else []
        effects += [f"({choice})" for choice, group in choices.items() if step in group]
        effect = effects[0] if len(effects) == 1 else f"(and {' '.join(effects)})"
        actions += (
            f"\n\n  ; {one_line(step)}\n  (:action {names[step]}\n    :parameters ()\n"
            f"    :precondition {_precondition(graph, step, names)}\n    :effect {effect})"
        )
    return (
        f"; {one_line(graph.task)}\n(define (domain {_domain_name(graph)})\n"
        f"  (:requirements {requirements})\n"
        f"  (:predicates{predicates}){actions})\n"
    )


def to_pddl_problem(graph: SubtaskGraph) -> str:
    """The problem that goes with the domain: nothing is done yet, and what a run must do is to be done.

    The goal leaves out what others in it need anyway. A graph without optional steps and exclusive groups leaves it to
    the planner which branch of an "any" is done.

    >>> from msg2.graph import step
    >>> print(to_pddl_problem(SubtaskGraph("tea", ["boil water", "pour"], {"pour": step("boil water")})))
    ; tea
    (define (problem do-tea)
      (:domain tea)
      (:init)
      (:goal (and (done-pour))))
    <BLANKLINE>
    """
    names = pddl_identifiers(graph.steps)
    needs = necessary_steps(graph.steps, graph.preconditions)
    if not graph.optional and not graph.exclusive:
        needs = {step: graph.parents(step) for step in graph.steps}
    needed = frozenset().union(*(needs[step] for step in graph.required))
    goal = [f"(done-{names[step]})" for step in graph.steps if step in graph.required - needed]
    goal += [f"({choice})" for choice in _choices(graph)]
    init = [f"(not-done-{names[step]})" for step in _hindering_steps(graph)]
    return (
        f"; {one_line(graph.task)}\n(define (problem do-{_domain_name(graph)})\n"
        f"  (:domain {_domain_name(graph)})\n"
        f"  ({' '.join([':init', *init])})\n  (:goal ({' '.join(['and', *goal])})))\n"
    )


def problem_path(domain: Path) -> Path:
    """The path of the problem, beside the file of its domain: tea-problem.pddl beside tea.pddl."""
    return domain.with_stem(f"{domain.stem}-problem")


def pddl_identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """A different PDDL identifier for every name: a letter, then letters, digits and hyphens, all lower case."""
    taken = set(_RESERVED)
    identifiers: dict[str, str] = {}
    for name in names:
        letters = unicodedata.normalize("NFKD", name).replace("\N{FRACTION SLASH}", "-").encode("ascii", "ignore")
        plain = re.sub(r"[^a-z0-9]+", "-", letters.decode("ascii").lower()).strip("-")[:_LONGEST].rstrip("-")
        base = plain if plain[:1].isalpha() else f"step-{plain}".rstrip("-")
        numbered = chain([base], (f"{base}-{number}" for number in count(2)))
        identifiers[name] = next(candidate for candidate in numbered if candidate not in taken)
        taken.add(identifiers[name])
    return identifiers


def _domain_name(graph: SubtaskGraph) -> str:
    return pddl_identifiers([graph.task])[graph.task]


def _hindering_steps(graph: SubtaskGraph) -> dict[Step, None]:
    """The steps after which another one cannot be done, in the order of the graph."""
    hindering = frozenset().union(*map(graph.ruled_out_by, graph.steps))
    return dict.fromkeys(step for step in graph.steps if step in hindering)


def _choices(graph: SubtaskGraph) -> Mapping[str, tuple[Step, ...]]:
    """The groups of which one step must be done, by the predicate that says so."""
    groups = [group for group in graph.exclusive if graph.optional.isdisjoint(group)]
    return {f"one-of-{number}": group for number, group in enumerate(groups, start=1)}


def _precondition(graph: SubtaskGraph, step: Step, names: Mapping[Step, str]) -> str:
    formula = graph.precondition(step)
    hindering = sorted(graph.ruled_out_by(step))
    if not hindering:
        return _condition(formula, names)
    clauses = [_condition(clause, names) for clause in formula.clauses()]
    return f"(and {' '.join([*clauses, *(f'(not-done-{names[other]})' for other in hindering)])})"


def _condition(formula: Formula, names: Mapping[Step, str]) -> str:
    if formula.kind == "step":
        return f"(done-{names[formula.name]})"
    operator = {"true": "and", "all": "and", "any": "or", "not": "not"}[formula.kind]
    return "(" + " ".join([operator, *(_condition(operand, names) for operand in formula.operands)]) + ")"
