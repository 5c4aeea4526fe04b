"""Decode video files and sample what is on the screen at 0, `every`, 2 `every`, … seconds, as images or as vectors.

Seconds count from the start of the container (whose sound may begin before its pictures), so that they agree with
labels and with speech. They come from the file, never from counted frames, and never descend, whatever is wrong with
the file. A frame is on the screen from its own time to that of the next one, whatever the frame rate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from msg2.errors import InputError, optional_dependency, require
from msg2.formats.source import Source
from msg2.media.image_encoders import ImageEncoder
from msg2.options import Count, options_class
from msg2.text_encoders import Image

if TYPE_CHECKING:
    from av import AudioStream, Packet, VideoFrame, VideoStream
    from av.container import InputContainer
    from av.stream import Stream


LONGEST_FRAME = 3600.0
"""Seconds that one frame may stay on the screen; a clock that leaves more time between two frames is broken."""
DECODER_THREADS = 4  # threads that decode one video

_log = logging.getLogger(__name__)

_CLOCK_TOLERANCE = 1.0
"""Seconds: a clock may go this far backwards, or a file be this much shorter than it says, without being broken."""
_PLAYLISTS = ("concat", "dash", "hls")  # formats of text files that only name others
_DEFAULT_FRAME_RATE = 25  # frames per second where a file does not say


def decoder_version() -> dict[str, str]:
    """Return PyAV with its version, which has a part in what frames look like; an error where it is not installed."""
    with optional_dependency("reading videos", "video"):
        import av
    return {"av": av.__version__}


@contextmanager
def open_media(path: Path) -> Iterator[InputContainer]:
    """Open a media file; whatever FFmpeg cannot do with it becomes an `InputError` about the file."""
    decoder_version()
    import av

    source = Source.at(path)
    require(not source.is_folder, "is a folder, not a video", where=path)
    require(source.head, "is empty", where=path, hint="fetch or export the video again")
    try:
        # As a file and nothing else: a name may look like an address, a playlist may point to one.
        with av.open(f"file:{path}", metadata_errors="replace", options={"protocol_whitelist": "file"}) as container:
            if container.format.name in _PLAYLISTS or not (container.streams.video or container.streams.audio):
                raise InputError("holds neither picture nor sound", where=path)
            yield container
    except av.FFmpegError as error:
        hint = "it is another kind of file, or incomplete (a download that broke off?); see whether it plays"
        raise InputError(f"is no video that can be read ({error.strerror})", where=path, hint=hint) from None


def decode_frames(
    path: Path, container: InputContainer, stream: VideoStream
) -> Iterator[tuple[float, VideoFrame | None]]:
    """Decode the frames of a stream, in the order in which they are shown.

    A time that is missing or repeated is one frame after the one before. Where the clock goes back by more than a
    second, or ahead beyond `LONGEST_FRAME` or the end of the file, later frames are shifted to follow those before.
    """
    start, length = start_seconds(container), _duration(container) or math.inf
    step = 1 / float(stream.average_rate or stream.guessed_rate or _DEFAULT_FRAME_RATE)  # seconds, as a rule
    tick = float(stream.time_base or 0)
    seconds = after = shift = 0.0
    before, frame, resets = None, None, 0
    for frame in decode_stream(path, container, stream):
        stamp = frame.dts if frame.pts is None else frame.pts
        if stamp is None or stamp == before:
            seconds = after
        else:
            stated = stamp * tick - start
            ahead = stated + shift - seconds
            beyond_end = ahead > _CLOCK_TOLERANCE and seconds + ahead > length + _CLOCK_TOLERANCE
            if ahead < -_CLOCK_TOLERANCE or ahead > LONGEST_FRAME or beyond_end:
                shift, resets = after - stated, resets + 1
            seconds = max(seconds, stated + shift)
        before, after = stamp, seconds + step
        yield seconds, frame
    if frame is not None:
        yield seconds + min((frame.duration or 0) * tick or step, LONGEST_FRAME, max(step, length - seconds)), None
    if resets:
        _log.warning("%s: its clock jumps (%d times); pictures after a jump follow those before it", path, resets)


def decode_stream(path: Path, container: InputContainer, stream: VideoStream | AudioStream) -> Iterator[Any]:
    """Decode the frames of pictures or sound, in their order; what cannot be decoded is left out, with a warning."""
    import av

    kind = "pictures" if stream.type == "video" else "sound"
    require(stream.codec_context, f"its {kind} cannot be decoded: FFmpeg does not know the codec", where=path)
    stream.codec_context.thread_type = av.codec.context.ThreadType.AUTO
    stream.codec_context.thread_count = DECODER_THREADS
    start, length = start_seconds(container), _duration(container)
    decoded = lost = 0
    reached = 0.0
    for packet in chain(_packets(container), [None]):  # at the end, the decoder gives what it has held back
        if packet is not None and packet.pts is not None:
            reached = max(reached, (packet.pts + (packet.duration or 0)) * float(packet.time_base) - start)
        if packet is None or packet.stream_index == stream.index:
            try:
                for frame in stream.decode(packet):
                    decoded += 1
                    yield frame
            except av.FFmpegError:
                lost += 1
    require(decoded or (not lost and kind != "pictures"), f"has {kind}, but cannot be decoded", where=path)
    if length is not None and reached < length - _CLOCK_TOLERANCE:
        _log.warning("%s: breaks off at second %.1f of %.1f; what comes before is kept", path, reached, length)
    elif lost:
        _log.warning("%s: %d pieces of its %s cannot be decoded; the others are kept", path, lost, kind)


def _packets(container: InputContainer) -> Iterator[Packet[Stream]]:
    """Of all streams, as far as they can be read: the end of the sound, too, shows whether a file is whole."""
    import av

    try:
        yield from (packet for packet in container.demux() if packet.size)
    except av.FFmpegError as error:
        _log.debug("reading ends early: %s", error)


def start_seconds(container: InputContainer) -> float:
    """Seconds on the clock of the container when it begins."""
    return (container.start_time or 0) / 1e6


def _duration(container: InputContainer) -> float | None:
    """Seconds, where the container says."""
    return container.duration / 1e6 if container.duration and container.duration > 0 else None


BATCH_SIZE = 64  # images that are encoded at once, while as many are decoded
_ROUNDING = 0.001  # seconds: containers round the times of frames to as little as this, so a frame this late is in time


@options_class
class FrameOptions:
    """Which frames of a video are sampled, and how large they are."""

    every: Annotated[float, Field(ge=0.001, le=3600)] = 0.5
    """Seconds from one to the next."""
    size: Count = 224
    """Pixels of the shorter side, at most; a smaller frame is not enlarged."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrame:
    """What is on the screen at one time: an upright RGB image, uint8 of shape (height, width, 3)."""

    seconds: float
    image: Image


