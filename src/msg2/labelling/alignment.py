"""Align steps with the narration of all videos of a task at once, with or without labels, and draft their times.

A hidden Markov model describes a video as a background that is interrupted by steps. Its states are the N steps, N
backgrounds that remember the last step, and the background before the first one. A step s ends with probability 1/d_s;
then the next step follows at once with probability g, else the background of s, which ends with probability h. The next
step is r with probability O[s, r]. The evidence of a step in a bin is its log-likelihood ratio to the background:

    a (name_s + c) + b prototype_s + w log (p_s(position) / uniform)

Prototypes, positions p and the order O are estimated in turn with the posterior of the states. Labelled videos count as
they are labelled, the others by their posterior.

The drafted time of a step maximises the expected hits: the bin with the highest probability of the step, averaged over
neighbouring bins. That probability is the model's own confidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msg2.formats.feature_store import VideoFeatures
from msg2.labelling import narration_grid
from msg2.labelling.narration_grid import SECONDS_PER_BIN, EncodeTexts, NarrationGrid, prototype_evidence
from msg2.options import Count, NonNegativeInteger, Positive, Probability, options_class
from msg2.progress import Progress, no_progress
from msg2.sequences import FloatArray
from msg2.task import DRAFT, Segment, Step, Task, Video

_LIMIT = 20.0  # no single bin says more, in nats


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """How steps follow each other; N steps, and N + 1 backgrounds of which the last is that before the first step."""

    order: FloatArray  # O: the next step after each background, shape (N + 1, N)
    durations: FloatArray  # d: mean length of the steps in bins, shape (N,)
    pauses: FloatArray  # 1/h: mean length of the backgrounds in bins, shape (N + 1,)
    adjacent: float = 0.0  # g: share of the steps that follow the one before at once

    def matrix(self) -> FloatArray:
        """Probabilities of the 2N + 1 states at the next bin: steps, their backgrounds, the first background."""
        steps = self.order.shape[1]
        matrix = np.zeros((2 * steps + 1, 2 * steps + 1))
        end = 1 / np.maximum(self.durations, 1.0)
        matrix[range(steps), range(steps)] = 1 - end
        matrix[range(steps), range(steps, 2 * steps)] = end * (1 - self.adjacent)
        matrix[:steps, :steps] += (end * self.adjacent)[:, None] * self.order[:-1]
        leave = 1 / np.maximum(self.pauses, 1.0)
        backgrounds = np.arange(steps, 2 * steps + 1)
        matrix[backgrounds, backgrounds] = 1 - leave
        matrix[steps:, :steps] = leave[:, None] * self.order
        return matrix


@dataclass(frozen=True, slots=True, eq=False)
class StatePosterior:
    """What the evidence says about the states."""

    steps: FloatArray  # probability of each step in each bin, shape (V, T, N); 0 outside of the videos
    entries: FloatArray  # expected number of times each step begins after each background, shape (V, N + 1, N)
    log_likelihood: FloatArray  # ratio to a video of nothing but background, in nats, shape (V,)


def forward_backward(evidence: FloatArray, bins: NDArray[np.intp], transitions: Transitions) -> StatePosterior:
    """Compute the posterior of the states of all videos."""
    longest_first = np.argsort(-bins, kind="stable")
    lengths, (V, T, N) = bins[longest_first], evidence.shape
    active = np.searchsorted(-lengths, -np.arange(T), side="left")  # videos that are longer than t come first
    matrix = transitions.matrix()
    clipped = np.clip(evidence[longest_first], -_LIMIT, _LIMIT)
    forward, scale = np.zeros((V, T, 2 * N + 1)), np.ones((V, T))
    start = np.zeros((V, 2 * N + 1))
    start[:, -1] = 1
    begin = matrix[:N, :N] * (1 - np.eye(N))  # a step that goes on does not begin
    for t in range(T):
        n = active[t]
        before = start[:n] if t == 0 else forward[:n, t - 1] @ matrix
        before[:, :N] *= np.exp(clipped[:n, t])
        scale[:n, t] = before.sum(axis=1)
        forward[:n, t] = before / scale[:n, t, None]
    backward = np.ones((V, 2 * N + 1))
    entries, steps = np.zeros((V, N + 1, N)), np.zeros((V, T, N))
    for t in range(T - 1, -1, -1):
        n = active[t]
        steps[:n, t] = forward[:n, t, :N] * backward[:n, :N]
        backward[:n, :N] *= np.exp(clipped[:n, t])
        backward[:n] /= scale[:n, t, None]
        if t > 0:
            before = forward[:n, t - 1]
            entries[:n] += before[:, N:, None] * matrix[N:, :N] * backward[:n, None, :N]
            entries[:n, :N] += before[:, :N, None] * begin * backward[:n, None, :N]
            backward[:n] = backward[:n] @ matrix.T
    back = np.argsort(longest_first, kind="stable")
    return StatePosterior(steps[back], entries[back], np.log(scale).sum(axis=1)[back])


_POSITIONS = 20  # equal parts of a video in which positions are counted


@options_class
class AlignmentOptions:
    """How steps are aligned with narration; the weights were chosen on other tasks than they are reported on."""

    name_weight: float = 0.2
    """a: of the similarity to a name, per second."""
    name_offset: float = -1.0
    """c: standard deviations above the average from which on a similarity speaks for the step."""
    prototype_weight: float = 0.2
    """b: of the similarity to a prototype, per second: neighbouring seconds say the same."""
    position_weight: float = 0.22
    """w: of the usual position of a step, per second."""
    prototype_count: float = 30.0
    """Cues of the background that are added to every prototype."""
    position_count: float = 20.0
    """Segments anywhere in the video that are added to the positions of every step."""
    order_count: float = 5.0
    """Transitions per step by the order of the list that are added to those of the videos."""
    order_decay: Positive = 1.0
    """Steps of the list in which the probability of a later one falls to 1/e."""
    backward: float = 0.1
    """Weight of a transition against the order of the list."""
    step_seconds: Positive = 6.0
    """Usual length of a step, where labels do not tell."""
    presence: Positive = 0.7
    """Usual share of the steps that a video shows, where labels do not tell."""
    adjacent: Probability = 0.2
    """Usual share of the steps that follow the one before at once, where labels do not tell."""
    duration_videos: NonNegativeInteger = 20
    """Labelled videos from which on their durations and pauses take the place of the usual ones."""
    iterations: Count = 8
    """Rounds of estimating prototypes, positions and order in turn."""
    lag_seconds: float = 1.0
    """How much later than the narration a step is done."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """What labels say: cues, order, positions, durations and pauses; zeros where nothing is labelled."""

    cues: FloatArray  # whether each cue lies in a segment of each step, shape (C, N)
    is_labelled: NDArray[np.bool_]  # which videos are labelled, shape (V,)
    order: FloatArray  # transitions, shape (N + 1, N)
    positions: FloatArray  # shape (N, parts)
    step_bins: FloatArray  # lengths of segments in all and their number, shape (2, N)
    pause_bins: FloatArray  # lengths of pauses in all and the number that ended, shape (2, N + 1)
    adjacent: float  # share of the segments that begin before the one before has ended


def count_labels(grid: NarrationGrid, steps: Sequence[Step], labelled: Sequence[int]) -> LabelCounts:
    """Count what the labels of some videos say."""
    videos, longest = grid.cue_at.shape
    count = len(steps)
    inside = np.zeros((videos, longest, count))
    order, pauses = np.zeros((count + 1, count)), np.zeros((2, count + 1))
    lengths = np.zeros((2, count))
    for number in labelled:
        inside[number] = grid.labelled_bins(steps, number)
        last, end = count, 0.0
        for step, start, stop in grid.timed_labels(steps, number):
            order[last, step] += 1
            if start > end or last == count:
                pauses[:, last] += ((start - end) / SECONDS_PER_BIN, 1)
            lengths[:, step] += ((stop - start) / SECONDS_PER_BIN, 1)
            last, end = step, max(end, stop)
        pauses[0, last] += max(grid.bins[number] - end / SECONDS_PER_BIN, 0.0)
    chosen = np.isin(np.arange(videos), labelled)
    cues = (grid.collect(inside) >= 0.5).astype(np.float64)
    cues /= np.maximum(cues.sum(axis=1, keepdims=True), 1)
    adjacent = 1 - pauses[1].sum() / max(order.sum(), 1.0)
    return LabelCounts(cues, chosen, order, _positions(grid, inside), lengths, pauses, float(adjacent))


def _first_transitions(grid: NarrationGrid, counts: LabelCounts, options: AlignmentOptions) -> Transitions:
    """Estimate durations and pauses from the labels, each drawn to the mean over steps with the weight of 5 labels."""
    steps = counts.order.shape[1]
    order = np.full((steps + 1, steps), 1 / steps)
    if counts.is_labelled.sum() >= options.duration_videos:
        durations, pauses = (
            (total + 5.0 * (total.sum() / number.sum())) / (number + 5.0)
            for total, number in (counts.step_bins, counts.pause_bins)
        )
        return Transitions(order, durations, pauses, counts.adjacent)
    usual = options.step_seconds / SECONDS_PER_BIN
    pause = max(grid.bins.mean() / (options.presence * steps) - usual, 2.0)
    return Transitions(order, np.full(steps, usual), np.full(steps + 1, pause), options.adjacent)


def _rank_order(ranks: Sequence[int] | NDArray[np.intp] | None, steps: int, options: AlignmentOptions) -> FloatArray:
    """Probabilities of the next step by the usual order, shape (N + 1, N); uniform where there is none."""
    if ranks is None:
        return np.full((steps + 1, steps), 1 / steps)
    rank = np.append(np.asarray(ranks, np.float64), -1.0)
    ahead = rank[None, :-1] - rank[:, None]
    decay = options.order_decay
    weights = np.where(ahead > 0, np.exp((1 - ahead) / decay), options.backward * np.exp(ahead / decay))
    weights[range(steps), range(steps)] = options.backward
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _position_ranks(positions: FloatArray) -> NDArray[np.intp]:
    """Steps by their mean position, shape (N,); one that is never seen comes in the middle."""
    parts = (np.arange(_POSITIONS) + 0.5) / _POSITIONS
    seen = positions.sum(axis=1)
    means = np.where(seen > 0, positions @ parts / np.maximum(seen, 1e-9), 0.5)
    return np.asarray(means.argsort(kind="stable").argsort())


def _positions(grid: NarrationGrid, weights: FloatArray) -> FloatArray:
    """In how many videos each step lies in each part of the video, shape (N, parts); at most 1 in all per video."""
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    flat = share.reshape(-1, share.shape[2])
    part = _video_part(grid).ravel()
    return np.stack([np.bincount(part, column, minlength=_POSITIONS) for column in flat.T])


def _position_evidence(grid: NarrationGrid, counts: FloatArray, options: AlignmentOptions) -> FloatArray:
    from scipy.ndimage import gaussian_filter1d

    smooth = gaussian_filter1d(counts, 1.0, axis=1, mode="nearest") + options.position_count / _POSITIONS
    ratio = np.log(_POSITIONS * smooth / smooth.sum(axis=1, keepdims=True)) * options.position_weight
    return np.asarray(ratio.T[_video_part(grid)])


def _video_part(grid: NarrationGrid) -> NDArray[np.intp]:
    return np.minimum((grid.relative_time * _POSITIONS).astype(np.intp), _POSITIONS - 1)


class LabelUse(NamedTuple):
    """How labelled videos and the others work together."""

    share: float  # what a video without labels counts, beside a labelled one
    position: float  # part of the weight of positions: the fewer labels, the more they must carry


NO_LABELS = LabelUse(1.0, 1.0)
LEAST_VIDEOS = 5  # labelled videos from which on some can be held out, to choose how labels are used
LABELLED_ITERATIONS = 3  # with so many labels the prototypes are good from the start
_SMOOTHING = 2.0  # bins over which probabilities are averaged
_SHORTEST = 0.5  # seconds of the shortest drafted segment


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    """A time for every step in every video."""

    bins: NDArray[np.intp]  # when the step is done, shape (V, N); no two steps of a video share a bin
    confidence: FloatArray  # probability that it is being done then, as the model has it; shape (V, N)
    presence: FloatArray  # probability that the video shows it at all, shape (V, N)
    durations: FloatArray  # usual lengths of the steps in bins, shape (N,)


def draft_times(grid: NarrationGrid, posterior: StatePosterior, durations: FloatArray, lag_seconds: float) -> Drafts:
    """Choose a time for every step in every video."""
    from scipy.ndimage import gaussian_filter1d

    lag = round(lag_seconds / SECONDS_PER_BIN)
    smooth = gaussian_filter1d(posterior.steps, _SMOOTHING, axis=1, mode="constant")
    chosen = np.zeros((len(smooth), smooth.shape[2]), np.intp)
    confidence = np.zeros(chosen.shape)
    for video, length in enumerate(grid.bins):
        likely = smooth[video, np.clip(np.arange(length) - lag, 0, None)]
        for step in np.argsort(-likely.max(axis=0), kind="stable"):  # the surest one chooses first
            best = int(likely[:, step].argmax())
            chosen[video, step], confidence[video, step] = best, max(likely[best, step], 0.0)
            if length > likely.shape[1]:
                likely[best] = -1.0
    return Drafts(chosen, confidence, np.minimum(posterior.entries.sum(axis=1), 1.0), durations)


@dataclass(frozen=True, slots=True, eq=False)
class Aligner:
    """All that an alignment needs but the labels; it is fitted with several sets of them."""

    grid: NarrationGrid
    steps: tuple[Step, ...]
    whitened: FloatArray
    names: FloatArray
    ranks: tuple[int, ...] | None
    options: AlignmentOptions

    @staticmethod
    def prepare(
        task: Task,
        order: Sequence[Step] | None,
        encode: EncodeTexts,
        options: AlignmentOptions,
        seconds: Mapping[str, float] | None = None,
        *,
        frames: Mapping[str, VideoFeatures] | None = None,
        progress: Progress = no_progress,
    ) -> Aligner:
        """Prepare the narration of a task for alignments; `seconds` are lengths of videos, where they are known."""
        grid = narration_grid.narration_grid(task, encode, seconds, frames, progress=progress)
        names = narration_grid.name_evidence(grid, task.steps, task.name, encode)
        ranks = None if order is None else tuple(list(order).index(step) for step in task.steps)
        return Aligner(grid, task.steps, narration_grid.whiten(grid.vectors), names, ranks, options)

    def draft(self, labelled: Sequence[int], use: LabelUse = NO_LABELS) -> Drafts:
        """Draft the labels of all videos, with the labels of some."""
        rounds = 1 if use.share == 0 and labelled else self.options.iterations
        if use.share > 0 and len(labelled) >= LEAST_VIDEOS:
            rounds = min(rounds, LABELLED_ITERATIONS)
        weight = use.position * self.options.position_weight
        options = replace(self.options, iterations=rounds, position_weight=weight)
        counts = count_labels(self.grid, self.steps, labelled)
        posterior, transitions = self._align(counts, options, use.share)
        return draft_times(self.grid, posterior, transitions.durations, self.options.lag_seconds)

    def _align(
        self, counts: LabelCounts, options: AlignmentOptions, share: float
    ) -> tuple[StatePosterior, Transitions]:
        """Align the steps with all videos, as far as narration and labels tell."""
        grid, ranks, steps = self.grid, self.ranks, len(self.steps)
        by_name = options.name_weight * (self.names + options.name_offset)
        free = ~counts.is_labelled
        transitions = _first_transitions(grid, counts, options)
        first_ranks = _position_ranks(counts.positions) if ranks is None and not free.all() else ranks
        prior = _rank_order(first_ranks, steps, options)
        weights, positions, entries = counts.cues, counts.positions, np.zeros((steps + 1, steps))
        for iteration in range(options.iterations):
            order = counts.order + entries + options.order_count * steps * prior
            transitions = replace(transitions, order=order / order.sum(axis=1, keepdims=True))
            told = by_name
            if weights.any():
                similar = prototype_evidence(self.whitened, weights, options.prototype_count)
                told = told + options.prototype_weight * similar
            evidence = grid.spread(told, np.quantile(told, 0.3, axis=0))
            evidence += _position_evidence(grid, positions, options)
            posterior = forward_backward(evidence, grid.bins, transitions)
            if iteration + 1 < options.iterations:
                soft = posterior.steps * (share * free)[:, None, None]
                weights = counts.cues + grid.collect(soft)
                positions = counts.positions + _positions(grid, soft)
                entries = share * posterior.entries[free].sum(axis=0)
                if ranks is None:
                    prior = _rank_order(_position_ranks(positions), steps, options)
        return posterior, transitions

    def hits(self, drafts: Drafts, video: int) -> NDArray[np.bool_]:
        """Whether each drafted time of a labelled video lies in a segment of its step, shape (N,)."""
        return np.asarray(self.grid.labelled_bins(self.steps, video)[drafts.bins[video], np.arange(len(self.steps))])

    def add_drafts(
        self, task: Task, drafts: Drafts, confidence: FloatArray, *, labelled: Sequence[int], presence: float
    ) -> Task:
        """Add drafts to the narrated videos that are not labelled, of steps that are probably present."""
        drafted = {
            video.id: self._draft_segments(drafts, number, confidence[number], presence)
            for number, video in enumerate(self.grid.videos)
            if number not in labelled
        }
        videos = (Video(video.id, drafted.get(video.id, video.segments), video.sentences) for video in task)
        return task.with_videos(videos)

    def _draft_segments(self, drafts: Drafts, video: int, confidence: FloatArray, presence: float) -> list[Segment]:
        """Segments around the drafted times of a video; neighbours are cut half way, so that none overlap."""
        wanted = np.flatnonzero(drafts.presence[video] >= presence).tolist()
        chosen = sorted(wanted, key=lambda step: (int(drafts.bins[video, step]), self.steps[step]))
        middles = [(float(drafts.bins[video, step]) + 0.5) * SECONDS_PER_BIN for step in chosen]
        borders = [0.0, *((a + b) / 2 for a, b in pairwise(middles)), float(self.grid.bins[video]) * SECONDS_PER_BIN]
        segments = []
        for step, middle, (left, right) in zip(chosen, middles, pairwise(borders), strict=False):
            half = max(drafts.durations[step] * SECONDS_PER_BIN, _SHORTEST) / 2
            start, end = max(middle - half, left), min(middle + half, right)
            sure = round(float(confidence[step]), 4)
            segments.append(Segment(self.steps[step], round(start, 2), round(max(start, end), 2), sure, DRAFT))
        return segments
