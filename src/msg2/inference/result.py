"""What a method returns, and how it becomes the evidence of a graph file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msg2.graph import TRUE, Formula, SubtaskGraph, Support
from msg2.sequences import Sequences
from msg2.task import Step

WEAK_BELOW = 5
"""An edge whose two steps are ordered in fewer videos than this is flagged as weak."""
MAX_EXAMPLES = 8
"""Videos in which a precondition held that are named; all in which it did not are."""
TIE_TOLERANCE = 1e-9
"""Scores that differ by less are equal; ties go to fewer literals, then by name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A precondition that was considered for a step, with its score."""

    formula: Formula
    score: float


@dataclass(frozen=True, slots=True)
class LearnedPreconditions:
    """Preconditions by step; `candidates` the best alternatives (first the chosen one) where a method scores them.

    The rest is what a method may say beyond preconditions, as in a graph file.
    """

    preconditions: Mapping[Step, Formula]
    candidates: Mapping[Step, Sequence[Candidate]] = field(default_factory=dict)
    order: Sequence[tuple[Step, Step]] = ()
    """Pairs (a, b): where a run does both, a comes first; b does not need a."""
    exclusive: Sequence[tuple[Step, ...]] = ()
    """Groups of steps of which a run does at most one."""
    optional: Sequence[Step] = ()
    """Steps that a faultless run may leave out."""
    repeats: Mapping[Step, float] = field(default_factory=dict)
    """The share of the runs with a step that do it again."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """What else was estimated, for the graph file: plain values."""
    notes: Sequence[str] = ()
    """What the user should be told about how the result came about."""

    def graph(self, steps: Iterable[Step], task: str = "", method: Mapping[str, Any] | None = None) -> SubtaskGraph:
        """Make a graph of what was learned, without evidence.

        Parameters
        ----------
        steps : iterable of str
            All steps.
        task : str
            Name of the task.
        method : mapping, optional
            How it was learned.

        Returns
        -------
        SubtaskGraph
        """
        return SubtaskGraph(
            task, steps, self.preconditions, method,
            order=self.order, exclusive=self.exclusive, optional=self.optional, repeats=self.repeats,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statistic:
    """One row of the statistics table that helps to choose thresholds."""

    kind: str
    step: Step
    candidate: str
    value: float
    videos: int
    chosen: bool


def rank_candidates(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Sort candidates by score; equal scores go to fewer literals, then by name.

    Parameters
    ----------
    candidates : sequence of Candidate
        In any order; a formula may occur more than once.
    most : int
        How many to return.

    Returns
    -------
    list of Candidate
        The best distinct ones, the best first.
    """
    left = sorted({c.formula: c for c in candidates}.values(), key=lambda c: -c.score)
    result: list[Candidate] = []
    while left and len(result) < most:
        tied = [c for c in left if left[0].score - c.score <= TIE_TOLERANCE]
        result.append(min(tied, key=_tie_break))
        left.remove(result[-1])
    return result


def _tie_break(candidate: Candidate) -> tuple[int, list[Step], str]:
    """Fewer literals first, then by name (of the steps: their text in a formula sorts differently), then AND."""
    formula = candidate.formula
    return formula.literal_count, sorted(formula.steps), formula.kind


def step_evidence(
    sequences: Sequences, graph: SubtaskGraph, candidates: Mapping[Step, Sequence[Candidate]]
) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Count what the videos say about every step of a graph.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    graph : SubtaskGraph
        What a method made of them.
    candidates : mapping of str to sequence of Candidate
        The preconditions that were considered, the chosen one first.

    Yields
    ------
    tuple of (step, dict)
        As in a graph file: videos with the step, videos in which its precondition held, examples, violations, the
        support of every edge, exclusive partners, videos without an optional step, and scores where there are any.
    """
    before = sequences.first_occurrences().before  # support is counted in videos
    shown = np.isfinite(sequences.ended)
    labelled = int(shown.any(axis=1).sum())
    index = {name: position for position, name in enumerate(sequences.steps)}
    tells_kinds = bool(graph.order or graph.exclusive or graph.optional)
    for position, name in enumerate(sequences.steps):
        formula = graph.precondition(name)
        rows = sequences.observations(position)
        held = formula.evaluate_rows(rows.completed, sequences.steps)
        violating = np.unique(rows.video[~held])
        videos = len(np.unique(rows.video))
        entry: dict[str, Any] = {"videos": videos, "holds": videos - len(violating)}
        if formula != TRUE:
            agreeing = np.setdiff1d(rows.video, violating)[:MAX_EXAMPLES]
            entry["examples"] = [sequences.videos[v] for v in agreeing]
            entry["violations"] = [sequences.videos[v] for v in violating]
        if parents := sorted(formula.steps | graph.order_predecessors(name)):
            entry["edges"] = {
                parent: _edge_support(before[index[parent], position], before[position, index[parent]])
                for parent in parents
            }
        for parent in parents if tells_kinds else ():
            entry["edges"][parent]["lacking"] = int((shown[:, position] & ~shown[:, index[parent]]).sum())
        if partners := sorted(graph.partners(name)):
            both = {partner: int((shown[:, position] & shown[:, index[partner]]).sum()) for partner in partners}
            entry["exclusive"] = both
        if name in graph.optional:
            entry["optional"] = {"without": labelled - videos, "videos": labelled}
        considered = candidates.get(name, ())
        if considered:
            entry["score"] = round(considered[0].score, 9)
        if len(considered) > 1:
            second = considered[1]
            entry["runner_up"] = {"precondition": second.formula.to_json(), "score": round(second.score, 9)}
        yield name, entry


def _edge_support(before: int, after: int) -> dict[str, Any]:
    together = int(before + after)
    return Support(int(before), together, weak=together < WEAK_BELOW).to_json()
