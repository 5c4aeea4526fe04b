"""A simulation as a folder of files: labels, the true graph, what was performed, and features."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from msg2.errors import InputError
from msg2.files import write_together
from msg2.formats.step_table import to_csv
from msg2.media.feature_store import Encoders, write_store
from msg2.simulation.simulated_features import FeatureOptions, simulate_features
from msg2.simulation.simulator import Simulation


def write_simulation(folder: Path, simulation: Simulation, seed: int, *, features: bool = False) -> list[Path]:
    """Write a simulation to a folder, where `msg2.run` finds everything."""
    store, videos = folder / "features", folder / "videos"
    if videos.exists():
        raise InputError("holds the videos of another simulation", where=videos, hint="remove it")
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