def sample_frames(path: str | Path, options: FrameOptions | None = None) -> Iterator[SampledFrame]:
    """Sample a video at regular times; a frame that spans several of them comes several times, as the same array."""
    options, path = options or FrameOptions(), Path(path)
    with open_media(path) as container:
        if (stream := _video_stream(container)) is None:
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


def frame_at(path: str | Path, seconds: float, options: FrameOptions | None = None) -> Image | None:
    """What is on the screen at one time, or last before it; None where there are no pictures."""
    options, path = options or FrameOptions(), Path(path)
    with open_media(path) as container:
        import av

        if (stream := _video_stream(container)) is None:
            return None
        start, tick = start_seconds(container), float(stream.time_base or 0)

        def last_frame(since: float) -> VideoFrame | None:
            """The last frame that is on the screen by then, of those from some second on."""
            with suppress(av.FFmpegError):  # what cannot be searched is decoded from where it stands
                container.seek(int((since + start) * 1e6))
            shown = None
            for frame in decode_stream(path, container, stream):
                if frame.pts is not None and frame.pts * tick - start > seconds + _ROUNDING:
                    return shown
                shown = frame
            return shown

        # Files are searched by when frames are decoded, which may be earlier than when they are shown.
        attempts = (last_frame(max(seconds - earlier, 0.0)) for earlier in (0.0, 10.0, math.inf))
        shown = next((frame for frame in attempts if frame is not None), None)
        return None if shown is None else _frame_converter(stream, options.size)(shown)


def _video_stream(container: InputContainer) -> VideoStream | None:
    """The pictures of a file, not those of its cover."""
    from av.stream import Disposition

    streams = container.streams.video
    return next((video for video in streams if not video.disposition & Disposition.attached_pic), None)


def encode_frames(
    path: str | Path, encoder: ImageEncoder, options: FrameOptions | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Sample a video at regular times and encode what is on the screen then; a thread encodes as frames are decoded."""
    times: list[float] = []
    image_indices: list[int] = []

    def distinct_images() -> Iterator[Image]:
        latest, index, budget = None, -1, Source.at(path).unpacking_budget
        for frame in sample_frames(path, options):
            budget.require(unpacked=4 * encoder.width * len(times))  # a broken clock may tell of any number of hours
            new = frame.image is not latest
            latest, index = frame.image, index + new
            times.append(frame.seconds)
            image_indices.append(index)
            if new:
                yield latest

    images, encoded = distinct_images(), [np.zeros((0, encoder.width), np.float32)]
    with ThreadPoolExecutor(1, "msg2 encoder") as thread:
        pending: list[Future[NDArray[np.float32]]] = []
        while batch := list(islice(images, BATCH_SIZE)):
            encoded += [future.result() for future in pending]  # so that one batch waits at most
            pending = [thread.submit(encoder, batch)]
        encoded += [future.result() for future in pending]
    return np.array(times, np.float64), np.concatenate(encoded)[np.array(image_indices, np.intp)]


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
        image: Image = np.ascontiguousarray(scaled.to_ndarray(), np.uint8)
        matrix: Any = frame.side_data.get("DISPLAYMATRIX")
        return image if matrix is None else _rotate(image, np.frombuffer(matrix, np.int32).reshape(3, 3))

    return convert


def _rotate(image: Image, matrix: NDArray[np.int32]) -> Image:
    """The image after the nearest of the eight rotations and reflections of a rectangle, (x, y) -> (x, y) @ matrix."""
    (a, b, _), (c, d, _), _ = matrix.tolist()
    if abs(b) + abs(c) > abs(a) + abs(d):  # x and y change places
        image, a, d = image.transpose(1, 0, 2), c, b
    return np.ascontiguousarray(image[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])
