"""Errors of the input: what, where and what to do, in at most two lines."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError, MissingExtraError


def test_a_place_is_put_on_an_error_that_has_none() -> None:
    error = InputError("is empty", hint="write something")
    placed = error.at(Path("steps.csv"))
    assert (placed.what, placed.where, placed.hint) == ("is empty", "steps.csv", "write something")
    assert str(placed) == "steps.csv: is empty\n  write something"
    assert (error.where, str(error)) == (None, "is empty\n  write something"), "the first error stays as it was"


def test_the_first_place_stays() -> None:
    placed = InputError("is empty", where="steps.csv, row 1").at("steps.csv")
    assert str(placed) == "steps.csv, row 1: is empty"
    assert str(placed.at("somewhere else")) == str(placed)


def test_another_hint_takes_the_place_of_the_first() -> None:
    assert InputError("is empty", hint="write something").at("a.csv", hint="choose another").hint == "choose another"
    assert InputError("is empty").at("a.csv", hint="choose another").hint == "choose another"
    assert InputError("is empty", hint="write something").at("a.csv", hint=None).hint == "write something"


def test_it_is_raised_and_caught_as_an_error_of_the_value() -> None:
    with pytest.raises(ValueError, match=r"^a.csv: is empty$"):
        raise InputError("is empty").at("a.csv")
    assert isinstance(MissingExtraError("reading", "parquet").at("a.parquet"), InputError)


@given(st.text(), st.none() | st.text(), st.none() | st.text(), st.text(), st.none() | st.text())
def test_any_text_is_at_most_two_printable_lines(
    what: str, where: str | None, hint: str | None, place: str, other: str | None
) -> None:
    for error in (
        InputError(what, where=where, hint=hint),
        InputError(what, where=where, hint=hint).at(place, hint=other),
    ):
        lines = str(error).split("\n")
        assert len(lines) <= 2
        assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "error",
    [
        InputError("is wrong", where="a.csv, row 2", hint="mend it"),
        MissingExtraError("plots", "plot"),
        InputError("is wrong"),
    ],
)
def test_errors_of_a_worker_are_told_as_they_are(error: InputError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.what, again.where, again.hint) == (str(error), error.what, error.where, error.hint)
