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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import all_of, any_of, step
from msg2.inference.alternatives import grouped, log_factorials
from msg2.inference.choices import Bits, Choices, Eligible, Relation, unpacked
from msg2.inference.layers import acyclic, closure, purity
from msg2.inference.learnt import Candidate, Learnt
from msg2.inference.noise import Noise, Numbers, log_chances
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
        fewer = [(search.moved(found, found.without(parent, index)).score - found.score, parent) for parent in parents]
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
    """Climbs from an order to a better one, until none is in sight; `chances` is a table of log p, shape (cases, J)."""

    choices: Choices
    prior: Prior
    options: LikelihoodOptions
    chances: Numbers

    @staticmethod
    def on(evidence: Evidence, options: LikelihoodOptions) -> Search:
        """A search in the orders of the steps of `evidence`."""
        chances = log_chances(np.array(options.levels), len(evidence.steps))
        return Search(Choices.of(evidence), Prior.of(evidence), options, chances.reshape(-1, len(options.levels)))

    def climbed(self, relation: Relation) -> Fit:
        """The end of the climb from `relation`: every move, and every new estimate of the noise, raises the score."""
        fit = self.refitted(self.begun(relation))
        # Of many choices, every so manieth shows the way as long as it shows any; all of them say when to stop.
        sparse = max(1, len(self.choices.first) // self.options.videos)
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

    def moved(self, fit: Fit, relation: Relation) -> Fit:
        """Another order with the same noise; only the choices that become more or less likely are looked at."""
        eligible = fit.eligible.under(relation, self.choices)
        case = self._case(eligible)
        changed = np.flatnonzero(case != fit.case)
        of_videos = fit.of_videos
        if len(changed):
            videos = self.choices.video[changed]
            first = np.flatnonzero(np.diff(videos, prepend=-1))
            of_videos = of_videos.copy()
            rise = self.chances[case[changed]] - self.chances[fit.case[changed]]
            of_videos[videos[first]] += np.add.reduceat(rise, first, axis=0)
        return Fit(eligible, case, fit.noise, of_videos, self.prior.of_order(relation))

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
        for gain, pairs, move in ((added, free, fit.having), (removed, fit.covers, fit.without)):
            places = np.argwhere(pairs)
            for chosen in np.argsort(-gain[pairs], kind="stable")[: self.options.tried]:
                before, after = places[chosen].tolist()
                relation = move(before, after)
                found.append((float(gain[before, after]) + self.prior.of_order(relation) - fit.prior, relation))
        return sorted(found, key=lambda one: -one[0])

    def _estimates(self, fit: Fit, sparse: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Shape (N, N) twice: the rise of log p(choices) if [a, b] is added, and if it is removed, lateness left aside.

        Where b becomes blocked, one step less is eligible, and b itself is begun against the rule; where it is no
        longer blocked (a was the only one to block it), one more is. One choice in `sparse` speaks for all.
        """
        choices, noise = self.choices, fit.noise
        rate = (noise.posterior(fit.of_videos) @ noise.levels)[choices.video[::sparse]]
        floor = rate / choices.open_count[::sparse]
        count, hit = fit.eligible.count[::sparse], fit.case[::sparse] % (len(fit.relation) + 1) > 0

        def dense(bits: Bits) -> NDArray[np.float32]:
            return unpacked(bits, len(choices))[:, ::sparse].astype(np.float32)

        def chance(eligible: NDArray[np.int16]) -> Numbers:
            return np.asarray(np.log((1 - rate) / np.maximum(eligible, 1) + floor))

        current = np.where(hit, chance(count), np.log(floor))
        keeping, now = dense(fit.eligible.keeping), (choices.step[::sparse], np.arange(len(count)))
        only = dense(choices.open) * (fit.relation.T.astype(np.float32) @ keeping == 1)
        fewer = dense(fit.eligible.steps) * np.where(hit, chance(count - 1) - current, 0).astype(np.float32)
        fewer[now] = np.where(hit, np.log(floor) - current, 0)
        more = only * np.where(hit, chance(count + 1) - current, 0).astype(np.float32)
        more[now] = only[now] * (chance(count + 1) - current)
        return sparse * (keeping @ fewer.T), sparse * (keeping @ more.T)
