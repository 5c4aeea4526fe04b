"""ProceL: one folder per task with `data.mat` (`grammar`, `key_steps_time`, `caption`, `caption_time`), `readme.txt`.

`key_steps_time` has, per video and key-step of the grammar, an array of [start, end] rows, possibly none. SciPy reads
MATLAB files in a process of its own: a broken file can crash it. A cell array becomes the list of its cells, a matrix
of numbers the list of its rows, a text a str, all else None.
"""

import json
import logging
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from msg2.errors import InputError, errors_at, require
from msg2.formats.archives import UnpackingBudget
from msg2.formats.reading import Reader, ReadResult, timed_segment
from msg2.formats.source import Source
from msg2.task import Segment, Sentence, Task, Video
from msg2.text import short_repr

_DATA, _README = "data.mat", "readme.txt"
_log = logging.getLogger(__name__)


def _data_files(source: Source) -> list[Source]:
    if not source.is_folder:
        return [source] if source.head.startswith(b"MATLAB") else []
    return [file for folder in (source, *source.folders) if (file := folder.member(_DATA)) is not None]


def _read_task(file: Source) -> Task:
    read = read_variables(file, ("grammar", "key_steps_time"), ("caption", "caption_time"))
    content = {variable: _cells(value) for variable, value in read.items()}
    grammar = content["grammar"]
    for k, cell in enumerate(grammar, start=1):
        if not isinstance(cell, str) or not cell:
            what = "has a step without a name" if cell in ("", []) else "is not the name of a step, which is text"
            raise InputError(what, where=f"{file.path}, grammar{{{k}}}")
    times = [_cells(video) for video in content["key_steps_time"]]
    ids = _video_ids(file, len(times))
    name = file.path.resolve().parent.name if file.path.name == _DATA else file.stem
    captions = _read_captions(file, content, len(times))
    videos = []
    for number, (video, rows) in enumerate(zip(ids, times, strict=True), start=1):
        at = f"{file.path}, key_steps_time{{{number}}}"
        require(len(rows) == len(grammar), f"has {len(rows)} key-steps, the grammar has {len(grammar)}", where=at)
        segments: list[Segment] = []
        for k, (step, cell) in enumerate(zip(grammar, rows, strict=True), start=1):
            if cell is None or not all(map(_is_span, _cells(cell))):
                raise InputError("is not an array of [start, end] rows", where=f"{at}{{{k}}}")
            segments += [timed_segment(step, start, end, f"{at}{{{k}}}") for start, end in _cells(cell)]
        videos.append(Video(video, segments, captions[number - 1]))
    with errors_at(file.path):
        return Task(name, grammar, videos)


def _read_captions(file: Source, content: dict[str, list[Any]], videos: int) -> list[list[Sentence]]:
    """The narration of every video; none where the file has no captions with times."""
    if not {"caption", "caption_time"} <= content.keys():
        return [[] for _ in range(videos)]
    texts, times = ([_cells(video) for video in content[name]] for name in ("caption", "caption_time"))
    if not len(texts) == len(times) == videos or list(map(len, texts)) != list(map(len, times)):
        raise InputError("has captions and times of captions that do not match", where=file.path)
    narration: list[list[Sentence]] = [[] for _ in range(videos)]
    for number, sentences in enumerate(narration):
        for text, time in zip(texts[number], times[number], strict=True):
            span = [moment for row in _cells(time) for moment in _cells(row)]
            if not text or not time:
                continue
            if not isinstance(text, str) or not _is_span(span):
                what = "has a caption that is not a text with its start and end"
                raise InputError(what, where=f"{file.path}, caption{{{number + 1}}}")
            sentences.append(Sentence(text.strip(), *map(float, span)))
    return narration


def _video_ids(file: Source, count: int) -> list[str]:
    """Ids of the YouTube addresses in `readme.txt`, one per line; where they do not fit, the videos' numbers."""
    readme = Source(file.path.parent / _README)
    if readme.path.is_file():
        lines = [line for line in readme.lines() if line.strip()]
        ids = [match[1] for line in lines if (match := re.search(r"(?:v=|youtu\.be/|embed/)([\w-]{11})", line))]
        if len(ids) == len(lines) == count and len(set(ids)) == count:
            return ids
        _log.warning("%s: does not name each of the %d videos once, they are numbered instead", readme.path, count)
    return [f"{number:0{len(str(count))}}" for number in range(1, count + 1)]


