"""Files that mean harm, for the app: bombs, archives that lead out of their folder, numbers and nesting without end.

    python -m benchmarks.hostile_files [--only NAME]

reads each of `BOMBS` in a process of its own, by the command that people would give, and prints the seconds of
computing and the megabytes that it took, and what it said; exit 1 where one takes over 5 s or 512 MB, or is no refusal
in one line (with a hint).
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghi", "bcdefghij", strict=True))
    + "]>"
)
_HEADS = {"external": '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "bomb": _BOMB}


def archive(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP archive of these entries."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as made:
        for name, content in entries:
            made.writestr(name, content)
    return packed.getvalue()


def _link(name: str, target: bytes) -> tuple[zipfile.ZipInfo, bytes]:
    """An entry that is a symbolic link."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o120777 << 16
    return entry, target


def _lying(content: bytes) -> bytes:
    """An archive whose directory says that its file is one byte long."""
    packed = bytearray(archive(("a.csv", content)))
    for at in (match.start() for match in re.finditer(rb"PK\x01\x02", bytes(packed))):
        packed[at + 24 : at + 28] = (1).to_bytes(4, "little")
    return bytes(packed)


def _broken_lzma() -> bytes:
    """An archive whose packed bytes are not what LZMA writes."""
    packed = bytearray(archive(("a.csv", b"video,step\n" + b"v,a\n" * 1000), method=zipfile.ZIP_LZMA))
    packed[60] ^= 0xFF
    return bytes(packed)


