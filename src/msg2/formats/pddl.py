"""A graph as PDDL, for planners: a domain with one action per step, and the problem that goes with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from msg2.graph import SubtaskGraph
from msg2.graph.formula import Formula
from msg2.task import Step
from msg2.text import one_line

_LONGEST = 48
"""Characters of an identifier, before the number that makes it unique."""
_RESERVED = ("and", "or", "not", "when", "imply", "forall", "exists", "either", "define", "domain", "object", "number")


def to_pddl(graph: SubtaskGraph) -> str:
    """The domain of `graph` as it stands: doing a step needs its precondition and makes `(done-step)` true.

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
    predicates = "".join(f"\n    (done-{names[step]})" for step in graph.steps)
    actions = "".join(_action(graph, step, names) for step in graph.steps)
    return (
        f"; {one_line(graph.task)}\n(define (domain {_domain_name(graph)})\n"
        f"  (:requirements {requirements})\n"
        f"  (:predicates{predicates}){actions})\n"
    )


def to_pddl_problem(graph: SubtaskGraph) -> str:
    """The problem that goes with the domain: nothing is done yet, and every step that no other one needs is to be.

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
    needed = {parent for parent, _ in graph.edge_pairs()}
    goal = " ".join(["and", *(f"(done-{names[step]})" for step in graph.steps if step not in needed)])
    return (
        f"; {one_line(graph.task)}\n(define (problem do-{_domain_name(graph)})\n"
        f"  (:domain {_domain_name(graph)})\n  (:init)\n  (:goal ({goal})))\n"
    )


def problem_path(domain: Path) -> Path:
    """The path of the problem, beside the file of its domain.

    >>> problem_path(Path("tea.pddl")).name
    'tea-problem.pddl'
    """
    return domain.with_stem(f"{domain.stem}-problem")


def pddl_identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """A different PDDL identifier for every name: a letter, then letters, digits and hyphens, all lower case.

    >>> list(pddl_identifiers(["Boil water!", "boil water", "½ cup", "Öl", "水"]).values())
    ['boil-water', 'boil-water-2', 'step-1-2-cup', 'ol', 'step']
    """
    taken = set(_RESERVED)
    identifiers: dict[str, str] = {}
    for name in names:
        letters = unicodedata.normalize("NFKD", name).replace("\N{FRACTION SLASH}", "-").encode("ascii", "ignore")
        plain = re.sub(r"[^a-z0-9]+", "-", letters.decode("ascii").lower()).strip("-")[:_LONGEST].rstrip("-")
        base = plain if plain[:1].isalpha() else f"step-{plain}".rstrip("-")
        number, candidate = 1, base
        while candidate in taken:
            number += 1
            candidate = f"{base}-{number}"
        taken.add(candidate)
        identifiers[name] = candidate
    return identifiers


def _domain_name(graph: SubtaskGraph) -> str:
    return pddl_identifiers([graph.task])[graph.task]


def _action(graph: SubtaskGraph, step: Step, names: Mapping[Step, str]) -> str:
    return (
        f"\n\n  ; {one_line(step)}\n  (:action {names[step]}\n    :parameters ()\n"
        f"    :precondition {_condition(graph.precondition(step), names)}\n    :effect (done-{names[step]}))"
    )


def _condition(formula: Formula, names: Mapping[Step, str]) -> str:
    if formula.kind == "step":
        return f"(done-{names[formula.name]})"
    operator = {"true": "and", "all": "and", "any": "or", "not": "not"}[formula.kind]
    return "(" + " ".join([operator, *(_condition(operand, names) for operand in formula.operands)]) + ")"
