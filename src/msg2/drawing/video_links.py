"""Where a page finds the files of its videos: addresses relative to it, so that both can be moved together."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from msg2.media.video_files import find_video_files
from msg2.task import Task


def find_video_links(videos: Task, folder: Path, page: Path) -> dict[str, str]:
    """Find the files of videos and write their addresses for a page.

    Parameters
    ----------
    videos : Task
        The videos.
    folder : Path
        Where their files are; the folders in it are searched too.
    page : Path
        The page that links to them.

    Returns
    -------
    dict from str to str
        By the id of a video that has a file, its address relative to the page.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.task import Video
    >>> with TemporaryDirectory() as home:
    ...     folder = Path(home, "videos")
    ...     folder.mkdir()
    ...     Path(folder, "tea #1.mp4").touch()
    ...     find_video_links(Task("tea", [], [Video("tea #1", []), Video("v2", [])]), folder, Path(home, "page.html"))
    {'tea #1': 'videos/tea%20%231.mp4'}
    """
    found, _ = find_video_files(folder, wanted=[video.id for video in videos])
    home = page.resolve().parent
    return {
        recording.video: quote(Path(os.path.relpath(recording.media.resolve(), home)).as_posix())
        for recording in found
        if recording.media is not None
    }
