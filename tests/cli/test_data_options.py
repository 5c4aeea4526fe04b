"""Options that say how the files of other tools are read, and how a graph remembers them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2.formats import read_all


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Two videos, labelled in frames."""

    def item(video: str) -> dict:
        value = [
            {"ranges": [{"start": 30 * n + 1, "end": 30 * n + 30}], "timelinelabels": [s]} for n, s in enumerate("ab")
        ]
        results = [{"type": "timelinelabels", "value": one} for one in value]
        return {"id": 1, "data": {"video": video}, "annotations": [{"result": results}]}

    path = tmp_path / "export.json"
    path.write_text(json.dumps([item("v1.mp4"), item("v2.mp4")]))
    return path


def test_frames_need_a_rate(msg2, export: Path, tmp_path: Path) -> None:
    assert "does not say how long they are\n  say how many frames" in msg2("describe", export).complaint
    described = msg2("describe", export, "--fps", 30, "--json").json
    assert described["tasks"][0]["median_last_end"] == 2.0
    assert msg2("describe", export, "--fps", 0).complaint.startswith("msg2: fps is 0")
    graph = tmp_path / "graph.json"
    assert msg2("infer", export, "-o", graph, "--fps", 30).code == 0
    assert json.loads(graph.read_text())["method"]["reading"] == {"fps": 30.0}


def test_a_graph_s_data_is_read_as_it_was(msg2, export: Path, tmp_path: Path) -> None:
    graph, table = tmp_path / "graph.json", tmp_path / "steps.csv"
    assert msg2("infer", export, "-o", graph, "--fps", 30).code == 0
    assert msg2("check", graph, export, "--json").code == 0
    table.write_text("video,step,start,end\nv3,a,0,1\nv3,b,1,2\n")
    assert msg2("check", graph, table, "--json").code == 0


def test_a_tier(msg2, tmp_path: Path) -> None:
    table, eaf = tmp_path / "steps.csv", tmp_path / "v.eaf"
    table.write_text("task,video,step,start,end,source\nt,v,a,0,1,ann\nt,v,b,1,2,ben\n")
    assert msg2("convert", table, "-o", eaf).code == 0
    assert len(read_all(eaf)[0].videos[0].segments) == 2
    described = msg2("describe", eaf, "--tier", "steps (ann)", "--json").json
    assert described["tasks"][0]["segments"] == 1
    assert "takes no tier" in msg2("describe", table, "--tier", "x").complaint


def test_a_graph_remembers_how_its_data_was_read(msg2, tmp_path: Path) -> None:
    table, graph = tmp_path / "t.csv", tmp_path / "g.json"
    rows = [f"v{v},{step},{start},{start + 8}" for v in range(9) for start, step in enumerate("abb")]
    table.write_text("\n".join(["video,step,start,end", *rows]))
    assert msg2("infer", table, "-o", graph, "--overlap", "start", "--repeats", "keep").code == 0
    assert json.loads(graph.read_text())["method"]["reading"] == {"overlap": "start", "repeats": "keep"}
    labels = {total["step"]: total["occurrences"] for total in msg2("check", graph, table, "--json").json["totals"]}
    assert labels == {"a": 9, "b": 18}
    assert msg2("check", graph, table, "--json").json["accused"] == []
    new = tmp_path / "new.csv"
    new.write_text("video,step,start,end\nw,b,0,8\nw,a,1,9\nw,b,2,10\n")
    (mistake,) = [one for one in msg2("check", graph, new, "--json").json["mistakes"] if one["kind"] == "order"]
    assert (mistake["step"], mistake["unmet"]) == ("a", ["b"])
    as_told = msg2("check", graph, new, "--json", "--overlap", "unordered", "--repeats", "first").json
    assert as_told["mistakes"] == []
    assert [total["occurrences"] for total in as_told["totals"]] == [1, 1]
