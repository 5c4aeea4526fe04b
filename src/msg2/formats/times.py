"""Times and numbers as tables have them: seconds, milliseconds, `m:ss`, decimal commas, dates, numbers since 1970.

What a number means must not depend on the row: a file that writes its times in two ways is refused. Points in time of
event logs are whole microseconds since 1970.
"""

import math
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, require
from msg2.formats.tables import CodedColumn, Columns
from msg2.text import short_repr

_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:[.,]\d{1,9})?)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d+)")

_NUMBER = re.compile(r"-?\d{1,25}(?:\.\d{1,25})?")
_DATE = re.compile(
    r"(?P<a>\d{1,4})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{1,4})"
    r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp][Mm])?)?"
)  # a date as people and spreadsheets write it: 2024/05/13, 13.05.2024, 13/05/2024 or 5/13/2024, maybe with a time
_EPOCH, _LOCAL_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
_LOCAL, _ZONED = "times without a time zone", "times with a time zone"
_UNITS = (
    (10**11, 10**6, "seconds since 1970"),
    (10**14, 10**3, "milliseconds since 1970"),
    (10**17, 1, "microseconds since 1970"),
    (10**25, Decimal("0.001"), "nanoseconds since 1970"),
)
"""A number below the first is that many of the second, in microseconds: seconds reach the year 5138 before they are
taken for milliseconds, and milliseconds begin in 1973."""


# -- seconds of a video -----------------------------------------------------------------------------------------


def parse_clock(text: str) -> float | None:
    """The seconds of `m:ss`, `h:mm:ss` or either with a fraction; None where the text is something else."""
    if (match := _CLOCK.fullmatch(text.replace(",", "."))) is None:
        return None
    hours, minutes, seconds = match.groups()
    if float(seconds) >= 60 or (hours is not None and int(minutes) >= 60):
        return None
    # Whole microseconds, so that 0:01:30.5 is the number that 90.5 is.
    return round((int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)) * 1e6) / 1e6


