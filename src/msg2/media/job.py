"""Videos -> a feature store. A run goes on from what is there: after an interruption, or new videos, only the rest.

A video that fails is told with its reason, and the others are kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msg2.errors import InputError, shortened
from msg2.media.engines import ENGINES, Died
from msg2.media.extraction import Extractor
from msg2.media.features import Features
from msg2.media.manifest import NAME, Encoders, Entry
from msg2.media.recordings import Recording
from msg2.media.store import Key, Origin, open_store, write_store
from msg2.options import ExtractionOptions
from msg2.remarks import LOGGER, kept_remarks


class Dealt(NamedTuple):
    """A video that has been dealt with."""

    video: str
    before: bool = False
    """Whether that was done by an earlier run."""
    failure: str | None = None
    """Why it has no features."""


@dataclass(frozen=True)
class FeatureJob:
    """What there is to do for a store, and what was done before; see `feature_job`."""

    folder: Path
    options: ExtractionOptions
    encoders: Encoders
    recordings: Sequence[Recording]
    before: Mapping[str, Entry]
    """Video -> its entry in the store that is there, where that was made by the same encoders and is intact."""

    def run(self, jobs: int = 1, engine: str = "local") -> Iterator[Dealt]:
        """Make the features of every recording that is new or has changed; each is given back when it is dealt with.

        When all are, the store is complete.
        """
        # Until a video is dealt with, what the store has of it stays there.
        kept = {one.video: self.before[one.video] for one in self.recordings if one.video in self.before}
        waiting: dict[Key, Features] = {}
        origins: dict[Key, Origin] = {}
        saved, cost = time.monotonic(), 0.0
        known = {video: entry.source_sha256 for video, entry in self.before.items()}
        items = [_Item(recording, known.get(recording.video)) for recording in self.recordings]
        for (recording, _), made in ENGINES[engine](partial(_made, self.options), items, jobs):
            if isinstance(made, Died):
                made = _Made(f"{recording.path}: the program broke down over this file", [])
            for level, remark in made.remarks:
                LOGGER.log(level, "%s: %s", shortened(recording.video), remark)
            dealt = Dealt(recording.video, before=made.outcome is None)
            match made.outcome:
                case str(reason):
                    kept.pop(recording.video, None)
                    dealt = dealt._replace(failure=reason)
                case features, origin:
                    kept.pop(recording.video, None)
                    key = (None, recording.video)
                    waiting[key], origins[key] = features, origin
            began = time.monotonic()
            if began - saved > 20 * cost:  # what is quickly saved is saved after every video or so
                store = write_store(self.folder, waiting, self.encoders, kept=kept.values(), origins=origins)
                kept, waiting = {entry.video: entry for entry in store.manifest.entries}, {}
                saved = time.monotonic()
                cost = saved - began
            yield dealt
        write_store(self.folder, waiting, self.encoders, kept=kept.values(), origins=origins)


def feature_job(recordings: Sequence[Recording], folder: str | Path, options: ExtractionOptions) -> FeatureJob:
    """The job of making the features of `recordings` into the store in `folder`, which will hold these and no others.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.media.recordings import recordings
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "7_v1.vtt").write_text("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nflip it\\n")
    ...     job = feature_job(recordings(folder).found, f"{folder}/store", ExtractionOptions())
    ...     [dealt.video for dealt in job.run()], open_store(f"{folder}/store").features("toast", "v1").texts
    (['7_v1'], ('flip it',))
    """
    if all(recording.media is None for recording in recordings):
        options = replace(options, frame_encoder="none")
    encoders, folder = _extractor(options).encoders, Path(folder)
    before: dict[str, Entry] = {}
    if (folder / NAME).exists():
        store = open_store(folder)
        if store.encoders == encoders:
            before = {entry.video: entry for key, entry in store.entries.items() if store.intact(key)}
    return FeatureJob(folder, options, encoders, recordings, before)


Outcome: TypeAlias = tuple[Features, Origin] | str | None
"""Features and where they come from; or why there are none; or nothing, where the files are as they were."""


class _Item(NamedTuple):
    recording: Recording
    known: str | None
    """The hash of its files when it was dealt with before."""


class _Made(NamedTuple):
    outcome: Outcome
    remarks: list[tuple[int, str]]


def _made(options: ExtractionOptions, item: _Item) -> _Made:
    """Deal with one recording, in whatever process."""
    with kept_remarks() as remarks:
        return _Made(_outcome(options, *item), remarks.kept)


def _outcome(options: ExtractionOptions, recording: Recording, known: str | None) -> Outcome:
    try:
        sha256 = recording.sha256()
        if sha256 == known:
            return None
        features, narration = _extractor(options)(recording)
        return features, Origin(sha256, narration)
    except InputError as error:
        return " ".join(str(error).split())
    except MemoryError:
        return f"{recording.path}: there is not enough memory for this file"


@cache
def _extractor(options: ExtractionOptions) -> Extractor:
    """The models of a process."""
    return Extractor(options)
