"""Runs through a WebSocket: the answers of the library, frames that cost little, and the guards of the rest."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from msg2.assist import Assistant
from msg2.assist.events import answer_event
from msg2.formats import read
from msg2.server import web_app
from tests.server.conftest import HERE, TOAST, Open, refused, uploaded
from tests.server.live import Socket, running_app
from tests.server.test_runs import GRAPH, asked, drawn, library, opened, told

TOKEN = "a0b1c2d3e4f5a6b7c8d9"
ALLOWED = "https://kitchen.example"


def connected(client: TestClient, run: str, query: str = "", **headers: str) -> WebSocketTestSession:
    return client.websocket_connect(f"ws://127.0.0.1:8765/api/runs/{run}/socket{query}", headers=headers)


def denied(client: TestClient, run: str, status: int, query: str = "", **headers: str) -> str:
    with pytest.raises(WebSocketDenialResponse) as caught, connected(client, run, query, **headers):
        pass
    return refused(caught.value, status)


# -- events and answers -----------------------------------------------------------------------------------------


def test_events_are_answered_as_over_http_and_others_are_heard(client: TestClient) -> None:
    run, twin = (opened(client, drawn(client))["id"] for _ in range(2))
    with connected(client, run) as socket, connected(client, run) as other:
        assert socket.receive_json() == other.receive_json() == client.get(f"/api/runs/{run}").json()["answer"]
        for event in ({"did": "whisk", "id": "a"}, {"did": "fry"}, {"undo": True}):
            socket.send_json(event)
            answer = socket.receive_json()
            assert answer == other.receive_json() == told(client, twin, event)
        for question in ({"plan": "fry"}, {"ask": True}, {"did": "whisk", "id": "a"}):
            socket.send_json(question)  # nothing changes: only who asks is answered
            assert socket.receive_json()["version"] == answer["version"]
        by_hand = told(client, run, {"accept": "dip"})
        assert socket.receive_json() == other.receive_json() == by_hand


def test_what_is_refused_is_said_and_the_socket_stays_open(client: TestClient) -> None:
    run = opened(client, drawn(client))["id"]
    bad = ["", "no json", "[]", "[" * 9999, '"did"', '{"did": "\\ud800"}', '{"did": "dip", "at": NaN}',
           '{"did": "wisk"}', '{"plan": "fry", "k": 101}', "{}"]  # fmt: skip
    with connected(client, run) as socket:
        first = socket.receive_json()
        for text in bad:
            socket.send_text(text)
            assert set(problem := socket.receive_json()) == {"error", "where", "hint"}
            assert "\n" not in problem["error"]
        socket.send_text('{"did": "wisk"}')
        assert socket.receive_json() == {"error": "'wisk' is not a step of the graph", "where": None,
                                         "hint": "did you mean 'whisk'?"}  # fmt: skip
        socket.send_bytes(b'{"ask": true}')
        assert socket.receive_json() == first


def test_frames_are_answered_block_by_block_as_by_the_library(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    assistant = Assistant(GRAPH, read(tmp_path / "toast.csv", repeats="keep"))
    run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
    frames = [{"observe": {"whisk" if number < 50 else "fry": 0.9}, "at": number / 5} for number in range(150)]
    expected = [json.loads(json.dumps(answer_event(assistant, frame))) for frame in frames]
    shown = [answer for answer, frame in zip(expected, frames, strict=True) if answer["report"]["at"] == frame["at"]]
    assert 25 <= len(shown) <= 30  # a second of frames is a block
    assert any(answer["report"]["mistake"] for answer in shown)
    with connected(client, run) as socket:
        socket.receive_json()
        for frame in frames:
            socket.send_json(frame)
        answers = [socket.receive_json() for _ in shown]
        assert [library(answer) for answer in answers] == shown
        assert [answer["version"] for answer in answers] == list(range(1, len(shown) + 1))
        socket.send_json({"ask": True})  # the next answer is that to this: no frame was answered twice
        assert "report" not in socket.receive_json()
        socket.send_json({"did": "fry"})
        assert "observes frames" in socket.receive_json()["error"]
        socket.send_json({"observe": {"fry": 0.9}, "at": 1})
        assert "comes after the one" in socket.receive_json()["error"]


def test_frames_over_http_repeat_no_alarm(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    assistant = Assistant(GRAPH, read(tmp_path / "toast.csv", repeats="keep"))
    run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
    for number in range(150):
        frame = {"observe": {"whisk" if number < 50 else "fry": 0.9}, "at": number / 5}
        assert library(told(client, run, frame)) == json.loads(json.dumps(answer_event(assistant, frame)))


# -- who gets in ------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(open_app: Open) -> tuple[TestClient, str]:
    """An app with a token and a run, which a site is allowed to use."""
    client = open_app(token=TOKEN, allowed_origins=(ALLOWED,))
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    run = opened(client, drawn(client))["id"]
    del client.headers["Authorization"]
    return client, run


def test_sockets_want_the_token(guarded: tuple[TestClient, str]) -> None:
    client, run = guarded
    for query, headers in (("", {}), ("?token=wrong", {}), ("", {"Authorization": "Bearer wrong"})):
        assert denied(client, run, 401, query, **headers) == "this app wants to know its token"  # type: ignore[arg-type]
    with connected(client, run, f"?token={TOKEN}") as by_address:
        assert by_address.receive_json()["version"] == 0
    with connected(client, run, Authorization=f"Bearer {TOKEN}") as by_header:
        assert by_header.receive_json()["version"] == 0
    client.get(f"/?token={TOKEN}")
    with connected(client, run, Origin=HERE) as by_session:
        assert by_session.receive_json()["version"] == 0


def test_sockets_of_other_sites_are_refused(guarded: tuple[TestClient, str]) -> None:
    client, run = guarded
    client.get(f"/?token={TOKEN}")  # a session
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert denied(client, run, 403, f"?token={TOKEN}", **headers) == "the request comes from another site"  # type: ignore[arg-type]
    refused_host = denied(client, run, 403, f"?token={TOKEN}", Host="evil example")
    assert refused_host == "the Host header names another machine"
    foreign = {"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"}
    assert denied(client, run, 401, **foreign) == "this app wants to know its token"  # a session is for own pages only
    with connected(client, run, f"?token={TOKEN}", **foreign) as socket:
        assert socket.receive_json()["version"] == 0


def test_what_there_is_no_socket_of(open_app: Open) -> None:
    client = open_app(listeners=1)
    run = opened(client, drawn(client))["id"]
    assert "nothing of this name" in denied(client, "0" * 32, 404)
    with pytest.raises(WebSocketDisconnect), connected(client, "no-id"):
        pass
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://127.0.0.1:8765/api/runs"):
        pass
    with connected(client, run):
        assert denied(client, run, 429) == "too many are listening"


# -- over a real connection -------------------------------------------------------------------------------------


def test_sockets_last_and_end_in_good_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[web_app.PatientProtocol] = []
    connect = web_app.PatientProtocol.connection_made

    def remember(protocol: web_app.PatientProtocol, transport: asyncio.Transport) -> None:
        connections.append(protocol)
        connect(protocol, transport)

    monkeypatch.setattr(web_app.PatientProtocol, "connection_made", remember)
    with running_app(tmp_path, token=TOKEN) as (url, _):
        address = urlsplit(url).netloc
        key: dict[str, Any] = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
        graph = asked(address, "POST", "/drawn", {"graph": GRAPH}, **key)["id"]
        run, other = (asked(address, "POST", "/runs", {"graph": graph}, **key)["id"] for _ in range(2))
        with Socket(address, f"/api/runs/{run}/socket") as nobody:
            assert nobody.status == 401
        with Socket(address, f"/api/runs/{run}/socket?token={TOKEN}") as socket:
            assert socket.receive()["version"] == 0
            assert connections[-1]._timer is None  # nobody waits for the head of another request
            socket.send({"did": "whisk"})
            assert socket.receive()["progress"] == ["whisk"]
            asked(address, "DELETE", f"/runs/{run}", **key)
            assert socket.receive() is None
            assert socket.end == (1000, "the run was removed")
        with Socket(address, f"/api/runs/{other}/socket?token={TOKEN}") as socket:
            socket.receive()
            socket.send({"did": "x" * web_app._MAX_MESSAGE_BYTES})
            assert socket.receive() is None
            assert socket.end is not None
            assert socket.end[0] == 1009
        last = Socket(address, f"/api/runs/{other}/socket?token={TOKEN}")
        assert last.receive()["version"] == 0
    with last:
        assert last.receive() is None
        assert last.end is not None
        assert last.end[0] in (1001, 1012)  # the server goes away, or is started again
