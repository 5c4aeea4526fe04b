"""Results as values that JSON has: objects, lists, texts, numbers, true, false and null.

Option dataclasses, described: name, type, default and help of every field.

The options of a method are written once, as a frozen dataclass whose fields have their docs as a string literal below
them. The command line, the web form and the API's schema are generated from what this module reads off that class.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

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
    """Convert a value, as JSON gives it, to a type."""
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


Kind: TypeAlias = Literal["number", "integer", "boolean", "text", "choice", "numbers"]
OptionValue: TypeAlias = float | int | bool | str | tuple[float, ...] | None
"""What an option can be set to."""

_KIND_OF_TYPE: Mapping[object, Kind] = {float: "number", int: "integer", bool: "boolean", str: "text"}
_BOOLEANS = {"true": True, "false": False}


class _ValueKind(NamedTuple):
    """What values of a kind are called, how a help text writes them, how they are read, and their JSON Schema."""

    noun: str
    metavar: str | None
    parse: Callable[[str], OptionValue]
    schema: Mapping[str, Any]


_KINDS: Mapping[Kind, _ValueKind] = {
    "number": _ValueKind("a number", "X", float, {"type": "number"}),
    "integer": _ValueKind("a whole number", "N", int, {"type": "integer"}),
    "boolean": _ValueKind("true or false", None, lambda word: _BOOLEANS[word.lower()], {"type": "boolean"}),
    "text": _ValueKind("text", "TEXT", str, {"type": "string"}),
    "numbers": _ValueKind(
        "numbers with commas between them", "X,Y,…", lambda text: tuple(map(float, text.split(","))),
        {"type": "array", "items": {"type": "number"}},
    ),
}  # fmt: skip
"""All kinds but choices, whose values are words."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option, as a command line, a form or a schema needs it."""

    name: str
    kind: Kind
    words: tuple[str, ...]
    """Words that are values too: "auto", "none"; of a choice, all values."""
    default: OptionValue
    help: str

    @property
    def flag(self) -> str:
        """The option of the command line.

        >>> OptionSpec("max_literals", "integer", ("none",), 2, "").flag
        '--max-literals'
        """
        return f"--{self.name.replace('_', '-')}"

    @property
    def metavar(self) -> str:
        """The placeholder of the value in a help text: ``X|auto``."""
        value = _KINDS[self.kind].metavar if self.kind in _KINDS else None
        return "|".join([*([] if value is None else [value]), *self.words])

    @property
    def default_text(self) -> str:
        """The default as a user would write it."""
        return self.format(self.default)

    def format(self, value: OptionValue) -> str:
        """Write a value so that `parse` reads it back."""
        if value is None:
            return "none"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, tuple):
            return ",".join(map(_format_number, value))
        return _format_number(value) if isinstance(value, float) else str(value)

    def parse(self, text: str) -> OptionValue:
        """Read a value from text."""
        if text in self.words:
            return None if text == "none" else text
        try:
            return _KINDS[self.kind].parse(text)
        except (ValueError, KeyError):
            raise self._wrong_value(self.flag, text) from None

    def from_json(self, value: object) -> OptionValue:
        """Read a value from JSON: a number is no text, and 5.0 is as whole as 5."""
        if isinstance(value, str) and (self.kind == "text" or value in self.words):
            return self.parse(value)
        if isinstance(value, bool) and self.kind == "boolean":
            return value
        if self.kind == "number" and _is_number(value):
            return float(value)
        if self.kind == "integer" and _is_number(value) and value == int(value):
            return int(value)
        if self.kind == "numbers" and isinstance(value, list) and all(map(_is_number, value)):
            return tuple(map(float, value))
        raise self._wrong_value(self.name, value)

    def _wrong_value(self, name: str, value: object) -> InputError:
        wanted = [*([_KINDS[self.kind].noun] if self.kind in _KINDS else []), *map(repr, self.words)]
        return InputError(f"{name} is {value!r}, it must be {' or '.join(wanted)}")

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the value, with its default and description; null stands for the default."""
        accepted = [
            *([_KINDS[self.kind].schema] if self.kind in _KINDS else []),
            *([{"type": "string", "enum": list(self.words)}] if self.words else []),
            {"type": "null"},
        ]
        default = "none" if self.default is None else self.default
        return {
            "anyOf": accepted,
            "default": list(default) if isinstance(default, tuple) else default,
            "description": self.help,
        }


def _format_number(number: float) -> str:
    """As short as it can be without becoming another number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def _is_number(value: object) -> TypeGuard[float]:
    """Whether a value of JSON is a number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


@cache
def option_specs(options: type[Any]) -> tuple[OptionSpec, ...]:
    """Describe every field of an options dataclass."""
    hints, docs = get_type_hints(options), field_docs(options)
    return tuple(_spec(field, hints[field.name], docs.get(field.name, "")) for field in fields(options))


def _spec(field: Field[Any], hint: object, help: str) -> OptionSpec:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words: list[str] = []
    kind: Kind = "choice"
    for member in members:
        if member is NoneType:
            words.append("none")
        elif get_origin(member) is Literal:
            words += map(str, get_args(member))
        elif get_origin(member) is tuple:
            kind = "numbers"
        elif member in _KIND_OF_TYPE:
            kind = _KIND_OF_TYPE[member]
        else:
            raise TypeError(f"the option {field.name!r} has the type {member}, which cannot be read from text")
    default: Any = field.default_factory() if field.default_factory is not MISSING else field.default
    return OptionSpec(field.name, kind, tuple(words), default, help)


def field_docs(options: type[Any]) -> dict[str, str]:
    """Read the docs of the fields of a class: the string literal below each, on one line.

    Where the source of the class cannot be found, there are none.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(options)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(docs.value.value.split())
        for field, docs in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(docs, ast.Expr)
        and isinstance(docs.value, ast.Constant)
        and isinstance(docs.value.value, str)
    }


_T = TypeVar("_T")


def from_json(cls: type[_T], text: str | bytes, name: str) -> _T:
    """Read a dataclass from JSON; what is wrong is an `InputError` that says where, as in ``name.steps[2]``."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(cls).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        raise InputError(f"{name}{path}: {first['msg']}") from None
