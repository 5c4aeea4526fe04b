"""Which videos are careless: a rule that only careless videos break is a rule; one that careful videos break is not.

Some videos make many mistakes, most make none. A video is careless with the probability π; a careless one breaks each
edge of the graph with the rate ε₁, a careful one with ε₀. π, ε₀ and ε₁ are found by expectation maximisation. For an
edge, only edges that share no step with it tell who is careless: one slip often breaks several edges of the same step.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray, Sequences
from msg2.task import Step

_ROUNDS = 50
_START = 0.3, 0.02, 0.2
"""π, ε₀ and ε₁ at first."""
_LABELS = 100_000
"""Labels of the sample that very large data are judged by."""


def careless_shares(sequences: Sequences, graph: SubtaskGraph) -> Mapping[tuple[Step, Step], float]:
    """Of the videos that order the two steps of an edge the wrong way round, the share that is careless.

    Edges that no video breaks are not in the result. Only for data without missing labels: else videos are cut and
    labels patchy, and what looks careless is how such videos are made.
    """
    variants = sequences.variants
    index = {name: position for position, name in enumerate(variants.steps)}
    edges = sorted((index[before], index[after]) for before, after in graph.edge_pairs())
    if not edges:
        return {}
    variants = variants.sample(_LABELS)
    before, after = np.array(edges).T
    shown, required = variants.shown, np.array([name in graph.required for name in variants.steps])
    late = shown[:, before] & shown[:, after] & (variants.end[:, after] <= variants.start[:, before])
    lacking = shown[:, after] & ~shown[:, before] & required[before]
    broken = (late | lacking).astype(np.float64)
    judged = ((shown[:, before] & shown[:, after]) | lacking).astype(np.float64)
    ends = np.array(edges)
    unrelated = ~(ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(2, 3))
    rates = _fit(broken.sum(axis=1), judged.sum(axis=1), variants.weight.astype(np.float64))
    careless = _careless(broken @ unrelated, judged @ unrelated, *rates)
    total = variants.weight @ late
    share = variants.weight @ (late * careless) / np.maximum(total, 1)
    return {
        (variants.steps[a], variants.steps[b]): float(share[place])
        for place, (a, b) in enumerate(edges)
        if total[place]
    }


def _fit(broken: FloatArray, judged: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """π, ε₀ and ε₁; beforehand as if a few more videos had been as `_START` says."""
    share, low, high = _START
    for _ in range(_ROUNDS):
        careless = weight * _careless(broken, judged, share, low, high)
        careful = weight - careless
        share = (careless.sum() + 1) / (weight.sum() + 2)
        high = float((careless @ broken + 2) / (careless @ judged + 10))
        low = min(float((careful @ broken + 0.2) / (careful @ judged + 10)), high / 2)
    return float(share), low, high


def _careless(broken: FloatArray, judged: FloatArray, share: float, low: float, high: float) -> FloatArray:
    """How probably a video that breaks so many of the edges judged is careless."""
    kept = judged - broken
    odds = np.log(share / (1 - share)) + broken * np.log(high / low) + kept * np.log((1 - high) / (1 - low))
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))))
