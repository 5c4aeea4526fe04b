"""Options that are written once: a class of checked, documented fields, from which flags, forms and schemas follow.

`options_class` makes a class a frozen pydantic dataclass; the docs of its fields are the string literals below them.
`option_specs` describes the fields. `from_json` and `fields_to_json` read and write any dataclass.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, wraps
from numbers import Integral
from typing import Annotated, Literal, TypeAlias, TypeVar, cast, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.dataclasses import is_pydantic_dataclass

from msg2.errors import InputError
from msg2.text import truncate

_T = TypeVar("_T")
JsonSchema: TypeAlias = dict[str, object]
Kind: TypeAlias = Literal["number", "integer", "boolean", "text", "choice", "numbers"]
OptionValue: TypeAlias = float | int | bool | str | tuple[float, ...] | None
"""What an option can be set to."""

_CONFIG = ConfigDict(
    extra="forbid",
    strict=True,  # a text is no number, and true is not 1
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)


def _whole(value: object) -> object:
    """An integer of NumPy is one, and 5.0 is as whole as 5."""
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, Integral) or (isinstance(value, float) and value.is_integer()) else value


WHOLE = BeforeValidator(_whole)
Count: TypeAlias = Annotated[int, Field(ge=1), WHOLE]
NonNegativeInteger: TypeAlias = Annotated[int, Field(ge=0), WHOLE]
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
ShareBelowOne: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
Positive: TypeAlias = Annotated[float, Field(gt=0)]
NonNegative: TypeAlias = Annotated[float, Field(ge=0)]


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def options_class(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass of options with slots; a value that does not fit its field is an `InputError`."""
    made = pydantic_dataclass(frozen=True, slots=True, config=_CONFIG)(cls)
    initialise = cast(Callable[..., None], made.__init__)

    @wraps(initialise)
    def checked(self: object, *arguments: object, **values: object) -> None:
        try:
            initialise(self, *arguments, **values)
        except ValidationError as error:
            raise _explain(made, error, values) from None

    made.__init__ = checked  # type: ignore[method-assign]
    return cast(type[_T], made)


