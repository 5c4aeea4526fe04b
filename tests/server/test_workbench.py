"""The workbench over HTTP: labels per person, drafts, files of videos, the graph so far, agreement."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import subprocess
import zipfile
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2.formats.step_table import to_csv
from msg2.labelling import label
from msg2.server.settings import ServerSettings
from msg2.server.web_app import create_app
from msg2.server.workspace import Workspace
from tests.server.conftest import HERE, TOAST, Open, learnt, refused, uploaded

STATIC = Path(str(resources.files("msg2.server").joinpath("static")))


def drafted(videos: int = 8) -> str:
    """A table in which everything is a draft."""
    header, *rows = TOAST.splitlines()
    return "\n".join([f"{header},confidence,source", *(f"{row},0.7,draft" for row in rows[: 3 * videos])]) + "\n"


def opened(client: TestClient, id: str, person: str = "Ann", **query: str) -> Any:
    answer = client.get(f"/api/data/{id}/workbench", params={"person": person, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def save(client: TestClient, id: str, video: str, labels: list[dict[str, Any]], **others: Any) -> Any:
    body = {"task": "toast", "person": "Ann", "video": video, "version": 0, "labels": labels, **others}
    return client.put(f"/api/data/{id}/workbench", json=body)


def accepted(rows: list[dict[str, Any]], person: str = "Ann") -> dict[str, Any]:
    """What the page sends when all drafts of a video are accepted."""
    labels = [{key: row[key] for key in ("video", "step", "start", "end")} | {"source": person} for row in rows]
    settled = [{key: row[key] for key in ("step", "start", "end")} | {"outcome": "accepted"} for row in rows]
    return {"labels": labels, "settled": settled, "person": person}


def test_labels_are_kept_per_person_and_survive_another_server(open_app: Open) -> None:
    client = open_app()
    id = uploaded(client, drafted())["id"]
    first = opened(client, id)
    assert first["people"] == []
    assert first["steps"] == ["dip", "fry", "whisk"]
    assert [(v["labels"], len(v["drafts"]), v["own"]) for v in first["videos"]] == [([], 3, False)] * 8
    mine = accepted(first["videos"][0]["drafts"])
    assert save(client, id, "v0", **mine).json() == {"version": 1}
    assert save(client, id, "v0", **mine | {"version": 1, "labels": mine["labels"][:1]}).json() == {"version": 2}
    client.__exit__(None, None, None)
    again = open_app()
    found = opened(again, id)
    assert found["people"] == ["Ann"]
    video = found["videos"][0]
    assert (video["labels"], video["version"], video["own"]) == (mine["labels"][:1], 2, True)
    assert video["settled"] == mine["settled"]
    assert opened(again, id, "Ben")["videos"] == first["videos"]  # nothing of this is Ben's


def test_what_is_wrong_is_refused_and_changes_nothing(client: TestClient) -> None:
    id = uploaded(client)["id"]
    assert "not been opened" in refused(save(client, id, "v0", []), 404)
    before = opened(client, id)
    row = {"video": "v1", "step": "fry", "start": 2, "end": 1}
    assert "before its start" in refused(save(client, id, "v1", [row]))
    assert "no such video" in refused(save(client, id, "v99", []))
    assert save(client, id, "v1", []).status_code == 200
    assert save(client, id, "v1", []).json() == {"version": 1}  # the answer was lost: the same is sent again
    conflict = save(client, id, "v1", [{**row, "end": 3}])
    assert (conflict.status_code, conflict.json()["current"]["labels"]) == (409, [])
    after = opened(client, id)
    assert [v for v in after["videos"] if v["video"] != "v1"] == [v for v in before["videos"] if v["video"] != "v1"]
    assert refused(client.get(f"/api/data/{id}/workbench", params={"person": ""}), 422)


def test_every_decision_that_was_accepted_is_kept(client: TestClient) -> None:
    """Two tabs decide on the drafts of a video without labels: the second decision is a conflict, not a repetition."""
    id = uploaded(client, drafted())["id"]
    first, second, _ = opened(client, id)["videos"][0]["drafts"]
    rejected = [
        {"settled": [{key: row[key] for key in ("step", "start", "end")} | {"outcome": "rejected"}], "save_id": name}
        for row, name in ((first, "tab 1"), (second, "tab 2"))
    ]
    assert save(client, id, "v0", [], **rejected[0]).json() == {"version": 1}
    conflict = save(client, id, "v0", [], **rejected[1])
    assert conflict.status_code == 409
    assert "changed elsewhere" in conflict.json()["error"]
    assert conflict.json()["current"] == {"version": 1, "labels": [], **rejected[0]}
    assert save(client, id, "v0", [], **rejected[0]).json() == {"version": 1}  # whose answer was lost
    both = {**rejected[1], "settled": rejected[0]["settled"] + rejected[1]["settled"]}
    assert save(client, id, "v0", [], version=1, **both).json() == {"version": 2}
    assert opened(client, id)["videos"][0]["settled"] == both["settled"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_labels_are_merged_as_the_page_does_it() -> None:
    """Random changes of two tabs: each is in what `merge` makes, and nothing else; equal rows are counted."""
    rng, cases = random.Random(7), []
    for _ in range(300):
        before = [{"step": rng.choice("ab"), "source": "x"} for _ in range(rng.randrange(6))]
        versions = []
        for _ in range(2):
            kept = [row for row in before if rng.random() < 0.7]
            versions.append([*kept, *({"source": "x", "step": rng.choice("abc")} for _ in range(rng.randrange(3)))])
        cases.append([before, *versions])
    script = (
        f"import {{ merge }} from {json.dumps((STATIC / 'label_state.js').as_uri())};"
        f"const states = (rows) => rows.map((labels) => ({{ labels, settled: labels }}));"
        f"console.log(JSON.stringify({json.dumps(cases)}.map((each) => merge(...states(each)))));"
    )
    command = ["node", "--input-type=module", "-e", script]
    merged = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for (before, ours, theirs), result in zip(cases, merged, strict=True):
        count = [Counter(row["step"] for row in rows) for rows in (before, ours, theirs)]
        for step in "abc":
            old, mine, other = (each[step] for each in count)
            total = sum(row["step"] == step for row in result["labels"])
            if min(mine, other) >= old:  # equal rows that both have added
                assert total == max(mine, other)
            elif max(mine, other) <= old:  # what either has removed is gone
                assert total == min(mine, other)
            else:
                assert total == mine + other - old
        assert result["settled"] == result["labels"]


def test_labels_that_came_with_the_data_are_where_everybody_begins(client: TestClient) -> None:
    id = uploaded(client)["id"]
    videos = opened(client, id)["videos"]
    assert [len(video["labels"]) for video in videos] == [3] * 8
    assert save(client, id, "v0", videos[0]["labels"][:2]).status_code == 200
    assert [len(video["labels"]) for video in opened(client, id)["videos"]] == [2, *[3] * 7]
    assert [len(video["labels"]) for video in opened(client, id, "Ben")["videos"]] == [3] * 8
    made = client.post(f"/api/data/{id}/workbench/table", json={"task": "toast", "person": "Ann"}).json()
    assert (made["name"], made["corrects"]) == ("toast, labels of Ann.csv", id)
    rows = list(csv.DictReader(io.StringIO(client.get(f"/api/data/{made['id']}/as/csv").text)))
    assert len(rows) == 23
    assert {row["task"] for row in rows} == {"toast"}
    again = client.post(f"/api/data/{id}/workbench/table", json={"task": "toast", "person": "Ann"}).json()
    assert again["id"] == made["id"]
    assert learnt(client, made["id"])["steps"] == ["whisk", "dip", "fry"]
    assert client.get(f"/api/data/{id}/labels").json()["videos"][0]["labels"][2]["step"] == "fry"  # as it was


def test_no_table_without_labels(client: TestClient) -> None:
    id = uploaded(client, drafted())["id"]
    opened(client, id)
    told = refused(client.post(f"/api/data/{id}/workbench/table", json={"task": "toast", "person": "Ann"}))
    assert told == "there is no label yet"


def test_the_graph_grows_with_the_labels(client: TestClient) -> None:
    id = uploaded(client, drafted())["id"]
    videos = opened(client, id)["videos"]
    ask = {"task": "toast", "person": "Ann"}
    none = client.post(f"/api/data/{id}/workbench/graph", json=ask).json()
    assert (none["svg"], none["videos"], none["movement"], len(none["next"])) == (None, 0, None, 5)
    for count, video in enumerate(videos[:6], start=1):
        assert save(client, id, video["video"], **accepted(video["drafts"])).status_code == 200
        if count < 5:  # too few to tell how much the graph moves
            continue
        some = client.post(f"/api/data/{id}/workbench/graph", json=ask).json()
        assert (some["videos"], some["labels"]) == (count, 3 * count)
        assert [choice["video"] for choice in some["next"]] == [one["video"] for one in videos[count:]][:5]
    assert some["svg"].startswith("<svg")
    assert some["enough"]
    assert some["movement"] <= 0.05
    assert [point["videos"] for point in some["trend"]] == [5, 6]
    assert some["changes"] == "The last change left the graph as it was."
    backwards = [{**row, "start": 9 - row["start"], "end": 9 - row["start"]} for row in videos[6]["drafts"]]
    rows = [{key: row[key] for key in ("video", "step", "start", "end")} for row in backwards]
    for video in [one["video"] for one in videos[:6]]:
        save(client, id, video, [{**row, "video": video} for row in rows], version=1)
    turned = client.post(f"/api/data/{id}/workbench/graph", json=ask).json()
    assert "“dip” needs “fry”" in turned["changes"]


def test_steps_that_were_added_stay(client: TestClient) -> None:
    id = uploaded(client)["id"]
    opened(client, id)
    for steps in (["flip"], ["serve", "flip"]):
        added = client.post(f"/api/data/{id}/workbench/steps", json={"task": "toast", "steps": steps})
        assert added.status_code == 204
    assert opened(client, id)["steps"] == ["dip", "flip", "fry", "serve", "whisk"]


def test_two_people_are_compared(client: TestClient) -> None:
    id = uploaded(client, drafted())["id"]
    videos = opened(client, id)["videos"]
    for video in videos[:4]:
        save(client, id, video["video"], **accepted(video["drafts"]))
    for number, video in enumerate(videos[1:3]):
        save(client, id, video["video"], **accepted(video["drafts"][: 3 - number], "Ben"))
    query = {"task": "toast", "person": "Ann", "other": "Ben"}
    found = client.get(f"/api/data/{id}/workbench/agreement", params=query).json()
    assert found["videos"] == 2
    dip, fry, whisk = found["steps"]
    assert (whisk["first"], whisk["second"], whisk["both"], whisk["time_kappa"]) == (2, 2, 2, 1)
    # Fry: Ann 2 of 6 seconds, Ben 1, both 1; p_o = 5/6, p_e = (2·1 + 4·5) / 36.
    assert fry["time_kappa"] == pytest.approx((5 / 6 - 22 / 36) / (1 - 22 / 36))
    assert dip["presence_kappa"] is None
    assert opened(client, id, "Ben")["people"] == ["Ann", "Ben"]


# -- folders ----------------------------------------------------------------------------------------------------


@pytest.fixture
def films(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    for name in ("v0", "v1", "clip [v2]"):
        (folder / f"{name}.en.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:03.000\nnow<00:02.000><c> flip</c>\n")
    (folder / "v1.mp4").write_bytes(bytes(range(256)) * 40)
    return folder


@pytest.fixture
def folder_client(films: Path, tmp_path: Path) -> Any:
    (tmp_path / "toast.csv").write_text(drafted(3))
    workspace = Workspace(ServerSettings(folder=tmp_path / "work"))
    ids = [workspace.add_path(path).id for path in (films, tmp_path / "toast.csv")]
    with TestClient(create_app(workspace), base_url=HERE, raise_server_exceptions=False) as client:
        yield client, *ids


def test_a_folder_of_videos_and_captions_is_opened(folder_client: Any) -> None:
    client, id, table = folder_client
    record = client.get(f"/api/data/{id}").json()
    assert (record["media"], record["tasks"]) == (
        True,
        [{"name": "films", "videos": 3, "steps": [], "unit": "video", "findings": []}],
    )
    assert [(v["video"], v["media"], v["captions"]) for v in opened(client, id)["videos"]] == [
        ("clip [v2].en", False, True), ("v0.en", False, True), ("v1", True, True),
    ]  # fmt: skip
    # The files of a table's videos are found in the folder, by their names.
    found = {v["video"]: (v["media"], v["captions"]) for v in opened(client, table)["videos"]}
    assert found == {"v0": (False, True), "v1": (True, True), "v2": (False, True)}
    query = {"task": "toast", "video": "v1"}
    captions = client.get(f"/api/data/{table}/workbench/captions", params=query).json()["captions"]
    assert captions == [
        {"text": "now flip", "start": 1.0, "end": 3.0, "words": [["now", 1.0, 2.0], ["flip", 2.0, 3.0]]}
    ]
    part = client.get(f"/api/data/{table}/workbench/media", params=query, headers={"Range": "bytes=256-259"})
    assert (part.status_code, part.content) == (206, bytes(range(4)))
    assert part.headers["content-type"] == "video/mp4"
    refused(client.get(f"/api/data/{table}/workbench/media", params={"task": "toast", "video": "v0"}), 404)
    refused(client.get(f"/api/data/{table}/workbench/media", params={"task": "toast", "video": "../x"}), 404)


def test_captions_alone_are_enough_and_drafts_come_from_a_table(open_app: Open, films: Path) -> None:
    (films / "v1.mp4").unlink()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for file in films.iterdir():
            packed.write(file, file.name)
    client = open_app()
    folder = uploaded(client, archive.getvalue(), "films.zip")
    assert folder["tasks"] == [{"name": "films", "videos": 3, "steps": [], "unit": "video", "findings": []}]
    id, task = folder["id"], "films"
    videos = opened(client, id)["videos"]
    assert [(v["video"], v["captions"], v["drafts"]) for v in videos] == [
        ("clip [v2].en", True, []), ("v0.en", True, []), ("v1.en", True, []),
    ]  # fmt: skip
    ask = {"task": task, "person": "Ann"}
    assert client.post(f"/api/data/{id}/workbench/steps", json={"task": task, "steps": ["flip"]}).status_code == 204
    assert client.post(f"/api/data/{id}/workbench/drafts", json=ask).status_code == 204  # from what is said
    said = [draft for video in opened(client, id)["videos"] for draft in video["drafts"]]
    assert {(draft["step"], draft["source"]) for draft in said} == {("flip", "draft")}
    table = uploaded(client, drafted(3))["id"]
    assert client.post(f"/api/data/{id}/workbench/drafts", json={**ask, "data": table}).status_code == 204
    found = opened(client, id)
    assert found["steps"] == ["dip", "flip", "fry", "whisk"]
    assert [len(v["drafts"]) for v in found["videos"]] == [3, 3, 3]
    assert found["videos"][0]["drafts"][0]["confidence"] == 0.7
    other = uploaded(client, "video,step\nq,a\n", "other.csv")["id"]
    assert "none of these videos" in refused(
        client.post(f"/api/data/{id}/workbench/drafts", json={**ask, "data": other})
    )


def test_files_that_the_sandbox_lies_about_are_not_served(folder_client: Any, tmp_path: Path) -> None:
    client, id, _ = folder_client
    opened(client, id)
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    base = next((tmp_path / "work").rglob("base.json"))
    told = base.read_text()
    for lie in ("../secret.mp4", str(tmp_path / "secret.mp4"), "v1.en.vtt"):
        base.write_text(told.replace('"v1.mp4"', f'"{lie}"'))
        answer = client.get(f"/api/data/{id}/workbench/media", params={"task": "films", "video": "v1"})
        refused(answer, 404)


# -- filling in ---------------------------------------------------------------------------------------------------


def narrated(folder: Path, videos: int = 6) -> Path:
    """Captions in which every step is named, one after the other."""
    folder.mkdir()
    for number in range(videos):
        said = [
            f"00:{10 * place:02}.000 --> 00:{10 * place + 9:02}.000\nnow we {step} it, number {number}"
            for place, step in enumerate(("whisk", "dip", "fry"))
        ]
        (folder / f"v{number}.vtt").write_text("\n\n".join(["WEBVTT", *said]) + "\n")
    return folder


def test_missing_labels_are_filled_in_from_what_is_said(tmp_path: Path) -> None:
    films = narrated(tmp_path / "films")
    (tmp_path / "toast.csv").write_text("\n".join(TOAST.splitlines()[:7]) + "\n")  # of two videos
    workspace = Workspace(ServerSettings(folder=tmp_path / "work"))
    ids = [workspace.add_path(path).id for path in (films, tmp_path / "toast.csv")]
    with TestClient(create_app(workspace), base_url=HERE, raise_server_exceptions=False) as client:
        steps = ["whisk", "dip", "fry"]
        filled = client.post(f"/api/data/{ids[0]}/workbench/filled", json={"steps": steps}).json()
        assert (filled["name"], filled["corrects"]) == ("films, filled in.csv", ids[0])
        expected = to_csv([label(films, steps, task="films").task])
        assert client.get(f"/api/data/{filled['id']}/as/csv").text == expected
        rows = list(csv.DictReader(io.StringIO(expected)))
        assert len(rows) == 18
        assert {row["source"] for row in rows} == {"draft"}
        sure = sum(float(row["confidence"]) >= 0.8 for row in rows)
        assert filled["remarks"][0] == (
            f"18 labels of 6 videos were filled in, as drafts; {sure} of them are at least 80% sure"
        )
        assert learnt(client, filled["id"])["videos"] == 6  # without labels, all drafts count
        # With labels of two videos, these stay; whether drafts help cannot be told, so they do not count.
        again = client.post(f"/api/data/{ids[0]}/workbench/filled", json={"labels": ids[1], "task": "toast"}).json()
        rows = list(csv.DictReader(io.StringIO(client.get(f"/api/data/{again['id']}/as/csv").text)))
        assert {row["video"] for row in rows if not row["source"]} == {"v0", "v1"}
        assert {row["video"] for row in rows if row["source"]} == {"v2", "v3", "v4", "v5"}
        assert again["draft_confidence"] == 1
        assert any("drafts do not count, as too few labels" in remark for remark in again["remarks"])
        counted = [learnt(client, again["id"], draft_confidence=least) for least in (again["draft_confidence"], 0)]
        labels = [client.get(f"/api/work/{each['id']}/as/json").json()["method"]["videos"] for each in counted]
        assert [len(videos) for videos in labels] == [2, 6]
        told = refused(client.post(f"/api/data/{ids[1]}/workbench/filled", json={}))
        assert told == "has labels only: there is nothing to fill in others from"
