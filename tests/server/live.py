"""The app at an address: the real program, `msg2 serve`, in a process of its own; or a server in this process."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import wsproto
from wsproto import events as ws

from msg2.server.settings import ServerSettings
from msg2.server.web_app import AppServer, listening_socket
from msg2.server.workspace import Workspace
from tests.server.conftest import PATIENCE


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
        rest, _ = server.communicate(timeout=600)
    assert "Traceback" not in rest, rest


@contextmanager
def running_app(folder: Path, *paths: str, **options: Any) -> Iterator[tuple[str, AppServer]]:
    """The address of an app in this process, and its server; it keeps `paths` in `folder`, and its work there."""
    settings = ServerSettings(folder=folder / "work", port=0, **options)
    with Workspace(settings) as workspace, listening_socket(settings) as listening:
        for path in paths:
            workspace.add_path(folder / path)
        server = AppServer(workspace)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/", server  # connections wait until it has started
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def app_address(folder: Path, *paths: str, **options: Any) -> Iterator[str]:
    """The address of `running_app`."""
    with running_app(folder, *paths, **options) as (address, _):
        yield address


class Socket(AbstractContextManager["Socket"]):
    """A WebSocket to a real server; where that refuses it, `status` says how."""

    def __init__(self, address: str, target: str) -> None:
        host, _, port = address.rpartition(":")
        self.connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.protocol = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self.connection.sendall(self.protocol.send(ws.Request(address, target)))
        self.end: tuple[int, str | None] | None = None
        first = self._next_event()
        self.status = 101 if isinstance(first, ws.AcceptConnection) else getattr(first, "status_code", None)

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, value: object) -> None:
        self.connection.sendall(self.protocol.send(ws.TextMessage(json.dumps(value))))

    def receive(self) -> Any:
        """The next message; None at the end, and then `end` says why."""
        text = ""
        while not isinstance(event := self._next_event(), ws.CloseConnection):
            if isinstance(event, ws.Ping):
                self.connection.sendall(self.protocol.send(event.response()))
            elif isinstance(event, ws.TextMessage):
                text += event.data
                if event.message_finished:
                    return json.loads(text)
        self.end = event.code, event.reason
        return None

    def _next_event(self) -> ws.Event:
        while True:
            for event in self.protocol.events():
                return event
            self.protocol.receive_data(self.connection.recv(1 << 16) or None)
