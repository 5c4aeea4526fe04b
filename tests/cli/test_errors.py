"""What goes wrong: exit codes, one to three lines, and nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msg2.inference import inference

GRAPH = {"format": "msg2.graph/1", "task": "t", "steps": ["a", "b"], "preconditions": {"b": "a"}}

# -- wrong input ------------------------------------------------------------------------------------------------

GRAPHS: dict[str, tuple[object, str]] = {
    "empty": ("", "is not a graph file"),
    "a table": ("video,step\nv,a\n", "is not a graph file"),
    "bytes": (b"\xff\x00", "is not UTF-8 text"),
    "a list": ([], ".json: is not a JSON object"),
    "another version": ({**GRAPH, "format": "msg2.graph/9"}, "format: is 'msg2.graph/9'"),
    "NaN": ('{"format": "msg2.graph/1", "evidence": NaN}', "has NaN"),
    "too large": ('{"format": "msg2.graph/1", "evidence": 1e999}', "has the number '1e999', which is too large"),
    "a key twice": ('{"format": "msg2.graph/1", "format": 1}', "the key 'format' is there twice"),
    "half a character": ('{"format": "msg2.graph/1", "task": "\\ud800"}', "half of a surrogate pair"),
    "deep": ("[" * 100_000, "is nested too deeply"),
    "a cycle": ({**GRAPH, "preconditions": {"a": "b", "b": "a"}}, "form a cycle: 'a' needs 'b' needs 'a'"),
    "an unknown step": ({**GRAPH, "preconditions": {"b": "z\n" * 5000}}, "is not among the steps of the graph"),
    "an unknown key": ({**GRAPH, "preconditions": {"z\n" * 5000: "a"}}, "is not among the steps of the graph"),
    "no formula": ({**GRAPH, "preconditions": {"b": {"xor": ["a"]}}}, "preconditions of 'b': is not a formula"),
    "an empty list": ({**GRAPH, "preconditions": {"b": {"all": []}}}, "preconditions of 'b': must be a list"),
    "a number": ({**GRAPH, "steps": ["a", 7]}, "steps, entry 2: is not a step name"),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_no_graph(msg2, tmp_path: Path, kind: str) -> None:
    content, expected = GRAPHS[kind]
    path, table = tmp_path / "g.json", tmp_path / "d.csv"
    content = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table.write_text("video,step\nv,a\n")
    for arguments in (
        ("next", path),
        ("show", path, "-o", tmp_path / "x.svg"),
        ("evaluate", path, "--truth", path, "--json"),
        ("check", path, table, "-o", tmp_path / "x.svg", "--json"),
    ):
        complaint = msg2(*arguments).complaint
        assert str(path) in complaint
        assert expected in complaint
        assert len(complaint) < 2000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "g.json"]


DATA: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "bytes": (os.urandom(2000), ""),
    "a graph": (json.dumps(GRAPH), "is a graph, not data"),
    "hexadecimal": ("video,step,start,end\nv,a,0x1,0x2\n", "row 2: the start '0x1' is not a number"),
    "thousands": (
        'video,step,start,end\nv,a,0,"1,000"\n',
        "row 2: the end '1,000' has a decimal comma",
    ),
    "infinity": ("video,step,start,end\nv,a,0,inf\n", "row 2: the end inf is not a finite number"),
    "half a character": ('{"video": "v", "step": "\\udfff"}\n', "row 1: has half of a surrogate pair"),
    "a warning before it": ("video,step,x,start,end\nv,a,,0,1\nv,b,,2,1\n", "row 3: step 'b' ends at 1"),
}


@pytest.mark.parametrize("kind", DATA)
def test_no_data(msg2, tmp_path: Path, kind: str) -> None:
    content, expected = DATA[kind]
    path, out = tmp_path / "d.csv", tmp_path / "out"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for arguments in (
        ("describe", path, "--json"),
        ("infer", path, "-o", out, "--stats", tmp_path / "stats.csv"),
        ("sweep", path, "-o", out),
        ("next", path, "--evaluate"),
    ):
        complaint = msg2(*arguments).complaint
        assert str(path) in complaint
        assert expected in complaint
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


def test_remarks_do_not_stand_beside_an_error(msg2, tmp_path: Path) -> None:
    """Three tasks of one video each would give two warnings each before the second command fails."""
    path = tmp_path / "d.csv"
    path.write_text("task,video,step,mood\n" + "".join(f"t{n},v,{step},x\n" for n in range(3) for step in "ab"))
    assert msg2("infer", path, "-o", tmp_path / "out").err.count("warning: ") == 7
    assert "none can be held out" in msg2("next", path, "--evaluate").complaint


def test_a_remark_is_one_line(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('task,video,step\n"two\nlines",v,a\n"two\nlines",v,b\n')
    said = msg2("infer", path, "-o", tmp_path / "g.json").err.splitlines()
    assert said
    assert all("two lines: " in line for line in said)


def test_more_samples_than_anybody_waits_for(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\nv,a\nv,b\n")
    found = msg2("infer", path, "-o", tmp_path / "g.json", "--samples", "100000000000")
    assert (found.code, "1,000,000" in found.err) == (2, True)


def test_paths_that_are_not_there(msg2, tmp_path: Path) -> None:
    for path in (tmp_path / "no.csv", tmp_path / "new\nline\x1b.csv", tmp_path / ("x" * 300), tmp_path / "[/]"):
        for arguments in (("describe", path), ("next", path), ("infer", path, "-o", tmp_path / "g.json")):
            assert "\x1b" not in msg2(*arguments).complaint
    (tmp_path / "empty").mkdir()
    assert "nothing that msg2 reads" in msg2("describe", tmp_path / "empty").complaint
    assert "is a folder, not a graph file" in msg2("next", tmp_path / "empty").complaint


def test_a_task_that_is_not_there_or_not_one(msg2, many: Path, tmp_path: Path) -> None:
    assert "choose one of: 'Make Coffee'" in msg2("infer", many, "-o", tmp_path / "g", "--task", "tea").complaint
    twins = tmp_path / "twins.csv"
    twins.write_text("task,video,step\nTea,v,a\nTEA,v,a\n")
    assert "holds 2 tasks that could be 'tea'" in msg2("infer", twins, "-o", tmp_path / "g", "--task", "tea").complaint
    assert [path.name for path in tmp_path.iterdir()] == ["twins.csv"]


# -- wrong usage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        "delta=2", "delta=nan", "delta=0,9", "delta=", "delta=AUTO", "alpha=inf", "alpha=-1", "alpha=x", "recency=0",
        "max-literals=0", "max_literals=1.5", "max_literals=auto", "exclude_relatives=perhaps", "colour=red", "delta",
        "--seed=-1", "--seed=x", "--jobs=0", "--jobs=-1", "--jobs=1.5",
        "--method=[/]", "--method=[bold]x[/bold]", "--method=", "--overlap=x", "--repeats=x", "--order=x", "--unknown",
    ],
)  # fmt: skip
def test_options_out_of_range(msg2, table: Path, tmp_path: Path, option: str) -> None:
    given = [option] if option.startswith("--") else ["--set", option]
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", "msg2", *given)
    assert (ran.code, ran.out) == (2, "")
    assert "msg2 infer -h" in ran.err
    name, _, value = option.removeprefix("--").partition("=")
    assert name in ran.err or name.replace("-", "_") in ran.err
    assert value in ran.err or name in ("seed", "jobs", "colour")
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


@pytest.mark.parametrize(
    "option", ["absent=x", "absent=", "levels=2", "levels=x", "starts=-1", "candidates=0", "tolerance=0"]
)
def test_options_of_the_default_method_out_of_range(msg2, table: Path, tmp_path: Path, option: str) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--set", option)
    assert (ran.code, ran.out) == (2, "")
    assert f"{option.partition('=')[0]} is" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


@pytest.mark.parametrize("command", ["infer", "next", "run"])
def test_the_default_method_has_no_delta_and_says_who_has(msg2, table: Path, tmp_path: Path, command: str) -> None:
    more = ("--evaluate",) if command == "next" else ("-o", tmp_path / "out")
    ran = msg2(command, table, *more, "--set", "delta=0.9")
    assert (ran.code, ran.out) == (2, "")
    assert "the method 'likelihood' has no option 'delta'" in ran.err
    assert "msg2 and always-before have it" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


def test_options_that_a_method_does_not_have(msg2, table: Path, tmp_path: Path) -> None:
    for method in ("msgi", "msgi+"):
        ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", method, "--set", "delta=0.5")
        assert ran.code == 2
        assert f"the method '{method}' has no option 'delta'" in ran.err
    assert msg2("infer", table, "-o", tmp_path / "g", "--method", "always-before", "--set", "alpha=1").code == 2
    assert "takes no order" in msg2("infer", table, "-o", tmp_path / "g", "--order", "time").complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["infer"],
        ["infer", "toast.csv"],
        ["next", "toast.json", "--ranker", "bigram"],
        ["next", "toast.json", "--set", "delta=0.5"],
        ["next", "toast.json", "--method", "msgi"],
        ["next", "toast.json", "--splits", "3"],
        ["next", "toast.csv", "--evaluate", "--done", "whisk"],
        ["next", "toast.csv", "--evaluate", "--splits", "0"],
        ["next", "toast.csv", "--evaluate", "--ranker", "x"],
        ["next", "toast.csv", "--evaluate", "--ranker", "bigram", "--method", "msgi"],
        ["evaluate", "toast.json", "--truth", "toast.json", "--overlap", "start"],
    ],
)
def test_arguments_that_do_not_go_together(
    msg2, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = msg2(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Error" in ran.err


def test_help_and_version(msg2) -> None:
    from msg2 import __version__

    assert msg2("--version").out == f"msg2 {__version__}\n"
    overview = msg2("-h").out
    for name in ("demo", "describe", "infer", "sweep", "evaluate", "next", "check", "show", "simulate"):
        assert name in overview
        assert "Example" in msg2(name, "--help").out or name == "demo"


# -- output that cannot be written ------------------------------------------------------------------------------


def test_results_that_cannot_be_written(msg2, table: Path, graph: Path, many: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for out in (table / "g.json", "/proc/none/g.json", "/dev/full", tmp_path / ("x" * 300)):
        assert str(out)[:200] in msg2("infer", table, "-o", out).complaint
        assert msg2("show", graph, "-o", f"{out}.svg" if "full" not in str(out) else "/proc/none/x.svg").complaint
        assert msg2("simulate", "Make Coffee", "-o", out).complaint
    assert msg2("check", graph, table, "-o", tmp_path / "no" / ("x" * 300 + ".svg")).complaint
    assert msg2("infer", many, "-o", table).complaint
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_all_results_or_none(msg2, table: Path, many: Path, tmp_path: Path) -> None:
    (tmp_path / "graphs" / "perform-cpr.json").mkdir(parents=True)
    assert "is a folder" in msg2("infer", many, "-o", tmp_path / "graphs").complaint
    assert [path.name for path in (tmp_path / "graphs").iterdir()] == ["perform-cpr.json"]
    ran = msg2("infer", table, "-o", tmp_path / "new" / "g.json", "--stats", "/proc/none/stats.csv")
    assert "/proc/none/stats.csv" in ran.complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graphs", "toast.csv"]


def test_results_never_replace_the_data_or_one_another(msg2, table: Path, tmp_path: Path) -> None:
    data = table.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for arguments in (("infer", table, "-o", link), ("sweep", link, "-o", table), ("infer", table, "-o", table)):
        assert "is the data" in msg2(*arguments).complaint
    same = tmp_path / "x.svg"
    assert "two results" in msg2("sweep", table, "-o", same).complaint
    assert "two results" in msg2("infer", table, "-o", same, "--stats", same).complaint
    assert table.read_bytes() == data
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "toast.csv"]


def test_a_device_stays_a_device(msg2, table: Path) -> None:
    assert msg2("infer", table, "-o", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("line", ["describe toast.csv", "describe toast.csv --json", "--version", "infer --help"])
def test_a_full_disk_behind_stdout(shell, table: Path, line: str) -> None:
    ran = shell(f"msg2 {line} > /dev/full")
    assert (ran.returncode, ran.stderr) == (1, "msg2: No space left on device\n")


def test_a_reader_that_has_enough(shell, table: Path) -> None:
    rows = "".join(f"v{n},step {n},{n},{n}\n" for n in range(5000))
    table.write_text("video,step,start,end\n" + rows)
    for arguments in ("", "--json"):
        ran = shell(f"msg2 describe toast.csv {arguments} | head -1")
        assert ran.stderr == ""
        assert ran.stdout.count("\n") == 1
    assert shell("msg2 describe toast.csv >&-").stderr == ""


# -- what nobody foresaw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyError("x\ny"), RecursionError("deep"), MemoryError(), AssertionError()])
def test_an_error_that_nobody_foresaw_is_one_line(
    msg2, table: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("msg2.cli.describe.summarize", fail)
    monkeypatch.delenv("MSG2_TRACEBACK")
    complaint = msg2("describe", table).complaint
    said = "not enough memory" if isinstance(error, MemoryError) else f"nobody foresaw ({type(error).__name__}"
    assert said in complaint
    with pytest.raises(type(error)):
        msg2("--traceback", "describe", table)


def test_an_input_that_may_not_be_read_is_no_usage_error(msg2, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "access", lambda path, mode, **_: str(path) != str(table))
    monkeypatch.setattr(Path, "open", refuse)
    for arguments in (
        ("describe", table),
        ("next", table),
        ("convert", table, "-o", "x.eaf"),
        ("merge", table, "-o", "x"),
    ):
        assert "cannot be read (Permission denied)" in msg2(*arguments).complaint


# -- interruption -----------------------------------------------------------------------------------------------


def interrupted(arguments: list[str | Path], when: Callable[[], bool], **options: object) -> tuple[int, str, str]:
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    ) as process:  # type: ignore[call-overload]
        start = time.monotonic()
        while not when() and time.monotonic() < start + 600:
            time.sleep(0.002)  # the whole program may take less than 0.1 s
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers hear it too
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_is_one_line(command: Path, tmp_path: Path, jobs: str) -> None:
    path = tmp_path / "big.csv"
    rows = (f"t{task},v{video},{7 * n % 1500}\n" for task in range(3) for video in range(3) for n in range(1500))
    path.write_text("task,video,step\n" + "".join(rows))
    started = time.monotonic()
    arguments = [command, "infer", path, "-o", tmp_path / "out", "--jobs", jobs]
    ended = interrupted(arguments, lambda: time.monotonic() > started + 1.2)
    assert ended == (130, "", "msg2: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["big.csv"]


@pytest.mark.parametrize(
    "arguments", [["--version"], ["show", "toast.json", "-o", "toast.svg"]], ids=["import", "show"]
)
def test_an_interrupt_at_any_moment_is_one_line(command: Path, graph: Path, arguments: list[str]) -> None:
    """From the start of the program to its end, Python's own first moments apart."""
    times = []
    for _ in range(3):  # the first may be slow
        began = time.monotonic()
        subprocess.run([command, *arguments], cwd=graph.parent, check=True, capture_output=True)
        times.append(time.monotonic() - began)
    whole = min(times)
    ends = set()
    for share in (0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0):
        due = time.monotonic() + min(0.05, whole / 2) + share * whole
        code, _, err = interrupted([command, *arguments], lambda due=due: time.monotonic() > due, cwd=graph.parent)
        assert (code, err) in ((130, "msg2: interrupted\n"), (0, "")), share
        ends.add(code)
    assert 130 in ends


