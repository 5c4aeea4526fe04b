"""Videos -> a feature store, in parallel. A run goes on from what is there: only what is new or has changed is done.

A video that fails is reported with its reason, and the others are kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msg2.errors import InputError
from msg2.logs import LOGGER, collect_logs
from msg2.media.feature_extraction import ExtractionOptions, FeatureExtractor
from msg2.media.feature_store import Provenance, StoreEntry, VideoKey, is_feature_store, open_store, write_store
from msg2.media.video_features import VideoFeatures
from msg2.media.video_files import VideoFiles
from msg2.parallel import ENGINES, WorkerDied
from msg2.progress import Progress, no_progress
from msg2.text import short_repr


class ExtractionResult(NamedTuple):
    """What became of a video."""

    video: str
    unchanged: bool = False
    """Whether its features are those of an earlier run."""
    failure: str | None = None
    """Why it has no features."""


def extract_features(
    videos: Sequence[VideoFiles],
    folder: str | Path,
    options: ExtractionOptions,
    *,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> list[ExtractionResult]:
    """Make the features of videos into the store in `folder`, which will hold these and no others.

    Videos whose files and encoders are as they were in an earlier run are not done again. The store is saved from time
    to time, so that little is lost where the run is interrupted.

    Parameters
    ----------
    videos : sequence of VideoFiles
        See `msg2.media.video_files.find_video_files`.
    folder : str or Path
        Where the store is, or will be.
    options : ExtractionOptions
        The encoders, and the models for speech and phrases. Where there are only captions, frames are not looked at.
    jobs : int, optional
        Videos that are worked on at a time.
    engine : str, optional
        A name in `msg2.parallel.ENGINES`.
    progress : Progress, optional
        Is called when the models are being loaded, and after every video.

    Returns
    -------
    list of ExtractionResult
        In the order in which the videos were done.

    Raises
    ------
    InputError
        Where a model cannot be loaded, or the folder holds what is no store.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.media.video_files import find_video_files
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "7_v1.vtt").write_text("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nflip it\\n")
    ...     results = extract_features(find_video_files(folder).found, f"{folder}/store", ExtractionOptions())
    ...     results[0].video, open_store(f"{folder}/store").features("toast", "v1").texts
    ('7_v1', ('flip it',))
    """
    if all(files.media is None for files in videos):
        options = replace(options, frame_encoder="none")
    progress(0, len(videos), "loading encoders")
    encoders, folder = _extractor(options).encoders, Path(folder)
    names = {files.video for files in videos}
    kept: dict[str, StoreEntry] = {}  # until a video is done, what the store has of it stays there
    if is_feature_store(folder) and (store := open_store(folder)).encoders == encoders:
        kept = {key[1]: entry for key, entry in store.entries.items() if key[1] in names and store.is_intact(key)}
    unsaved: dict[VideoKey, VideoFeatures] = {}
    origins: dict[VideoKey, Provenance] = {}
    results: list[ExtractionResult] = []
    saved, save_seconds = time.monotonic(), 0.0
    known = {video: entry.source_sha256 for video, entry in kept.items()}
    items = [(files, known.get(files.video)) for files in videos]
    for (files, _), result in ENGINES[engine](partial(_process_video, options), items, jobs):
        if isinstance(result, WorkerDied):
            result = _WorkerResult(f"{files.path}: the program broke down over this file", [])
        for level, message in result.messages:
            LOGGER.log(level, "%s: %s", short_repr(files.video), message)
        if result.outcome is not None:
            kept.pop(files.video, None)
        failure = result.outcome if isinstance(result.outcome, str) else None
        if isinstance(result.outcome, tuple):
            key = (None, files.video)
            unsaved[key], origins[key] = result.outcome
        began = time.monotonic()
        if began - saved > 20 * save_seconds:  # what is quickly saved is saved after every video or so
            store = write_store(folder, unsaved, encoders, kept=kept.values(), origins=origins)
            kept, unsaved = {entry.video: entry for entry in store.entries.values()}, {}
            saved = time.monotonic()
            save_seconds = saved - began
        results.append(ExtractionResult(files.video, unchanged=result.outcome is None, failure=failure))
        progress(len(results), len(videos), files.video)
    write_store(folder, unsaved, encoders, kept=kept.values(), origins=origins)
    return results


_Outcome: TypeAlias = tuple[VideoFeatures, Provenance] | str | None
"""Features and where they come from; or why there are none; or nothing, where the files are as they were."""


class _WorkerResult(NamedTuple):
    outcome: _Outcome
    messages: list[tuple[int, str]]
    """Of the log: level and text."""


def _process_video(options: ExtractionOptions, item: tuple[VideoFiles, str | None]) -> _WorkerResult:
    """Make the features of one video, in whatever process; `item` has the hash of its files in an earlier run, too."""
    with collect_logs() as log:
        return _WorkerResult(_extract(options, *item), log.messages)


def _extract(options: ExtractionOptions, files: VideoFiles, known_sha256: str | None) -> _Outcome:
    try:
        sha256 = files.sha256()
        if sha256 == known_sha256:
            return None
        features, narration = _extractor(options)(files)
        return features, Provenance(sha256, narration)
    except InputError as error:
        return " ".join(str(error).split())
    except MemoryError:
        return f"{files.path}: there is not enough memory for this file"


@cache
def _extractor(options: ExtractionOptions) -> FeatureExtractor:
    """The models of a process."""
    return FeatureExtractor(options)
