"""Options as forms, command lines and schemas see them: those of all methods, and one of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Optional

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.inference import METHODS
from msg2.options import OptionSpec, OptionValue, field_docs, option_specs


@dataclass(frozen=True)
class EveryKind:
    """One option of every kind."""

    share: float = 0.5
    """A share,
    written on two lines."""
    count: int = 3
    careful: bool = True
    """Whether it takes care."""
    title: str = "untitled"
    rule: Literal["each", "some"] = "each"
    limit: int | None = None
    delta: float | Literal["auto"] = "auto"
    old_style: Optional[float] = 0.25  # noqa: UP045
    levels: tuple[float, ...] = field(default_factory=lambda: (0.1, 2.0))


CLASSES = {**{name: method.options for name, method in METHODS.items()}, "every kind": EveryKind}
SPECS = [spec for options in CLASSES.values() for spec in option_specs(options)]
MADE_UP = {spec.name: spec for spec in option_specs(EveryKind)}


def values_of(spec: OptionSpec) -> st.SearchStrategy[OptionValue]:
    """Everything that the option can be set to."""
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    own: dict[str, st.SearchStrategy[Any]] = {
        "number": numbers,
        "integer": st.integers(-(10**30), 10**30),
        "boolean": st.booleans(),
        "text": st.text(),
        "numbers": st.lists(numbers, min_size=1).map(tuple),
        "choice": st.nothing(),
    }
    return own[spec.kind] | st.sampled_from([None if word == "none" else word for word in spec.words] or [spec.default])


any_spec = st.sampled_from(SPECS)
spec_and_value = any_spec.flatmap(lambda spec: st.tuples(st.just(spec), values_of(spec)))


# -- the specs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_has_a_spec_with_its_default(name: str) -> None:
    options = CLASSES[name]
    specs, defaults = option_specs(options), options()
    assert [spec.name for spec in specs] == [one.name for one in fields(options)]
    assert {spec.name: spec.default for spec in specs} == {
        one.name: getattr(defaults, one.name) for one in fields(options)
    }
    assert option_specs(options) is specs, "it is read once"


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_a_method_is_explained(name: str) -> None:
    options = METHODS[name].options
    for spec in option_specs(options):
        assert spec.help == field_docs(options)[spec.name]
        assert len(spec.help) > 10, f"{name}: {spec.name} has no docs below its field"
        assert "\n" not in spec.help


def test_kinds_words_and_placeholders() -> None:
    assert {name: (spec.kind, spec.words, spec.metavar) for name, spec in MADE_UP.items()} == {
        "share": ("number", (), "X"),
        "count": ("integer", (), "N"),
        "careful": ("boolean", (), ""),
        "title": ("text", (), "TEXT"),
        "rule": ("choice", ("each", "some"), "each|some"),
        "limit": ("integer", ("none",), "N|none"),
        "delta": ("number", ("auto",), "X|auto"),
        "old_style": ("number", ("none",), "X|none"),
        "levels": ("numbers", (), "X,Y,…"),
    }
    assert MADE_UP["old_style"].flag == "--old-style"
    assert (MADE_UP["levels"].default_text, MADE_UP["limit"].default_text) == ("0.1,2", "none")


def test_docs_of_fields_are_on_one_line_and_need_a_source() -> None:
    assert field_docs(EveryKind) == {
        "share": "A share, written on two lines.",
        "careful": "Whether it takes care.",
    }
    made = type("Made", (), {})
    assert field_docs(made) == {}


def test_a_type_that_cannot_be_read_from_text_is_an_error_of_the_programmer() -> None:
    @dataclass(frozen=True)
    class Wrong:
        table: dict[str, int] = field(default_factory=dict)

    with pytest.raises(TypeError, match="'table'"):
        option_specs(Wrong)


# -- text and JSON ----------------------------------------------------------------------------------------------


@given(spec_and_value)
def test_what_is_written_is_read_back(pair: tuple[OptionSpec, OptionValue]) -> None:
    spec, value = pair
    assert spec.parse(spec.format(value)) == value
    assert type(spec.parse(spec.format(value))) is type(value)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_default_can_be_written(spec: OptionSpec) -> None:
    assert spec.parse(spec.default_text) == spec.default


def attempt(read: Callable[[Any], OptionValue], value: Any) -> OptionValue | InputError:
    """What is read, or the error."""
    try:
        return read(value)
    except InputError as error:
        return error


@given(any_spec, st.text())
def test_any_text_is_a_value_or_an_error_that_names_the_option(spec: OptionSpec, text: str) -> None:
    found = attempt(spec.parse, text)
    assert not isinstance(found, InputError) or str(found).startswith(f"{spec.flag} is ")


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("count", "1.5", "it must be a whole number"),
        ("share", "much", "it must be a number"),
        ("careful", "perhaps", "it must be true or false"),
        ("rule", "all", "it must be 'each' or 'some'"),
        ("delta", "AUTO", "it must be a number or 'auto'"),
        ("limit", "", "it must be a whole number or 'none'"),
        ("levels", "1,,2", "it must be numbers with commas between them"),
    ],
)
def test_what_is_wanted_is_said(name: str, text: str, wanted: str) -> None:
    with pytest.raises(InputError) as caught:
        MADE_UP[name].parse(text)
    assert str(caught.value) == f"{MADE_UP[name].flag} is {text!r}, {wanted}"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_schema_is_one_and_takes_its_own_default(spec: OptionSpec) -> None:
    schema = spec.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(schema["default"], schema)
    jsonschema.validate(None, schema)
    assert spec.from_json(schema["default"]) == spec.default
    assert schema["description"] == spec.help


@given(spec_and_value)
def test_every_value_passes_the_schema_and_is_read_back(pair: tuple[OptionSpec, OptionValue]) -> None:
    spec, value = pair
    document = "none" if value is None else list(value) if isinstance(value, tuple) else value
    jsonschema.validate(document, spec.json_schema())
    assert spec.from_json(document) == value


JSON = st.recursive(
    st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(any_spec, JSON)
def test_the_schema_and_the_reader_agree(spec: OptionSpec, document: Any) -> None:
    """Null stands for the default: that is the caller's, so it is not among these documents."""
    found = attempt(spec.from_json, document)
    refused = isinstance(found, InputError)
    assert jsonschema.Draft202012Validator(spec.json_schema()).is_valid(document) != refused
    assert not refused or str(found).startswith(f"{spec.name} is ")
