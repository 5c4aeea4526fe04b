"""Frames of a stream, 5 to 30 a second: which step is going on, since when, and what has been done.

An explicit-duration filter: a hypothesis has the steps done so far, what is going on now (a step, or background) and
since when. Frames are taken together in blocks of about a second. Neighbouring frames err alike, so a block counts as
its share of `LOOK_SECONDS`, after which a look is a new one:

    log p(block | n) = (seconds / LOOK_SECONDS) · mean_t log (q_t(n) / prior(n))

A step ends with the hazard of its duration, log-normal as in the videos; background ends with that of pauses; what
begins then is drawn from the forecast after what is done (`msg2.assist.belief`). Time and memory per frame are bounded.

Of a stream that is over, the filter tells what went on by all of it: the most probable way through the hypotheses that
were kept (Viterbi), and how probable each step was at each moment given the frames before and after it (smoothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import erfc, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from msg2.assist.belief import AssistantModel, Belief, Hypothesis
from msg2.errors import require
from msg2.sequences import FloatArray
from msg2.task import Step, Task

BLOCK_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""Seconds after which frames err anew."""
_MAX_HYPOTHESES = 40
_CANDIDATES = 5
"""Steps that may begin in a block: the most probable ones, and so many of those that are seen best."""
_LEAST_SHARE = 1e-3
"""Of a step that a recogniser does not mention."""
_LONGEST_GAP = 10.0
"""Seconds without a frame that count as a block; a longer gap says nothing of what went on in it."""
_REPEATED = 0.02
"""How probably a step that begins was done before."""
_USUAL_SECONDS, _USUAL_SPREAD, _USUAL_PAUSE = 30.0, 0.8, 3.0
"""Of steps and pauses, where no video tells."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long steps last, log-normal: mean and standard deviation of the logarithm, (N,); and pauses, on average."""

    mean: FloatArray
    spread: FloatArray
    pause: float

    @staticmethod
    def fit(steps: tuple[Step, ...], videos: Task | None) -> Durations:
        """From videos with times, each step drawn towards all."""
        lasted: dict[Step, list[float]] = {name: [] for name in steps}
        pauses: list[float] = []
        for video in videos or ():
            segments = [s for s in video.segments if s.start is not None and s.end is not None]
            for segment in segments:
                lasted[segment.step].append(log(max((segment.end or 0.0) - (segment.start or 0.0), 0.5)))
            pauses += [max((b.start or 0.0) - (a.end or 0.0), 0.0) for a, b in pairwise(segments)]
        every = np.array([value for of_step in lasted.values() for value in of_step])
        centre, wide = (float(every.mean()), float(every.std()) + 0.1) if len(every) > 1 else (
            log(_USUAL_SECONDS), _USUAL_SPREAD
        )  # fmt: skip
        mean = np.array([(sum(own) + 2 * centre) / (len(own) + 2) for own in lasted.values()])
        squares = [sum((value - m) ** 2 for value in own) for own, m in zip(lasted.values(), mean, strict=True)]
        spread = np.sqrt([(s + 3 * wide**2) / (len(own) + 3) for s, own in zip(squares, lasted.values(), strict=True)])
        return Durations(mean, spread, max(float(np.mean(pauses)) if pauses else _USUAL_PAUSE, 0.5))

    def end_probability(self, step: int, elapsed: float, seconds: float) -> float:
        """How probably a step that has lasted `elapsed` seconds ends in the next ones."""
        before, after = self._survival(step, elapsed), self._survival(step, elapsed + seconds)
        return min(max(1 - after / before if before > 1e-12 else 0.5, 1e-4), 0.95)

    def _survival(self, step: int, elapsed: float) -> float:
        if elapsed <= 0:
            return 1.0
        return 0.5 * erfc((log(elapsed) - float(self.mean[step])) / (float(self.spread[step]) * sqrt(2)))


@dataclass(frozen=True, slots=True)
class _Going:
    """What was done, and what goes on: a step, or background (None), since when."""

    past: Hypothesis
    now: int | None
    since: float


