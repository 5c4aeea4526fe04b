"""What sound and motion add: rendered worlds, each stream alone and all together.

Worlds are rendered with the narrator's voice alone, and with a sound for every action as well. Sentences are
the captions; sound is the log-mel energies of the sound track, motion the differences of frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from experiments.experiment_options import ExperimentOptions
from experiments.rendering.scenes import RenderOptions
from experiments.result_tables import Result, Table, Value
from experiments.state_prediction.rendered_videos import measure_once, see_and_hear
from experiments.state_prediction.state_cells import (
    ROWS,
    UNCALIBRATED,
    StateStudyOptions,
    predictor_options,
    presence_auc,
    train_predictor,
)
from msg2.files import safe_names
from msg2.formats.feature_store import VideoFeatures
from msg2.media.feature_extraction import ExtractionOptions
from msg2.metrics.detection import additions
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_in_parallel
from msg2.simulation import NoiseOptions, household_world, simulate
from msg2.simulation.simulator import SimulationOptions

Inputs: TypeAlias = Literal["fused", "vision", "text"]

WORLDS = "Perform CPR", "Make Salmon Sandwich"
VIDEOS = 20
SOUNDS: Mapping[str, tuple[float, Sequence[str]]] = {
    "the narrator": (0.0, WORLDS),
    "the narrator and what is done": (0.1, WORLDS[:1]),
}
"""What is heard: how loud the actions are, and in which worlds; another world takes a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What a predictor learns from."""

    inputs: Inputs
    frames: Literal["frames", "audio", "motion"] = "frames"
    """What stands in the place of frames."""
    others: tuple[str, ...] = ()

    def of(self, features: VideoFeatures) -> VideoFeatures:
        """The features that hold these streams only."""
        frames = features.frames if self.frames == "frames" else features.streams[self.frames]
        return replace(features, frames=frames, streams={name: features.streams[name] for name in self.others})


STREAMS: Mapping[str, Streams] = {
    "frames": Streams("vision"),
    "sentences": Streams("text"),
    "sound": Streams("vision", "audio"),
    "motion": Streams("vision", "motion"),
    "frames, sentences": Streams("fused"),
    "frames, sentences, sound": Streams("fused", others=("audio",)),
    "frames, sentences, motion": Streams("fused", others=("motion",)),
    "all four": Streams("fused", others=("audio", "motion")),
}


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Render, encode and measure every world; what is done is kept beside the results, and not done again."""
    chosen = StateStudyOptions.of(options)
    worlds, videos = (WORLDS[:1], 6) if options.quick else (WORLDS, VIDEOS)
    items = [(world, sound) for sound, (_, heard) in SOUNDS.items() for world in worlds if world in heard]
    measured: dict[tuple[str, str], Measurement] = {}
    with ExitStack() as stack:
        root = options.folder / "streams" if options.folder else Path(stack.enter_context(TemporaryDirectory()))
        for item, found in measure_in_parallel(partial(_measure_world, root, chosen, videos), items, options.jobs):
            measured[item] = found
            progress(len(measured), len(items), ", ".join(item))
    tables = [_table(sound, [measured[item] for item in items if item[1] == sound], videos) for sound in SOUNDS]
    facts = {"worlds": {f"{world}, {sound}": found for (world, sound), found in measured.items()}, "videos": videos}
    return Result("streams", tables, facts)


def _measure_world(root: Path, options: StateStudyOptions, videos: int, item: tuple[str, str]) -> Measurement:
    """What every choice of streams finds in one world; kept in a file beside its videos and features."""
    (world, sound), seed = item, options.seeds[0]
    (name,), scenes = safe_names([f"{world}, {sound}"]), RenderOptions(noise=SOUNDS[sound][0])
    extraction = ExtractionOptions(audio=True, motion=True)
    noise = NoiseOptions(unlabelled=options.unlabelled)

    def measure() -> Measurement:
        from msg2.states.loss_and_optimizer import single_thread

        simulation = simulate(household_world(world), SimulationOptions(videos=videos, noise=noise), seed)
        seen, found = see_and_hear(root / name, simulation, scenes, extraction, seed), {}
        with single_thread():
            for row, streams in STREAMS.items():
                held = {video: streams.of(features) for video, features in seen.items()}
                model = train_predictor(ROWS["evidence"], simulation, held, seed, options, inputs=streams.inputs)
                added = additions(model.fill(UNCALIBRATED), simulation.performed)
                auc = presence_auc(model, simulation.performed)
                found[row] = {**added.to_json(), "AUC of presence": auc}
        return found

    made_with = {**predictor_options("evidence", options), "scenes": asdict(scenes), "videos": videos, "seed": seed}
    return measure_once(root / name / "found.json", made_with, measure)


def _table(sound: str, found: Sequence[Measurement], videos: int) -> Table:
    """Recall and precision of the labels that are added, pooled over the worlds; the mean of the AUC."""
    rows: list[list[Value]] = []
    for row in STREAMS:
        added, right, missing = (sum(world[row][name] for world in found) for name in ("added", "right", "missing"))
        auc = [world[row]["AUC of presence"] for world in found]
        shares: list[Value] = [None if not whole else 100 * right / whole for whole in (missing, added)]
        rows.append([row, *shares, 100 * fmean(auc), 100 * min(auc), 100 * max(auc)])
    columns = ["learned from", "recall", "precision", "AUC of presence", "lowest world", "highest"]
    notes = [
        f"Rendered worlds: {len(found)}, of {videos} videos each; a quarter of what is performed is unlabelled. "
        "Recall and precision are of the labels that are added, pooled; "
        "AUC: is a step that a video's labels lack performed in it?"
    ]
    return Table(f"Missing labels, percent; to be heard: {sound}", columns, rows, notes)
