"""Results as values that JSON has: objects, lists, texts, numbers, true, false and null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msg2.errors import InputError
from msg2.text import short_repr


def fields_to_json(instance: Any) -> dict[str, Any]:
    """Turn a dataclass into a JSON object: its fields in their order, and what is inside them likewise.

    What has a `to_json` of its own, such as a formula, is what that returns.

    >>> from msg2.task import Sentence
    >>> fields_to_json(Sentence("flip it", 1.5, 3.0))
    {'text': 'flip it', 'start': 1.5, 'end': 3.0}
    """
    return {field.name: _json_value(getattr(instance, field.name)) for field in fields(instance)}


def _json_value(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Mapping):
        return {key: _json_value(inner) for key, inner in value.items()}
    return [_json_value(inner) for inner in value] if isinstance(value, tuple | list) else value


def value_from_json(kind: Any, value: Any, name: str) -> Any:
    """Convert a value, as JSON gives it, to a type.

    Parameters
    ----------
    kind : type
        A dataclass, a tuple, mapping, union or literal of types, or a plain type.
    value : JSON value
        What was read.
    name : str
        What an error calls it.

    Returns
    -------
    kind
        The value, every part of which has its type.

    Raises
    ------
    InputError
        Where a part has another type, or a dataclass no such field.

    >>> value_from_json(tuple[int, ...], [1, 2], "x")
    (1, 2)
    >>> value_from_json(int, "1", "x")
    Traceback (most recent call last):
    msg2.errors.InputError: x is '1', not of the type int
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        fitting = next((each for each in inner if _fits(each, value)), inner[0])
        return value_from_json(fitting, value, name)
    if is_dataclass(kind) and isinstance(value, dict):
        kinds = get_type_hints(kind)
        unknown = next((key for key in value if key not in kinds), None)
        if unknown is not None:
            raise InputError(f"{name} has no {short_repr(unknown)}")
        return kind(**{key: value_from_json(kinds[key], each, f"{name}.{key}") for key, each in value.items()})  # type: ignore[operator]
    if origin is tuple and isinstance(value, list):
        return tuple(value_from_json(inner[0], each, f"{name}[{index}]") for index, each in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {key: value_from_json(inner[1], each, f"{name}.{key}") for key, each in value.items()}
    if not _fits(kind, value):
        raise InputError(f"{name} is {short_repr(str(value))}, not of the type {getattr(kind, '__name__', kind)}")
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Whether a single value is of the type `kind`; true and false are no numbers, whole numbers are numbers."""
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) in ((int, float) if kind is float else (kind,))
