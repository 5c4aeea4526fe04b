"""The commands that take `--engine`: on a local Ray cluster they write what they write here."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import pytest

from msg2.formats import write
from msg2.task import Segment, Task, Video

COMMAND = Path(sys.executable).with_name("msg2")
RUNS = [["boil", "pour", "stir"], ["boil", "stir", "pour"], ["pour", "boil"]]


def make_parts(folder: Path) -> Path:
    folder.mkdir()
    for part in range(3):
        videos = [Video(f"v{part}{number}", map(Segment, RUNS[(part + number) % 3])) for number in range(8)]
        write(Task("tea", ["boil", "pour", "stir"], videos), folder / f"part-{part}.csv")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'msg2[ray]')")
def test_a_local_ray_gives_the_same_bytes(tmp_path: Path, apart) -> None:
    parts = make_parts(tmp_path / "tea")
    said = {}
    # A socket's path must be short: the temporary folder of the tests may not be.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        for engine in ("local", "ray"):
            graph = tmp_path / f"{engine}.json"
            options = ("--engine", engine, "--jobs", 2)
            for command in (
                ("infer", parts, "-o", graph, "--samples", 4),
                ("check", tmp_path / "local.json", parts, "--json"),
            ):
                program = apart.start(COMMAND, *command, *options, RAY_TMPDIR=folder)
                out, complaint = program.communicate(timeout=600)
                assert (program.returncode, complaint.replace(str(tmp_path), "")) == (0, "")
                said[engine, command[0]] = out.replace(engine, "")
        assert not apart.running(patience=10)
    assert (tmp_path / "local.json").read_bytes() == (tmp_path / "ray.json").read_bytes()
    assert said["local", "check"] == said["ray", "check"]


@pytest.mark.parametrize("command", ["infer", "check", "label", "features"])
def test_an_unknown_engine_is_refused(command: str, msg2) -> None:
    arguments = {"check": ("g.json", "d.csv")}.get(command, ("data", "-o", "out.csv"))
    result = msg2(command, *arguments, "--engine", "steam")
    assert result.code == 2
    assert "it is 'steam', it must be one of local, ray" in " ".join(result.err.replace("│", "").split())
