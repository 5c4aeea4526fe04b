"""The examples of docs/app.md do what the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.conftest import TOAST
from tests.server.live import serving

PAGE = Path(__file__).parents[2] / "docs/app.md"
BLOCK = re.compile(r"^```(bash|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl and jq are not installed")
def test_examples(tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert [kind for kind, _ in blocks].count("bash") == 5
    said = ""
    with serving(tmp_path) as address:
        for kind, text in blocks:
            if kind == "json":
                assert said.strip() == text.strip()
            else:
                line = text.replace("http://127.0.0.1:8765/", address)
                ran = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
                assert ran.returncode == 0, ran.stderr
                said = ran.stdout
    assert (tmp_path / "toast.svg").read_text().startswith("<svg")
