"""The part that steps play in a task, from which of them occur together: optional ones, and interchangeable ones.

Optional: more videos do without it than labels usually lack a step, and no precondition speaks of it. Interchangeable:
nearly every video with any of them has exactly one, which chance does not explain (Fisher's exact test of each pair,
one-sided). They stand in the evidence of a graph, under `optional` and `instead`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import SubtaskGraph
from msg2.inference.alternatives import left_out, log_factorials
from msg2.options import RoleOptions
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class Optional:
    """A step that `without` of the `videos` lack."""

    step: Step
    without: int
    videos: int


@dataclass(frozen=True, slots=True)
class Interchangeable:
    """Steps of which `one` videos show exactly one and `several` more; `chance` (p) is that of the weakest pair."""

    steps: tuple[Step, ...]
    one: int
    several: int
    chance: float


def with_roles(
    entries: Mapping[Step, Mapping[str, Any]], evidence: Evidence, graph: SubtaskGraph
) -> dict[Step, dict[str, Any]]:
    """The entries of a graph file's evidence, with the part that each step plays."""
    found = {name: dict(entry) for name, entry in entries.items()}
    for one in optional_steps(evidence, graph):
        found[one.step]["optional"] = {"without": one.without, "videos": one.videos}
    for group in interchangeable(evidence):
        for name in group.steps:
            found[name]["instead"] = [other for other in group.steps if other != name]
    return found


def optional_steps(evidence: Evidence, graph: SubtaskGraph, options: RoleOptions | None = None) -> list[Optional]:
    """The steps that are left out more often than others and that no step needs, by name; not those never shown.

    What labels usually lack is told by the half of the steps that they lack least; more than that must not be chance
    (binomial test, one-sided).

    >>> from msg2.task import Segment, Task, Video
    >>> videos = [Video(str(n), map(Segment, ["boil", "pour", "stir"][: 2 + n % 2])) for n in range(20)]
    >>> task = Task("tea", ["boil", "pour", "stir"], videos)
    >>> optional_steps(Evidence.of(task), SubtaskGraph("tea", task.steps, {}))
    [Optional(step='stir', without=10, videos=20)]
    """
    options = options or RoleOptions()
    shown = _shown(evidence)
    videos, needed = len(shown), {parent for parent, _ in graph.edges()}
    usual = left_out(shown)
    counts = zip(evidence.steps, (~shown).sum(axis=0).tolist(), strict=True)
    return [
        Optional(name, without, videos)
        for name, without in counts
        if name not in needed
        and without < videos
        and _as_many(without, videos, usual) * len(evidence.steps) <= options.significance
    ]


def interchangeable(evidence: Evidence, options: RoleOptions | None = None) -> list[Interchangeable]:
    """Groups of steps that take each other's place, as large as can be; a step is in one group at most.

    >>> from msg2.task import Segment, Task, Video
    >>> videos = [Video(str(n), map(Segment, ["grind" if n % 2 else "open", "pour"])) for n in range(20)]
    >>> task = Task("coffee", ["grind", "open", "pour"], videos)
    >>> [group.steps for group in interchangeable(Evidence.of(task))]
    [('grind', 'open')]
    """
    options = options or RoleOptions()
    shown = _shown(evidence)
    size = len(evidence.steps)
    both = shown.astype(np.float32).T @ shown.astype(np.float32)
    either = both.diagonal()[:, None] + both.diagonal() - both
    apart = np.triu(either - both >= options.exactly_one * np.maximum(either, 1), k=1)
    pairs = {
        (a, b): chance
        for a, b in np.argwhere(apart).tolist()
        if (chance := _chance(shown[:, a], shown[:, b])) * size * (size - 1) / 2 <= options.significance
    }
    groups: list[set[int]] = []
    for a, b in sorted(pairs, key=lambda pair: (pairs[pair], pair)):  # the clearest first
        if any(a in group and b in group for group in groups):
            continue
        mine = [next((group for group in groups if one in group), {one}) for one in (a, b)]
        joined = mine[0] | mine[1]
        fits = all((x, y) in pairs for x, y in combinations(sorted(joined), 2))
        if fits and _exactly_one(shown[:, sorted(joined)]) >= options.exactly_one:
            groups = [group for group in groups if group not in mine] + [joined]
    return [_described(evidence.steps, shown, sorted(group), pairs) for group in sorted(groups, key=min)]


def _described(
    steps: Sequence[Step], shown: NDArray[np.bool_], group: list[int], pairs: Mapping[tuple[int, int], float]
) -> Interchangeable:
    counts = shown[:, group].sum(axis=1)
    weakest = max(pairs[pair] for pair in combinations(group, 2))
    names = tuple(steps[index] for index in group)
    return Interchangeable(names, int((counts == 1).sum()), int((counts > 1).sum()), weakest)


def _shown(evidence: Evidence) -> NDArray[np.bool_]:
    """Which steps the labelled videos show, shape (videos, steps)."""
    shown = np.isfinite(evidence.ended)
    return np.asarray(shown[shown.any(axis=1)])


def _exactly_one(shown: NDArray[np.bool_]) -> float:
    """Of the videos with any of the steps, shape (videos, steps), the share with exactly one; 0 where none has any."""
    counts = shown.sum(axis=1)
    return float((counts == 1).sum() / max(1, (counts > 0).sum()))


def _as_many(without: int, videos: int, rate: float) -> float:
    """The chance that as many of the videos, or more, lack a step, each at this rate (binomial)."""
    logs, lacking = log_factorials(videos), np.arange(without, videos + 1)
    ways = logs[videos] - logs[lacking] - logs[videos - lacking]
    return float(np.exp(ways + lacking * np.log(rate) + (videos - lacking) * np.log1p(-rate)).sum())


def _chance(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """That two unrelated steps, in as many videos each, would share no more videos than these do (hypergeometric)."""
    logs, videos, ours, theirs = log_factorials(len(one)), len(one), int(one.sum()), int(other.sum())
    shared = np.arange(max(0, ours + theirs - videos), int((one & other).sum()) + 1)
    ways = logs[ours] - logs[shared] - logs[ours - shared]
    ways += logs[videos - ours] - logs[theirs - shared] - logs[videos - ours - theirs + shared]
    return float(np.exp(ways - logs[videos] + logs[theirs] + logs[videos - theirs]).sum())
