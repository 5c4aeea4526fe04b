"""The suite on which the kinds of pairs are measured: which trees and worlds, by their seeds.

There are two sets with different seeds. The DEVELOPMENT set may be looked at as often as one likes while a method is
changed. The HELD_OUT set was fixed, in a commit of its own, before the model learned to tell kinds of pairs apart. It
is run once, at the end, and nothing is changed after its numbers were seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.graph_learning.optional_worlds import (
    OptionalWorld,
    household_kinds,
    optional_world_kinds,
    random_optional_world,
    simulate_household,
    simulate_world,
)
from experiments.graph_learning.process_trees import (
    ProcessTree,
    Trace,
    random_tree,
    simulate_log,
    tree_kinds,
)
from msg2.graph import PairKind
from msg2.simulation import household_worlds

NOISE = (0.0, 0.05, 0.1)
"""Of the logs of process trees: the share of the cases that are disturbed."""
CASES = (30, 100, 1000)
"""Of each process tree."""
MISSING = (0.0, 0.1, 0.2, 0.3, 0.4)
"""Of the worlds: the share of the labels that are dropped."""
VIDEOS = (54, 200)
"""Of each world: as many as the paper has per task, and more."""
BOTH_BRANCHES = 0.1
"""In the family `household`, the probability that another branch of an OR is done as well; 0 in `one branch`."""


@dataclass(frozen=True, slots=True)
class SuiteSeeds:
    """The seeds of the trees, of the random worlds, and of the demonstrations of the twelve household worlds."""

    trees: tuple[int, ...]
    worlds: tuple[int, ...]
    household: int


DEVELOPMENT = SuiteSeeds(trees=tuple(range(30)), worlds=tuple(range(20)), household=0)
HELD_OUT = SuiteSeeds(trees=tuple(range(71_000, 71_030)), worlds=tuple(range(72_000, 72_020)), household=73_000)


@dataclass(frozen=True, slots=True)
class LabelledLog:
    """What was seen of a task whose kinds of pairs are known."""

    steps: tuple[str, ...]
    traces: tuple[Trace, ...]
    kinds: dict[tuple[str, str], PairKind]

    @property
    def seen(self) -> tuple[str, ...]:
        """The steps that occur."""
        occurring = set().union(*self.traces)
        return tuple(name for name in self.steps if name in occurring)


def suite_tree(seed: int) -> ProcessTree:
    """Return the process tree with this seed."""
    return random_tree(np.random.default_rng([seed, 0]))


def suite_world(seed: int) -> OptionalWorld:
    """Return the random world with this seed."""
    return random_optional_world(np.random.default_rng([seed, 0]))


def tree_log(seed: int, cases: int, noise: float) -> LabelledLog:
    """Draw the log of a process tree.

    Parameters
    ----------
    seed : int
        Of the tree and of its log.
    cases : int
        Number of traces.
    noise : float
        The share of the cases that are disturbed.

    Returns
    -------
    LabelledLog
        The traces, and the kinds of the tree's language.
    """
    tree = suite_tree(seed)
    traces = simulate_log(tree, cases, noise, seed)
    return LabelledLog(tuple(sorted(tree.activities)), tuple(traces), tree_kinds(tree))


def world_log(seed: int, videos: int, missing: float) -> LabelledLog:
    """Draw demonstrations of a random world.

    Parameters
    ----------
    seed : int
        Of the world and of its demonstrations.
    videos : int
        Number of demonstrations.
    missing : float
        The share of the labels that are dropped.

    Returns
    -------
    LabelledLog
        The labels, and the kinds of faultless, fully labelled demonstrations.
    """
    world = suite_world(seed)
    return LabelledLog(world.steps, tuple(simulate_world(world, videos, missing, seed)), optional_world_kinds(world))


def household_log(place: int, videos: int, missing: float, both_branches: float, seed: int) -> LabelledLog:
    """Draw demonstrations of a household world.

    Parameters
    ----------
    place : int
        Which of the twelve, from 0.
    videos : int
        Number of demonstrations.
    missing : float
        The share of the labels that are dropped.
    both_branches : float
        At an OR, the probability that another branch is done as well.
    seed : int
        Of the demonstrations.

    Returns
    -------
    LabelledLog
        The labels, and the kinds of faultless, fully labelled demonstrations.
    """
    world = household_worlds()[place]
    traces = simulate_household(world, videos, missing, both_branches, seed)
    return LabelledLog(world.graph.steps, tuple(traces), household_kinds(world, both_branches=both_branches > 0))
