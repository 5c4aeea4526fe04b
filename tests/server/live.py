"""The real program, `msg2 serve`, in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def start_server(
    folder: Path, *arguments: str, port: int = 0, token: bool = False, code: str = ""
) -> tuple[subprocess.Popen[str], str]:
    """A server that keeps its work in `folder`/work, and its address; without a token, if not asked for one.

    `code` is run in place of the program.
    """
    program = Path(sys.executable).with_name("msg2")
    command: list[str | Path] = [sys.executable, "-c", code] if code else [program]
    command += ["serve", *arguments, "--folder", "work", "--port", str(port), "--no-browser"]
    command += [] if token else ["--no-token"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    said = server.stdout.readline()
    address = re.search(r"http://[^ ?]+", said)
    if not address:
        server.kill()
    assert address, said + server.communicate()[0]
    return server, address[0]


@contextmanager
def serving(
    folder: Path, *arguments: str, how_to_end: signal.Signals = signal.SIGTERM, token: bool = False, code: str = ""
) -> Iterator[str]:
    """The address of a server that keeps its work in `folder`/work; whatever it complained of fails the test."""
    server, address = start_server(folder, *arguments, token=token, code=code)
    try:
        yield address
    finally:
        server.send_signal(how_to_end)
        rest, _ = server.communicate(timeout=20)
    assert "Traceback" not in rest, rest
