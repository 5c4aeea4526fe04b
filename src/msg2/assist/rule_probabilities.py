"""How probably it is a mistake to deviate from a graph: by the graph's own evidence, or by counts of other videos.

Of the n videos that could break a rule of the graph, k do. Either that is usual, at any rate up to h; or it is always a
mistake, and then rarely seen, at a rate from Beta(1, b) with the mean 1 / (1 + b):

    H(k, n) = B(k + 1, n − k + 1) / h,   E(k, n) = b B(k + 1, n − k + b)

h is 1; for the order of two steps it is one half, since the graph has the order that most videos have. With w the share
of the graph's rules that are real requirements,

    p = w E(k, n) / (w E(k, n) + (1 − w) H(k, n))

is the probability that breaking the rule is a mistake. w and b are estimated from the same videos, over all rules.

`EvidenceProbabilities` judges whole videos, for `msg2.assist.check`: a rule may also not be real, which its `gain`
tells (the nats by which it makes the graph's videos more probable), less what the video that breaks it takes off.
`CountProbabilities` judges a step when it comes, by how many videos deviate in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import exp, inf, lgamma, log, log1p

import numpy as np

from msg2.assist.following import Deviation, Run, videos_learned_from
from msg2.graph import Formula, SubtaskGraph, step
from msg2.sequences import FloatArray
from msg2.task import Step, Task, Video

PRIOR_MISTAKE_RATE = 0.05
"""How often a real requirement is broken, by a belief that counts as much as one rule of the graph does."""
LEAST_RARITY = 1 / PRIOR_MISTAKE_RATE - 1
"""For whole videos: what is broken more often than this says, on average, is no mistake."""
EM_ROUNDS = 50
"""Of expectation maximisation, with which the videos correct that belief."""
_FEW_TERMS = 1000
"""Terms of a sum that are added one by one."""


@dataclass(frozen=True, slots=True)
class RequirementModel:
    """`genuine`, w: the share of the graph's rules that are real requirements; `rarity`, b: how seldom they break.

    `highest`, h: the highest rate at which it may be usual to break a rule.
    """

    genuine: float
    rarity: float
    highest: float = 1.0

    @staticmethod
    def fit(rules: Iterable[tuple[int, int]], least_rarity: float = 1.0, highest: float = 1.0) -> RequirementModel:
        """Expectation maximisation over the (k, n) of all rules, from full trust in the graph.

        Beforehand w is Beta(2, 2), and 1 / (1 + b) is `PRIOR_MISTAKE_RATE`. A rate θ from Beta(1, b), met k times in
        n, has the mean E[−log(1 − θ)] = Σ_{j = 0 … k} 1 / (b + n − k + j), from which b is 1 over its mean over real
        requirements.
        """
        rules = list(rules)
        shares = [1.0] * len(rules)  # how probably each rule is a real requirement
        believed = rarity = 1 / PRIOR_MISTAKE_RATE - 1
        for _ in range(EM_ROUNDS):
            logs = [sum_of_inverses(rarity + n - k, k + 1) for k, n in rules]
            total = 1 / believed + sum(share * log for share, log in zip(shares, logs, strict=True))
            rarity = max(least_rarity, (1 + sum(shares)) / total)
            model = RequirementModel((1 + sum(shares)) / (2 + len(shares)), rarity, highest)
            shares = [mistake_probability(times, chances, model) for times, chances in rules]
        return model


def sum_of_inverses(first: float, count: int) -> float:
    """Σ 1 / (first + j) for j = 0 … count − 1."""
    if count <= _FEW_TERMS:
        return sum(1 / (first + j) for j in range(count))
    from scipy.special import digamma

    return float(digamma(first + count) - digamma(first))


def mistake_probability(times: int, chances: int, model: RequirementModel) -> float:
    """w E / (w E + (1 − w) H): whether what some videos do is a mistake, each time, or usual."""
    k, n, b = times, chances, model.rarity
    mistake = log(model.genuine) + log(b) + lgamma(n - k + b) - lgamma(n + 1 + b)
    usual = log1p(-model.genuine) + lgamma(n - k + 1) - lgamma(n + 2) - log(model.highest)
    return 1 / (1 + exp(min(usual - mistake, 700.0)))


# -- whole videos, by the evidence of the graph ------------------------------------------------------------------------


@dataclass(frozen=True)
class EvidenceProbabilities:
    """By the evidence that one graph has; without evidence the graph is believed, and the probability is 1.

    `new` says that a video is not one of those that the graph was learned from: it counts as well.
    """

    graph: SubtaskGraph

    def order(self, pairs: Sequence[tuple[Step, Step]], cost: float | None) -> list[float]:
        """Return the probabilities that it is a mistake to do pairs of steps the wrong way round.

        The pairs hang together: they share steps, so that one wrong choice may break several. If none of them is a
        real rule, the video has nothing to answer for; if any is, it costs all. Of an old video there is no cost.
        """
        from scipy.special import expit

        places = [(self._index[before], self._index[after]) for before, after in pairs]
        usual = self._path_probabilities[int(cost is not None)]
        gains = np.array([self._path_gains[pair] for pair in places])
        if cost is None:
            real = expit(gains)
        else:
            # p(i is real) = e^(c + g_i) Π_j≠i (1 + e^g_j) / (1 + e^c (Π_j (1 + e^g_j) − 1))
            capped = np.clip(gains, -50, 50)
            all_of_them = np.log1p(np.exp(capped)).sum()
            some = cost + all_of_them + np.log(-np.expm1(-all_of_them))
            real = np.exp(cost + capped + all_of_them - np.log1p(np.exp(capped)) - np.logaddexp(0, some))
            real = np.where(np.isposinf(gains), 1.0, real)  # without evidence the graph is believed
        return [float(chance * usual[pair]) for chance, pair in zip(real, places, strict=True)]

    def exclusive(self, step: Step, other: Step, new: bool) -> float:
        """Return the probability that it is a mistake to do both of an exclusive pair."""
        return _probability(self._exclusive_counts.get(frozenset({step, other})), new, self._exclusive_model)

    def need(self, step: Step, clause: Formula, cost: float | None) -> float:
        """Return the probability that it is a mistake to do a step although a clause of its precondition is not met."""
        from scipy.special import expit

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
        return float(expit(gain + (cost or 0.0))) * _probability(counts, new, self._order_model)

    def left_out(self, step: Step, new: bool) -> float:
        """Return the probability that it is a mistake to leave out a required step."""
        return _probability(self._absence_counts.get(step), new, self._absence_model)

    def all_left_out(self, group: Sequence[Step], new: bool) -> float:
        """Return the probability that it is a mistake to do no step of an exclusive group."""
        counts = [self.graph.step_evidence(name).videos for name in group]
        videos = len(videos_learned_from(self.graph))
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
    def _index(self) -> Mapping[Step, int]:
        return {name: index for index, name in enumerate(self.graph.steps)}

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

    @cached_property
    def _path_probabilities(self) -> FloatArray:
        """[new, a, b]: that breaking no edge on the surest path is usual, shape (2, N, N)."""
        best = np.zeros((2, len(self._index), len(self._index)))
        for edge in self.graph.edges():
            counts = self._order_counts.get((edge.before, edge.after))
            for new in (False, True):
                chance = _probability(counts, new, self._order_model)
                best[int(new), self._index[edge.before], self._index[edge.after]] = chance
        for middle in range(len(self._index)):
            best = np.maximum(best, best[:, :, middle, None] * best[:, None, middle])
        return best

    # -- counts: how many videos break a rule, of how many that could ----------------------------------------------

    @cached_property
    def _order_model(self) -> RequirementModel:
        return RequirementModel.fit(self._order_counts.values(), LEAST_RARITY, highest=0.5)

    @cached_property
    def _exclusive_model(self) -> RequirementModel:
        return RequirementModel.fit(self._exclusive_counts.values(), LEAST_RARITY)

    @cached_property
    def _absence_model(self) -> RequirementModel:
        return RequirementModel.fit(self._absence_counts.values(), LEAST_RARITY)

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
    def _absence_counts(self) -> Mapping[Step, tuple[int, int]]:
        videos = len(videos_learned_from(self.graph))
        shown = {name: self.graph.step_evidence(name).videos for name in self.graph.required}
        return {n: (max(videos - count, 0), videos) for n, count in shown.items() if count is not None and videos}


def _probability(counts: tuple[int, int] | None, new: bool, model: RequirementModel) -> float:
    """Of a rule that k of n videos break; a new video that breaks it counts as well. Without evidence it is 1."""
    return 1.0 if counts is None else mistake_probability(counts[0] + new, counts[1] + new, model)


# -- a step when it comes, by the counts of other videos ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviationCounts:
    """How often training videos deviate: of `videos`, those with each step, and those with each deviation."""

    videos: int
    steps: Mapping[Step, int]
    deviations: Mapping[Deviation, int]

    @staticmethod
    def from_videos(graph: SubtaskGraph, videos: Iterable[Video]) -> DeviationCounts:
        """Count the deviations of videos from a graph."""
        number, steps, deviations = 0, Counter[Step](), Counter[Deviation]()
        for video in videos:
            number, run = number + 1, Run(graph)
            steps.update({segment.step for segment in video.segments})
            deviations.update({deviation for segment in video.segments for deviation in run.step(segment)})
        return DeviationCounts(number, steps, deviations)

    @staticmethod
    def from_evidence(graph: SubtaskGraph) -> DeviationCounts:
        """Take the counts that a graph has as its evidence; a step of which it has none is not among the `steps`."""
        steps, deviations = dict[Step, int](), Counter[Deviation]()
        for name in graph.steps:
            evidence = graph.step_evidence(name)
            if evidence.videos is None:
                continue
            steps[name] = evidence.videos
            deviations[Deviation("repeated", name)] = round(graph.repeats.get(name, 0.0) * evidence.videos)
            for clause in graph.precondition(name).clauses():
                support = evidence.edges.get(clause.name) if clause.kind == "step" else None
                if support is not None and support.before is not None and support.together is not None:
                    broken = support.together - support.before
                    deviations[Deviation("order", clause.name, name, clause)] = broken
                    broken += support.lacking or 0
                else:
                    broken = evidence.videos - (evidence.videos if evidence.holds is None else evidence.holds)
                deviations[Deviation("need", name, None, clause)] = max(broken, 0)
            for other, both in evidence.exclusive.items():
                deviations[Deviation("exclusive", name, other, step(other))] = both
        for edge in graph.edges():
            if edge.kind == "after" and edge.support is not None and edge.support.before is not None:
                late = Deviation("order", edge.before, edge.after, step(edge.before))
                deviations[late] = max((edge.support.together or 0) - edge.support.before, 0)
        return DeviationCounts(len(videos_learned_from(graph)), steps, deviations)

    def rules(self, graph: SubtaskGraph) -> list[tuple[int, int]]:
        """Of every clause and every pair in order: how many videos break it, of how many with the step."""
        rules = [Deviation("need", n, None, clause) for n in graph.steps for clause in graph.precondition(n).clauses()]
        rules += [Deviation("order", before, after, step(before)) for before, after in graph.order]
        return [(self.deviations.get(rule, 0), self.steps.get(rule.step, 0)) for rule in rules]

    def subtract(self, other: DeviationCounts) -> DeviationCounts:
        """The counts of the videos that are left when those of `other` are taken out."""
        return DeviationCounts(
            self.videos - other.videos,
            Counter(self.steps) - Counter(other.steps),
            Counter(self.deviations) - Counter(other.deviations),
        )


@dataclass(frozen=True, slots=True)
class DeviationAssessment:
    """A deviation, the `times` that training videos have it out of `chances`, and how probably it is a mistake.

    Without videos, and in a graph without evidence, both are None and the graph is believed.
    """

    deviation: Deviation
    times: int | None
    chances: int | None
    probability: float

    def to_json(self) -> dict[str, object]:
        """Plain values; the clause as in a graph file."""
        clause = self.deviation.clause
        return {
            "kind": self.deviation.kind,
            "other": self.deviation.other,
            "clause": None if clause is None else clause.to_json(),
            "times": self.times,
            "chances": self.chances,
            "probability": self.probability,
        }


@dataclass(frozen=True, slots=True)
class CountProbabilities:
    """By how many training videos deviate in the same way: now that is seen once more, and k + 1 of n + 1 do."""

    counts: DeviationCounts
    model: RequirementModel
    believes_graph: bool  # whether what the counts say nothing about is a mistake, because the graph says so

    @staticmethod
    def fit(graph: SubtaskGraph, training: Task | DeviationCounts | None) -> CountProbabilities:
        """Count the deviations of training videos; without any, take the evidence of the graph."""
        if training is None:
            counts = DeviationCounts.from_evidence(graph)
        elif isinstance(training, DeviationCounts):
            counts = training
        else:
            counts = DeviationCounts.from_videos(graph, training)
        rules = [(times, chances) for times, chances in counts.rules(graph) if times <= chances]
        return CountProbabilities(counts, RequirementModel.fit(rules), training is None)

    def judge(self, name: Step, deviations: Iterable[Deviation]) -> list[DeviationAssessment]:
        """Judge the deviations of a step; one that no training video shows is an unknown step as well."""
        known = name in self.counts.steps
        if self.believes_graph and not known:  # how often it is done again, a graph need not say
            return [
                DeviationAssessment(deviation, None, None, 1.0)
                for deviation in deviations
                if deviation.kind != "repeated"
            ]
        return [
            self._judge(deviation)
            for deviation in (*deviations, *(() if known else (Deviation("unknown step", name),)))
        ]

    def _judge(self, deviation: Deviation) -> DeviationAssessment:
        # Where no clause is involved, it is usual or a mistake with even odds.
        model = self.model if deviation.clause is not None else replace(self.model, genuine=0.5)
        times, chances = self.counts.deviations.get(deviation, 0), self.counts.steps.get(deviation.step, 0)
        if deviation.kind == "unknown step":
            chances = self.counts.videos
        probability = mistake_probability(min(times, chances) + 1, chances + 1, model)
        return DeviationAssessment(deviation, times, chances, probability)
