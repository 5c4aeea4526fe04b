"""A graph as a PDDL domain, so that planners can use what was learnt: one action per step."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from msg2.drawing.text import one_line
from msg2.graph import SubtaskGraph
from msg2.graph.formula import Formula
from msg2.task import Step

_LONGEST = 48
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
    names = identifiers(graph.steps)
    kinds = frozenset().union(*(formula.kinds for formula in graph.preconditions.values()))
    predicates = "".join(f"\n    (done-{names[step]})" for step in graph.steps)
    actions = "".join(_action(graph, step, names) for step in graph.steps)
    return (
        f"; {one_line(graph.task)}\n(define (domain {identifiers([graph.task])[graph.task]})\n"
        f"  (:requirements {':adl' if kinds & {'any', 'not'} else ':strips'})\n"
        f"  (:predicates{predicates}){actions})\n"
    )


def identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """A different PDDL identifier for every name: a letter, then letters, digits and hyphens, all lower case.

    >>> list(identifiers(["Boil water!", "boil water", "½ cup", "Öl", "水"]).values())
    ['boil-water', 'boil-water-2', 'step-1-2-cup', 'ol', 'step']
    """
    taken = set(_RESERVED)
    found: dict[str, str] = {}
    for name in names:
        letters = unicodedata.normalize("NFKD", name).replace("\N{FRACTION SLASH}", "-").encode("ascii", "ignore")
        plain = re.sub(r"[^a-z0-9]+", "-", letters.decode("ascii").lower()).strip("-")[:_LONGEST].rstrip("-")
        base = plain if plain[:1].isalpha() else f"step-{plain}".rstrip("-")
        number, candidate = 1, base
        while candidate in taken:
            number += 1
            candidate = f"{base}-{number}"
        taken.add(candidate)
        found[name] = candidate
    return found


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
