"""What was probably done, where the one who watches may err: hypotheses about the steps done so far, each with its
probability.

A recogniser says q(n), how probably it saw each of N steps end; with what is missing to 1, q(0), nothing was done. It
misses a step with the probability m. With the forecast T(n | h) of the step that comes after what hypothesis h holds,

    nothing was done:                          q(0)
    n was done:                                (1 − m) N q(n) T(n | h) d(n)
    a was missed, then n was done:             m T(a | h) (1 − m) N q(n) T(n | h, a) d(a, n)        (two at most)
    n, done before, was seen again:            N q(n) r / |h|
    n, done before, was done again:            (1 − m) N q(n) T(n | h) d(n)             (where videos do steps again)

The last T of each line is mixed with 5 % of any step, so that what was clearly seen is believed, expected or not.
d is how well the time since the last step fits: longer where a step was missed in between. So later steps reveal those
that nobody reported. m is given, or it is how unsure the recogniser is on average: one that is unsure misses steps, and
takes some for others. Equal hypotheses are merged, and the most probable ones are kept. What is told (`did`) is sure.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from math import exp, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from msg2.assist.contexts import StepIndices, pack_flags
from msg2.assist.following import RunStateTracker
from msg2.assist.forecasting import EndForecaster, fit_end_probability
from msg2.assist.learned_forecaster import LearnedForecaster, fit_forecaster
from msg2.assist.mistakes import Judge, Mistake
from msg2.assist.time_left import TimeLeftModel, WaitingTimes, fit_time_left, fit_waiting_times, times_unknown
from msg2.graph import SubtaskGraph
from msg2.graph.graph_file import NO_TEXTS
from msg2.sequences import FloatArray
from msg2.task import Absent, Segment, Step, Task

MAX_HYPOTHESES = 24
"""That are kept."""
JUDGED_MASS, _MOST_JUDGED = 0.95, 8
"""Mistakes are judged by the most probable hypotheses that have this probability together, so many at most."""
AHEAD_ODDS = 2.0
"""A step that comes before one it needs is probably no mistake where that one is expected next: by so many nats."""
_REPEATED = 0.05
"""r: how probably a step that is reported was done, or reported, before."""
_MOST_AGAIN = 100
"""Times that a step was done again of which a hypothesis knows."""
_MOST_SEEN = 5
"""Of the steps that a report may be about, the most probable ones are considered."""
_MOST_MISSED = 2
"""Steps that may be missed between two reports."""
_MISSED_CANDIDATES = 5
"""Of the steps that may have been missed, the most probable ones are considered."""
_LEAST_WEIGHT = 1e-4
"""Of what is considered."""
_UNSURE, _UNSURE_REPORTS = 0.1, 3.0
"""How unsure a recogniser is, as if it had been so in so many reports."""
_DISORDER = 0.05
"""How often the next step is any step, whatever the forecast expects."""
_ANY_GAP = 0.1
"""How often the time between two steps says nothing."""
_MOST_REMEMBERED = 20_000
"""Forecasts, and judged runs, that are remembered."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What may have been done, as indices of steps in the order in which they ended, and how probably."""

    probability: float
    done: StepIndices = ()
    """Each once, in the order of the first times."""
    starts: tuple[int, ...] = ()
    """For each step, how many of `done` had ended when it began; its own place where nobody said that it began."""
    again: tuple[tuple[int, int], ...] = ()
    """What was done again, and how many of `done` had ended by then; the last `_MOST_AGAIN` times."""
    inferred: frozenset[int] = frozenset()
    """Of `done`, those that nobody reported."""
    last: float | None = None
    """When the last one ended, in seconds."""
    bits: int = 0
    """`done` as a set of bits."""

    @property
    def history(self) -> StepIndices:
        """All that was done, in order, repetitions included."""
        if not self.again:
            return self.done
        parts: list[int] = []
        place = 0
        for step, ended in self.again:
            parts += self.done[place:ended]
            parts.append(step)
            place = max(place, ended)
        return (*parts, *self.done[place:])

    def has(self, step: int) -> bool:
        """Whether a step has been done."""
        return bool(self.bits >> step & 1)

    def add(
        self, step: int, weight: float, at: float | None, missed: StepIndices = (), start: int | None = None
    ) -> Hypothesis:
        """What has been done if these steps were missed, and then this one was done for the first time."""
        done = (*self.done, *missed, step)
        began = len(done) - 1 if start is None else min(start, len(self.done))
        starts = (*self.starts, *range(len(self.done), len(done) - 1), began)
        bits = self.bits | sum(1 << other for other in (*missed, step))
        return Hypothesis(weight, done, starts, self.again, self.inferred.union(missed), at, bits)

    def see_again(self, step: int, weight: float, at: float | None) -> Hypothesis:
        """The same, where a step that has been done was only reported once more."""
        return replace(self, probability=weight, inferred=self.inferred - {step}, last=at)

    def do_again(self, step: int, weight: float, at: float | None) -> Hypothesis:
        """What has been done if a step was done again."""
        again = (*self.again[-_MOST_AGAIN + 1 :], (step, len(self.done)))
        return replace(self.see_again(step, weight, at), again=again)


