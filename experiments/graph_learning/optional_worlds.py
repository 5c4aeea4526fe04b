"""Random worlds with known optional steps, the household worlds, and what their demonstrations allow.

In a random world some steps are required and the others are optional, each at a rate of its own; a precedence order
says which comes first where two are done, and an optional step may need another optional step. Demonstrations do a
random set of steps in a random order that the precedence allows. Then labels are dropped, each with the same
probability. The kinds of pairs are defined on the language, the set of all faultless demonstrations, as for process
trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations, permutations, product

import numpy as np

from experiments.graph_learning.process_trees import Trace
from msg2.graph import Formula, PairKind
from msg2.simulation import NoiseOptions, World, simulate
from msg2.simulation.simulator import SimulationOptions

STEPS = (8, 14)
"""Fewest and most steps of a world, each number with equal chance."""
DENSITY = (0.1, 0.3)
"""Least and greatest probability that a step is drawn to come before a later one; one number per world."""
OPTIONAL_SHARE = 0.4
"""How many of the steps are optional, rounded."""
NEED_RATE = 0.5
"""How often an optional step that comes after others of its kind needs one of them (which needs nothing)."""
RATES = (0.2, 0.8)
"""Least and greatest probability of doing an optional step, once what it needs is done."""


@dataclass(frozen=True, slots=True)
class OptionalWorld:
    """Steps, which of them come before which (a strict order), and what is optional.

    `before[b]` are all steps that come before b where both are done, `rates` the optional steps with the probability of
    doing them, `needs[b]` the optional step that the optional step b needs.
    """

    steps: tuple[str, ...]
    before: Mapping[str, frozenset[str]]
    rates: Mapping[str, float]
    needs: Mapping[str, str]


def random_optional_world(rng: np.random.Generator) -> OptionalWorld:
    """Draw a world; the names of its steps say nothing about their order.

    >>> world = random_optional_world(np.random.default_rng(0))
    >>> 8 <= len(world.steps) <= 14, 2 <= len(world.rates) < len(world.steps)
    (True, True)
    """
    count = int(rng.integers(*STEPS, endpoint=True))
    steps = [f"step {number + 1:02d}" for number in rng.permutation(count).tolist()]
    density = rng.uniform(*DENSITY)
    before: dict[str, frozenset[str]] = {}
    for place, name in enumerate(steps):
        direct = [other for other in steps[:place] if rng.random() < density]
        before[name] = frozenset(direct).union(*(before[other] for other in direct))
    chosen = rng.permutation(count)[: round(OPTIONAL_SHARE * count)].tolist()
    optional = [steps[place] for place in sorted(chosen)]
    needs: dict[str, str] = {}
    for name in optional:
        able = [other for other in optional if other in before[name] and other not in needs]
        if able and rng.random() < NEED_RATE:
            needs[name] = able[int(rng.integers(len(able)))]
    rates = {name: float(rng.uniform(*RATES)) for name in optional}
    return OptionalWorld(tuple(sorted(steps)), before, rates, needs)


def demonstrate(world: OptionalWorld, rng: np.random.Generator) -> Trace:
    """Draw the steps that are done and an order of them, each uniformly among those that may come next.

    Parameters
    ----------
    world : OptionalWorld
        The task.
    rng : numpy.random.Generator
        Random numbers.

    Returns
    -------
    tuple of str
        The steps in their order.
    """
    draws = dict(zip(world.steps, rng.random(len(world.steps)).tolist(), strict=True))
    wanted = {name for name in world.steps if name not in world.rates or draws[name] < world.rates[name]}
    waiting = [name for name in world.steps if name in wanted and world.needs.get(name, name) in wanted]
    order: list[str] = []
    while waiting:
        ready = [name for name in waiting if world.before[name].isdisjoint(waiting)]
        order.append(ready[int(rng.integers(len(ready)))])
        waiting.remove(order[-1])
    return tuple(order)


def simulate_world(world: OptionalWorld, videos: int, missing: float, seed: int) -> list[Trace]:
    """Draw demonstrations and drop labels; all rates of missing labels see the same demonstrations.

    Parameters
    ----------
    world : OptionalWorld
        The task.
    videos : int
        Number of demonstrations; more leave the earlier ones as they are.
    missing : float
        Probability that a step that was done has no label.
    seed : int
        0 or more; everything follows from it.

    Returns
    -------
    list of tuple of str
        The labels in their order.
    """
    rng, label_rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    shown = []
    for _ in range(videos):
        done = demonstrate(world, rng)
        kept = (label_rng.random(len(done)) >= missing).tolist()
        shown.append(tuple(name for name, keep in zip(done, kept, strict=True) if keep))
    return shown


def optional_world_kinds(world: OptionalWorld) -> dict[tuple[str, str], PairKind]:
    """The kind of every ordered pair: a step that comes before another is needed where it is required or said to be."""
    kinds: dict[tuple[str, str], PairKind] = {}
    for a, b in permutations(world.steps, 2):
        if a not in world.before[b]:
            kinds[a, b] = "free"
        else:
            kinds[a, b] = "needs" if a not in world.rates or world.needs.get(b) == a else "after"
    return kinds


# -- household worlds -------------------------------------------------------------------------------------------


def simulate_household(world: World, videos: int, missing: float, both_branches: float, seed: int) -> list[Trace]:
    """Demonstrate a household world without mistakes, and drop labels.

    Parameters
    ----------
    world : World
        The task.
    videos : int
        Number of demonstrations.
    missing : float
        Probability that a step that was done has no label.
    both_branches : float
        At an OR, the probability that another branch than the chosen one is done as well.
    seed : int
        0 or more; everything follows from it.

    Returns
    -------
    list of tuple of str
        The labels in their order.
    """
    noise = NoiseOptions(skipped=0, unlabelled=missing, swapped=0, repeated=0, mislabelled=0)
    options = SimulationOptions(videos=videos, both_branches=both_branches, noise=noise)
    return [video.sequence() for video in simulate(world, options, seed).task]


def household_kinds(world: World, *, both_branches: bool) -> dict[tuple[str, str], PairKind]:
    """The kind of every ordered pair, from all sets of steps that a demonstration may do.

    In a set with both, b can come before a where b can be reached without a. Where several branches of an OR may be
    done, a branch that was not waited for may come at any later time: such pairs are free, however rarely they show it.

    Parameters
    ----------
    world : World
        The task.
    both_branches : bool
        Whether several branches of an OR may be done.

    Returns
    -------
    dict of tuple of str to PairKind
        By (a, b).
    """
    plans = list(_plans(world, both_branches))
    kinds: dict[tuple[str, str], PairKind] = {}
    for a, b in permutations(world.graph.steps, 2):
        with_b = [plan for plan in plans if b in plan]
        together = [plan for plan in with_b if a in plan]
        if not together:
            kinds[a, b] = "exclusive"
        elif any(b in _reachable(world, plan - {a}) for plan in together):
            kinds[a, b] = "free"
        else:
            kinds[a, b] = "needs" if len(together) == len(with_b) else "after"
    return kinds


def _plans(world: World, both_branches: bool) -> Iterator[frozenset[str]]:
    """All sets of steps that a demonstration may do: the goals, and what the chosen branches towards them need."""
    formulas = [world.graph.precondition(name) for name in world.graph.steps]
    ors = list(dict.fromkeys(chain.from_iterable(map(_disjunctions, formulas))))
    for choice in product(*(_branches(formula.operands, both_branches) for formula in ors)):
        chosen = dict(zip(ors, choice, strict=True))
        plan = set(world.goals)
        for name in reversed(world.graph.steps):  # sorted by layer: a step comes before all that it needs
            if name in plan:
                plan |= _required(world.graph.precondition(name), chosen)
        yield frozenset(plan)


def _disjunctions(formula: Formula) -> Iterator[Formula]:
    if formula.kind == "any":
        yield formula
    for operand in formula.operands:
        yield from _disjunctions(operand)


def _branches(operands: Sequence[Formula], both: bool) -> Iterable[tuple[Formula, ...]]:
    most = len(operands) if both else 1
    return chain.from_iterable(combinations(operands, size) for size in range(1, most + 1))


def _required(formula: Formula, chosen: Mapping[Formula, Sequence[Formula]]) -> frozenset[str]:
    if formula.kind == "step":
        return formula.steps
    return frozenset().union(*(_required(operand, chosen) for operand in chosen.get(formula, formula.operands)))


def _reachable(world: World, plan: Set[str]) -> frozenset[str]:
    """The steps that can be done when only those of `plan` may be."""
    done: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name in plan if world.graph.precondition(name).evaluate(done))
        if more == done:
            return done
        done = more
