"""Simulated features: what an encoder might make of the videos of a world, with a difficulty that is known.

Every step has a prototype per modality, the same in all videos of its world. A frame is what its script says it shows,
what completed steps left behind, and clutter c, scaled to length 1 (a sentence likewise, without the trace):

    x ∝ Σ_n shown_n · p_n + trace · Σ_n done_n · d_n + clutter · c
    c = √scene · (of the video) + √shot · (of the shot) + √(1 − scene − shot) · (of the frame)

All of these vectors are random directions; every part of c has an expected squared length of 1.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.media.features import Features
from msg2.options import FeatureOptions
from msg2.task import Step
from msg2.worlds.noise import Demonstration
from msg2.worlds.script import Script, video_script
from msg2.worlds.simulation import Simulation

Array = NDArray[np.float64]

SMALL_WORDS = frozenset({
    "a", "an", "and", "around", "at", "behind", "by", "down", "from", "in", "into", "of", "off", "on", "onto", "out",
    "over", "the", "through", "to", "under", "up", "with",
})  # fmt: skip
"""Words that name nothing one could see."""


@dataclass(frozen=True, slots=True, eq=False)
class Prototypes:
    """How each of N steps looks, sounds, and looks when it is done: unit vectors, each array of shape (N, width)."""

    vision: Array
    text: Array
    done: Array


def simulated_features(simulation: Simulation, options: FeatureOptions, seed: int) -> dict[str, Features]:
    """The features of every video of `simulation`, by video id.

    The same seed gives the same features. Prototypes depend on the seed, the world and the step only, and every video
    draws from its own streams: more videos leave the earlier ones as they are. Another `clutter` changes neither what
    is shown and said nor the directions of the clutter.

    >>> from msg2.options import WorldOptions
    >>> from msg2.worlds import simulate, world
    >>> simulation = simulate(world("Perform CPR"), WorldOptions(videos=2), seed=0)
    >>> features = simulated_features(simulation, FeatureOptions(width=16), seed=0)
    >>> list(features), features["v00001"].frames.shape[1]
    (['v00001', 'v00002'], 16)
    """
    prototypes = drawn_prototypes(simulation, options, seed)
    found = {}
    for show in simulation.demonstrations:
        rng = stream(seed, simulation.task.name, "clutter", show.video)
        found[show.video] = _rendered(script_of(simulation, show, options, seed), prototypes, options, rng)
    return found


def script_of(simulation: Simulation, show: Demonstration, options: FeatureOptions, seed: int) -> Script:
    """What the video of `show` shows and says, as `simulated_features` with the same arguments renders it."""
    return video_script(show, simulation.graph.steps, options, stream(seed, simulation.task.name, "script", show.video))


def drawn_prototypes(simulation: Simulation, options: FeatureOptions, seed: int) -> Prototypes:
    """The prototypes of the steps, in the order of the graph.

    A prototype is √shared · (the mean direction of the words that the step has in common with others) +
    √(1 − shared) · (a direction of its own), so that "disconnect battery" looks a little like "insert new battery".
    What a step leaves behind, when it is done, is its own alone.
    """
    steps, name = simulation.graph.steps, simulation.task.name
    drawn = [_directions(stream(seed, name, "step", step), options.width) for step in steps]
    own = np.array(drawn).reshape(-1, 3, options.width).swapaxes(0, 1)
    common = common_words(steps)
    objects = {
        word: _directions(stream(seed, name, "word", word), options.width)[:2]
        for word in sorted(frozenset().union(*common))
    }
    looks = own[:2].copy()
    for n, words in enumerate(common):
        if words:
            met = _unit(np.sum([objects[word] for word in sorted(words)], axis=0))
            looks[:, n] = _unit(np.sqrt(options.shared) * met + np.sqrt(1 - options.shared) * own[:2, n])
    return Prototypes(looks[0], looks[1], own[2])


def common_words(steps: Sequence[Step]) -> list[frozenset[str]]:
    """For each step the words of its name that another one has too: in lower case, without plural s or small words.

    >>> [sorted(words) for words in common_words(["fill kettle", "boil water in kettle", "pour in milk"])]
    [['kettle'], ['kettle'], []]
    """
    words = [{word.removesuffix("s") for word in re.findall(r"\w+", step.casefold())} - SMALL_WORDS for step in steps]
    counts = Counter(word for some in words for word in some)
    return [frozenset(word for word in some if counts[word] > 1) for some in words]


def _rendered(script: Script, prototypes: Prototypes, options: FeatureOptions, rng: np.random.Generator) -> Features:
    width, steady = options.width, np.sqrt(options.scene)
    place, speaker = _clutter(2, width, rng)
    shots = _clutter(1 + int(script.shots[-1]), width, rng)[script.shots]
    moments = _clutter(len(script.frame_times), width, rng)
    frame_clutter = steady * place + np.sqrt(options.shot) * shots + _rest(options.scene + options.shot) * moments
    sentence_clutter = steady * speaker + _rest(options.scene) * _clutter(len(script.sentence_times), width, rng)
    seen = script.shown @ prototypes.vision + options.trace * (script.done @ prototypes.done)
    heard = script.mentioned @ prototypes.text
    return Features(
        script.frame_times,
        _unit(seen + options.clutter * frame_clutter).astype(np.float32),
        script.sentence_times,
        _unit(heard + options.clutter * sentence_clutter).astype(np.float32),
    )


def _clutter(count: int, width: int, rng: np.random.Generator) -> Array:
    """Shape (count, width): random directions whose squared length is 1 on average."""
    drawn: Array = rng.standard_normal((count, width)) / np.sqrt(width)
    return drawn


def _rest(share: float) -> float:
    return float(np.sqrt(max(0.0, 1 - share)))  # shares may add up to a hair more than 1


def _directions(rng: np.random.Generator, width: int) -> Array:
    """Three random unit vectors, shape (3, width): to see, to hear, and to see when done."""
    return _unit(rng.standard_normal((3, width)))


def _unit(vectors: Array) -> Array:
    """`vectors` with their last axis scaled to length 1; what is 0 stays 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Array = vectors / np.where(lengths > 0, lengths, 1)
    return scaled


def stream(seed: int, *names: str) -> np.random.Generator:
    """A stream of random numbers that belongs to these names alone."""
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
