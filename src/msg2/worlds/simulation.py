"""A world on stage: many noisy demonstrations of it, with the truth kept beside them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.options import WorldOptions
from msg2.task import Task, Video
from msg2.worlds.demonstrate import drawn_order, intended_steps
from msg2.worlds.noise import Demonstration, drawn_labels, shown_steps, timed_segments
from msg2.worlds.truth import World


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a reader would see (`task`), and the truth: the graph, and what happened in each video."""

    task: Task
    graph: SubtaskGraph
    demonstrations: tuple[Demonstration, ...]

    @property
    def performed(self) -> Task:
        """What perfect annotators would have written: every occurrence that the videos show, under its true name."""
        return self.task.with_videos(Video(show.video, show.performed) for show in self.demonstrations)


def simulate(world: World, options: WorldOptions, seed: int) -> Simulation:
    """`options.videos` noisy demonstrations of `world`.

    The same seed gives the same simulation. Every video of every world draws from its own stream, so that more videos
    leave the earlier ones as they are, and worlds do not share their luck.

    >>> from msg2.worlds import world
    >>> simulation = simulate(world("Perform CPR"), WorldOptions(videos=3), seed=0)
    >>> [video.id for video in simulation.task], len(simulation.graph.steps)
    (['v00001', 'v00002', 'v00003'], 8)
    """
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    stream = [seed, zlib.crc32(world.name.encode())]
    shows = tuple(
        demonstration(world, options, f"v{index + 1:05d}", np.random.default_rng([*stream, index]))
        for index in range(options.videos)
    )
    task = Task(world.name, world.graph.steps, (show.as_video() for show in shows))
    return Simulation(task, world.graph, shows)


def demonstration(world: World, options: WorldOptions, video: str, rng: np.random.Generator) -> Demonstration:
    """One demonstration of `world`, from the plan to the labels."""
    intended = drawn_order(world, intended_steps(world, options.both_branches, rng), rng)
    shown = shown_steps(intended, options.noise, rng)
    performed = timed_segments(shown, options, rng)
    return Demonstration(video, intended, performed, drawn_labels(shown, world.graph.steps, options.noise, rng))
