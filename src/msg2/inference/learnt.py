"""What a method returns, and how it becomes a graph with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msg2.evidence import Evidence
from msg2.graph import TRUE, Formula
from msg2.options import EvidenceOptions
from msg2.task import Step

SAME = 1e-9
"""Scores that differ by less are equal; ties go to fewer literals, then by name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A precondition that was considered for a step, with its score."""

    formula: Formula
    score: float


@dataclass(frozen=True, slots=True)
class Learnt:
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


def ranked(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The best distinct candidates, at most `most`; equal scores go to fewer literals, then by name."""
    left = sorted({c.formula: c for c in candidates}.values(), key=lambda c: -c.score)
    result: list[Candidate] = []
    while left and len(result) < most:
        tied = [c for c in left if left[0].score - c.score <= SAME]
        result.append(min(tied, key=_precedence))
        left.remove(result[-1])
    return result


def _precedence(candidate: Candidate) -> tuple[int, list[Step], str]:
    """Fewer literals first, then by name (of the steps: their text in a formula sorts differently), then AND."""
    formula = candidate.formula
    return formula.literals, sorted(formula.support), formula.kind


def evidence_entries(
    evidence: Evidence, learnt: Learnt, options: EvidenceOptions
) -> Iterator[tuple[Step, dict[str, Any]]]:
    """For every step: videos with it, videos in which its precondition held and those that violate it, edge support."""
    before = evidence.of_first_labels().before  # support is counted in videos
    index = {name: position for position, name in enumerate(evidence.steps)}
    for position, name in enumerate(evidence.steps):
        formula = learnt.preconditions.get(name, TRUE)
        rows = evidence.rows(position)
        held = formula.evaluate_rows(rows.completed, evidence.steps)
        violating = np.unique(rows.video[~held])
        videos = len(np.unique(rows.video))
        entry: dict[str, Any] = {"videos": videos, "holds": videos - len(violating)}
        if formula != TRUE:
            agreeing = np.setdiff1d(rows.video, violating)[: options.examples]
            entry["examples"] = [evidence.videos[v] for v in agreeing]
            entry["violations"] = [evidence.videos[v] for v in violating]
            entry["edges"] = {
                parent: _edge(before[index[parent], position], before[position, index[parent]], options)
                for parent in sorted(formula.support)
            }
        candidates = learnt.candidates.get(name, ())
        if candidates:
            entry["score"] = round(candidates[0].score, 9)
        if len(candidates) > 1:
            second = candidates[1]
            entry["runner_up"] = {"precondition": second.formula.to_json(), "score": round(second.score, 9)}
        yield name, entry


def _edge(before: int, after: int, options: EvidenceOptions) -> dict[str, Any]:
    together = int(before + after)
    weak = {"weak": True} if together < options.weak_below else {}
    return {"before": int(before), "together": together, **weak}
