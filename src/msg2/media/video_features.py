"""The features of a video: vectors of its frames and sentences, with their times; no files here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError

DTYPES = {"frame_times": "float64", "frames": "float32", "sentence_times": "float64", "sentences": "float32"}
"""The arrays of features and their types."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """The features of one video; times are seconds, in ascending order, vectors are float32.

    `frame_times` has shape (F,) and `frames` (F, width); `sentence_times` has shape (S, 2), start and end of each
    sentence, and `sentences` (S, width). F or S is 0 where a video has no frames or no narration. `texts` are the
    words of the sentences, or none where only their vectors are known.

    >>> VideoFeatures(np.array([0.0, 1.0]), np.ones((2, 4)), np.zeros((0, 2)), np.zeros((0, 4))).frames.dtype
    dtype('float32')
    """

    frame_times: NDArray[np.float64]
    frames: NDArray[np.float32]
    sentence_times: NDArray[np.float64]
    sentences: NDArray[np.float32]
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in DTYPES.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if not np.isfinite(array).all():
                raise InputError(f"{name} holds a value that is not a number")
            object.__setattr__(self, name, array)
        if self.frame_times.ndim != 1 or self.frames.ndim != 2 or len(self.frames) != len(self.frame_times):
            raise InputError(f"frames of shape {self.frames.shape} do not fit times of shape {self.frame_times.shape}")
        if self.sentence_times.ndim != 2 or self.sentence_times.shape[1] != 2 or self.sentences.ndim != 2:
            raise InputError("sentences need times of shape (S, 2) and vectors of shape (S, width)")
        if len(self.sentences) != len(self.sentence_times):
            raise InputError(f"{len(self.sentences)} sentences have {len(self.sentence_times)} times")
        if self.texts and len(self.texts) != len(self.sentences):
            raise InputError(f"{len(self.sentences)} sentences have {len(self.texts)} texts")
        for name, times in (("frame_times", self.frame_times), ("sentence_times", self.sentence_times[:, 0])):
            if (np.diff(times) < 0).any():
                raise InputError(f"{name} is not in ascending order")
        if (self.sentence_times[:, 1] < self.sentence_times[:, 0]).any():
            raise InputError("a sentence ends before it starts")


def l2_normalize(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale vectors, shape (…, width), to length 1; a vector of zeros stays.

    >>> l2_normalize(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
