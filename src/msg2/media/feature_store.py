"""Features of videos, and the store that keeps them: a folder with one safetensors file per video, and a manifest.

Features are vectors of the frames and sentences of a video, with their times. The manifest says which encoders made
them. The name of a file holds the hash of its content, so a new store never overwrites what an older one in the same
folder needs. The manifest is written last, in one step; from that moment on the new store replaces the older one.
"""

from __future__ import annotations

import hashlib
import json
import re
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

from msg2.errors import InputError, optional_dependency
from msg2.files import safe_names, write_whole
from msg2.formats.captions import name_finder
from msg2.formats.source import Source
from msg2.options import from_json
from msg2.text import short_repr

DTYPES = {"frame_times": "float64", "frames": "float32", "sentence_times": "float64", "sentences": "float32"}
"""The arrays of features and their types."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFeatures:
    """The features of one video; times are seconds, in ascending order, vectors are float32.

    `frame_times` has shape (F,) and `frames` (F, width); `sentence_times` has shape (S, 2), start and end of each
    sentence, and `sentences` (S, width). F or S is 0 where a video has no frames or no narration. `texts` are the
    words of the sentences, or none where only their vectors are known.

    >>> VideoFeatures(np.array([0.0, 1.0]), np.ones((2, 4)), np.zeros((0, 2)), np.zeros((0, 4))).frames.dtype
    dtype('float32')
    """

    frame_times: NDArray[np.float64]
    frames: NDArray[np.float32]
    sentence_times: NDArray[np.float64]
    sentences: NDArray[np.float32]
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in DTYPES.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if not np.isfinite(array).all():
                raise InputError(f"{name} holds a value that is not a number")
            object.__setattr__(self, name, array)
        if self.frame_times.ndim != 1 or self.frames.ndim != 2 or len(self.frames) != len(self.frame_times):
            raise InputError(f"frames of shape {self.frames.shape} do not fit times of shape {self.frame_times.shape}")
        if self.sentence_times.shape[1:] != (2,) or self.sentences.ndim != 2:
            raise InputError("sentences need times of shape (S, 2) and vectors of shape (S, width)")
        if len(self.sentences) != len(self.sentence_times):
            raise InputError(f"{len(self.sentences)} sentences have {len(self.sentence_times)} times")
        if self.texts and len(self.texts) != len(self.sentences):
            raise InputError(f"{len(self.sentences)} sentences have {len(self.texts)} texts")
        for name, times in (("frame_times", self.frame_times), ("sentence_times", self.sentence_times[:, 0])):
            if (np.diff(times) < 0).any():
                raise InputError(f"{name} is not in ascending order")
        if (self.sentence_times[:, 1] < self.sentence_times[:, 0]).any():
            raise InputError("a sentence ends before it starts")


def l2_normalize(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale vectors, shape (…, width), to length 1; a vector of zeros stays.

    >>> l2_normalize(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


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

    @property
    def key(self) -> VideoKey:
        """Task and video."""
        return self.task, self.video


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
        raise InputError(what, where=folder, hint="see: msg2 features -h")
    try:
        manifest = from_json(Manifest, Source.at(path).read_bytes(), "$")
        entries: dict[VideoKey, StoreEntry] = {}
        for entry in manifest.videos:
            if entries.setdefault(entry.key, entry) is not entry:
                raise InputError(f"lists the video {short_repr(entry.video)} twice")
        encoders = replace(manifest.encoder, versions=manifest.versions, settings=manifest.settings)
        return FeatureStore(folder, encoders, _sort_entries(entries))
    except InputError as error:
        raise error.at(path, hint=error.hint or "remove the folder and make the features again") from None


@dataclass(frozen=True)
class FeatureStore:
    """An open store: `store.features("Make Coffee", "v1")`."""

    folder: Path
    encoders: Encoders
    """What made the vectors, and how wide they are."""
    entries: Mapping[VideoKey, StoreEntry]
    """(task, video) -> where its features are; sorted by task and video, those without task first."""

    def features(self, task: str, video: str) -> VideoFeatures | None:
        """Read the features of a video that are kept for this task, else those for any task; None if there are none.

        A video that is kept for any task may have the name of its caption file, see `msg2.formats.captions`.
        """
        if (task, video) in self.entries:
            return self.read((task, video))
        try:
            name = self._name_of(video)
        except InputError as error:
            raise error.at(self.folder) from None
        return None if name is None else self.read((None, name))

    @cached_property
    def _name_of(self) -> Callable[[str], str | None]:
        return name_finder(video for task, video in self.entries if task is None)

    def read(self, key: VideoKey) -> VideoFeatures:
        """Read the features of an entry, and check everything against the manifest."""
        entry, safetensors = self.entries[key], _safetensors()
        try:
            return self._parse_features(self._read_content(entry), entry, safetensors)
        except InputError as error:
            raise error.at(self.folder / entry.file, hint="make the features again") from None

    def is_intact(self, key: VideoKey) -> bool:
        """Whether the file of an entry is there, as it was written."""
        try:
            self._read_content(self.entries[key])
        except InputError:
            return False
        return True

    def _read_content(self, entry: StoreEntry) -> bytes:
        try:
            content = (self.folder / entry.file).read_bytes()
        except FileNotFoundError:
            raise InputError("is not there") from None
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})") from None
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise InputError("is not the file that was written (another sha256)")
        return content

    def _parse_features(self, content: bytes, entry: StoreEntry, safetensors: ModuleType) -> VideoFeatures:
        try:
            arrays: dict[str, np.ndarray] = safetensors.load(content)
        except Exception as error:  # the package raises bare types for a broken file, and for types that NumPy lacks
            raise InputError(f"is no safetensors file ({error})") from None
        shapes = {
            "frame_times": (entry.frames,), "frames": (entry.frames, self.encoders.frame_width),
            "sentence_times": (entry.sentences, 2), "sentences": (entry.sentences, self.encoders.sentence_width),
        }  # fmt: skip
        if arrays.keys() != shapes.keys():
            raise InputError(f"holds the tensors {', '.join(sorted(arrays))}, not {', '.join(shapes)}")
        for name, array in arrays.items():
            actual = f"{array.dtype} of shape {array.shape}"
            wanted = f"{DTYPES[name]} of shape {shapes[name]}"
            if actual != wanted:
                raise InputError(f"{name} is {actual}, not {wanted}")
        # The words of the sentences are JSON in the header of the file, which is as long as its first eight bytes say.
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        texts = from_json(tuple[str, ...], header.get("__metadata__", {}).get("texts", "[]"), "texts")
        return VideoFeatures(**arrays, texts=texts)


def _dump_manifest(encoders: Encoders, entries: Iterable[StoreEntry]) -> str:
    """The text of `manifest.json`: the same for the same content, whatever the order it came in."""
    encoder = asdict(encoders)
    versions, settings = (dict(sorted(encoder.pop(name).items())) for name in ("versions", "settings"))
    document = {"format": "msg2.features/1", "encoder": encoder, "versions": versions, "settings": settings}
    return json.dumps(document | {"videos": [*map(asdict, entries)]}, ensure_ascii=False, indent=1) + "\n"


def _sort_entries(entries: Mapping[VideoKey, StoreEntry]) -> dict[VideoKey, StoreEntry]:
    return {key: entries[key] for key in sorted(entries, key=lambda key: (key[0] is not None, key[0] or "", key[1]))}


_OWN_FILES = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.safetensors")  # names of the files that a store writes


def write_store(
    folder: str | Path,
    entries: Mapping[VideoKey, VideoFeatures],
    encoders: Encoders,
    *,
    kept: Iterable[StoreEntry] = (),
    origins: Mapping[VideoKey, tuple[str, str | None]] | None = None,
) -> FeatureStore:
    """Write a store: these features, and some entries of the store that is there; all else of that is removed.

    What an interrupted run has left behind is removed, too.

    `entries` has the features to write, `kept` those that stay, `origins` where features come from: the hash of their
    files, and of what kind the narration is (see `StoreEntry`).

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
        _check_widths(key, features, encoders)
    listed = {entry.key: entry for entry in kept}
    for key, features in entries.items():
        texts = {"texts": json.dumps(features.texts, ensure_ascii=False)} if features.texts else None
        content: bytes = _safetensors().save({name: getattr(features, name) for name in DTYPES}, texts)
        sha256 = hashlib.sha256(content).hexdigest()
        name = f"{safe_names([key[1]])[0]}-{sha256[:16]}.safetensors"
        write_whole(folder / name, content)
        counts, origin = (len(features.frames), len(features.sentences)), (origins or {}).get(key, ())
        listed[key] = StoreEntry(*key, name, sha256, *counts, *origin)
    store = FeatureStore(folder, encoders, _sort_entries(listed))
    write_whole(folder / MANIFEST_NAME, _dump_manifest(encoders, store.entries.values()))
    needed = {entry.file for entry in listed.values()}
    for path in folder.iterdir():
        if path.name not in needed and _OWN_FILES.fullmatch(path.name):
            with suppress(OSError):  # a file that cannot be removed only takes up space
                path.unlink()
    return store


def _check_widths(key: VideoKey, features: VideoFeatures, encoders: Encoders) -> None:
    for name, width in (("frames", encoders.frame_width), ("sentences", encoders.sentence_width)):
        actual = getattr(features, name).shape[1]
        if actual != width:
            what = f"the {name} of video {short_repr(key[1])} are {actual} wide, those of the store are {width}"
            raise InputError(what, hint="make all features of a store with the same encoders")


def _safetensors() -> ModuleType:
    with optional_dependency("the feature store", "video"):
        import safetensors.numpy
    return safetensors.numpy
