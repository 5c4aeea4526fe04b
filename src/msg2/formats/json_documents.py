"""Access to the values of a JSON document, so that an error names the path to the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

from msg2.errors import InputError
from msg2.formats.source import Source


def matching_files(source: Source, matches: Callable[[Any], bool]) -> list[Source]:
    """The files whose JSON document is of some kind.

    Parameters
    ----------
    source : Source
        A folder, whose files are looked at, or a file.
    matches : callable
        Whether a document is of that kind; it is None for a file that is not JSON.

    Returns
    -------
    list of Source
        Those files; of a file, itself or none.
    """
    return [file for file in source.files_or_self if matches(file.document)]


def only_matching_file(source: Source, matches: Callable[[Any], bool]) -> Source:
    """The only one of the `matching_files`, of which there is at least one.

    Parameters
    ----------
    source : Source
        A folder or a file.
    matches : callable
        Whether a document is of the kind that is wanted.

    Returns
    -------
    Source
        The file.

    Raises
    ------
    InputError
        Where there are several.
    """
    files = matching_files(source, matches)
    if len(files) > 1:
        names = " and ".join(file.path.name for file in files)
        raise InputError(f"the folder holds {names}", where=source.path, hint="choose one of these files")
    return files[0]


def keys_of_first(objects: Any) -> set[str]:
    """The keys of the first of the JSON objects in a JSON object, to recognise a layout by; none where it is none."""
    first = next(iter(objects.values()), None) if isinstance(objects, dict) else None
    return set(first) if isinstance(first, dict) else set()


def list_items(items: Any, kind: type, where: str) -> Iterator[tuple[str, Any]]:
    """The items of a JSON list, each with the path to it.

    Parameters
    ----------
    items : list
        The list.
    kind : type
        What every item must be.
    where : str
        File and path to the list, for errors.

    Yields
    ------
    tuple of (str, object)
        File and path to the item, and the item.

    Raises
    ------
    InputError
        Where an item is of another type.
    """
    for position in range(len(items)):
        yield f"{where}[{position}]", member(items, position, kind, where)


def member(value: Any, key: str | int, kind: type | UnionType | tuple[type, ...], where: str) -> Any:
    """The value of a key of a JSON object, or of a place in a list.

    Parameters
    ----------
    value : dict or list
        The object or list.
    key : str or int
        The key, or the place from 0.
    kind : type, union or tuple of types
        What the value must be.
    where : str
        File and path to the object or list, for errors.

    Returns
    -------
    object
        ``value[key]``.

    Raises
    ------
    InputError
        Where it is missing, or is of another type.
    """
    path = f"{where}[{key}]" if isinstance(key, int) else f"{where}.{key}"
    try:
        item = value[key]
    except (KeyError, IndexError, TypeError):
        raise InputError("is missing", where=path) from None
    if not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool):
        words = {str: "text", str | None: "text", dict: "an object", list: "a list", int: "a whole number"}
        raise InputError(f"is not {words.get(kind, 'a number')}", where=path)  # type: ignore[arg-type]
    return item
