"""`msg2 watch`: a run as JSON lines, compared with the library; bad lines change nothing."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from inspect import signature
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
    events = [{"did": "whisk", "at": 1}, {"saw": {"dip": 0.7, "fry": 0.3}, "at": 2}, {"plan": "fry"}, {"undo": True}]
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
    *_, last = map(json.loads, run.read_text().splitlines())
    assert last == {"kind": "did", "seen": {"dip": 1.0}, "at": None}


def test_every_option_of_the_assistant_is_a_flag(watch: Watch, graph: Path, table: Path, tmp_path: Path) -> None:
    (tmp_path / "confusion.csv").write_text(
        ",heat,whisk,dip,fry,\nheat,9,0,0,0,1\nwhisk,0,9,0,0,1\ndip,0,0,5,4,1\nfry,0,0,4,5,1\n"
    )
    options = {
        "absent": "unknown",
        "alarm_cost": 3.0,
        "missed": 0.3,
        "confusion": tmp_path / "confusion.csv",
        "window": 2.0,
    }
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    events = [{"did": "whisk", "at": 9}, {"saw": {"fry": 0.7, "dip": 0.2}, "at": 12}, {"did": "dip", "at": 11}]
    run = tmp_path / "run.json"
    _, *answers = watch(events, graph, "--data", table, "--save", run, *flags)
    assistant = package.Assistant(graph, package.read(table, repeats="keep"), **options)
    assert answers == [answer_event(assistant, event) for event in events]
    late, too_late = {"did": "dip", "at": 10.5}, {"did": "dip", "at": 9.5}
    _, *again = watch([late, too_late], graph, "--data", table, "--save", run, *flags)  # a run that goes on has them
    assert again[0] == answer_event(assistant, late)
    assert "2 seconds late" in again[1]["hint"]
    assert set(signature(package.Assistant).parameters) - {"graph", "data", "threshold", "log"} == set(options)


@pytest.mark.parametrize(("threshold", "alarms"), [((), 1), (("--threshold", 0.99), 0)])
def test_the_threshold(watch: Watch, graph: Path, threshold: tuple[object, ...], alarms: int) -> None:
    *_, last = watch([{"did": "fry"}], graph, *threshold)
    assert len(last["alarms"]) == alarms


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
    assert msg2("watch", graph, "--threshold", 0.5, "--alarm-cost", 1).code == 2
    assert msg2("watch", tmp_path / "none.json").complaint


def test_a_byte_that_is_no_text_is_answered_and_the_watch_goes_on(
    msg2: Msg2, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = io.TextIOWrapper(io.BytesIO(b'{"did": "\xff"}\n\xef\xbb\xbf{"did": "whisk"}\n'), "utf-8")
    monkeypatch.setattr("sys.stdin", told)
    _, wrong, right = map(json.loads, msg2("watch", graph).out.splitlines())
    assert (wrong["error"], wrong["line"]) == ("the line is no JSON", 1)
    assert "error" not in right
