"""ProceL: one folder per task with `data.mat` (`grammar`, `key_steps_time`, `caption`, `caption_time`), `readme.txt`.

`key_steps_time` is, per video and key-step of the grammar, an array of [start, end] rows, possibly none: the labels
lie in the order of the grammar there, so only their times say what came first. Times are those of the trimmed videos.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from msg2.errors import InputError, errors_at
from msg2.formats.matlab_file import read_variables
from msg2.formats.reading import Reader, ReadOptions, ReadResult, timed_segment
from msg2.formats.source import Source
from msg2.task import Segment, Sentence, Step, Task, Video

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
    read = read_variables(file, ("grammar", "key_steps_time"), ("caption", "caption_time"))
    content = {variable: _cells(value) for variable, value in read.items()}
    grammar = [_step_name(cell, f"{file.path}, grammar{{{k}}}") for k, cell in enumerate(content["grammar"], start=1)]
    times = [_cells(video) for video in content["key_steps_time"]]
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


def _step_name(cell: Any, at: str) -> Step:
    if cell in ("", []):
        raise InputError("has a step without a name", where=at)
    if not isinstance(cell, str):
        raise InputError("is not the name of a step, which is text", where=at)
    return cell


def _cell_segments(step: Step, cell: Any, at: str) -> list[Segment]:
    rows = _cells(cell)
    if cell is None or not all(_is_span(row) for row in rows):
        raise InputError("is not an array of [start, end] rows", where=at)
    return [timed_segment(step, start, end, at) for start, end in rows]


def _read_captions(file: Source, content: dict[str, list[Any]], videos: int) -> list[list[Sentence]]:
    """The narration of every video; none where the file has no captions with times."""
    if not {"caption", "caption_time"} <= content.keys():
        return [[] for _ in range(videos)]
    texts, times = ([_cells(video) for video in content[name]] for name in ("caption", "caption_time"))
    if not len(texts) == len(times) == videos or [len(one) for one in texts] != [len(one) for one in times]:
        raise InputError("has captions and times of captions that do not match", where=file.path)
    return [
        [
            _read_sentence(text, time, f"{file.path}, caption{{{number}}}")
            for text, time in zip(of_video, at, strict=True)
            if text and time
        ]
        for number, (of_video, at) in enumerate(zip(texts, times, strict=True), start=1)
    ]


def _read_sentence(text: Any, time: Any, at: str) -> Sentence:
    numbers = [number for row in _cells(time) for number in _cells(row)]
    if not isinstance(text, str) or not _is_span(numbers):
        raise InputError("has a caption that is not a text with its start and end", where=at)
    return Sentence(text.strip(), *map(float, numbers))


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


def _cells(value: Any) -> list[Any]:
    """The cells of a cell array, or the rows of a matrix; none of what is neither."""
    return value if isinstance(value, list) else []


def _is_span(row: Any) -> bool:
    """Whether this is a start and an end."""
    return len(_cells(row)) == 2 and all(isinstance(number, int | float) for number in row)


READER = Reader(DESCRIPTION, can_read, read, ("text",))
