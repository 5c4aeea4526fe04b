"""`msg2 watch`: a run as JSON lines, compared with the library; bad lines change nothing."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import msg2 as package
from msg2.assist.events import answer_event
from tests.cli.conftest import Msg2

Watch = Callable[..., list[dict]]


@pytest.fixture
def watch(msg2: Msg2, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """`watch([event, …], "graph.json")`: all lines of the answer."""

    def run(events: list[object], *arguments: object) -> list[dict]:
        lines = (event if isinstance(event, str) else json.dumps(event) for event in events)
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        ran = msg2("watch", *arguments)
        assert (ran.code, ran.err) == (0, "")
        return [json.loads(line) for line in ran.out.splitlines()]

    return run


def test_answers_are_those_of_the_library(watch: Watch, graph: Path, table: Path) -> None:
    events = [{"did": "whisk", "at": 1}, {"saw": {"dip": 0.7, "fry": 0.3}, "at": 2.5}, {"plan": "fry"}, {"undo": True}]
    first, *found = watch(events, graph, "--data", table)
    assistant = package.Assistant(package.load(graph), package.read(table, repeats="keep"))
    assert first == {"limitations": {}, **answer_event(assistant, {"ask": True})}
    assert found == [answer_event(assistant, event) for event in events]
    assert found[0]["report"]["mistake"] is False
    assert found[2]["plans"][0]["steps"][-1] == "fry"


def test_bad_lines_are_answered_and_change_nothing(watch: Watch, graph: Path) -> None:
    bad = ["no json", "[]", "{}", {"did": 3}, {"did": "wisk"}, {"did": "dip", "when": 2}, {"did": "dip", "saw": {}}]
    bad += [{"saw": 1}, {"undo": True}, {"plan": "fry", "k": 1.5}, {"ask": True, "now": "soon"}, "[" * 100000]
    bad += [{"did": "dip", "at": True}, {"did": "dip", "confidence": "high"}, {"accept": None}, {"saw": {"dip": [1]}}]
    first, *answers, last = watch([*bad, "", {"ask": True}], graph)
    assert [(set(answer), answer["line"]) for answer in answers] == [
        ({"error", "hint", "line"}, number) for number in range(1, len(bad) + 1)
    ]
    assert last == {key: value for key, value in first.items() if key != "limitations"}
    assert set(first["limitations"]) == {"next", "finished", "plan", "time_left"}


def test_a_byte_order_mark_is_read_over(watch: Watch, graph: Path) -> None:
    _, answer = watch(["\ufeff" + json.dumps({"did": "whisk"})], graph)
    assert answer["progress"] == ["whisk"]


def test_without_standard_input_there_is_the_first_answer_only(command: Path, graph: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", '"$0" watch "$1" <&-', command, graph], capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout)["progress"] == []
    assert ran.stderr == ""


def test_a_run_goes_on_where_it_was_saved(watch: Watch, graph: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    _, before = watch([{"did": "whisk"}], graph, "--save", run)
    first, _ = watch([{"did": "dip"}], graph, "--save", run)
    assert first["progress"] == before["progress"] == ["whisk"]
    assert json.loads(run.read_text())["events"][1] == {"kind": "did", "seen": {"dip": 1.0}, "at": None}


def test_only_so_many_next_steps(watch: Watch, graph: Path) -> None:
    (first,) = watch([], graph, "-k", 2)
    assert len(first["next"]) == 2


def test_an_answer_comes_before_the_next_event(command: Path, graph: Path) -> None:
    """A program that waits for each answer gets it at once."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([command, "watch", graph], text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["progress"] == []
        process.stdin.write('{"did": "whisk"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["progress"] == ["whisk"]
        process.stdin.close()
        assert process.wait(timeout=600) == 0


def test_what_the_run_cannot_be_made_of(msg2: Msg2, graph: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert "no saved run" in msg2("watch", graph, "--save", tmp_path / "run.json").complaint
    assert msg2("watch", graph, "--overlap", "start").code == 2
    assert msg2("watch", tmp_path / "none.json").complaint
