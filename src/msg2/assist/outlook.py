"""Further ahead than the next step: what comes within k steps, whether anything comes at all, and when.

With any ranker p, the chance that step n comes within k steps is the sum over the places j ≤ k of

    P(n at place j) = Σ_path p(path) · (1 − p_end(done + path)) · p(n | done + path),   |path| = j − 1

over the most probable paths of each length (a beam); where the beam holds all of them, it is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from msg2.assist.choice import Choices, Moments, best_penalty, fitted, penalties
from msg2.assist.forecast import folded, places, thinned
from msg2.assist.next_step import Ranker
from msg2.assist.situations import Places, situations
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.options import ForecastOptions
from msg2.task import Segment, Step, Task

Ending: TypeAlias = Callable[[Sequence[Step]], float]
"""From the steps done so far, in order, to the probability that no other step comes."""
Waiting: TypeAlias = Callable[[Step | None, Step], "Wait | None"]
"""From the last step (None: none yet) and the next one to the time in between; None where times are not known."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds from the end of the last step (or the start of the video) to the start of the next.

    Their median, the quantiles `low` and `high`, and the number of `gaps` that were seen.
    """

    median: float
    low: float
    high: float
    gaps: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """What comes within `horizon` steps.

    `within` is the probability of each step that is left, the most probable first; `ends` that fewer steps come (and
    not all are done); `path` the most probable next steps, in order, if so many come; `likely` how probable they then
    are.
    """

    horizon: int
    within: dict[Step, float]
    ends: float
    path: tuple[Step, ...]
    likely: float


def outlook(
    ranker: Ranker,
    done: Sequence[Step],
    horizon: int,
    ending: Ending | None = None,
    options: ForecastOptions | None = None,
) -> Outlook:
    """The next `horizon` steps after `done`; without `ending`, steps come until all are done.

    >>> def evenly(done):
    ...     left = [name for name in "abc" if name not in done]
    ...     return dict.fromkeys(left, 1 / max(len(left), 1))
    >>> outlook(evenly, ["a"], 2).within
    {'b': 1.0, 'c': 1.0}
    """
    if horizon < 1:
        raise InputError(f"horizon is {horizon}, it must be 1 or more")
    beam = (options or ForecastOptions()).beam
    within: defaultdict[Step, float] = defaultdict(float)
    alive: list[_Path] = [_Path((), 1.0, 1.0)]
    for _ in range(horizon):
        grown = []
        for path in alive:
            seen = (*done, *path.steps)
            goes_on = 1.0 if ending is None else 1.0 - ending(seen)
            for name, chance in ranker(seen).items():
                within[name] += path.weight * goes_on * chance
                grown.append(_Path((*path.steps, name), path.weight * goes_on * chance, path.likely * chance))
        if not grown:  # all steps are done
            break
        alive = _strongest(grown, beam)
    best = min(alive, key=lambda path: (-round(path.likely, 9), path.steps))
    ranked = dict(sorted(within.items(), key=lambda item: -item[1]))
    return Outlook(horizon, ranked, max(0.0, 1.0 - sum(path.weight for path in alive)), best.steps, best.likely)


@dataclass(frozen=True, slots=True)
class _Path:
    """Steps ahead; `weight` is their probability, `likely` the one they have if as many steps come."""

    steps: tuple[Step, ...]
    weight: float
    likely: float


def _strongest(paths: Sequence[_Path], beam: int) -> list[_Path]:
    """The most probable paths, with the weight of all."""
    if len(paths) <= beam:
        return list(paths)
    kept = sorted(paths, key=lambda path: (-path.weight, path.steps))[:beam]
    scale = sum(path.weight for path in paths) / max(sum(path.weight for path in kept), np.finfo(float).tiny)
    return [_Path(path.steps, path.weight * scale, path.likely) for path in kept]


def endings(graph: SubtaskGraph, task: Task, options: ForecastOptions | None = None) -> Ending:
    """Learnt from the videos of `task`: whether what was done so far was all there was.

    A logistic regression on what was done, what was done last and how long ago; the penalty is chosen on held-out
    videos. Before the first step nothing ends.
    """
    options = options or ForecastOptions()
    shown = [places(video.sequence(), graph) for video in task if video.segments]
    sequences = thinned(shown, options.most_videos)
    trials = (
        (_ends(others, graph), _ends(held_out, graph))
        for held_out, others in folded(sequences, options.folds)
        if len(sequences) > 1
    )
    none = np.zeros(0)
    penalty = best_penalty(trials, none, penalties(options.term_penalties, options.weight_penalties))
    model = fitted(_ends(sequences, graph), penalty, none)

    def ends(done: Sequence[Step]) -> float:
        prefix = places(done, graph)
        if not prefix or not sequences:
            return 0.0
        return float(np.exp(model.log_probabilities(_at_the_end([prefix], graph))[0, 1]))

    return ends


def _ends(sequences: Sequence[Places], graph: SubtaskGraph) -> Choices:
    """After every step but the last nothing ended (candidate 0), after the last one it did (candidate 1)."""
    prefixes = [sequence[: place + 1] for sequence in sequences for place in range(len(sequence))]
    came = [place + 1 == len(sequence) for sequence in sequences for place in range(len(sequence))]
    return Choices(_at_the_end(prefixes, graph), np.array(came, dtype=np.intp))


def _at_the_end(prefixes: Sequence[Places], graph: SubtaskGraph) -> Moments:
    context = situations(prefixes, len(graph.steps)).context
    return Moments(context, np.zeros((len(prefixes), 2, 0)), np.ones((len(prefixes), 2), dtype=np.bool_))


def waiting(task: Task, options: ForecastOptions | None = None) -> Waiting:
    """The time between two steps, as the videos of `task` have it.

    Pairs that were seen often enough speak for themselves; else all gaps after the last step do, else all there are.
    A step that starts before the last one ends is waited for 0 seconds.

    >>> from msg2.task import Video
    >>> task = Task("t", "ab", [Video("v", [Segment("a", 1, 2), Segment("b", 5, 6)])])
    >>> waiting(task, ForecastOptions(gaps=1))("a", "b")
    Wait(median=3.0, low=3.0, high=3.0, gaps=1)
    """
    options = options or ForecastOptions()
    gaps: defaultdict[tuple[Step | None, Step] | Step | None, list[float]] = defaultdict(list)
    everywhere: list[float] = []
    for video in task:
        for last, following, seconds in _gaps(video.with_first_labels().segments):
            gaps[last, following].append(seconds)
            gaps[last].append(seconds)
            everywhere.append(seconds)

    def wait(last: Step | None, following: Step) -> Wait | None:
        for found in (gaps.get((last, following), []), gaps.get(last, [])):
            if len(found) >= options.gaps:
                return _wait(found, options)
        return _wait(everywhere, options) if everywhere else None

    return wait


def _gaps(segments: Iterable[Segment]) -> Iterable[tuple[Step | None, Step, float]]:
    last: Step | None = None
    until = 0.0
    for segment in segments:
        if segment.start is None or segment.end is None:
            return
        yield last, segment.step, max(0.0, segment.start - until)
        last, until = segment.step, segment.end


def _wait(seconds: Sequence[float], options: ForecastOptions) -> Wait:
    # By this rule the next gap is in the interval as often as it says, also after few of them.
    median, low, high = np.quantile(seconds, [0.5, *options.interval], method="weibull").tolist()
    return Wait(median, low, high, len(seconds))
