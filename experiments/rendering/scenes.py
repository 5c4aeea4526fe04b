"""The scenes of a rendered video, frame by frame: things on a table, and a hand that does something with them.

Every object word of a world has its own look, the same in all its videos; the action word of a step gives the tool in
the hand and the motion. Steps that share words look alike, as they do in reality. Setting, light, camera and clutter
belong to the video and the shot. Lengths in the scene are half heights of the frame, at zoom 1; y points down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from experiments.rendering import sprites
from experiments.rendering.sprites import Canvas, Colour, Look, draw_look, hsv_colour
from msg2.errors import require, require_probability
from msg2.sequences import FloatArray
from msg2.simulation.simulated_features import Storyboard, StoryboardOptions, content_words
from msg2.simulation.simulator import random_stream
from msg2.task import Step
from msg2.text_encoders import Image


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How rendered videos of a world look and sound. `clutter` is the master difficulty."""

    storyboard: StoryboardOptions = field(default_factory=StoryboardOptions)
    """What is shown and said, and when; its frame rate plays no part."""
    width: int = 160
    height: int = 120
    frames_per_second: int = 5
    clutter: int = 4
    """Things in every frame that belong to no step: half of them stay through the video, half through the shot."""
    grain: float = 3.0
    """Standard deviation of the sensor's noise, of 255."""
    black: float = 0.2
    """Of each cut from shot to shot: the frame is black for a moment."""
    noise: float = 0.0
    """How loud the things are that are done, where 1 is as loud as can be; every action has its own sound."""

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            require(32 <= value <= 4096 and value % 2 == 0, f"{name} is {value}, it must be even, from 32 to 4096")
        for name, least, most in (("frames_per_second", 1, 100), ("clutter", 0, 1000)):
            value = getattr(self, name)
            require(least <= value <= most, f"{name.replace('_', '-')} is {value}, it must be from {least} to {most}")
        require(0 <= self.grain < 1000, f"grain is {self.grain}, it must be from 0 to 1000")
        require_probability("black", self.black)
        require_probability("noise", self.noise)


BLACK_SECONDS = 0.4
"""How long a frame is black at a cut."""
_MAIN_SIZE, _OTHER_SIZE, _TOOL_SIZE, _HAND_SIZE, _DROP_SIZE, _DONE_SIZE = 0.45, 0.32, 0.22, 0.3, 0.05, 0.14
_BACKDROP = (2.2, 1.8, 60)
"""The painted backdrop reaches this far from the middle, to the sides and up and down; its pixels per length."""


# -- what steps are done with -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prop:
    """What a step is done with: its objects, the main one first, the tool in the hand, and the name of the motion."""

    objects: tuple[Look, ...]
    tool: Look
    motion: str


MOTIONS: Mapping[str, Callable[[float], tuple[float, float, float]]] = {
    "move": lambda time: (0.35 * math.sin(math.tau * time / 3), 0.0, 0.0),
    "turn": lambda time: (0.0, 0.0, time / 3),
    "shake": lambda time: (0.1 * math.sin(8 * time), 0.06 * math.sin(11 * time), 0.06 * math.sin(9 * time)),
    "pour": lambda time: (0.1 * math.sin(time), -0.3, 0.28 + 0.05 * math.sin(2 * time)),
    "lift": lambda time: (0.0, -0.45 * abs(math.sin(math.tau * time / 5)), 0.0),
}
"""Where the main object is after some seconds, from its place: to the right, down, and turned (1 is once around)."""


def split_step_name(step: Step) -> tuple[str, tuple[str, ...]]:
    """Split a step's name into its action word and its object words, in lower case, without plural s.

    >>> split_step_name("Pour the remaining beans"), split_step_name("fry")
    (('pour', ('remaining', 'bean')), ('fry', ('fry',)))
    """
    action, *objects = content_words(step) or [step]
    return action, tuple(dict.fromkeys(objects)) or (action,)


def draw_props(task: str, steps: Sequence[Step], seed: int) -> tuple[Prop, ...]:
    """Draw what each step is done with, the same in all videos of a task."""
    named = [split_step_name(step) for step in steps]
    things = sorted({word for _, objects in named for word in objects})
    actions = sorted({action for action, _ in named})
    looks = sprites.draw_distinct_looks(things, random_stream(seed, task, "things"))
    rng = random_stream(seed, task, "actions")
    tools = sprites.draw_distinct_looks(actions, rng)
    motions = rng.permutation(list(MOTIONS)).tolist()
    return tuple(
        Prop(tuple(looks[word] for word in objects), tools[action], motions[actions.index(action) % len(motions)])
        for action, objects in named
    )


# -- setting and camera -----------------------------------------------------------------------------------------


