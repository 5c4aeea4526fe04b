"""Options as forms, command lines and schemas see them: those of all methods, and one of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Optional

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError, require
from msg2.inference import METHODS
from msg2.options import (
    Count,
    NonNegativeInteger,
    OptionSpec,
    OptionValue,
    Positive,
    Probability,
    fields_to_json,
    from_json,
    make,
    option_specs,
    options_class,
)


@dataclass(frozen=True)
class EveryKind:
    """One option of every kind, in a plain dataclass: a method of one's own may have one."""

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


@options_class
class Checked:
    """Options within bounds."""

    size: Count = 3
    """How large it is."""
    seed: NonNegativeInteger = 0
    share: Probability = 0.5
    rate: Positive | Literal["auto"] = "auto"
    limit: Count | None = None

    def __post_init__(self) -> None:
        require(self.share < 1 or self.size > 1, "a share of 1 takes a size of 2")


CLASSES: dict[str, type] = {
    **{name: method.options for name, method in METHODS.items()}, "every kind": EveryKind, "checked": Checked
}  # fmt: skip
SPECS = [(options, spec) for options in CLASSES.values() for spec in option_specs(options)]
MADE_UP = {spec.name: spec for spec in option_specs(EveryKind)}
any_spec = st.sampled_from(SPECS)


def values_of(spec: OptionSpec) -> st.SearchStrategy[OptionValue]:
    """Everything of the kind that the option can be set to, within its bounds or not."""
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


def attempt(read: Callable[[], object]) -> object:
    """What is read, or the error."""
    try:
        return read()
    except InputError as error:
        return error


# -- checks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"size": 0}, "size is 0, it must be a whole number from 1 up"),
        ({"size": 2.5}, "size is 2.5, it must be a whole number from 1 up"),
        ({"size": True}, "size is True, it must be a whole number from 1 up"),
        ({"size": "3"}, "size is '3', it must be a whole number from 1 up"),
        ({"share": 1.5}, "share is 1.5, it must be a number from 0 to 1"),
        ({"share": float("nan")}, "share is nan, it must be a number from 0 to 1"),
        ({"rate": 0}, "rate is 0, it must be a number above 0 or 'auto'"),
        ({"limit": 0}, "limit is 0, it must be a whole number from 1 up or 'none'"),
        ({"share": 1, "size": 1}, "a share of 1 takes a size of 2"),
        ({"colour": "red"}, "there is no option 'colour'\n  the options are size, seed, share, rate, limit"),
    ],
)
def test_a_value_out_of_bounds_is_refused_in_a_sentence(values: dict[str, Any], sentence: str) -> None:
    for attempted in (lambda: Checked(**values), lambda: replace(Checked(), **values), lambda: make(Checked, values)):
        assert str(attempt(attempted)) == sentence


def test_positional_values_are_checked_too() -> None:
    assert str(attempt(lambda: Checked(1, -1))) == "seed is -1, it must be a whole number from 0 up"


def test_numbers_of_numpy_and_whole_floats_are_numbers() -> None:
    checked = Checked(np.int64(4), 2.0, np.float64(0.25))  # type: ignore[arg-type]
    assert (checked.size, checked.seed, checked.share) == (4, 2, 0.25)
    assert type(checked.size) is type(checked.seed) is int


def test_values_of_json_are_taken() -> None:
    assert make(EveryKind, {"limit": "none", "levels": [1.0, 2.0]}) == EveryKind(limit=None, levels=(1.0, 2.0))
    assert type(make(EveryKind, {"share": 0.25})) is EveryKind


# -- the specs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_has_a_spec_with_its_default(name: str) -> None:
    options = CLASSES[name]
    specs, defaults = option_specs(options), options()
    assert {spec.name: spec.default for spec in specs} == {
        one.name: getattr(defaults, one.name) for one in fields(options)
    }
    for spec in specs:
        assert spec.parse(spec.default_text) == spec.default


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_a_method_is_explained(name: str) -> None:
    for spec in option_specs(METHODS[name].options):
        assert len(spec.help) > 10, f"{name}: {spec.name} has no docs below its field"
        assert "\n" not in spec.help


