"""How sure a graph is: learn it again from videos drawn with replacement, and count how many graphs say the same.

δ is chosen once, from all videos. The same seed gives the same samples, however many processes share the work.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import require, require_probability
from msg2.graph import PAIR_KINDS, Formula, PairKind, SubtaskGraph
from msg2.graph.closure import clique_cover
from msg2.inference.result import TIE_TOLERANCE, LearnedPreconditions, has_clause, keep_clauses, replace_preconditions
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.sequences import Sequences
from msg2.task import Step

LearnFunction: TypeAlias = Callable[[Sequences], LearnedPreconditions]
"""A method with its options."""

DEFAULT_SAMPLES = 200
"""They tell a probability of 0.9 to about ± 0.04."""
MAX_SAMPLES = 1_000_000


def choose_samples(samples: int | None, confidence: float | None) -> int | None:
    """Say how many samples are drawn, after checking what was asked for."""
    if samples is None and confidence is None:
        return None
    chosen = DEFAULT_SAMPLES if samples is None else samples
    require(1 <= chosen <= MAX_SAMPLES, f"samples is {chosen}, it must be 1 to {MAX_SAMPLES:,}")
    if confidence is not None:
        require_probability("confidence", confidence)
    return chosen


@dataclass(frozen=True)
class GraphFrequencies:
    """What share of several graphs of the same steps says the same: of bootstrap samples, or of several methods."""

    graphs: tuple[SubtaskGraph, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, sorted by name."""
        return tuple(sorted(self.graphs[0].steps))

    def ancestor(self, before: Step, after: Step) -> float:
        """Share of the graphs in which `before` must precede `after`, or does if both are done."""
        return float(self.ancestors[self.steps.index(before), self.steps.index(after)])

    def edge(self, before: Step, after: Step) -> float:
        """Return the share of graphs with this edge in their transitive reduction."""
        return self._edges[before, after] / len(self.graphs)

    def precondition(self, step: Step, formula: Formula) -> float:
        """Return the share of graphs in which a formula, clause by clause, holds whenever the step is eligible."""
        holds = [all(has_clause(graph, step, clause) for clause in formula.clauses()) for graph in self.graphs]
        return sum(holds) / len(self.graphs)

    def response(self, step: Step, formula: Formula) -> float:
        """Return the share of graphs that say that a formula must follow a step."""
        return sum((step, formula) in graph.responses for graph in self.graphs) / len(self.graphs)

    @cached_property
    def ancestors(self) -> NDArray[np.float64]:
        """`ancestor` of all pairs of `steps`, shape (steps, steps)."""
        total = np.zeros((len(self.steps), len(self.steps)))
        for graph in self.graphs:
            earlier = graph.ancestor_matrix_in_order(self.steps)
            total += earlier | graph.pair_kinds.among(self.steps) if graph.order else earlier
        return total / len(self.graphs)

    def kind(self, before: Step, after: Step) -> dict[PairKind, float]:
        """Return the share of graphs in which an ordered pair is of each kind; they add up to 1."""
        counts = Counter(graph.kind(before, after) for graph in self.graphs)
        return {kind: counts[kind] / len(self.graphs) for kind in PAIR_KINDS}

    @cached_property
    def _edges(self) -> Counter[tuple[Step, Step]]:
        return Counter(edge for graph in self.graphs for edge in graph.transitive_reduction().edge_pairs())


def bootstrap(
    sequences: Sequences,
    learn: LearnFunction,
    samples: int,
    seed: int,
    *,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> GraphFrequencies:
    """Learn graphs from videos drawn with replacement."""
    sample = partial(_learn_from_sample, sequences=sequences, learn=learn, seed=seed)
    graphs = []
    for graph in parallel_map(sample, range(samples), jobs, engine):
        graphs.append(graph)
        progress(len(graphs), samples, "learning from samples of the videos")
    return GraphFrequencies(tuple(graphs))


def _learn_from_sample(number: int, sequences: Sequences, learn: LearnFunction, seed: int) -> SubtaskGraph:
    """The graph of one sample, which has its own stream of randomness."""
    videos = len(sequences.videos)
    drawn = np.random.default_rng([seed, number]).integers(max(videos, 1), size=videos)
    return learn(sequences.select(np.sort(drawn))).graph(sequences.steps)


def drop_uncertain_clauses(
    steps: Iterable[Step], learnt: LearnedPreconditions, shares: GraphFrequencies, least: float
) -> LearnedPreconditions:
    """Drop needs, orders and exclusive pairs that too few samples share; an unsure need may stay as an order."""
    graph = learnt.graph(steps)
    left = keep_clauses(graph, lambda name, clause: shares.precondition(name, clause) >= least - TIE_TOLERANCE)
    result = replace_preconditions(learnt, graph.steps, left)
    if not learnt.model:
        return result
    smaller = SubtaskGraph("", graph.steps, result.preconditions)
    ordered = (pair for pair in sorted(graph.edge_pairs()) if smaller.kind(*pair) != "needs")
    order = [pair for pair in ordered if shares.ancestor(*pair) >= least - TIE_TOLERANCE]
    apart = (pair for group in graph.exclusive for pair in combinations(group, 2))
    exclusive = clique_cover(pair for pair in apart if shares.kind(*pair)["exclusive"] >= least - TIE_TOLERANCE)
    return replace(result, order=order, exclusive=exclusive)
