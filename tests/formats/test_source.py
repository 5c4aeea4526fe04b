"""A JSON document is parsed once, however many readers look at it, and forgotten after reading."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import read_all, read_graph, summarize, write
from msg2.formats.registry import find_reader
from msg2.formats.source import Source
from msg2.task import Segment, Task, Video

COIN = {"database": {"v1": {"class": "toast", "annotation": [{"label": "fry", "segment": [1, 2.5]}]}}}
LABEL_STUDIO = [{"data": {"video": "a.mp4"}, "predictions": [{"result": []}]}, {"data": {"id": "b"}, "annotations": []}]
KEYSTEPS = {
    "annotations": {
        "t": {
            "take_name": "v",
            "scenario": "tea",
            "segments": [{"step_name": "boil", "start_time": 0, "end_time": 1}],
        }
    }
}


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all JSON texts that are parsed."""
    lengths: list[int] = []
    original = json.JSONDecoder.decode

    def decode(self: json.JSONDecoder, text: str, *arguments: Any) -> Any:
        lengths.append(len(text))
        return original(self, text, *arguments)

    monkeypatch.setattr(json.JSONDecoder, "decode", decode)
    return lengths


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("document", [COIN, LABEL_STUDIO, KEYSTEPS], ids=["coin", "label studio", "keysteps"])
def test_a_document_is_parsed_once(document: Any, indent: int | None, tmp_path: Path, parses: list[int]) -> None:
    path = tmp_path / "data.json"
    path.write_text(text := json.dumps(document, indent=indent))
    for read in (read_all, summarize):
        parses.clear()
        read(path)
        assert [length for length in parses if length > 5] == [len(text)]
    parses.clear()
    (tmp_path / "notes.json").write_text(json.dumps({"other": [1, 2, 3]}, indent=indent))
    read_all(tmp_path)
    assert sum(length == len(text) for length in parses) == 1
    assert sum(length > 5 for length in parses) == 2


def test_a_document_that_nobody_reads_is_parsed_once_too(tmp_path: Path, parses: list[int]) -> None:
    path = tmp_path / "data.json"
    path.write_text(text := '{"some": "thing"}')
    with pytest.raises(InputError, match="is JSON, but in no layout that msg2 reads"):
        read_all(path)
    assert parses == [len(text)]
    path.write_text(text := '{"steps": {"1": "boil", "2": "pour"}, "edges": [["1", "2"]]}')
    parses.clear()
    read_graph(path)
    assert parses == [len(text)]


def test_recognising_and_reading_share_the_document(tmp_path: Path, parses: list[int]) -> None:
    path = tmp_path / "data.json"
    path.write_text(text := json.dumps(COIN))
    source = Source.at(path)
    assert find_reader(source).description == "COIN (JSON)"
    assert [task.name for task in read_all(source)] == ["toast"]
    assert parses == [len(text)]


def test_the_document_does_not_outlive_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.json").write_text(json.dumps(COIN))
    seen: list[weakref.ref[Source]] = []
    original = Source.document.func  # type: ignore[attr-defined]

    def document(self: Source) -> Any:
        seen.append(weakref.ref(self))
        return original(self)

    monkeypatch.setattr(Source, "document", property(document))
    for path in (tmp_path, tmp_path / "data.json"):
        tasks = read_all(path)
        assert tasks
        assert seen
        assert all(reference() is None for reference in seen)


def test_one_row_of_json_lines_is_a_table_and_not_a_document(tmp_path: Path) -> None:
    task = Task("toast", ["fry"], [Video("v1", [Segment("fry", 0.5, 2)])])
    (path,) = write(task, tmp_path / "steps.jsonl")
    assert len(path.read_text().splitlines()) == 1
    assert read_all(path) == [task]
    path.write_text('{"video": "v1", "step": "fry", "step": "flip"}\n')  # recognised, then refused with its row
    with pytest.raises(InputError, match=r"steps\.jsonl, row 1: the key 'step' is there twice"):
        read_all(path)
