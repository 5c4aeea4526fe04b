"""Points in time as logs write them: ISO 8601 with or without a time zone, or numbers since 1970.

Only differences within one video matter, so every point is a whole number of microseconds since 1970.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from msg2.errors import InputError, shortened

_NUMBER = re.compile(r"-?\d{1,25}(?:\.\d{1,25})?")
_START, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_UNITS = (
    (10**11, 10**6, "seconds since 1970"),
    (10**14, 10**3, "milliseconds since 1970"),
    (10**17, 1, "microseconds since 1970"),
)
"""A number below the first is that many of the second, in microseconds: seconds reach the year 5138 before they are
taken for milliseconds, and milliseconds begin in 1973."""


class Clock:
    """Reads the times of one file, which are all of one kind: `kind` says which, in words.

    >>> clock = Clock()
    >>> clock.microseconds("2024-05-01T12:00:00.5+02:00") - clock.microseconds("2024-05-01T09:59:59Z")
    1500000
    >>> clock.kind
    'times with a time zone'
    """

    def __init__(self) -> None:
        self.kind: str | None = None

    def microseconds(self, text: str) -> int:
        """The time since 1970; one without a time zone is taken as if it were UTC."""
        kind, value = _moment(text)
        if self.kind is None:
            self.kind = kind
        elif self.kind != kind:
            what = f"the time {shortened(text)} is one of {kind}, those above are {self.kind}"
            raise InputError(what, hint="write all times of a file in the same way")
        return value


def _moment(text: str) -> tuple[str, int]:
    text = text.strip()
    if text[4:5] != "-" and _NUMBER.fullmatch(text):
        number = Decimal(text)
        for limit, unit, kind in _UNITS:
            if abs(number) < limit:
                return kind, int(number * unit)
        return "nanoseconds since 1970", int(number / 1000)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        hint = "write times as 2024-05-01T12:00:00+02:00, or as seconds since 1970"
        raise InputError(f"the time {shortened(text)} is not a point in time", hint=hint) from None
    if time.tzinfo is None:
        return "times without a time zone", (time.replace(tzinfo=UTC) - _START) // _MICROSECOND
    return "times with a time zone", (time - _START) // _MICROSECOND
