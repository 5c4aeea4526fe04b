"""How probably it is a mistake to break a rule of a graph, from the evidence that the graph has.

Two things may excuse it. The rule may not be real: its `gain`, the nats by which it makes the graph's videos more
probable, is then small, and the video that breaks it takes off some more. Or breaking it is usual, see
`msg2.assist.requirement_model`. The probability is that of neither; without evidence it is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from msg2.assist.requirement_model import PRIOR_MISTAKE_RATE, RequirementModel, mistake_probability
from msg2.graph import Formula, SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Step

LEAST_RARITY = 1 / PRIOR_MISTAKE_RATE - 1
"""What is broken more often than this says, on average, is no mistake."""


@dataclass(frozen=True)
class RuleProbabilities:
    """The rules of one graph. `new` says that a video is not one of those that the graph was learned from."""

    graph: SubtaskGraph

    def order(self, pairs: Sequence[tuple[Step, Step]], cost: float | None) -> list[float]:
        """Return the probabilities that it is a mistake to do pairs of steps the wrong way round.

        The pairs hang together: they share steps, so that one wrong choice may break several. If none of them is a
        real rule, the video has nothing to answer for; if any is, it costs all.
        """
        places = [(self._index[before], self._index[after]) for before, after in pairs]
        usual = self._path_probabilities(cost is not None)
        gains = np.array([self._path_gains[pair] for pair in places])
        if cost is None:
            real = 1 / (1 + np.exp(-np.clip(gains, -700, 700)))
        else:
            # p(i is real) = e^(c + g_i) Π_j≠i (1 + e^g_j) / (1 + e^c (Π_j (1 + e^g_j) − 1))
            capped = np.clip(gains, -50, 50)
            all_of_them = np.log1p(np.exp(capped)).sum()
            some = cost + all_of_them + np.log(-np.expm1(-all_of_them))
            real = np.exp(cost + capped + all_of_them - np.log1p(np.exp(capped)) - np.logaddexp(0, some))
            real = np.where(np.isposinf(gains), 1.0, real)  # without evidence the graph is believed
        return [float(chance * usual[pair]) for chance, pair in zip(real, places, strict=True)]

    def exclusive(self, one: Step, other: Step, new: bool) -> float:
        """Return the probability that it is a mistake to do both of an exclusive pair."""
        return _probability(self._exclusive_counts.get(frozenset({one, other})), new, self._exclusive_model)

    def need(self, step: Step, clause: Formula, cost: float | None) -> float:
        """Return the probability that it is a mistake to do a step although a clause of its precondition is not met."""
        evidence, new = self.graph.step_evidence(step), cost is not None
        if evidence.videos is None:
            return 1.0
        if clause.kind == "step":
            lacking = evidence.edges[clause.name].lacking if clause.name in evidence.edges else None
            return _probability(None if lacking is None else (lacking, evidence.videos), new, self._absence_model)
        if evidence.holds is None:
            return 1.0
        gain = inf if evidence.any_gain is None else evidence.any_gain
        counts = (max(evidence.videos - evidence.holds, 0), evidence.videos)
        return _sigmoid(gain + (cost or 0.0)) * _probability(counts, new, self._order_model)

    def left_out(self, step: Step, new: bool) -> float:
        """Return the probability that it is a mistake to leave out a required step."""
        return _probability(self._absence_counts.get(step), new, self._absence_model)

    def all_left_out(self, group: Sequence[Step], new: bool) -> float:
        """Return the probability that it is a mistake to do no step of an exclusive group."""
        counts = [self.graph.step_evidence(name).videos for name in group]
        videos = self._videos
        if not videos or None in counts:
            return 1.0
        both = sum(self._exclusive_counts.get(frozenset(pair), (0, 0))[0] for pair in combinations(group, 2))
        lacking = min(max(videos - sum(count or 0 for count in counts) + both, 0), videos)
        return _probability((lacking, videos), new, self._absence_model)

    def repeated(self, step: Step, new: bool) -> float:
        """Return the probability that it is a mistake to do a step again: usual or not with even odds beforehand."""
        videos = self.graph.step_evidence(step).videos
        counts = None if videos is None else (round(self.graph.repeats.get(step, 0.0) * videos), videos)
        return _probability(counts, new, RequirementModel(0.5, LEAST_RARITY))

    # -- order: a pair may follow from others, through steps that the video does not show --------------------------

    @cached_property
    def _path_gains(self) -> FloatArray:
        """[a, b]: the gain of the weakest edge on the strongest path, shape (N, N); infinite without evidence."""
        gains = np.full((len(self._index), len(self._index)), -inf)
        for edge in self.graph.edges():
            gain = None if edge.support is None else edge.support.gain
            gains[self._index[edge.before], self._index[edge.after]] = inf if gain is None else gain
        for middle in range(len(gains)):
            gains = np.maximum(gains, np.minimum(gains[:, middle][:, None], gains[middle]))
        return gains

    def _path_probabilities(self, new: bool) -> NDArray[np.float64]:
        """[a, b]: that breaking no edge on the surest path is usual, shape (N, N)."""
        return self._new_path_probabilities if new else self._old_path_probabilities

    @cached_property
    def _new_path_probabilities(self) -> NDArray[np.float64]:
        return self._surest_paths(True)

    @cached_property
    def _old_path_probabilities(self) -> NDArray[np.float64]:
        return self._surest_paths(False)

    def _surest_paths(self, new: bool) -> NDArray[np.float64]:
        best = np.zeros((len(self._index), len(self._index)))
        for edge in self.graph.edges():
            counts = self._order_counts.get((edge.before, edge.after))
            best[self._index[edge.before], self._index[edge.after]] = _probability(counts, new, self._order_model)
        for middle in range(len(best)):
            best = np.maximum(best, np.outer(best[:, middle], best[middle]))
        return best

    # -- counts: how many videos break a rule, of how many that could ----------------------------------------------

    @cached_property
    def _index(self) -> Mapping[Step, int]:
        return {name: place for place, name in enumerate(self.graph.steps)}

    @cached_property
    def _order_model(self) -> RequirementModel:
        return RequirementModel.fit(list(self._order_counts.values()), LEAST_RARITY, highest=0.5)

    @cached_property
    def _exclusive_model(self) -> RequirementModel:
        return RequirementModel.fit(list(self._exclusive_counts.values()), LEAST_RARITY)

    @cached_property
    def _absence_model(self) -> RequirementModel:
        return RequirementModel.fit(list(self._absence_counts.values()), LEAST_RARITY)

    @cached_property
    def _order_counts(self) -> Mapping[tuple[Step, Step], tuple[int, int]]:
        counts = {}
        for edge in self.graph.edges():
            support = edge.support
            if support is not None and support.before is not None and support.together:
                counts[edge.before, edge.after] = (max(support.together - support.before, 0), support.together)
        return counts

    @cached_property
    def _exclusive_counts(self) -> Mapping[frozenset[Step], tuple[int, int]]:
        counts = {}
        for name in self.graph.steps:
            evidence = self.graph.step_evidence(name)
            for partner, both in evidence.exclusive.items():
                other = self.graph.step_evidence(partner).videos
                if evidence.videos is not None and other is not None:
                    counts[frozenset({name, partner})] = (both, max(evidence.videos + other - both, both))
        return counts

    @cached_property
    def _videos(self) -> int:
        """How many videos the graph was learned from; 0 where it does not say."""
        videos = self.graph.method.get("videos")
        return len(videos) if isinstance(videos, list | tuple) else 0

    @cached_property
    def _absence_counts(self) -> Mapping[Step, tuple[int, int]]:
        videos = self._videos
        shown = {name: self.graph.step_evidence(name).videos for name in self.graph.required}
        return {n: (max(videos - count, 0), videos) for n, count in shown.items() if count is not None and videos}


def _probability(counts: tuple[int, int] | None, new: bool, model: RequirementModel) -> float:
    """Of a rule that k of n videos break; a new video that breaks it counts as well. Without evidence it is 1."""
    return 1.0 if counts is None else mistake_probability(counts[0] + new, counts[1] + new, model)


def _sigmoid(nats: float) -> float:
    return 1 / (1 + exp(-max(nats, -700.0)))
