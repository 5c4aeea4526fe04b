"""Excel workbooks (`.xlsx`): the cells of their sheets as text, as Excel shows them.

python-calamine reads the cells: nothing is fetched or computed, and of a formula, the value that Excel has saved
counts. It is given a copy of the parts that are needed, unpacked within the limits of `source`. Excel takes `1:30` for
an hour and a half and shows it as `1:30`; which cells show no seconds is therefore looked up in the styles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import TypeAlias
from zipfile import ZipFile

from msg2.errors import InputError
from msg2.formats.source import Source

SheetRows: TypeAlias = list[tuple[int, list[str]]]  # the rows of a sheet that are not blank: number, from 1, and cells

_FIRST_DAY = datetime(1899, 12, 30)
_HOURS_AND_MINUTES = {"18", "20"}  # number formats of Excel's own that show hours and minutes only
_LITERAL = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\])[^\]]*\]|[_*].|&quot;.*?&quot;', re.IGNORECASE)
"""What a number format shows as it is, and colours and conditions; `[h]` is a duration in hours."""
_ROOT = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
    b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    b'Target="xl/workbook.xml"/></Relationships>'
)
_MAX_COLUMNS = 16_384  # of a sheet, by the format
_MAX_CELLS = 20_000_000  # cells of a sheet, empty ones between others included: so many take memory


def read_sheets(source: Source) -> Iterator[tuple[str, SheetRows]]:
    """Read the sheets of a workbook, in its order."""
    import python_calamine

    if source.workbook is None:
        raise InputError("is no Excel workbook", where=source.path)
    parts = dict(_parts(source.workbook, "xl"))
    copy = BytesIO()
    with ZipFile(copy, "w") as archive:
        for path, content in {"_rels/.rels": _ROOT, **parts}.items():
            archive.writestr(path, content)
    copy.seek(0)
    paths = _sheet_paths(parts)
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(copy)
        for name in workbook.sheet_names:
            content = parts.get(paths.get(name, ""), b"")
            if not content:  # a sheet may also be a chart
                continue
            _check_size(content, source)
            short = set(_cells_without_seconds(content, parts.get("xl/styles.xml", b"")))
            rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
            texts = (
                (line, [_to_text(cell, (line, column) in short) for column, cell in enumerate(row, start=1)])
                for line, row in enumerate(rows, start=1)
            )
            yield name, [(line, cells) for line, cells in texts if any(cells)]
    except BaseException as error:
        # A panic of calamine is no Exception; what is wrong with a file must not end the program.
        if isinstance(error, InputError) or not isinstance(error, Exception | _panic()):
            raise
        what = f"is an Excel workbook that cannot be read ({str(error).splitlines()[0] if str(error) else 'broken'})"
        raise InputError(
            what, where=source.path, hint="open it in Excel and save it again, or save it as CSV"
        ) from None


def _panic() -> type[BaseException]:
    """The class of a panic of calamine, which has no other name in Python."""
    return next((kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException"), Exception)


def _parts(folder: Source, path: str) -> Iterator[tuple[str, bytes]]:
    """The XML parts in a folder of the workbook, with their paths."""
    for file in folder.files:
        if file.path.suffix in (".xml", ".rels"):
            yield f"{path}/{file.path.name}", file.read_bytes()
    for inner in folder.folders:
        yield from _parts(inner, f"{path}/{inner.path.name}")


def _attributes(element: str, content: bytes) -> Iterator[dict[str, str]]:
    """The attributes of all elements of a name."""
    for found in re.finditer(rf"<(?:\w+:)?{element}\b([^>]*)".encode(), content):
        yield dict(re.findall(r'([\w:]+)\s*=\s*["\']([^"\']*)["\']', found[1].decode("utf-8", "replace")))


def _sheet_paths(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Name of a sheet -> the path of its part."""
    from html import unescape

    relations = _attributes("Relationship", parts.get("xl/_rels/workbook.xml.rels", b""))
    targets = {one.get("Id"): one.get("Target", "") for one in relations}
    ids = {unescape(one.get("name", "")): one.get("r:id") for one in _attributes("sheet", parts["xl/workbook.xml"])}
    return {name: f"xl/{targets.get(id, '').removeprefix('/xl/')}" for name, id in ids.items()}


def _cells_without_seconds(content: bytes, styles: bytes) -> Iterator[tuple[int, int]]:
    """Row and column, from 1, of the cells that show hours and minutes only."""
    formats = set(_HOURS_AND_MINUTES)
    for one in _attributes("numFmt", styles):
        shown = _LITERAL.sub("", one.get("formatCode", "").partition(";")[0]).lower()
        if "h" in shown and not {"s", "d", "y"} & set(shown):
            formats.add(one.get("numFmtId", ""))
    used = re.sub(rb"(?s).*<(?:\w+:)?cellXfs\b", b"", styles)
    short = {str(n) for n, one in enumerate(_attributes("xf", used)) if one.get("numFmtId") in formats}
    if short:
        yield from (_position(one.get("r", "")) for one in _attributes("c", content) if one.get("s") in short)


def _check_size(content: bytes, source: Source) -> None:
    """Refuse a sheet whose last cell lies so far out that the empty ones before it would fill the memory."""
    corner = [(0, 0), *map(_position, re.findall(r'\br="([A-Z]{0,9}\d{1,9})"', content.decode("utf-8", "replace")))]
    rows, columns = (max(places) for places in zip(*corner, strict=True))
    if columns > _MAX_COLUMNS or rows * columns > _MAX_CELLS:
        raise InputError("has a cell beyond the last column or row that msg2 reads", where=source.path)


def _position(reference: str) -> tuple[int, int]:
    """Row and column of a cell such as `AB12`, from 1."""
    letters = reference.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
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
    milliseconds = round(cell / timedelta(milliseconds=1))
    minutes, rest = divmod(milliseconds, 60_000)
    clock = f"{minutes // 60}:{minutes % 60:02}"
    seconds = f":{rest // 1000:02}" + (f".{rest % 1000:03}" if rest % 1000 else "")
    return clock if is_short else clock + seconds