class _Successor(NamedTuple):
    """What a hypothesis may become, and how probably: a step was done, after others that were missed; or nothing."""

    weight: float
    past: Hypothesis
    step: int | None = None
    missed: StepIndices = ()
    again: bool = False
    """Whether the step was done again; one that has been done was only reported once more otherwise."""

    def key(self) -> tuple[int, int | None, bool]:
        """The steps that are done then, as bits, and the last of them."""
        past, step = self.past, self.step
        if step is None or (past.has(step) and not self.again):
            return past.bits, past.history[-1] if past.done else None, False
        return past.bits | sum(1 << other for other in (*self.missed, step)), step, self.again

    def make(self, at: float | None, start: int | None) -> Hypothesis:
        """The hypothesis that it becomes."""
        if self.step is None:
            return self.past
        if self.again:
            return self.past.do_again(self.step, self.weight, at)
        if self.past.has(self.step):
            return self.past.see_again(self.step, self.weight, at)
        return self.past.add(self.step, self.weight, at, self.missed, start)


@dataclass(frozen=True, slots=True)
class Precedents:
    """What some videos went on with: how many with each step, `of` how many in all."""

    counts: Mapping[Step, int]
    of: int


@dataclass(frozen=True, slots=True)
class StepGaps:
    """The time from the end of one step to the end of the next, log-normal: `mean` and `variance` per step."""

    mean: Sequence[float]
    variance: Sequence[float]
    usual: tuple[float, float]
    """Mean and variance of the logarithm, over all steps."""

    @staticmethod
    def fit(steps: Sequence[Step], videos: Task) -> StepGaps | None:
        """From videos with times; None without."""
        gaps: dict[Step, list[float]] = {}
        for video in videos:
            ends = sorted((s.end, s.step) for s in video.segments if s.end is not None)
            for (earlier, _), (end, name) in pairwise(ends):
                gaps.setdefault(name, []).append(log(max(end - earlier, 0.5)))
        every = np.array([gap for of_step in gaps.values() for gap in of_step])
        if len(every) < 2:
            return None
        centre, spread = float(every.mean()), float(every.var()) + 0.01
        mean, variance = np.empty((2, len(steps)))
        for place, name in enumerate(steps):
            own = np.array(gaps.get(name, []))
            middle = (own.sum() + 2 * centre) / (len(own) + 2)
            wide = (((own - middle) ** 2).sum() + 2 * spread) / (len(own) + 3)
            mean[place] = exp(middle + wide / 2)
            variance[place] = (exp(wide) - 1) * mean[place] ** 2
        return StepGaps(mean.tolist(), variance.tolist(), (centre, spread))

    def fits(self, steps: Sequence[int], gap: float) -> float:
        """d: how much better these steps, one after the other, explain a gap than any step does."""
        mean, variance = sum(self.mean[step] for step in steps), sum(self.variance[step] for step in steps)
        spread = log1p(variance / mean**2)
        seconds, (centre, usual) = log(max(gap, 0.5)), self.usual
        own = exp(-((seconds - log(mean) + spread / 2) ** 2) / (2 * spread)) / sqrt(spread)
        any_step = exp(-((seconds - centre) ** 2) / (2 * usual)) / sqrt(usual)
        return (1 - _ANY_GAP) * own / max(any_step, 1e-3) + _ANY_GAP


