"""What is known just before each step of a video begins: the steps done, what they looked like, what was said.

A moment holds nothing of what comes after it: labels that begin later, frames and sentences that are not over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from msg2.options import ForeseeingOptions
from msg2.states.sampling import Floats, Ints, nearest
from msg2.states.temporal.films import Film, Films, Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """M moments of a task with N steps; frames and sentences are places in the `Films`, -1 where there is none."""

    steps: Tensor
    """(M, N): the steps done, the latest first; then -1."""
    frames: Tensor
    """(M, N, P): P frames of each of these steps, in the order of time."""
    around: Tensor
    """(M, N, P, W): the sentences around each of these frames."""
    heard: Tensor
    """(M, S): what was said since the last step began, the latest first."""
    done: Tensor
    """(M, N), true for steps that are done."""
    came: Tensor
    """(M,): the step that begins now."""

    def __len__(self) -> int:
        return len(self.came)

    def __getitem__(self, rows: Tensor) -> Moments:
        """The moments in these rows, no wider than the longest history among them."""
        chosen = Moments(*(getattr(self, f.name)[rows] for f in fields(self)))
        longest, most = (max(1, int((one >= 0).sum(1).max())) for one in (chosen.steps, chosen.heard))
        history = (chosen.steps[:, :longest], chosen.frames[:, :longest], chosen.around[:, :longest])
        return Moments(*history, chosen.heard[:, :most], chosen.done, chosen.came)


def moments(
    films: Films, numbers: Iterable[int], options: ForeseeingOptions, rng: np.random.Generator | None = None
) -> Moments:
    """The moments before all steps of the films of these numbers, in their order.

    Frames of a step are equidistant, or at random with an `rng`.
    """
    chosen = [(films.films[number], number) for number in numbers]
    count, size = sum(len(film.steps) for film, _ in chosen), len(films.steps)
    steps = np.full((count, size), -1)
    frames = np.full((count, size, options.frames), -1)
    around = np.full((count, size, options.frames, options.around), -1)
    heard = np.full((count, options.heard), -1)
    done = np.zeros((count, size), dtype=np.bool_)
    row = 0
    for film, number in chosen:
        first_frame, first_sentence = films.frame_offsets[number], films.sentence_offsets[number]
        for place in range(len(film.steps)):
            back, now = slice(place - 1, None, -1) if place else slice(0), film.starts[place]
            done[row, film.steps[:place]] = True
            steps[row, :place] = film.steps[back]
            times = _looks(film, back, now, options.frames, rng)
            frames[row, :place] = _shifted(_windows(film.frames, times, now, 1)[..., 0], first_frame)
            around[row, :place] = _shifted(_windows(film.sentences, times, now, options.around), first_sentence)
            said = _said_since(film, place, now)[: options.heard]
            heard[row, : len(said)] = said + first_sentence
            row += 1
    came = np.concatenate([np.zeros(0, dtype=np.int64), *(film.steps for film, _ in chosen)])
    return Moments(*map(torch.from_numpy, (steps, frames, around, heard, done, came)))


def _looks(film: Film, back: slice, now: float, count: int, rng: np.random.Generator | None) -> Floats:
    """Shape (steps, count): when frames of the steps are taken; a step that is not over yet is seen up to `now`."""
    starts, ends = film.starts[back], np.minimum(film.ends[back], now)
    shape = (len(starts), count)
    share = np.broadcast_to((np.arange(count) + 0.5) / count, shape) if rng is None else np.sort(rng.random(shape))
    return starts[:, None] + share * (ends - starts)[:, None]


def _windows(pieces: Pieces, times: Floats, now: float, width: int) -> Ints:
    """Shape (*times.shape, width): the `width` pieces around each time, of those that are known; -1 beyond them."""
    known = pieces.known(now)
    if not len(known):
        return np.full((*times.shape, width), -1)
    place = nearest(pieces.times[known], times.ravel()).reshape(times.shape)[..., None] + np.arange(width) - width // 2
    return np.where((place >= 0) & (place < len(known)), known[place.clip(0, len(known) - 1)], -1)


def _said_since(film: Film, place: int, now: float) -> Ints:
    """The sentences that ended since the step before this one began, or since the video did; the latest first."""
    since = film.starts[place - 1] if place else 0.0
    known = film.sentences.known(now)
    return known[film.sentences.from_[known] >= since][::-1]


def _shifted(places: Ints, offset: int) -> Ints:
    return np.where(places < 0, -1, places + offset)
