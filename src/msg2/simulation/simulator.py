"""The simulator: a world -> many noisy demonstrations of it, with the truth kept beside them.

At every OR the person takes one branch, and does only the steps on it; the order is drawn step by step, uniformly
among the steps whose true precondition holds. Noise follows a real video, each kind with its rate: the person skips and
repeats steps, the editor swaps neighbours, the result plays in time, the annotator labels it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, fields, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from msg2.errors import require
from msg2.graph import Formula, SubtaskGraph
from msg2.options import WHOLE, NonNegative, Positive, Probability, options_class
from msg2.simulation.worlds import World
from msg2.task import Segment, Step, Task, Video

_TICKS_PER_SECOND = 100
"""Times are whole hundredths of a second, so that sums of them are exact and their text is short."""


@options_class
class NoiseOptions:
    """How simulated demonstrations differ from flawless, fully labelled ones; every rate is a probability.

    The defaults are calibrated: over the twelve household worlds about 29 % of the labels violate the true graph, as
    the paper found for ProceL (Sec. 3), mostly because steps were left out of the video or of its labels.
    """

    skipped: Probability = 0.08
    """Of each intended step: it is really not done, and the person goes on as if it were."""
    unlabelled: Probability = 0.2
    """Of each shown occurrence of a step: it is done, and the annotator does not label it."""
    swapped: Probability = 0.06
    """Of each two neighbours in the video, from left to right: the editor swaps them (a step is moved once)."""
    repeated: Probability = 0.05
    """Of each step that is done: it is done once more, at any later moment."""
    mislabelled: Probability = 0.02
    """Of each labelled occurrence: its label is that of another step of the task, any with equal chance."""
    overlapping: Probability = 0.0
    """Of each step after the first: it starts before the one before it has ended."""

    @staticmethod
    def none() -> NoiseOptions:
        """Return the rates of flawless demonstrations, completely labelled."""
        return NoiseOptions().scale(0)

    def scale(self, factor: float) -> NoiseOptions:
        """Return rates that are `factor` times as high, at most 1."""
        return NoiseOptions(**{rate.name: min(1.0, factor * getattr(self, rate.name)) for rate in fields(self)})


@options_class
class SimulationOptions:
    """How a world is demonstrated. Times are log-normal, about as long as CrossTask's annotations."""

    videos: Annotated[int, Field(ge=0, le=10_000_000), WHOLE] = 54
    """Demonstrations per task (the paper's ProceL: 54.5 on average)."""
    both_branches: Probability = 0.1
    """At an OR one branch is taken; the probability that another one is done as well."""
    step_seconds: Positive = 5.0
    """Median duration of a step."""
    step_spread: Annotated[float, Field(ge=0, le=3)] = 1.0
    """Standard deviation of the logarithm of a step's duration."""
    gap_seconds: NonNegative = 6.0
    """Median length of the background before a step."""
    gap_spread: Annotated[float, Field(ge=0, le=3)] = 1.5
    """Standard deviation of the logarithm of the background's length."""
    noise: NoiseOptions = field(default_factory=NoiseOptions)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What was intended, performed and labelled in one video.

    `intended` are the steps of the plan in their order, `performed` every occurrence that the video shows, in time, and
    `labels[i]` is what the annotator called `performed[i]`: its step, a wrong one, or None for nothing.

    >>> performed = (Segment("fill kettle", 0.0, 5.0), Segment("boil water", 9.0, 60.0))
    >>> demonstration = Demonstration("v1", ("fill kettle", "boil water", "pour"), performed, ("fill kettle", None))
    >>> demonstration.skipped, [segment.step for segment in demonstration.unlabelled]
    (frozenset({'pour'}), ['boil water'])
    """

    video: str
    intended: tuple[Step, ...]
    performed: tuple[Segment, ...]
    labels: tuple[Step | None, ...]

    @property
    def skipped(self) -> frozenset[Step]:
        """The steps that were meant to be done and really were not."""
        return frozenset(self.intended) - {segment.step for segment in self.performed}

    @property
    def unlabelled(self) -> tuple[Segment, ...]:
        """What was done and not labelled."""
        return tuple(segment for segment, label in zip(self.performed, self.labels, strict=True) if label is None)

    @property
    def labelled(self) -> tuple[Segment, ...]:
        """What the annotator wrote down, wrong labels included."""
        return tuple(
            segment if label == segment.step else replace(segment, step=label)
            for segment, label in zip(self.performed, self.labels, strict=True)
            if label is not None
        )

    def as_video(self) -> Video:
        """Return the demonstration as a reader would see it: the labels only."""
        return Video(self.video, self.labelled)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a reader would see (`task`), and the truth: the graph, and what happened in each video."""

    task: Task
    graph: SubtaskGraph
    demonstrations: tuple[Demonstration, ...]

    @property
    def performed(self) -> Task:
        """What perfect annotators would have written: every occurrence that the videos show, under its true name."""
        return self.task.with_videos(Video(shown.video, shown.performed) for shown in self.demonstrations)


