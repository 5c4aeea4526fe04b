"""Captions of videos: WebVTT and SubRip (SRT) files, recognised by their content, and which belong to which video.

Automatic captions roll: the last line moves up when a new one comes, so that it is in the file two or three times.
A file rolls if more than half of its cues do; then, lines that a cue repeats from the one before are dropped.
"""

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError, require
from msg2.formats.source import Source
from msg2.formats.times import parse_clock
from msg2.task import Sentence
from msg2.text import short_repr

BLINK = 0.05  # seconds of the longest cue that nobody could read, and of the longest pause that nobody sees

_SIGNATURE = re.compile(r"WEBVTT(?:[ \t].*)?")
_NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?")
_CLOCK = r"((?:[0-9]{1,5}:)?[0-5][0-9]:[0-5][0-9]\.[0-9]{3})"
_VTT_TIMING = re.compile(rf"[ \t]*{_CLOCK}[ \t]*-->[ \t]*{_CLOCK}(?:[ \t].*)?")
_SRT_CLOCK = r"((?:[0-9]{1,5}:)?[0-5]?[0-9]:[0-5]?[0-9][,.][0-9]{3})"
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
    def sentence(self) -> Sentence:
        """The whole text of the cue."""
        return Sentence(_plain_text(" ".join(self.lines)), self.start, self.end)

    @property
    def fragments(self) -> Iterator[Sentence]:
        """The words of the cue, split wherever it states a time between two of them."""
        first, *others = _INLINE.split(" ".join(self.lines))  # text, a time, text, …
        starts, texts = [self.start], [_TAG.sub("", first)]
        for time, marked in zip(others[::2], others[1::2], strict=True):
            text = _TAG.sub("", marked)
            if not texts[-1].strip() or texts[-1][-1].isspace() or text[:1].isspace():
                starts.append(min(max(parse_clock(time) or 0.0, starts[-1]), self.end))
                texts.append(text)
            else:
                texts[-1] += text  # within a word
        plain = (" ".join(html.unescape(text).split()) for text in texts)
        pieces = zip(plain, starts, [*starts[1:], self.end], strict=True)
        return (Sentence(*piece) for piece in pieces if piece[0])


def read_cues(file: Source) -> tuple[Cue, ...]:
    """Read the cues of a file in its order, every line once; cues without text are left out."""
    lines = [line.rstrip("\r\n") for line in file.lines()]
    if lines and _SIGNATURE.fullmatch(lines[0]):
        cues = _vtt_cues(lines, file)
    elif any("-->" in line for line in [line for line in lines if line.strip()][:2]):
        cues = _srt_cues(lines, file)
    else:
        hint = "captions are WebVTT files, whose first line is WEBVTT, or SRT files of numbered cues"
        raise InputError("is not a file of captions", where=file.row(1), hint=hint)
    return tuple(cue for cue in remove_repeated_lines(cues) if cue.lines)


def remove_repeated_lines(cues: Iterable[Cue]) -> list[Cue]:
    """Drop empty lines and, in rolling captions, the lines that a cue repeats from the one before."""
    # A cue rolls if it begins with the last lines of the cue before and says more, or repeats them for a blink. Two
    # such cues are needed, or one where lines have times within, which only machines write.
    full = [cue._replace(lines=tuple(filter(_plain_text, cue.lines))) for cue in cues]
    repeats = [_count_repeated_lines(before, cue) for before, cue in pairwise(full)]
    pairs = list(zip(repeats, full[1:], strict=True))
    rolling = sum(0 < n < len(cue.lines) or (n > 0 and cue.end - cue.start <= BLINK) for n, cue in pairs)
    timed_within = any(_INLINE.search(line) for cue in full for line in cue.lines)
    if rolling <= len(repeats) / 2 or rolling < (1 if timed_within else 2):
        return full
    return [*full[:1], *(cue._replace(lines=cue.lines[n:]) for n, cue in pairs)]


def _count_repeated_lines(before: Cue, cue: Cue) -> int:
    """Count the last lines of the cue before that a cue begins with; after a pause, it repeats them on purpose."""
    old, new = ([_plain_text(line) for line in lines] for lines in (before.lines, cue.lines))
    new_from = next((index for index, line in enumerate(cue.lines) if _INLINE.search(line)), len(new))
    most = next((n for n in range(min(len(old), new_from), 0, -1) if old[-n:] == new[:n]), 0)
    return most if cue.start <= before.end + BLINK or most < len(new) else 0


def _vtt_cues(lines: Sequence[str], file: Source) -> Iterator[Cue]:
    runs = groupby(range(len(lines)), lambda n: lines[n] != "")  # a line of spaces is not empty, as the format has it
    header, *blocks = (list(block) for is_text, block in runs if is_text)
    if any("-->" in lines[number] for number in header):
        blocks.insert(0, header[1:])  # the empty line after the header was forgotten
    for block in blocks:
        first = lines[block[0]]
        named_so = len(block) > 1 and "-->" in lines[block[1]] and not first.startswith("NOTE")
        if _NO_CUE.fullmatch(first) and not named_so:
            continue
        timings = [number for number in block if "-->" in lines[number]]
        if not timings or timings[0] > block[0] + 1:
            hint = "a cue is a line such as 00:05.000 --> 00:07.500, then its text without empty lines"
            raise InputError("the lines have no times", where=file.row(block[0] + 1), hint=hint)
        for number, following in pairwise([*timings, block[-1] + 1]):
            yield _parse_cue(lines, number, following, _VTT_TIMING, file)


