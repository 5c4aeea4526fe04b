"""XML that is made to hurt: what it takes to refuse it is bounded, and what is said about it is one line."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import archives, read_all
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_children, root_name

HEAD = b"<log><trace><event>"
EVENT = b'<event><string key="concept:name" value="a"/></event>'


def refused(path: Path, most_bytes: int = 60_000_000) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_all(path)
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()
    assert len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


@pytest.mark.parametrize("opening", [b'<string key="', b"<string ", b"<!-- ", b"<" + b"x" * 100])
def test_a_value_without_end(tmp_path: Path, opening: bytes) -> None:
    path = tmp_path / "log.xes"
    with path.open("wb") as stream:
        stream.write(HEAD + opening)
        for _ in range(40):
            stream.write(b"x" * 1_000_000)
    assert "log.xes, row 1: has a value of more than 10,000,000 characters" in refused(path)


def test_text_without_end(tmp_path: Path) -> None:
    path = tmp_path / "v.eaf"
    path.write_bytes(b"<ANNOTATION_DOCUMENT><TIER TIER_ID='t'><ANNOTATION_VALUE>" + b"x" * 30_000_000)
    assert "row 1: has a value of more than 10,000,000 characters" in refused(path, 120_000_000)


def test_elements_in_elements_without_end(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes(HEAD + b"<a>" * 5_000_000)
    assert "row 1: is nested more than 100 levels deep" in refused(path)


def test_a_billion_laughs(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(10))
    for root, name in (("log", "a.xes"), ("ANNOTATION_DOCUMENT", "a.eaf"), ("annotations", "a.xml")):
        path = tmp_path / name
        path.write_text(f'<!DOCTYPE {root} [<!ENTITY l0 "ha">{entities}]><{root}><meta></meta>&l10;</{root}>')
        with pytest.raises(InputError, match="row 1: defines the entity 'l0', which may be anything"):
            read_all(path, fps=1) if root == "annotations" else read_all(path)


def test_an_archive_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LEAST_BYTES", 1_000_000)
    path = tmp_path / "log.xes.gz"
    path.write_bytes(gzip.compress(b"<log>" + b" " * 20_000_000 + b"</log>"))
    assert "log.xes.gz: unpacks to more than 1 MB" in refused(path)
    monkeypatch.setenv("MSG2_UNPACK", "20.5")
    assert "log.xes.gz: the log has no traces" in refused(path)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as stream:
        stream.write(b"<log><trace>" + EVENT * 1000)
    path.write_bytes(packed.getvalue()[:-20])
    assert "log.xes.gz: is broken gzip" in refused(path)


def test_names_are_text(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes(
        b"<log><trace>" + EVENT.replace(b'"a"', b'"&lt;script&gt;alert(1)&lt;/script&gt;&#10;\xf0\x9f\x8d\xb3"')
    )
    path.write_bytes(path.read_bytes() + b"</trace></log>")
    assert read_all(path)[0].steps == ("<script>alert(1)</script>\n🍳",)
    long = b"x" * 5_000_000
    path.write_bytes(b"<log><trace>" + EVENT.replace(b'"a"', b'"' + long + b'"') + b"</trace></log>")
    assert len(read_all(path)[0].steps[0]) == len(long)


def test_other_xml(tmp_path: Path) -> None:
    path = tmp_path / "page.xml"
    path.write_text("<html><body/></html>")
    assert "page.xml: is XML, but in no layout that msg2 reads\n  msg2 reads: " in refused(path)
    assert root_name(Source(path)) == "html"
    path.write_text("<<<")
    assert root_name(Source(path)) is None


@pytest.mark.parametrize("encoding", ["klingon", "utf-7", "shift_jis", "idna"])
def test_an_encoding_that_nobody_knows(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><log></log>'.encode())
    said = r"log\.xes: is XML in an encoding that cannot be read .*\n  save it as UTF-8"
    with pytest.raises(InputError, match=said):
        read_all(path)
    with pytest.raises(InputError, match=said):
        parse_children(Source.at(path), lambda element: None)
