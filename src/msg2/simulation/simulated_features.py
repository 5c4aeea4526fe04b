"""Simulated videos: their storyboard (what they show and say, and when), their features, and all of it as files.

Videos show and mention what was performed, labelled or not, and never what was skipped. Some shots and sentences are
about what is performed at another time, and mislead. Every step has a prototype per modality, the same in all videos of
its world. A frame is the sum of what it shows, what completed steps left behind, and clutter c, scaled to length 1 (a
sentence likewise, without trace):

    x ∝ Σ_n shown_n · p_n + trace · Σ_n done_n · d_n + clutter · c
    c = √scene · (of the video) + √shot · (of the shot) + √(1 − scene − shot) · (of the frame)

All of these vectors are random directions; every part of c has an expected squared length of 1.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from msg2.errors import InputError, require
from msg2.files import write_together
from msg2.formats.feature_store import Encoders, VideoFeatures, write_store
from msg2.formats.step_table import to_csv
from msg2.options import WHOLE, NonNegative, Positive, Probability, options_class
from msg2.sequences import FloatArray
from msg2.simulation.simulator import Demonstration, Simulation, random_stream
from msg2.task import Step
from msg2.text_encoders import l2_normalize


@options_class
class StoryboardOptions:
    """What simulated videos show and say, and when; rates are probabilities."""

    shot_seconds: Positive = 4.0
    """Length of a shot; cuts do not care for steps."""
    frames_per_second: Positive = 1.0
    after_seconds: NonNegative = 5.0
    """The video goes on this long after its last step."""
    blank: Probability = 0.15
    """Of each frame of a performed step: nothing of the step is to be seen (a transition, a hand, a face)."""
    distractors: Probability = 0.15
    """Of each shot: it also shows what belongs to a step that is performed at another time of the video."""
    distractor_strength: NonNegative = 0.6
    """How strongly a distractor shows, where a performed step is 1."""
    sentence_seconds: Positive = 3.5
    """One sentence follows the other, each this long."""
    narrated: Probability = 0.7
    """Of each performed occurrence, labelled or not: the narrator speaks of it."""
    shift_seconds: NonNegative = 4.0
    """Standard deviation of the time by which its narration precedes or follows it."""
    off_topic: Probability = 0.3
    """Of each sentence: it is not about what is narrated then."""
    loose: Probability = 0.1
    """Of each sentence that is not about what is done then: it mentions a step that is performed at another time."""


@dataclass(frozen=True, slots=True, eq=False)
class Storyboard:
    """One video with F frames and S sentences, in a world of N steps; a row of 0s shows or says nothing of the task.

    `frame_times` (F,) and `sentence_times` (S, 2) are seconds; `shots` (F,) numbers the shot of each frame; `shown`
    (F, N) says how strongly a frame shows each step, 1 where it is performed and visible; `done` (F, N) is 1 once the
    step has been completed; `mentioned` (S, N) is 1 where a sentence speaks of the step.
    """

    frame_times: FloatArray
    shots: NDArray[np.int64]
    shown: FloatArray
    done: FloatArray
    sentence_times: FloatArray
    mentioned: FloatArray


def _draw_distractors(rate: float, count: int, which: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw rows, shape (count, N): with probability `rate` one has any of the performed occurrences, else nothing."""
    places = np.floor(len(which) * rng.random(count)).astype(np.int64)
    chosen = rng.random((count, 1)) < rate
    return np.where(chosen, which[places], 0.0) if len(which) else np.zeros((count, which.shape[1]))


FUNCTION_WORDS = frozenset({
    "a", "an", "and", "around", "at", "behind", "by", "down", "from", "in", "into", "of", "off", "on", "onto", "out",
    "over", "the", "through", "to", "under", "up", "with",
})  # fmt: skip
"""Words that name nothing one could see."""


