"""Videos -> what is on the screen at 0, `every`, 2 `every`, … seconds, as pictures or as vectors of an encoder.

A picture is on the screen from its own time to that of the next one, whatever the frame rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.media.decoding import film, opened, timed_pictures
from msg2.media.pictures import Picture, PictureEncoder
from msg2.options import FrameOptions

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

T = TypeVar("T")

_ROUNDING = 0.001
"""Seconds: containers round the times of pictures to as little as this, so a picture this late is in time."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What is on the screen at one time: an upright RGB picture, uint8 of shape (height, width, 3)."""

    seconds: float
    image: Picture


def frames(path: str | Path, options: FrameOptions | None = None) -> Iterator[Frame]:
    """What is on the screen at every grid time; nothing where the file is sound only.

    A picture that spans several grid times comes several times, as the same array. The first one also stands for the
    grid time before it; the last one stays as long as the file says. Of a file that breaks off, the pictures before
    that come, and a warning says at which second it was.
    """
    options, path = options or FrameOptions(), Path(path)
    with opened(path) as container:
        stream = film(container)
        if stream is None:
            return
        image = _upright(stream, options.size)
        held: VideoFrame | None = None
        count = 0
        for seconds, picture in timed_pictures(path, container, stream, options):
            shown = None
            while held is not None and count * options.every < seconds - _ROUNDING:
                shown = image(held) if shown is None else shown
                yield Frame(count * options.every, shown)
                count += 1
            if held is None:
                count = math.floor((seconds + _ROUNDING) / options.every)
            held = picture


def frame_features(
    path: str | Path, encoder: PictureEncoder, options: FrameOptions | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """The grid times, shape (F,), and the vectors of what is on the screen then, shape (F, width).

    A picture that stands for many grid times is encoded once; the next ones are decoded meanwhile.
    """
    options = options or FrameOptions()
    times: list[float] = []
    which: list[int] = []

    def distinct() -> Generator[Picture]:
        latest, number = None, -1
        for frame in read_ahead(frames(path, options), options.batch):
            new = frame.image is not latest
            latest, number = frame.image, number + new
            times.append(frame.seconds)
            which.append(number)
            if new:
                yield latest

    with closing(distinct()) as pictures:  # where the encoder fails, decoding ends here and now
        vectors = [encoder(batch) for batch in iter(lambda: list(islice(pictures, options.batch)), [])]
    none = np.zeros((0, encoder.width), np.float32)
    return np.array(times, np.float64), np.concatenate([none, *vectors])[np.array(which, np.intp)]


def read_ahead(items: Iterable[T], size: int) -> Iterator[T]:
    """The same items, made by a thread that is at most `size` of them ahead; its exceptions come out here.

    The thread ends with the iterator, also where that is closed or dropped early.

    >>> list(read_ahead("abc", 2))
    ['a', 'b', 'c']
    """
    ready: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
    room, over = Semaphore(size), Event()

    def work() -> None:
        source = iter(items)
        try:
            while room.acquire() and not over.is_set():
                ready.put((next(source),))
        except StopIteration:
            ready.put(None)
        except BaseException as error:
            ready.put(error)
        finally:
            if isinstance(source, Generator):
                source.close()  # by the thread that runs it: another one may not

    thread = Thread(target=work, name="msg2 read-ahead", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item[0]
    finally:
        over.set()
        room.release()
        thread.join()


# -- pictures ---------------------------------------------------------------------------------------------------


def _upright(stream: VideoStream, size: int) -> Callable[[VideoFrame], Picture]:
    """Turns decoded pictures into RGB, upright, of square pixels, the shorter side at most `size`; never enlarged."""
    from av.video.reformatter import Interpolation, VideoReformatter

    scaler = VideoReformatter()
    squeeze = float(stream.sample_aspect_ratio or 1)  # the width of a pixel, in heights

    def image(picture: VideoFrame) -> Picture:
        height, width = picture.height, picture.width * squeeze
        scale = min(1, size / min(height, width), 1 / squeeze)
        scaled = scaler.reformat(
            picture, max(1, round(width * scale)), max(1, round(height * scale)), "rgb24",
            interpolation=Interpolation.BICUBIC, threads=1,
        )  # fmt: skip
        return _turned(scaled.to_ndarray().astype(np.uint8, copy=False), _turn(picture))

    return image


def _turn(picture: VideoFrame) -> NDArray[np.int32]:
    """What the file says is to be done to the picture, shape (2, 2): (x, y) @ turn is its place on the screen."""
    told: Any = picture.side_data.get("DISPLAYMATRIX")
    return np.eye(2, dtype=np.int32) if told is None else np.frombuffer(told, np.int32).reshape(3, 3)[:2, :2]


def _turned(image: Picture, turn: NDArray[np.int32]) -> Picture:
    """The picture after the nearest of the eight turns and mirrorings of a rectangle."""
    (a, b), (c, d) = turn.tolist()
    if abs(b) + abs(c) > abs(a) + abs(d):  # x and y change places
        image, a, d = image.transpose(1, 0, 2), c, b
    return np.ascontiguousarray(image[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])
