"""`msg2 sweep`: what δ does, as a table and a plot."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import msg2 as package
from msg2.inference import sweep as sweep_of


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("out", ["sweep.csv", "folder", "dotted.folder/"])
def test_a_sweep_is_a_table_and_a_plot(msg2, many: Path, tmp_path: Path, out: str) -> None:
    if out.endswith("/"):
        (tmp_path / out).mkdir()
    ran = msg2("sweep", many, "-o", tmp_path / out, "--task", "Perform CPR")
    assert ran.code == 0
    table = tmp_path / out if out.endswith(".csv") else tmp_path / out / "sweep.csv"
    rows = rows_of(table)
    points = sweep_of(package.read(many, task="Perform CPR"), "msg2")
    assert [float(row["delta"]) for row in rows] == [point.delta for point in points]
    assert [int(row["edges"]) for row in rows] == [point.edges for point in points]
    assert [float(row["fit"]) for row in rows] == [point.fit for point in points]
    assert [row["chosen"] for row in rows].count("True") == 1
    assert ET.fromstring(table.with_suffix(".svg").read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"
    assert "yes" in ran.out


def test_a_sweep_needs_something_to_sweep_over(msg2, table: Path, tmp_path: Path) -> None:
    for method in ("msgi", "likelihood"):
        ran = msg2("sweep", table, "-o", tmp_path / "s.csv", "--method", method)
        assert (ran.code, "no option 'delta'" in ran.err) == (2, True)
        assert "msg2 and always-before have it" in ran.err
    one = tmp_path / "one.csv"
    one.write_text("video,step\nv,a\nv,b\n")
    assert "none can be held out" in msg2("sweep", one, "-o", tmp_path / "s.csv").complaint
    assert not (tmp_path / "s.csv").exists()
