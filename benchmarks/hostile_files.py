"""Files that mean harm, for the app: bombs, archives that lead out of their folder, numbers and nesting without end."""

from __future__ import annotations

import gzip
import io
import re
import zipfile

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
