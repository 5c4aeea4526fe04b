"""How sure a graph is: learnt again and again from videos drawn with replacement, how often is the same found?

The probability of a relation is the share of these graphs that have it (the bootstrap over videos). δ, where the data
choose it, is chosen once, from all videos. The same seed gives the same samples, however the work is shared out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import TRUE, Formula, SubtaskGraph
from msg2.inference.clauses import Clauses, changed, kept, tidied
from msg2.inference.learnt import SAME, Learnt
from msg2.options import BootstrapOptions
from msg2.task import Step

Learn: TypeAlias = Callable[[Evidence], Learnt]
"""A method with its options."""
Each: TypeAlias = Callable[[Callable[[int], SubtaskGraph], Sequence[int]], Iterable[SubtaskGraph]]
"""As `map`: the results of a function (it can be pickled) in the order of its arguments, computed wherever."""


@dataclass(frozen=True)
class Shares:
    """What share of several graphs of the same steps says the same: of bootstrap samples, or of several methods.

    >>> from msg2.graph import step
    >>> half = Shares((SubtaskGraph("t", "ab", {"b": step("a")}), SubtaskGraph("t", "ab", {})))
    >>> half.ancestor("a", "b"), half.clause("b", step("a"))
    (0.5, 0.5)
    """

    graphs: tuple[SubtaskGraph, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """By name."""
        return tuple(sorted(self.graphs[0].steps))

    def ancestor(self, before: Step, after: Step) -> float:
        """The share of graphs in which one step is an ancestor of the other, through any AND or OR."""
        return float(self.ancestors[self._index[before], self._index[after]])

    def edge(self, before: Step, after: Step) -> float:
        """The share of graphs with this edge in their transitive reduction."""
        return self._edges[before, after] / len(self.graphs)

    def clause(self, step: Step, clause: Formula) -> float:
        """The share of graphs in which `clause` holds whenever the step is eligible: see `Clauses`."""
        return sum(clauses.has(step, clause) for clauses in self._clauses) / len(self.graphs)

    def precondition(self, step: Step, formula: Formula) -> float:
        """The share of graphs in which all clauses of `formula` hold whenever the step is eligible."""
        parts = formula.clauses()
        return sum(all(one.has(step, part) for part in parts) for one in self._clauses) / len(self.graphs)

    @cached_property
    def ancestors(self) -> NDArray[np.float64]:
        """`ancestor` of all pairs of `steps`, shape (steps, steps)."""
        total = np.zeros((len(self._index), len(self._index)))
        for graph in self.graphs:
            places = [self._index[name] for name in graph.steps]
            total[np.ix_(places, places)] += graph.order
        return total / len(self.graphs)

    @cached_property
    def _index(self) -> Mapping[Step, int]:
        return {name: place for place, name in enumerate(self.steps)}

    @cached_property
    def _edges(self) -> Counter[tuple[Step, Step]]:
        return Counter(edge for graph in self.graphs for edge in graph.reduced().edges())

    @cached_property
    def _clauses(self) -> list[Clauses]:
        return [Clauses(graph) for graph in self.graphs]


def bootstrapped(
    evidence: Evidence, learn: Learn, options: BootstrapOptions, seed: int, each: Each | None = None
) -> Shares:
    """The graphs learnt from `options.samples` samples of the videos; `each` may share the work out."""
    sample = partial(_sample, evidence=evidence, learn=learn, seed=seed)
    return Shares(tuple((each or map)(sample, range(options.samples))))


def _sample(number: int, evidence: Evidence, learn: Learn, seed: int) -> SubtaskGraph:
    """The graph of one sample, which has its own stream of randomness."""
    videos = len(evidence.videos)
    drawn = np.random.default_rng([seed, number]).integers(max(videos, 1), size=videos)
    times = np.bincount(drawn, minlength=videos)
    return SubtaskGraph("", evidence.steps, learn(evidence.repeated(times)).preconditions)


def confident(steps: Iterable[Step], learnt: Learnt, shares: Shares, least: float) -> Learnt:
    """What was learnt, without the clauses that hold in a smaller share of the samples than `least`.

    A step that must come first goes alone, an OR as a whole; what it implied is judged by itself, see `kept`.
    """
    graph = SubtaskGraph("", steps, learnt.preconditions)
    left = kept(graph, lambda name, clause: shares.clause(name, clause) >= least - SAME)
    return changed(learnt, tidied(SubtaskGraph("", graph.steps, left), learnt.preconditions))


def with_probabilities(entry: Mapping[str, Any], step: Step, formula: Formula, shares: Shares) -> dict[str, Any]:
    """The evidence of a step with its `confidence`, and of each edge how probable it is that the one comes first."""
    if formula == TRUE:
        return dict(entry)
    edges = {
        parent: {
            **counts,
            "probability": round(shares.ancestor(parent, step), 6),
            "direct": round(shares.edge(parent, step), 6),
        }
        for parent, counts in entry["edges"].items()
    }
    return {**entry, "edges": edges, "confidence": round(shares.precondition(step, formula), 6)}