def simulate(world: World, options: SimulationOptions, seed: int) -> Simulation:
    """Simulate noisy demonstrations of a world.

    The same seed gives the same simulation. Every video of every world draws from its own stream, so that more videos
    leave the earlier ones as they are, and worlds do not share their luck.

    Parameters
    ----------
    world : World
        The task with its true graph.
    options : SimulationOptions
        How many videos, how long their steps are, and how noisy their labels.
    seed : int
        0 or more; everything follows from it.

    Returns
    -------
    Simulation
        The labelled task, its true graph, and what really happened in each video.

    Raises
    ------
    InputError
        Where the seed is negative.

    >>> from msg2.simulation import household_world
    >>> simulation = simulate(household_world("Perform CPR"), SimulationOptions(videos=3), seed=0)
    >>> [video.id for video in simulation.task], len(simulation.graph.steps)
    (['v00001', 'v00002', 'v00003'], 8)
    """
    demonstrations = []
    for index in range(options.videos):
        rng = random_stream(seed, world.name, index)
        intended = _draw_order(world, _draw_intended_steps(world, options.both_branches, rng), rng)
        steps = _draw_performed_steps(intended, options.noise, rng)
        performed = _draw_segments(steps, options, rng)
        labels = _draw_labels(steps, world.graph.steps, options.noise, rng)
        demonstrations.append(Demonstration(f"v{index + 1:05d}", intended, performed, labels))
    task = Task(world.name, world.graph.steps, (demonstration.as_video() for demonstration in demonstrations))
    return Simulation(task, world.graph, tuple(demonstrations))


def _draw_intended_steps(world: World, both_branches: Probability, rng: np.random.Generator) -> frozenset[Step]:
    """Draw the steps that a person means to do: goals, and what the chosen branches need; the same OR, one choice."""
    choices: dict[Formula, frozenset[Step]] = {}

    def draw_branch(formula: Formula) -> frozenset[Step]:
        """Steps that make `formula` true, one branch per OR; `choices` remembers them."""
        if formula.kind == "step":
            return formula.steps
        if formula not in choices:
            branches = formula.operands
            if formula.kind == "any":
                chosen = rng.integers(len(branches))
                also = rng.random(len(branches)) < both_branches
                branches = tuple(branch for i, branch in enumerate(branches) if i == chosen or also[i])
            choices[formula] = frozenset().union(*map(draw_branch, branches))
        return choices[formula]

    needed = set(world.goals)
    for name in reversed(world.graph.steps):  # sorted by layer: a step comes before all that it needs
        if name in needed and (formula := world.graph.preconditions.get(name)) is not None:
            needed |= draw_branch(formula)
    return frozenset(needed)


def _draw_order(world: World, steps: Set[Step], rng: np.random.Generator) -> tuple[Step, ...]:
    """Draw an order that the graph allows, each step uniformly among those that are eligible then."""
    preconditions = world.graph.preconditions
    ready = [name for name in world.graph.steps if name in steps and name not in preconditions]
    waiting = {name for name in steps if name in preconditions}
    completed: set[Step] = set()
    order: list[Step] = []
    for draw in rng.random(len(steps)).tolist():
        chosen = int(draw * len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        name = ready.pop()
        order.append(name)
        completed.add(name)
        for child in world.children[name]:  # nobody else can have become eligible
            if child in waiting and preconditions[child].evaluate(completed):
                waiting.remove(child)
                ready.append(child)
    return tuple(order)


def _draw_performed_steps(intended: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator) -> list[Step]:
    """Draw the steps that the finished video shows: without the skipped, with repeats, neighbours swapped."""
    kept = np.flatnonzero(rng.random(len(intended)) >= noise.skipped)
    again = kept[rng.random(len(kept)) < noise.repeated]
    # A repeat comes at any later moment: its place is drawn between its step and the end.
    places = np.concatenate([kept, again + (len(intended) - again) * rng.random(len(again))])
    order = np.concatenate([kept, again])[np.argsort(places, kind="stable")]
    performed = [intended[position] for position in order.tolist()]
    swaps = (rng.random(len(performed)) < noise.swapped).tolist()
    first = 0
    while first + 1 < len(performed):
        if swaps[first]:
            performed[first], performed[first + 1] = performed[first + 1], performed[first]
            first += 1  # a step is moved once: the next pair starts behind this one
        first += 1
    return performed


def _draw_labels(
    performed: Sequence[Step], steps: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator
) -> tuple[Step | None, ...]:
    """Draw what the annotator calls each performed step."""
    missing = rng.random(len(performed)) < noise.unlabelled
    wrong = rng.random(len(performed)) < noise.mislabelled
    labels = list(performed)
    for i in np.flatnonzero(wrong).tolist():
        if others := [name for name in steps if name != performed[i]]:
            labels[i] = others[rng.integers(len(others))]
    return tuple(None if absent else label for label, absent in zip(labels, missing.tolist(), strict=True))


def _draw_segments(steps: Sequence[Step], options: SimulationOptions, rng: np.random.Generator) -> tuple[Segment, ...]:
    """`steps` one after the other in time, with background between them; some start before the last one ends."""
    count = len(steps)
    durations = np.maximum(1, _draw_ticks(options.step_seconds, options.step_spread, count, rng))
    gaps = _draw_ticks(options.gap_seconds, options.gap_spread, count, rng)
    overlapping = rng.random(count) < options.noise.overlapping
    share = rng.random(count)
    if count > 1:
        # Less than either neighbour's duration, so that starts and ends both keep the order of the steps.
        longest = np.minimum(durations[:-1], durations[1:]) - 1
        overlaps = np.minimum(longest, 1 + (share[1:] * longest).astype(np.int64))
        gaps[1:] = np.where(overlapping[1:], -overlaps, gaps[1:])
    ends = np.cumsum(gaps + durations)
    starts = (ends - durations) / _TICKS_PER_SECOND
    return tuple(map(Segment, steps, starts.tolist(), (ends / _TICKS_PER_SECOND).tolist()))


def _draw_ticks(median: float, spread: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    seconds = median * np.exp(spread * rng.standard_normal(count))
    return np.rint(seconds * _TICKS_PER_SECOND).astype(np.int64)


def random_stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return a stream of random numbers that belongs to these names alone."""
    require(seed >= 0, f"the seed is {seed}, it must be 0 or more")
    keys = [name if isinstance(name, int) else zlib.crc32(name.encode()) for name in names]
    return np.random.default_rng([seed, *keys])
