"""`msg2 benchmark`: what is printed and written, and what is refused before the work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msg2 as package


def test_methods_are_compared_and_written(msg2, graph: Path, truth: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "table.md"
    methods = "msgi,always-before:delta=0.9"
    ran = msg2("benchmark", table, "--truth", truth, "--methods", methods, "--against", "msgi", "-o", out)
    expected = package.benchmark(table, truth, methods.split(","), against="msgi")
    assert (ran.code, ran.err) == (0, "")
    accuracy = expected.table().rows[1][1]
    assert re.search(rf"^always-before:delta=0.9 +{accuracy:.2f} ", ran.out, re.MULTILINE)
    assert ran.out.splitlines()[-1] == str(out)
    assert out.read_text() == "\n".join(each.to_markdown() for each in expected.tables())
    cells = json.loads(out.with_suffix(".cells.json").read_text())
    assert [cell["cell"]["method"] for cell in cells] == sorted(methods.split(","))
    ours = "likelihood:levels=0.02,0.2:rounds=2"
    ran = msg2("benchmark", table, "--truth", truth, "--methods", f"{ours}, bigram", "--seeds", 1)
    assert re.findall(r"^(?:likelihood|bigram)\S*", ran.out, re.MULTILINE) == [ours, "bigram"]
    again = msg2("benchmark", table, "--truth", truth, "--methods", methods, "-o", out, "--json").json
    assert again["scores"] == expected.to_json()["scores"]


def test_what_cannot_be_compared_is_refused_before_the_work(msg2, table: Path, truth: Path, tmp_path: Path) -> None:
    for arguments, words in (
        (["--methods", "oracle"], "there is no method 'oracle'"),
        (["--methods", "msg2:delta=2"], "delta"),
        (["-o", tmp_path / "table.docx"], "is not written in this format"),
        (["--seeds", 0], "greater than or equal to 1"),
    ):
        ran = msg2("benchmark", table, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert words in " ".join(re.sub("[│╭╮╰╯─]", " ", ran.err).split())
    assert "there is no row 'msg2'" in msg2("benchmark", table, "--methods", "msgi", "--against", "msg2").complaint
    assert "is the data" in msg2("benchmark", table, "-o", table).complaint
    other = tmp_path / "other"
    other.mkdir()
    assert "holds no graph" in msg2("benchmark", table, "--truth", other).complaint
