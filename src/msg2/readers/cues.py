"""The cues of a caption file, WebVTT or SubRip (SRT) by its content, without what rolling captions repeat.

Automatic captions roll: two lines are on the screen, and when a new one comes the last one moves up, so that every line
is in the file two or three times, once in a cue of 10 ms. A file counts as rolling if more than half of its cues do,
counted from the second one. A cue rolls if it begins with the last lines of the cue before and then says more, or if it
repeats them for no longer than a blink. A rolling file has at least two such cues, or times within its lines, which
only machines write. In such a file, lines that a cue repeats from the one before are dropped; a file that is not
rolling keeps every word, so that who says "stir, stir" twice is heard twice.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.readers.sources import Source
from msg2.task import Sentence

BLINK = 0.05
"""Seconds of the longest cue that nobody could read, and of the longest pause that nobody sees."""

_SIGNATURE = re.compile(r"WEBVTT(?:[ \t].*)?")
_NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?")
_CLOCK = r"(?:([0-9]{1,5}):)?([0-5][0-9]):([0-5][0-9])\.([0-9]{3})"
_VTT_TIMING = re.compile(rf"[ \t]*{_CLOCK}[ \t]*-->[ \t]*{_CLOCK}(?:[ \t].*)?")
_SRT_CLOCK = r"(?:([0-9]{1,5}):)?([0-5]?[0-9]):([0-5]?[0-9])[,.]([0-9]{3})"
_SRT_TIMING = re.compile(rf"\s*{_SRT_CLOCK}\s*-->\s*{_SRT_CLOCK}(?:\s.*)?")
_INLINE = re.compile(rf"<{_CLOCK}>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</>|<[0-9:.]+>|\{\\[^{}]*\}")
"""Voices, classes, italics, places on the screen and the like, and times within a cue; a lone `<` is text."""


class Cue(NamedTuple):
    """What is on the screen from `start` to `end` (seconds): lines as they are written, tags included."""

    start: float
    end: float
    lines: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        """The lines as they are read."""
        return tuple(map(_plain, self.lines))

    @property
    def sentence(self) -> Sentence:
        """All that the cue says.

        >>> Cue(1.0, 3.0, ("now <i>flip</i>", "the bread &amp; wait")).sentence
        Sentence(text='now flip the bread & wait', start=1.0, end=3.0)
        """
        return Sentence(_plain(" ".join(self.lines)), self.start, self.end)

    @property
    def pieces(self) -> tuple[Sentence, ...]:
        """The same words, split wherever a time within the cue stands between two of them.

        >>> Cue(1.0, 3.0, ("flip<00:01.500><c> the</c><00:01.700><c> bread</c>",)).pieces[1]
        Sentence(text='the', start=1.5, end=1.7)
        """
        first, *others = _INLINE.split(" ".join(self.lines))  # text, four numbers of a time, text, …
        starts, texts = [self.start], [_untagged(first)]
        for index in range(0, len(others), 5):
            text = _untagged(others[index + 4])
            if not texts[-1].strip() or texts[-1][-1].isspace() or text[:1].isspace():
                starts.append(min(max(_seconds(others[index : index + 4]), starts[-1]), self.end))
                texts.append(text)
            else:
                texts[-1] += text  # within a word
        ends = [*starts[1:], self.end]
        plain = (" ".join(html.unescape(text).split()) for text in texts)
        return tuple(Sentence(*piece) for piece in zip(plain, starts, ends, strict=True) if piece[0])


def cues_in(file: Source) -> tuple[Cue, ...]:
    """The cues of a file in its order, each line said once; cues that say nothing are left out.

    Comments, styles, names and numbers of cues and their settings are passed over.
    """
    lines = [_Line(row, line.rstrip("\r\n")) for row, line in enumerate(file.lines(), start=1)]
    if lines and _SIGNATURE.fullmatch(lines[0].text):
        cues = [*_vtt_cues(lines, file)]
    elif any("-->" in line.text for line in [line for line in lines if line.text.strip()][:2]):
        cues = [*_srt_cues(lines, file)]
    else:
        hint = "captions are WebVTT files, whose first line is WEBVTT, or SRT files of numbered cues"
        raise InputError("is not a file of captions", where=file.row(1), hint=hint)
    return tuple(cue for cue in unrolled(cues) if any(cue.plain))


# -- rolling captions -------------------------------------------------------------------------------------------


def unrolled(cues: Sequence[Cue]) -> list[Cue]:
    """The cues without the lines that they repeat, if they are rolling captions; else as they are.

    >>> unrolled([Cue(0, 2, ("crack",)), Cue(2, 4, ("crack", "the eggs")), Cue(4, 6, ("the eggs", "and stir"))])[1:]
    [Cue(start=2, end=4, lines=('the eggs',)), Cue(start=4, end=6, lines=('and stir',))]
    >>> len(unrolled([Cue(0, 2, ("stir",)), Cue(2, 4, ("stir",)), Cue(4, 6, ("stir",))]))
    3
    """
    full = [Cue(cue.start, cue.end, tuple(line for line in cue.lines if _plain(line))) for cue in cues]
    repeats = [_repeated(before, cue) for before, cue in pairwise(full)]
    rolling = sum(
        0 < count < len(cue.lines) or (count > 0 and cue.end - cue.start <= BLINK)
        for count, cue in zip(repeats, full[1:], strict=True)
    )
    timed_within = any(_INLINE.search(line) for cue in full for line in cue.lines)
    if rolling <= len(repeats) / 2 or rolling < (1 if timed_within else 2):
        return full
    return [*full[:1], *(Cue(cue.start, cue.end, cue.lines[n:]) for n, cue in zip(repeats, full[1:], strict=True))]


def _repeated(before: Cue, cue: Cue) -> int:
    """With how many of the last lines of the cue before it a cue begins.

    A line with times within is being said. A cue with nothing but known lines, after a pause, says them anew.
    """
    old, new = before.plain, cue.plain
    said = next((index for index, line in enumerate(cue.lines) if _INLINE.search(line)), len(new))
    most = next((n for n in range(min(len(old), said), 0, -1) if old[-n:] == new[:n]), 0)
    follows = cue.start <= before.end + BLINK
    return most if follows or most < len(new) else 0


# -- WebVTT and SubRip ------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    row: int
    text: str


def _vtt_cues(lines: Sequence[_Line], file: Source) -> Iterator[Cue]:
    header, *blocks = _blocks(lines)
    if any("-->" in line.text for line in header):
        blocks.insert(0, header[1:])  # the empty line after the header was forgotten
    for block in blocks:
        if _passed_over(block):
            continue
        timings = [index for index, line in enumerate(block) if "-->" in line.text]
        if not timings or timings[0] > 1:
            hint = "a cue is a line such as 00:05.000 --> 00:07.500, then its text without empty lines"
            raise InputError("the lines have no times", where=file.row(block[0].row), hint=hint)
        for index, following in pairwise([*timings, len(block)]):
            yield _cue(block[index], _VTT_TIMING, block[index + 1 : following], file)


def _blocks(lines: Sequence[_Line]) -> list[list[_Line]]:
    """The runs of lines between empty ones; a line of spaces is not empty, as the format has it."""
    blocks: list[list[_Line]] = [[]]
    for line in lines:
        if line.text:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _passed_over(block: Sequence[_Line]) -> bool:
    first = block[0].text
    named_so = len(block) > 1 and "-->" in block[1].text and not first.startswith("NOTE")
    return bool(_NO_CUE.fullmatch(first)) and not named_so


def _srt_cues(lines: Sequence[_Line], file: Source) -> Iterator[Cue]:
    """A cue goes from its timing to the next one; a number right before that belongs there, empty lines are no text."""
    timings = [index for index, line in enumerate(lines) if "-->" in line.text]
    if odd := [line for line in lines[: timings[0]] if line.text.strip() and not line.text.strip().isdecimal()]:
        hint = "a cue is its number, a line such as 00:00:05,000 --> 00:00:07,500, then its text"
        raise InputError("the lines have no times", where=file.row(odd[0].row), hint=hint)
    for index, following in pairwise([*timings, len(lines)]):
        numbered = following < len(lines) and lines[following - 1].text.strip().isdecimal()
        yield _cue(lines[index], _SRT_TIMING, lines[index + 1 : following - numbered], file)


def _cue(timing: _Line, pattern: re.Pattern[str], text: Sequence[_Line], file: Source) -> Cue:
    match = pattern.fullmatch(timing.text)
    if match is None:
        hint = (
            "write times such as 00:05.000 --> 00:07.500 or 01:00:05.000 --> 01:00:07.500"
            if pattern is _VTT_TIMING
            else "write times such as 00:00:05,000 --> 00:00:07,500"
        )
        raise InputError(f"{shortened(timing.text)} is not the timing of a cue", where=file.row(timing.row), hint=hint)
    start, end = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
    if end < start:
        raise InputError(f"the cue ends at {end:g}, before its start at {start:g}", where=file.row(timing.row))
    return Cue(start, end, tuple(line.text for line in text))


def _seconds(numbers: Sequence[str | None]) -> float:
    """Of hours, which may be missing, minutes, seconds and thousandths."""
    hours, minutes, seconds, thousandths = (int(number or 0) for number in numbers)
    return (hours * 3_600_000 + minutes * 60_000 + seconds * 1000 + thousandths) / 1000


def _plain(text: str) -> str:
    """Text without tags, with entities resolved and every space a single one."""
    return " ".join(html.unescape(_untagged(text)).split())


def _untagged(text: str) -> str:
    return _TAG.sub("", text)
