"""Strict JSON: no duplicate keys, no NaN, no endless numbers; errors name the file, the row and the column."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msg2.errors import InputError
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.source import Source


def parse_json(text: str, source: Source, row: int | None = None) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN, no halves of surrogate pairs.

    Parameters
    ----------
    text : str
        The JSON text.
    source : Source
        Where it is from, for errors.
    row : int, optional
        The line on which it stands, where it is one line of a file.

    Returns
    -------
    object
        The value: dict, list, str, int, float, bool or None.

    Raises
    ------
    InputError
        Where it is not JSON.
    """
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


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise InputError(f"has the number {short_repr(digits)}, which is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"has {name}, which is no JSON number")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_require_unique_keys, parse_float=_parse_finite, parse_constant=_refuse_constant
)
