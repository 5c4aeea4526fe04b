"""Sprites, small images of things: a body, a pattern and two colours, drawn at any size and angle from distances alone.

A body is a function of the plane that is negative inside (a signed distance, in units of the thing's radius); a point
is covered by ½ − distance · radius of it, between 0 and 1, which makes edges soft by one pixel.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Canvas: TypeAlias = NDArray[np.float32]
Colour: TypeAlias = tuple[float, float, float]
"""Red, green and blue, each 0 … 255."""

TURNS = 24
"""Angles are multiples of a circle's 24th: a thing in motion needs no more, and its sprites can be kept."""

_GOLDEN = 0.618034
"""Multiples of it, modulo 1, stay as far apart as can be, however many there are."""
_MARGIN = 1.3
"""Half a side of a sprite, in radii: a body and its shadow fit in."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a thing looks: the names of its body and of the pattern on it, in two colours."""

    body: str
    pattern: str
    colours: tuple[Colour, Colour]


class Sprite(NamedTuple):
    """A drawn thing, to be put on an image as `image · veil + paint`; shapes (n, n, 1) and (n, n, 3)."""

    veil: Canvas
    paint: Canvas


# -- bodies and patterns, in units of the radius, y pointing down ---------------------------------------------------

_Plane: TypeAlias = Any
"""An array, or what broadcasts to one."""
_Body: TypeAlias = Callable[[_Plane, _Plane], _Plane]


def _box(x: _Plane, y: _Plane, width: float, height: float) -> _Plane:
    return np.maximum(np.abs(x) - width, np.abs(y) - height)


def _disc(x: _Plane, y: _Plane, radius: float) -> _Plane:
    return np.hypot(x, y) - radius


def _wheel(x: _Plane, y: _Plane, teeth: int, depth: float) -> _Plane:
    return _disc(x, y, 0.78) - depth * np.cos(teeth * np.arctan2(y, x))


def _hand(x: _Plane, y: _Plane) -> _Plane:
    """A palm, four fingers upwards, and an arm downwards."""
    fingers = np.maximum(np.abs((x + 0.5) % 0.25 - 0.125) - 0.1, _box(x, y + 0.5, 0.5, 0.45))
    return np.minimum.reduce([_disc(x, y, 0.52), fingers, _box(x, y - 0.7, 0.34, 0.5)])


_BODIES: Mapping[str, _Body] = {
    "disc": lambda x, y: _disc(x, y, 0.85),
    "box": lambda x, y: _box(x, y, 0.75, 0.7),
    "triangle": lambda x, y: np.maximum(y - 0.7, 0.87 * np.abs(x) - 0.5 * y - 0.42),
    "ring": lambda x, y: np.abs(_disc(x, y, 0.62)) - 0.25,
    "bar": lambda x, y: _box(x, y, 0.95, 0.28),
    "diamond": lambda x, y: (np.abs(x) + np.abs(y) - 1) * 0.71,
    "mug": lambda x, y: np.minimum(_box(x + 0.2, y, 0.55, 0.7), np.abs(_disc(x - 0.4, y, 0.36)) - 0.12),
    "cross": lambda x, y: np.minimum(_box(x, y, 0.9, 0.28), _box(x, y, 0.28, 0.9)),
    "bowl": lambda x, y: np.maximum(_disc(x, y + 0.35, 0.95), -0.3 - y),
    "bottle": lambda x, y: np.minimum(_box(x, y - 0.3, 0.45, 0.62), _box(x, y + 0.4, 0.18, 0.52)),
    "gear": lambda x, y: _wheel(x, y, 9, 0.12),
    "leaf": lambda x, y: np.maximum(_disc(x - 0.45, y, 1), _disc(x + 0.45, y, 1)),
    "flower": lambda x, y: _wheel(x, y, 5, 0.2),
}
_PATTERNS: Mapping[str, _Body] = {
    "core": lambda x, y: _disc(x, y, 0.4),
    "stripes": lambda x, y: np.abs(y % 0.5 - 0.25) - 0.12,
    "half": lambda x, _: x,
    "dots": lambda x, y: _disc(x % 0.5 - 0.25, y % 0.5 - 0.25, 0.14),
    "slants": lambda x, y: np.abs((x + y) % 0.7 - 0.35) - 0.15,
}
"""Where a pattern is negative, the second colour shows."""
_PLANES: Mapping[str, _Body] = {**_BODIES, **_PATTERNS, "hand": _hand, "sleeve": lambda _, y: 0.6 - y}
"""All of them; a hand in a sleeve is no thing that a word may look like."""


