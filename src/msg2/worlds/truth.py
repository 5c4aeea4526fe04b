"""A world: a task whose true graph is known, so that what is learnt from its demonstrations can be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from msg2.errors import InputError, shortened
from msg2.graph import SubtaskGraph
from msg2.task import Step


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
            if "not" in formula.kinds:
                raise InputError(
                    f"the precondition of {shortened(name)} in the world {shortened(self.name)} has a NOT",
                    hint="a world knows AND and OR only: every step of it can be done sooner or later",
                )

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
        return {
            parent: tuple(name for name in self.graph.steps if parent in self.graph.parents(name))
            for parent in self.graph.steps
        }
