"""Captions: what is said in a video. WebVTT or SRT files, one per video (or one per language), named after it.

A name without its suffix belongs to a video if it is the video's id, maybe with variants such as `.en`, `.en.auto` or
`.f137` after it; if not, a name that ends in ` [id]` (as yt-dlp writes it), in `_id` (as CrossTask does) or in `-id`
(youtube-dl), maybe with variants too. The first of these kinds that occurs counts. Of the variants of one name, the
wanted language is taken, else the name without variants, else English; names that differ otherwise are an error.
`name_finder` is that rule, here and for videos and all that is made from them.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.options import LANGUAGE
from msg2.readers.cues import cues_in
from msg2.readers.sources import Source
from msg2.task import Sentence, Task, Video

_log = logging.getLogger(__name__)

CAPTION_SUFFIXES = (".vtt", ".vtt.gz", ".srt", ".srt.gz")


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
    """The caption files (`.vtt`, `.srt`, maybe with `.gz`) of a folder, or one file whatever its suffix, by name."""
    source = Source.at(path)
    if not source.is_folder:
        return {source.stem: source}
    found: dict[str, Source] = {}
    for file in source.files:
        if not file.path.name.lower().endswith(CAPTION_SUFFIXES):
            continue
        if file.stem in found:
            what = f"is the second caption file of {shortened(file.stem)}, beside {found[file.stem].path.name}"
            raise InputError(what, where=file.path, hint="keep one of them")
        found[file.stem] = file
    if not found:
        raise InputError("the folder holds no captions", where=path, hint="give a folder of .vtt or .srt files")
    return found


def sentences_in(file: Source) -> tuple[Sentence, ...]:
    """What a caption file says, a sentence of plain text per cue and every line once, in the order of the file."""
    return tuple(cue.sentence for cue in cues_in(file))


def pieces_in(file: Source) -> tuple[Sentence, ...]:
    """The same words with times as exact as the file has them: automatic captions give the time of each word."""
    return tuple(piece for cue in cues_in(file) for piece in cue.pieces)


# -- captions and videos ----------------------------------------------------------------------------------------


def name_finder(names: Iterable[str], language: str | None = None) -> Callable[[str], str | None]:
    """Finds the one of `names` that belongs to a video, None where none does; the rule is that of the module.

    >>> find = name_finder(["40567_0TiNZJum-bk", "v1", "v1.de", "Toast [v2].de", "Toast [v2].en-US"])
    >>> find("0TiNZJum-bk"), find("v1"), find("v2"), find("v3")
    ('40567_0TiNZJum-bk', 'v1', 'Toast [v2].en-US', None)
    >>> name_finder(["v1", "v1.de"], language="de")("v1")
    'v1.de'
    """
    fits: dict[str, list[_Fit]] = defaultdict(list)
    for name in set(names):
        for video, fit in _fits(name, language):
            fits[video].append(fit)

    def found(video: str) -> str | None:
        if video not in fits:
            return None
        best, *others = sorted(fits[video])
        for other in others:
            same_kind, same_name = other.kind == best.kind, other.name == best.name
            if same_kind and not same_name and (other.base != best.base or best.taste == _OTHER_VARIANT):
                what = f"video {shortened(video)} could be {shortened(best.name)} or {shortened(other.name)}"
                raise InputError(what, hint="keep one of them, or name it exactly as the video")
        return best.name

    return found


_VARIANT = re.compile(r"[A-Za-z0-9+-]+")
"""What may stand between dots at the end of a name: languages, formats, `auto`."""
_OTHER_VARIANT = 3


class _Fit(NamedTuple):
    """How a name fits a video; the smallest is the best."""

    kind: int
    taste: int
    variants: int
    name: str
    base: str
    """The name without its variants."""


def _fits(name: str, language: str | None) -> Iterator[tuple[str, _Fit]]:
    """Every id that a video could have to which this name belongs."""
    for cut in [*(dot.start() for dot in re.finditer(r"\.", name)), len(name)]:
        base, variants = name[:cut], name[cut + 1 :].split(".") if cut < len(name) else []
        taste = _taste(variants, language)
        yield base, _Fit(0, taste, len(variants), name, base)
        if all(map(_VARIANT.fullmatch, variants)):
            for kind, (opening, closing) in enumerate([(r" \[", "]"), ("_", ""), ("-", "")], start=1):
                if base.endswith(closing):
                    for start in re.finditer(opening, base):
                        id = base[start.end() : len(base) - len(closing)]
                        yield id, _Fit(kind, taste, len(variants), name, base)


def _taste(variants: Sequence[str], language: str | None) -> int:
    """The wanted language first, then a name without variants, then English, then anything."""
    if language and _in_language(variants, language):
        return 0
    if not variants:
        return 1
    return 2 if _in_language(variants, LANGUAGE) else _OTHER_VARIANT


def _in_language(variants: Sequence[str], language: str) -> bool:
    return any(f"{variant.lower()}-".startswith(f"{language.lower()}-") for variant in variants)


def narrated(task: Task, captions: Mapping[str, Sequence[Sentence]], language: str | None = None) -> Task:
    """The task with the captions of its videos, found by `name_finder`; videos without captions stay as they are.

    >>> task = Task("toast", [], [Video("v1", []), Video("v2", [])])
    >>> [len(video.sentences) for video in narrated(task, {"7_v2": [Sentence("flip it", 1.5, 3.0)]})]
    [0, 1]
    """
    name_of = name_finder(captions, language)
    names = {video.id: name_of(video.id) for video in task}
    silent = sum(name is None for name in names.values())
    if silent:
        _log.info("%s: %d of %d videos have no captions", task.name, silent, len(task))
    return task.with_videos(
        video if (name := names[video.id]) is None else Video(video.id, video.segments, captions[name])
        for video in task
    )
