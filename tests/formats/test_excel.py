"""Excel workbooks: those that another library writes, and hand-made XML."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import preview_table, read, read_all, summarize
from msg2.formats.excel import _to_text
from msg2.formats.times import parse_clock
from msg2.task import Segment, Task, Video

TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEETS = '<sheet name="Notes" r:id="r1"/><sheet name="Labels" r:id="r2"/>'
WORKBOOK = f'<workbook xmlns:r="{TYPES}"><sheets>{SHEETS}</sheets></workbook>'
RELATIONS = (
    f'<Relationships><Relationship Id="r1" Type="{TYPES}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="r2" Type="{TYPES}/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>'
)
TEXTS = (
    "<sst><si><t>Video</t></si><si><r><t xml:space='preserve'>Step </t></r><r><t>name</t></r><rPh><t>no</t></rPh></si>"
    "<si><t>fry &amp; flip</t></si></sst>"
)
STYLES = (
    '<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[Red]hh:mm:ss.000"/></numFmts>'
    '<cellStyleXfs><xf numFmtId="22"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="20"/><xf numFmtId="170"/></cellXfs></styleSheet>'
)
LABELS = (
    '<x:worksheet><x:sheetData><x:row r="2"><x:c r="A2" t="s"><x:v>0</x:v></x:c><x:c r="B2" t="s"><x:v>1</x:v></x:c>'
    '<x:c r="C2" t="inlineStr"><x:is><x:t>Start</x:t></x:is></x:c><x:c t="str" r="D2"><x:f>"E"</x:f>'
    "<x:v>End</x:v></x:c></x:row><x:row/>"
    '<x:row r="5"><x:c r="A5"><x:v>7</x:v></x:c><x:c r="B5" t="s"><x:v>2</x:v></x:c>'
    '<x:c r="C5" s="1"><x:v>6.25E-2</x:v></x:c><x:c r="D5" s="2"><x:v>1.0474537037037037E-3</x:v></x:c></x:row>{}'
    "</x:sheetData></x:worksheet>"
)


def workbook(path: Path, labels: str = LABELS.format(""), texts: str = TEXTS) -> Path:
    parts = {
        "[Content_Types].xml": "<Types/>", "_rels/.rels": "<x/>", "xl/workbook.xml": WORKBOOK,
        "xl/_rels/workbook.xml.rels": RELATIONS, "xl/sharedStrings.xml": texts, "xl/styles.xml": STYLES,
        "xl/worksheets/sheet1.xml": "<worksheet><sheetData><row><c t='str'><v>hello</v></c></row></sheetData>"
        "</worksheet>",
        "xl/worksheets/sheet2.xml": labels,
    }  # fmt: skip
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_a_workbook(tmp_path: Path) -> None:
    # 0.0625 days in the format h:mm are shown as 1:30, which a table reads as a minute and a half.
    path = workbook(tmp_path / "toast.xlsx")
    assert read(path) == Task("toast", ["fry & flip"], [Video("7", [Segment("fry & flip", 90, 90.5)])])
    assert summarize(path).assumptions[0] == "of 2 sheets, 'Labels' is read"
    folder = tmp_path / "folder"
    folder.mkdir()
    workbook(folder / "toast.xlsx")
    assert read(folder) == read(path)
    with ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.write(path, "toast.xlsx")
    assert read(tmp_path / "x.zip") == read(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"labels": LABELS.format('<x:row><x:c r="E6"><x:v>1</x:v></x:c></x:row>')},
            "row 6: there are 4 columns, but the",
        ),
        ({"labels": LABELS.format('<x:row><x:c r="B6"><x:v>1</x:v></x:c></x:row>')}, "row 6: the video is empty"),
        ({"labels": LABELS.format('<x:row><x:c r="A6" t="s"><x:v>9</x:v></x:c></x:row>')}, "cannot be read .*string"),
        ({"labels": LABELS.format('<x:row><x:c r="ZZZZ6"><x:v>1</x:v></x:c></x:row>')}, "beyond the last column"),
        ({"labels": LABELS.format('<x:row><x:c r="XFD99999"><x:v>1</x:v></x:c></x:row>')}, "beyond the last column"),
        ({"labels": "<worksheet"}, "is an Excel workbook that cannot be read"),
        ({"texts": '<!DOCTYPE x [<!ENTITY e "x">]><sst/>'}, "is an Excel workbook that cannot be read"),
    ],
)
def test_workbooks_that_are_refused(tmp_path: Path, change: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_all(workbook(tmp_path / "t.xlsx", **change))


def test_what_another_library_writes(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [
        ["Case ID", "Activity", "Timestamp", "Note"],
        ["o1", "pack", datetime(2024, 5, 1, 9, 0, 0), None],
        ["o1", "ship", datetime(2024, 5, 2, 9, 0, 30), "é"],
        [4711, "pack", datetime(2024, 5, 3), True],
    ]
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "log.xlsx")
    task = read(tmp_path / "log.xlsx")
    assert [(video.id, [(s.step, s.start) for s in video.segments]) for video in task] == [
        ("4711", [("pack", 0)]), ("o1", [("pack", 0), ("ship", 86430)]),
    ]  # fmt: skip
    book = openpyxl.Workbook()
    for row in (["video", "step", "start", "end"], ["v", "a", time(0, 1, 30), timedelta(minutes=2, seconds=0.5)]):
        book.active.append(row)
    book.save(tmp_path / "toast.xlsx")
    assert read(tmp_path / "toast.xlsx").videos[0].segments == (Segment("a", 90, 120.5),)


@given(st.integers(0, 10**8))
def test_times_are_shown_as_they_are_read(milliseconds: int) -> None:
    cell = timedelta(milliseconds=milliseconds)
    for shown in (cell, datetime(1899, 12, 30) + cell):
        assert parse_clock(_to_text(shown, False)) == milliseconds / 1000


@pytest.mark.parametrize("header", ["video,step", "Film,Schritt"])
def test_a_title_above_the_header_is_passed_over(tmp_path: Path, header: str) -> None:
    rows = [["Kitchen, autumn"], [], header.split(","), ["v1", "whisk"], ["v1", "fry"]]
    cells = "".join(
        f"<row r='{number}'>"
        + "".join(f"<c r='{column}{number}' t='str'><v>{cell}</v></c>" for column, cell in zip("AB", row, strict=False))
        + "</row>"
        for number, row in enumerate(rows, start=1)
    )
    path = workbook(tmp_path / "steps.xlsx", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    if header == "video,step":
        summary = summarize(path)
        assert "what stands above row 3 is no part of the table" in summary.assumptions
        assert [video.sequence() for video in read(path)] == [("whisk", "fry")]
    else:  # which column is which has to be asked
        preview = preview_table(path)
        assert preview is not None
        assert preview.header == ("Film", "Schritt")
        assert preview.rows == (("v1", "whisk"), ("v1", "fry"))
