"""What has been done, where the one who watches is not sure: a few hypotheses with their probabilities.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msg2.assist.online_monitoring import OnlineMonitor, StepAssessment
from msg2.task import Step

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
    done: tuple[Step, ...]
    """In order, each step once, mistakes included."""
    monitor: OnlineMonitor
    """Stands where the hypothesis does."""
    assessment: StepAssessment | None = None
    """Of the last step; None where nothing was done last."""

    @property
    def progress(self) -> tuple[Step, ...]:
        """What is done and counts: the mistakes left out."""
        rejected = self.monitor.rejected
        return tuple(name for name in self.done if name not in rejected) if rejected else self.done

    def after(self, name: Step) -> Hypothesis:
        """What may have been done if this step came now."""
        monitor = self.monitor.copy()
        assessment = monitor.step(name)
        if assessment.mistake:
            monitor.reject(assessment)
        # What is done again, rightly this time, is done now.
        earlier = tuple(one for one in self.done if one != name) if name in assessment.corrects else self.done
        done = earlier if name in earlier else (*earlier, name)
        return Hypothesis(self.probability, done, monitor, assessment)


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
            found = [replace(hypothesis, probability=weight * nothing, assessment=None)]
            fits = {name: fit * (1 + ratios[name]) for name, fit in seen.items()}
            share = weight * (1 - nothing) / sum(fits.values())
            found += [replace(hypothesis.after(name), probability=share * fit) for name, fit in fits.items()]
            for one in found:
                key = (one.done, one.monitor.rejected)
                if one.probability > 0 and key in merged:
                    heavier = max(merged[key], one, key=lambda each: each.probability)
                    one = replace(heavier, probability=merged[key].probability + one.probability)
                if one.probability > 0:
                    merged[key] = one
        kept = sorted(merged.values(), key=lambda one: (-one.probability, one.done))[:MAX_HYPOTHESES]
        total = sum(one.probability for one in kept)
        return Belief(tuple(replace(one, probability=one.probability / total) for one in kept))

    def probability_done(self) -> dict[Step, float]:
        """How probably each step has been done; those that nobody saw are not in it."""
        shares: dict[Step, float] = {}
        for hypothesis in self.hypotheses:
            for name in hypothesis.done:
                shares[name] = shares.get(name, 0.0) + hypothesis.probability
        return {name: min(share, 1.0) for name, share in shares.items()}