def test_an_interrupt_that_python_cannot_raise_comes_again(command: Path) -> None:
    """In a finalizer, Python prints a traceback and goes on."""
    program = """
import os, signal, time
from msg2.cli import app
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
def run(**_):
    Finalized()
    time.sleep(10)
    print("not reached")
app.get_command = lambda commands: run
app.main()
"""
    ran = subprocess.run([command.with_name("python"), "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "msg2: interrupted\n")


def test_what_an_interrupt_leaves_half_made_has_nothing_to_say(command: Path) -> None:
    """asyncio complains of an event loop whose making was interrupted, when it is collected."""
    program = """
import os, signal, time
from msg2.cli import app
class Loop:
    def __init__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        self.closed = False
    def __del__(self):
        assert not self.closed
def run(**_):
    Loop()
app.get_command = lambda commands: run
app.main()
"""
    ran = subprocess.run([command.with_name("python"), "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "msg2: interrupted\n")


def test_an_interrupt_that_somebody_takes_for_a_failure(command: Path) -> None:
    program = """
import os, signal, time
from msg2.cli import app
def run(**_):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except BaseException as error:
        raise ImportError("numpy") from None
app.get_command = lambda commands: run
app.main()
"""
    ran = subprocess.run([command.with_name("python"), "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "msg2: interrupted\n")


def test_a_worker_that_is_killed(msg2, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_learn", _die)
    ran = msg2("infer", many, "-o", tmp_path / "out", "--jobs", 2)
    assert "take fewer --jobs" in ran.complaint
    assert list(tmp_path.iterdir()) == []


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
