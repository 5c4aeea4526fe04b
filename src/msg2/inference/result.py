"""What a method returns, and how it becomes the evidence of a graph file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msg2.graph import TRUE, Formula, Support
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
    """Preconditions by step; `candidates` the best alternatives (first the chosen one) where a method scores them."""

    preconditions: Mapping[Step, Formula]
    candidates: Mapping[Step, Sequence[Candidate]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    """What the user should be told about how the result came about."""


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


def step_evidence(sequences: Sequences, learned: LearnedPreconditions) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Count what the videos say about every precondition.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    learned : LearnedPreconditions
        What a method made of them.

    Yields
    ------
    tuple of (step, dict)
        As in a graph file: videos with the step, videos in which its precondition held, examples, violations, the
        support of every edge, and scores where the method has any.
    """
    before = sequences.first_occurrences().before  # support is counted in videos
    index = {name: position for position, name in enumerate(sequences.steps)}
    for position, name in enumerate(sequences.steps):
        formula = learned.preconditions.get(name, TRUE)
        rows = sequences.observations(position)
        held = formula.evaluate_rows(rows.completed, sequences.steps)
        violating = np.unique(rows.video[~held])
        videos = len(np.unique(rows.video))
        entry: dict[str, Any] = {"videos": videos, "holds": videos - len(violating)}
        if formula != TRUE:
            agreeing = np.setdiff1d(rows.video, violating)[:MAX_EXAMPLES]
            entry["examples"] = [sequences.videos[v] for v in agreeing]
            entry["violations"] = [sequences.videos[v] for v in violating]
            entry["edges"] = {
                parent: _edge_support(before[index[parent], position], before[position, index[parent]])
                for parent in sorted(formula.steps)
            }
        candidates = learned.candidates.get(name, ())
        if candidates:
            entry["score"] = round(candidates[0].score, 9)
        if len(candidates) > 1:
            second = candidates[1]
            entry["runner_up"] = {"precondition": second.formula.to_json(), "score": round(second.score, 9)}
        yield name, entry


def _edge_support(before: int, after: int) -> dict[str, Any]:
    together = int(before + after)
    return Support(int(before), together, weak=together < WEAK_BELOW).to_json()
