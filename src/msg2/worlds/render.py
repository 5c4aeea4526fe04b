"""Rendered worlds: every simulated demonstration as a short mp4 video with captions, and a narrator where there is one.

A video follows its script, noise and all: what was performed is seen whether or not anybody labelled it, at its real
time; what was skipped is not. The same seed gives the same bytes, whatever the number of processes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from msg2.errors import InputError, MissingExtraError
from msg2.files import write_together
from msg2.media.engines import Died, in_processes
from msg2.media.pictures import Picture
from msg2.options import RenderOptions
from msg2.task import Sentence
from msg2.worlds.features import script_of, stream
from msg2.worlds.noise import Demonstration
from msg2.worlds.props import props_of
from msg2.worlds.scenes import pictures
from msg2.worlds.script import Script
from msg2.worlds.simulation import Simulation
from msg2.worlds.spoken import Sound, as_captions, narrator, sentences, soundtrack

Report = Callable[[int, int, str], None]
"""Is told after every video: how many are done, of how many, and which one it was."""


# -- what a video shows and says --------------------------------------------------------------------------------


def filmed_script(simulation: Simulation, show: Demonstration, options: RenderOptions, seed: int) -> Script:
    """What the video of `show` shows and says, frame by frame: the truth about it, but for black moments at cuts.

    A script of features hides single frames of what is performed; a video hides whole moments, in the same share.
    """
    every_frame = replace(options.script, frames_per_second=float(options.frames_per_second), blank=0.0)
    script = script_of(simulation, show, every_frame, seed)
    moments = (script.frame_times // options.blank_seconds).astype(np.int64)
    rng = stream(seed, simulation.task.name, "blank", show.video)
    hidden = (rng.random(1 + moments[-1]) < options.script.blank)[moments]
    return replace(script, shown=np.where(hidden[:, None] & (script.shown >= 1), 0.0, script.shown))


def narration(simulation: Simulation, show: Demonstration, options: RenderOptions, seed: int) -> list[Sentence]:
    """What is said in the video of `show`: its captions."""
    rng = stream(seed, simulation.task.name, "spoken", show.video)
    return sentences(filmed_script(simulation, show, options, seed), simulation.graph.steps, rng)


# -- many videos ------------------------------------------------------------------------------------------------


def write_videos(
    folder: Path,
    simulation: Simulation,
    options: RenderOptions,
    seed: int,
    report: Report = lambda *_: None,
) -> list[Path]:
    """Write the video (`ID.mp4`) and captions (`ID.vtt`) of every demonstration to `folder`; returns the mp4 files.

    With espeak-ng the videos have sound. Files of the same names are replaced; a folder with other videos or captions
    is refused, since nothing would tell them from those of this simulation.
    """
    _av()
    shows = simulation.demonstrations
    _check_alone(folder, [show.video for show in shows])
    write = partial(_write, folder=folder, simulation=simulation, options=options, seed=seed, speaker=narrator())
    for done, (show, result) in enumerate(in_processes(write, shows, options.jobs), start=1):
        if isinstance(result, Died):
            hint = "it may have run out of memory: take fewer jobs"
            raise InputError(f"the process that rendered {show.video} came to a sudden end", hint=hint)
        report(done, len(shows), show.video)
    return [_path(folder, show) for show in shows]


def _write(
    show: Demonstration, *, folder: Path, simulation: Simulation, options: RenderOptions, seed: int, speaker: str | None
) -> None:
    """Render the video of `show` and write it with its captions: both or neither."""
    script = filmed_script(simulation, show, options, seed)
    said = narration(simulation, show, options, seed)
    props = props_of(simulation.task.name, simulation.graph.steps, seed)
    rng = stream(seed, simulation.task.name, "film", show.video)
    seconds = len(script.frame_times) / options.frames_per_second
    sound = None if speaker is None else soundtrack(said, speaker, seconds, options)
    video = encoded(pictures(script, props, options, rng), sound, options)
    path = _path(folder, show)
    write_together({path: video, path.with_suffix(".vtt"): as_captions(said)})


def _path(folder: Path, show: Demonstration) -> Path:
    return folder / f"{show.video}.mp4"


def _check_alone(folder: Path, videos: Iterable[str]) -> None:
    ours = set(videos)
    for suffix in (".mp4", ".vtt"):
        for path in sorted(folder.glob(f"*{suffix}")):
            if path.stem not in ours:
                hint = "remove it, or write to another folder"
                raise InputError("belongs to another simulation than the one to be rendered", where=path, hint=hint)


# -- one file ---------------------------------------------------------------------------------------------------


def encoded(frames: Iterable[Picture], sound: Sound | None, options: RenderOptions) -> bytes:
    """An mp4 file of h264 pictures and, where there is sound, AAC; without dates or versions of programs in it.

    x264 has one thread, since what it writes depends on their number, and no macroblock tree, which it does not always
    compute alike.
    """
    av = _av()
    file = io.BytesIO()
    with av.open(file, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        video = container.add_stream("libx264", rate=options.frames_per_second)
        video.width, video.height, video.pix_fmt = options.width, options.height, "yuv420p"
        video.options = {"preset": "veryfast", "crf": str(options.quality), "threads": "1", "x264-params": "mbtree=0"}
        streams = [video]
        if sound is not None:
            audio = container.add_stream("aac", rate=options.sample_rate, layout="mono")
            audio.bit_rate, audio.options = options.bit_rate, {"aac_coder": "fast"}
            streams.append(audio)
        heard = 0
        for number, picture in enumerate(frames):
            container.mux(video.encode(_video_frame(av, picture, number)))
            if sound is not None:  # side by side with the pictures, so that a player finds them together
                until = (number + 1) * options.sample_rate // options.frames_per_second
                container.mux(audio.encode(_audio_frame(av, sound, heard, until, options.sample_rate)))
                heard = until
        if sound is not None and heard < len(sound):
            container.mux(audio.encode(_audio_frame(av, sound, heard, len(sound), options.sample_rate)))
        for one in streams:
            container.mux(one.encode(None))
    return file.getvalue()


def _video_frame(av: ModuleType, picture: Picture, number: int) -> Any:
    frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
    frame.pts = number
    return frame


def _audio_frame(av: ModuleType, sound: Sound, first: int, until: int, sample_rate: int) -> Any:
    frame = av.AudioFrame.from_ndarray(sound[None, first:until], format="s16", layout="mono")
    frame.sample_rate, frame.pts = sample_rate, first
    return frame


def _av() -> ModuleType:
    try:
        import av
    except ImportError:
        raise MissingExtraError("rendering videos", "media") from None
    return av
