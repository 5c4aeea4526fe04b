"""`msg2 write`: a graph as a written procedure."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize("suffix", [".html", ".md", ".docx", ".pdf"])
def test_every_format(msg2, graph: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"toast{suffix}"
    ran = msg2("write", graph, "-o", out)
    assert (ran.code, ran.out, ran.err) == (0, f"{out}\n", "")
    assert out.stat().st_size > 100


def test_what_cannot_be_written(msg2, graph: Path, tmp_path: Path) -> None:
    assert "use one of .html .md .docx .pdf" in msg2("write", graph, "-o", tmp_path / "toast.txt").complaint
    assert "--data" in msg2("write", graph, "-o", tmp_path / "toast.md", "--media", tmp_path).err
    assert not (tmp_path / "toast.md").exists()
