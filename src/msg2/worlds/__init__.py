"""Worlds: tasks with a known graph, and noisy demonstrations of them. Everything follows from a seed."""

from msg2.worlds.export import as_table
from msg2.worlds.features import script_of, simulated_features
from msg2.worlds.generate import random_world
from msg2.worlds.household import world, worlds
from msg2.worlds.noise import Demonstration
from msg2.worlds.simulation import Simulation, simulate
from msg2.worlds.truth import World
from msg2.worlds.violation import violation_rate

__all__ = [
    "Demonstration", "Simulation", "World", "as_table", "random_world", "script_of", "simulate", "simulated_features",
    "violation_rate", "world", "worlds",
]  # fmt: skip
