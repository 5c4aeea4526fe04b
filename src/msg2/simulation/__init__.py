"""Simulated worlds: tasks with a known graph, noisy demonstrations of them, and what their videos show and say.

Everything follows from a seed.
"""

from msg2.simulation.simulated_features import FeatureOptions, simulate_features, video_storyboard
from msg2.simulation.simulator import Demonstration, NoiseOptions, Simulation, SimulationOptions, simulate
from msg2.simulation.worlds import RandomWorldOptions, World, household_world, household_worlds, random_world

__all__ = [
    "Demonstration", "FeatureOptions", "NoiseOptions", "RandomWorldOptions", "Simulation", "SimulationOptions", "World",
    "household_world", "household_worlds", "random_world", "simulate", "simulate_features", "video_storyboard",
]  # fmt: skip
