"""How results are shown: names are data, whatever the terminal; progress only where someone is looking."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console

from msg2.cli import console

ODD_NAMES = ["[bold]x[/bold]", "[/]", ":smile:", "-y", "--json", "back\\slash", "<b>&amp;", "é ☕ 搅拌", "'quoted'"]


def test_names_are_shown_as_they_are(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rows = "".join(f'"[red]t[/red]",v{n},"{step}"\n' for n in range(3) for step in ODD_NAMES)
    path.write_text("task,video,step\n" + rows)
    ran = msg2("describe", path)
    assert "[red]t[/red]" in ran.out
    for name in ODD_NAMES:
        assert name in ran.out, name
    shown = msg2("sweep", path, "-o", tmp_path / "s.csv")
    assert shown.out.startswith("[red]t[/red]\n")


def test_control_codes_in_names_are_made_visible(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\nv,\x1b[31mred\x07\nv,b\n")
    ran = msg2("describe", path)
    assert "␛[31mred␇" in ran.out
    assert "\x1b" not in ran.out


def test_a_pipe_has_no_width(msg2, tmp_path: Path) -> None:
    folder = tmp_path / ("long name " * 8) / ("another " * 8)
    folder.mkdir(parents=True)
    (folder / "d.csv").write_text("video,step\nv,a\nv,b\n")
    ran = msg2("infer", folder / "d.csv", "-o", folder / "g.json")
    assert str(folder / "g.json") in ran.out.splitlines()[1]
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_narrow_terminal(command: Path, table: Path, environment: dict[str, str]) -> None:
    leader, follower = pty.openpty()
    variables = {"COLUMNS": "40", "TERM": "xterm", **environment}
    subprocess.run([command, "describe", table], stdout=follower, env=variables, check=True, timeout=600)
    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    rows = [line for line in plain.splitlines() if line.startswith(("toast ", "whisk", "task"))]
    assert all(len(row.rstrip()) <= 40 for row in rows), rows
    assert not re.search(r"\x1b\[(?![01]m)", shown)  # bold, and no colour


def test_an_encoding_that_lacks_the_characters(shell, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("video,step\nv,é☕\nv,b\n", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    ran = shell("msg2 describe d.csv && msg2 infer --help", **ascii_only)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"\xe9\u2615" in ran.stdout
    ran = shell("msg2 describe d.csv --json", **ascii_only)
    assert r'"\u00e9\u2615": 1.0' in ran.stdout
    ran = shell("msg2 describe missing-é.csv", **ascii_only)
    assert ran.returncode == 1
    assert "is not there" in ran.stderr


def test_a_file_name_that_is_no_text(msg2, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("video,step\nv,a\nv,b\n")
    assert msg2("describe", path, "--json").json["tasks"][0]["task"] == "\N{REPLACEMENT CHARACTER}"
    ran = msg2("infer", path, "-o", tmp_path / os.fsdecode(b"\xfe.json"))
    assert ran.code == 0
    assert "\N{REPLACEMENT CHARACTER}.json" in ran.out


# -- progress ---------------------------------------------------------------------------------------------------


def run_on_terminal(arguments: list[str | Path], stream: Literal["stdout", "stderr"]) -> tuple[str, str]:
    """What a program writes to a terminal that is one of its streams; and to the other, which is a pipe."""
    leader, follower = pty.openpty()
    pipe: Literal["stdout", "stderr"] = "stderr" if stream == "stdout" else "stdout"
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    shown = bytearray()

    def read() -> None:  # meanwhile: a terminal holds a few kilobytes, and who writes more waits
        with suppress(OSError):  # the other end is closed
            while part := os.read(leader, 4096):
                shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    streams = {stream: follower, pipe: subprocess.PIPE}
    done = subprocess.run(arguments, **streams, env=environment, check=True, timeout=600)
    os.close(follower)
    reader.join(timeout=600)
    os.close(leader)
    return shown.decode(), getattr(done, pipe).decode()


def test_a_bar_is_shown_where_someone_is_looking_and_leaves_nothing(command: Path, many: Path, tmp_path: Path) -> None:
    learn = [command, "infer", many, "-o", tmp_path / "graphs", "--samples", "30"]  # it takes a while
    shown, result = run_on_terminal(learn, "stderr")
    assert "learning" in shown
    assert "3/3" in shown
    assert "repot-plant.json" in result
    assert "\x1b" not in result
    assert "learning" not in result
    shown, remarks = run_on_terminal(learn, "stdout")
    assert "repot-plant.json" in "".join(shown.split())  # a long path is folded on a terminal
    assert "learning" not in shown + remarks, "nobody is looking at stderr: there is no bar"


def test_no_bar_goes_into_a_pipe(msg2, many: Path, tmp_path: Path) -> None:
    for arguments in (
        ("infer", many, "-o", tmp_path / "graphs", "--samples", 2),
        ("sweep", many, "-o", tmp_path / "sweep.csv", "--task", "Make Coffee"),
        ("next", many, "--evaluate", "--splits", 1),
    ):
        ran = msg2(*arguments)
        assert ran.code == 0
        assert "\x1b" not in ran.out + ran.err
        assert not re.search(r"learning|sweeping|evaluating|\d/\d", ran.err)


def test_a_bar_begins_anew_with_the_next_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done in one task says nothing about the speed of the next."""
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(console, "err", screen)
    monkeypatch.setattr(console, "SHOWN_AFTER_SECONDS", 0)
    with console.progress_bar("training") as progress:
        for task in ("tea", "coffee"):
            for epoch in range(1, 4):
                progress(epoch, 3, f"{task}: epoch {epoch}")
        screen.file.flush()
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "3/3" in shown
    assert "coffee: epoch 3" in shown


@pytest.mark.parametrize(("seconds", "shown"), [(0, True), (60, False)])
def test_work_that_says_nothing_has_a_bar_unless_it_is_short(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shown: bool
) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(console, "err", screen)
    monkeypatch.setattr(console, "SHOWN_AFTER_SECONDS", seconds)
    with console.progress_bar("checking"):
        pass
    assert ("checking" in screen.file.getvalue()) == shown  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [
    ["describe", "DATA"], ["check", "GRAPH", "DATA"], ["check", "GRAPH", "DATA", "--online"],
    ["convert", "DATA", "-o", "OUT"], ["next", "GRAPH", "--data", "DATA"], ["plan", "GRAPH", "--goal", "fry"],
    ["evaluate", "GRAPH", "--truth", "GRAPH"], ["compare", "GRAPH", "GRAPH"], ["show", "GRAPH", "-o", "PICTURE"],
], ids=" ".join)  # fmt: skip
def test_everything_that_can_take_long_has_a_bar(
    msg2, table: Path, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(console, "err", screen)
    monkeypatch.setattr(console, "SHOWN_AFTER_SECONDS", 0)
    paths = {"DATA": table, "GRAPH": graph, "OUT": tmp_path / "out.tsv", "PICTURE": tmp_path / "g.svg"}
    assert msg2(*(paths.get(word, word) for word in arguments)).code == 0
    assert "0:00:0" in screen.file.getvalue()  # type: ignore[attr-defined]
