"""Times of a table as people write them: seconds, milliseconds, `m:ss` and `h:mm:ss`, with a decimal point or comma.

What a number means must not depend on the row: a file that writes its times in two ways is refused.
"""

from __future__ import annotations

import re

from msg2.errors import InputError
from msg2.text import short_repr

_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:[.,]\d{1,9})?)")
_FRAMES = re.compile(r"\d+:\d+:\d+[:;]\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d+)")


def parse_clock(text: str) -> float | None:
    """The seconds of `m:ss`, `h:mm:ss` or either with a fraction; None where the text is something else.

    >>> parse_clock("1:30"), parse_clock("0:01:30,5"), parse_clock("1:75")
    (90.0, 90.5, None)
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = found.groups()
    if float(seconds.replace(",", ".")) >= 60 or (hours is not None and int(minutes) >= 60):
        return None
    # Whole milliseconds, so that 0:01:30.5 is the number that 90.5 is.
    return round((int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))) * 1e6) / 1e6


class NumberParser:
    """Parses the numbers of one table, and notes how they are written."""

    def __init__(self, separator: str) -> None:
        self._semicolons = separator.startswith(";")
        self._notation: str | None = None
        """How the times above are written, in words."""
        self._mark = ""
        """The decimal mark of the numbers above."""

    @property
    def assumptions(self) -> list[str]:
        """How numbers were understood, where that is not by the rules of the format."""
        commas = ["numbers have a decimal comma"] * (self._mark == ",")
        return [*commas, *["times with colons are m:ss or h:mm:ss"] * (self._notation == "with colons")]

    def parse_number(self, name: str, text: str) -> float | None:
        """A number; None of no text."""
        text = text.strip()
        if not text:
            return None
        comma = _DECIMAL_COMMA.fullmatch(text)
        if comma and not self._semicolons and len(comma[1]) == 3 and not text.lstrip("+-").startswith("0,"):
            hint = "write 1500, or 1.5 with a decimal point"
            raise InputError(f"the {name} {short_repr(text)} has a decimal comma or is in thousands", hint=hint)
        mark = "," if comma else "." if "." in text else ""
        if mark and self._mark not in ("", mark):
            what = f"the {name} {short_repr(text)} has another decimal mark than the numbers above"
            raise InputError(what, hint="write all numbers of a file with a decimal point")
        self._mark = mark or self._mark
        try:
            if "_" not in text:  # float() takes 1_000, a table does not
                return float(text.replace(",", ".") if comma else text)
        except ValueError:
            pass
        what = f"the {name} {short_repr(text)} is not a number"
        raise InputError(what, hint="give a number in 0 … 1" if name == "confidence" else _hint(text))

    def parse_seconds(self, name: str, text: str, milliseconds: bool) -> float | None:
        """A time in seconds; None of no text."""
        seconds = parse_clock(text.strip())
        notation = "with colons" if seconds is not None else "in milliseconds" if milliseconds else "in seconds"
        if seconds is None:
            seconds = self.parse_number(name, text)
        if seconds:  # nothing is nothing in any unit
            if self._notation not in (None, notation):
                what = f"the {name} {short_repr(text)} is written {notation}, the times above {self._notation}"
                raise InputError(what, hint="write all times of a file in the same way")
            self._notation = notation
        return seconds / 1000 if seconds and notation == "in milliseconds" else seconds


def _hint(text: str) -> str:
    if _FRAMES.fullmatch(text):
        return "times with frames have no length of their own: write 0:01:30.5, or seconds such as 90.5"
    if re.match(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}", text):
        return "is it an event log? then say so: --columns case=…,activity=…,time=…"
    return "give seconds with a decimal point, such as 90.5, or 1:30.5"
