"""Videos -> what is on the screen at 0, `every`, 2 `every`, … seconds, as images or as vectors of an encoder.

A frame is on the screen from its own time to that of the next one, whatever the frame rate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.media.image_encoders import Image, ImageEncoder
from msg2.media.video_decoding import decode_frames, main_video_stream, open_media
from msg2.validation import require

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

T = TypeVar("T")

BATCH_SIZE = 64
"""Images that are encoded at once, while as many are decoded."""
_ROUNDING = 0.001
"""Seconds: containers round the times of frames to as little as this, so a frame this late is in time."""


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """Which frames of a video are sampled, and how large they are."""

    every: float = 0.5
    """Seconds from one to the next."""
    size: int = 224
    """Pixels of the shorter side, at most; a smaller frame is not enlarged."""

    def __post_init__(self) -> None:
        require(0.001 <= self.every <= 3600, f"every is {self.every}, it must be from 0.001 to 3600 seconds")
        require(self.size >= 1, f"size is {self.size}, it must be 1 or more")


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrame:
    """What is on the screen at one time: an upright RGB image, uint8 of shape (height, width, 3)."""

    seconds: float
    image: Image


def sample_frames(path: str | Path, options: FrameOptions | None = None) -> Iterator[SampledFrame]:
    """Sample a video at regular times.

    A frame that spans several of these times comes several times, as the same array. The first one also stands for
    the time before it; the last one stays as long as the file says. Of a file that breaks off, the frames before
    that come, and a warning says at which second it was.

    Parameters
    ----------
    path : str or Path
        The video file.
    options : FrameOptions, optional
        How often, and how large.

    Yields
    ------
    SampledFrame
        What is on the screen at 0, `every`, 2 `every`, … seconds; nothing where the file is sound only.

    Raises
    ------
    InputError
        Where the file is no video that can be decoded.
    """
    options, path = options or FrameOptions(), Path(path)
    with open_media(path) as container:
        stream = main_video_stream(container)
        if stream is None:
            return
        convert = _frame_converter(stream, options.size)
        held: VideoFrame | None = None
        count = 0
        for seconds, frame in decode_frames(path, container, stream):
            image = None
            while held is not None and count * options.every < seconds - _ROUNDING:
                image = convert(held) if image is None else image
                yield SampledFrame(count * options.every, image)
                count += 1
            if held is None:
                count = math.floor((seconds + _ROUNDING) / options.every)
            held = frame


def encode_frames(
    path: str | Path, encoder: ImageEncoder, options: FrameOptions | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Sample a video at regular times and encode what is on the screen then.

    A frame that stands for many times is encoded once; the next ones are decoded meanwhile.

    Parameters
    ----------
    path : str or Path
        The video file.
    encoder : ImageEncoder
        What makes vectors of images.
    options : FrameOptions, optional
        How often, and how large.

    Returns
    -------
    tuple of arrays
        The times in seconds, shape (F,), and the vectors, shape (F, width).

    Raises
    ------
    InputError
        Where the file is no video that can be decoded.
    """
    times: list[float] = []
    image_indices: list[int] = []

    def distinct_images() -> Generator[Image]:
        latest, index = None, -1
        for frame in read_ahead(sample_frames(path, options), BATCH_SIZE):
            new = frame.image is not latest
            latest, index = frame.image, index + new
            times.append(frame.seconds)
            image_indices.append(index)
            if new:
                yield latest

    with closing(distinct_images()) as images:  # where the encoder fails, decoding ends here and now
        vectors = [encoder(batch) for batch in iter(lambda: list(islice(images, BATCH_SIZE)), [])]
    none = np.zeros((0, encoder.width), np.float32)
    return np.array(times, np.float64), np.concatenate([none, *vectors])[np.array(image_indices, np.intp)]


def read_ahead(items: Iterable[T], size: int) -> Iterator[T]:
    """Compute the items of an iterable in a thread, ahead of whoever takes them.

    The thread ends with the iterator, also where that is closed or dropped early.

    Parameters
    ----------
    items : iterable
        What is computed in the thread; its exceptions come out here.
    size : int
        How many items the thread is ahead, at most.

    Yields
    ------
    object
        The same items.

    >>> list(read_ahead("abc", 2))
    ['a', 'b', 'c']
    """
    source: Iterator[T] = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1, "msg2 read-ahead") as thread:
        ahead = deque(thread.submit(next, source, end) for _ in range(size))
        try:
            while (item := ahead.popleft().result()) is not end:
                ahead.append(thread.submit(next, source, end))
                yield item
        finally:
            for future in ahead:
                future.cancel()
            if isinstance(source, Generator):
                thread.submit(source.close)  # by the thread that runs it: another one may not


# -- images -----------------------------------------------------------------------------------------------------


def _frame_converter(stream: VideoStream, size: int) -> Callable[[VideoFrame], Image]:
    """A function that makes decoded frames RGB, upright, of square pixels, the shorter side at most `size`."""
    from av.video.reformatter import Interpolation, VideoReformatter

    scaler = VideoReformatter()
    aspect = float(stream.sample_aspect_ratio or 1)  # the width of a pixel, in heights

    def convert(frame: VideoFrame) -> Image:
        height, width = frame.height, frame.width * aspect
        scale = min(1, size / min(height, width), 1 / aspect)
        scaled = scaler.reformat(
            frame, max(1, round(width * scale)), max(1, round(height * scale)), "rgb24",
            interpolation=Interpolation.BICUBIC, threads=1,
        )  # fmt: skip
        return _rotate(scaled.to_ndarray().astype(np.uint8, copy=False), _display_rotation(frame))

    return convert


def _display_rotation(frame: VideoFrame) -> NDArray[np.int32]:
    """What the file says is to be done to the frame, shape (2, 2): (x, y) @ rotation is its place on the screen."""
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    return np.eye(2, dtype=np.int32) if matrix is None else np.frombuffer(matrix, np.int32).reshape(3, 3)[:2, :2]


def _rotate(image: Image, rotation: NDArray[np.int32]) -> Image:
    """The image after the nearest of the eight rotations and reflections of a rectangle."""
    (a, b), (c, d) = rotation.tolist()
    if abs(b) + abs(c) > abs(a) + abs(d):  # x and y change places
        image, a, d = image.transpose(1, 0, 2), c, b
    return np.ascontiguousarray(image[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])
