"""What an assistant has learned, from a graph and, if there are any, from videos: each part when it is first needed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from msg2.assist.forecasting import EndProbability, fit_end_probability
from msg2.assist.learned_forecaster import LearnedForecaster, fit_forecaster
from msg2.assist.online_monitoring import OnlineMonitor, fit_monitor
from msg2.assist.rule_probabilities import RuleProbabilities
from msg2.assist.run_state import RunStateTracker
from msg2.assist.time_left import TimeLeftModel, WaitingTimes, fit_time_left, fit_waiting_times
from msg2.graph import SubtaskGraph
from msg2.task import Absent, Step, Task

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
    def end_probability(self) -> EndProbability | None:
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
    def rules(self) -> RuleProbabilities:
        """How probably it is a mistake to leave out a step."""
        return RuleProbabilities(self.graph)

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
        return Precedents(Counter(self.graph.steps[place] for place in chosen.tolist()), len(chosen))

    @cached_property
    def index(self) -> Mapping[Step, int]:
        """The place of each step in the graph."""
        return {name: place for place, name in enumerate(self.graph.steps)}

    @cached_property
    def fingerprint(self) -> str:
        """Of the graph: what a saved run is told apart by from those of other graphs."""
        return hashlib.sha256(self.graph.dumps().encode("utf-8", "surrogatepass")).hexdigest()[:16]
