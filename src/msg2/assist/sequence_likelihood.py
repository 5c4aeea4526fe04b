"""How probable a video is under a graph: log p of which steps it shows, in which order, and how often.

    log p(video) = Σ_n log p(n shown | few others) + log Σ_j share_j Π_choices p(choice | ε_j) + log p(repetitions)

A choice is orderly, one of the steps that may come next, all alike; or, with the probability ε_j, any that is still to
come. After each step, one of those that were done already is done again, as often as in the graph's own videos, or
none. The shares of the levels ε_j, the rates and the counts are those of these videos; a graph without them is given a
little of each.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import log, log1p
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from msg2.assist.following import earlier_pairs, first_spans, videos_learned_from
from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Segment, Step, Video

_USUAL_RATE = 0.05
"""Of what is absent, extra or in disorder, where a graph does not say."""
_LEAST_RATE = 1e-4

RecordedT = TypeVar("RecordedT")


@dataclass(frozen=True, slots=True)
class _PresenceRates:
    given: list[Step]
    rates: list[float]


@dataclass(frozen=True, slots=True)
class Repetitions:
    """What came after a step that was done so many times: what was done again, and of how many times that it could."""

    times: int
    again: dict[Step, int]
    of: dict[Step, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Disorder:
    levels: list[float]
    shares: list[float]


def _any_of(rows: NDArray[np.bool_], columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[r, c]: whether anything is marked both in row r and in column c."""
    return np.asarray(rows.astype(np.float32) @ columns.astype(np.float32) > 0)


