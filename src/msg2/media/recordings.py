"""Which files belong to which video, in folders as people have them: downloads from YouTube, one folder per task, …

A media file and a caption file belong to a video by their names, see `msg2.readers.captions.name_finder`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.readers.captions import CAPTION_SUFFIXES, name_finder
from msg2.readers.sources import Source

MEDIA_SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".flv", ".mpg", ".mpeg", ".ts", ".mts", ".wmv", ".3gp", ".ogv",
    ".mp3", ".m4a", ".wav", ".flac", ".ogg", ".opus", ".aac",
)  # fmt: skip
"""Of video and sound files; what else lies in a folder is passed over, unfinished downloads too."""

_ID = re.compile(r" \[([^\[\]]+)\](?:\.[A-Za-z0-9+-]+)*$")
"""In the name of a file as yt-dlp writes it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The files of one video."""

    video: str
    """Its id where that is known, else the name of its file without suffix."""
    media: Path | None
    captions: Path | None

    @property
    def path(self) -> Path:
        """The file to name when something is wrong with the video."""
        found = self.media or self.captions
        assert found is not None
        return found

    def sha256(self) -> str:
        """Of its file; of the hashes of both where there are captions beside the media."""
        hashes = [_sha256(path) for path in (self.media, self.captions) if path is not None]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()


class Recordings(NamedTuple):
    """What was found in a folder."""

    found: tuple[Recording, ...]
    missing: tuple[str, ...]
    """Ids of videos that were wanted and have no file."""


def recordings(
    path: str | Path,
    *,
    captions: str | Path | None = None,
    wanted: Iterable[str] | None = None,
    language: str | None = None,
) -> Recordings:
    """The videos in a folder and the folders in it, or of one file; where there are captions only, these.

    Captions lie beside the videos, or anywhere in the folder `captions`. With `wanted` ids only these videos are taken,
    and called by their ids. Of captions in several languages, those in `language` are taken.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("Best toast [0TiNZJum-bk].mp4", "Best toast [0TiNZJum-bk].en.vtt", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     found, missing = recordings(folder, wanted=["0TiNZJum-bk", "v2"])
    ...     found[0].captions.name, missing
    ('Best toast [0TiNZJum-bk].en.vtt', ('v2',))
    """
    source = Source.at(path)
    listed = [*_files(source)]
    media = {} if _says(source) else _by_name(file for file in listed if _shows(file) or not source.is_folder)
    near = _named_alike(source) if media and not source.is_folder else listed
    heard = _by_name(file for file in near if _says(file))
    if not media and not heard:
        raise InputError("the folder holds no videos and no captions", where=path, hint="see: msg2 features -h")
    if captions is not None:
        heard = _by_name(file for file in _files(Source.at(captions)) if _says(file)) or _no_captions(captions)
    captions_of = name_finder(heard, language)
    if wanted is None:
        pairs = [(name, file) for name, file in (media or heard).items()]
        missing = []
    else:
        name_of = name_finder(media or heard, language)
        names = {video: name_of(video) for video in sorted(set(wanted))}
        pairs = [(video, (media or heard)[name]) for video, name in names.items() if name is not None]
        missing = [video for video, name in names.items() if name is None]
    if not media:
        return Recordings(tuple(Recording(name, None, file.path) for name, file in pairs), tuple(missing))
    return Recordings(
        tuple(Recording(name, file.path, _captions(name, file, heard, captions_of)) for name, file in pairs),
        tuple(missing),
    )


def _files(source: Source) -> Iterator[Source]:
    """The file itself, or every file in the folder and those in it."""
    if not source.is_folder:
        yield source
    yield from source.files
    for folder in source.folders:
        yield from _files(folder)


def _named_alike(file: Source) -> Iterator[Source]:
    """The files that lie beside a file and may be its captions."""
    return (other for other in Source.at(file.path.parent).files if other.stem.startswith(file.stem))


def _shows(file: Source) -> bool:
    return file.path.suffix.lower() in MEDIA_SUFFIXES


def _says(file: Source) -> bool:
    return not file.is_folder and file.path.name.lower().endswith(CAPTION_SUFFIXES)


def _by_name(files: Iterable[Source]) -> dict[str, Source]:
    """By name without suffix; of copies of one file, the first."""
    found: dict[str, Source] = {}
    for file in files:
        other = found.setdefault(file.stem, file)
        if other is not file and not _same(other.path, file.path):
            what = f"is the second file of {shortened(file.stem)}, beside {other.path}"
            raise InputError(what, where=file.path, hint="keep one of them")
    return found


def _same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and _sha256(one) == _sha256(other)


def _captions(
    video: str, file: Source, heard: dict[str, Source], captions_of: Callable[[str], str | None]
) -> Path | None:
    """Found by the video's id, or by the name of its file, or by the id at the end of that."""
    ids = (video, file.stem, *_ID.findall(file.stem))
    return next((heard[name].path for name in map(captions_of, ids) if name is not None), None)


def _no_captions(folder: str | Path) -> dict[str, Source]:
    raise InputError("the folder holds no captions", where=folder, hint="give a folder of .vtt or .srt files")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=path) from None
