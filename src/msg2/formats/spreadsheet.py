"""Excel workbooks (`.xlsx`): the cells of their sheets as text, as Excel shows them.

A workbook is a zip archive of XML (ECMA-376), and is read as such: nothing is fetched or computed. Of a formula, the
value that Excel has saved counts. Dates are days since 1900 or 1904 in a cell whose format is a date's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_xml

SheetRows: TypeAlias = list[tuple[int, list[str]]]
"""The rows of a sheet that are not blank: number, from 1, and cells."""

_DATE_FORMATS = {**dict.fromkeys((14, 15, 16, 17), "d"), 18: "h:m", 19: "h:m:s", 20: "h:m", 21: "h:m:s", 22: "d h:m"}
_BUILT_IN = {**_DATE_FORMATS, 45: "m:s", 46: "h:m:s", 47: "m:s"}
"""Formats that have numbers and no text in the file."""
_LITERAL = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]|[_*].')
"""What a number format shows as it is, and colours and conditions; `[h]` is a duration in hours."""
_MAX_COLUMNS = 16_384
"""Of a sheet, by the format."""


def read_sheets(source: Source) -> Iterator[tuple[str, SheetRows]]:
    """Read the sheets of a workbook, in its order."""
    folder = source.workbook
    if folder is None:
        raise InputError("is no Excel workbook", where=source.path)
    workbook = _Workbook(folder)
    for name, target in workbook.sheets.items():
        part = _part(folder, workbook.targets.get(target, ""))
        if part is not None:  # a sheet may also be a chart
            yield name, _Sheet(part, workbook).rows


def _part(folder: Source, path: str) -> Source | None:
    """A part of the workbook, by its path in or below the folder `xl`."""
    found: Source | None = folder
    for name in path.removeprefix("/xl/").split("/"):
        found = None if found is None else found.member(name)
    return found


class _Workbook:
    """What the sheets of a workbook share: their names, texts and formats."""

    def __init__(self, folder: Source) -> None:
        self.sheets: dict[str, str] = {}
        """Name -> id."""
        self.targets: dict[str, str] = {}
        """Id -> path."""
        self.texts: list[str] = []
        self.formats: list[str] = []
        """By style of a cell: letters of what it shows of a date or time; nothing of a number."""
        self.first_day = datetime(1899, 12, 30)
        self._codes = dict(_BUILT_IN)
        self._within: list[str] = []
        for name in ("workbook.xml", "_rels/workbook.xml.rels", "sharedStrings.xml", "styles.xml"):
            part = _part(folder, name)
            if part is not None:
                parse_xml(part, self._start_element, self._end_element, self._add_text)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._within.append(name)
        if name == "sheet":
            self.sheets[attributes.get("name", "")] = attributes.get("r:id", "")
        elif name == "Relationship":
            self.targets[attributes.get("Id", "")] = attributes.get("Target", "")
        elif name == "workbookPr" and attributes.get("date1904", "") in ("1", "true"):
            self.first_day = datetime(1904, 1, 1)
        elif name == "numFmt":
            self._codes[_integer(attributes.get("numFmtId"))] = _date_letters(attributes.get("formatCode", ""))
        elif name == "xf" and "cellXfs" in self._within:
            self.formats.append(self._codes.get(_integer(attributes.get("numFmtId")), ""))
        elif name == "si":
            self.texts.append("")

    def _end_element(self, name: str) -> None:
        self._within.pop()

    def _add_text(self, text: str) -> None:
        if self._within[-1] == "t" and "si" in self._within and "rPh" not in self._within:  # no hints on speaking
            self.texts[-1] += text


class _Sheet:
    """The rows of a sheet."""

    def __init__(self, part: Source, workbook: _Workbook) -> None:
        self.rows: SheetRows = []
        self._workbook = workbook
        self._cells: list[str] = []
        self._line = self._column = 0
        self._kind, self._format, self._value = "", "", ""
        self._in_value = False
        parse_xml(part, self._start_element, self._end_element, self._add_text)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            self._line, self._cells = _integer(attributes.get("r"), self._line + 1), []
        elif name == "c":
            self._column = _column_number(attributes.get("r", "")) or len(self._cells) + 1
            style = _integer(attributes.get("s"))
            self._format = self._workbook.formats[style] if style < len(self._workbook.formats) else ""
            self._kind, self._value = attributes.get("t", "n"), ""
        self._in_value = name in ("v", "t")

    def _add_text(self, text: str) -> None:
        if self._in_value:
            self._value += text

    def _end_element(self, name: str) -> None:
        name, self._in_value = name.rpartition(":")[2], False
        if name == "c" and self._value:
            self._cells += [""] * (self._column - len(self._cells))
            self._cells[self._column - 1] = self._to_text()
        elif name == "row" and any(self._cells):
            self.rows.append((self._line, self._cells))

    def _to_text(self) -> str:
        if self._kind == "s":
            number = _integer(self._value, -1)
            if not 0 <= number < len(self._workbook.texts):
                raise InputError(f"refers to the text {number}, which is not there")
            return self._workbook.texts[number]
        if self._kind != "n":
            return {"0": "FALSE", "1": "TRUE"}.get(self._value, self._value) if self._kind == "b" else self._value
        try:
            return number_text(float(self._value), self._format, self._workbook.first_day)
        except (ValueError, OverflowError):
            raise InputError(f"the cell has the number {self._value!r}") from None


def number_text(number: float, letters: str, first_day: datetime) -> str:
    """A number as Excel shows it."""
    if not letters:
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if "d" in letters:
        return (first_day + timedelta(milliseconds=round(number * 86_400_000))).isoformat(" ")
    milliseconds = round(number * 86_400_000)
    minutes, rest = divmod(milliseconds, 60_000)
    if "s" not in letters:
        return f"{minutes // 60}:{minutes % 60:02}"
    seconds = f"{rest // 1000:02}" + (f".{rest % 1000:03}" if rest % 1000 else "")
    return f"{minutes // 60}:{minutes % 60:02}:{seconds}" if "h" in letters else f"{minutes}:{seconds}"


def _date_letters(code: str) -> str:
    """What a number format shows of a date or time, in letters; nothing of a plain number."""
    shown = _LITERAL.sub("", code.partition(";")[0]).lower()
    if "y" in shown or "d" in shown:
        return "d"
    return "".join(letter for letter in "hms" if letter in shown) if "h" in shown or "s" in shown else ""


def _integer(text: str | None, default: int = 0) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else default


def _column_number(reference: str) -> int:
    """The column of a cell such as `AB12`, from 1; 0 where it is not said."""
    number = 0
    for letter in re.match("[A-Z]{0,4}", reference)[0]:  # type: ignore[index]
        number = number * 26 + ord(letter) - ord("A") + 1
    if number > _MAX_COLUMNS:
        raise InputError(f"has a cell {reference}, beyond the last column")
    return number
