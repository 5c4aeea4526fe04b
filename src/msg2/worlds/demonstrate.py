"""Demonstrations without noise: which steps a person means to do, and in which order.

At every OR the person takes one branch, and does only the steps on it; the order is drawn step by step, uniformly
among the steps whose true precondition holds.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from msg2.graph import Formula
from msg2.task import Step
from msg2.worlds.truth import World


def intended_steps(world: World, both_branches: float, rng: np.random.Generator) -> frozenset[Step]:
    """The goals of `world` and all that the chosen branches towards them need.

    At an OR one branch is drawn uniformly; each of the others is done as well with probability `both_branches`.
    Steps with the same OR in their preconditions share the choice.
    """
    needed = set(world.goals)
    choices: dict[Formula, frozenset[Step]] = {}
    for name in reversed(world.graph.steps):  # sorted by layer: a step comes before all that it needs
        formula = world.graph.preconditions.get(name)
        if formula is not None and name in needed:
            needed |= _branch(formula, both_branches, rng, choices)
    return frozenset(needed)


def _branch(
    formula: Formula, both_branches: float, rng: np.random.Generator, choices: dict[Formula, frozenset[Step]]
) -> frozenset[Step]:
    """Steps that make `formula` true, one branch per OR; `choices` remembers them."""
    if formula.kind == "step":
        return formula.support
    if formula not in choices:
        branches = formula.operands
        if formula.kind == "any":
            chosen = rng.integers(len(branches))
            also = rng.random(len(branches)) < both_branches
            branches = tuple(branch for i, branch in enumerate(branches) if i == chosen or also[i])
        choices[formula] = frozenset().union(*(_branch(branch, both_branches, rng, choices) for branch in branches))
    return choices[formula]


def drawn_order(world: World, steps: Set[Step], rng: np.random.Generator) -> tuple[Step, ...]:
    """`steps` in an order that the graph allows, each drawn uniformly among those that are eligible then."""
    preconditions = world.graph.preconditions
    ready = [name for name in world.graph.steps if name in steps and name not in preconditions]
    waiting = {name for name in steps if name in preconditions}
    completed: set[Step] = set()
    order: list[Step] = []
    for draw in rng.random(len(steps)).tolist():
        chosen = int(draw * len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        name = ready.pop()
        order.append(name)
        completed.add(name)
        for child in world.children[name]:  # nobody else can have become eligible
            if child in waiting and preconditions[child].evaluate(completed):
                waiting.remove(child)
                ready.append(child)
    return tuple(order)
