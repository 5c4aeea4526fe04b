"""The written procedure over HTTP: texts, files, and what learning again leaves of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from msg2.formats import read_graph
from tests.server.conftest import Open, learnt, refused, uploaded

docx = pytest.importorskip("docx")
TEXTS = {
    "descriptions": {"whisk": "Whisk two eggs."}, "warnings": [{"text": "The pan is hot.", "step": "fry"}],
    "tools": ["a pan"], "version": "2", "reviewed": {"by": "Ada", "on": "2026-11-19"},
}  # fmt: skip


def test_texts_are_kept_in_the_graph_and_every_file_has_them(client: TestClient, tmp_path: Path) -> None:
    graph = learnt(client, uploaded(client)["id"])["id"]
    address = f"/api/work/{graph}/procedure"
    draft = client.get(address).json()
    assert draft["status"] == "Draft — not reviewed"
    assert [(step["label"], step["name"]) for step in draft["steps"]] == [("1", "whisk"), ("2", "dip"), ("3", "fry")]
    saved = client.put(address, json={"version": draft["version"], "texts": TEXTS}).json()
    assert saved["status"] == "Reviewed by Ada, on 2026-11-19"
    assert client.get(address).json() == saved
    file = tmp_path / "graph.json"
    file.write_bytes(client.get(f"/api/work/{graph}/as/json").content)
    assert read_graph(file).texts.model_dump(mode="json") == saved["texts"]
    word = docx.Document(io.BytesIO(client.get(f"{address}/as/docx").content))
    markdown = client.get(f"{address}/as/md").text
    page = client.get(f"/procedure/{graph}").text
    for text in ("\n".join(paragraph.text for paragraph in word.paragraphs), markdown, page):
        assert "Whisk two eggs." in text
        assert "Take care: The pan is hot." in text
    assert client.get(f"{address}/as/pdf").content.startswith(b"%PDF")
    assert refused(client.get(f"{address}/as/odt")).startswith("there is no format 'odt' of procedures")


def test_a_save_that_rests_on_older_texts_is_a_conflict(client: TestClient) -> None:
    graph = learnt(client, uploaded(client)["id"])["id"]
    address = f"/api/work/{graph}/procedure"
    version = client.get(address).json()["version"]
    first = {"version": version, "texts": {"tools": ["a pan"]}}
    assert client.put(address, json=first).status_code == 200
    assert client.put(address, json={"version": version, "texts": {"tools": ["a wok"]}}).status_code == 409
    assert client.get(address).json()["texts"]["tools"] == ["a pan"]
    unknown = {"version": version + 1, "texts": {"descriptions": {"bake": "Bake it."}}}
    assert "bake" in refused(client.put(address, json=unknown))
    assert client.get(address).json()["texts"]["tools"] == ["a pan"]


def test_learning_again_keeps_the_texts_and_asks_for_another_review(client: TestClient) -> None:
    data = uploaded(client)["id"]
    graph = learnt(client, data)["id"]
    client.patch(f"/api/work/{graph}", json={"title": "French toast"})
    address = f"/api/work/{graph}/procedure"
    client.put(address, json={"version": client.get(address).json()["version"], "texts": TEXTS})
    again = learnt(client, data, require=[["whisk", "fry"]], replaces=graph)
    procedure = client.get(f"/api/work/{again['id']}/procedure").json()
    assert again["title"] == "French toast"
    assert procedure["status"] == "Draft — not reviewed"
    assert procedure["texts"] == {**TEXTS, "reviewed": None}
    assert client.get(address).json()["status"].startswith("Reviewed")  # the earlier one stays as it was


def test_a_link_for_colleagues_opens_the_procedure_and_nothing_else(open_app: Open) -> None:
    client = open_app(token="0123456789abcdef")
    client.headers["authorization"] = "Bearer 0123456789abcdef"
    graph, other = (learnt(client, uploaded(client)["id"])["id"] for _ in range(2))
    link = client.get(f"/api/work/{graph}/procedure").json()["link"]
    del client.headers["authorization"]
    read = client.get(link, headers={"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"})
    assert read.status_code == 200
    assert "whisk" in read.text
    signature = link.partition("?")[2]
    assert not client.cookies
    for path in (f"/procedure/{other}", f"/page/{graph}", f"/api/work/{graph}/procedure", "/", f"/publish/{graph}"):
        assert client.get(f"{path}?{signature}").status_code == 401
    assert client.put(f"/procedure/{graph}?{signature}").status_code == 401


def test_the_qr_code_holds_the_address(client: TestClient) -> None:
    svg = client.get("/api/qr", params={"text": "http://127.0.0.1:8765/procedure/x?shared=y"})
    assert svg.headers["content-type"] == "image/svg+xml"
    assert svg.text.rstrip().endswith("</svg>")
    assert svg.text != client.get("/api/qr", params={"text": "http://127.0.0.1:8765/procedure/x?shared=z"}).text
    assert refused(client.get("/api/qr", params={"text": "漢" * 2000})) == "the text is too long for a QR code"


def test_a_run_under_way_goes_on_when_the_texts_are_edited(client: TestClient) -> None:
    graph = learnt(client, uploaded(client)["id"])["id"]
    run = client.post("/api/runs", json={"graph": graph}).json()["id"]
    assert client.post(f"/api/runs/{run}/events", json={"did": "whisk"}).status_code == 200
    address = f"/api/work/{graph}/procedure"
    client.put(address, json={"version": client.get(address).json()["version"], "texts": TEXTS})
    answer = client.post(f"/api/runs/{run}/events", json={"did": "dip"}).json()
    assert answer["progress"] == ["whisk", "dip"]
