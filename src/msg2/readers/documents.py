"""Annotation sets that are one JSON document: looking into them so that an error names the path to the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msg2.errors import InputError
from msg2.readers.sources import Source
from msg2.task import Segment


def the_document(source: Source, fits: Callable[[Any], bool]) -> Source | None:
    """The file that holds a document that `fits`: the source itself, or the only such file in the folder."""
    files = [file for file in (source.files if source.is_folder else (source,)) if fits(file.document)]
    if len(files) > 1:
        names = " and ".join(file.path.name for file in files)
        raise InputError(f"the folder holds {names}", where=source.path, hint="choose one of these files")
    return files[0] if files else None


def member(value: Any, key: str | int, kind: type | tuple[type, ...], where: str) -> Any:
    """`value[key]`, which must be of `kind`; `where` is the path to `value`."""
    path = f"{where}[{key}]" if isinstance(key, int) else f"{where}.{key}"
    try:
        found = value[key]
    except (KeyError, IndexError, TypeError):
        raise InputError("is missing", where=path) from None
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        words = {str: "text", dict: "an object", list: "a list", int: "a whole number"}
        raise InputError(f"is not {words.get(kind, 'a number')}", where=path)  # type: ignore[arg-type]
    return found


def segment(step: str, start: float, end: float, where: str) -> Segment:
    """A timed segment; what is wrong with it is said with the path to it."""
    try:
        return Segment(step, float(start), float(end))
    except OverflowError:
        raise InputError("has a time that is too large", where=where) from None
    except InputError as error:
        raise InputError(error.what, where=where, hint=error.hint) from None
