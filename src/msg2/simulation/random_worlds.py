"""Random tasks of any size, with a known graph: for tests of scale and of what can be recovered at all.

Steps are spread over layers 0 … depth. A step needs one step of the layer below, which makes it as deep as it should
be, and maybe more from any lower layer. The steps it needs never need one another, so the graph is in reduced form.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from msg2.errors import InputError, require
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, step
from msg2.options import WHOLE, Count, NonNegativeInteger, Probability, options_class
from msg2.simulation.worlds import World
from msg2.task import Step


@options_class
class RandomWorldOptions:
    """The shape of a random world."""

    steps: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 20
    """Number of steps."""
    depth: NonNegativeInteger = 5
    """Layer of the deepest step; steps without precondition are in layer 0."""
    or_rate: Probability = 0.2
    """Share of the preconditions that have an OR."""
    max_parents: Count = 3
    """Most steps in a precondition."""

    def __post_init__(self) -> None:
        require(self.steps > self.depth, f"steps is {self.steps}, a depth of {self.depth} takes at least one more")
        require(self.or_rate == 0 or self.max_parents > 1, "max_parents is 1, an OR takes 2")


def random_world(options: RandomWorldOptions, seed: int) -> World:
    """Draw a world of exactly this size, depth and share of ORs.

    Parameters
    ----------
    options : RandomWorldOptions
        The shape of the world.
    seed : int
        0 or more; the same seed gives the same world.

    Returns
    -------
    World
        Its graph is in reduced form.

    Raises
    ------
    InputError
        Where there is no such world, or the seed is negative.

    >>> graph = random_world(RandomWorldOptions(steps=12, depth=3, or_rate=0.5), seed=1).graph
    >>> len(graph.steps), max(graph.layer.values()), graph == graph.transitive_reduction()
    (12, 3, True)
    """
    require(seed >= 0, f"the seed is {seed}, it must be 0 or more")
    rng = np.random.default_rng(seed)
    layers = _draw_layers(options, rng)
    with_or = _draw_steps_with_or(layers, options.or_rate, rng)
    required: dict[Step, frozenset[Step]] = {name: frozenset({name}) for name in layers[0]}
    preconditions: dict[Step, Formula] = {}
    for depth in range(1, len(layers)):
        lower = [name for layer in layers[:depth] for name in layer]
        for name in layers[depth]:
            count = int(rng.integers(1 + (name in with_or), options.max_parents, endpoint=True))
            below = _shuffle(layers[depth - 1], rng)[0]
            parents = _choose_unrelated([below, *_shuffle(lower, rng)], count, required)
            # An OR has its two branches at least: steps of the same layer never require one another.
            branches = int(rng.integers(2, len(parents), endpoint=True)) if name in with_or else 0
            any_part, all_part = parents[:branches], parents[branches:]
            preconditions[name] = all_of([*map(step, all_part), *([any_of(map(step, any_part))] if any_part else [])])
            common = frozenset.intersection(*(required[p] for p in any_part)) if any_part else frozenset()
            required[name] = common.union({name}, *(required[parent] for parent in all_part))
    title = f"random {options.steps} steps, depth {options.depth}, OR rate {options.or_rate:g}, seed {seed}"
    return World(SubtaskGraph(title, (name for layer in layers for name in layer), preconditions))


def _draw_layers(options: RandomWorldOptions, rng: np.random.Generator) -> list[list[Step]]:
    """Names of the steps of each layer; two in each at least where there are enough, so that an OR has a choice."""
    count = options.depth + 1
    least = 2 if options.steps >= 2 * count else 1
    sizes = least + rng.multinomial(options.steps - least * count, np.full(count, 1 / count))
    width = len(str(options.steps))
    names = [f"step {number:0{width}d}" for number in (1 + rng.permutation(options.steps)).tolist()]
    ends = np.cumsum(sizes).tolist()
    return [names[end - size : end] for size, end in zip(sizes.tolist(), ends, strict=True)]


def _draw_steps_with_or(layers: Sequence[Sequence[Step]], or_rate: float, rng: np.random.Generator) -> frozenset[Step]:
    """The steps whose precondition is to have an OR: the share `or_rate` of those with a precondition."""
    able = [name for below, layer in pairwise(layers) if len(below) > 1 for name in layer]
    wanted = round(or_rate * sum(map(len, layers[1:])))
    if wanted > len(able):
        what = f"{wanted} preconditions are to have an OR, but only {len(able)} have two steps to choose from"
        raise InputError(what, hint="take more steps, less depth or a lower OR rate")
    return frozenset(_shuffle(able, rng)[:wanted])


def _shuffle(names: Sequence[Step], rng: np.random.Generator) -> list[Step]:
    return [names[i] for i in rng.permutation(len(names)).tolist()]


def _choose_unrelated(candidates: Sequence[Step], count: int, required: dict[Step, frozenset[Step]]) -> list[Step]:
    """The first `count` of `candidates` of which none requires another (fewer where there are not so many)."""
    chosen: list[Step] = []
    for name in candidates:
        if len(chosen) == count:
            break
        if not any(name in required[other] or other in required[name] for other in chosen):
            chosen.append(name)
    return chosen
