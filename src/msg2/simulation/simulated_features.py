"""Simulated features: what an encoder might make of the videos of a world, with a difficulty that is known.

Every step has a prototype per modality, the same in all videos of its world. A frame is what it shows by its
storyboard, what completed steps left behind, and clutter c, scaled to length 1 (a sentence likewise, without trace):

    x ∝ Σ_n shown_n · p_n + trace · Σ_n done_n · d_n + clutter · c
    c = √scene · (of the video) + √shot · (of the shot) + √(1 − scene − shot) · (of the frame)

All of these vectors are random directions; every part of c has an expected squared length of 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msg2.arrays import FloatArray
from msg2.media.video_features import VideoFeatures, l2_normalize
from msg2.simulation.simulator import Demonstration, Simulation, random_stream
from msg2.simulation.storyboard import Storyboard, StoryboardOptions, draw_storyboard
from msg2.task import Step
from msg2.validation import require, require_probability

FUNCTION_WORDS = frozenset({
    "a", "an", "and", "around", "at", "behind", "by", "down", "from", "in", "into", "of", "off", "on", "onto", "out",
    "over", "the", "through", "to", "under", "up", "with",
})  # fmt: skip
"""Words that name nothing one could see."""


@dataclass(frozen=True, slots=True)
class FeatureOptions(StoryboardOptions):
    """How simulated videos look and sound; lengths of vectors are relative to a step's prototype, which has length 1.

    `clutter` is the master difficulty. Its default was fixed before any model was trained: a linear classifier on
    single frames of performed steps recognises the step 60 % of the time (`python -m experiments probe`).
    """

    width: int = 512
    """Length of every vector."""
    shared: float = 0.5
    """Share of a prototype that steps with a word of their names in common have in common; the rest is its own."""
    clutter: float = 7.2
    """Length of all else in a frame or sentence: random directions, of the video, the shot and the moment."""
    scene: float = 0.25
    """Share of the clutter that stays through the video: the place, the speaker."""
    shot: float = 0.25
    """Share of a frame's clutter that stays through a shot."""
    trace: float = 0.2
    """Things done stay visible: length of what a completed step leaves in every later frame; 0 leaves nothing."""

    def __post_init__(self) -> None:
        StoryboardOptions.__post_init__(self)
        require(1 <= self.width <= 65_536, f"width is {self.width}, it must be between 1 and 65,536")
        for name in ("shared", "scene", "shot"):
            require_probability(name, getattr(self, name))
        require(self.scene + self.shot <= 1, f"scene and shot are {self.scene} and {self.shot}, more than 1 together")
        for name in ("clutter", "trace"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), f"{name} is {value}, it must be a number from 0 up")


@dataclass(frozen=True, slots=True, eq=False)
class Prototypes:
    """How each of N steps looks, sounds, and looks when it is done: unit vectors, each array of shape (N, width)."""

    vision: FloatArray
    text: FloatArray
    done: FloatArray


def simulate_features(simulation: Simulation, options: FeatureOptions, seed: int) -> dict[str, VideoFeatures]:
    """Simulate what an encoder makes of every video.

    The same seed gives the same features. Prototypes depend on the seed, the world and the step only, and every video
    draws from its own streams: more videos leave the earlier ones as they are. Another `clutter` changes neither what
    is shown and said nor the directions of the clutter.

    Parameters
    ----------
    simulation : Simulation
        The demonstrations of a world.
    options : FeatureOptions
        How hard the videos are to understand.
    seed : int
        0 or more.

    Returns
    -------
    dict of str to VideoFeatures
        By the id of the video.

    >>> from msg2.simulation import SimulationOptions, household_world, simulate
    >>> simulation = simulate(household_world("Perform CPR"), SimulationOptions(videos=2), seed=0)
    >>> features = simulate_features(simulation, FeatureOptions(width=16), seed=0)
    >>> list(features), features["v00001"].frames.shape[1]
    (['v00001', 'v00002'], 16)
    """
    prototypes = draw_prototypes(simulation, options, seed)
    features = {}
    for demonstration in simulation.demonstrations:
        rng = random_stream(seed, simulation.task.name, "clutter", demonstration.video)
        storyboard = video_storyboard(simulation, demonstration, options, seed)
        features[demonstration.video] = _encode_storyboard(storyboard, prototypes, options, rng)
    return features