def parse_numbers(
    columns: Columns, separator: str, milliseconds: Collection[str]
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Read the numbers of some columns, by role: times in seconds, NaN for empty cells; and say what was assumed."""
    numbers: dict[str, NDArray[np.float64]] = {}
    marks: set[str] = set()
    notations: set[str] = set()
    for role, column in columns.items():
        unit = "in milliseconds" if role in milliseconds else "in seconds"
        code: NDArray[np.int32] | slice = slice(None)
        if isinstance(column, CodedColumn):
            cells = [_parse_cell(role, cell, separator) for cell in column.values]
            values, code = np.array([value for value, _ in cells], np.float64), column.code
            missing = np.array([value is None for value, _ in cells], np.bool_)
            marks |= {mark for _, mark in cells}
            written = {"with colons" if mark == ":" else unit for value, mark in cells if value}  # 0 is 0 in any unit
        elif column.dtype.kind == "M":
            raise InputError(f"the {role} {str(column.data[-1])!r} is not a number")
        else:
            values, missing = column.data.astype(np.float64, copy=False), np.ma.getmaskarray(column)
            written = {unit} if values.any() else set()
        if not np.isfinite(values[~missing] if missing.any() else values).all():
            raise InputError(f"the {role} {values[code][-1]} is not a finite number")
        if role != "confidence":
            notations |= written
            values = values / 1000 if "in milliseconds" in written else values
        numbers[role] = (np.where(missing, np.nan, values) if missing.any() else values)[code]
    if {",", "."} <= marks:
        hint = "write all numbers of a file with a decimal point"
        raise InputError("numbers are written with decimal commas and with decimal points", hint=hint)
    hint = "write all times of a file in the same way"
    require(len(notations) <= 1, f"times are written {' and '.join(sorted(notations))}", hint=hint)
    commas = ["numbers have a decimal comma"] * ("," in marks)
    return numbers, [*commas, *["times with colons are m:ss or h:mm:ss"] * ("with colons" in notations)]


def _parse_cell(role: str, cell: object, separator: str) -> tuple[float | None, str]:
    """The number in a cell, None in an empty one, and the mark in it: a colon, a decimal comma or point, or nothing."""
    if cell is None or (isinstance(cell, str) and separator and not cell.strip()):
        return None, ""
    if not (isinstance(cell, str) and separator):
        if not isinstance(cell, int | float) or isinstance(cell, bool):
            raise InputError(f"the {role} {short_repr(str(cell))} is not a number")
        try:
            return float(cell), ""
        except OverflowError:
            return math.inf, ""
    text = cell.strip()
    if ":" in text and role != "confidence" and (seconds := parse_clock(text)) is not None:
        return seconds, ":"
    comma = _DECIMAL_COMMA.fullmatch(text)
    thousands = comma is not None and len(comma[1]) == 3 and not text.lstrip("+-").startswith("0,")
    if thousands and not separator.startswith(";"):
        hint = "write 1500, or 1.5 with a decimal point"
        raise InputError(f"the {role} {short_repr(text)} has a decimal comma or is in thousands", hint=hint)
    with suppress(ValueError):
        if "_" not in text:  # float() takes 1_000, a table does not
            return float(text.replace(",", ".") if comma else text), "," if comma else "." if "." in text else ""
    hint = "give seconds with a decimal point, such as 90.5, or 1:30.5"
    if role == "confidence":
        hint = "give a number in 0 … 1"
    elif re.fullmatch(r"\d+:\d+:\d+[:;]\d+", text):
        hint = "times with frames have no length of their own: write 0:01:30.5, or seconds such as 90.5"
    elif re.match(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}", text):
        hint = "is it an event log? then say so: --columns case=…,activity=…,time=…"
    raise InputError(f"the {role} {short_repr(text)} is not a number", hint=hint)


# -- points in time ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TimestampParser:
    """Parses the points in time of one log, which are all written in the same way."""

    day_first: bool | None = None  # of dates such as 5/6/2024; see `find_day_first`
    kind: str | None = None  # how those so far are written, in words

    def parse(self, text: str) -> int:
        """Microseconds since 1970."""
        plain = text.strip()
        if plain[4:5] != "-" and _NUMBER.fullmatch(plain):
            number = Decimal(plain)
            _, unit, kind = next(entry for entry in _UNITS if abs(number) < entry[0])
            microseconds = int(number * unit)
            if abs(number * unit) >= 2**63:
                raise InputError(f"the time {short_repr(plain)} is too far from 1970")
        else:
            try:
                time = datetime.fromisoformat(plain)
            except ValueError:
                time = _parse_date(plain, self.day_first)
            kind, epoch = (_LOCAL, _LOCAL_EPOCH) if time.tzinfo is None else (_ZONED, _EPOCH)
            since = time - epoch
            microseconds = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        if self.kind is not kind and self.kind is not None:
            what = f"the time {short_repr(text)} is one of {kind}, those above are {self.kind}"
            raise InputError(what, hint="write all times of a file in the same way")
        self.kind = kind
        return microseconds


def _parse_date(text: str, day_first: bool | None) -> datetime:
    """The point in time of a date as a spreadsheet writes it."""
    date = _DATE.fullmatch(text)
    if date is not None and (len(date["a"]) == 4) != (len(date["c"]) == 4):
        year, month, day = date.group("a", "b", "c")
        if len(year) < 4:
            if day_first is None and (day_first := _day_first(date)) is None:
                what = f"the time {short_repr(text)} may have the day first or the month"
                raise InputError(what, hint="no row of the file tells; write times as 2024-05-01 12:00:00")
            day, month, year = date.group("a", "b", "c") if day_first else date.group("b", "a", "c")
        hour = int(date["hour"] or 0)
        if date["half"]:  # 12 is before 1; what is no hour of half a day is none of a day
            hour = hour % 12 + 12 * (date["half"].lower() == "pm") if 1 <= hour <= 12 else 24
        clock = (hour, int(date["minute"] or 0), int(date["second"] or 0))
        with suppress(ValueError):
            fraction = (date["fraction"] or "0")[:6].ljust(6, "0")
            return datetime(int(year), int(month), int(day), *clock, int(fraction))
    hint = "write times as 2024-05-01T12:00:00+02:00, or as seconds since 1970"
    raise InputError(f"the time {short_repr(text)} is not a point in time", hint=hint)


def _day_first(date: re.Match[str]) -> bool | None:
    """Whether the day comes first in a date with the year last, where that can be told."""
    if date["mark"] == "." or int(date["a"]) > 12:
        return True
    return False if int(date["b"]) > 12 else None


def find_day_first(texts: Iterable[str]) -> bool | None:
    """Whether the day comes first in dates such as 5/6/2024, by the first one that tells; None where none does."""
    dates = (date for text in texts if (date := _DATE.fullmatch(text.strip())) and len(date["a"]) < 4)
    return next((first for date in dates if (first := _day_first(date)) is not None), None)
