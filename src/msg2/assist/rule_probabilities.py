"""How probably it is a mistake to break a rule of the graph, by the videos that the graph was learned from.

A learned rule may not be real. Its *gain* g says by how many nats it makes the videos more probable, and a run that
breaks it costs some of them, c < 0:

    p(real) = σ(EVIDENCE_WEIGHT (g + c) + PRIOR_ODDS)

A real rule may still be one that people break as a matter of habit. Of the n videos that could break it, k do. Either
that is usual, at any rate up to h; or it is always a mistake, and rarely seen, at a rate from Beta(1, b):

    H(k, n) = B(k + 1, n − k + 1) / h,   E(k, n) = b B(k + 1, n − k + b),   p(mistake | real) = w E / (w E + (1 − w) H)

h is 1; for the order of two steps it is one half, since the graph has the order that most videos have. w, the share of
rules that are requirements, and b are estimated from the same videos, over all rules. What careless videos do counts
for nothing (`msg2.inference.carelessness`). A rule that somebody stated is certain, and so is a graph without evidence.

Doing a step again is judged by how many of the runs with it do so, and by what came right before: if they did it again
k of the n times that they could have done so then, that is usual (at a rate around that of any moment) or never right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import exp, inf, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

from msg2.assist.following import videos_learned_from
from msg2.assist.sequence_likelihood import Repetitions, recorded
from msg2.graph import Formula, SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Step

EVIDENCE_WEIGHT, PRIOR_ODDS = 0.25, -1.0
"""A gain counts every video as if people chose independently; but they share habits, and the search looks for gains.
Both numbers come from simulated tasks with habits, where the truth is known, and from recipes, each judged by numbers
from the others (docs/behind-a-recogniser.md)."""
CARELESS_ODDS = 1.5
"""By how many nats it becomes more probable that a rule was broken by mistake where the run has broken another one."""
PRIOR_MISTAKE_RATE = 0.05
"""How often a real requirement is broken, by a belief that counts as much as one rule of the graph does."""
LEAST_RARITY = 1 / PRIOR_MISTAKE_RATE - 1
"""What is broken more often than this says, on average, is no mistake."""
REPEAT_RARITY = 99.0
"""By the same token: what one run in twenty does again is no mistake, what one in several hundred does is."""
NEVER_JUST_THEN = 0.5
"""Odds, beforehand, that a step which is done again is never done again right after a certain other one."""
_EM_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class RequirementModel:
    """`genuine`, w: the share of the graph's rules that are real requirements; `rarity`, b: how seldom they break.

    `highest`, h: the highest rate at which it may be usual to break a rule.
    """

    genuine: float
    rarity: float
    highest: float = 1.0

    @staticmethod
    def fit(
        rules: Iterable[tuple[float, float]], highest: float = 1.0, least_rarity: float | None = None
    ) -> RequirementModel:
        """Expectation maximisation over the (k, n) of all rules, from full trust in the graph.

        Beforehand w is Beta(2, 2), and 1 / (1 + b) is `PRIOR_MISTAKE_RATE`. A rate θ from Beta(1, b), met k times in
        n, has the mean E[−log(1 − θ)] = ψ(b + n + 1) − ψ(b + n − k), from which b is 1 over its mean over real
        requirements.
        """
        from scipy.special import digamma

        rules = list(rules)
        shares = [1.0] * len(rules)  # how probably each rule is a real requirement
        rarity = believed = LEAST_RARITY if least_rarity is None else least_rarity
        for _ in range(_EM_ROUNDS):
            logs = [float(digamma(rarity + n + 1) - digamma(rarity + n - k)) for k, n in rules]
            total = 1 / believed + sum(share * log for share, log in zip(shares, logs, strict=True))
            rarity = max(believed, (1 + sum(shares)) / total)
            model = RequirementModel((1 + sum(shares)) / (2 + len(shares)), rarity, highest)
            shares = [mistake_probability(times, chances, model) for times, chances in rules]
        return model


def mistake_probability(times: float, chances: float, model: RequirementModel) -> float:
    """w E / (w E + (1 − w) H): whether what some videos do is a mistake, each time, or usual."""
    k, n, b = times, chances, model.rarity
    mistake = log(model.genuine) + log(b) + lgamma(n - k + b) - lgamma(n + 1 + b)
    usual = log1p(-model.genuine) + lgamma(n - k + 1) - lgamma(n + 2) - log(model.highest)
    return 1 / (1 + exp(min(usual - mistake, 700.0)))


@dataclass(frozen=True)
class RuleProbabilities:
    """By the evidence that one graph has. `new` says that a video is not one of those that the graph was learned from:
    it counts as well.
    """

    graph: SubtaskGraph

    def order(
        self, pairs: Sequence[tuple[Step, Step]], cost: float | None, careless: float = 0.0
    ) -> OrderProbabilities:
        """Judge pairs (late, early) of steps that are the wrong way round.

        The pairs hang together: they share steps, so that one wrong choice may break several. If none of them is a
        real rule, the run has nothing to answer for; if any is, it costs all. A video that the graph was learned from
        has no `cost`. `careless` says how probably the run has broken other rules.
        """
        places = [(self.graph.index[late], self.graph.index[early]) for late, early in pairs]
        gains = np.clip(EVIDENCE_WEIGHT * np.array([self._path_gains[pair] for pair in places]), -50, 50)
        usual = np.array([self._path_probabilities[int(cost is not None)][pair] for pair in places])
        odds = PRIOR_ODDS + CARELESS_ODDS * careless + EVIDENCE_WEIGHT * (cost or 0.0)
        certain = np.array([np.isposinf(self._path_gains[pair]) for pair in places])
        return OrderProbabilities(gains, usual, odds, certain)

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
            if (clause.name, step) in self.graph.stated:
                return 1.0
            lacking = evidence.edges[clause.name].lacking if clause.name in evidence.edges else None
            return _probability(None if lacking is None else (lacking, evidence.videos), new, self._absence_model)
        if evidence.holds is None:
            return 1.0
        gain = inf if evidence.any_gain is None else evidence.any_gain
        counts = (max(evidence.videos - evidence.holds, 0), evidence.videos)
        real = float(expit(EVIDENCE_WEIGHT * (gain + (cost or 0.0)) + PRIOR_ODDS))
        return real * _probability(counts, new, self._order_model)

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

    def not_followed(self, step: Step, formula: Formula, new: bool) -> float:
        """Return the probability that it is a mistake not to do what must follow a step."""
        counts = {response.follows: response for response in self.graph.step_evidence(step).responses}.get(formula)
        lacking = None if counts is None else (counts.videos - counts.held, counts.videos)
        return _probability(lacking, new, self._absence_model)

    def unknown_step(self) -> float:
        """Return the probability that a step that no video shows is a mistake: new ones are as rare as those of one."""
        videos = len(videos_learned_from(self.graph))
        if not videos:
            return 1.0
        seldom = sum(self.graph.step_evidence(name).videos == 1 for name in self.graph.steps)
        return PRIOR_MISTAKE_RATE / (PRIOR_MISTAKE_RATE + (seldom + 0.5) / (videos + 1))

    @cached_property
    def knows_repetitions(self) -> bool:
        """Whether the videos that the graph was learned from were read with all that was done again."""
        reading = self.graph.method.get("reading")
        return bool(self.graph.repeats) or (isinstance(reading, Mapping) and reading.get("repeats") == "keep")

    def repeated(self, step: Step, last: Step | None, new: bool) -> float:
        """Return the probability that it is a mistake to do a step again, right after the `last` one."""
        counts = self._repeat_counts.get(step)
        in_any_case = _probability(counts, new, self._repeat_model)
        just_then = {
            name: (after.again.get(step, 0), after.of.get(step, 0)) for name, after in self._repetitions.items()
        }
        every = sum(chances for _, chances in just_then.values())
        if last not in just_then or counts is None or not counts[0] or not every:
            return in_any_case
        times, chances = just_then[last]
        expected = chances * sum(times for times, _ in just_then.values()) / every
        by_mistake = chances * counts[1] / (1 + self._repeat_model.rarity) / every
        # Rates are exponentially distributed, around that of any moment or around that of mistakes.
        usual, never = (times * log(max(mean, 1e-9)) - (times + 1) * log1p(mean) for mean in (expected, by_mistake))
        odds = max(in_any_case / (1 - in_any_case + 1e-12), NEVER_JUST_THEN) * exp(min(never - usual, 50.0))
        return odds / (1 + odds)

    # -- order: a pair may follow from others, through steps that the video does not show --------------------------

    @cached_property
    def _path_gains(self) -> FloatArray:
        """[a, b]: the gain of the weakest edge on the strongest path, shape (N, N); infinite where it is certain."""
        index = self.graph.index
        gains = np.full((len(index), len(index)), -inf)
        for edge in self.graph.edges():
            gain = None if edge.support is None else edge.support.gain
            gains[index[edge.before], index[edge.after]] = inf if gain is None else gain
        for before, after in self.graph.stated:
            gains[index[before], index[after]] = inf
        for middle in range(len(gains)):
            gains = np.maximum(gains, np.minimum(gains[:, middle][:, None], gains[middle]))
        return gains

    @cached_property
    def _path_probabilities(self) -> FloatArray:
        """[new, a, b]: that breaking no edge on the surest path is usual, shape (2, N, N)."""
        index = self.graph.index
        best = np.zeros((2, len(index), len(index)))
        for edge in self.graph.edges():
            counts = self._order_counts.get((edge.before, edge.after))
            for new in (False, True):
                chance = _probability(counts, new, self._order_model)
                best[int(new), index[edge.before], index[edge.after]] = chance
        for before, after in self.graph.stated:
            best[:, index[before], index[after]] = 1.0
        for middle in range(len(index)):
            best = np.maximum(best, best[:, :, middle, None] * best[:, None, middle])
        return best

    # -- counts: how many videos break a rule, of how many that could ----------------------------------------------

    @cached_property
    def _order_model(self) -> RequirementModel:
        return RequirementModel.fit(self._order_counts.values(), highest=0.5)

    @cached_property
    def _exclusive_model(self) -> RequirementModel:
        return RequirementModel.fit(self._exclusive_counts.values())

    @cached_property
    def _absence_model(self) -> RequirementModel:
        return RequirementModel.fit(self._absence_counts.values())

    @cached_property
    def _repetitions(self) -> Mapping[Step, Repetitions]:
        return recorded(self.graph, "repetitions", dict[Step, Repetitions]) or {}

    @cached_property
    def _repeat_model(self) -> RequirementModel:
        return RequirementModel.fit(self._repeat_counts.values(), least_rarity=REPEAT_RARITY)

    @cached_property
    def _repeat_counts(self) -> Mapping[Step, tuple[int, int]]:
        """The videos that do a step again, of those with it."""
        videos = {name: self.graph.step_evidence(name).videos for name in self.graph.steps}
        return {n: (round(self.graph.repeats.get(n, 0.0) * count), count) for n, count in videos.items() if count}

    @cached_property
    def _order_counts(self) -> Mapping[tuple[Step, Step], tuple[float, float]]:
        counts = {}
        for edge in self.graph.edges():
            support = edge.support
            if support is None or support.before is None or not support.together:
                continue
            broken = max(support.together - support.before, 0)
            excused = (support.careless or 0.0) * broken
            counts[edge.before, edge.after] = (broken - excused, support.together - excused)
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
        shown = {
            name: self.graph.step_evidence(name).videos for name in self.graph.steps if name in self.graph.required
        }
        return {n: (max(videos - count, 0), videos) for n, count in shown.items() if count is not None and videos}


@dataclass(frozen=True, slots=True)
class OrderProbabilities:
    """How probably pairs that hang together are mistakes; with odds c and gains g,

    p(any of S is real) = e^c (Π_all (1 + e^g) − Π_others (1 + e^g)) / (1 + e^c (Π_all (1 + e^g) − 1))
    """

    gains: FloatArray
    usual: FloatArray
    odds: float
    certain: NDArray[np.bool_]

    def any_of(self, chosen: Sequence[int] | slice = slice(None)) -> float:
        """How probably at least one of these pairs is a mistake."""
        if self.certain[chosen].any():
            return float(self.usual[chosen][self.certain[chosen]].max())
        sums = np.log1p(np.exp(self.gains))
        every, own = float(sums.sum()), float(sums[chosen].sum())
        some = self.odds + every + log(-np.expm1(-every))
        real = exp(self.odds + every + log(-np.expm1(-own)) - np.logaddexp(0.0, some))
        return float(min(real, 1.0) * self.usual[chosen].max())


def _probability(counts: tuple[float, float] | None, new: bool, model: RequirementModel) -> float:
    """Of a rule that k of n videos break; a new video that breaks it counts as well. Without evidence it is 1."""
    return 1.0 if counts is None else mistake_probability(counts[0] + new, counts[1] + new, model)
