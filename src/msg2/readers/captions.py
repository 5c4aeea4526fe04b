"""Captions: what is said in a video, sentence by sentence. WebVTT files, one per video, named after it.

A file belongs to a video if its name, without the suffix, is the video's id or ends in `_` and the id, as CrossTask's
`{task}_{video}.vtt` does. `name_finder` is that rule, here and for everything that is made from captions.
"""

from __future__ import annotations

import html
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.readers.sources import Source
from msg2.task import Sentence, Task, Video

_log = logging.getLogger(__name__)

_SIGNATURE = re.compile(r"WEBVTT(?:[ \t].*)?")
_NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?")
_TIME = r"(?:([0-9]{1,5}):)?([0-5][0-9]):([0-5][0-9])\.([0-9]{3})"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</>|<[0-9:.]+>")
"""Voices, classes, italics and the like, and times within a cue; a lone `<` is text."""


class _Line(NamedTuple):
    row: int
    text: str


# -- files ------------------------------------------------------------------------------------------------------


def read_captions(path: str | Path) -> dict[str, tuple[Sentence, ...]]:
    """The sentences of every caption file in a folder, or of one file, by the file's name without its suffix.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v1.vtt").write_text("WEBVTT\\n\\n00:01.500 --> 00:03.000\\nnow <i>flip</i> it\\n")
    ...     read_captions(folder)
    {'v1': (Sentence(text='now flip it', start=1.5, end=3.0),)}
    """
    return {name: sentences_in(file) for name, file in caption_files(path).items()}


def caption_files(path: str | Path) -> dict[str, Source]:
    """The caption files (`.vtt`, maybe packed as `.vtt.gz`) of a folder, or one file whatever its suffix, by name."""
    source = Source.at(path)
    if not source.is_folder:
        return {source.stem: source}
    found: dict[str, Source] = {}
    for file in source.files:
        if not file.path.name.lower().endswith((".vtt", ".vtt.gz")):
            continue
        if file.stem in found:
            what = f"is the second caption file of {shortened(file.stem)}, beside {found[file.stem].path.name}"
            raise InputError(what, where=file.path, hint="keep one of them")
        found[file.stem] = file
    if not found:
        raise InputError("the folder holds no captions", where=path, hint="give a folder of .vtt files")
    return found


def sentences_in(file: Source) -> tuple[Sentence, ...]:
    """The cues of a WebVTT file in the order of the file, each a sentence of plain text; cues without text say nothing.

    Comments, styles, names of cues and their settings are passed over.
    """
    header, *blocks = [*_blocks(file)] or [[_Line(1, "")]]
    if header[0].row > 1 or not _SIGNATURE.fullmatch(header[0].text):
        hint = "captions are WebVTT files, whose first line is WEBVTT"
        raise InputError("is not a file of captions", where=file.row(1), hint=hint)
    if any("-->" in line.text for line in header):
        blocks.insert(0, header[1:])  # the empty line after the header was forgotten
    cues = [cue for block in blocks if not _passed_over(block) for cue in _cues(block, file)]
    return tuple(cue for cue in cues if cue.text)


# -- WebVTT -----------------------------------------------------------------------------------------------------


def _blocks(file: Source) -> Iterator[list[_Line]]:
    """The runs of lines between empty ones; a line of spaces is not empty, as the format has it."""
    block: list[_Line] = []
    for row, line in enumerate(file.lines(), start=1):
        text = line.rstrip("\r\n")
        if text:
            block.append(_Line(row, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _passed_over(block: Sequence[_Line]) -> bool:
    first = block[0].text
    named_so = len(block) > 1 and "-->" in block[1].text and not first.startswith("NOTE")
    return bool(_NO_CUE.fullmatch(first)) and not named_so


def _cues(block: Sequence[_Line], file: Source) -> Iterator[Sentence]:
    """The cues of a block, mostly one: a timing after an optional name, then its text up to the next timing."""
    timings = [index for index, line in enumerate(block) if "-->" in line.text]
    if not timings or timings[0] > 1:
        hint = "a cue is a line such as 00:05.000 --> 00:07.500, then its text without empty lines"
        raise InputError("the lines have no times", where=file.row(block[0].row), hint=hint)
    for index, following in zip(timings, [*timings[1:], len(block)], strict=True):
        start, end = _times(block[index], file)
        yield Sentence(_plain(" ".join(line.text for line in block[index + 1 : following])), start, end)


def _times(line: _Line, file: Source) -> tuple[float, float]:
    """Start and end in seconds."""
    match = _TIMING.fullmatch(line.text)
    if match is None:
        hint = "write times such as 00:05.000 --> 00:07.500 or 01:00:05.000 --> 01:00:07.500"
        raise InputError(f"{shortened(line.text)} is not the timing of a cue", where=file.row(line.row), hint=hint)
    numbers = [int(number or 0) for number in match.groups()]
    start, end = (
        (hours * 3_600_000 + minutes * 60_000 + seconds * 1000 + thousandths) / 1000
        for hours, minutes, seconds, thousandths in (numbers[:4], numbers[4:])
    )
    if end < start:
        raise InputError(f"the cue ends at {end:g}, before its start at {start:g}", where=file.row(line.row))
    return start, end


def _plain(text: str) -> str:
    """Text without tags, with entities resolved and every space a single one."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())


# -- captions and videos ----------------------------------------------------------------------------------------


def name_finder(names: Iterable[str]) -> Callable[[str], str | None]:
    """Finds the one of `names` that belongs to a video: its id, else what ends in `_` and its id; None where none does.

    >>> find = name_finder(["40567_0TiNZJum-bk", "v1"])
    >>> find("0TiNZJum-bk"), find("v1"), find("v2")
    ('40567_0TiNZJum-bk', 'v1', None)
    """
    whole = set(names)
    endings = defaultdict(list)
    for name in sorted(whole):
        for underscore in re.finditer("_", name):
            endings[name[underscore.end() :]].append(name)

    def found(video: str) -> str | None:
        if video in whole:
            return video
        fitting = endings.get(video, [])
        if len(fitting) > 1:
            one, other = map(shortened, fitting[:2])
            what = f"video {shortened(video)} could have the captions {one} or {other}"
            raise InputError(what, hint="keep one of them, or name it exactly as the video")
        return fitting[0] if fitting else None

    return found


def narrated(task: Task, captions: Mapping[str, Sequence[Sentence]]) -> Task:
    """The task with the captions of its videos, found by `name_finder`; videos without captions stay as they are.

    >>> task = Task("toast", [], [Video("v1", []), Video("v2", [])])
    >>> [len(video.sentences) for video in narrated(task, {"7_v2": [Sentence("flip it", 1.5, 3.0)]})]
    [0, 1]
    """
    name_of = name_finder(captions)
    names = {video.id: name_of(video.id) for video in task}
    silent = sum(name is None for name in names.values())
    if silent:
        _log.info("%s: %d of %d videos have no captions", task.name, silent, len(task))
    return task.with_videos(
        video if (name := names[video.id]) is None else Video(video.id, video.segments, captions[name])
        for video in task
    )
