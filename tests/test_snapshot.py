"""What commands write for one simulated world is, to the byte, what they wrote before: see `benchmarks/snapshot.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.snapshot import TESTED_WORLD, Snapshot, hashes, world
from msg2.cli.app import main

EXPECTED = json.loads((Path(__file__).parent / "snapshot.json").read_text())


def test_nothing_has_changed_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class InThisProcess(Snapshot):
        def run(self, name: str, *arguments: str | Path) -> None:
            monkeypatch.setattr(sys, "argv", ["msg2", *map(str, arguments)])
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            captured = capfd.readouterr()
            self.keep(name, int(ended.value.code or 0), captured.out, captured.err)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    world(InThisProcess(tmp_path), *TESTED_WORLD)
    found = hashes(tmp_path)
    different = {name for name in EXPECTED.keys() | found.keys() if EXPECTED.get(name) != found.get(name)}
    assert different == set()
