"""Recipes for test videos: every picture carries its own number, so that times and content can be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BARS = 11
"""Of a painted picture: the first is always white, the others are the bits of a number."""
TICKS = 1000
"""Per second: the clock of the pictures."""


def painted(number: int, height: int = 48, width: int = 88) -> np.ndarray:
    """White bars in the upper half, on black: turned or mirrored, they would read otherwise."""
    bits = np.array([1, *(number >> place & 1 for place in range(BARS - 1))], np.uint8) * 255
    row = bits[np.arange(width) * BARS // width]
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2] = row[None, :, None]
    return image


def number(image: np.ndarray) -> int:
    """What is painted on an upright picture of any size."""
    height, width, _ = image.shape
    columns = ((np.arange(BARS) + 0.5) * width / BARS).astype(int)
    upper, lower = (image[int(height * share), columns].mean(axis=1) > 127 for share in (0.25, 0.75))
    assert upper[0], "it is not upright"
    assert not lower.any(), "it is not upright"
    return sum(int(bit) << place for place, bit in enumerate(upper[1:]))


def filmed(
    path: Path, seconds: Sequence[float] = (), *, codec: str = "libx264", sound: float = 0.0, tone: str = "aac",
    size: tuple[int, int] = (48, 88), turn: dict[str, Any] | None = None, container: dict[str, str] | None = None,
    form: str | None = None, cover: bool = False, shape: Fraction | None = None,
    stored: Callable[[np.ndarray], np.ndarray] = lambda image: image,
) -> Path:  # fmt: skip
    """A video whose picture k, with k painted on it, appears at seconds[k]; `sound` is how long a tone is heard.

    `turn` is what the file says is to be done to its pictures, `stored` what was done to them before.
    """
    av = pytest.importorskip("av")
    with av.open(str(path), "w", format=form, options=container or {}) as file:
        film = None
        if seconds:
            film = file.add_stream(codec, rate=25)
            film.height, film.width, _ = stored(painted(0, *size)).shape
            film.pix_fmt = "yuv420p"
            film.codec_context.time_base = Fraction(1, TICKS)
            if codec == "libx264":
                film.options = {"preset": "ultrafast", "g": "10", "crf": "18"}
            if shape is not None:
                film.codec_context.sample_aspect_ratio = shape
            if turn is not None:
                film.set_display_rotation(**turn)
        voice = file.add_stream(tone, rate=48_000) if sound else None
        if cover:
            picture = file.add_stream("mjpeg", rate=1)
            picture.height, picture.width, picture.pix_fmt = 48, 88, "yuvj420p"
            picture.disposition = av.stream.Disposition.attached_pic
            frame = av.VideoFrame.from_ndarray(painted(999), format="rgb24").reformat(format="yuvj420p")
            frame.pts, frame.time_base = 0, Fraction(1, 1)
            file.mux([*picture.encode(frame), *picture.encode()])
        events = [(at, "film", k) for k, at in enumerate(seconds)]
        events += [(block * 0.02, "voice", block) for block in range(round(sound / 0.02))]
        for at, kind, k in sorted(events, key=lambda event: event[0]):
            if kind == "film":
                image = np.ascontiguousarray(stored(painted(k, *size)))
                frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
                frame.pts, frame.time_base = round(at * TICKS), Fraction(1, TICKS)
                file.mux(film.encode(frame))
            else:
                wave = np.sin(np.arange(k * 960, (k + 1) * 960) / 48_000 * 880 * np.pi).astype(np.float32)
                block = av.AudioFrame.from_ndarray(wave[None] * 0.3, format="fltp", layout="mono")
                block.sample_rate, block.pts, block.time_base = 48_000, k * 960, Fraction(1, 48_000)
                file.mux(voice.encode(block))
        for stream in (film, voice):
            if stream is not None:
                file.mux(stream.encode())
    return path


@pytest.fixture(scope="session")
def film() -> Callable[..., Path]:
    """Makes a video: `filmed`."""
    return filmed


@pytest.fixture(scope="session")
def read_number() -> Callable[[np.ndarray], int]:
    """Reads what is painted on a picture: `number`."""
    return number