def make(cls: type[_T], values: Mapping[str, object]) -> _T:
    """Make checked options of any dataclass from Python or JSON values: a list is a tuple, "none" may mean None."""
    nullable = {spec.name for spec in option_specs(cast(type, cls)) if "none" in spec.words}
    plain: dict[str, object] = {
        name: None if value == "none" and name in nullable else tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    if not is_pydantic_dataclass(cls):
        try:
            pydantic_dataclass(cls, frozen=True, config=_CONFIG)(**plain)
        except ValidationError as error:
            raise _explain(cls, error, values) from None
    return cls(**plain)


def _explain(cls: type, error: ValidationError, values: Mapping[str, object]) -> InputError:
    """Say in a sentence what is wrong with the values of options."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    schemas, (place, *_) = _field_schemas(cls), first["loc"]
    name = [*schemas, ""][place] if isinstance(place, int) else place
    if name not in schemas:
        return InputError(f"there is no option {name!r}", hint=f"the options are {', '.join(schemas)}")
    return _wrong_value(name, values.get(name, first["input"]), schemas[name])


def _wrong_value(name: str, value: object, schema: JsonSchema) -> InputError:
    return InputError(f"{name} is {truncate(repr(value), 100)}, it must be {describe_values(schema)}")


@cache
def _field_schemas(cls: type) -> dict[str, JsonSchema]:
    """The JSON Schema of every field, as pydantic has it: types, bounds, defaults and docs."""
    if not is_pydantic_dataclass(cls):
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__pydantic_config__": _CONFIG}
        cls = type(cls.__name__, (cls,), names)
    properties: dict[str, JsonSchema] = TypeAdapter(cls).json_schema().get("properties", {})
    return properties


def _alternatives(schema: JsonSchema) -> list[JsonSchema]:
    return cast(list[JsonSchema], schema.get("anyOf", [schema]))


def _words(schema: JsonSchema) -> list[str]:
    """The words that an alternative accepts; None is written as none."""
    if schema.get("type") == "null":
        return ["none"]
    return [str(schema["const"])] if "const" in schema else cast(list[str], schema.get("enum", []))


_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_TYPES: Mapping[object, tuple[Kind, str, Callable[[str], OptionValue]]] = {
    "number": ("number", "a number", float),
    "integer": ("integer", "a whole number", int),
    "boolean": ("boolean", "true or false", lambda word: _TRUTH[word.lower()]),
    "string": ("text", "text", str),
    "array": ("numbers", "numbers with commas between them", lambda text: tuple(map(float, text.split(",")))),
}
"""By the type in a JSON Schema: the kind of option, its values in words, and what reads one from text."""
_PARSERS = {kind: parser for kind, _, parser in _TYPES.values()}


def describe_values(schema: JsonSchema) -> str:
    """Say in words which values a JSON Schema accepts."""
    said: list[str] = []
    for part in _alternatives(schema):
        noun = _TYPES[part.get("type")][1] if part.get("type") in _TYPES else "an object"
        said += map(repr, _words(part)) if _words(part) else [noun + _describe_bounds(part)]
    return " or ".join(said)


def _describe_bounds(schema: JsonSchema) -> str:
    if "items" in schema:
        within = _describe_bounds(cast(JsonSchema, schema["items"]))
        return f", each{within}" if within else ""
    bounds = {name: f"{cast(float, value):,.15g}" for name, value in schema.items() if name in _BOUNDS}
    words = _BOUNDS | ({"maximum": "and at most"} if "exclusiveMinimum" in bounds else {})
    said = "".join(f" {words[name]} {bounds[name]}" for name in words if name in bounds)
    return f"{said} up" if list(bounds) == ["minimum"] else said


_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "to below"}


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option, as a command line, a form or a schema needs it."""

    name: str
    kind: Kind
    words: tuple[str, ...]
    """Words that are values too: "auto", "none"; of a choice, all values."""
    default: OptionValue
    help: str
    schema: JsonSchema
    """The JSON Schema of its values, as pydantic has it."""

    @property
    def values(self) -> str:
        """Which values it takes, in words."""
        return describe_values(self.schema)

    @property
    def default_text(self) -> str:
        """The default as you would write it."""
        return self.format(self.default)

    def format(self, value: OptionValue) -> str:
        """Write a value so that `parse` reads it back."""
        if value is None or isinstance(value, bool):
            return str(value).lower()
        parts = value if isinstance(value, tuple) else (value,)
        short = [f"{part:g}" if isinstance(part, float) and float(f"{part:g}") == part else str(part) for part in parts]
        return ",".join(short)

    def parse(self, text: str) -> OptionValue:
        """Read a value from text."""
        if text in self.words:
            return None if text == "none" else text
        try:
            return _PARSERS[self.kind](text)
        except (ValueError, KeyError):
            raise _wrong_value(self.name, text, self.schema) from None

    def json_schema(self) -> JsonSchema:
        """The JSON Schema of the value in a request: null stands for the default, "none" for None."""
        accepted = [part for part in _alternatives(self.schema) if part.get("type") != "null"]
        none = [{"const": "none"}] if "none" in self.words else []
        keep = {"title", "default", "description", "anyOf"}
        parts = [{key: value for key, value in part.items() if key not in keep} for part in accepted]
        default = "none" if self.default is None else self.default
        return {
            "anyOf": [*parts, *none, {"type": "null"}],
            "default": list(default) if isinstance(default, tuple) else default,
            "description": self.help,
        }


@cache
def option_specs(cls: type) -> tuple[OptionSpec, ...]:
    """Describe every field of a class of options, which may be any dataclass whose fields have defaults."""
    specs, defaults = [], cls()
    for name, schema in _field_schemas(cls).items():
        words: list[str] = []
        kind: Kind = "choice"
        for part in _alternatives(schema):
            if own := _words(part):
                words += own
            elif part.get("type") in _TYPES:
                kind = _TYPES[part["type"]][0]
            else:
                raise TypeError(f"the option {name!r} cannot be read from text: it is {part}")
        help_text = " ".join(str(schema.get("description", "")).split())
        specs.append(OptionSpec(name, kind, tuple(words), getattr(defaults, name), help_text, schema))
    return tuple(specs)


def from_json(cls: type[_T], text: str | bytes, name: str) -> _T:
    """Read a dataclass from JSON; what is wrong is an `InputError` that says where, as in ``name.steps[2]``."""
    try:
        return TypeAdapter(cls).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        what = "is missing" if first["type"] == "missing" else first["msg"]
        raise InputError(f"{name}{path}: {what}") from None


def fields_to_json(instance: object) -> dict[str, object]:
    """Turn a dataclass into a JSON object, field by field; values with a `to_json` of their own use that."""
    return {one.name: _json_value(getattr(instance, one.name)) for one in fields(instance)}  # type: ignore[arg-type]


class JsonFields:
    """A dataclass whose fields are its JSON object."""

    __slots__ = ()

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


def _json_value(value: object) -> object:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Mapping):
        return {key: _json_value(inner) for key, inner in value.items()}
    return [_json_value(inner) for inner in value] if isinstance(value, tuple | list) else value
