"""Annotation sets that are one JSON document: looking into them so that an error names the path to the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msg2.errors import InputError
from msg2.readers.sources import Source


def fitting_files(source: Source, fits: Callable[[Any], bool]) -> list[Source]:
    """The files that hold a document that `fits`: of a folder those in it, else the source itself or none."""
    return [file for file in (source.files if source.is_folder else (source,)) if fits(file.document)]


def the_file(source: Source, fits: Callable[[Any], bool]) -> Source:
    """The only one of the `fitting_files`, of which there is at least one."""
    files = fitting_files(source, fits)
    if len(files) > 1:
        names = " and ".join(file.path.name for file in files)
        raise InputError(f"the folder holds {names}", where=source.path, hint="choose one of these files")
    return files[0]


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
