"""`likelihood`: the partial order under which noisy demonstrations are most probable. Not in the paper.

    score = log p(choices | order, noise) + log p(order)

The first part is `msg2.inference.choices`; how noisy the videos are is learnt from them, so there is no threshold to
choose. The second says of every step b: how many of the n steps that usually precede it must do so, r, is drawn first,
all numbers alike; then which, all alike: −log C(n, r). A step mostly needs nearly everything that usually precedes it
(mix, serve) or next to nothing (chop), and both are cheap to say.

The search starts from orders that most videos agree on, and adds and removes pairs while the score rises. Alternatives
are found last, see `msg2.inference.alternatives`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import all_of, any_of, step
from msg2.inference.alternatives import grouped, log_factorials
from msg2.inference.choices import Choices, Eligible, Noise, Relation
from msg2.inference.layers import acyclic, closure, purity
from msg2.inference.learnt import Candidate, Learnt
from msg2.options import LikelihoodOptions

_ENOUGH = 1e-6
"""A smaller rise of the score is none."""


def learn(evidence: Evidence, options: LikelihoodOptions) -> Learnt:
    """For every step a conjunction of steps, or of alternatives between steps."""
    search = Search.on(evidence, options)
    some = _some(evidence, options.videos)
    scout = search if some is evidence else Search.on(some, options)
    found = max((scout.climbed(start) for start in _starts(some, options)), key=lambda fit: round(fit.score, 6))
    if scout is not search:
        found = search.climbed(found.relation)
    preconditions, candidates = {}, {}
    for index, name in enumerate(evidence.steps):
        parents = np.flatnonzero(found.covers[:, index]).tolist()
        groups = grouped(parents, index, evidence)
        preconditions[name] = all_of(any_of(step(evidence.steps[one]) for one in group) for group in groups)
        fewer = [(search.rise(found, found.without(parent, index)), parent) for parent in parents]
        candidates[name] = [Candidate(preconditions[name], 0.0)]
        if fewer:
            rise, dropped = max(fewer)
            left = (
                any_of(step(evidence.steps[one]) for one in group - {dropped}) for group in groups if group != {dropped}
            )
            candidates[name].append(Candidate(all_of(left), rise))
    return Learnt(preconditions, candidates)


def _some(evidence: Evidence, most: int) -> Evidence:
    """The evidence of at most so many videos, evenly spread: enough to find the way, not for the last of it."""
    if len(evidence.videos) <= most:
        return evidence
    return evidence.of_videos(np.linspace(0, len(evidence.videos) - 1, most).astype(np.intp))


def _starts(evidence: Evidence, options: LikelihoodOptions) -> Iterator[Relation]:
    """No order at all, and the orders of pairs of which all but a few videos agree."""
    before = evidence.of_first_labels().before
    yield np.zeros(before.shape, dtype=np.bool_)
    for agreement in options.starts:
        yield closure(acyclic(purity(before) > agreement, before + before.T)[0])


# -- what is likely beforehand ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prior:
    """`usual` (N, N): [a, b] where a precedes b in most videos that order them; `cost` (N, N + 1): −log p(r) of b."""

    usual: NDArray[np.bool_]
    cost: NDArray[np.float64]

    @staticmethod
    def of(evidence: Evidence) -> Prior:
        """The prior for the steps of `evidence`."""
        before = evidence.of_first_labels().before
        usual = before > before.T
        n, r = usual.sum(axis=0)[:, None], np.arange(len(usual) + 1)
        logs = log_factorials(len(usual))
        cost = logs[n] - logs[r] - logs[np.maximum(n - r, 0)]
        return Prior(usual, np.where(r <= n, cost, np.inf))

    def of_order(self, relation: Relation) -> float:
        """log p(order); a pair against the usual order costs log N more."""
        needed = (relation & self.usual).sum(axis=0)
        against = int((relation & ~self.usual).sum())
        return -float(self.cost[np.arange(len(needed)), needed].sum()) - against * float(np.log(len(needed)))


# -- one order and its score ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fit:
    """An order with its noise, and how well they fit: `of_videos` as in `Noise`, `prior` as in `Prior`."""

    eligible: Eligible
    noise: Noise
    of_videos: NDArray[np.float64]
    prior: float

    @property
    def relation(self) -> Relation:
        """The order."""
        return self.eligible.relation

    @cached_property
    def score(self) -> float:
        """In nats; higher is better."""
        return self.noise.total(self.of_videos) + self.prior

    @cached_property
    def covers(self) -> NDArray[np.bool_]:
        """The pairs that do not follow from others."""
        reach = self.relation.astype(np.float32)
        covers: NDArray[np.bool_] = self.relation & (reach @ reach == 0)
        return covers

    def without(self, before: int, after: int) -> Relation:
        """The order without one of its covers."""
        relation = self.relation.copy()
        relation[before, after] = False
        return relation

    def having(self, before: int, after: int) -> Relation:
        """The order with one more pair, and all that follows from it."""
        above, below = self.relation[:, before].copy(), self.relation[after].copy()
        above[before] = below[after] = True
        return self.relation | np.outer(above, below)


@dataclass(frozen=True, eq=False)
class Search:
    """Climbs from an order to a better one, until none is in sight."""

    choices: Choices
    prior: Prior
    options: LikelihoodOptions

    @staticmethod
    def on(evidence: Evidence, options: LikelihoodOptions) -> Search:
        """A search in the orders of the steps of `evidence`."""
        return Search(Choices.of(evidence), Prior.of(evidence), options)

    def climbed(self, relation: Relation) -> Fit:
        """The end of the climb from `relation`: every move, and every new estimate of the noise, raises the score."""
        fit = self._refitted(self._fit(relation, Noise.unknown(self.options.levels)))
        for _ in range(self.options.moves):
            better = self._better(fit)
            if better is None:
                refitted = self._refitted(fit)
                if refitted.score - fit.score < self.options.refit:
                    return refitted
                better = refitted
            fit = better
        return fit

    def rise(self, fit: Fit, relation: Relation) -> float:
        """By how much another order, with the same noise, is better."""
        of_videos = fit.noise.of_videos(self.choices, *fit.eligible.outcome(self.choices, relation))
        return fit.noise.total(of_videos) + self.prior.of_order(relation) - fit.score

    def _fit(self, relation: Relation, noise: Noise) -> Fit:
        eligible = self.choices.under(relation)
        of_videos = noise.of_videos(self.choices, eligible.count, eligible.hit)
        return Fit(eligible, noise, of_videos, self.prior.of_order(relation))

    def _refitted(self, fit: Fit) -> Fit:
        return replace(fit, noise=fit.noise.refitted(fit.of_videos))

    def _better(self, fit: Fit) -> Fit | None:
        """The best move, if it raises the score; moves that promise less than another one brings are not tried."""
        best, rise = None, _ENOUGH
        for promise, move, pair in self._moves(fit):
            if best is not None and promise < rise:
                break
            relation = move(*pair)
            brought = self.rise(fit, relation)
            if brought > rise:
                best, rise = relation, brought
        return None if best is None else self._fit(best, fit.noise)

    def _moves(self, fit: Fit) -> list[tuple[float, Callable[[int, int], Relation], tuple[int, int]]]:
        """Those that look best: by how much the score would rise if the pair stood alone, and how they are made."""
        added, removed = self._estimates(fit)
        free = ~fit.relation & ~fit.relation.T & ~np.eye(len(fit.relation), dtype=np.bool_)
        found: list[tuple[float, Callable[[int, int], Relation], tuple[int, int]]] = []
        for gain, pairs, move in ((added, free, fit.having), (removed, fit.covers, fit.without)):
            places = np.argwhere(pairs)
            for chosen in np.argsort(-gain[pairs], kind="stable")[: self.options.tried]:
                before, after = places[chosen].tolist()
                dearer = fit.prior - self.prior.of_order(move(before, after))
                found.append((float(gain[before, after]) - dearer, move, (before, after)))
        return sorted(found, key=lambda one: -one[0])

    def _estimates(self, fit: Fit) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Shape (N, N) twice: the rise of log p(choices) if [a, b] is added, and if it is removed, lateness left aside.

        Where b becomes blocked, one step less is eligible, and b itself is begun against the rule; where it is no
        longer blocked (a was the only one to block it), one more is.
        """
        choices, noise = self.choices, fit.noise
        rate = (noise.posterior(fit.of_videos) @ noise.levels)[choices.video]
        floor = rate / choices.open_count
        count, hit, now = fit.eligible.count, fit.eligible.hit, (choices.number, choices.begun_now)

        def chance(eligible: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.asarray(np.log((1 - rate) / np.maximum(eligible, 1) + floor))

        current = np.where(hit, chance(count), np.log(floor))
        keeping = fit.eligible.keeping
        only = choices.open & (keeping @ fit.relation.astype(np.float32) == 1)
        fewer = np.where(fit.eligible.steps, np.where(hit, chance(count - 1) - current, 0)[:, None], 0)
        fewer[now] = np.where(hit, np.log(floor) - current, 0)
        more = np.where(only, np.where(hit, chance(count + 1) - current, 0)[:, None], 0)
        more[now] = np.where(only[now], chance(count + 1) - current, 0)
        return keeping.T @ fewer.astype(np.float32), keeping.T @ more.astype(np.float32)
