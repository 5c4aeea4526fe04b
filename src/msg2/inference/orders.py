"""The search for the order under which demonstrations are most probable: what is likely beforehand, one order with its
score, and the climb from one to a better one. `msg2.inference.likelihood` says what for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.inference.choices import Alternatives, Bits, Choices, Eligible, Relation, unpacked
from msg2.inference.names import log_sums
from msg2.inference.noise import Noise, Numbers, log_chances
from msg2.options import LikelihoodOptions

_ENOUGH = 1e-6
"""A smaller rise of the score is none."""

Weights = NDArray[np.float32]


# -- what is likely beforehand ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prior:
    """`usual` (N, N): [a, b] where a precedes b in most videos that order them; `kin` (N, N): how much the names speak
    for needing a of them; `cost` (N, N + 1): what it costs to say which r of them b needs, but for its kin.
    """

    usual: NDArray[np.bool_]
    kin: Numbers
    cost: Numbers

    @staticmethod
    def of(evidence: Evidence, kin: Numbers | None = None) -> Prior:
        """The prior for the steps of `evidence`."""
        before = evidence.of_first_labels().before
        usual = before > before.T
        kin = np.zeros(usual.shape) if kin is None else kin
        return Prior(usual, kin, log_sums(kin, usual))

    def of_order(self, relation: Relation, alternatives: frozenset[Alternatives] = frozenset()) -> float:
        """log p(order); a pair against the usual order costs log N more, a clause of k steps log 2 C(N − 1, k)."""
        size = len(relation)
        usual = relation & self.usual
        needed = usual.sum(axis=0)
        cost = float(self.cost[self._steps, needed].sum())
        if self._kin:
            cost -= float(self.kin[usual].sum())
        against = int(relation.sum()) - int(needed.sum())
        clauses = sum(float(np.log(2 * comb(size - 1, len(group)))) for _, group in alternatives)
        return -(cost + against * float(np.log(size)) + clauses)

    @cached_property
    def _steps(self) -> NDArray[np.intp]:
        return np.arange(len(self.usual))

    @cached_property
    def _kin(self) -> bool:
        return bool(self.kin.any())


# -- one order and its score ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fit:
    """An order with its noise, and how well they fit: `of_videos` as in `Noise`, `prior` as in `Prior`.

    `case` (E,) is the row of the search's table of chances that tells how likely each choice was.
    """

    eligible: Eligible
    case: NDArray[np.intp]
    noise: Noise
    of_videos: Numbers
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

    def alternatives(self, step: int) -> list[frozenset[int]]:
        """The clauses of a step, sorted."""
        return sorted((group for owner, group in self.eligible.alternatives if owner == step), key=sorted)

    def without(self, before: int, after: int) -> Relation:
        """The order without one of its covers."""
        relation = self.relation.copy()
        relation[before, after] = False
        return relation

    def having(self, before: int, after: int) -> Relation:
        """The order with one more pair, and all that follows from it."""
        return _with_pair(self.relation, before, after)

    def turned(self, before: int, after: int) -> Relation:
        """The order with one of its covers the other way round."""
        return _with_pair(self.without(before, after), after, before)


def _with_pair(relation: Relation, before: int, after: int) -> Relation:
    above, below = relation[:, before].copy(), relation[after].copy()
    above[before] = below[after] = True
    return relation | np.outer(above, below)


@dataclass(frozen=True, eq=False)
class Search:
    """Climbs from an order to a better one, until none is in sight; `chances` is a table of log p, shape (cases, J)."""

    choices: Choices
    prior: Prior
    options: LikelihoodOptions
    chances: Numbers

    @staticmethod
    def on(evidence: Evidence, options: LikelihoodOptions, kin: Numbers | None = None) -> Search:
        """A search in the orders of the steps of `evidence`; `kin` as in `Prior`."""
        chances = log_chances(np.array(options.levels), len(evidence.steps))
        return Search(Choices.of(evidence), Prior.of(evidence, kin), options, chances.reshape(-1, len(options.levels)))

    @cached_property
    def sparse(self) -> int:
        """Of many choices, one in so many shows the way as long as it shows any; all of them say when to stop."""
        return max(1, len(self.choices.first) // self.options.videos)

    def climbed(self, relation: Relation) -> Fit:
        """The end of the climb from `relation`: every move, and every new estimate of the noise, raises the score."""
        fit = self.refitted(self.begun(relation))
        sparse = self.sparse
        for _ in range(self.options.moves):
            better = self._better(fit, sparse)
            if better is None and sparse > 1:
                sparse, better = 1, fit
            elif better is None:
                refitted = self.refitted(fit)
                if refitted.score - fit.score < self.options.refit:
                    return refitted
                better = refitted
            fit = better
        return fit

    def begun(self, relation: Relation) -> Fit:
        """An order of which nothing is known yet."""
        noise, eligible = Noise.unknown(self.options.levels), self.choices.under(relation)
        case = self._case(eligible)
        of_videos = np.zeros((0, len(noise.levels)))
        if len(case):
            of_videos = np.add.reduceat(self.chances[case], self.choices.first, axis=0)
        return Fit(eligible, case, noise, of_videos, self.prior.of_order(relation))

    def refitted(self, fit: Fit) -> Fit:
        """With the noise that is most probable under the order."""
        return replace(fit, noise=fit.noise.refitted(fit.of_videos))

    def moved(self, fit: Fit, relation: Relation, alternatives: frozenset[Alternatives] | None = None) -> Fit:
        """Another order with the same noise; only the choices that become more or less likely are looked at."""
        alternatives = fit.eligible.alternatives if alternatives is None else alternatives
        eligible = fit.eligible.under(relation, alternatives, self.choices)
        case = self._case(eligible)
        changed = np.flatnonzero(case != fit.case)
        of_videos = fit.of_videos
        if len(changed):
            videos = self.choices.video[changed]
            first = np.flatnonzero(np.concatenate(([True], videos[1:] != videos[:-1])))
            of_videos = of_videos.copy()
            rise = self.chances[case[changed]] - self.chances[fit.case[changed]]
            of_videos[videos[first]] += np.add.reduceat(rise, first, axis=0)
        return Fit(eligible, case, fit.noise, of_videos, self.prior.of_order(relation, alternatives))

    def _case(self, eligible: Eligible) -> NDArray[np.intp]:
        """The row of `chances` of each choice, shape (E,)."""
        size = len(eligible.relation) + 1
        return np.asarray(self.choices.open_count * np.intp(size) + eligible.by_rule())

    def _better(self, fit: Fit, sparse: int) -> Fit | None:
        """The best move, if it raises the score; moves that promise less than another one brings are not tried."""
        best, least = None, fit.score + _ENOUGH
        for promise, relation in self._moves(fit, sparse):
            if best is not None and fit.score + promise < best.score:
                break
            there = self.moved(fit, relation)
            if there.score > (least if best is None else best.score):
                best = there
        return best

    def _moves(self, fit: Fit, sparse: int) -> list[tuple[float, Relation]]:
        """Those that look best: by how much the score would rise if the pair stood alone, and where they lead."""
        added, removed = self._estimates(fit, sparse)
        free = ~fit.relation & ~fit.relation.T & ~np.eye(len(fit.relation), dtype=np.bool_)
        found: list[tuple[float, Relation]] = []
        kinds = (
            (added, free, fit.having),
            (removed, fit.covers, fit.without),
            (removed + added.T, fit.covers, fit.turned),
        )
        for gain, pairs, move in kinds:
            places = np.argwhere(pairs)
            for chosen in np.argsort(-gain[pairs], kind="stable")[: self.options.tried]:
                before, after = places[chosen].tolist()
                relation = move(before, after)
                found.append((float(gain[before, after]) + self.prior.of_order(relation) - fit.prior, relation))
        return sorted(found, key=lambda one: -one[0])

    def _estimates(self, fit: Fit, sparse: int) -> tuple[Weights, Weights]:
        """Shape (N, N) twice: the rise of log p(choices) if [a, b] is added, and if it is removed, lateness left aside.

        One choice in `sparse` speaks for all.
        """
        fewer, more = self.rises(fit, sparse)
        keeping = self.dense(fit.eligible.keeping, sparse)
        return sparse * (keeping @ fewer.T), sparse * (keeping @ more.T)

    def rises(self, fit: Fit, sparse: int) -> tuple[Weights, Weights]:
        """Shape (N, E / sparse) twice: the rise of log p of a choice if a step becomes blocked, and if it no longer is.

        Where b becomes blocked, one step less is eligible, and b itself is begun against the rule; where it is no
        longer blocked (one step only kept it waiting), one more is.
        """
        choices, noise = self.choices, fit.noise
        rate = (noise.posterior(fit.of_videos) @ noise.levels)[choices.video[::sparse]]
        floor = rate / choices.open_count[::sparse]
        count, hit = fit.eligible.count[::sparse], fit.case[::sparse] % (len(fit.relation) + 1) > 0

        def chance(eligible: NDArray[np.int16]) -> Numbers:
            return np.asarray(np.log((1 - rate) / np.maximum(eligible, 1) + floor))

        current = np.where(hit, chance(count), np.log(floor))
        keeping, now = self.dense(fit.eligible.keeping, sparse), (choices.step[::sparse], np.arange(len(count)))
        only = self.dense(choices.open, sparse) * (fit.relation.T.astype(np.float32) @ keeping == 1)
        fewer = self.dense(fit.eligible.steps, sparse) * np.where(hit, chance(count - 1) - current, 0).astype(
            np.float32
        )
        fewer[now] = np.where(hit, np.log(floor) - current, 0)
        more = only * np.where(hit, chance(count + 1) - current, 0).astype(np.float32)
        more[now] = only[now] * (chance(count + 1) - current)
        return fewer, more

    def dense(self, bits: Bits, sparse: int) -> Weights:
        """Bits of each step as numbers, shape (N, E / sparse)."""
        return unpacked(bits, len(self.choices))[:, ::sparse].astype(np.float32)
