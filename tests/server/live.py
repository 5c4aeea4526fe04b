"""The real program, `msg2 serve`, in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(folder: Path, *arguments: str, how_to_end: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """The address of a server that keeps its work in `folder`/work; whatever it complained of fails the test."""
    program = Path(sys.executable).with_name("msg2")
    command = [program, "serve", *arguments, "--folder", "work", "--port", "0"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    said = server.stdout.readline()
    address = re.search(r"http://[^ ?]+", said)
    try:
        assert address, said + server.stdout.read()
        yield address[0]
    finally:
        server.send_signal(how_to_end)
        rest, _ = server.communicate(timeout=20)
    assert "Traceback" not in rest, rest
