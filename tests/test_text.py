"""Names: which are none, and which look the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2 import SubtaskGraph
from msg2.errors import InputError
from msg2.formats import read_all, summarize
from msg2.task import Segment, Task, Video
from msg2.text import escape_control_characters, join_counts, one_line

NO_NAMES = {
    "": "an empty (name|id)",
    " \t": "white space only",
    "\u200b\ufeff ": "white space only",
    "a\0b": "a NUL character",
}


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_are_none_are_refused_everywhere_alike(name: str, tmp_path: Path) -> None:
    for make in (lambda: Segment(name), lambda: Video(name, []), lambda: Task("t", [name], [])):
        with pytest.raises(InputError, match=NO_NAMES[name]):
            make()
    with pytest.raises(InputError, match="steps, entry 1: is not a step name"):
        SubtaskGraph.from_json({"format": "msg2.graph/2", "task": "t", "steps": [name], "preconditions": {}})
    for row in ({"video": name, "step": "a"}, {"video": "v", "step": name}, {"task": name, "video": "v", "step": "a"}):
        (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(InputError, match=f"row 1: .*({NO_NAMES[name]}|is empty)"):
            read_all(tmp_path / "t.jsonl")


@pytest.mark.parametrize(
    "other", ["Flip bread", "flip  bread", "fl\u0456p bread", "flip\u200b bread", "ﬂip bread", "fli\u00adp bread"]
)
def test_names_that_look_the_same_get_a_hint(other: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"video,step\nv,flip bread\nv,{other}\nv,fry\nw,fry\n")
    (found,) = summarize(tmp_path / "t.csv").tasks[0].lookalikes
    assert set(found) == {"flip bread", other}


def test_what_no_file_may_hold_can_be_seen() -> None:
    assert escape_control_characters("boil\x00 water\n\ud800") == "boil␀ water\n�"
    assert (one_line("boil\n  water"), one_line(" ")) == ("boil water", "␣")


def test_counts_beside_names() -> None:
    assert join_counts({"b": 1, "a": 3}) == "'a' (3), 'b' (1)"
