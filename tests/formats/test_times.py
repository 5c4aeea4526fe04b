"""Times as people write them, against Python's own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats.tables import ColumnBuilder
from msg2.formats.times import parse_clock, parse_numbers


@given(st.integers(0, 30 * 3600 * 1000))
def test_clock_times(milliseconds: int) -> None:
    seconds = timedelta(milliseconds=milliseconds).total_seconds()
    minutes, rest = divmod(milliseconds, 60_000)
    fraction = f"{rest // 1000:02}.{rest % 1000:03}"
    spellings = [f"{minutes}:{fraction}", f"{minutes // 60}:{minutes % 60:02}:{fraction}"]
    for text in (*spellings, *(text.replace(".", ",") for text in spellings)):
        assert parse_clock(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "1.5", "1:60", "1:61:00", "1:2:3:4", "-1:30", "1:", ":30", "1:30 pm", "a:b"])
def test_what_is_no_clock_time(text: str) -> None:
    assert parse_clock(text) is None


@pytest.mark.parametrize(
    ("separator", "text", "expected"),
    [
        (",", "1,5", 1.5), (",", "0,500", 0.5), (";", "1,500", 1.5), ("\t", " 90 ", 90.0), ("|", "1e3", 1000.0),
        (";", "", None),
    ],
)  # fmt: skip
def test_numbers(separator: str, text: str, expected: float | None) -> None:
    (number,) = _parse([text], separator)
    assert number == expected or (expected is None and np.isnan(number))


def _parse(texts: list[str], separator: str = ",", milliseconds: Sequence[str] = ()) -> list[float]:
    numbers, _ = parse_numbers({"start": ColumnBuilder(texts).column()}, separator, milliseconds)
    return numbers["start"].tolist()


def test_nothing_is_nothing_in_any_notation() -> None:
    assert _parse(["0", "0:05", "0:00", "0.0"]) == [0, 5, 0, 0]
    with pytest.raises(InputError, match=r"times are written in seconds and with colons"):
        _parse(["0:05", "7"])
    assert _parse(["1500"], ",", ["start"]) == [1.5]
