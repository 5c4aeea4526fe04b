"""Strict JSON, and access to its values: errors name the file, the row and the column, or the path to the value."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeAlias

from msg2.errors import InputError
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.source import Source

JsonItem: TypeAlias = dict[str, Any]
"""A JSON object; `member` looks at the types of its values."""


def parse_json(text: str, source: Source, row: int | None = None) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN, no halves of surrogate pairs."""
    where: str | Path = source.path if row is None else source.row(row)
    try:
        value = _STRICT.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except InputError as error:
        raise error.at(where) from None
    except json.JSONDecodeError as error:
        what = f"is not valid JSON: {error.msg} (column {error.colno})"
        raise InputError(what, where=source.row(row or error.lineno)) from None
    except RecursionError:
        raise InputError("is nested too deeply", where=where) from None
    except UnicodeEncodeError:
        raise InputError("has half of a surrogate pair, which is no character", where=where) from None
    except ValueError:
        raise InputError("has a number with too many digits", where=where) from None


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f"the key {short_repr(twice)} is there twice in one object")
    return value


def _parse_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        is_word = text.strip("-").isalpha()  # NaN, Infinity
        what = f"{text}, which is no JSON number" if is_word else f"the number {short_repr(text)}, which is too large"
        raise InputError(f"has {what}")
    return value


_STRICT = json.JSONDecoder(
    object_pairs_hook=_require_unique_keys, parse_float=_parse_finite, parse_constant=_parse_finite
)


def keys_of_first(document: object, key: str = "") -> set[str]:
    """The keys of the first of the JSON objects in a document, or in what it has for a key; none where it is none."""
    objects = document.get(key) if key and isinstance(document, dict) else document
    first = next(iter(objects.values()), None) if isinstance(objects, dict) else None
    return set(first) if isinstance(first, dict) else set()


def list_items(items: Any, kind: type, where: str) -> Iterator[tuple[str, Any]]:
    """The items of a JSON list, each with the path to it."""
    for position in range(len(items)):
        yield f"{where}[{position}]", member(items, position, kind, where)


def member_items(value: Any, key: str, kind: type, where: str) -> Iterator[tuple[str, Any]]:
    """The items of the list that a JSON object has for a key, each with the path to it."""
    return list_items(member(value, key, list, where), kind, f"{where}.{key}")


def member_span(value: Any, keys: tuple[str, str] | tuple[int, int], where: str) -> tuple[float, float]:
    """The times that a JSON object, or list, has for the keys of a start and an end."""
    try:
        start, end = (float(member(value, key, (int, float), where)) for key in keys)
    except OverflowError:
        raise InputError("has a time that is too large", where=where) from None
    return start, end


def member(value: Any, key: str | int, kind: type | UnionType | tuple[type, ...], where: str) -> Any:
    """The value of a key of a JSON object, or of a place in a list."""
    path = f"{where}[{key}]" if isinstance(key, int) else f"{where}.{key}"
    try:
        item = value[key]
    except (KeyError, IndexError, TypeError):
        raise InputError("is missing", where=path) from None
    if not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool):
        words = {str: "text", str | None: "text", dict: "an object", list: "a list", int: "a whole number"}
        raise InputError(f"is not {words.get(kind, 'a number')}", where=path)  # type: ignore[arg-type]
    return item
