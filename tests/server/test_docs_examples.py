"""The examples of the pages about the app and live runs do what the pages say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.server.conftest import PATIENCE, TOAST, until
from tests.server.live import serving

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("app.md", "live-runs.md"))
BLOCK = re.compile(r"^```(bash|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CLIENT = re.compile(r'^```python title="follow.py"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^\$ python follow.py 5f0c…\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder in which the real program was started, and its address."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "toast.csv").write_text(TOAST)
    with serving(folder, token=True) as address:
        yield folder, address


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl and jq are not installed")
def test_examples(served: tuple[Path, str]) -> None:
    folder, address = served
    blocks = BLOCK.findall(TEXT)
    assert [kind for kind, _ in blocks].count("bash") == 7
    said = ""
    for kind, text in blocks:
        if kind == "json":
            assert said.strip() == text.strip()
        else:
            line = f"{blocks[0][1]}\n{text}".replace("http://127.0.0.1:8765/", address).replace("msg2-work", "work")
            ran = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
            said = ran.stdout
    assert (folder / "toast.svg").read_text().startswith("<svg")


def test_client(served: tuple[Path, str]) -> None:
    """The eleven lines of the client, and the session with it."""
    folder, address = served
    client, session = CLIENT.findall(TEXT)[0], SESSION.findall(TEXT)[0].splitlines()
    assert len([line for line in client.splitlines() if line]) == 11
    token = (folder / "work" / "token").read_text().strip()

    def ask(path: str, content: bytes | None = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{address}api/{path}", content, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    data = ask("data?name=toast.csv", TOAST.encode())["id"]
    graph = ask("work", json.dumps({"data": data, "options": {"absent": "skipped"}}).encode())["id"]
    until(lambda: ask(f"work/{graph}")["state"] == "done")
    (folder / "follow.py").write_text(
        client.replace("8765", str(urlsplit(address).port)).replace("msg2-work", "work"), encoding="utf-8"
    )
    typed = "".join(f"{line}\n" for line in session[1::2])
    ran = subprocess.run(
        [sys.executable, "follow.py", graph], cwd=folder, input=typed, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == session[::2]
