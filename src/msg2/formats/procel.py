"""ProceL: one folder per task with `data.mat` (`grammar`, `key_steps_time`, `caption`, `caption_time`), `readme.txt`.

`key_steps_time` is, per video and key-step of the grammar, an array of [start, end] rows, possibly none: the labels
lie in the order of the grammar there, so only their times say what came first. Times are those of the trimmed videos.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at
from msg2.formats.reading import ReadOptions, ReadResult, timed_segment
from msg2.formats.source import Source
from msg2.task import Segment, Sentence, Step, Task, Video
from msg2.text import short_repr

DESCRIPTION = "ProceL (data.mat)"

_DATA, _README = "data.mat", "readme.txt"
_log = logging.getLogger(__name__)


def can_read(source: Source) -> bool:
    """Whether this is a MATLAB file, a task's folder, or a folder of such folders."""
    return bool(_data_files(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per `data.mat`, named after its folder.

    Parameters
    ----------
    source : Source
        A MATLAB file, the folder of a task, or a folder of such folders.
    options : ReadOptions
        Not looked at.

    Returns
    -------
    ReadResult
        The tasks, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    return ReadResult([_read_task(file) for file in _data_files(source)], {})


def _data_files(source: Source) -> list[Source]:
    if not source.is_folder:
        return [source] if source.head.startswith(b"MATLAB") else []
    folders = [source, *source.folders]
    return [file for folder in folders if (file := folder.member(_DATA)) is not None]


def _read_task(file: Source) -> Task:
    content = _read_content(file)
    grammar = [_cell_text(cell) for cell in _cell_list(content["grammar"])]
    if "" in grammar:
        raise InputError("has a step without a name", where=f"{file.path}, grammar{{{grammar.index('') + 1}}}")
    times = [_cell_list(video) for video in _cell_list(content["key_steps_time"])]
    ids = _video_ids(file, len(times))
    name = file.path.resolve().parent.name if file.path.name == _DATA else file.stem
    captions = _read_captions(file, content, len(times))
    videos = []
    for number, (video, rows) in enumerate(zip(ids, times, strict=True), start=1):
        at = f"{file.path}, key_steps_time{{{number}}}"
        if len(rows) != len(grammar):
            raise InputError(f"has {len(rows)} key-steps, the grammar has {len(grammar)}", where=at)
        segments = [one for k, cell in enumerate(rows) for one in _cell_segments(grammar[k], cell, f"{at}{{{k + 1}}}")]
        videos.append(Video(video, segments, captions[number - 1]))
    with errors_at(file.path):
        return Task(name, grammar, videos)


def _read_content(file: Source) -> dict[str, Any]:
    if file.head.startswith(b"MATLAB 7.3"):
        raise InputError("is a MATLAB 7.3 file", where=file.path, hint="save it from MATLAB with the option -v7")
    from scipy.io import loadmat

    with file.open_binary() as stream:
        try:
            content: dict[str, Any] = loadmat(stream)
        except Exception as error:  # broken files raise almost anything in there
            raise InputError(f"is broken MATLAB data ({short_repr(str(error))})", where=file.path) from None
    for name in ("grammar", "key_steps_time"):
        if name not in content:
            there = ", ".join(sorted(key for key in content if not key.startswith("__")))
            raise InputError(f"has no variable {name!r}", where=file.path, hint=f"its variables are: {there}")
    return content


def _cell_segments(step: Step, cell: NDArray[Any], at: str) -> list[Segment]:
    if cell.size == 0:
        return []
    if cell.ndim != 2 or cell.shape[1] != 2 or cell.dtype.kind not in "iuf":
        raise InputError("is not an array of [start, end] rows", where=at)
    return [timed_segment(step, start, end, at) for start, end in cell]


def _read_captions(file: Source, content: dict[str, Any], videos: int) -> list[list[Sentence]]:
    """The narration of every video; none where the file has no captions with times."""
    if not {"caption", "caption_time"} <= content.keys():
        return [[] for _ in range(videos)]
    texts, times = ([_cell_list(video) for video in _cell_list(content[name])] for name in ("caption", "caption_time"))
    if not len(texts) == len(times) == videos or [len(one) for one in texts] != [len(one) for one in times]:
        raise InputError("has captions and times of captions that do not match", where=file.path)
    return [
        [
            Sentence(_cell_text(text).strip(), float(time.flat[0]), float(time.flat[1]))
            for text, time in zip(of_video, at, strict=True)
            if text.size and time.size == 2
        ]
        for of_video, at in zip(texts, times, strict=True)
    ]


def _video_ids(file: Source, count: int) -> list[str]:
    """Ids of the YouTube addresses in `readme.txt`, one per line; where they do not fit, the videos' numbers."""
    readme = Source(file.path.parent / _README)
    if readme.path.is_file():
        lines = [line for line in readme.lines() if line.strip()]
        ids = [found[1] for line in lines if (found := re.search(r"(?:v=|youtu\.be/|embed/)([\w-]{11})", line))]
        if len(ids) == len(lines) == count and len(set(ids)) == count:
            return ids
        _log.warning("%s: does not name each of the %d videos once, they are numbered instead", readme.path, count)
    return [f"{number:0{len(str(count))}}" for number in range(1, count + 1)]


def _cell_list(value: Any) -> list[NDArray[Any]]:
    """The cells of a MATLAB cell array of one dimension."""
    return [np.asarray(cell) for cell in np.asarray(value).ravel()]


def _cell_text(cell: NDArray[Any]) -> str:
    return str(cell.ravel()[0]) if cell.size else ""
