"""The feature store: a folder with one safetensors file per video, and a manifest that says what made them.

The name of a file holds the hash of its content, so a new store never overwrites what an older one in the same folder
needs: the manifest, written last and in one step, is the moment at which the new store takes the older one's place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.files import safe_names, write_whole
from msg2.media.features import Features
from msg2.media.manifest import NAME, Encoders, Entry, Manifest, manifest_in
from msg2.readers.captions import name_finder

__all__ = ["Encoders", "Entry", "FeatureStore", "open_store", "write_store"]

Key: TypeAlias = tuple[str | None, str]
"""(task, video); the task is None where a video is the same in whichever task it occurs."""

_AGAIN = "make the features again"
_KINDS = {"frame_times": "float64", "frames": "float32", "sentence_times": "float64", "sentences": "float32"}
"""The tensors of a file and their types."""


# -- reading ----------------------------------------------------------------------------------------------------


def open_store(folder: str | Path) -> FeatureStore:
    """The store in `folder`; its manifest is checked now, each video's file when it is read.

    >>> open_store("nowhere")
    Traceback (most recent call last):
    msg2.errors.InputError: nowhere: is not there
      check the path
    """
    return FeatureStore(Path(folder), manifest_in(Path(folder)))


@dataclass(frozen=True)
class FeatureStore:
    """An open store: `store.features("Make Coffee", "v1")`."""

    folder: Path
    manifest: Manifest

    @property
    def encoders(self) -> Encoders:
        """What made the vectors, and how wide they are."""
        return self.manifest.encoders

    @cached_property
    def entries(self) -> dict[Key, Entry]:
        """(task, video) -> where its features are."""
        return {(entry.task, entry.video): entry for entry in self.manifest.entries}

    def features(self, task: str, video: str) -> Features | None:
        """The features of a task's video: those kept for this task, else those kept for any; None if there are none.

        A video that is kept for any task may have the name of its caption file, see `msg2.readers.captions`.
        """
        if (task, video) in self.entries:
            return self.read((task, video))
        try:
            name = self._name_of(video)
        except InputError as error:
            raise InputError(error.what, where=self.folder, hint=error.hint) from None
        return None if name is None else self.read((None, name))

    @cached_property
    def _name_of(self) -> Callable[[str], str | None]:
        return name_finder(video for task, video in self.entries if task is None)

    def read(self, key: Key) -> Features:
        """The features of an entry, everything checked against the manifest."""
        entry = self.entries[key]
        path = self.folder / entry.file
        try:
            return _unpacked(self._content(entry), entry, self.encoders)
        except MissingExtraError:
            raise
        except InputError as error:
            raise InputError(error.what, where=path, hint=_AGAIN) from None

    def intact(self, key: Key) -> bool:
        """Whether the file of an entry is there, as it was written."""
        try:
            self._content(self.entries[key])
        except InputError:
            return False
        return True

    def _content(self, entry: Entry) -> bytes:
        try:
            content = (self.folder / entry.file).read_bytes()
        except FileNotFoundError:
            raise InputError("is not there") from None
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})") from None
        if _sha256(content) != entry.sha256:
            raise InputError("is not the file that was written (another sha256)")
        return content


def _unpacked(content: bytes, entry: Entry, encoders: Encoders) -> Features:
    tensors = _safetensors()
    try:
        found: dict[str, Any] = tensors.load(content)
    except Exception as error:  # the package raises bare types for a broken file, and for types that NumPy lacks
        raise InputError(f"is no safetensors file ({error})") from None
    shapes = {
        "frame_times": (entry.frames,), "frames": (entry.frames, encoders.frame_width),
        "sentence_times": (entry.sentences, 2), "sentences": (entry.sentences, encoders.sentence_width),
    }  # fmt: skip
    if found.keys() != shapes.keys():
        raise InputError(f"holds the tensors {', '.join(sorted(found))}, not {', '.join(shapes)}")
    for name, array in found.items():
        if (str(array.dtype), array.shape) != (_KINDS[name], shapes[name]):
            what = f"{name} is {array.dtype} of shape {array.shape}, not {_KINDS[name]} of shape {shapes[name]}"
            raise InputError(what)
    return Features(**found, texts=_texts(content))


def _texts(content: bytes) -> tuple[str, ...]:
    """The words of the sentences: JSON in the header of the file, which is as long as its first eight bytes say."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    try:
        texts = json.loads(header.get("__metadata__", {}).get("texts", "[]"))
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise ValueError("not a list of texts")
    except ValueError as error:
        raise InputError(f"its texts cannot be read ({error})") from None
    return tuple(texts)


# -- writing ----------------------------------------------------------------------------------------------------

_OURS = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.safetensors|\.msg2-[0-9a-f]{16}")
"""Names of the files that a store writes, and of their temporary ones."""


class Origin(NamedTuple):
    """Where the features of a video come from; see `Entry`."""

    sha256: str
    narration: str | None = None


def write_store(
    folder: str | Path,
    entries: Mapping[Key, Features],
    encoders: Encoders,
    *,
    kept: Iterable[Entry] = (),
    origins: Mapping[Key, Origin] | None = None,
) -> FeatureStore:
    """Write the features of videos and the entries `kept` of the store that is there, and forget all else of it.

    What an interrupted run has left behind is removed, too.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> one = Features(np.array([0.0, 1.0]), np.ones((2, 4)), np.zeros((0, 2)), np.zeros((0, 8)))
    >>> with TemporaryDirectory() as folder:
    ...     store = write_store(folder, {(None, "v1"): one}, Encoders("clip", "words", 4, 8))
    ...     store.features("Make Coffee", "v1").frames.shape
    (2, 4)
    """
    folder = Path(folder)
    if (folder / NAME).exists():
        open_store(folder)  # what is not a store of ours is not written over
    for key, features in entries.items():
        _check_widths(key, features, encoders)
    listed = {(entry.task, entry.video): entry for entry in kept}
    for key, features in entries.items():
        listed[key] = _written(folder, key, features, (origins or {}).get(key))
    manifest = Manifest(encoders, tuple(sorted(listed.values(), key=lambda entry: entry.order)))
    write_whole(folder / NAME, manifest.dumps())
    needed = {entry.file for entry in manifest.entries}
    for path in folder.iterdir():
        if path.name not in needed and _OURS.fullmatch(path.name):
            with suppress(OSError):  # a file that cannot be removed only takes up room
                path.unlink()
    return FeatureStore(folder, manifest)


def _written(folder: Path, key: Key, features: Features, origin: Origin | None) -> Entry:
    texts = {"texts": json.dumps(features.texts, ensure_ascii=False)} if features.texts else None
    content: bytes = _safetensors().save({name: getattr(features, name) for name in _KINDS}, texts)
    sha256 = _sha256(content)
    task, video = key
    name = f"{safe_names([video])[0]}-{sha256[:16]}.safetensors"
    write_whole(folder / name, content)
    return Entry(task, video, name, sha256, len(features.frames), len(features.sentences), *(origin or ()))


def _check_widths(key: Key, features: Features, encoders: Encoders) -> None:
    for name, width in (("frames", encoders.frame_width), ("sentences", encoders.sentence_width)):
        found = getattr(features, name).shape[1]
        if found != width:
            what = f"the {name} of video {shortened(key[1])} are {found} wide, those of the store are {width}"
            raise InputError(what, hint="make all features of a store with the same encoders")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingExtraError("the feature store", "states") from None
    return safetensors.numpy