HOSTILE: dict[str, tuple[str, bytes]] = {
    **{
        f"{name} in {kind}": (f"x.{kind}", f"{head}<{root}>&a;</{root}>".encode())
        for kind, root in (("xes", "log"), ("eaf", "ANNOTATION_DOCUMENT"), ("xml", "annotations"))
        for name, head in _HEADS.items()
    },
    "zip bomb": ("x.zip", archive(("a.csv", bytes(30_000_000)))),
    "zip that lies about its size": ("x.zip", _lying(b"video,step\n" + b"v,a\n" * 10_000)),
    "zip that leads out": ("x.zip", archive(("../../../escaped.csv", b"video,step\nv,a\n"))),
    "zip with an absolute path": ("x.zip", archive(("/tmp/escaped.csv", b"video,step\nv,a\n"))),
    "zip that leads out of Windows": ("x.zip", archive(("..\\escaped.csv", b"video,step\nv,a\n"))),
    "zip with a link": ("x.zip", archive(_link("steps.csv", b"/etc/passwd"))),
    "zip with a name twice": ("x.zip", archive(("a.csv", b"video,step\nv,a\n"), ("A/../a.csv", b""))),
    "zip cut off": ("x.zip", archive(("a.csv", b"video,step\nv,a\n"))[:-30]),
    "zip with broken LZMA": ("x.zip", _broken_lzma()),
    "empty zip": ("x.zip", archive()),
    "zip of zips": ("x.zip", archive(("a.zip", archive(("a.csv", b"video,step\nv,a\n"))))),
    "gzip bomb": ("x.csv.gz", gzip.compress(bytes(50_000_000))),
    "gzip bomb of JSON": ("x.json.gz", gzip.compress(b'{"a": "' + b"a" * 300_000_000, 1)),
    "gzip cut off": ("x.csv.gz", gzip.compress(b"video,step\nv,a\n" * 1000)[:50]),
    "giant number": ("x.csv", b"video,step,start,end\nv,a,0,1e999\n"),
    "number of many digits": ("x.jsonl", b'{"video": "v", "step": "a", "start": 0, "end": ' + b"9" * 10_000 + b"}\n"),
    "not a number": ("x.csv", b"video,step,start,end\nv,a,nan,1\n"),
    "cell of 10 MB": ("x.csv", b"video,step\nv," + b"a" * 10_000_000 + b"\n"),
    "line without an end": ("x.csv", b"video,step\nv," + b'"' + b"a\n" * 6_000_000),
    "JSON nested deeply": ("x.json", b"[" * 100_000),
    "JSON with half a character": ("x.jsonl", b'{"video": "v", "step": "\\ud800"}\n'),
    "Parquet that is none": ("x.parquet", b"PAR1" + bytes(1000) + b"PAR1"),
    "pickle": ("x.pkl", b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."),
    "NUL bytes": ("x.csv", bytes(1000)),
    "nothing": ("x.csv", b""),
    "no text": ("x.csv", bytes(range(256)) * 100),
}
"""What it is -> the name of the file, and its content."""


# -- bombs: small files that would take much memory or time -----------------------------------------------------------

MOST_SECONDS, MOST_MEGABYTES = 5.0, 512
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _workbook(rows: str, texts: str = "", styles: str = "") -> bytes:
    """A workbook of one sheet."""
    parts = {
        "[Content_Types].xml": "<Types/>", "_rels/.rels": "<x/>",
        "xl/workbook.xml": f'<workbook xmlns:r="{_OFFICE}"><sheets><sheet name="a" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships><Relationship Id="r1" Type="{_OFFICE}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/sharedStrings.xml": f"<sst>{texts}</sst>", "xl/styles.xml": f"<styleSheet>{styles}</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>",
    }  # fmt: skip
    return archive(*((name, content.encode()) for name, content in parts.items()))


def _texts(count: int, columns: str = "AB") -> str:
    """Rows that all show the first shared text."""
    cells = ("".join(f'<c r="{column}{row}" t="s"><v>0</v></c>' for column in columns) for row in range(1, count + 1))
    return "".join(f'<row r="{row}">{cell}</row>' for row, cell in enumerate(cells, start=1))


def small_workbook() -> bytes:
    """A workbook that is a table of steps, with texts, numbers, times and formats."""
    names = "".join(f"<si><t>{name}</t></si>" for name in ("video", "step", "start", "end", "v1", "fry", "flip"))
    lines = [("s0", "s1", "s2", "s3"), ("s4", "s5", "0.5", "2"), ("s4", "s6", "3", "4")]
    rows = ""
    for number, line in enumerate(lines, start=1):
        cells = (
            f'<c r="{column}{number}" t="s"><v>{value[1:]}</v></c>' if value[0] == "s"
            else f'<c r="{column}{number}" s="1"><v>{value}</v></c>'
            for column, value in zip("ABCD", line, strict=True)
        )  # fmt: skip
        rows += f'<row r="{number}">{"".join(cells)}</row>'
    formats = '<numFmts><numFmt numFmtId="170" formatCode="[Red]0.0"/></numFmts>'
    styles = f'{formats}<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs>'
    return _workbook(rows, names, styles)


def _far_cells(rows: int) -> bytes:
    return _workbook("".join(f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(1, rows + 1)))


def _attribute_defaults() -> bytes:
    """Elements without attributes, of which each gets a long one."""
    default = f'<!DOCTYPE log [<!ATTLIST event a CDATA "{"x" * 60_000}">]>'
    return f'<?xml version="1.0"?>{default}<log><trace>{"<event/>" * 400_000}</trace></log>'.encode()


def _large_dictionary(rows: int, size: int, fixed: bool = False) -> bytes:
    """A Parquet file in which every row has the same long text."""
    import pyarrow
    from pyarrow import parquet

    value = pyarrow.array([b"a" * size], pyarrow.binary(size)) if fixed else pyarrow.array(["a" * size])
    long = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, "int32"), value)
    table = pyarrow.table({"video": long, "step": long})
    packed = io.BytesIO()
    parquet.write_table(table, packed, compression="zstd", store_schema=False, write_statistics=False)
    return packed.getvalue()


def _long_names(count: int) -> bytes:
    return b"video,step\n" + b"".join(f"v{n // 5},step {n:07}\n".encode() for n in range(count))


