"""Data in, graphs out; what is kept, and what a restart does to it."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from msg2 import drawing
from msg2.drawing import PictureOptions
from msg2.formats import read
from msg2.formats.registry import WRITERS
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.metrics import compare_graphs
from msg2.server.schemas import DatasetRecord, ReadSettings
from msg2.server.settings import ServerSettings
from msg2.server.workspace import Workspace
from tests.formats.test_excel import workbook
from tests.server.conftest import TOAST, Open, finished, learnt, refused, uploaded


def test_a_graph_is_what_the_library_learns(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "toast.csv"
    table.write_text(TOAST)
    data = uploaded(client)
    task = {"name": "toast", "videos": 8, "steps": ["dip", "fry", "whisk"], "unit": "video", "findings": []}
    assert data["tasks"] == [task]
    work = learnt(client, data["id"], method="msg2", options={"delta": 0.9})
    graph = client.get(f"/api/work/{work['id']}/as/json").json()
    assert graph == infer(read(table), "msg2", delta=0.9).to_json()
    assert (work["steps"], work["edges"], work["videos"]) == (
        ["whisk", "dip", "fry"],
        len(graph["preconditions"]) + 1,
        8,
    )


def test_every_format_of_graphs_and_labels_can_be_downloaded(client: TestClient) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"])
    choices = client.get("/api/choices").json()
    assert choices["graph_formats"] == [suffix[1:] for suffix in drawing.SUFFIXES]
    assert choices["label_formats"] == [suffix[1:] for suffix in WRITERS]
    for kind, id in (("graph", work["id"]), ("label", data["id"])):
        for format in choices[f"{kind}_formats"]:
            answer = client.get(f"/api/{'work' if kind == 'graph' else 'data'}/{id}/as/{format}")
            assert answer.status_code == 200, (format, answer.text)
            assert len(answer.content) > 50
            name = answer.headers["content-disposition"]
            assert name.startswith('attachment; filename="toast.')
            if name.endswith('.zip"'):
                assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
    again = client.get(f"/api/data/{data['id']}/as/csv").text
    assert uploaded(client, again, "other.csv")["tasks"] == data["tasks"]


def test_constraints_are_obeyed_and_contradictions_named(client: TestClient) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"], require=[["fry", "dip"]])
    graph = client.get(f"/api/work/{work['id']}/as/json").json()
    assert graph["method"]["knowledge"] == {"required": [["fry", "dip"]]}
    rules = {"require": [["whisk", "dip"], ["fry", "dip"]], "require_order": [["dip", "fry"]]}
    told = "these contradict each other: “fry is needed for dip” and “dip (if done) comes before fry”"
    assert refused(client.post("/api/work", json={"data": data["id"], **rules})) == told
    labels = [{"video": "v", "step": "dip"}, {"video": "v", "step": "fry"}, {"video": "v", "step": "whisk"}]
    assert refused(client.post("/api/infer", json={"labels": labels, **rules})) == told
    itself = client.post("/api/work", json={"data": data["id"], "forbid": [["dip", "dip"]]})
    assert refused(itself) == "“dip is not needed for dip” speaks of one step only"


def test_what_looks_wrong_is_told_with_an_upload_and_logs_have_runs(client: TestClient) -> None:
    task = uploaded(client, "video,step\nv,Fry\nv,fry \nw,fry\n")["tasks"][0]
    assert any(finding.startswith("names that look the same") for finding in task["findings"])
    events = "".join(f'<event><string key="concept:name" value="{step}"/></event>' for step in "ab")
    log = f'<?xml version="1.0"?><log><trace><string key="concept:name" value="1"/>{events}</trace></log>'
    data = uploaded(client, log, "log.xes")
    assert data["tasks"][0]["unit"] == "run"
    assert learnt(client, data["id"])["unit"] == "run"


def test_the_example_is_learned_viewed_renamed_compared_and_checked(client: TestClient) -> None:
    data = client.post("/api/example").json()
    first, second = learnt(client, data["id"]), learnt(client, data["id"], method="always-before")
    view = client.get(f"/api/work/{first['id']}/view").json()
    graph = client.get(f"/api/work/{first['id']}/as/json").json()
    assert view["steps"] == graph["steps"] == list(view["explanations"])
    assert view["svg"].startswith("<svg")
    assert view["svg"] != client.get(f"/api/work/{first['id']}/view?top_down=true").json()["svg"]
    assert {"before": "fill kettle", "after": "boil water in kettle", "kind": "needs"} in view["arrows"]
    assert len(view["arrows"]) == first["edges"]
    assert client.patch(f"/api/work/{first['id']}", json={"title": " mine "}).json()["title"] == "mine"
    assert client.get(f"/api/work/{first['id']}").json()["title"] == "mine"
    graphs = [SubtaskGraph.from_json(client.get(f"/api/work/{one['id']}/as/json").json()) for one in (first, second)]
    found = client.get("/api/compare", params={"first": first["id"], "second": second["id"]}).json()
    assert found == json.loads(json.dumps(compare_graphs(*graphs).to_json()))
    report = client.post(f"/api/work/{first['id']}/check", json={"data": data["id"]}).json()
    assert report["videos"] == data["tasks"][0]["videos"] == 54
    labels = client.get(f"/api/data/{data['id']}/labels").json()["videos"]
    rows = [{key: row[key] for key in ("video", "step", "start", "end")} for video in labels for row in video["labels"]]
    again = client.post("/api/check", json={"graph": graphs[0].to_json(), "labels": rows}).json()
    assert again["mistakes"] == report["mistakes"]


def test_an_archive_is_a_folder(client: TestClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for video in ("v1", "v2"):
            archive.writestr(f"toast/{video}.csv", "step,start,end\nwhisk,0,1\ndip,1,2\n")
    data = uploaded(client, packed.getvalue(), "my toast.zip")
    (task,) = data["tasks"]
    assert (task["name"], task["videos"], task["steps"]) == ("my toast", 2, ["dip", "whisk"])


def test_an_excel_workbook_is_a_table(client: TestClient, tmp_path: Path) -> None:
    data = uploaded(client, workbook(tmp_path / "x").read_bytes(), "toast.xlsx")  # it is a ZIP archive as well
    (task,) = data["tasks"]
    assert (task["name"], task["videos"], task["steps"]) == ("toast", 1, ["fry & flip"])
    assert "Excel" in data["format"]


def test_one_task_of_many(client: TestClient) -> None:
    rows = "".join(f"{task},v,{step}\n" for task in ("tea", "toast") for step in "ab")
    data = uploaded(client, f"task,video,step\n{rows}")
    assert learnt(client, data["id"], task="tea")["task"] == "tea"
    begun = client.post("/api/work", json={"data": data["id"]}).json()
    assert finished(client, begun["id"])["problem"]["error"] == "holds 2 tasks"


def test_nothing_is_lost_by_a_restart(open_app: Open) -> None:
    first = open_app()
    data = uploaded(first)
    work = learnt(first, data["id"])
    graph = first.get(f"/api/work/{work['id']}/as/json").content
    first.__exit__(None, None, None)
    second = open_app()
    assert second.get("/api/data").json()["data"] == [data]
    assert second.get("/api/work").json()["work"] == [work]
    assert second.get(f"/api/work/{work['id']}/as/json").content == graph
    assert second.get(f"/page/{work['id']}").status_code == 200


def test_an_upload_is_on_the_disk_when_it_is_answered(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = set(), os.fsync

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    id, datasets = uploaded(client)["id"], client.app.state.workspace.datasets  # type: ignore[attr-defined]
    folder = datasets.folder(id)
    needed = [datasets.root, folder, folder / id, folder / "record.json"]
    assert [path for path in needed if path.stat().st_ino not in synced] == []


def test_what_somebody_else_keeps_in_the_folder_stays(open_app: Open, tmp_path: Path) -> None:
    theirs = [tmp_path / "elsewhere" / name / "mine" / "thesis.txt" for name in ("data", "work", "scratch")]
    for file in theirs:
        file.parent.mkdir(parents=True)
        file.write_text("years of work")
    open_app(folder=tmp_path / "elsewhere")
    assert all(file.read_text() == "years of work" for file in theirs)


def test_a_folder_is_one_server_s_alone(client: TestClient, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another msg2 serve is using this folder"):
        Workspace(ServerSettings(folder=tmp_path / "work"))


def test_data_and_graphs_that_lie_elsewhere_are_offered(tmp_path: Path) -> None:
    table, graph = tmp_path / "toast.csv", tmp_path / "graph.json"
    table.write_text(TOAST)
    graph.write_text(infer(read(table)).dumps())
    workspace = Workspace(ServerSettings(folder=tmp_path / "work"))
    for _ in range(2):  # the same paths are the same things
        workspace.add_path(table)
        workspace.add_path(graph)
    assert [data.path for data in workspace.datasets.records()] == [str(table)]
    assert [(work.kind, work.name, work.task) for work in workspace.graphs.records()] == [
        ("given", "graph.json", "toast")
    ]
    graph.write_text('{"format": "msg2.graph/1", "preconditions": {}}')
    with pytest.raises(ValueError, match=r"task: is missing"):
        workspace.add_path(graph)
    workspace.close()


def test_graph_files_are_added(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "toast.csv"
    table.write_text(TOAST)
    graph = infer(read(table), "msg2")
    given = client.post("/api/given", params={"name": "ann.json"}, content=graph.dumps())
    assert given.status_code == 201, given.text
    added = given.json()
    assert (added["kind"], added["name"], added["task"]) == ("given", "ann.json", "toast")
    assert client.get(f"/api/work/{added['id']}/as/json").json() == graph.to_json()
    unnamed = '{"steps": {"1": "boil", "2": "pour"}, "edges": [["1", "2"]]}'
    assert client.post("/api/given", params={"name": "tea.json"}, content=unnamed).json()["task"] == "tea"
    for content in (TOAST, "{}", "", '{"format": "msg2.graph/1", "preconditions": {}}'):
        answer = client.post("/api/given", params={"name": "bad.json"}, content=content)
        refused(answer)
        assert answer.json()["where"].startswith("bad.json")
        assert str(tmp_path) not in answer.text
    assert len(client.get("/api/work").json()["work"]) == 2


def test_a_record_that_cannot_be_read_hurts_no_other(
    open_app: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_app()
    data = uploaded(client)
    works = [learnt(client, data["id"])["id"] for _ in range(3)]
    for id, content in zip(works, ("{broken", '{"from": "the future"}'), strict=False):
        (tmp_path / "work" / "work" / id / "record.json").write_text(content)
    client.__exit__(None, None, None)
    again = open_app()
    assert [work["id"] for work in again.get("/api/work").json()["work"]] == works[2:]
    assert refused(again.get(f"/api/work/{works[0]}"), 404) == "is no record that can be read"
    assert sorted(caplog.messages) == sorted(
        f"work/{id}/record.json: is no record that can be read" for id in works[:2]
    )
    assert (tmp_path / "work" / "work" / works[0] / "graph.json").is_file()


def test_removed_data_is_gone_and_its_graphs_stay(client: TestClient, tmp_path: Path) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"])
    assert client.delete(f"/api/data/{data['id']}").status_code == 204
    assert refused(client.get(f"/api/data/{data['id']}"), 404)
    assert client.get(f"/page/{work['id']}").status_code == 200
    assert list((tmp_path / "work" / "data").iterdir()) == []
    begun = client.post("/api/work", json={"data": data["id"]})
    assert refused(begun, 404)


def test_columns_are_previewed_given_and_changed(open_app: Open, tmp_path: Path) -> None:
    client = open_app()
    log = "Auftrag;Vorgang;Zeit\n1;Anlegen;13.05.2024\n1;Liefern;14.05.2024\n2;Anlegen;15.05.2024\n"
    assert refused(client.post("/api/data", params={"name": "sap.csv"}, content=log)) == "the column 'video' is missing"
    asked = client.post("/api/preview", params={"name": "sap.csv"}, content=log).json()
    assert (asked["header"], asked["rows"][0]) == (["Auftrag", "Vorgang", "Zeit"], ["1", "Anlegen", "13.05.2024"])
    assert (asked["kind"], asked["columns"]) == ("steps", {})
    assert asked["problem"] == "the column 'video' is missing"
    assert {"case", "activity", "time"} <= set(asked["choices"]["events"])
    assert client.get("/api/data").json()["data"] == []  # nothing is kept of a question
    columns = "case=Auftrag,activity=Vorgang,time=Zeit"
    answer = client.post("/api/data", params={"name": "sap.csv", "columns": columns}, content=log)
    data = answer.json()
    assert data["tasks"][0]["unit"] == "run"
    assert data["columns"] == {"case": "Auftrag", "activity": "Vorgang", "time": "Zeit"}
    assert learnt(client, data["id"])["steps"] == ["Anlegen", "Liefern"]
    changed = client.patch(f"/api/data/{data['id']}", json={"columns": "video=Vorgang,step=Auftrag"}).json()
    assert changed["tasks"][0]["steps"] == ["1", "2"]
    assert client.get(f"/api/data/{data['id']}/preview").json()["columns"] == {"video": "Vorgang", "step": "Auftrag"}
    for wrong in ("step=Vorgang", "case=Auftrag,activity=Nichts", "sense"):
        refused(client.patch(f"/api/data/{data['id']}", json={"columns": wrong}))
    assert client.get(f"/api/data/{data['id']}").json() == changed
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n")
    assert client.get(f"/api/data/{uploaded(client, packed.getvalue(), 'a.zip')['id']}/preview").json() is None


def test_what_was_said_about_columns_outlives_a_restart(tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text("video,step,action\nv1,1,fry\n")
    for step in ("1", "fry"):
        with Workspace(ServerSettings(folder=tmp_path / "work")) as workspace:
            data = workspace.add_path(tmp_path / "toast.csv")
            assert isinstance(data, DatasetRecord)
            assert data.tasks[0].steps == [step]
            workspace.read_again(data.id, ReadSettings(columns="step=action"))


def test_what_directly_follows_what_is_what_the_library_draws(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    task, data = read(tmp_path / "toast.csv", repeats="keep"), uploaded(client)
    for format, direction in (("svg", "LR"), ("dot", "TB")):
        expected = drawing.show_directly_follows(task, tmp_path / f"x.{format}", PictureOptions(direction=direction))
        address = f"/api/data/{data['id']}/directly-follows/as/{format}"
        answer = client.get(address, params={"task": "toast", "top_down": direction == "TB"})
        assert answer.content == expected.read_bytes()
        assert f'filename="toast-directly-follows.{format}"' in answer.headers["Content-Disposition"]
    refused(client.get(f"/api/data/{data['id']}/directly-follows/as/bpmn"))
    refused(client.get(f"/api/data/{data['id']}/directly-follows/as/svg", params={"task": "tea"}))
