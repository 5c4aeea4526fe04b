"""A simulation as a folder of files: labels, the true graph, what was performed, features and videos."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from msg2.errors import InputError
from msg2.files import write_together
from msg2.formats.step_table import to_csv
from msg2.media.feature_store import Encoders, write_store
from msg2.progress import Progress, no_progress
from msg2.simulation.rendering import RenderOptions, write_videos
from msg2.simulation.simulated_features import FeatureOptions, simulate_features
from msg2.simulation.simulator import Simulation


def write_simulation(
    folder: Path,
    simulation: Simulation,
    seed: int,
    *,
    features: bool = False,
    render: RenderOptions | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> list[Path]:
    """Write a simulation to a folder, where `msg2.run` finds everything."""
    store, videos = folder / "features", folder / "videos"
    if features:
        options = FeatureOptions()
        versions = {package: version(package) for package in ("msg2", "numpy")}
        encoders = Encoders("simulated", "simulated", options.width, options.width, versions)
        found = simulate_features(simulation, options, seed)
        write_store(store, {(simulation.task.name, video): one for video, one in found.items()}, encoders)
    elif store.exists():
        raise InputError("holds the features of another simulation", where=store, hint="add --features, or remove it")
    if render is not None:
        write_videos(videos, simulation, render, seed, jobs=jobs, progress=progress)
    elif videos.exists():
        raise InputError("holds the videos of another simulation", where=videos, hint="add --render, or remove it")
    files = {
        folder / "steps.csv": to_csv([simulation.task]),
        folder / "truth" / "performed.csv": to_csv([simulation.performed]),
        folder / "truth.json": simulation.graph.dumps(),
    }
    write_together(files)
    return [*files, *([store] if features else []), *([videos] if render is not None else [])]
