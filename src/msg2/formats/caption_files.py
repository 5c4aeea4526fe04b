"""Captions of videos: WebVTT or SRT files, one per video (or one per language), named after it.

A name without its suffix belongs to a video if it is the video's id, maybe with variants such as `.en`, `.en.auto` or
`.f137` after it; if not, a name that ends in ` [id]` (as yt-dlp writes it), in `_id` (as CrossTask does) or in `-id`
(youtube-dl), maybe with variants too. The first of these kinds that occurs counts. Of the variants of one name, the
wanted language is taken, else the name without variants, else English; names that differ otherwise are an error.
`name_finder` is that rule, here and for videos and all that is made from them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.formats.webvtt_srt import read_cues
from msg2.task import Sentence
from msg2.text import short_repr

LANGUAGE = "en"
"""Of the captions of a video that has them in several languages and none without a language in its name."""

CAPTION_SUFFIXES = (".vtt", ".vtt.gz", ".srt", ".srt.gz")


# -- files ------------------------------------------------------------------------------------------------------


def read_captions(path: str | Path) -> dict[str, tuple[Sentence, ...]]:
    """Read every caption file of a folder, or one file: the sentences by the file's name without its suffix.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v1.vtt").write_text("WEBVTT\\n\\n00:01.500 --> 00:03.000\\nnow <i>flip</i> it\\n")
    ...     read_captions(folder)
    {'v1': (Sentence(text='now flip it', start=1.5, end=3.0),)}
    """
    return {name: read_sentences(file) for name, file in caption_files(path).items()}


def caption_files(path: str | Path) -> dict[str, Source]:
    """The caption files (`.vtt`, `.srt`, maybe with `.gz`) of a folder, or one file whatever its suffix, by name."""
    source = Source.at(path)
    if not source.is_folder:
        return {source.stem: source}
    files: dict[str, Source] = {}
    for file in source.files:
        if not file.path.name.lower().endswith(CAPTION_SUFFIXES):
            continue
        if file.stem in files:
            what = f"is the second caption file of {short_repr(file.stem)}, beside {files[file.stem].path.name}"
            raise InputError(what, where=file.path, hint="keep one of them")
        files[file.stem] = file
    if not files:
        raise InputError("the folder holds no captions", where=path, hint="give a folder of .vtt or .srt files")
    return files


def read_sentences(file: Source) -> tuple[Sentence, ...]:
    """Read a caption file: a sentence of plain text per cue, every line once, in the order of the file."""
    return tuple(cue.sentence for cue in read_cues(file))


def read_fragments(file: Source) -> tuple[Sentence, ...]:
    """Read the same words with times as exact as the file has them: automatic captions give the time of each word."""
    return tuple(fragment for cue in read_cues(file) for fragment in cue.fragments)


# -- captions and videos ----------------------------------------------------------------------------------------


def name_finder(names: Iterable[str], language: str | None = None) -> Callable[[str], str | None]:
    """A function that finds the name that belongs to a video, by the rule of this module.

    Parameters
    ----------
    names : iterable of str
        Names of files without their suffixes.
    language : str, optional
        Which of the variants of a name is wanted: a language such as "de".

    Returns
    -------
    callable
        Id of a video -> one of `names`, or None where none belongs to it. It raises InputError where several do.

    >>> find = name_finder(["40567_0TiNZJum-bk", "v1", "v1.de", "Toast [v2].de", "Toast [v2].en-US"])
    >>> find("0TiNZJum-bk"), find("v1"), find("v2"), find("v3")
    ('40567_0TiNZJum-bk', 'v1', 'Toast [v2].en-US', None)
    >>> name_finder(["v1", "v1.de"], language="de")("v1")
    'v1.de'
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
            same_kind, same_name = other.kind == best.kind, other.name == best.name
            if same_kind and not same_name and (other.base != best.base or best.rank == _OTHER_VARIANT):
                what = f"video {short_repr(video)} could be {short_repr(best.name)} or {short_repr(other.name)}"
                raise InputError(what, hint="keep one of them, or name it exactly as the video")
        return best.name

    return find


_VARIANT = re.compile(r"[A-Za-z0-9+-]+")
"""What may stand between dots at the end of a name: languages, formats, `auto`."""
_OTHER_VARIANT = 3


class _NameMatch(NamedTuple):
    """How a name fits a video; the smallest is the best."""

    kind: int
    rank: int
    """By language, see `_language_rank`."""
    variants: int
    name: str
    base: str
    """The name without its variants."""


def _name_matches(name: str, language: str | None) -> Iterator[tuple[str, _NameMatch]]:
    """Every id that a video could have to which this name belongs."""
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
    """The wanted language first, then a name without variants, then English, then anything."""
    if language and _is_in_language(variants, language):
        return 0
    if not variants:
        return 1
    return 2 if _is_in_language(variants, LANGUAGE) else _OTHER_VARIANT


def _is_in_language(variants: Sequence[str], language: str) -> bool:
    return any(f"{variant.lower()}-".startswith(f"{language.lower()}-") for variant in variants)
