"""Sound and motion as vectors without any weights: log-mel energies of the sound track, and differences of frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msg2.formats.feature_store import nearest_index
from msg2.media.image_encoders import ImageEncoder, downsample
from msg2.media.speech_recognition import RATE, audio_chunks
from msg2.sequences import FloatArray
from msg2.text_encoders import Image

BANDS = 64  # of the mel scale, from 0 to 8 kHz
_WINDOW, _HOP = 400, 160  # samples: 25 and 10 milliseconds
_CHUNK_SECONDS = 60.0  # of sound that are held in memory at once
_FLOOR = 1e-6  # power that counts as silence
_GRID = 8  # cells across and down in which motion is measured, each of 8 x 8 points
WIDTH = 2 * _GRID**2  # of motion, and of sound: 2 BANDS


def log_mel(samples: NDArray[np.float32]) -> FloatArray:
    """Log energies in mel bands every 10 milliseconds, shape (T, BANDS); 0 is silence, a full sound is about 1.

    >>> log_mel(np.zeros(16_000, np.float32)).shape
    (98, 64)
    """
    if len(samples) < _WINDOW:
        return np.zeros((0, BANDS))
    windows = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(windows, 512)) ** 2 / _WINDOW
    return np.asarray(np.log1p(power @ _mel_filters().T / _FLOOR) / -np.log(_FLOOR))


def _mel_filters() -> FloatArray:
    """Triangles whose corners are equally far apart on the mel scale, shape (BANDS, 257)."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, BANDS + 2) / 2595) - 1)
    left, middle, right = (corners[part : BANDS + part, None] for part in range(3))
    hertz = np.linspace(0, RATE / 2, 257)
    return np.maximum(0, np.minimum((hertz - left) / (middle - left), (right - hertz) / (right - middle)))


def encode_sound(path: Path, times: FloatArray, every: float) -> NDArray[np.float32]:
    """The mean and the spread of the log-mel energies around each time, shape (F, 2 BANDS); 0 where there is no sound.

    `every` is the time in seconds from one moment to the next; half of that before and after it counts.
    """
    sums, counts = np.zeros((len(times), 2 * BANDS)), np.zeros((len(times), 1))
    for begin, samples in audio_chunks(path, _CHUNK_SECONDS) if len(times) else ():
        energies = log_mel(samples)
        middles = begin + (np.arange(len(energies)) * _HOP + _WINDOW / 2) / RATE
        nearest = nearest_index(times, middles)
        near = np.abs(times[nearest] - middles) <= every / 2
        np.add.at(sums, nearest[near], np.hstack([energies, energies**2])[near])
        np.add.at(counts, nearest[near], 1)
    mean, square = np.hsplit(sums / counts.clip(1), 2)
    return np.hstack([mean, np.sqrt((square - mean**2).clip(0))]).astype(np.float32)


class WithMotion:
    """An encoder of images that appends a small grey picture, from which `split_motion` makes the motion."""

    def __init__(self, encoder: ImageEncoder) -> None:
        self.encoder, self.name, self.versions = encoder, encoder.name, encoder.versions
        self.width = encoder.width + _GRID**4

    def __call__(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        grey = np.array([downsample(image).mean(axis=2) for image in images], np.float32)
        return np.hstack([self.encoder(images), grey.reshape(-1, _GRID**4)])


def split_motion(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of `WithMotion` in the order of time -> those of the encoder, and the motion since the frame before.

    Motion is the mean and the largest change of brightness in each of 8 x 8 cells, shape (F, 128); none at first.
    """
    pictures = vectors[:, -(_GRID**4) :].reshape(len(vectors), _GRID, _GRID, _GRID, _GRID)
    change = np.abs(np.diff(pictures, axis=0, prepend=pictures[:1])).swapaxes(2, 3).reshape(-1, _GRID**2, _GRID**2)
    return np.ascontiguousarray(vectors[:, : -(_GRID**4)]), np.hstack([change.mean(-1), change.max(-1)])
