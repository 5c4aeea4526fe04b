"""Which files belong to which video, in folders as people have them: downloads from YouTube, one folder per task, …

A media file and a caption file belong to a video by their names, see `msg2.formats.captions.name_finder`.
"""

import filecmp
import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError
from msg2.files import file_sha256
from msg2.formats.captions import CAPTION_SUFFIXES, name_finder
from msg2.formats.source import Source
from msg2.text import short_repr

MEDIA_SUFFIXES = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".flv", ".mpg", ".mpeg", ".ts", ".mts", ".wmv", ".3gp", ".ogv",
    ".mp3", ".m4a", ".wav", ".flac", ".ogg", ".opus", ".aac",
)  # fmt: skip
"""Of video and sound files; what else lies in a folder is passed over, unfinished downloads too."""

_YOUTUBE_ID = re.compile(r" \[([^\[\]]+)\](?:\.[A-Za-z0-9+-]+)*$")  # in the name of a file as yt-dlp writes it

_MAX_NAMED = 20  # videos that are named when files are missing

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VideoFiles:
    """The files of one video."""

    video: str
    """Its id where that is known, else the name of its file without suffix."""
    media: Path | None
    captions: Path | None

    @property
    def path(self) -> Path:
        """The file to name when something is wrong with the video."""
        path = self.media or self.captions
        assert path is not None
        return path

    def sha256(self) -> str:
        """Hash its file; or the hashes of both where there are captions beside the media."""
        hashes = [file_sha256(path) for path in (self.media, self.captions) if path is not None]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()


class FoundVideos(NamedTuple):
    """The videos of a folder."""

    found: tuple[VideoFiles, ...]
    missing: tuple[str, ...]
    """Ids of videos that were wanted and have no file."""


def find_video_files(
    path: str | Path,
    *,
    captions: str | Path | None = None,
    wanted: Iterable[str] | None = None,
    language: str | None = None,
) -> FoundVideos:
    """Find the videos in a folder and the folders in it, with their captions; where there are captions only, these."""
    source = Source.at(path)
    nearby, alone = [*_files(source)], not source.is_folder
    possible = [file for file in nearby if alone or file.path.suffix.lower() in MEDIA_SUFFIXES]
    media = {} if _is_caption(source) else _by_name(possible)
    if media and alone:
        nearby = [other for other in Source.at(source.path.parent).files if other.stem.startswith(source.stem)]
    caption_files = _by_name(filter(_is_caption, nearby))
    if not media and not caption_files:
        raise InputError("the folder holds no videos and no captions", where=path, hint="see: msg2 features -h")
    if captions is not None:
        caption_files = _by_name(filter(_is_caption, _files(Source.at(captions))))
        if not caption_files:
            raise InputError("the folder holds no captions", where=captions, hint="give a folder of .vtt or .srt files")
    files = media or caption_files
    names: Mapping[str, str | None] = {name: name for name in files}
    if wanted is not None:
        name_of = name_finder(files, language)
        names = {video: name_of(video) for video in sorted(set(wanted))}
    captions_of = name_finder(caption_files, language)
    videos = []
    for video, name in names.items():
        if name is not None and not media:
            videos.append(VideoFiles(video, None, caption_files[name].path))
        elif name is not None:  # captions have the video's id, the name of its file, or the id at the end of that
            ids = (video, media[name].stem, *_YOUTUBE_ID.findall(media[name].stem))
            own = next((caption_files[own].path for own in map(captions_of, ids) if own is not None), None)
            videos.append(VideoFiles(video, media[name].path, own))
    return FoundVideos(tuple(videos), tuple(video for video, name in names.items() if name is None))


def _files(source: Source) -> Iterator[Source]:
    """The file itself, or every file in the folder and those in it."""
    if not source.is_folder:
        yield source
    yield from source.files
    for folder in source.folders:
        yield from _files(folder)


def _is_caption(file: Source) -> bool:
    return not file.is_folder and file.path.name.lower().endswith(CAPTION_SUFFIXES)


def _by_name(files: Iterable[Source]) -> dict[str, Source]:
    """By name without suffix; of copies of one file, the first."""
    named: dict[str, Source] = {}
    for file in files:
        first = named.setdefault(file.stem, file)
        if first is not file and not filecmp.cmp(first.path, file.path, shallow=False):
            what = f"is the second file of {short_repr(file.stem)}, beside {first.path}"
            raise InputError(what, where=file.path, hint="keep one of them")
    return named


def require_video_files(
    videos: Path, captions: Path | None, wanted: Iterable[str] | None, language: str | None
) -> Sequence[VideoFiles]:
    """Find the files of the wanted videos; a warning names those that have none."""
    found, missing = find_video_files(videos, captions=captions, wanted=wanted, language=language)
    if not found:
        hint = f"no file here is called after {short_repr(missing[0])}" if missing else None
        raise InputError("holds none of the labelled videos", where=videos, hint=hint)
    if missing:
        names = ", ".join(missing[:_MAX_NAMED]) + (", …" if len(missing) > _MAX_NAMED else "")
        _log.warning("%d of %d labelled videos have no file: %s", len(missing), len(missing) + len(found), names)
    return found
