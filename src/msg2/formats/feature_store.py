"""Features of videos, and the store that keeps them: a folder with one safetensors file per video, and a manifest.

Features are vectors of the frames and sentences of a video, with their times. The manifest says which encoders made
them. The name of a file holds the hash of its content, so a new store never overwrites what an older one in the same
folder needs. The manifest is written last, in one step; from that moment on the new store replaces the older one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, StringConstraints

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.files import file_sha256, locked_folder, safe_names, write_whole
from msg2.formats.captions import name_finder
from msg2.formats.source import Source
from msg2.options import from_json
from msg2.text import short_repr

DTYPES = {"frame_times": "float64", "frames": "float32", "sentence_times": "float64", "sentences": "float32"}
"""The arrays of features and their types."""
STREAMS = "audio", "motion"
"""What there may be of a video besides frames and sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """The features of one video; times are seconds, in ascending order, vectors are float32.

    `frame_times` has shape (F,) and `frames` (F, width); `sentence_times` has shape (S, 2), start and end of each
    sentence, and `sentences` (S, width). F or S is 0 where a video has no frames or no narration. `texts` are the
    words of the sentences, or none where only their vectors are known. `streams` are what else there is at the time of
    each frame, by `STREAMS`, of shape (F, width).

    >>> VideoFeatures(np.array([0.0, 1.0]), np.ones((2, 4)), np.zeros((0, 2)), np.zeros((0, 4))).frames.dtype
    dtype('float32')
    """

    frame_times: NDArray[np.float64]
    frames: NDArray[np.float32]
    sentence_times: NDArray[np.float64]
    sentences: NDArray[np.float32]
    texts: tuple[str, ...] = ()
    streams: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arrays = {name: getattr(self, name) for name in DTYPES} | dict(self.streams)
        for name, array in arrays.items():
            arrays[name] = np.ascontiguousarray(array, dtype=DTYPES.get(name, "float32"))
            require(np.isfinite(arrays[name]).all(), f"{name} holds a value that is not a number")
        for name in DTYPES:
            object.__setattr__(self, name, arrays.pop(name))
        object.__setattr__(self, "streams", arrays)
        for what, columns in (("frame", ()), ("sentence", (2,))):
            times, vectors = getattr(self, f"{what}_times"), getattr(self, f"{what}s")
            if vectors.ndim != 2 or times.shape != (len(vectors), *columns):
                raise InputError(f"{what}s of shape {vectors.shape} do not fit times of shape {times.shape}")
            require(not (np.diff(np.atleast_2d(times.T)[0]) < 0).any(), f"{what}_times is not in ascending order")
        for name, vectors in self.streams.items():
            require(name in STREAMS, f"there is no stream {short_repr(name)}, only {' and '.join(STREAMS)}")
            what = f"{name} of shape {vectors.shape} does not fit {len(self.frame_times)} frames"
            require(vectors.ndim == 2 and len(vectors) == len(self.frame_times), what)
        if self.texts and len(self.texts) != len(self.sentences):
            raise InputError(f"{len(self.sentences)} sentences have {len(self.texts)} texts")
        require(not (self.sentence_times[:, 1] < self.sentence_times[:, 0]).any(), "a sentence ends before it starts")