def _slow_film(frames: int) -> bytes:
    """A film of few pictures whose clock has one tick per second and an hour between two pictures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.mp4")
        import av
        import numpy as np

        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=25)
            stream.width = stream.height = 32
            for _ in range(frames):
                picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
                container.mux(stream.encode(picture))
            container.mux(stream.encode())
        content = bytearray(path.read_bytes())
    length = 3600 * frames  # seconds; the clocks of the film and of its pictures tick once in one
    values = {b"stts": {16: 3600}, b"mdhd": {16: 1, 20: length}, b"mvhd": {16: 1, 20: length}, b"tkhd": {24: length},
              b"elst": {12: length}}  # fmt: skip
    for box, numbers in values.items():
        at = content.index(box)
        for offset, number in numbers.items():
            content[at + offset : at + offset + 4] = struct.pack(">I", number)
    return bytes(content)


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "Excel, cells in the last column": ("x.xlsx", lambda: _far_cells(1200)),
    "Excel, a long text in many rows": ("x.xlsx", lambda: _workbook(_texts(500), f"<si><t>{'a' * 9_000_000}</t></si>")),
    "Excel, a longish text in many cells": (
        "x.xlsx", lambda: _workbook(_texts(20_000), f"<si><t>{'a' * 32_000}</t></si>"),
    ),
    "Excel, a text by an entity": (
        "x.xlsx",
        lambda: _workbook(_texts(500).replace("<v>0", "<v>&#48;"), f"<si><t>{'a' * 9_000_000}</t></si>"),
    ),
    "Excel, a format of brackets": (
        "x.xlsx",
        lambda: _workbook(_texts(5), "<si><t>a</t></si>", f'<numFmts><numFmt numFmtId="200" formatCode="{"[" * 900_000}'
                          '"/></numFmts><cellXfs><xf numFmtId="200"/></cellXfs>'),
    ),
    "Excel, styles without an end": ("x.xlsx", lambda: _workbook(_texts(5), "<si><t>a</t></si>", "a" * 2_000_000)),
    "Excel, attributes without an end": ("x.xlsx", lambda: _workbook(f"<row><c {'a' * 2_000_000}/></row>")),
    "Excel, many runs of text": (
        "x.xlsx", lambda: _workbook(_texts(5), f"<si>{'<r><t>abcdefghij</t></r>' * 1_500_000}</si>"),
    ),
    "XML, defaults of attributes": ("x.xes", _attribute_defaults),
    "Parquet, a long text in many rows": ("x.parquet", lambda: _large_dictionary(20_000, 1_000_000)),
    "Parquet, bytes of a fixed length in many rows": (
        "x.parquet", lambda: _large_dictionary(1000, 1_000_000, fixed=True),
    ),
    "Parquet, a longish text in many rows": ("x.parquet", lambda: _large_dictionary(20_000, 30_000)),
    "film with a slow clock": ("x.mp4", lambda: _slow_film(3000)),
    "a million names": ("x.csv", lambda: _long_names(1_000_000)),
    "calibration nested deeply": ("x.json", lambda: b'{"a": ' + b"[" * 200_000),
}  # fmt: skip
"""What it is -> the name of the file, and what makes its content."""
READABLE = ("Parquet, a long text in many rows", "Parquet, a longish text in many rows", "a million names")
"""Those that are nothing worse than large, and may take twice as much."""


def read_bomb(name: str, content: bytes) -> tuple[int, float, float, str]:
    """Give a file to `msg2 describe`, a film to `msg2 features`: exit status, seconds, megabytes, and what was said."""
    program = "import sys; from msg2.cli import main; sys.argv[0] = 'msg2'; main()"
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "MALLOC_ARENA_MAX": "2"}
    measure = (  # a process of its own, since the most memory of one counts that of the process that forked it
        "import json, resource, subprocess, sys\n"
        "ran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([ran.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024,"
        " ran.stderr.decode(errors='replace')]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
        command = ["features", name, "-o", "out"] if name.endswith(".mp4") else ["describe", name]
        measured = subprocess.run(
            [sys.executable, "-c", measure, sys.executable, "-c", program, *command], cwd=folder, env=environment,
            stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    status, seconds, megabytes, text = json.loads(measured.stdout)
    return status, seconds, megabytes, text


def main() -> int:
    """Read all bombs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="those with this in their name")
    given, wrong = parser.parse_args(), 0
    for what, (name, make) in BOMBS.items():
        if given.only and given.only not in what:
            continue
        content = make()
        status, seconds, megabytes, said = read_bomb(name, content)
        is_fine = status == (0 if what in READABLE else 1) and len(said.splitlines()) <= 2 and "Traceback" not in said
        share = 2 if what in READABLE else 1
        is_fine &= seconds <= share * MOST_SECONDS and megabytes <= share * MOST_MEGABYTES
        wrong += not is_fine
        print(f"{what}: {len(content):,} bytes, {seconds:.1f} s, {megabytes:.0f} MB, exit {status}", flush=True)
        print(f"  {'' if is_fine else 'WRONG '}{said.strip()[-200:]!r}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
