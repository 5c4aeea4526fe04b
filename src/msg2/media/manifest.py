"""What a feature store says about itself: its encoders, and every video with its file, hash and counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from msg2.errors import InputError, shortened
from msg2.readers.documents import member
from msg2.readers.sources import Source

FORMAT = "msg2.features/1"
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Encoders:
    """What made the vectors of a store: encoders by name (None: there are no such vectors), widths, versions.

    >>> Encoders(sentences="words", sentence_width=512).frame_width
    0
    """

    frames: str | None = None
    sentences: str | None = None
    frame_width: int = 0
    sentence_width: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    """Package -> version, of every package that had a part in the numbers."""
    settings: Mapping[str, str | float] = field(default_factory=dict)
    """What else the vectors depend on, such as how often a frame was taken."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One video of a store."""

    task: str | None
    """None where the video is the same in whichever task it occurs."""
    video: str
    file: str
    """Name in the folder of the store."""
    sha256: str
    """Of the file."""
    frames: int
    sentences: int
    source_sha256: str | None = None
    """Of the file, or files, that the features were made from."""
    narration: str | None = None
    """Where the sentences come from: captions or speech, and the language where it is known."""

    @property
    def order(self) -> tuple[bool, str, str]:
        """Entries are sorted by task and video, those without task first."""
        return self.task is not None, self.task or "", self.video


@dataclass(frozen=True, slots=True)
class Manifest:
    """The encoders and the sorted entries of a store."""

    encoders: Encoders
    entries: tuple[Entry, ...]

    def dumps(self) -> str:
        """The text of `manifest.json`: the same for the same content, whatever the order it came in."""
        encoder = asdict(self.encoders)
        versions, settings = (dict(sorted(encoder.pop(name).items())) for name in ("versions", "settings"))
        videos = [asdict(entry) for entry in sorted(self.entries, key=lambda entry: entry.order)]
        document = {"format": FORMAT, "encoder": encoder, "versions": versions, "settings": settings}
        return json.dumps(document | {"videos": videos}, ensure_ascii=False, indent=1) + "\n"


def manifest_in(folder: Path) -> Manifest:
    """The manifest of the store in `folder`; what is wrong with it is said with the path to the value."""
    path = folder / NAME
    if Source.at(folder).is_folder and not path.exists():
        raise InputError(
            f"is not a feature store, there is no {NAME} in it", where=folder, hint="see: msg2 features -h"
        )
    try:
        return _manifest(Source.at(path).document, f"{path}, $")
    except InputError as error:
        hint = error.hint or "remove the folder and make the features again"
        raise InputError(error.what, where=error.where, hint=hint) from None


def _manifest(document: Any, where: str) -> Manifest:
    if not isinstance(document, dict):
        raise InputError("is not a JSON object", where=where)
    found = member(document, "format", str, where)
    if found != FORMAT:
        what = f"is {shortened(found)}, this version of msg2 reads {FORMAT!r}"
        raise InputError(what, where=f"{where}.format")
    made = member(document, "encoder", dict, where)
    versions = member(document, "versions", dict, where)
    settings = member(document, "settings", dict, where) if "settings" in document else {}  # older stores have none
    encoders = Encoders(
        _text_or_null(made, "frames", f"{where}.encoder"),
        _text_or_null(made, "sentences", f"{where}.encoder"),
        _count(made, "frame_width", f"{where}.encoder"),
        _count(made, "sentence_width", f"{where}.encoder"),
        {package: member(versions, package, str, f"{where}.versions") for package in versions},
        settings,
    )
    listed = member(document, "videos", list, where)
    entries = [_entry(value, f"{where}.videos[{index}]") for index, value in enumerate(listed)]
    entries.sort(key=lambda entry: entry.order)
    for one, other in pairwise(entries):
        if one.order == other.order:
            raise InputError(f"lists the video {shortened(one.video)} twice", where=f"{where}.videos")
    return Manifest(encoders, tuple(entries))


def _entry(value: Any, where: str) -> Entry:
    entry = Entry(
        _text_or_null(value, "task", where),
        member(value, "video", str, where),
        member(value, "file", str, where),
        member(value, "sha256", str, where),
        _count(value, "frames", where),
        _count(value, "sentences", where),
        _text_or_null(value, "source_sha256", where),
        _text_or_null(value, "narration", where) if "narration" in value else None,  # older stores do not say
    )
    if not re.fullmatch(r"[a-z0-9-]+\.safetensors", entry.file):
        raise InputError(f"{shortened(entry.file)} is not the name of a feature file", where=f"{where}.file")
    return entry


def _text_or_null(value: Any, key: str, where: str) -> str | None:
    missing = isinstance(value, dict) and key in value and value[key] is None
    return None if missing else str(member(value, key, str, where))


def _count(value: Any, key: str, where: str) -> int:
    found = int(member(value, key, int, where))
    if found < 0:
        raise InputError(f"is {found}, it must be 0 or more", where=f"{where}.{key}")
    return found
