"""What an assistant knows: what it has learned, and hypotheses about what was done, each with its probability.

A recogniser says q(n), how probably it saw each step n; with what is missing to Q = Σ q = 1, nothing was done. That
something was done is believed as it is told. Which hypothesis h about what was done before is right depends on how well
its forecast p(n | h) of the L steps that are left explains what was seen; which of several steps it was, half on that:

    w(h) ∝ w(h) (1 − Q + Σ_n q(n) L p(n | h))
    p(nothing | h) = 1 − Q            p(n | h, seen) = Q q(n) (1 + L p(n | h)) / Σ_m q(m) (1 + L p(m | h))

A forecast that knows nothing (p = 1 / L) leaves what was seen as it is. The 1 is for those who err: a mistake, which
nobody expects, is taken for another step only where that was seen about as well. Equal hypotheses are merged, and the
most probable ones are kept.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from msg2.assist.following import RunStateTracker
from msg2.assist.forecasting import EndForecaster, fit_end_probability
from msg2.assist.learned_forecaster import LearnedForecaster, fit_forecaster
from msg2.assist.monitoring import OnlineMonitor, StepAssessment, fit_monitor
from msg2.assist.rule_probabilities import EvidenceProbabilities
from msg2.assist.time_left import TimeLeftModel, WaitingTimes, fit_time_left, fit_waiting_times
from msg2.graph import SubtaskGraph
from msg2.task import Absent, Step, Task

MAX_HYPOTHESES = 32
"""That are kept."""
_REPEATED = 0.05
"""L p(n | h) of a step that is done already: seldom is anything done again."""
_LEAST = 1e-9
"""A hypothesis explains what was seen at least so well."""

Forecast: TypeAlias = Callable[[Sequence[Step]], Mapping[Step, float]]
"""From the steps done so far, in order, to the probability of each step that is left."""


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """What may have been done, and how probably."""

    probability: float
    done: tuple[Step, ...]  # in order, each step once, mistakes included
    monitor: OnlineMonitor  # stands where the hypothesis does
    assessment: StepAssessment | None = None  # of the last step; None where nothing was done last

    @property
    def progress(self) -> tuple[Step, ...]:
        """What is done and counts: the mistakes left out."""
        rejected = self.monitor.run.rejected
        return tuple(name for name in self.done if name not in rejected) if rejected else self.done

    def after(self, name: Step) -> Hypothesis:
        """What may have been done if this step came now."""
        monitor = self.monitor.copy()
        assessment = monitor.step(name)
        if assessment.mistake:
            monitor.reject(assessment)
        # What is done again, rightly this time, is done now.
        earlier = tuple(step for step in self.done if step != name) if name in assessment.corrects else self.done
        done = earlier if name in earlier else (*earlier, name)
        return Hypothesis(self.probability, done, monitor, assessment)

    def accept(self, name: Step) -> Hypothesis:
        """What has been done if this step is, rightly, whether it came or not."""
        monitor = self.monitor.copy()
        monitor.run.accept(name)
        return replace(self, done=self.done if name in self.done else (*self.done, name), monitor=monitor)


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """All hypotheses, the most probable first; their probabilities have the sum 1."""

    hypotheses: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        """The most probable hypothesis."""
        return self.hypotheses[0]

    def after(self, seen: Mapping[Step, float], forecast: Forecast) -> Belief:
        """Take in what was seen."""
        nothing, merged = max(0.0, 1.0 - sum(seen.values())), dict[object, Hypothesis]()
        if len(self.hypotheses) == 1 and len(seen) == 1 and nothing == 0:
            return Belief((self.best.after(*seen),))
        for hypothesis in self.hypotheses:
            expected = forecast(hypothesis.progress)
            ratios = {name: len(expected) * expected[name] if name in expected else _REPEATED for name in seen}
            explained = nothing + sum(fit * ratios[name] for name, fit in seen.items())
            weight = hypothesis.probability * max(explained, _LEAST)
            outcomes = [replace(hypothesis, probability=weight * nothing, assessment=None)]
            fits = {name: fit * (1 + ratios[name]) for name, fit in seen.items()}
            share = weight * (1 - nothing) / sum(fits.values())
            outcomes += [replace(hypothesis.after(name), probability=share * fit) for name, fit in fits.items()]
            for outcome in outcomes:
                if outcome.probability > 0:
                    key = (outcome.done, outcome.monitor.run.rejected)
                    same = merged.get(key, outcome)
                    total = outcome.probability if same is outcome else same.probability + outcome.probability
                    heavier = max(same, outcome, key=lambda each: each.probability)
                    merged[key] = replace(heavier, probability=total)
        kept = sorted(merged.values(), key=lambda each: (-each.probability, each.done))[:MAX_HYPOTHESES]
        total = sum(hypothesis.probability for hypothesis in kept)
        return Belief(tuple(replace(hypothesis, probability=hypothesis.probability / total) for hypothesis in kept))

    def probability_done(self) -> dict[Step, float]:
        """How probably each step has been done; those that nobody saw are not in it."""
        shares: dict[Step, float] = {}
        for hypothesis in self.hypotheses:
            for name in hypothesis.done:
                shares[name] = shares.get(name, 0.0) + hypothesis.probability
        return {name: min(share, 1.0) for name, share in shares.items()}


_DISORDER = 0.05
"""How often the next step is one that the graph does not allow, where no data say it."""


@dataclass(frozen=True, slots=True)
class Precedents:
    """What some videos went on with: how many with each step, `of` how many in all."""

    counts: Mapping[Step, int]
    of: int


@dataclass(frozen=True)
class AssistantModel:
    """What all runs of one assistant share."""

    graph: SubtaskGraph
    videos: Task | None
    threshold: float
    absent: Absent

    @cached_property
    def monitor(self) -> OnlineMonitor:
        """Of a run at its start."""
        return fit_monitor(self.graph, self.videos, self.threshold, self.absent)

    @cached_property
    def forecaster(self) -> LearnedForecaster | None:
        """None without videos."""
        return None if self.videos is None else fit_forecaster(self.graph, self.videos)

    @cached_property
    def end_probability(self) -> EndForecaster | None:
        """None without videos."""
        return None if self.videos is None else fit_end_probability(self.graph, self.videos)

    @cached_property
    def time_left(self) -> TimeLeftModel | None:
        """None without videos that have times."""
        return None if self.videos is None else fit_time_left(self.graph, self.videos)

    @cached_property
    def waiting_times(self) -> WaitingTimes | None:
        """None without videos."""
        return None if self.videos is None else fit_waiting_times(self.videos)

    @cached_property
    def rules(self) -> EvidenceProbabilities:
        """How probably it is a mistake to leave out a step."""
        return EvidenceProbabilities(self.graph)

    @cached_property
    def tracker(self) -> RunStateTracker:
        """Of the graph; the forecaster's own, which has just been asked about the same steps."""
        return RunStateTracker(self.graph) if self.forecaster is None else self.forecaster.extractor.from_graph.tracker

    def forecast(self, done: Sequence[Step]) -> Mapping[Step, float]:
        """The probability of each step that is left; without videos, alike for all that the graph allows."""
        if self.forecaster is not None:
            return self.forecaster(done)
        state = self.tracker.state_after(done)
        left = [name for name in self.graph.steps if name not in state.completed]
        allowed = state.eligible - state.completed
        share = (1 - _DISORDER) / len(allowed) if allowed else 0.0
        other = (_DISORDER if allowed else 1.0) / max(len(left), 1)
        return {name: other + (share if name in allowed else 0.0) for name in left}

    def precedents(self, done: Sequence[Step]) -> Precedents | None:
        """What the videos went on with that had done the same; None without videos."""
        if self.forecaster is None:
            return None
        past, flags = self.forecaster.extractor.past, np.zeros(len(self.graph.steps), dtype=np.bool_)
        flags[[self.index[name] for name in done]] = True
        chosen = past.chosen[(past.contexts.packed == np.packbits(flags)).all(axis=1)]
        return Precedents(Counter(self.graph.steps[index] for index in chosen.tolist()), len(chosen))

    @cached_property
    def index(self) -> Mapping[Step, int]:
        """The index of each step in the graph."""
        return {name: index for index, name in enumerate(self.graph.steps)}

    @cached_property
    def fingerprint(self) -> str:
        """Of the graph: what a saved run is told apart by from those of other graphs."""
        return hashlib.sha256(self.graph.dumps().encode("utf-8", "surrogatepass")).hexdigest()[:16]
