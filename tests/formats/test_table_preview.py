"""The preview of a table: what an app shows when it asks which column is which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import preview_table, read

SAP = "Auftrag;Vorgang;Zeit\n4711;Anlegen;13.05.2024\n4711;Liefern;14.05.2024\n"


def test_a_table_that_needs_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "sap.csv"
    path.write_text(SAP)
    asked = preview_table(path, rows=1)
    assert asked is not None
    assert (asked.kind, asked.header) == ("steps", ("Auftrag", "Vorgang", "Zeit"))
    assert asked.rows == (("4711", "Anlegen", "13.05.2024"),)
    assert asked.problem is not None
    assert asked.problem.startswith("the column 'video' is missing")
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


def test_data_that_has_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "toast.json"
    path.write_text(json.dumps([[0, 1, "take bowl"]]))
    assert preview_table(path) is None
    assert preview_table(tmp_path) is None
