"""The part that steps play in a task, from which of them occur together: optional ones, and interchangeable ones.

Optional: many videos do without it, and no precondition speaks of it. Interchangeable: nearly every video with any of
them has exactly one, which chance does not explain (Fisher's exact test of each pair, one-sided).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import SubtaskGraph
from msg2.options import RoleOptions
from msg2.task import Step, Task


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


def optional_steps(task: Task, graph: SubtaskGraph, options: RoleOptions | None = None) -> list[Optional]:
    """The steps that are often left out and that no step needs, by name; those that no video shows are none of them.

    >>> from msg2.task import Segment, Video
    >>> task = Task("tea", ["boil", "pour", "stir"], [
    ...     Video("1", map(Segment, ["boil", "pour"])), Video("2", map(Segment, ["boil", "pour", "stir"]))])
    >>> optional_steps(task, SubtaskGraph("tea", task.steps, {}))
    [Optional(step='stir', without=1, videos=2)]
    """
    options = options or RoleOptions()
    shown = _shown(task)
    needed = {parent for parent, _ in graph.edges()}
    counts = zip(task.steps, shown.sum(axis=0).tolist(), strict=True)
    return [
        Optional(name, len(shown) - seen, len(shown))
        for name, seen in counts
        if name not in needed and 0 < seen < len(shown) and len(shown) - seen >= options.left_out * len(shown)
    ]


def interchangeable(task: Task, options: RoleOptions | None = None) -> list[Interchangeable]:
    """Groups of steps that take each other's place, as large as can be; a step is in one group at most.

    >>> from msg2.task import Segment, Video
    >>> videos = [Video(str(n), map(Segment, ["grind" if n % 2 else "open", "pour"])) for n in range(20)]
    >>> [group.steps for group in interchangeable(Task("coffee", ["grind", "open", "pour"], videos))]
    [('grind', 'open')]
    """
    options = options or RoleOptions()
    shown = _shown(task)
    size = len(task.steps)
    pairs = {
        (a, b): chance
        for a, b in combinations(range(size), 2)
        if _exactly_one(shown[:, [a, b]]) >= options.exactly_one
        and (chance := _chance(shown[:, a], shown[:, b])) * size * (size - 1) / 2 <= options.significance
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
    return [_described(task, shown, sorted(group), pairs) for group in sorted(groups, key=min)]


def _described(
    task: Task, shown: NDArray[np.bool_], group: list[int], pairs: dict[tuple[int, int], float]
) -> Interchangeable:
    counts = shown[:, group].sum(axis=1)
    weakest = max(pairs[pair] for pair in combinations(group, 2))
    names = tuple(task.steps[index] for index in group)
    return Interchangeable(names, int((counts == 1).sum()), int((counts > 1).sum()), weakest)


def _shown(task: Task) -> NDArray[np.bool_]:
    """Which steps the labelled videos show, shape (videos, steps)."""
    shown = np.isfinite(Evidence.of(task).ended)
    return np.asarray(shown[shown.any(axis=1)])


def _exactly_one(shown: NDArray[np.bool_]) -> float:
    """Of the videos with any of the steps, shape (videos, steps), the share with exactly one; 0 where none has any."""
    counts = shown.sum(axis=1)
    return float((counts == 1).sum() / max(1, (counts > 0).sum()))


def _chance(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """That two unrelated steps, in as many videos each, would share no more videos than these do."""
    from scipy.stats import hypergeom  # takes a second to import

    return float(hypergeom.cdf((one & other).sum(), len(one), one.sum(), other.sum()))