# -- looks ------------------------------------------------------------------------------------------------------


def draw_distinct_looks(words: Sequence[str], rng: np.random.Generator) -> dict[str, Look]:
    """Draw a look for each word; of 65 words or fewer no two have body and pattern in common, and hues are spread."""
    bodies, patterns = (rng.permutation(list(names)).tolist() for names in (_BODIES, _PATTERNS))
    first = rng.random()
    return {
        word: Look(bodies[i % len(bodies)], patterns[i % len(patterns)], _draw_colours(first + i * _GOLDEN, rng))
        for i, word in enumerate(words)
    }


def draw_look(rng: np.random.Generator) -> Look:
    """Draw a look of no meaning."""
    return Look(list(_BODIES)[rng.integers(len(_BODIES))], list(_PATTERNS)[rng.integers(len(_PATTERNS))],
                _draw_colours(rng.random(), rng))  # fmt: skip


def _draw_colours(hue: float, rng: np.random.Generator) -> tuple[Colour, Colour]:
    """Two colours that go together: one of this hue, and a much lighter or darker one of another."""
    saturation, value = rng.uniform(0.55, 0.9), rng.uniform(0.6, 0.95)
    other = rng.uniform(0.25, 0.75)
    return hsv_colour(hue, saturation, value), hsv_colour(hue + other, rng.uniform(0.1, 0.7), 1.2 - value)


def hsv_colour(hue: float, saturation: float, value: float) -> Colour:
    """Return a colour by hue, saturation and value."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1, saturation, min(1.0, value))
    return 255 * red, 255 * green, 255 * blue


# -- sprites ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def sprite(look: Look, radius: int, turn: int = 0, mirrored: bool = False, mark: Colour | None = None) -> Sprite:
    """Draw a thing."""
    reach = math.ceil(_MARGIN * radius)
    along = np.arange(-reach, reach + 1, dtype=np.float32) / radius
    right, down = (-along if mirrored else along)[None, :], along[:, None]
    cos, sin = math.cos(math.tau * turn / TURNS), math.sin(math.tau * turn / TURNS)
    x, y = cos * right + sin * down, cos * down - sin * right
    body, pattern = _PLANES[look.body], _PLANES[look.pattern]
    distance = body(x, y)
    covered = _coverage(distance, radius)
    first, second = (np.array(colour, dtype=np.float32) for colour in look.colours)
    patterned = _coverage(pattern(x, y), radius)[..., None]
    colour = first + patterned * (second - first)
    # Light comes from above; the rim is dark.
    colour = colour * (1.02 - 0.12 * down - 0.3 * _coverage(-distance - 0.1, radius))[..., None]
    if mark is not None:
        colour = 0.45 * colour + 0.55 * 70
        badge = np.hypot(right - 0.4, down + 0.4) - 0.36
        for paint, width in (((255.0, 255.0, 255.0), 0.14), (mark, 0.0)):
            under = _coverage(badge - width, radius)
            colour += under[..., None] * (np.array(paint, dtype=np.float32) - colour)
            covered = np.maximum(covered, under)
    beside = body(x - 0.12 * (cos + sin), y - 0.12 * (cos - sin))  # where the shadow falls, to the lower right
    shadow = 0.35 * (1 - covered) * np.clip(0.5 - 3 * beside, 0, 1)
    return Sprite((1 - covered - shadow)[..., None], covered[..., None] * colour)


def _coverage(distance: _Plane, radius: int) -> _Plane:
    return np.clip(0.5 - distance * radius, 0, 1)


def paste_sprite(canvas: Canvas, drawn: Sprite, x: int, y: int) -> None:
    """Put a sprite on an image; what is outside is cut."""
    reach = len(drawn.veil) // 2
    top, left = y - reach, x - reach
    rows = slice(max(0, top), max(0, min(len(canvas), top + len(drawn.veil))))
    columns = slice(max(0, left), max(0, min(canvas.shape[1], left + len(drawn.veil))))
    inside = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
    if rows.start < rows.stop and columns.start < columns.stop:
        region = canvas[rows, columns]
        region *= drawn.veil[inside]
        region += drawn.paint[inside]