class SceneItem(NamedTuple):
    """A thing in the scene: its middle, its radius, how far it is turned (1 is once around), and its mark if done."""

    look: Look
    x: float
    y: float
    size: float
    turned: float = 0.0
    mark: Colour | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Where a video is made: the painted backdrop, things that stand around, where and by whom the work is done."""

    backdrop: Canvas
    clutter: tuple[SceneItem, ...]
    work: tuple[float, float]
    hand: Look
    tint: Canvas


@dataclass(frozen=True, slots=True, eq=False)
class CameraShot:
    """How the camera looks on: its middle, its zoom, mirrored or not; the light, and what else stands around."""

    x: float
    y: float
    zoom: float
    mirrored: bool
    light: float
    clutter: tuple[SceneItem, ...]
    black: bool
    """It begins with a black moment."""


def _draw_setting(options: RenderOptions, rng: np.random.Generator) -> Setting:
    backdrop, clutter = _draw_backdrop(rng), _draw_clutter(options.clutter - options.clutter // 2, rng)
    work = rng.uniform(-0.2, 0.2), rng.uniform(-0.05, 0.2)
    skin = hsv_colour(rng.uniform(0.04, 0.09), rng.uniform(0.25, 0.6), rng.uniform(0.45, 0.95))
    sleeve = hsv_colour(rng.random(), rng.uniform(0, 0.7), rng.uniform(0.2, 0.9))
    tint = rng.uniform(0.85, 1.12, 3).astype(np.float32)
    return Setting(backdrop, clutter, work, Look("hand", "sleeve", (skin, sleeve)), tint)


def _draw_shot(options: RenderOptions, rng: np.random.Generator) -> CameraShot:
    return CameraShot(
        rng.uniform(-0.25, 0.25),
        rng.uniform(-0.1, 0.2),
        (0.85, 0.95, 1.05, 1.15)[rng.integers(4)],
        rng.random() < 0.5,
        rng.uniform(0.85, 1.15),
        _draw_clutter(options.clutter // 2, rng),
        rng.random() < options.black,
    )


def _draw_clutter(count: int, rng: np.random.Generator) -> tuple[SceneItem, ...]:
    return tuple(
        SceneItem(draw_look(rng), rng.uniform(-1.4, 1.4), rng.uniform(-0.9, 1.0), rng.uniform(0.12, 0.32), rng.random())
        for _ in range(count)
    )


def _draw_backdrop(rng: np.random.Generator) -> Canvas:
    """A wall with a paper, and a table with a grain, each in a colour of its own and softly uneven."""
    wide, high, scale = _BACKDROP
    x = np.linspace(-wide, wide, round(2 * wide * scale), dtype=np.float32)[None, :]
    y = np.linspace(-high, high, round(2 * high * scale), dtype=np.float32)[:, None]
    uneven = np.zeros((y.size, x.size), dtype=np.float32)
    for _ in range(6):
        across, down = rng.uniform(-5, 5, 2)
        uneven += np.cos(across * x + down * y + rng.uniform(0, math.tau)) / 6
    wall, table = (
        np.array(hsv_colour(rng.random(), rng.uniform(0.1, 0.45), rng.uniform(*values)), dtype=np.float32)
        for values in ((0.45, 0.95), (0.3, 0.85))
    )
    paper = np.cos(rng.uniform(6, 25) * x + rng.choice([0, 1]) * rng.uniform(6, 25) * y)
    wood = np.cos(rng.uniform(15, 40) * y + 3 * uneven + 0.5 * x)
    edge = rng.uniform(-0.35, -0.1)
    strength = np.where(y < edge, 0.06 * paper, 0.05 * wood) + 0.15 * uneven + 0.06 * (y - edge)
    colours = np.where((y < edge)[..., None], wall, table)
    return np.asarray(colours * (1 + strength[..., None]), dtype=np.float32)


# -- frames -----------------------------------------------------------------------------------------------------


def draw_frames(
    storyboard: Storyboard, props: Sequence[Prop], options: RenderOptions, rng: np.random.Generator
) -> Iterator[Image]:
    """Draw the frames of a video.

    A step that is shown in full is being performed: its objects are in the middle, the main one in motion, with a hand.
    What is shown with less strength stands aside, so much smaller. What is done lies at the back with its mark.
    """
    setting = _draw_setting(options, rng)
    shots = [_draw_shot(options, rng) for _ in range(1 + int(storyboard.shots[-1]))]
    grain = _draw_grain(options, rng)
    black_frames = round(BLACK_SECONDS * options.frames_per_second)
    begins = np.searchsorted(storyboard.shots, storyboard.shots)  # the first frame of each frame's shot
    layer, drawn_state = np.empty(0, dtype=np.float32), None
    for frame, number in enumerate(storyboard.shots.tolist()):
        shot, shown = shots[number], storyboard.shown[frame]
        if shot.black and 0 < begins[frame] <= frame < begins[frame] + black_frames:
            yield np.zeros((options.height, options.width, 3), dtype=np.uint8)
            continue
        aside = np.where(shown < 1, shown, 0)
        state = (number, storyboard.done[frame].tobytes(), aside.tobytes())
        if state != drawn_state:  # most frames differ from the last one in what moves only
            layer, drawn_state = _project_backdrop(setting.backdrop, shot, options), state
            background = _background_items(storyboard.done[frame], aside, props)
            for item in (*background, *setting.clutter, *shot.clutter):
                _draw_item(layer, item, shot)
        canvas = layer.copy()
        performed = np.flatnonzero(shown >= 1).tolist()
        for place, n in enumerate(performed):
            beside = 1.1 * (place - (len(performed) - 1) / 2)
            for item in _performed_items(props[n], float(storyboard.frame_times[frame]), beside, setting):
                _draw_item(canvas, item, shot)
        canvas *= setting.tint * shot.light
        canvas += grain[rng.integers(len(grain))]
        yield np.clip(canvas, 0, 255, out=canvas).astype(np.uint8)


def _background_items(done: FloatArray, aside: FloatArray, props: Sequence[Prop]) -> Iterator[SceneItem]:
    """What is done, in a row at the back, each step at its own place; and what stands aside."""
    for n in np.flatnonzero(done).tolist():
        x = 2.4 * (n + 0.5) / len(props) - 1.2
        yield SceneItem(props[n].objects[0], x, -0.42, _DONE_SIZE, mark=props[n].tool.colours[0])
    for n in np.flatnonzero(aside).tolist():
        for i, look in enumerate(props[n].objects):
            yield SceneItem(look, -0.9 + 0.35 * i, 0.1 + 0.1 * i, _MAIN_SIZE * float(aside[n]))


def _performed_items(prop: Prop, time: float, beside: float, setting: Setting) -> Iterator[SceneItem]:
    x, y = setting.work[0] + beside, setting.work[1]
    for number, look in enumerate(prop.objects[1:]):  # around the main one, none where another is
        angle, distance = 2.7 + 2.4 * number, 0.7 + 0.04 * number
        yield SceneItem(look, x + distance * math.cos(angle), y + distance * math.sin(angle), _OTHER_SIZE)
    right, down, turned = MOTIONS[prop.motion](time)
    x, y = x + right, y + down
    yield SceneItem(prop.objects[0], x, y, _MAIN_SIZE, turned)
    if prop.motion == "pour":
        drop = Look("disc", "core", prop.objects[0].colours[::-1])
        for fallen in range(4):
            yield SceneItem(drop, x + 0.3, y + 0.2 + 0.6 * ((time + fallen / 4) % 1), _DROP_SIZE)
    yield SceneItem(prop.tool, x + 0.28, y + 0.1, _TOOL_SIZE, turned)
    yield SceneItem(setting.hand, x + 0.42, y + 0.45, _HAND_SIZE, -0.08)


def _project_backdrop(backdrop: Canvas, shot: CameraShot, options: RenderOptions) -> Canvas:
    """What the camera sees of the backdrop: the nearest of its pixels, a copy."""
    wide, high, scale = _BACKDROP
    unit = options.height / 2 * shot.zoom
    right = (np.arange(options.width) - options.width / 2) / unit * (-1 if shot.mirrored else 1)
    down = (np.arange(options.height) - options.height / 2) / unit
    columns = np.clip((shot.x + right + wide) * scale, 0, backdrop.shape[1] - 1).astype(np.int64)
    rows = np.clip((shot.y + down + high) * scale, 0, backdrop.shape[0] - 1).astype(np.int64)
    return np.asarray(backdrop[rows[:, None], columns])


def _draw_item(canvas: Canvas, item: SceneItem, shot: CameraShot) -> None:
    height, width, _ = canvas.shape
    unit = height / 2 * shot.zoom
    right, down = (item.x - shot.x) * unit * (-1 if shot.mirrored else 1), (item.y - shot.y) * unit
    turn = round(item.turned * sprites.TURNS) % sprites.TURNS
    drawn = sprites.sprite(item.look, max(1, round(item.size * unit)), turn, shot.mirrored, item.mark)
    sprites.paste_sprite(canvas, drawn, round(width / 2 + right), round(height / 2 + down))


def _draw_grain(options: RenderOptions, rng: np.random.Generator) -> Canvas:
    """The sensor's noise, the same in all three colours: a few images of it that are used in any order."""
    return rng.normal(0, options.grain, (16, options.height, options.width, 1)).astype(np.float32)
