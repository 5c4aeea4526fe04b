"""The part that steps play in a task, from which of them occur together: optional ones, and interchangeable ones.

Optional: more videos do without it than labels usually lack a step, and no precondition speaks of it. Interchangeable:
nearly every video with any of them has exactly one, which chance does not explain (Fisher's exact test of each pair,
one-sided). They stand in the evidence of a graph, under `optional` and `instead`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.graph import SubtaskGraph
from msg2.inference.likelihood.presence_disjunctions import log_factorials
from msg2.sequences import Sequences
from msg2.task import Step

EXACTLY_ONE = 0.9
"""Share of the videos with any of the interchangeable steps that show exactly one of them, at least."""
SIGNIFICANCE = 0.01
"""Chance, over all steps of a task (Bonferroni), to call a step optional; over all pairs, interchangeable."""


@dataclass(frozen=True, slots=True)
class OptionalStep:
    """A step that `without` of the `videos` lack."""

    step: Step
    without: int
    videos: int


def add_step_roles(
    entries: Mapping[Step, Mapping[str, Any]], sequences: Sequences, graph: SubtaskGraph
) -> dict[Step, dict[str, Any]]:
    """Add to the evidence of a graph which steps are optional or interchangeable."""
    found = {name: dict(entry) for name, entry in entries.items()}
    for one in optional_steps(sequences, graph):
        found[one.step]["optional"] = {"without": one.without, "videos": one.videos}
    for group in interchangeable_steps(sequences):
        for name in group:
            found[name]["instead"] = [other for other in group if other != name]
    return found


def optional_steps(sequences: Sequences, graph: SubtaskGraph) -> list[OptionalStep]:
    """Find the steps that are left out more often than others and that no step needs.

    What labels usually lack is told by the half of the steps that they lack least; more than that must not be chance
    (binomial test, one-sided).
    """
    shown = _step_presence(sequences)
    videos, needed = len(shown), {parent for parent, _ in graph.edge_pairs()}
    usual = _omission_rate(shown)
    counts = zip(sequences.steps, (~shown).sum(axis=0).tolist(), strict=True)
    return [
        OptionalStep(name, without, videos)
        for name, without in counts
        if name not in needed
        and without < videos
        and _binomial_tail(without, videos, usual) * len(sequences.steps) <= SIGNIFICANCE
    ]


def interchangeable_steps(sequences: Sequences) -> list[tuple[Step, ...]]:
    """Groups of steps that take each other's place, as large as can be; a step is in one group at most.

    >>> from msg2.task import Segment, Task, Video
    >>> videos = [Video(str(n), map(Segment, ["grind" if n % 2 else "open", "pour"])) for n in range(20)]
    >>> task = Task("coffee", ["grind", "open", "pour"], videos)
    >>> interchangeable_steps(Sequences.from_task(task))
    [('grind', 'open')]
    """
    shown = _step_presence(sequences)
    size = len(sequences.steps)
    both = shown.astype(np.float32).T @ shown.astype(np.float32)
    either = both.diagonal()[:, None] + both.diagonal() - both
    apart = np.triu(either - both >= EXACTLY_ONE * np.maximum(either, 1), k=1)
    pairs = {
        (a, b): chance
        for a, b in np.argwhere(apart).tolist()
        if (chance := _hypergeometric_tail(shown[:, a], shown[:, b])) * size * (size - 1) / 2 <= SIGNIFICANCE
    }
    groups: list[set[int]] = []
    for a, b in sorted(pairs, key=lambda pair: (pairs[pair], pair)):  # the clearest first
        if any(a in group and b in group for group in groups):
            continue
        mine = [next((group for group in groups if one in group), {one}) for one in (a, b)]
        joined = mine[0] | mine[1]
        fits = all((x, y) in pairs for x, y in combinations(sorted(joined), 2))
        if fits and _share_with_exactly_one(shown[:, sorted(joined)]) >= EXACTLY_ONE:
            groups = [group for group in groups if group not in mine] + [joined]
    return [tuple(sequences.steps[index] for index in sorted(group)) for group in sorted(groups, key=min)]


def _step_presence(sequences: Sequences) -> NDArray[np.bool_]:
    """Which steps the labelled videos show, shape (videos, steps)."""
    shown = sequences.shown
    return np.repeat(shown, np.where(shown.any(axis=1), sequences.weight, 0), axis=0)


def _share_with_exactly_one(shown: NDArray[np.bool_]) -> float:
    """Of the videos with any of the steps, shape (videos, steps), the share with exactly one; 0 where none has any."""
    counts = shown.sum(axis=1)
    return float((counts == 1).sum() / max(1, (counts > 0).sum()))


def _binomial_tail(without: int, videos: int, rate: float) -> float:
    """The chance that as many of the videos, or more, lack a step, each at this rate (binomial)."""
    logs, lacking = log_factorials(videos), np.arange(without, videos + 1)
    ways = logs[videos] - logs[lacking] - logs[videos - lacking]
    return float(np.exp(ways + lacking * np.log(rate) + (videos - lacking) * np.log1p(-rate)).sum())


def _hypergeometric_tail(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """That two unrelated steps, in as many videos each, would share no more videos than these do (hypergeometric)."""
    logs, videos, ours, theirs = log_factorials(len(one)), len(one), int(one.sum()), int(other.sum())
    shared = np.arange(max(0, ours + theirs - videos), int((one & other).sum()) + 1)
    ways = logs[ours] - logs[shared] - logs[ours - shared]
    ways += logs[videos - ours] - logs[theirs - shared] - logs[videos - ours - theirs + shared]
    return float(np.exp(ways - logs[videos] + logs[theirs] + logs[videos - theirs]).sum())


def _omission_rate(shown: NDArray[np.bool_]) -> float:
    """The rate at which videos lack steps that they need: by the half of the steps that are there most often.

    `shown` (videos, steps) says which of them a video shows.
    """
    absent = np.sort((~shown).sum(axis=0))
    usual = absent[: max(1, len(absent) // 2)]
    return float((usual.sum() + 1) / (len(usual) * len(shown) + 10))
