"""The preview of a table: what an app shows when it asks which column is which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import preview_table, read, write
from msg2.task import Segment, Task, Video

SAP = "Auftrag;Vorgang;Zeit\n4711;Anlegen;13.05.2024\n4711;Liefern;14.05.2024\n"


def test_a_table_that_needs_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "sap.csv"
    path.write_text(SAP)
    asked = preview_table(path, rows=1)
    assert asked is not None
    assert (asked.kind, asked.header) == ("steps", ("Auftrag", "Vorgang", "Zeit"))
    assert asked.rows == (("4711", "Anlegen", "13.05.2024"),)
    assert asked.problem is not None
    assert asked.problem == "the column 'video' is missing"
    answer = {"case": "Auftrag", "activity": "Vorgang", "time": "Zeit"}
    answered = preview_table(path, answer)
    assert answered is not None
    assert (answered.kind, answered.columns, answered.problem) == ("events", answer, None)
    assert set(answer) <= set(answered.choices)
    assert read(path, columns=answer).videos[0].sequence() == ("Anlegen", "Liefern")
    with pytest.raises(InputError, match="mixes two kinds"):
        preview_table(path, "case=Auftrag,step=Vorgang")


def test_a_table_that_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "toast.csv"
    path.write_text("Video,Step name,mood\nv1,fry,good\n")
    found = preview_table(path)
    assert found is not None
    assert (found.kind, found.columns, found.problem) == ("steps", {"video": "Video", "step": "Step name"}, None)
    assert found.assumptions == ("the column 'Step name' is the step",)


@pytest.mark.parametrize(
    ("header", "kind", "columns"),
    [
        ("Order,Activity,Timestamp", "events", {"activity": "Activity", "time": "Timestamp"}),
        ("File,Step name,Begin", "steps", {"step": "Step name", "start": "Begin"}),
        ("video,step,Step name,End,Stop", "steps", {"video": "video", "step": "step"}),
    ],
)
def test_what_is_found_in_spite_of_a_problem(tmp_path: Path, header: str, kind: str, columns: dict[str, str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\n{','.join('a' * len(header.split(',')))}\n")
    found = preview_table(path)
    assert found is not None
    assert found.problem is not None
    assert (found.kind, found.columns) == (kind, columns)


def test_a_column_that_is_not_to_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("video,step,start,end\nv1,fry,soon,later\n")
    (tmp_path / "a.jsonl").write_text('{"video": "v1", "step": "fry", "start": "soon", "end": "later"}\n')
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InputError, match="start"):
            read(path)
        assert read(path, columns="start=,end=").videos[0].segments == (Segment("fry"),)
    found = preview_table(tmp_path / "a.csv", {"start": "", "end": ""})
    assert found is not None
    assert found.columns == {"video": "video", "step": "step"}
    with pytest.raises(InputError, match="the column 'step' is missing"):
        read(tmp_path / "a.csv", columns="step=")


def test_data_that_has_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "toast.json"
    path.write_text(json.dumps([[0, 1, "take bowl"]]))
    assert preview_table(path) is None
    assert preview_table(tmp_path) is None
    pytest.importorskip("pyarrow")
    (binary,) = write([Task("toast", ["fry"], [Video("v1", [Segment("fry")])])], tmp_path / "toast.parquet")
    assert preview_table(binary) is None
