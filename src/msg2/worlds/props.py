"""What the steps of a rendered world are done with: looks for the words of their names, and motions.

Every object word of a world has its own look, the same in all its videos; the action word of a step gives the tool in
the hand and the motion. Steps that share words look alike, as they do in reality.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msg2.task import Step
from msg2.worlds.features import SMALL_WORDS, stream
from msg2.worlds.sprites import Look, distinct_looks


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


def words_of(step: Step) -> tuple[str, tuple[str, ...]]:
    """The action word of a step's name and its object words, in lower case, without plural s or small words.

    >>> words_of("Pour the remaining beans"), words_of("fry")
    (('pour', ('remaining', 'bean')), ('fry', ('fry',)))
    """
    words = [word.removesuffix("s") for word in re.findall(r"\w+", step.casefold())]
    action, *objects = [word for word in words if word not in SMALL_WORDS] or [step]
    return action, tuple(dict.fromkeys(objects)) or (action,)


def props_of(task: str, steps: Sequence[Step], seed: int) -> tuple[Prop, ...]:
    """What each of `steps` is done with, the same in all videos of a task.

    >>> fill, boil = props_of("tea", ["fill kettle", "boil water in kettle"], seed=0)
    >>> fill.objects[0] == boil.objects[1], fill.tool == boil.tool
    (True, False)
    """
    named = [words_of(step) for step in steps]
    things = sorted({word for _, objects in named for word in objects})
    actions = sorted({action for action, _ in named})
    looks = distinct_looks(things, stream(seed, task, "things"))
    rng = stream(seed, task, "actions")
    tools, motions = distinct_looks(actions, rng), rng.permutation(list(MOTIONS)).tolist()
    return tuple(
        Prop(tuple(looks[word] for word in objects), tools[action], motions[actions.index(action) % len(motions)])
        for action, objects in named
    )
