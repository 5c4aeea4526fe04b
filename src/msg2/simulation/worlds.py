"""Worlds: tasks whose true graph is known, so that what is learned from their demonstrations can be judged.

The household worlds, such as "Make Coffee", are the twelve tasks of the paper's ProceL experiments. Their names and
numbers of steps are the paper's (a–l). Steps and preconditions (household_worlds.json) are ours, because the paper's
graphs were never published: a precondition says what must be done for the step to be possible or safe, not what people
happen to do first. The worlds never change to suit a method.

Random worlds of any size are for tests of scale. Their steps are spread over layers 0 … depth. A step needs one step of
the layer below and maybe more from any lower layer; these never need one another, so the graph is in reduced form.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from msg2.errors import InputError, require
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, formula_from_json, step
from msg2.options import WHOLE, Count, NonNegativeInteger, Probability, options_class
from msg2.task import Step
from msg2.text import short_repr


@dataclass(frozen=True)
class World:
    """A task with its true graph; preconditions are made of AND and OR only, so any one branch of an OR will do.

    >>> from msg2.graph import any_of, step
    >>> coffee = SubtaskGraph("coffee", ["pour", "grind", "open"], {"pour": any_of([step("grind"), step("open")])})
    >>> World(coffee).goals
    frozenset({'pour'})
    """

    graph: SubtaskGraph

    def __post_init__(self) -> None:
        for name, formula in self.graph.preconditions.items():
            what = f"the precondition of {short_repr(name)} in the world {short_repr(self.name)} has a NOT"
            hint = "a world knows AND and OR only: every step of it can be done sooner or later"
            require("not" not in formula.kinds, what, hint=hint)

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.graph.task

    @cached_property
    def goals(self) -> frozenset[Step]:
        """The steps that no other step needs: every demonstration means to do all of them."""
        return frozenset(name for name in self.graph.steps if not self.children[name])

    @cached_property
    def children(self) -> Mapping[Step, tuple[Step, ...]]:
        """For each step the steps whose precondition speaks of it, in the order of the graph."""
        steps, parents = self.graph.steps, self.graph.parents
        return {parent: tuple(name for name in steps if parent in parents(name)) for parent in steps}


@cache
def household_worlds() -> tuple[World, ...]:
    """Return the twelve household worlds, in the paper's order (a) to (l).

    >>> [len(w.graph.steps) for w in household_worlds()]
    [16, 18, 8, 12, 21, 10, 14, 14, 14, 12, 10, 9]
    """
    content = json.loads(files("msg2.simulation").joinpath("household_worlds.json").read_text("utf-8"))
    return tuple(
        World(SubtaskGraph(task, needs, {name: formula_from_json(formula) for name, formula in needs.items()}))
        for task, needs in content.items()
    )


def household_world(name: str) -> World:
    """Return the household world called `name`, in any case.

    >>> str(household_world("repot plant").graph.precondition("slide plant out"))
    'cut around root ball | tap sides of old pot'
    """
    for candidate in household_worlds():
        if candidate.name.casefold() == name.strip().casefold():
            return candidate
    known = ", ".join(candidate.name for candidate in household_worlds())
    raise InputError(f"there is no world called {short_repr(name)}", hint=f"the worlds are: {known}")


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
            below = rng.permutation(layers[depth - 1]).tolist()[0]
            parents: list[Step] = []
            for candidate in [below, *rng.permutation(lower).tolist()]:
                if not any(candidate in required[other] or other in required[candidate] for other in parents):
                    parents.append(candidate)
                if len(parents) == count:
                    break
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
    return [layer.tolist() for layer in np.split(np.array(names), np.cumsum(sizes)[:-1])]


def _draw_steps_with_or(layers: Sequence[Sequence[Step]], or_rate: float, rng: np.random.Generator) -> frozenset[Step]:
    """The steps whose precondition is to have an OR: the share `or_rate` of those with a precondition."""
    able = [name for below, layer in pairwise(layers) if len(below) > 1 for name in layer]
    wanted = round(or_rate * sum(map(len, layers[1:])))
    what = f"{wanted} preconditions are to have an OR, but only {len(able)} have two steps to choose from"
    require(wanted <= len(able), what, hint="take more steps, less depth or a lower OR rate")
    return frozenset(rng.permutation(able).tolist()[:wanted])