def nearest_index(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """For every wanted moment the index of the nearest time, of ascending ones; the earlier of two."""
    if len(times) == 1:
        return np.zeros(len(wanted), dtype=np.int64)
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    return np.where(wanted - times[after - 1] <= times[after] - wanted, after - 1, after)


MANIFEST_NAME = "manifest.json"

VideoKey: TypeAlias = tuple[str | None, str]
"""(task, video); the task is None where a video is the same in whichever task it occurs."""


@dataclass(frozen=True, slots=True)
class Encoders:
    """What made the vectors of a store: encoders by name (None: there are no such vectors), widths, versions.

    >>> Encoders(sentences="words", sentence_width=512).frame_width
    0
    """

    frames: str | None = None
    sentences: str | None = None
    frame_width: NonNegativeInt = 0
    sentence_width: NonNegativeInt = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    """Package -> version, of every package that had a part in the numbers."""
    settings: Mapping[str, str | float] = field(default_factory=dict)
    """What else the vectors depend on, such as how often a frame was taken."""
    streams: Mapping[str, tuple[str, NonNegativeInt]] = field(default_factory=dict)
    """The encoder and the width of each stream besides frames and sentences."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One video of a store."""

    task: str | None
    """None where the video is the same in whichever task it occurs."""
    video: str
    file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+\.safetensors$")]
    """Name in the folder of the store."""
    sha256: str
    """Hash of the file."""
    frames: NonNegativeInt
    sentences: NonNegativeInt
    source_sha256: str | None = None
    """Hash of the file, or files, that the features were made from."""
    narration: str | None = None
    """Where the sentences come from: captions or speech, and the language where it is known."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `manifest.json`."""

    format: Literal["msg2.features/1"]
    encoder: Encoders  # without versions and settings, which are kept beside it
    versions: Mapping[str, str]
    videos: tuple[StoreEntry, ...]
    settings: Mapping[str, str | float] = field(default_factory=dict)


def is_feature_store(folder: Path) -> bool:
    """Tell whether a folder is a feature store."""
    return (folder / MANIFEST_NAME).exists()


def open_store(folder: str | Path | FeatureStore) -> FeatureStore:
    """Open the store in `folder`; its manifest is checked now, each video's file when it is read.

    An error names the path to the value that is wrong.

    >>> open_store("nowhere")
    Traceback (most recent call last):
    msg2.errors.InputError: nowhere: is not there
      check the path
    """
    if isinstance(folder, FeatureStore):
        return folder
    folder = Path(folder)
    path = folder / MANIFEST_NAME
    if Source.at(folder).is_folder and not path.exists():
        what = f"is not a feature store, there is no {MANIFEST_NAME} in it"
        raise InputError(what, where=folder, hint="make one: msg2 features VIDEOS, or msg2 features import FOLDER")
    with errors_at(path, hint="remove the folder and make the features again"):
        manifest = from_json(Manifest, Source.at(path).read_bytes(), "$")
        counts = Counter((entry.task, entry.video) for entry in manifest.videos)
        if repeated := [video for (_, video), count in counts.items() if count > 1]:
            raise InputError(f"lists the video {short_repr(repeated[0])} twice")
        encoders = replace(manifest.encoder, versions=manifest.versions, settings=manifest.settings)
        return FeatureStore(folder, encoders, _sort_entries(manifest.videos))


@dataclass(frozen=True)
class FeatureStore:
    """An open store: `store.features("Make Coffee", "v1")`."""

    folder: Path
    encoders: Encoders
    """What made the vectors, and how wide they are."""
    entries: Mapping[VideoKey, StoreEntry]
    """(task, video) -> where its features are; sorted by task and video, those without task first."""

    def features(self, task: str, video: str) -> VideoFeatures | None:
        """Read the features of a video, those for this task or else for any task (by the name of its captions)."""
        if (task, video) in self.entries:
            return self.read((task, video))
        with errors_at(self.folder):
            name = self._name_of(video)
        return None if name is None else self.read((None, name))

    @cached_property
    def _name_of(self) -> Callable[[str], str | None]:
        return name_finder(video for task, video in self.entries if task is None)

    def read(self, key: VideoKey) -> VideoFeatures:
        """Read the features of an entry, and check everything against the manifest."""
        entry, encoders = self.entries[key], self.encoders
        path, safetensors = self.folder / entry.file, _safetensors()
        with errors_at(path, hint="make the features again"):
            require(file_sha256(path) == entry.sha256, "is not the file that was written (another sha256)")
            try:
                with safetensors.safe_open(path, "numpy") as file:
                    arrays: dict[str, np.ndarray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                    metadata: Mapping[str, str] = file.metadata() or {}
            except Exception as error:  # the package raises bare types for a broken file, and for types NumPy lacks
                raise InputError(f"is no safetensors file ({error})") from None
            shapes = {
                "frame_times": (entry.frames,), "frames": (entry.frames, encoders.frame_width),
                "sentence_times": (entry.sentences, 2), "sentences": (entry.sentences, encoders.sentence_width),
            }  # fmt: skip
            shapes |= {name: (entry.frames, width) for name, (_, width) in encoders.streams.items()}
            if arrays.keys() != shapes.keys():
                raise InputError(f"holds the tensors {', '.join(sorted(arrays))}, not {', '.join(shapes)}")
            for name, array in arrays.items():
                actual = f"{array.dtype} of shape {array.shape}"
                wanted = f"{DTYPES.get(name, 'float32')} of shape {shapes[name]}"
                require(actual == wanted, f"{name} is {actual}, not {wanted}")
            streams = {name: arrays.pop(name) for name in encoders.streams}
            texts = from_json(tuple[str, ...], metadata.get("texts", "[]"), "texts")
            return VideoFeatures(**arrays, texts=texts, streams=streams)

    def is_intact(self, key: VideoKey) -> bool:
        """Whether the file of an entry is there, as it was written."""
        entry = self.entries[key]
        with suppress(InputError):
            return file_sha256(self.folder / entry.file) == entry.sha256
        return False


def write_store(folder: str | Path, entries: Mapping[VideoKey, VideoFeatures], encoders: Encoders) -> FeatureStore:
    """Write a store, in the place of the one that is there, if any.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> features = VideoFeatures(np.array([0.0, 1.0]), np.ones((2, 4)), np.zeros((0, 2)), np.zeros((0, 8)))
    >>> with TemporaryDirectory() as folder:
    ...     store = write_store(folder, {(None, "v1"): features}, Encoders("clip", "words", 4, 8))
    ...     store.features("Make Coffee", "v1").frames.shape
    (2, 4)
    """
    folder = Path(folder)
    if is_feature_store(folder):
        open_store(folder)  # what is not a store of ours is not written over
    for key, features in entries.items():
        widths = {"frames": encoders.frame_width, "sentences": encoders.sentence_width}
        widths |= {name: width for name, (_, width) in encoders.streams.items()}
        vectors = {"frames": features.frames, "sentences": features.sentences, **features.streams}
        for name, width in widths.items():
            if (actual := vectors[name].shape[1] if name in vectors else 0) != width:
                what = f"the {name} of video {short_repr(key[1])} are {actual} wide, those of the store are {width}"
                raise InputError(what, hint="make all features of a store with the same encoders")
    with locked_folder(folder):
        written = [write_features(folder, key, features) for key, features in entries.items()]
        return write_manifest(folder, encoders, written)


def write_features(
    folder: Path, key: VideoKey, features: VideoFeatures, source_sha256: str | None = None, narration: str | None = None
) -> StoreEntry:
    """Write the file of a video; it belongs to the store once the manifest names it."""
    texts = {"texts": json.dumps(features.texts, ensure_ascii=False)} if features.texts else None
    arrays = {name: getattr(features, name) for name in DTYPES} | dict(features.streams)
    content: bytes = _safetensors().save(arrays, texts)
    sha256 = hashlib.sha256(content).hexdigest()
    name = f"{safe_names([key[1]])[0]}-{sha256[:16]}.safetensors"
    write_whole(folder / name, content)
    return StoreEntry(*key, name, sha256, len(features.frames), len(features.sentences), source_sha256, narration)


_OWN_FILES = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.safetensors")  # names of the files that a store writes


def write_manifest(folder: Path, encoders: Encoders, entries: Iterable[StoreEntry]) -> FeatureStore:
    """Make these entries the store, in any order, and remove its other files, also those of interrupted runs."""
    store = FeatureStore(folder, encoders, _sort_entries(entries))
    encoder = asdict(encoders)
    about = {name: dict(sorted(encoder.pop(name).items())) for name in ("versions", "settings")}
    if not encoder["streams"]:
        del encoder["streams"]
    videos = [asdict(entry) for entry in store.entries.values()]
    document = {"format": "msg2.features/1", "encoder": encoder, **about, "videos": videos}
    write_whole(folder / MANIFEST_NAME, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    needed = {entry.file for entry in store.entries.values()}
    for path in folder.iterdir():
        if path.name not in needed and _OWN_FILES.fullmatch(path.name):
            with suppress(OSError):  # a file that cannot be removed only takes up space
                path.unlink()
    return store


def _sort_entries(entries: Iterable[StoreEntry]) -> dict[VideoKey, StoreEntry]:
    ordered = sorted(entries, key=lambda entry: (entry.task is not None, entry.task or "", entry.video))
    return {(entry.task, entry.video): entry for entry in ordered}


def _safetensors() -> ModuleType:
    with optional_dependency("the feature store", "video"):
        import safetensors.numpy
    return safetensors.numpy
