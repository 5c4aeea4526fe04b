"""`msg2 demo`: the whole system on a simulated task, with and without state prediction."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from msg2 import load, pipeline, states
from msg2.errors import MissingExtraError
from msg2.inference import METHODS
from msg2.pipeline import RunOptions


def test_the_demonstration(msg2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(pipeline, "RunOptions", partial(RunOptions, epochs=2))
    ran = msg2("demo", "-o", tmp_path / "demo")
    assert ran.code == 0
    page = Path(ran.out.splitlines()[-1].split()[-1])
    assert page == tmp_path / "demo" / "run" / "page.html"
    assert len(re.findall(r'<svg(?! class="sample)', page.read_text(encoding="utf-8"))) == 2  # but for the legend
    assert "Learnt from the labels alone (likelihood, the default method):\n" in ran.out
    assert re.search(r"\n  boil water in kettle  needs  'fill kettle' \(\d+ of \d+ videos", ran.out)
    assert re.search(r"\n  wet the grounds  comes after  .+, if done", ran.out)
    assert re.search(r"\n  may be left out:  .*boil water in kettle", ran.out)
    assert load(tmp_path / "demo" / "graph.json").method["name"] == "likelihood"
    for line in (*(f"{name} " for name in METHODS), "State prediction added ", "Make Coffee  after "):
        assert f"\n{line}" in ran.out


def test_the_demonstration_without_torch(msg2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("state prediction", "video")

    monkeypatch.setattr(states, "require_torch", missing)
    ran = msg2("demo", "-o", tmp_path / "demo")
    assert ran.code == 0
    page = Path(ran.out.splitlines()[-1].split()[-1])
    assert page == (tmp_path / "demo" / "graph.html").resolve()
    assert "<svg" in page.read_text(encoding="utf-8")
    assert "pip install 'msg2[video]'" in ran.err
    names = ["compared.svg", "graph.html", "graph.json", "steps.csv", "truth", "truth.json"]
    assert sorted(path.name for path in page.parent.iterdir()) == names
