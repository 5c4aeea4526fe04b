"""From video files to features: `python -m benchmarks.media` (`--smoke` for a few seconds).

One video, decoded alone, and encoded after or while it is decoded: by descriptors, which share the processors with
decoding, and by an encoder on another device that takes as long as decoding, for which this one only waits. Several
videos in one process, in two, and on a local Ray where that is installed, with all that it takes to start these. And
the peak memory of `msg2 features` on a video of one hour. All videos are generated, and gone afterwards.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from msg2.formats.video_files import find_video_files
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.media.image_encoders import ImageDescriptors, ImageEncoder
from msg2.media.video_decoding import BATCH_SIZE, FrameOptions, encode_frames, sample_frames
from msg2.text_encoders import Image

MOST_MEGABYTES = 1500
"""Of the extraction of one hour."""
WIDTH, HEIGHT = 640, 360


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    seconds: int = 120
    """Of the videos that are timed, at 25 pictures a second."""
    videos: int = 8
    long: int = 3600
    """Seconds of the long video, at 10 pictures a second."""
    repeats: int = 3
    """The fastest counts."""
    ray: bool = True


SMOKE = Scale(seconds=2, videos=2, long=60, repeats=1, ray=False)


# -- what is extracted from -----------------------------------------------------------------------------------------


def filmed(path: Path, seconds: int, rate: int, images: Iterator[np.ndarray]) -> Path:
    """A video of so many pictures a second; `images` are uint8 of shape (HEIGHT, WIDTH, 3)."""
    import av

    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"preset": "ultrafast", "crf": "28", "g": str(10 * rate)}
        latest, picture = None, None
        for number, image in enumerate(islice(images, seconds * rate)):
            if picture is None or image is not latest:
                latest, picture = image, av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
            picture.pts, picture.time_base = number, Fraction(1, rate)
            file.mux(stream.encode(picture))
        file.mux(stream.encode())
    return path


def moving() -> Iterator[np.ndarray]:
    """Coarse noise that wanders over the screen."""
    coarse = np.random.default_rng(0).integers(0, 256, (HEIGHT // 20, WIDTH // 20, 3), dtype=np.uint8)
    image = coarse.repeat(20, axis=0).repeat(20, axis=1)
    while True:
        image = np.roll(image, (1, 3), axis=(0, 1))
        yield image


def still(each: int) -> Iterator[np.ndarray]:
    """Scenes that stay for `each` pictures."""
    rng = np.random.default_rng(0)
    while True:
        scene = rng.integers(0, 256, (HEIGHT // 40, WIDTH // 40, 3), dtype=np.uint8).repeat(40, 0).repeat(40, 1)
        for _ in range(each):
            yield scene


# -- what is measured -----------------------------------------------------------------------------------------------


def fastest(runs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Seconds of each run, the fastest of its turns; all take turns, so that a busy moment is nobody's alone."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            found[name].append(time.perf_counter() - began)
    return {name: min(seconds) for name, seconds in found.items()}


@dataclass(frozen=True)
class Elsewhere:
    """An encoder on another device, such as a GPU."""

    seconds: float
    """Per picture."""
    name = "elsewhere"
    width = 1
    versions: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Wait until it is done."""
        time.sleep(self.seconds * len(images))
        return np.ones((len(images), 1), np.float32)


def overlap(path: Path, repeats: int) -> dict[str, float]:
    """Seconds of one video, with encoding after and while it is decoded."""
    options = FrameOptions()
    number = sum(1 for _ in sample_frames(path, options))
    decoding = {"decoding": lambda: sum(1 for _ in sample_frames(path, options))}
    per_picture = fastest(decoding, repeats)["decoding"] / number
    runs: dict[str, Callable[[], object]] = {**decoding}
    for name, encoder in (("by descriptors", ImageDescriptors()), ("elsewhere", Elsewhere(per_picture))):
        runs[f"decoding, then encoding {name}"] = partial(one_after_the_other, path, encoder, options)
        runs[f"decoding while encoding {name}"] = partial(encode_frames, path, encoder, options)
    return fastest(runs, repeats)


def one_after_the_other(path: Path, encoder: ImageEncoder, options: FrameOptions) -> None:
    """A batch is decoded, then encoded, and so on."""
    decoded = sample_frames(path, options)
    while batch := [frame.image for frame in islice(decoded, BATCH_SIZE)]:
        encoder(batch)


def stored(videos: Path, jobs: int, engine: str = "local") -> None:
    """Make the store of all videos, and forget it."""
    store = videos.with_name("store")
    results = extract_features(find_video_files(videos).found, store, ExtractionOptions(), jobs=jobs, engine=engine)
    failed = [result for result in results if result.failure is not None]
    rmtree(store)
    if failed:
        raise RuntimeError(failed[0].failure)


@dataclass(frozen=True, slots=True)
class Long:
    """`msg2 features` on a long video."""

    seconds: float
    megabytes: float
    """At the peak."""


def long(path: Path) -> Long:
    """Extract the features in a process of its own."""
    command = [sys.executable, "-c", "from msg2.cli import main; main()", "features", str(path), "-o", f"{path}.store"]
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"msg2 features ended with {child.returncode}")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, else kB
    return Long(time.perf_counter() - began, usage.ru_maxrss / unit)


# -- what is told ---------------------------------------------------------------------------------------------------


def table(title: str, column: str, seconds: Mapping[str, float], ratio: Callable[[float, float], float]) -> str:
    """Seconds of every run, and its ratio to the first one."""
    first = next(iter(seconds.values()))
    rows = [f"| {name} | {spent:.2f} | {ratio(spent, first):.2f} |" for name, spent in seconds.items()]
    return "\n".join([f"| {title} | s | {column} |", "|---|--:|--:|", *rows, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything; 1 where the long video takes too much memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="short videos, without Ray")
    scale = SMOKE if parser.parse_args(arguments).smoke else Scale()
    logging.disable(logging.WARNING)
    with TemporaryDirectory() as folder:
        # The long one comes first: a process is said to have used at least what the one that started it did.
        film = filmed(Path(folder, "long.mp4"), scale.long, 10, still(300))
        hour = long(film)
        film.unlink()
        print(
            "| msg2 features | peak MB | at most | s | video seconds a second |\n|---|--:|--:|--:|--:|\n"
            f"| {scale.long} s of {WIDTH} x {HEIGHT} | {hour.megabytes:.0f} | {MOST_MEGABYTES} | {hour.seconds:.1f} | "
            f"{scale.long / hour.seconds:.0f} |\n",
            flush=True,
        )
        videos = Path(folder, "videos")
        videos.mkdir()
        one = filmed(videos / "v0.mp4", scale.seconds, 25, moving())
        alone = overlap(one, scale.repeats)
        print(
            table(f"One video of {scale.seconds} s", "× decoding", alone, lambda spent, first: spent / first),
            flush=True,
        )
        for number in range(1, scale.videos):
            copyfile(one, videos / f"v{number}.mp4")
        runs = {"one process": lambda: stored(videos, 1), "two processes": lambda: stored(videos, 2)}
        if scale.ray and importlib.util.find_spec("ray") is not None:
            runs["a local Ray of two"] = lambda: stored(videos, 2, "ray")
        many = fastest(runs, scale.repeats)
        print(
            table(f"{scale.videos} videos of {scale.seconds} s", "× as fast", many, lambda spent, first: first / spent)
        )
    return int(hour.megabytes > MOST_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
