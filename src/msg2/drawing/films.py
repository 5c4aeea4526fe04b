"""Where a page finds the files of its videos: addresses relative to it, so that both can be moved together."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from msg2.media.recordings import recordings
from msg2.task import Task


def films(videos: Task, folder: Path, page: Path) -> dict[str, str]:
    """By id, the addresses of those of `videos` that have a file in `folder` or the folders in it, for a `page`.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.task import Video
    >>> with TemporaryDirectory() as home:
    ...     folder = Path(home, "videos")
    ...     folder.mkdir()
    ...     Path(folder, "tea #1.mp4").touch()
    ...     films(Task("tea", [], [Video("tea #1", []), Video("v2", [])]), folder, Path(home, "page.html"))
    {'tea #1': 'videos/tea%20%231.mp4'}
    """
    found, _ = recordings(folder, wanted=[video.id for video in videos])
    home = page.resolve().parent
    return {
        recording.video: quote(Path(os.path.relpath(recording.media.resolve(), home)).as_posix())
        for recording in found
        if recording.media is not None
    }
