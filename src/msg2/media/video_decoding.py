"""Video files -> decoded frames with the seconds at which they appear, whatever is wrong with the file.

Seconds count from the start of the container (whose sound may begin before its pictures), so that they agree with
labels and with speech; they come from the file, never from counted frames, and never descend.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msg2.errors import InputError
from msg2.extras import optional_dependency

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

LONGEST_FRAME = 3600.0
"""Seconds that one frame may stay on the screen; a clock that leaves more time between two frames is broken."""
DECODER_THREADS = 4
"""Threads that decode one video."""

_log = logging.getLogger(__name__)

_CLOCK_TOLERANCE = 1.0
"""Seconds: a clock may go this far backwards, or a file be this much shorter than it says, without being broken."""
_PLAYLISTS = ("concat", "dash", "hls")
"""Formats of text files that only name others."""
_DEFAULT_FRAME_RATE = 25
"""Frames per second where a file does not say."""


def decoder_version() -> dict[str, str]:
    """Return PyAV with its version, which has a part in what frames look like; an error where it is not installed."""
    with optional_dependency("reading videos", "media"):
        import av
    return {"av": av.__version__}


@contextmanager
def open_media(path: Path) -> Iterator[InputContainer]:
    """Open a media file; whatever FFmpeg cannot do with it becomes an `InputError` about the file."""
    decoder_version()
    import av

    _check_readable(path)
    try:
        # As a file and nothing else: a name may look like an address, a playlist may point to one.
        with av.open(f"file:{path}", metadata_errors="replace", options={"protocol_whitelist": "file"}) as container:
            if container.format.name in _PLAYLISTS or not (container.streams.video or container.streams.audio):
                raise InputError("holds neither picture nor sound", where=path)
            yield container
    except av.FFmpegError as error:
        hint = "it is another kind of file, or incomplete (a download that broke off?); see whether it plays"
        raise InputError(f"is no video that can be read ({error.strerror})", where=path, hint=hint) from None


def _check_readable(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError("is a folder, not a video", where=path)
        with path.open("rb") as file:
            if not file.read(1):
                raise InputError("is empty", where=path, hint="fetch or export the video again")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=path) from None


def main_video_stream(container: InputContainer) -> VideoStream | None:
    """Return the first video stream that is no cover image; None where there is none."""
    from av.stream import Disposition

    streams = (stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic)
    return next(streams, None)


def decode_frames(
    path: Path, container: InputContainer, stream: VideoStream
) -> Iterator[tuple[float, VideoFrame | None]]:
    """Decode the frames of a stream, in the order in which they are shown.

    A time that is missing, or the same again, is one frame's duration after the one before. One up to a second too
    early counts as the one before. Where the clock goes back further, ahead by more than `LONGEST_FRAME` seconds, or
    ahead by more than a second and beyond the length of the file, it was set anew: the frame comes one duration
    after the one before, and all later ones are shifted alike. So no frame stays without end.

    Parameters
    ----------
    path : Path
        The file, to name in warnings.
    container : InputContainer
        The opened file.
    stream : VideoStream
        A stream of it.

    Yields
    ------
    tuple of (float, VideoFrame or None)
        Seconds, and the frame that appears then; at last the seconds at which the last frame goes, and None.

    Raises
    ------
    InputError
        Where no frame can be decoded.
    """
    start, length, step = start_seconds(container), _duration(container) or math.inf, _frame_duration(stream)
    tick = float(stream.time_base or 0)
    seconds = after = shift = 0.0
    before, frame, resets = None, None, 0
    for frame in _decode(path, container, stream):
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
        lasts = (frame.duration or 0) * tick or step
        yield seconds + min(lasts, LONGEST_FRAME, max(step, length - seconds)), None
    if resets:
        _log.warning("%s: its clock jumps (%d times); pictures after a jump follow those before it", path, resets)


def _decode(path: Path, container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """Decode frames, in the order in which they are shown; what cannot be decoded is left out, with a warning."""
    import av

    if not stream.codec_context:
        raise InputError("its pictures are of a kind that FFmpeg cannot decode", where=path)
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
    if not decoded:
        raise InputError("holds pictures, but none of them can be decoded", where=path)
    if length is not None and reached < length - _CLOCK_TOLERANCE:
        _log.warning("%s: breaks off at second %.1f of %.1f; what comes before is kept", path, reached, length)
    elif lost:
        _log.warning("%s: %d pieces of it cannot be decoded; the others are kept", path, lost)


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


def _frame_duration(stream: VideoStream) -> float:
    """Seconds from one frame to the next, as a rule."""
    return 1 / float(stream.average_rate or stream.guessed_rate or _DEFAULT_FRAME_RATE)
