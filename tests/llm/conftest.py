"""A stub of an OpenAI-compatible server: it answers by a function of the request, and keeps what was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Reply = Callable[[dict[str, Any]], Any]
"""From the data of a question to the answer: JSON, a text, an HTTP status, or bytes that are no answer at all."""


class Stub:
    """The server: `url`, what it was `sent`, and how it replies."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.reply: Reply = lambda data: {}
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.sent.append(request)
                stub.keys.append(self.headers["Authorization"])
                answer = stub.reply(json.loads(request["messages"][1]["content"]))
                status = answer if isinstance(answer, int) else 200
                text = answer if isinstance(answer, str) else json.dumps(answer)
                used = {"prompt_tokens": 100, "completion_tokens": 10}
                body = json.dumps({"choices": [{"message": {"content": text}}], "usage": used}).encode()
                body = answer if isinstance(answer, bytes) else b"overloaded" if status != 200 else body
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    stub = Stub()
    thread = threading.Thread(target=stub.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stub
    stub.server.shutdown()
    thread.join()
    stub.server.server_close()