@dataclass(frozen=True, slots=True, eq=False)
class _KeptBlock:
    """How the hypotheses before a block, with the probabilities `before`, became those after it, by a list of ways."""

    start: float
    end: float
    now: tuple[int | None, ...]
    """What goes on in each hypothesis after the block."""
    before: FloatArray
    source: NDArray[np.intp]
    target: NDArray[np.intp]
    weight: FloatArray
    """Of each way from `source` to `target`: its probability, up to a factor that is the same for all."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A step, or background (None), from a start to an end, and how probable it is on average over that time."""

    step: int | None
    start: float
    end: float
    confidence: float


class FrameFilter:
    """Follows one stream of frames; with `remembers`, all of it can be told at the end (`stretches`)."""

    def __init__(self, model: AssistantModel, remembers: bool = False) -> None:
        self._model = model
        self._blocks: list[_KeptBlock] | None = [] if remembers else None
        self._durations = Durations.fit(model.graph.steps, model.videos)
        self._going: list[_Going] = [_Going(Hypothesis(1.0), None, 0.0)]
        self._logs = np.zeros(len(model.graph.steps) + 1)  # of the frames of the block; the last is background
        self._frames = 0
        self._block_start: float | None = None
        self._last: float | None = None

    def observe(self, seen: Mapping[int, float], at: float) -> bool:
        """Take in a frame; whether a block is complete, and the belief is new."""
        last = self._last
        require(last is None or at >= last, f"the frame at {at:g} comes after the one at {last or 0.0:g}")
        shares = np.full(len(self._logs), _LEAST_SHARE)
        shares[list(seen)] = np.maximum(list(seen.values()), _LEAST_SHARE)
        shares[-1] = max(1.0 - sum(seen.values()), _LEAST_SHARE)
        if last is not None and at - last > _LONGEST_GAP and self._frames:
            self._step((last or at) - (self._block_start or 0.0) + BLOCK_SECONDS, last)
            self._block_start = at
        self._last = at
        if self._block_start is None:
            self._block_start = at
        self._logs += np.log(shares / shares.sum())
        self._frames += 1
        if at - self._block_start < BLOCK_SECONDS:
            return False
        self._step(at - self._block_start, at)
        return True

    def _step(self, seconds: float, at: float) -> None:
        """Move on by one block."""
        evidence = np.exp(
            np.clip(self._logs / self._frames - (self._logs / self._frames).max(), -30, 0)
            * min(seconds, LOOK_SECONDS) / LOOK_SECONDS
        )  # fmt: skip
        start = at if self._block_start is None else self._block_start
        self._logs[:], self._frames, self._block_start = 0.0, 0, at
        model, pause = self._model, self._durations.pause
        outcomes: dict[tuple[object, ...], _Going] = {}
        weights: dict[tuple[object, ...], float] = {}
        ways: list[tuple[int, tuple[object, ...], float]] = []

        def put(source: int, going: _Going, weight: float) -> None:
            if not weight > 0:
                return
            key = (going.past.bits, going.past.done[-1:], going.now)
            if key not in outcomes or weight > weights[key]:
                outcomes[key] = going
            weights[key] = weights.get(key, 0.0) + weight
            ways.append((source, key, weight))

        free: list[tuple[int, Hypothesis, float]] = []  # with nothing going on, at the moment
        for source, going in enumerate(self._going):
            weight = going.past.probability
            if going.now is None:
                begins = 1 - exp(-seconds / pause)
                put(source, going, weight * (1 - begins) * float(evidence[-1]))
                free.append((source, going.past, weight * begins))
            else:
                ends = self._durations.end_probability(going.now, at - seconds - going.since, seconds)
                put(source, going, weight * (1 - ends) * float(evidence[going.now]))
                done = self._end(going.past, going.now, weight, at - seconds / 2)
                silent = weight * ends * exp(-seconds / pause)
                put(source, _Going(done, None, at - seconds), silent * float(evidence[-1]))
                free.append((source, done, weight * ends - silent))
        forecasts = model.forecasts([past.history for _, past, _ in free])
        evident = np.argsort(-evidence[:-1])[:_CANDIDATES].tolist()
        for (source, past, weight), forecast in zip(free, forecasts, strict=True):
            left = forecast * evidence[:-1]
            for step in dict.fromkeys([*np.argsort(-left)[:_CANDIDATES].tolist(), *evident]):
                put(source, _Going(past, step, at - seconds), weight * (1 - _REPEATED) * float(left[step]))
            for step in filter(past.has, evident):
                again = weight * _REPEATED / len(past.done) * float(evidence[step])
                put(source, _Going(past, step, at - seconds), again)
        kept = sorted(outcomes, key=lambda key: -weights[key])[:_MAX_HYPOTHESES]
        total = sum(weights[key] for key in kept)
        if not total > 0:
            return
        if self._blocks is not None:
            place = {key: number for number, key in enumerate(kept)}
            taken = [(source, place[key], weight) for source, key, weight in ways if key in place]
            sources, targets, shares = (np.array(column) for column in zip(*taken, strict=True))
            before = np.array([going.past.probability for going in self._going])
            now = tuple(outcomes[key].now for key in kept)
            self._blocks.append(_KeptBlock(start, at, now, before, sources, targets, shares))
        self._going = [
            replace(outcomes[key], past=replace(outcomes[key].past, probability=weights[key] / total)) for key in kept
        ]

    def _end(self, past: Hypothesis, step: int, weight: float, at: float) -> Hypothesis:
        """What has been done when a step ends; one that is resumed right after a pause is still the same."""
        if not past.has(step):
            return past.add(step, weight, at)
        is_again = step in self._model.repeated and past.history[-1] != step
        return past.do_again(step, weight, at) if is_again else past.see_again(step, weight, at)

    def stretches(self) -> list[Stretch]:
        """What went on from the start to the end of the stream, which is over: the most probable way through it all."""
        if self._frames and self._last is not None and self._block_start is not None and self._last > self._block_start:
            self._step(self._last - self._block_start, self._last)
        scores, back = np.zeros(1), list[NDArray[np.intp]]()
        for block in self._blocks or ():
            reached = scores[block.source] + np.log(block.weight / block.before[block.source])
            scores = np.full(len(block.now), -np.inf)
            np.maximum.at(scores, block.target, reached)
            best, first = np.zeros(len(scores), np.intp), reached == scores[block.target]
            best[block.target[first]] = block.source[first]
            back.append(best)
        place, shares = int(scores.argmax()), np.array([going.past.probability for going in self._going])
        blocks: list[Stretch] = []  # the last one first
        for block, best in zip(reversed(self._blocks or ()), reversed(back), strict=True):
            now = block.now[place]
            sure = float(shares[[other == now for other in block.now]].sum())
            blocks.append(Stretch(now, block.start, block.end, min(sure, 1.0)))
            into = np.bincount(block.target, block.weight)
            passed = shares[block.target] * block.weight / into[block.target]
            place, shares = int(best[place]), np.bincount(block.source, passed, len(block.before))
        stretches = []
        for now, same in groupby(reversed(blocks), key=lambda block: block.step):
            parts = [*same]
            seconds = [max(part.end - part.start, 1e-3) for part in parts]
            sure = float(np.average([part.confidence for part in parts], weights=seconds))
            stretches.append(Stretch(now, parts[0].start, parts[-1].end, sure))
        return stretches

    def belief(self) -> Belief:
        """What has been done, whatever goes on."""
        shares: dict[tuple[int, ...], Hypothesis] = {}
        for going in self._going:
            same = shares.get(going.past.done)
            total = going.past.probability + (0.0 if same is None else same.probability)
            shares[going.past.done] = replace(going.past, probability=total)
        ordered = sorted(shares.values(), key=lambda each: (-each.probability, each.done))
        return Belief(tuple(ordered))

    def _now(self) -> dict[int | None, float]:
        shares: dict[int | None, float] = {}
        for going in self._going:
            shares[going.now] = shares.get(going.now, 0.0) + going.past.probability
        return shares

    def running(self) -> int | None:
        """The step that goes on, if that is more probable than not, and it was not done before."""
        shares = self._now()
        best = max(shares, key=lambda step: shares[step])
        return best if best is not None and shares[best] >= 0.5 else None

    def latest(self) -> int | None:
        """The step that goes on, or was done last."""
        running = self.running()
        best = self._going[0].past.done
        return running if running is not None else best[-1] if best else None

    def confidence(self) -> float:
        """How probable what goes on is."""
        return min(max(self._now().values()), 1.0)
