"""A demonstration as a sequence of choices: at every moment, which step is begun, of those that are still to come?

Under a strict partial order the next step is one of the eligible ones, all alike, or, with a small probability ε, any:

    p(s) = (1 − ε) · [s eligible] / |eligible| + ε / |open|

Open are the steps of the video that are not begun yet. A step is eligible when none of those that must come before it
is still waiting; what the video never shows was skipped, or done and not labelled, and keeps nobody waiting. Neither
does a step that is late: once a step that needed it has been begun, people go on as if it had been done.
Every video has its own ε, drawn from a few levels whose shares are learnt: one chaotic video costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence

Relation = NDArray[np.bool_]
"""Shape (N, N), transitive: [a, b] where a must come before b."""


@dataclass(frozen=True, eq=False)
class Choices:
    """E choices in V videos of N steps, ordered by video; moments at which one step only is left say nothing.

    `begun_now` (E,) is the step that was begun. `open` (E, N) could have been; `waiting` (E, N), float32 0 or 1, keeps
    others waiting (all that is open, but for what begins at the same moment); `begun` (E, N) was begun earlier.
    `first` (V,) is where each video's choices begin.
    """

    begun_now: NDArray[np.intp]
    open: NDArray[np.bool_]
    waiting: NDArray[np.float32]
    begun: NDArray[np.float32]
    first: NDArray[np.intp]

    @staticmethod
    def of(evidence: Evidence) -> Choices:
        """The choices of the first labels of every video.

        >>> from msg2.task import Segment, Task, Video
        >>> task = Task("tea", ["boil", "pour"], [Video("v", [Segment("boil"), Segment("pour")])])
        >>> Choices.of(Evidence.of(task)).open.tolist()
        [[True, True]]
        """
        firsts = evidence.of_first_labels()
        order = np.lexsort((firsts.step, firsts.start, firsts.video))
        video, step, start = firsts.video[order], firsts.step[order], firsts.start[order, None]
        begins = np.full((len(firsts.videos), len(firsts.steps)), np.nan)
        begins[video, step] = start[:, 0]
        every = begins[video]
        with np.errstate(invalid="ignore"):
            still_open, begun = every >= start, every < start
        waiting = still_open & (every != start)
        waiting[np.arange(len(step)), step] = True
        telling = still_open.sum(axis=1) > 1
        kept = video[telling]
        return Choices(
            step[telling],
            still_open[telling],
            waiting[telling].astype(np.float32),
            begun[telling].astype(np.float32),
            np.flatnonzero(np.diff(kept, prepend=-1)),
        )

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """0 … E − 1, to pick one column of every row."""
        return np.arange(len(self.begun_now))

    @cached_property
    def open_count(self) -> NDArray[np.int64]:
        """|open|, shape (E,)."""
        return np.asarray(self.open.sum(axis=1))

    @cached_property
    def video(self) -> NDArray[np.intp]:
        """The number of each choice's video, shape (E,)."""
        lengths = np.diff(self.first, append=len(self.begun_now))
        return np.repeat(np.arange(len(self.first)), lengths)

    def keeping(self, relation: Relation) -> NDArray[np.float32]:
        """What still keeps others waiting under `relation`, float32 of shape (E, N): what is late no longer does."""
        late = self.begun @ relation.astype(np.float32).T > 0
        kept: NDArray[np.float32] = self.waiting * ~late
        return kept

    def under(self, relation: Relation) -> Eligible:
        """What is eligible under `relation`."""
        keeping = self.keeping(relation)
        eligible = self.open & (keeping @ relation.astype(np.float32) == 0)
        hit = eligible[self.number, self.begun_now]
        return Eligible(relation, keeping, eligible, eligible.sum(axis=1), hit)


@dataclass(frozen=True, eq=False)
class Eligible:
    """What is eligible under a `relation`: `steps` (E, N), how many of them, `count` (E,), and whether what was begun
    is one of them, `hit` (E,); `keeping` as in `Choices`.
    """

    relation: Relation
    keeping: NDArray[np.float32]
    steps: NDArray[np.bool_]
    count: NDArray[np.int64]
    hit: NDArray[np.bool_]

    def outcome(self, choices: Choices, other: Relation) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """`count` and `hit` under another relation; only what can differ is computed."""
        differs = self.relation != other
        if not differs.any():
            return self.count, self.hit
        sources = np.flatnonzero(differs.any(axis=1))
        late = choices.begun @ other[sources].astype(np.float32).T > 0
        change = choices.waiting[:, sources] * ~late - self.keeping[:, sources]
        moved = sources[change.any(axis=0)]
        columns = np.flatnonzero(differs.any(axis=0) | (self.relation[moved] | other[moved]).any(axis=0))
        to = other[:, columns].astype(np.float32)
        now = choices.open[:, columns] & (self.keeping @ to + change @ to[sources] == 0)
        place = np.full(len(other), -1)
        place[columns] = np.arange(len(columns))
        begun = place[choices.begun_now]
        hit = np.where(begun < 0, self.hit, now[choices.number, begun])
        return self.count + now.sum(axis=1) - self.steps[:, columns].sum(axis=1), hit


@dataclass(frozen=True, eq=False)
class Noise:
    """How orderly videos are: `levels` of ε, shape (J,), and the share of videos at each of them, shape (J,)."""

    levels: NDArray[np.float64]
    shares: NDArray[np.float64]

    @staticmethod
    def unknown(levels: tuple[float, ...]) -> Noise:
        """Before any video was looked at: all levels alike."""
        return Noise(np.array(levels), np.full(len(levels), 1 / len(levels)))

    def of_videos(self, choices: Choices, count: NDArray[np.int64], hit: NDArray[np.bool_]) -> NDArray[np.float64]:
        """log p of all choices of a video at each level, shape (V, J); `count` and `hit` as in `Eligible`."""
        by_rule = np.where(hit, 1 / np.maximum(count, 1), 0.0)
        chances = by_rule[:, None] * (1 - self.levels) + self.levels / choices.open_count[:, None]
        if not len(chances):
            return np.zeros((0, len(self.levels)))
        return np.add.reduceat(np.log(chances), choices.first, axis=0)

    @property
    def prior(self) -> float:
        """log p of the shares, up to a constant: Dirichlet, worth one video in all."""
        return float(np.log(self.shares).mean())

    def total(self, of_videos: NDArray[np.float64]) -> float:
        """Σ_v log Σ_j share_j · p_j(v), and the prior of the shares."""
        return float(_log_of_sums(of_videos + np.log(self.shares)).sum()) + self.prior

    def posterior(self, of_videos: NDArray[np.float64]) -> NDArray[np.float64]:
        """p(level | video), shape (V, J)."""
        weighed = of_videos + np.log(self.shares)
        return np.asarray(np.exp(weighed - _log_of_sums(weighed)[:, None]))

    def refitted(self, of_videos: NDArray[np.float64], rounds: int = 50) -> Noise:
        """With the shares that are most probable given the videos (EM); `total` never falls."""
        noise = self
        for _ in range(rounds):
            counts = noise.posterior(of_videos).sum(axis=0) + 1 / len(self.levels)
            better = Noise(self.levels, counts / counts.sum())
            done = better.total(of_videos) - noise.total(of_videos) < 1e-6
            noise = better
            if done:
                break
        return noise


def _log_of_sums(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ exp of every row, shape (rows, J) -> (rows,); scipy's own takes longer than all the rest of a score."""
    highest = logs.max(axis=1, initial=-np.inf)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))
