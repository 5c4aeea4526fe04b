"""What a method returns, and how it becomes the evidence of a graph file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    gains: Mapping[tuple[Step, Step], float] = field(default_factory=dict)
    """By how much each pair (before, after) makes the videos more probable (nats); see `msg2.graph.Support`."""
    any_gains: Mapping[Step, float] = field(default_factory=dict)
    """The same of the weakest OR in the precondition of a step."""
    notes: Sequence[str] = ()
    """What the user should be told about how the result came about."""
    relearn: Callable[[Sequences], LearnedPreconditions] | None = None
    """Learns from a sample of the same videos in less time, and only what its graph says; where a method can."""

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
    sequences: Sequences, graph: SubtaskGraph, learned: LearnedPreconditions
) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Count what the videos say about every step of a graph."""
    before = sequences.first_occurrences().before  # support is counted in videos
    shown, weight = sequences.shown, sequences.weight
    labelled = int(weight @ shown.any(axis=1))
    index = {name: position for position, name in enumerate(sequences.steps)}
    tells_kinds = bool(learned.model)
    for position, name in enumerate(sequences.steps):
        formula = graph.precondition(name)
        violating = np.zeros(len(weight), dtype=np.bool_)
        for run, completed in sequences.completed_at(position):
            violating[run[~formula.evaluate_rows(completed, sequences.steps)]] = True
        videos = int(weight @ shown[:, position])
        entry: dict[str, Any] = {"videos": videos, "holds": videos - int(weight @ violating)}
        if formula != TRUE:
            agreeing = shown[:, position] & ~violating
            entry["examples"] = _names(sequences, agreeing)[:MAX_EXAMPLES]
            entry["violations"] = _names(sequences, violating)
        if parents := sorted(formula.steps | graph.order_predecessors(name)):
            counts = {
                parent: (
                    int(before[index[parent], position]),
                    int(before[position, index[parent]]),
                    int(weight @ (shown[:, position] & ~shown[:, index[parent]])) if tells_kinds else None,
                )
                for parent in parents
            }
            entry["edges"] = {
                parent: _edge_support(*numbers, learned.gains.get((parent, name))) for parent, numbers in counts.items()
            }
        if partners := sorted(graph.partners(name)):
            both = {partner: int(weight @ (shown[:, position] & shown[:, index[partner]])) for partner in partners}
            entry["exclusive"] = both
        if name in graph.optional:
            entry["optional"] = {"without": labelled - videos, "videos": labelled}
        if name in learned.any_gains:
            entry["any_gain"] = round(learned.any_gains[name], 6)
        considered = learned.candidates.get(name, ())
        if considered:
            entry["score"] = round(considered[0].score, 9)
        if len(considered) > 1:
            second = considered[1]
            entry["runner_up"] = {"precondition": second.formula.to_json(), "score": round(second.score, 9)}
        yield name, entry


def _names(sequences: Sequences, runs: NDArray[np.bool_]) -> list[str]:
    """The videos that show some of the runs."""
    return [sequences.videos[place] for place in np.flatnonzero(runs[sequences.run_of_video]).tolist()]


def _edge_support(before: int, after: int, lacking: int | None, gain: float | None) -> dict[str, Any]:
    together = before + after
    shown = None if gain is None else round(gain, 6)
    return Support(before, together, lacking, weak=together < WEAK_BELOW, gain=shown).to_json()
