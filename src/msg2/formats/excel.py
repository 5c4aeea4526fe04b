"""Excel workbooks (`.xlsx`): the cells of their sheets as text, as Excel shows them.

python-calamine reads the cells: nothing is fetched or computed, and of a formula, the value that Excel has saved
counts. It is given a copy of the parts that are needed, unpacked within the limits of `source`. Excel takes `1:30` for
an hour and a half and shows it as `1:30`; which cells show no seconds is therefore looked up in the styles.
"""

import functools
import html
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from itertools import islice
from zipfile import ZipFile

import numpy as np

from msg2.errors import InputError
from msg2.formats.archives import ZipEntry

_FIRST_DAY = datetime(1899, 12, 30)
_HOURS_AND_MINUTES = {"18", "20"}  # number formats of Excel's own that show hours and minutes only
_LITERAL = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\])[^\]]*\]|[_*].|&quot;.*?&quot;', re.IGNORECASE)
"""What a number format shows as it is, and colours and conditions; `[h]` is a duration in hours."""
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_RELATIONS = f'<Relationships><Relationship Type="{_OFFICE}" Target="xl/workbook.xml"/></Relationships>'
_MAX_COLUMNS = 16_384  # of a sheet, by the format
_MAX_CELLS = 20_000_000  # cells of a sheet, empty ones between others included: so many take memory
_MAX_FORMATS, _MAX_FORMAT = 10_000, 300  # of their own that a workbook has, and characters of one; Excel takes 255


def read_sheets(archive: ZipEntry) -> Iterator[tuple[str, list[tuple[int, list[str]]]]]:
    """Read the sheets of a workbook, in its order: the rows that are not blank, each with its number, from 1."""
    import python_calamine

    parts = archive.read_files(r"xl/.*\.(xml|rels)")
    copy = BytesIO()
    with ZipFile(copy, "w") as packed:
        packed.writestr("_rels/.rels", _RELATIONS)
        for path, content in parts.items():
            packed.writestr(path, content)
    copy.seek(0)
    relations = _attributes("Relationship", parts.get("xl/_rels/workbook.xml.rels", b""))
    targets = {relation.get("Id"): relation.get("Target", "").removeprefix("/xl/") for relation in relations}
    sheets = _attributes("sheet", parts["xl/workbook.xml"])
    paths = {html.unescape(sheet.get("name", "")): f"xl/{targets.get(sheet.get('r:id'), '')}" for sheet in sheets}
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(copy)
        for name in workbook.sheet_names:
            if not (content := parts.get(paths.get(name, ""), b"")):  # a sheet may also be a chart
                continue
            _check_size(content, parts.get("xl/sharedStrings.xml", b""), archive)
            short = set(_cells_without_seconds(content, parts.get("xl/styles.xml", b"")))
            rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
            texts = (
                (line, [_to_text(cell, (line, column) in short) for column, cell in enumerate(row, start=1)])
                for line, row in enumerate(rows, start=1)
            )
            yield name, [(line, cells) for line, cells in texts if any(cells)]
    except BaseException as error:
        # A panic of calamine is no Exception; what is wrong with a file must not end the program.
        is_panic = type(error).__name__ == "PanicException"
        if isinstance(error, InputError) or not (is_panic or isinstance(error, Exception)):
            raise
        what = f"is an Excel workbook that cannot be read ({(str(error) or 'broken').splitlines()[0]})"
        hint = "open it in Excel and save it again, or save it as CSV"
        raise InputError(what, where=archive.shown, hint=hint) from None


def _attributes(element: str, content: bytes) -> Iterator[dict[str, str]]:
    """The attributes of all elements of a name."""
    for match in re.finditer(rf"<(?:\w+:)?{element}\b([^>]{{0,5000}})".encode(), content):
        yield dict(re.findall(r'([\w:]+)\s*=\s*["\']([^"\']*)["\']', match[1].decode("utf-8", "replace")))


def _cells_without_seconds(content: bytes, styles: bytes) -> Iterator[tuple[int, int]]:
    """Row and column, from 1, of the cells that show hours and minutes only."""
    formats = set(_HOURS_AND_MINUTES)
    for format in islice(_attributes("numFmt", styles), _MAX_FORMATS):
        shown = _LITERAL.sub("", format.get("formatCode", "")[:_MAX_FORMAT].partition(";")[0]).lower()
        if "h" in shown and not {"s", "d", "y"} & set(shown):
            formats.add(format.get("numFmtId", ""))
    used = re.split(rb"<(?:\w+:)?cellXfs\b", styles)[-1]
    if short := {str(number) for number, xf in enumerate(_attributes("xf", used)) if xf.get("numFmtId") in formats}:
        yield from (_position(cell.get("r", "")) for cell in _attributes("c", content) if cell.get("s") in short)


def _check_size(content: bytes, shared: bytes, archive: ZipEntry) -> None:
    """Refuse a sheet that would fill the memory: by empty cells before a last one far out, or texts that come often."""
    cells = [_position(match.decode()) for match in re.findall(rb'\br="([A-Z]{0,9}\d{1,9})"', content)]
    rows, columns = max((row for row, _ in cells), default=0), max((column for _, column in cells), default=0)
    if columns > _MAX_COLUMNS or rows * columns > _MAX_CELLS:
        raise InputError("has a cell beyond the last column or row that msg2 reads", where=archive.shown)
    starts = [match.start() for match in re.finditer(rb"<(?:[^<>\s/:]+:)?si\b", shared)]
    lengths = np.diff(np.array([*starts, len(shared)]))  # of the shared texts, tags included
    values = re.findall(rb"<(?:[^<>\s/:]+:)?v\b[^<>]*>\s*(\d{1,9})", content)
    shown = np.array([int(value) for value in values if int(value) < len(lengths)], np.int64)
    hidden = content.count(b"&#") + content.count(b"<![CDATA[") + content.count(b"<!--")  # numbers in another guise
    texts = int(lengths[shown].sum()) + hidden * int(lengths.max(initial=0))
    archive.unpacking_budget.require(unpacked=texts, rows=rows * columns)


def _position(reference: str) -> tuple[int, int]:
    """Row and column of a cell such as `AB12`, from 1."""
    letters = reference.rstrip("0123456789")
    column = functools.reduce(lambda number, letter: number * 26 + ord(letter) - ord("A") + 1, letters, 0)
    return int(reference.removeprefix(letters) or 0), column


def _to_text(cell: object, is_short: bool) -> str:
    """A cell as Excel shows it; `is_short`: without seconds."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime) and cell.year <= 1900:
        cell = cell - _FIRST_DAY
    if isinstance(cell, date):
        return (cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)).isoformat(" ")
    if isinstance(cell, time):
        cell = datetime.combine(_FIRST_DAY, cell) - _FIRST_DAY
    if not isinstance(cell, timedelta):
        return str(cell)
    minutes, rest = divmod(round(cell / timedelta(milliseconds=1)), 60_000)
    seconds = f":{rest // 1000:02}" + (f".{rest % 1000:03}" if rest % 1000 else "")
    return f"{minutes // 60}:{minutes % 60:02}{'' if is_short else seconds}"