def _cells(value: object) -> list[Any]:
    """The cells of a cell array, or the rows of a matrix; none of what is neither."""
    return value if isinstance(value, list) else []


def _is_span(row: object) -> bool:
    """Whether this is a start and an end."""
    return len(_cells(row)) == 2 and all(isinstance(number, int | float) for number in _cells(row))


READER = Reader(
    "ProceL (data.mat)", _data_files, lambda source, _: ReadResult([*map(_read_task, _data_files(source))], {})
)

# -- MATLAB files -----------------------------------------------------------------------------------------------

_COMPRESSED = 15  # the type of an element that is packed; its data is a zlib stream
_CHUNK = 64 * 1024
_SECONDS = 120  # a file takes a few
_ADDRESS_SPACE = 4 << 30  # bytes of the process that reads: what a broken file claims to hold is not made room for
_NO_MEMORY = 3  # the exit status of that process where there is not enough
_READER = "from msg2.formats.procel import print_variables; print_variables()"


def read_variables(file: Source, needed: Sequence[str], others: Sequence[str] = ()) -> dict[str, Any]:
    """Read some variables of a MATLAB file."""
    if file.head.startswith(b"MATLAB 7.3"):
        raise InputError("is a MATLAB 7.3 file", where=file.path, hint="save it from MATLAB with the option -v7")
    with file.open_binary() as stream:
        _count_unpacked(stream, file.unpacking_budget)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        ran = subprocess.run(
            [sys.executable, "-c", _READER, str(file.path), *needed, *others], env=environment, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"takes more than {_SECONDS} seconds to read as MATLAB data", where=file.path) from None
    no_memory = ran.returncode == _NO_MEMORY or b"MemoryError" in ran.stderr or b"Cannot allocate" in ran.stderr
    require(not no_memory, "cannot be read as MATLAB data: there is not enough memory", where=file.path)
    require(ran.returncode == 0, "is broken MATLAB data (its reader has crashed)", where=file.path)
    answer = json.loads(ran.stdout)
    if "error" in answer:
        raise InputError(f"is broken MATLAB data ({short_repr(answer['error'])})", where=file.path)
    variables: dict[str, Any] = answer["variables"]
    for name in needed:
        hint = f"its variables are: {', '.join(answer['names'])}"
        require(name in variables, f"has no variable {name!r}", where=file.path, hint=hint)
    return variables


def print_variables() -> None:
    """Print the variables of the file that the command line names as JSON; this runs in a process of its own."""
    from scipy.io import loadmat

    path, *names = sys.argv[1:]
    if sys.platform == "linux":
        import resource

        with suppress(ValueError):  # a stricter limit holds already
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    try:
        with Source.at(path).open_binary() as stream:
            content = loadmat(stream)
        variables = {name: _to_plain(content[name]) for name in names if name in content}
        names = sorted(name for name in content if not name.startswith("__"))
        answer: dict[str, object] = {"variables": variables, "names": names}
    except MemoryError:
        sys.exit(_NO_MEMORY)
    except Exception as error:  # broken files raise almost anything in there
        answer = {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(answer))


def _to_plain(value: Any) -> Any:
    kind = value.dtype.kind if hasattr(value, "dtype") else ""
    if kind == "O":
        return [_to_plain(cell) for cell in value.ravel()]
    if kind == "U":
        return str(value.ravel()[0]) if value.size else ""
    return None if not kind or kind not in "iuf" else value.tolist() if value.size else []


def _count_unpacked(stream: IO[bytes], budget: UnpackingBudget) -> None:
    """Unpack the elements of the file without keeping anything; where it is broken, its reader will say so."""
    order = "<" if stream.read(128)[126:] == b"IM" else ">"
    unpacked = 0
    while len(tag := stream.read(8)) == 8:
        kind, size = struct.unpack(f"{order}II", tag)
        unpacker = zlib.decompressobj()
        while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
            size -= len(chunk)
            while kind == _COMPRESSED and chunk:
                try:
                    unpacked += len(unpacker.decompress(chunk, _CHUNK))
                except zlib.error:
                    break
                budget.require(unpacked=unpacked)
                chunk = unpacker.unconsumed_tail
