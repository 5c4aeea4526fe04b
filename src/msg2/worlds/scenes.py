"""What a rendered video shows, picture by picture: things on a table, and a hand that does something with them.

Things and motions are those of the step (`msg2.worlds.props`); place, light, camera and clutter belong to the video and
the shot. Lengths on the stage are half heights of the picture, at zoom 1; y points down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msg2.media.pictures import Picture
from msg2.options import RenderOptions
from msg2.worlds.props import MOTIONS, Prop
from msg2.worlds.script import Script
from msg2.worlds.sprites import TURNS, Array, Colour, Look, any_look, hand_look, put, shade, sprite

_MAIN_SIZE, _OTHER_SIZE, _TOOL_SIZE, _HAND_SIZE, _DROP_SIZE, _DONE_SIZE = 0.45, 0.32, 0.22, 0.3, 0.05, 0.14
_BACKDROP = (2.2, 1.8, 60)
"""The painted place reaches this far from the middle, to the sides and up and down; its pixels per length."""


# -- place and camera -------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """A thing on the stage: its middle, its radius, how far it is turned (1 is once around), and its mark if done."""

    look: Look
    x: float
    y: float
    size: float
    turned: float = 0.0
    mark: Colour | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a video is made: the painted backdrop, things that stand around, where and by whom the work is done."""

    backdrop: Array
    clutter: tuple[Item, ...]
    work: tuple[float, float]
    skin: Colour
    sleeve: Colour
    tint: Array


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """How the camera looks on: its middle, its zoom, mirrored or not; the light, and what else stands around."""

    x: float
    y: float
    zoom: float
    mirrored: bool
    light: float
    clutter: tuple[Item, ...]
    black: bool
    """It begins with a black moment."""