@dataclass(frozen=True, slots=True)
class Confusion:
    """What a recogniser makes of what is done: `reported`[n, r] is how often step n, or nothing (last), is reported as
    r, or not at all (last); shape (N + 1, N + 1), rows have the sum 1.
    """

    reported: FloatArray

    def evidence(self, seen: Mapping[int, float]) -> tuple[FloatArray, float]:
        """How well each step explains a report, shape (N,), and how well nothing does."""
        report = np.zeros(len(self.reported))
        report[list(seen)] = list(seen.values())
        report[-1] = max(0.0, 1.0 - sum(seen.values()))
        total = self.reported @ report * (len(report) - 1)
        return np.asarray(total[:-1]), float(total[-1])


@dataclass(frozen=True)
class AssistantModel:
    """What all runs of one assistant share."""

    graph: SubtaskGraph
    videos: Task | None
    absent: Absent
    missed: float | None = None
    confusion: Confusion | None = None
    _forecasts: dict[StepIndices, FloatArray] = field(default_factory=dict, repr=False)
    _judged: dict[object, Mapping[object, Mistake]] = field(default_factory=dict, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @cached_property
    def judge(self) -> Judge:
        """Of runs of this graph."""
        return Judge(self.graph, self.absent)

    @cached_property
    def forecaster(self) -> LearnedForecaster | None:
        """None without videos."""
        return None if self.videos is None else fit_forecaster(self.graph, self.videos)

    @cached_property
    def end_probability(self) -> EndForecaster | None:
        """None without videos."""
        return None if self.videos is None else fit_end_probability(self.graph, self.videos)

    @cached_property
    def times_unknown(self) -> str | None:
        """Why nobody is told how long anything takes; None where the videos tell."""
        if self.videos is None:
            return "it was given no data, only a graph"
        return times_unknown(self.videos, self.graph)

    @cached_property
    def time_left(self) -> TimeLeftModel | None:
        """None without videos whose times are working times."""
        return None if self.videos is None or self.times_unknown else fit_time_left(self.graph, self.videos)

    @cached_property
    def waiting_times(self) -> WaitingTimes | None:
        """None without videos whose times are working times."""
        return None if self.videos is None or self.times_unknown else fit_waiting_times(self.videos)

    @cached_property
    def gaps(self) -> StepGaps | None:
        """None without videos that have times."""
        return None if self.videos is None else StepGaps.fit(self.graph.steps, self.videos)

    @cached_property
    def tracker(self) -> RunStateTracker:
        """Of the graph; the forecaster's own, which has just been asked about the same steps."""
        return RunStateTracker(self.graph) if self.forecaster is None else self.forecaster.extractor.from_graph.tracker

    @cached_property
    def repeated(self) -> frozenset[int]:
        """The steps that some video does again."""
        return frozenset() if self.forecaster is None else self.forecaster.repeated

    def forecasts(self, prefixes: Sequence[StepIndices]) -> list[FloatArray]:
        """T: the probability of each step after each of some beginnings, (N,) each; 0 for what cannot come."""
        with self._lock:  # several runs, each in a thread of its own, may share what they know
            known = self._forecasts
            new = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in known]
            if len(known) + len(new) > _MOST_REMEMBERED:
                known.clear()
                new = list(dict.fromkeys(prefixes))
            if new:
                rows = map(self._by_graph, new) if self.forecaster is None else self.forecaster.after(new)
                known.update(zip(new, rows, strict=True))
            return [known[prefix] for prefix in prefixes]

    def _by_graph(self, prefix: StepIndices) -> FloatArray:
        """Without videos, all steps that the graph allows are alike."""
        state = self.tracker.state_after(self.graph.steps[place] for place in prefix)
        left = np.array([name not in state.completed for name in self.graph.steps])
        if not left.any():
            return np.zeros(len(left))
        allowed = np.array([name in state.eligible for name in self.graph.steps]) & left
        share = (1 - _DISORDER) * allowed / max(allowed.sum(), 1) if allowed.any() else np.zeros(len(left))
        return np.asarray(share + (_DISORDER if allowed.any() else 1.0) * left / left.sum())

    def mistakes(
        self, done: StepIndices, starts: tuple[int, ...], running: StepIndices = ()
    ) -> Mapping[object, Mistake]:
        """The mistakes of a run that goes on, by what causes them."""
        key = (done, starts, running)
        with self._lock:
            if key not in self._judged:
                if len(self._judged) >= _MOST_REMEMBERED:
                    self._judged.clear()
                found = self.judge.judge(self.segments(done, starts, running), ended=False)
                judged = (self._expecting(mistake, done, running) for mistake in found)
                self._judged[key] = {cause: mistake for mistake in judged for cause in causes(mistake)}
            return self._judged[key]

    def repetitions(self, past: Hypothesis) -> Mapping[object, Mistake]:
        """The mistakes of doing steps again, by what was done and when."""
        names = [self.graph.steps[step] for step in past.history]
        times, found = Counter[Step](), dict[object, Mistake]()
        for last, name in zip(["", *names], names, strict=False):
            times[name] += 1
            mistake = self.judge.repeated(name, last) if times[name] > 1 else None
            if mistake is not None:
                found["repeated", name, times[name]] = mistake
        return found

    def _expecting(self, mistake: Mistake, done: StepIndices, running: StepIndices) -> Mistake:
        """A step is late: that is less of a mistake where it was expected just then."""
        if mistake.kind not in ("need", "order") or not 0 < mistake.probability < 1:
            return mistake
        late = {self.graph.index[name] for clause in mistake.unmet for name in clause.steps}
        prefix = (*done, *(step for step in running if step not in done))
        if mistake.kind == "order":
            late = {self.graph.index[mistake.step]}
            prefix = prefix[: prefix.index(self.graph.index[mistake.step])]
        expected = float(self.forecasts([prefix])[0][list(late)].sum())
        odds = mistake.probability / (1 - mistake.probability) * exp(-AHEAD_ODDS * expected)
        return replace(mistake, probability=odds / (1 + odds))

    def segments(
        self,
        done: StepIndices,
        starts: tuple[int, ...],
        running: StepIndices = (),
        again: Sequence[tuple[int, int]] = (),
    ) -> list[Segment]:
        """What was done as segments, whose times are the numbers of steps that had ended for the first time by then."""
        steps = self.graph.steps
        spans: list[tuple[Step, float, float]] = [
            (steps[place], start, end) for end, (place, start) in enumerate(zip(done, starts, strict=True), start=1)
        ]
        spans += [(steps[place], len(done), len(done) + 1) for place in running if place not in done]
        count = Counter(ended for _, ended in again)
        later = Counter[int]()
        for step, ended in again:  # at instants before the next step is done for the first time
            later[ended] += 1
            moment = ended + later[ended] / (count[ended] + 1)
            spans.append((steps[step], moment, moment))
        return [Segment(*span) for span in sorted(spans, key=lambda span: (span[1], span[2]))]

    def precedents(self, done: Sequence[Step]) -> Precedents | None:
        """What the videos went on with that had done the same; None without videos."""
        if self.forecaster is None:
            return None
        past, flags = self.forecaster.extractor.past, np.zeros(len(self.graph.steps), dtype=np.bool_)
        flags[[self.graph.index[name] for name in done]] = True
        chosen = past.chosen[(past.contexts.packed == pack_flags(flags[None])).all(axis=1)]
        return Precedents(Counter(self.graph.steps[place] for place in chosen.tolist()), len(chosen))

    @cached_property
    def fingerprint(self) -> str:
        """Of the graph, whatever its texts: what a saved run is told apart by from those of other graphs."""
        return hashlib.sha256(self.graph.with_texts(NO_TEXTS).dumps().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def causes(mistake: Mistake) -> list[object]:
    """What a mistake is about: pairs (late, early) of steps, whichever of them has come; or the whole of it."""
    if mistake.kind == "need" and all(clause.kinds <= {"step", "any"} for clause in mistake.unmet):
        return [(name, mistake.step) for clause in mistake.unmet for name in sorted(clause.steps)]
    if mistake.kind == "order":
        return [(mistake.step, clause.name) for clause in mistake.unmet]
    return [(mistake.kind, mistake.step, mistake.unmet)]


def _chance_of(step: int, past: Hypothesis, forecast: FloatArray) -> float:
    """How probably somebody tells of a step after a hypothesis."""
    return max(float(forecast[step]), _REPEATED / len(past.done)) if past.has(step) else float(forecast[step])


@dataclass(frozen=True, slots=True)
class Belief:
    """All hypotheses, the most probable first; their probabilities have the sum 1."""

    hypotheses: tuple[Hypothesis, ...] = (Hypothesis(1.0),)
    unsure: float = _UNSURE * _UNSURE_REPORTS
    reports: float = _UNSURE_REPORTS

    @property
    def best(self) -> Hypothesis:
        """The most probable hypothesis."""
        return self.hypotheses[0]

    def told(self, step: int, at: float | None, model: AssistantModel, start: int | None = None) -> Belief:
        """Take in that a step was done, for certain: what it is expected after becomes more probable."""
        if len(self.hypotheses) == 1:
            return self._keep([_Successor(1.0, self.best, step, again=self.best.has(step))], at, start)
        forecasts = model.forecasts([each.history for each in self.hypotheses])
        outcomes = [
            _Successor(each.probability * _chance_of(step, each, forecast), each, step, again=each.has(step))
            for each, forecast in zip(self.hypotheses, forecasts, strict=True)
        ]
        return self._keep(outcomes, at, start)

    def after(self, seen: Mapping[int, float], at: float | None, model: AssistantModel) -> Belief:
        """Take in what a recogniser reported."""
        nothing = max(0.0, 1.0 - sum(seen.values()))
        surest = max([nothing, *seen.values()])
        belief = replace(self, unsure=self.unsure + 1 - surest, reports=self.reports + 1)
        missed_rate = belief.unsure / belief.reports if model.missed is None else model.missed
        size, evidence = len(model.graph.steps), dict[int, float]()
        if model.confusion is None:
            likely = sorted(seen, key=lambda step: (-seen[step], step))[:_MOST_SEEN]
            evidence = {step: size * seen[step] for step in likely}
        else:
            explained, nothing = model.confusion.evidence(seen)
            evidence = {step: float(explained[step]) for step in np.argsort(-explained)[:_MOST_SEEN].tolist()}
        paths: list[tuple[Hypothesis, StepIndices, float]] = [(each, (), each.probability) for each in self.hypotheses]
        longest = paths
        for _ in range(_MOST_MISSED):
            forecasts = model.forecasts([(*each.history, *missed) for each, missed, _ in longest])
            longest = [
                (each, (*missed, step), weight * missed_rate * float(forecast[step]))
                for (each, missed, weight), forecast in zip(longest, forecasts, strict=True)
                for step in np.argsort(-forecast)[:_MISSED_CANDIDATES].tolist()
                if weight * missed_rate * forecast[step] > _LEAST_WEIGHT and not each.has(step) and step not in missed
            ]
            paths = [*paths, *longest]
        outcomes = [_Successor(each.probability * nothing, each) for each in self.hypotheses if nothing > 0]
        forecasts = model.forecasts([(*each.history, *missed) for each, missed, _ in paths])
        gap_fits = None if model.gaps is None else cache(model.gaps.fits)  # most hypotheses ask the same
        for (each, missed, weight), forecast in zip(paths, forecasts, strict=True):
            gap = None if at is None or each.last is None else at - each.last
            for step, share in evidence.items():
                if step in missed or (each.has(step) and missed):
                    continue
                fits = 1.0 if gap is None or gap_fits is None else gap_fits((*missed, step), gap)
                done = weight * (1 - missed_rate) * share * fits
                if each.has(step):
                    outcomes.append(_Successor(weight * share * _REPEATED / len(each.done), each, step))
                    outcomes.append(_Successor(done * float(forecast[step]), each, step, again=True))
                else:
                    # Anybody may do something else than expected: what was clearly seen is believed.
                    chance = (1 - _DISORDER) * float(forecast[step]) + _DISORDER / (size - len(each.done) - len(missed))
                    outcomes.append(_Successor(done * chance, each, step, missed))
        return belief._keep(outcomes, at)

    def _keep(self, outcomes: Iterable[_Successor], at: float | None, start: int | None = None) -> Belief:
        """Merge outcomes in which the same is done, with the same step last, and keep the most probable ones."""
        likeliest: dict[object, _Successor] = {}
        weights: dict[object, float] = {}
        for outcome in outcomes:
            key = outcome.key()
            weights[key] = weights.get(key, 0.0) + outcome.weight
            if key not in likeliest or outcome.weight > likeliest[key].weight:
                likeliest[key] = outcome
        # Of equally probable ones, the order is that of what was done, whichever way it was found.
        highest = sorted(likeliest, key=lambda key: -weights[key])[: 2 * MAX_HYPOTHESES]
        made = [(weights[key], likeliest[key].make(at, start)) for key in highest]
        kept = sorted(made, key=lambda each: (-each[0], each[1].done))[:MAX_HYPOTHESES]
        total = sum(weight for weight, _ in kept)
        if not total:
            return self
        return replace(self, hypotheses=tuple(replace(each, probability=weight / total) for weight, each in kept))

    def mistakes(self, model: AssistantModel, running: StepIndices = ()) -> dict[object, tuple[float, Mistake]]:
        """By cause, how probably each mistake was made, and the mistake where it is surest."""
        found: dict[object, tuple[float, Mistake]] = {}
        mass = 0.0
        for each in self.hypotheses[:_MOST_JUDGED]:
            mistakes = model.mistakes(each.done, each.starts, running)
            if each.again:
                mistakes = {**mistakes, **model.repetitions(each)}
            for cause, mistake in mistakes.items():
                probability, surest = found.get(cause, (0.0, mistake))
                best = max(surest, mistake, key=lambda judged: judged.probability)
                found[cause] = probability + each.probability * mistake.probability, best
            mass += each.probability
            if mass >= JUDGED_MASS:
                break
        return {cause: (min(probability / mass, 1.0), mistake) for cause, (probability, mistake) in found.items()}

    def shares(self, inferred: bool = False) -> dict[int, float]:
        """How probably each step has been done; with `inferred`, although nobody reported it."""
        shares: dict[int, float] = {}
        for each in self.hypotheses:
            for step in each.inferred if inferred else each.done:
                shares[step] = shares.get(step, 0.0) + each.probability
        return {step: min(share, 1.0) for step, share in shares.items()}