@dataclass(frozen=True)
class SequenceLikelihood:
    """The likelihood of videos under one graph."""

    graph: SubtaskGraph

    def log_probability(self, video: Video) -> float:
        """log p of a video, in nats; every segment counts. It has no step that the graph does not have."""
        first = first_spans(video.segments)
        return self._presence(first) + self._order(first) + self._repetitions(video)

    def order_log_probability(self, video: Video) -> float:
        """log p of the order in which a video does its steps for the first time, in nats."""
        return self._order(first_spans(video.segments))

    def violation_cost(self, spans: Mapping[Step, Segment], pairs: Iterable[tuple[Step, Step]]) -> float:
        """Say how improbable it makes the order of a run that some pairs of its steps are the wrong way round."""
        return self._order(spans) - self._order(spans, frozenset(pairs))

    def unmet_cost(self, spans: Mapping[Step, Segment], name: Step) -> float:
        """Log-probability cost of a step that came before every alternative of an OR that it needs."""
        return self._order(spans) - self._order(spans, without_or=name)

    def _presence(self, shown: Mapping[Step, Segment]) -> float:
        """Each step given a few others; in a graph that does not say which, given what it needs."""
        if not self._network:
            return self._presence_by_needs(shown)
        total = 0.0
        for name, (given, rates) in self._network.items():
            context = 0
            for other in given:
                context = 2 * context + (other in shown)
            rate = min(max(rates[context], _LEAST_RATE), 1 - _LEAST_RATE)
            total += log(rate if name in shown else 1 - rate)
        return total

    def _presence_by_needs(self, shown: Mapping[Step, Segment]) -> float:
        """Each step at its own rate where what it needs is there, else as one too many."""
        total, index = 0.0, self.graph.index
        for name in self.graph.steps:
            possible = self.graph.necessary[name] <= shown.keys() and not any(
                partner in shown for partner in self.graph.partners(name) if index[partner] < index[name]
            )
            rate = self._rates[name] if possible else self._extra_rate
            total += log(rate if name in shown else 1 - rate)
        return total

    def _order(
        self,
        first: Mapping[Step, Segment],
        excused: frozenset[tuple[Step, Step]] = frozenset(),
        without_or: Step | None = None,
    ) -> float:
        """The choices in the order of time; some pairs are excused, and the ORs of a step. Late steps block nobody."""
        names, segments = list(first), list(first.values())
        index_of = {name: index for index, name in enumerate(names)}
        before = self.graph.pair_kinds.among(names).copy()
        for a, b in excused:
            before[index_of[a], index_of[b]] = False
        groups = [
            (index_of[name], [index_of[member] for member in clause.steps if member in index_of])
            for name in names
            if name != without_or
            for clause in self.graph.precondition(name).clauses()
            if clause.kind == "any"
        ]
        earlier = earlier_pairs([(segment.start or 0.0, segment.end or 0.0) for segment in segments])
        # Row by row, a choice: who had ended when it was made, and who had not begun, itself included.
        begun, still_open = earlier.T, earlier | np.eye(len(segments), dtype=np.bool_)
        late = _any_of(begun, before.T)
        blocked = _any_of(still_open & ~late, before)
        if groups:
            owner, member = np.zeros((2, len(groups), len(names)), dtype=np.bool_)
            for number, (place_of_owner, group) in enumerate(groups):
                owner[number, place_of_owner], member[number, group] = True, True
            blocked |= _any_of(_any_of(still_open, member.T) & ~_any_of(begun, member.T), owner)
        eligible = still_open & ~blocked
        orderly = np.where(eligible.diagonal(), 1 / np.maximum(eligible.sum(axis=1), 1), 0.0)[:, None]
        levels, shares = self._disorder
        choices = np.log((1 - levels) * orderly + levels / still_open.sum(axis=1)[:, None])
        by_level = np.cumsum([np.log(shares), *choices], axis=0)[-1]
        highest = by_level.max()
        return float(highest + np.log(np.exp(by_level - highest).sum()))

    def _repetitions(self, video: Video) -> float:
        """After each step another one is done again, or none of those that were done already."""
        if not self._again:
            return self._repetitions_by_step(video)
        total, done, unseen = 0.0, set[Step](), 0.5 / len(self.graph.steps)
        for last, following in pairwise([*(segment.step for segment in video.segments), None]):
            done.add(str(last))
            seen = self._again.get(str(last), Repetitions(0, {}))
            if following in done:
                total += log((seen.again.get(following, 0) + unseen) / (seen.times + 1))
            else:
                other = sum(seen.again.get(step, 0) + unseen for step in done) / (seen.times + 1)
                total += log1p(-min(other, 1 - _LEAST_RATE))
        return total

    def _repetitions_by_step(self, video: Video) -> float:
        """A step is done again, and again, each time at the rate at which it is repeated."""
        total = 0.0
        for name, number in Counter(segment.step for segment in video.segments).items():
            rate = min(max(self.graph.repeats.get(name, 0.0), _LEAST_RATE), 1 - _LEAST_RATE)
            total += (number - 1) * log(rate) + log1p(-rate)
        return total

    @cached_property
    def _rates(self) -> Mapping[Step, float]:
        """The rate of each step where all that it needs is there."""
        total = len(videos_learned_from(self.graph))
        counts = {name: self.graph.step_evidence(name).videos for name in self.graph.steps}
        rates = {}
        for name in self.graph.steps:
            chances = min((counts[needed] or 0 for needed in self.graph.necessary[name]), default=total)
            count = counts[name]
            if count is None or not chances:
                rates[name] = 0.5 if name in self.graph.optional else 1 - _USUAL_RATE
            else:
                rates[name] = (min(count, chances) + 0.5) / (chances + 1)
        return rates

    @cached_property
    def _network(self) -> Mapping[Step, tuple[list[Step], list[float]]]:
        """On which steps the presence of each step depends, and its rates; empty where the graph does not say."""
        entries, steps = recorded(self.graph, "presence", dict[Step, _PresenceRates]) or {}, set(self.graph.steps)
        for name, entry in entries.items():
            if not steps.issuperset([name, *entry.given]) or len(entry.rates) != 1 << len(entry.given):
                return {}
        return {name: (entry.given, entry.rates) for name, entry in entries.items()}

    @cached_property
    def _again(self) -> Mapping[Step, Repetitions]:
        """How often each step was done, and what was done again after it; empty where the graph does not say."""
        return recorded(self.graph, "repetitions", dict[Step, Repetitions]) or {}

    @cached_property
    def _extra_rate(self) -> float:
        rate = recorded(self.graph, "extra_rate", float)
        return max(rate, _LEAST_RATE) if rate is not None and 0 < rate < 1 else _USUAL_RATE

    @cached_property
    def _disorder(self) -> tuple[FloatArray, FloatArray]:
        """The levels ε_j and their shares."""
        entry = recorded(self.graph, "disorder", _Disorder)
        if entry is not None:
            levels, shares = np.array(entry.levels), np.array(entry.shares)
            if len(levels) == len(shares) and ((levels > 0) & (levels < 1) & (shares >= 0)).all() and shares.sum() > 0:
                return levels, np.maximum(shares / shares.sum(), 1e-12)
        return np.array([_USUAL_RATE]), np.ones(1)


def recorded(graph: SubtaskGraph, key: str, kind: type[RecordedT]) -> RecordedT | None:
    """What a graph records of its model; None where it does not, or something else."""
    model = graph.method.get("model")
    try:
        return TypeAdapter(kind).validate_python(model[key]) if isinstance(model, Mapping) else None
    except (KeyError, ValidationError):
        return None