def _place(options: RenderOptions, rng: np.random.Generator) -> Place:
    return Place(
        _backdrop(rng),
        _clutter(options.clutter - options.clutter // 2, rng),
        (rng.uniform(-0.2, 0.2), rng.uniform(-0.05, 0.2)),
        shade(rng.uniform(0.04, 0.09), rng.uniform(0.25, 0.6), rng.uniform(0.45, 0.95)),
        shade(rng.random(), rng.uniform(0, 0.7), rng.uniform(0.2, 0.9)),
        rng.uniform(0.85, 1.12, 3).astype(np.float32),
    )


def _shot(options: RenderOptions, rng: np.random.Generator) -> Shot:
    return Shot(
        rng.uniform(-0.25, 0.25),
        rng.uniform(-0.1, 0.2),
        (0.85, 0.95, 1.05, 1.15)[rng.integers(4)],
        rng.random() < 0.5,
        rng.uniform(0.85, 1.15),
        _clutter(options.clutter // 2, rng),
        rng.random() < options.black,
    )


def _clutter(count: int, rng: np.random.Generator) -> tuple[Item, ...]:
    return tuple(
        Item(any_look(rng), rng.uniform(-1.4, 1.4), rng.uniform(-0.9, 1.0), rng.uniform(0.12, 0.32), rng.random())
        for _ in range(count)
    )


def _backdrop(rng: np.random.Generator) -> Array:
    """A wall with a paper, and a table with a grain, each in a colour of its own and softly uneven."""
    wide, high, scale = _BACKDROP
    x = np.linspace(-wide, wide, round(2 * wide * scale), dtype=np.float32)[None, :]
    y = np.linspace(-high, high, round(2 * high * scale), dtype=np.float32)[:, None]
    uneven = np.zeros((y.size, x.size), dtype=np.float32)
    for _ in range(6):
        across, down = rng.uniform(-5, 5, 2)
        uneven += np.cos(across * x + down * y + rng.uniform(0, math.tau)) / 6
    wall, table = (
        np.array(shade(rng.random(), rng.uniform(0.1, 0.45), rng.uniform(*values)), dtype=np.float32)
        for values in ((0.45, 0.95), (0.3, 0.85))
    )
    paper = np.cos(rng.uniform(6, 25) * x + rng.choice([0, 1]) * rng.uniform(6, 25) * y)
    wood = np.cos(rng.uniform(15, 40) * y + 3 * uneven + 0.5 * x)
    edge = rng.uniform(-0.35, -0.1)
    strength = np.where(y < edge, 0.06 * paper, 0.05 * wood) + 0.15 * uneven + 0.06 * (y - edge)
    colours = np.where((y < edge)[..., None], wall, table)
    return np.asarray(colours * (1 + strength[..., None]), dtype=np.float32)


# -- pictures ---------------------------------------------------------------------------------------------------


def pictures(
    script: Script, props: Sequence[Prop], options: RenderOptions, rng: np.random.Generator
) -> Iterator[Picture]:
    """The frames of a video as `script` has them, one at a time; `props` are those of its steps.

    A step that is shown in full is being performed: its objects are in the middle, the main one in motion, with a hand.
    What is shown with less strength stands aside, so much smaller. What is done lies at the back with its mark.
    """
    place = _place(options, rng)
    shots = [_shot(options, rng) for _ in range(1 + int(script.shots[-1]))]
    grain = _grain(options, rng)
    black_frames = round(options.black_seconds * options.frames_per_second)
    begins = np.searchsorted(script.shots, script.shots)  # the first frame of each frame's shot
    layer, drawn = np.empty(0, dtype=np.float32), None
    for frame, number in enumerate(script.shots.tolist()):
        shot, shown = shots[number], script.shown[frame]
        if shot.black and 0 < begins[frame] <= frame < begins[frame] + black_frames:
            yield np.zeros((options.height, options.width, 3), dtype=np.uint8)
            continue
        aside = np.where(shown < 1, shown, 0)
        still = (number, script.done[frame].tobytes(), aside.tobytes())
        if still != drawn:  # most frames differ from the last one in what moves only
            layer, drawn = _filmed(place.backdrop, shot, options), still
            for item in _still(script.done[frame], aside, props):
                _draw(layer, item, shot)
            for item in (*place.clutter, *shot.clutter):
                _draw(layer, item, shot)
        picture = layer.copy()
        performed = np.flatnonzero(shown >= 1).tolist()
        for among, n in enumerate(performed):
            beside = 1.1 * (among - (len(performed) - 1) / 2)
            for item in _performed(props[n], float(script.frame_times[frame]), beside, place):
                _draw(picture, item, shot)
        picture *= place.tint * shot.light
        picture += grain[rng.integers(len(grain))]
        yield np.clip(picture, 0, 255, out=picture).astype(np.uint8)


def _still(done: NDArray[np.float64], aside: NDArray[np.float64], props: Sequence[Prop]) -> Iterator[Item]:
    """What is done, in a row at the back, each step at its own place; and what stands aside."""
    for n in np.flatnonzero(done).tolist():
        x = 2.4 * (n + 0.5) / len(props) - 1.2
        yield Item(props[n].objects[0], x, -0.42, _DONE_SIZE, mark=props[n].tool.colours[0])
    for n in np.flatnonzero(aside).tolist():
        for i, look in enumerate(props[n].objects):
            yield Item(look, -0.9 + 0.35 * i, 0.1 + 0.1 * i, _MAIN_SIZE * float(aside[n]))


def _performed(prop: Prop, time: float, beside: float, place: Place) -> Iterator[Item]:
    x, y = place.work[0] + beside, place.work[1]
    for number, look in enumerate(prop.objects[1:]):  # around the main one, none where another is
        angle, distance = 2.7 + 2.4 * number, 0.7 + 0.04 * number
        yield Item(look, x + distance * math.cos(angle), y + distance * math.sin(angle), _OTHER_SIZE)
    right, down, turned = MOTIONS[prop.motion](time)
    x, y = x + right, y + down
    yield Item(prop.objects[0], x, y, _MAIN_SIZE, turned)
    if prop.motion == "pour":
        drop = Look("disc", "core", prop.objects[0].colours[::-1])
        for fallen in range(4):
            yield Item(drop, x + 0.3, y + 0.2 + 0.6 * ((time + fallen / 4) % 1), _DROP_SIZE)
    yield Item(prop.tool, x + 0.28, y + 0.1, _TOOL_SIZE, turned)
    yield Item(hand_look(place.skin, place.sleeve), x + 0.42, y + 0.45, _HAND_SIZE, -0.08)


def _filmed(backdrop: Array, shot: Shot, options: RenderOptions) -> Array:
    """What the camera sees of the backdrop: the nearest of its pixels, a copy."""
    wide, high, scale = _BACKDROP
    unit = options.height / 2 * shot.zoom
    right = (np.arange(options.width) - options.width / 2) / unit * (-1 if shot.mirrored else 1)
    down = (np.arange(options.height) - options.height / 2) / unit
    columns = np.clip((shot.x + right + wide) * scale, 0, backdrop.shape[1] - 1).astype(np.int64)
    rows = np.clip((shot.y + down + high) * scale, 0, backdrop.shape[0] - 1).astype(np.int64)
    seen: Array = backdrop[rows[:, None], columns]
    return seen


def _draw(picture: Array, item: Item, shot: Shot) -> None:
    height, width, _ = picture.shape
    unit = height / 2 * shot.zoom
    right, down = (item.x - shot.x) * unit * (-1 if shot.mirrored else 1), (item.y - shot.y) * unit
    turn = round(item.turned * TURNS) % TURNS
    drawn = sprite(item.look, max(1, round(item.size * unit)), turn, shot.mirrored, item.mark)
    put(picture, drawn, round(width / 2 + right), round(height / 2 + down))


def _grain(options: RenderOptions, rng: np.random.Generator) -> Array:
    """The sensor's noise, the same in all three colours: a few pictures of it that are used in any order."""
    return rng.normal(0, options.grain, (16, options.height, options.width, 1)).astype(np.float32)
