"""Video files -> pictures with the seconds at which they appear, whatever is wrong with the file.

Seconds count from the start of the container (whose sound may begin before its pictures), so that they agree with
labels and with speech; they come from the file, never from counted pictures, and never descend.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msg2.errors import InputError, MissingExtraError
from msg2.options import FrameOptions

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_log = logging.getLogger(__name__)

_JUMP = 1.0
"""Seconds: a clock may go this far backwards, or a file be this much shorter than it says, without being broken."""
_PLAYLISTS = ("concat", "dash", "hls")
"""Formats of text files that only name others."""
_RATE = 25
"""Pictures per second where a file does not say."""


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What a file holds, by its own account."""

    seconds: float | None
    """Its length, where it says."""
    picture: bool
    """A cover is none."""
    sound: bool


def media_info(path: str | Path) -> MediaInfo:
    """What the file holds; it is opened, nothing is decoded."""
    with opened(Path(path)) as container:
        return MediaInfo(_length(container), film(container) is not None, bool(container.streams.audio))


def decoder_version() -> dict[str, str]:
    """PyAV -> its version, which has a part in what pictures look like; without it, an error says what to install."""
    try:
        import av
    except ImportError:
        raise MissingExtraError("reading videos", "media") from None
    return {"av": av.__version__}


@contextmanager
def opened(path: Path) -> Iterator[InputContainer]:
    """The container; whatever FFmpeg cannot do with it is wrong with the file."""
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


def film(container: InputContainer) -> VideoStream | None:
    """The first stream of pictures that is no cover."""
    from av.stream import Disposition

    films = (stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic)
    return next(films, None)


def timed_pictures(
    path: Path, container: InputContainer, stream: VideoStream, options: FrameOptions
) -> Iterator[tuple[float, VideoFrame | None]]:
    """(seconds, picture) in the order in which they are shown; at last (seconds, None), when the last one goes.

    A time that is missing, or the same again, is one frame's duration after the one before. One up to a second too
    early counts as the one before. Where the clock goes back further, ahead by more than `options.hold` seconds, or
    ahead by more than a second and beyond the length of the file, it was set anew: the picture comes one duration
    after the one before, and all later ones are shifted alike. So no picture stays without end.
    """
    start, length, step = _start(container), _length(container) or math.inf, _step(stream)
    tick = float(stream.time_base or 0)
    seconds = after = shift = 0.0
    before, picture, resets = None, None, 0
    for picture in _decoded(path, container, stream, options.threads):
        stamp = picture.dts if picture.pts is None else picture.pts
        if stamp is None or stamp == before:
            seconds = after
        else:
            told = stamp * tick - start
            ahead = told + shift - seconds
            if ahead < -_JUMP or ahead > options.hold or (ahead > _JUMP and seconds + ahead > length + _JUMP):
                shift, resets = after - told, resets + 1
            seconds = max(seconds, told + shift)
        before, after = stamp, seconds + step
        yield seconds, picture
    if picture is not None:
        lasts = (picture.duration or 0) * tick or step
        yield seconds + min(lasts, options.hold, max(step, length - seconds)), None
    if resets:
        _log.warning("%s: its clock jumps (%d times); pictures after a jump follow those before it", path, resets)


def _decoded(path: Path, container: InputContainer, stream: VideoStream, threads: int) -> Iterator[VideoFrame]:
    """The pictures, in the order in which they are shown; what cannot be decoded is left out, with a warning."""
    import av

    if not stream.codec_context:
        raise InputError("its pictures are of a kind that FFmpeg cannot decode", where=path)
    stream.codec_context.thread_type = av.codec.context.ThreadType.AUTO
    stream.codec_context.thread_count = threads
    start, length = _start(container), _length(container)
    seen = lost = 0
    reached = 0.0
    for packet in chain(_packets(container), [None]):  # at the end, the decoder gives what it has held back
        if packet is not None and packet.pts is not None:
            reached = max(reached, (packet.pts + (packet.duration or 0)) * float(packet.time_base) - start)
        if packet is None or packet.stream_index == stream.index:
            try:
                for picture in stream.decode(packet):
                    seen += 1
                    yield picture
            except av.FFmpegError:
                lost += 1
    if not seen:
        raise InputError("holds pictures, but none of them can be decoded", where=path)
    if length is not None and reached < length - _JUMP:
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


def _start(container: InputContainer) -> float:
    """Seconds on the clock of the container when it begins."""
    return (container.start_time or 0) / 1e6


def _length(container: InputContainer) -> float | None:
    """Seconds, where the container says."""
    return container.duration / 1e6 if container.duration and container.duration > 0 else None


def _step(stream: VideoStream) -> float:
    """Seconds from one picture to the next, as a rule."""
    return 1 / float(stream.average_rate or stream.guessed_rate or _RATE)