def video_storyboard(
    simulation: Simulation, demonstration: Demonstration, options: StoryboardOptions, seed: int
) -> Storyboard:
    """Draw what a video shows and says, as `simulate_features` with the same arguments encodes it.

    Parameters
    ----------
    simulation : Simulation
        The simulation that the video belongs to.
    demonstration : Demonstration
        What happens in it.
    options : StoryboardOptions
        What videos show and say, and when.
    seed : int
        0 or more.

    Returns
    -------
    Storyboard
        Its columns are the steps, in the order of the graph.
    """
    rng = random_stream(seed, simulation.task.name, "script", demonstration.video)
    return draw_storyboard(demonstration, simulation.graph.steps, options, rng)


def draw_prototypes(simulation: Simulation, options: FeatureOptions, seed: int) -> Prototypes:
    """Draw the prototypes of the steps.

    A prototype is √shared · (the mean direction of the words that the step has in common with others) +
    √(1 − shared) · (a direction of its own), so that "disconnect battery" looks a little like "insert new battery".
    What a step leaves behind, when it is done, is its own alone.

    Parameters
    ----------
    simulation : Simulation
        Its world and steps count, not its videos.
    options : FeatureOptions
        Width, and how much steps share.
    seed : int
        0 or more.

    Returns
    -------
    Prototypes
        In the order of the graph.
    """
    steps, name = simulation.graph.steps, simulation.task.name
    drawn = [_draw_directions(random_stream(seed, name, "step", step), options.width) for step in steps]
    own = np.array(drawn).reshape(-1, 3, options.width).swapaxes(0, 1)
    common = common_words(steps)
    words = sorted(frozenset().union(*common))
    objects = {word: _draw_directions(random_stream(seed, name, "word", word), options.width)[:2] for word in words}
    looks = own[:2].copy()
    for n, shared in enumerate(common):
        if shared:
            mean = l2_normalize(np.sum([objects[word] for word in sorted(shared)], axis=0))
            looks[:, n] = l2_normalize(np.sqrt(options.shared) * mean + np.sqrt(1 - options.shared) * own[:2, n])
    return Prototypes(looks[0], looks[1], own[2])


def content_words(step: Step) -> list[str]:
    """Return the words of a step's name that could be seen, in lower case, without plural s.

    >>> content_words("Pour the remaining beans")
    ['pour', 'remaining', 'bean']
    """
    words = [word.removesuffix("s") for word in re.findall(r"\w+", step.casefold())]
    return [word for word in words if word not in FUNCTION_WORDS]


def common_words(steps: Sequence[Step]) -> list[frozenset[str]]:
    """Return for each step the words of its name that another one has too, in lower case, without plural s.

    >>> [sorted(words) for words in common_words(["fill kettle", "boil water in kettle", "pour in milk"])]
    [['kettle'], ['kettle'], []]
    """
    words = [set(content_words(step)) for step in steps]
    counts = Counter(word for some in words for word in some)
    return [frozenset(word for word in some if counts[word] > 1) for some in words]


def _encode_storyboard(
    storyboard: Storyboard, prototypes: Prototypes, options: FeatureOptions, rng: np.random.Generator
) -> VideoFeatures:
    width, steady = options.width, np.sqrt(options.scene)
    place, speaker = _draw_clutter(2, width, rng)
    shots = _draw_clutter(1 + int(storyboard.shots[-1]), width, rng)[storyboard.shots]
    moments = _draw_clutter(len(storyboard.frame_times), width, rng)
    utterances = _draw_clutter(len(storyboard.sentence_times), width, rng)
    rest = _remaining_weight(options.scene + options.shot)
    frame_clutter = steady * place + np.sqrt(options.shot) * shots + rest * moments
    sentence_clutter = steady * speaker + _remaining_weight(options.scene) * utterances
    visible = storyboard.shown @ prototypes.vision + options.trace * (storyboard.done @ prototypes.done)
    spoken = storyboard.mentioned @ prototypes.text
    frames = l2_normalize(visible + options.clutter * frame_clutter).astype(np.float32)
    sentences = l2_normalize(spoken + options.clutter * sentence_clutter).astype(np.float32)
    return VideoFeatures(storyboard.frame_times, frames, storyboard.sentence_times, sentences)


def _draw_clutter(count: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Shape (count, width): random directions whose squared length is 1 on average."""
    return np.asarray(rng.standard_normal((count, width)) / np.sqrt(width))


def _remaining_weight(share: float) -> float:
    return float(np.sqrt(max(0.0, 1 - share)))  # shares may add up to a hair more than 1


def _draw_directions(rng: np.random.Generator, width: int) -> FloatArray:
    """Three random unit vectors, shape (3, width): to see, to hear, and to see when done."""
    return l2_normalize(rng.standard_normal((3, width)))