@options_class
class FeatureOptions(StoryboardOptions):
    """How simulated videos look and sound; lengths of vectors are relative to a step's prototype, which has length 1.

    `clutter` is the master difficulty. Its default was fixed before any model was trained: a linear classifier on
    single frames of performed steps recognises the step 60 % of the time (`python -m experiments probe`).
    """

    width: Annotated[int, Field(ge=1, le=65_536), WHOLE] = 512
    """Length of every vector."""
    shared: Probability = 0.5
    """Share of a prototype that steps with a word of their names in common have in common; the rest is its own."""
    clutter: NonNegative = 7.2
    """Length of all else in a frame or sentence: random directions, of the video, the shot and the moment."""
    scene: Probability = 0.25
    """Share of the clutter that stays through the video: the place, the speaker."""
    shot: Probability = 0.25
    """Share of a frame's clutter that stays through a shot."""
    trace: NonNegative = 0.2
    """Things done stay visible: length of what a completed step leaves in every later frame; 0 leaves nothing."""

    def __post_init__(self) -> None:
        require(self.scene + self.shot <= 1, f"scene and shot are {self.scene} and {self.shot}, more than 1 together")


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
    steps = simulation.graph.steps
    which = np.eye(len(steps))[[steps.index(segment.step) for segment in demonstration.performed]]
    spans = np.array([(segment.start, segment.end) for segment in demonstration.performed], float).reshape(-1, 2)
    seconds = spans.max(initial=0) + options.after_seconds
    frame_times = np.arange(np.floor(seconds * options.frames_per_second) + 1) / options.frames_per_second
    shots = (frame_times // options.shot_seconds).astype(np.int64)
    (starts, ends), at = spans.T, frame_times[:, None]
    visible = rng.random(len(at)) >= options.blank
    performed = ((starts <= at) & (at < ends) & visible[:, None]) @ which > 0
    distractors = _draw_distractors(options.distractors, 1 + int(shots[-1]), which, rng)[shots]
    shown = np.maximum(performed, options.distractor_strength * distractors)
    done = ((ends <= at) @ which > 0).astype(np.float64)
    sentences = np.arange(np.ceil(seconds / options.sentence_seconds)) * options.sentence_seconds
    sentence_times = np.stack([sentences, sentences + options.sentence_seconds], axis=1)
    # A sentence speaks of one narrated occurrence, of another performed step by the way, or of none. The narration of
    # an occurrence is as long as it is, one sentence at least; where two meet, the later one counts.
    shifts = options.shift_seconds * rng.standard_normal(len(spans))
    narrated = rng.random(len(spans)) < options.narrated
    on_topic = rng.random((len(sentences), 1)) >= options.off_topic
    mentioned = _draw_distractors(options.loose, len(sentences), which, rng)
    reach = np.maximum(np.diff(spans)[:, 0], options.sentence_seconds) / 2
    distances = np.abs(sentence_times.mean(axis=1, keepdims=True) - spans.mean(axis=1) - shifts)
    for sentence, occurrence in np.argwhere((distances <= reach) & narrated & on_topic):
        mentioned[sentence] = which[occurrence]
    return Storyboard(frame_times, shots, shown, done, sentence_times, mentioned)


def draw_prototypes(simulation: Simulation, options: FeatureOptions, seed: int) -> Prototypes:
    """Draw the prototypes of the steps; "disconnect battery" looks a little like "insert new battery"."""
    # √shared · (the mean direction of the words in common with other steps) + √(1 − shared) · (a direction of its own);
    # what a step leaves behind, when it is done, is its own alone.
    steps, name = simulation.graph.steps, simulation.task.name
    drawn = [_draw_directions(random_stream(seed, name, "step", step), options.width) for step in steps]
    own = np.array(drawn).reshape(-1, 3, options.width).swapaxes(0, 1)
    common = common_words(steps)
    words = sorted(frozenset().union(*common))
    objects = {word: _draw_directions(random_stream(seed, name, "word", word), options.width)[:2] for word in words}
    looks = own[:2].copy()
    for number, shared in enumerate(common):
        if shared:
            mean = l2_normalize(np.sum([objects[word] for word in sorted(shared)], axis=0))
            mixed = np.sqrt(options.shared) * mean + np.sqrt(1 - options.shared) * own[:2, number]
            looks[:, number] = l2_normalize(mixed)
    return Prototypes(looks[0], looks[1], own[2])


def content_words(step: Step) -> list[str]:
    """Return the words of a step's name that could be seen, in lower case, without plural s."""
    words = [word.removesuffix("s") for word in re.findall(r"\w+", step.casefold())]
    return [word for word in words if word not in FUNCTION_WORDS]


def common_words(steps: Sequence[Step]) -> list[frozenset[str]]:
    """Return for each step the words of its name that another one has too, in lower case, without plural s."""
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
    rest = np.sqrt(max(0.0, 1 - (options.scene + options.shot)))  # shares may add up to a hair more than 1
    frame_clutter = steady * place + np.sqrt(options.shot) * shots + rest * moments
    sentence_clutter = steady * speaker + np.sqrt(1 - options.scene) * utterances
    visible = storyboard.shown @ prototypes.vision + options.trace * (storyboard.done @ prototypes.done)
    spoken = storyboard.mentioned @ prototypes.text
    frames = l2_normalize(visible + options.clutter * frame_clutter).astype(np.float32)
    sentences = l2_normalize(spoken + options.clutter * sentence_clutter).astype(np.float32)
    return VideoFeatures(storyboard.frame_times, frames, storyboard.sentence_times, sentences)


def _draw_clutter(count: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Shape (count, width): random directions whose squared length is 1 on average."""
    return np.asarray(rng.standard_normal((count, width)) / np.sqrt(width))


def _draw_directions(rng: np.random.Generator, width: int) -> FloatArray:
    """Three random unit vectors, shape (3, width): to see, to hear, and to see when done."""
    return l2_normalize(rng.standard_normal((3, width)))


def write_simulation(folder: Path, simulation: Simulation, seed: int, *, features: bool = False) -> list[Path]:
    """Write a simulation to a folder, where `msg2.run` finds everything."""
    store, videos = folder / "features", folder / "videos"
    require(not videos.exists(), "holds the videos of another simulation", where=videos, hint="remove it")
    if features:
        options = FeatureOptions()
        versions = {package: version(package) for package in ("msg2", "numpy")}
        encoders = Encoders("simulated", "simulated", options.width, options.width, versions)
        simulated = simulate_features(simulation, options, seed)
        write_store(store, {(simulation.task.name, video): seen for video, seen in simulated.items()}, encoders)
    elif store.exists():
        raise InputError("holds the features of another simulation", where=store, hint="add --features, or remove it")
    files = {
        folder / "steps.csv": to_csv([simulation.task]),
        folder / "truth" / "performed.csv": to_csv([simulation.performed]),
        folder / "truth.json": simulation.graph.dumps(),
    }
    write_together(files)
    return [*files, *([store] if features else [])]