def _srt_cues(lines: Sequence[str], file: Source) -> Iterator[Cue]:
    """Split SRT lines into cues; the number right before a timing belongs to that cue."""
    timings = [number for number, line in enumerate(lines) if "-->" in line]
    for number, line in enumerate(lines[: timings[0]], start=1):
        if line.strip() and not line.strip().isdecimal():
            hint = "a cue is its number, a line such as 00:00:05,000 --> 00:00:07,500, then its text"
            raise InputError("the lines have no times", where=file.row(number), hint=hint)
    for number, following in pairwise([*timings, len(lines)]):
        is_numbered = following < len(lines) and lines[following - 1].strip().isdecimal()
        yield _parse_cue(lines, number, following - is_numbered, _SRT_TIMING, file)


def _parse_cue(lines: Sequence[str], number: int, following: int, pattern: re.Pattern[str], file: Source) -> Cue:
    """Parse the cue whose timing is the line of this number, from 0."""
    match, where = pattern.fullmatch(lines[number]), file.row(number + 1)
    if match is None:
        hint = "write times such as 00:00:05.000 --> 00:00:07.500"
        raise InputError(f"{short_repr(lines[number])} is not the timing of a cue", where=where, hint=hint)
    start, end = (parse_clock(time) or 0.0 for time in match.groups())
    require(end >= start, f"the cue ends at {end:g}, before its start at {start:g}", where=where)
    return Cue(start, end, tuple(lines[number + 1 : following]))


def _plain_text(text: str) -> str:
    """Remove tags, resolve entities and collapse spaces."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())


LANGUAGE = "en"  # of the captions of a video that has them in several languages and none without a language in its name
CAPTION_SUFFIXES = (".vtt", ".vtt.gz", ".srt", ".srt.gz")


def caption_files(path: str | Path) -> dict[str, Source]:
    """The caption files (`.vtt`, `.srt`, maybe with `.gz`) of a folder, or one file whatever its suffix, by name."""
    files: dict[str, Source] = {}
    source = Source.at(path)
    for file in source.files_or_self:
        if source.is_folder and not file.path.name.lower().endswith(CAPTION_SUFFIXES):
            continue
        if files.setdefault(file.stem, file) is not file:
            what = f"is the second caption file of {short_repr(file.stem)}, beside {files[file.stem].path.name}"
            raise InputError(what, where=file.path, hint="keep one of them")
    require(files, "the folder holds no captions", where=path, hint="give a folder of .vtt or .srt files")
    return files


def read_sentences(file: Source) -> tuple[Sentence, ...]:
    """Read a caption file: a sentence of plain text per cue, every line once, in the order of the file."""
    return tuple(cue.sentence for cue in read_cues(file))


def read_fragments(file: Source) -> tuple[Sentence, ...]:
    """Read the same words with times as exact as the file has them: automatic captions give the time of each word."""
    return tuple(fragment for cue in read_cues(file) for fragment in cue.fragments)


def name_finder(names: Iterable[str], language: str | None = None) -> Callable[[str], str | None]:
    """A function that finds the name, without suffix, of the file that belongs to a video.

    It is the video's id, maybe with variants such as `.en`, `.en.auto` or `.f137` after it; else a name that ends in
    ` [id]` (yt-dlp), `_id` (CrossTask) or `-id` (youtube-dl), maybe with variants. Of the variants, the wanted language
    is taken, else the name without any, else English; names that differ otherwise are an error.
    """
    matches: dict[str, list[_NameMatch]] = defaultdict(list)
    for name in set(names):
        for video, match in _name_matches(name, language):
            matches[video].append(match)

    def find(video: str) -> str | None:
        if video not in matches:
            return None
        best, *others = sorted(matches[video])
        for other in others:
            if other.kind != best.kind or other.name == best.name:
                continue
            if other.base != best.base or best.rank == _OTHER_VARIANT:
                what = f"video {short_repr(video)} could be {short_repr(best.name)} or {short_repr(other.name)}"
                raise InputError(what, hint="keep one of them, or name it exactly as the video")
        return best.name

    return find


_VARIANT = re.compile(r"[A-Za-z0-9+-]+")  # what may stand between dots at the end of a name: languages, formats, `auto`
_OTHER_VARIANT = 3


class _NameMatch(NamedTuple):
    """How a name fits a video; the smallest is the best."""

    kind: int
    rank: int  # by language, see `_language_rank`
    variants: int
    name: str
    base: str  # the name without its variants


def _name_matches(name: str, language: str | None) -> Iterator[tuple[str, _NameMatch]]:
    """Yield every video id that this name could belong to."""
    for cut in [*(dot.start() for dot in re.finditer(r"\.", name)), len(name)]:
        base, variants = name[:cut], name[cut + 1 :].split(".") if cut < len(name) else []
        rank = _language_rank(variants, language)
        yield base, _NameMatch(0, rank, len(variants), name, base)
        if all(map(_VARIANT.fullmatch, variants)):
            for kind, (opening, closing) in enumerate([(r" \[", "]"), ("_", ""), ("-", "")], start=1):
                if base.endswith(closing):
                    for start in re.finditer(opening, base):
                        id = base[start.end() : len(base) - len(closing)]
                        yield id, _NameMatch(kind, rank, len(variants), name, base)


def _language_rank(variants: Sequence[str], language: str | None) -> int:
    """Rank the wanted language first, then a name without variants, then English, then anything."""
    begins = [f"{variant.lower()}-" for variant in variants]
    if language and any(begin.startswith(f"{language.lower()}-") for begin in begins):
        return 0
    if not variants:
        return 1
    return 2 if any(begin.startswith(f"{LANGUAGE}-") for begin in begins) else _OTHER_VARIANT
