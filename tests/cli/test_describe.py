"""`msg2 describe`, and how results are shown: names are data, whatever the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

ODD_NAMES = ["[bold]x[/bold]", "[/]", ":smile:", "-y", "--json", "back\\slash", "<b>&amp;", "é ☕ 搅拌", "'quoted'"]


def test_a_table_in_words(msg2, table: Path) -> None:
    ran = msg2("describe", table)
    assert ran.code == 0
    assert ran.err == ""
    assert re.search(r"^toast +8 +4 +25 +78% +0 +3 +3$", ran.out, re.MULTILINE)
    assert re.search(r"^heat +12%$", ran.out, re.MULTILINE)


def test_what_looks_wrong(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,start,end\nv,Fry,9,9\nv,fry,2,3\n")
    ran = msg2("describe", path)
    assert "- 1 row in 1 file not in time order; they were sorted\n" in ran.out
    assert "- d: names that look the same: 'Fry', 'fry'\n- d: 1 label of no length\n" in ran.out


def test_as_json_nothing_else_is_on_stdout(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,mood\nv,é,good\nv,b,bad\n")
    ran = msg2("describe", path, "--json")
    assert ran.out.startswith("{")
    assert "é" in ran.out
    [task] = ran.json["tasks"]
    assert (task["task"], task["videos"], task["videos_with_step"]) == ("d", 1, {"b": 1.0, "é": 1.0})
    assert ran.err == f"warning: {path}: columns that are not used: 'mood'\n"


def test_times_at_the_edge_of_numbers(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,start,end\nv,a,-0.0,1.7e308\nw,a, 3 ,1.7e308\nx,b,1e5,1e300\n")
    ran = msg2("describe", path, "--json")
    assert ran.json["tasks"][0]["median_last_end"] == 1.7e308
    assert msg2("describe", path).code == 0


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
    subprocess.run([command, "describe", table], stdout=follower, env=variables, check=True, timeout=60)
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