def test_kinds_words_and_help() -> None:
    assert {name: (spec.kind, spec.words, spec.help) for name, spec in MADE_UP.items()} == {
        "share": ("number", (), "A share, written on two lines."),
        "count": ("integer", (), ""),
        "careful": ("boolean", (), "Whether it takes care."),
        "title": ("text", (), ""),
        "rule": ("choice", ("each", "some"), ""),
        "limit": ("integer", ("none",), ""),
        "delta": ("number", ("auto",), ""),
        "old_style": ("number", ("none",), ""),
        "levels": ("numbers", (), ""),
    }
    assert (MADE_UP["levels"].default_text, MADE_UP["limit"].default_text) == ("0.1,2", "none")
    assert option_specs(Checked)[0].help == "How large it is."


def test_a_type_that_cannot_be_read_from_text_is_an_error_of_the_programmer() -> None:
    @dataclass(frozen=True)
    class Wrong:
        table: dict[str, int] = field(default_factory=dict)

    with pytest.raises(TypeError, match="'table'"):
        option_specs(Wrong)


# -- text and JSON ----------------------------------------------------------------------------------------------


@given(any_spec.flatmap(lambda pair: st.tuples(st.just(pair[1]), values_of(pair[1]))))
def test_what_is_written_is_read_back(pair: tuple[OptionSpec, OptionValue]) -> None:
    spec, value = pair
    assert spec.parse(spec.format(value)) == value
    assert type(spec.parse(spec.format(value))) is type(value)


@given(any_spec, st.text())
def test_any_text_is_a_value_or_an_error_that_names_the_option(pair: tuple[type, OptionSpec], text: str) -> None:
    _, spec = pair
    found = attempt(lambda: spec.parse(text))
    assert not isinstance(found, InputError) or str(found).startswith(f"{spec.name} is ")


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
    assert str(caught.value) == f"{name} is {text!r}, {wanted}"


JSON = st.recursive(
    st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    any_spec.filter(lambda pair: pair[0] is not EveryKind).flatmap(
        lambda pair: st.tuples(st.just(pair), JSON | values_of(pair[1]) | st.sampled_from(pair[1].words or (1,)))
    )
)
def test_the_schema_and_the_reader_agree(case: tuple[tuple[type, OptionSpec], Any]) -> None:
    """Null stands for the default: that is the caller's, so it is not among these documents."""
    (options, spec), value = case
    document = "none" if value is None else list(value) if isinstance(value, tuple) else value
    schema = spec.json_schema()
    assert jsonschema.Draft202012Validator(schema).is_valid(schema["default"])
    if spec.name == "share":
        return  # it has to do with the size
    found = attempt(lambda: make(options, {spec.name: document}))
    refused = isinstance(found, InputError)
    assert jsonschema.Draft202012Validator(schema).is_valid(document) != refused
    assert not refused or str(found).startswith(f"{spec.name} is ")


@dataclass(frozen=True)
class Card:
    """A dataclass of JSON with options in it."""

    name: str
    steps: tuple[str, ...]
    checked: Checked = field(default_factory=Checked)


def test_a_dataclass_is_written_and_read_back() -> None:
    text = '{"name": "a", "steps": ["b", "c"], "checked": {"size": 4}}'
    card = from_json(Card, text, "the card")
    assert card == Card("a", ("b", "c"), Checked(size=4))
    assert fields_to_json(card) == {
        "name": "a", "steps": ["b", "c"],
        "checked": {"size": 4, "seed": 0, "share": 0.5, "rate": "auto", "limit": None},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", "the card: "),
        ('{"name": 3, "steps": []}', "the card.name: "),
        ('{"name": "a", "steps": ["b", 2]}', "the card.steps[1]: "),
        ('{"name": "a", "steps": [], "colour": 1}', "the card.colour: "),
        ('{"name": "a", "steps": [], "checked": {"size": 0}}', "the card.checked.size: "),
    ],
)
def test_what_is_wrong_in_json_is_found(text: str, path: str) -> None:
    assert str(attempt(lambda: from_json(Card, text, "the card"))).startswith(path)
