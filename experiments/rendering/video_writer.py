"""Rendered worlds: every simulated demonstration as a short mp4 video with captions, and a narrator where there is one.

A video follows its storyboard, noise and all: what was performed is seen whether or not anybody labelled it, at its
real time; what was skipped is not. The same seed gives the same bytes, whatever the number of processes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from experiments.rendering.narrator import (
    SAMPLE_RATE,
    Waveform,
    find_espeak,
    mix,
    sounds_of_actions,
    soundtrack,
    to_webvtt,
    write_narration,
)
from experiments.rendering.scenes import RenderOptions, draw_frames, draw_props
from msg2.errors import InputError, optional_dependency, require
from msg2.files import write_together
from msg2.parallel import WorkerDied, process_engine
from msg2.progress import Progress, no_progress
from msg2.simulation.simulated_features import Storyboard, video_storyboard
from msg2.simulation.simulator import Demonstration, Simulation, random_stream
from msg2.task import Sentence
from msg2.text_encoders import Image

BLANK_SECONDS = 1.0
"""Where nothing is to be seen of a performed step, it is so for this long."""
QUALITY = 30
"""x264's constant rate factor: 0 is lossless, 51 the worst."""
BIT_RATE = 24_000
"""Of the sound, bits per second."""


# -- what a video shows and says --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VideoRenderer:
    """Renders the demonstrations of a simulation, one by one; the seed is 0 or more."""

    simulation: Simulation
    options: RenderOptions
    seed: int

    def storyboard(self, demonstration: Demonstration) -> Storyboard:
        """Draw what a video shows and says, frame by frame: the truth about it, but for black moments at cuts.

        A storyboard for features hides single frames of what is performed; one for a video hides whole moments, in the
        same share. Its columns are the steps, in the order of the graph.
        """
        rate, blank = float(self.options.frames_per_second), self.options.storyboard.blank
        every_frame = replace(self.options.storyboard, frames_per_second=rate, blank=0.0)
        storyboard = video_storyboard(self.simulation, demonstration, every_frame, self.seed)
        moments = (storyboard.frame_times // BLANK_SECONDS).astype(np.int64)
        hidden = (self._random_stream("blank", demonstration).random(1 + moments[-1]) < blank)[moments]
        return replace(storyboard, shown=np.where(hidden[:, None] & (storyboard.shown >= 1), 0.0, storyboard.shown))

    def narration(self, demonstration: Demonstration) -> list[Sentence]:
        """Write what is said in a video: its captions, with their times in seconds."""
        rng = self._random_stream("spoken", demonstration)
        return write_narration(self.storyboard(demonstration), self.simulation.graph.steps, rng)

    def write(self, demonstration: Demonstration, folder: Path, espeak: str | None) -> None:
        """Render a video and write it with its captions: both or neither."""
        storyboard, sentences = self.storyboard(demonstration), self.narration(demonstration)
        props = draw_props(self.simulation.task.name, self.simulation.graph.steps, self.seed)
        seconds = len(storyboard.frame_times) / self.options.frames_per_second
        longest = self.options.storyboard.sentence_seconds
        sound = None if espeak is None else soundtrack(sentences, espeak, seconds, longest)
        if self.options.noise:
            rate, noise = self.options.frames_per_second, self.options.noise
            rng = self._random_stream("noise", demonstration)
            heard = sounds_of_actions(storyboard.shown, self.simulation.graph.steps, rate, noise, rng)
            sound = heard if sound is None else mix(sound, heard)
        frames = draw_frames(storyboard, props, self.options, self._random_stream("film", demonstration))
        path = folder / f"{demonstration.video}.mp4"
        video = encode_mp4(frames, sound, self.options)
        write_together({path: video, path.with_suffix(".vtt"): to_webvtt(sentences)})

    def _random_stream(self, purpose: str, demonstration: Demonstration) -> np.random.Generator:
        return random_stream(self.seed, self.simulation.task.name, purpose, demonstration.video)


# -- many videos ------------------------------------------------------------------------------------------------


def write_videos(
    folder: Path,
    simulation: Simulation,
    options: RenderOptions,
    seed: int,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> list[Path]:
    """Render every demonstration: a video (`ID.mp4`), with sound where there is espeak-ng, and captions (`ID.vtt`).

    Files of the same names are replaced; a folder with other videos or captions is refused, since nothing would tell
    them from those of this simulation.

    Parameters
    ----------
    folder : Path
        Where to write.
    simulation : Simulation
        The demonstrations.
    options : RenderOptions
        How they look and sound.
    seed : int
        0 or more; the same seed gives the same bytes.
    jobs : int, optional
        Videos that are rendered at the same time.
    progress : Progress, optional
        Is called after every video.

    Returns
    -------
    list of Path
        The mp4 files.

    Raises
    ------
    InputError
        Where the folder holds other videos, or a process comes to a sudden end.
    """
    require(jobs >= 1, f"jobs is {jobs}, it must be 1 or more")
    _av()
    demonstrations = simulation.demonstrations
    _check_alone(folder, [demonstration.video for demonstration in demonstrations])
    write = partial(VideoRenderer(simulation, options, seed).write, folder=folder, espeak=find_espeak())
    for done, (demonstration, result) in enumerate(process_engine(write, demonstrations, jobs), start=1):
        if isinstance(result, WorkerDied):
            hint = "it may have run out of memory: take fewer jobs"
            raise InputError(f"the process that rendered {demonstration.video} came to a sudden end", hint=hint)
        progress(done, len(demonstrations), demonstration.video)
    return [folder / f"{demonstration.video}.mp4" for demonstration in demonstrations]


def _check_alone(folder: Path, videos: Iterable[str]) -> None:
    ours = set(videos)
    for suffix in (".mp4", ".vtt"):
        for path in sorted(folder.glob(f"*{suffix}")):
            if path.stem not in ours:
                hint = "remove it, or write to another folder"
                raise InputError("belongs to another simulation than the one to be rendered", where=path, hint=hint)


# -- one file ---------------------------------------------------------------------------------------------------


def encode_mp4(frames: Iterable[Image], sound: Waveform | None, options: RenderOptions) -> bytes:
    """Encode an mp4 file of h264 frames and, where there is sound, AAC; without dates or versions of programs in it.

    x264 has one thread, since what it writes depends on their number, and no macroblock tree, which it does not always
    compute alike.
    """
    av = _av()
    file = io.BytesIO()
    with av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        video = container.add_stream("libx264", rate=options.frames_per_second)
        video.width, video.height, video.pix_fmt = options.width, options.height, "yuv420p"
        video.options = {"preset": "veryfast", "crf": str(QUALITY), "threads": "1", "x264-params": "mbtree=0"}
        streams = [video]
        if sound is not None:
            audio = container.add_stream("aac", rate=SAMPLE_RATE, layout="mono")
            audio.bit_rate, audio.options = BIT_RATE, {"aac_coder": "fast"}
            streams.append(audio)
        muxed = 0
        for number, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = number
            container.mux(video.encode(frame))
            if sound is not None:  # side by side with the frames, so that a player finds them together
                until = (number + 1) * SAMPLE_RATE // options.frames_per_second
                container.mux(audio.encode(_audio_frame(av, sound, muxed, until)))
                muxed = until
        if sound is not None and muxed < len(sound):
            container.mux(audio.encode(_audio_frame(av, sound, muxed, len(sound))))
        for stream in streams:
            container.mux(stream.encode(None))
    return file.getvalue()


def _audio_frame(av: ModuleType, sound: Waveform, first: int, until: int) -> Any:
    frame = av.AudioFrame.from_ndarray(sound[None, first:until], format="s16", layout="mono")
    frame.sample_rate, frame.pts = SAMPLE_RATE, first
    return frame


def _av() -> ModuleType:
    with optional_dependency("rendering videos", "video"):
        import av
    return av
