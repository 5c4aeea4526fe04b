"""The examples of docs/app.md do what the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.server.conftest import TOAST
from tests.server.live import serving

PAGE = Path(__file__).parents[2] / "docs/app.md"
BLOCK = re.compile(r"^```(bash|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CLIENT = re.compile(r'^```python title="follow.py"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^\$ python follow.py 5f0c…\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl and jq are not installed")
def test_examples(tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert [kind for kind, _ in blocks].count("bash") == 7
    said = ""
    with serving(tmp_path, token=True) as address:
        for kind, text in blocks:
            if kind == "json":
                assert said.strip() == text.strip()
            else:
                line = f"{blocks[0][1]}\n{text}".replace("http://127.0.0.1:8765/", address).replace("msg2-work", "work")
                ran = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
                assert ran.returncode == 0, ran.stderr
                said = ran.stdout
    assert (tmp_path / "toast.svg").read_text().startswith("<svg")


def ask_with(token: str, address: str, path: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{address}api/{path}", content, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_client(tmp_path: Path) -> None:
    """The eleven lines of the client, and the session with it."""
    text = PAGE.read_text(encoding="utf-8")
    client, session = CLIENT.findall(text)[0], SESSION.findall(text)[0].splitlines()
    assert len([line for line in client.splitlines() if line]) == 11
    (tmp_path / "toast.csv").write_text(TOAST)
    with serving(tmp_path, "toast.csv", token=True) as address:
        token = (tmp_path / "work" / "token").read_text().strip()
        ask = partial(ask_with, token)
        graph = ask(address, "work", {"data": ask(address, "data")["data"][0]["id"], "options": {"absent": "skipped"}})
        while ask(address, f"work/{graph['id']}")["state"] != "done":
            pass
        (tmp_path / "follow.py").write_text(
            client.replace("8765", str(urlsplit(address).port)).replace("msg2-work", "work"), encoding="utf-8"
        )
        typed = "".join(f"{line}\n" for line in session[1::2])
        ran = subprocess.run(
            [sys.executable, "follow.py", graph["id"]],
            cwd=tmp_path, input=typed, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == session[::2]
