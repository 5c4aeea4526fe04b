"""The core alone: every command that a newcomer runs works where no optional package can be imported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

from benchmarks.install_size import normalized, required

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMANDS = {
    "simulate": "simulate 'Make Coffee' --videos 12 -o world",
    "describe": "describe world/steps.csv",
    "infer": "infer world/steps.csv -o graph.json --samples 2",
    "infer as in the paper": "infer world/steps.csv -o paper.json --method msg2",
    "show a page": "show graph.json -o graph.html --data world/steps.csv",
    "show a vector picture": "show graph.json -o graph.svg",
    "show a picture of dots": "show graph.json -o graph.png",
    "show a document": "show graph.json -o graph.pdf",
    "explain": "explain graph.json",
    "compare": "compare graph.json paper.json -o compared.svg",
    "evaluate": "evaluate graph.json --truth world/truth.json --data world/steps.csv",
    "check": "check graph.json world/steps.csv",
    "check online": "check graph.json world/steps.csv --online",
    "next": "next graph.json --data world/steps.csv",
    "next, evaluated": "next world/steps.csv --evaluate",
    "watch": "watch graph.json --data world/steps.csv",
    "plan": "plan graph.json --data world/steps.csv --goal 'remove dripper'",
    "merge": "merge graph.json paper.json -o merged.json",
    "sweep": "sweep world/steps.csv -o sweep.csv",
    "demo": "demo -o demo",
    "convert to JSON Lines": "convert world/steps.csv -o steps.jsonl",
    "convert to ELAN": "convert world/steps.csv -o steps.eaf",
}
LACKING = {
    "processes of Ray": ("infer world/steps.csv -o ray.json --engine ray --jobs 2 --samples 4", "--engine ray"),
    "serve": ("serve", "the web app"),
}

PROGRAM = """
import contextlib, importlib.machinery, io, json, shlex, sys

blocked = set(json.loads(sys.argv[1]))


class OnlyTheCore(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in blocked else super().find_spec(name, path, target)


sys.meta_path = [OnlyTheCore if one is importlib.machinery.PathFinder else one for one in sys.meta_path]
from msg2.cli import main

answers = {}
for name, command in json.loads(sys.argv[2]).items():
    sys.argv, sys.stdin = ["msg2", *shlex.split(command)], io.StringIO()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            answers[name] = ended.code or 0, err.getvalue()
print(json.dumps(answers))
"""


def not_in_the_core() -> list[str]:
    """Names of the packages that can be imported here and come with no distribution of the core."""
    needed = [re.split(r"[^\w-]", each)[0] for each in PROJECT["dependencies"]]
    installed = {normalized(each.name): each for each in distributions()}
    core = {"msg2"}.union(*(required(installed, name) for name in needed))
    homes = packages_distributions()
    return sorted(name for name, of in homes.items() if not core & set(map(normalized, of)))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit status and messages of every command, all run in one process without optional packages."""
    commands = COMMANDS | {name: command for name, (command, _) in LACKING.items()}
    blocked = not_in_the_core()
    assert {"torch", "matplotlib", "fastapi", "pandas"} <= set(blocked)
    assert not {"numpy", "networkx", "pygraphviz", "rich", "typer", "msg2"} & set(blocked)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(blocked), json.dumps(commands)], check=False, capture_output=True,
        text=True, cwd=tmp_path_factory.mktemp("core"), env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, tuple[int, str]] = json.loads(ran.stdout)
    return found


def test_commands_work_in_the_core(answers: dict[str, tuple[int, str]]) -> None:
    assert {name: answers[name] for name in COMMANDS if answers[name][0] != 0} == {}


def test_what_needs_a_part_says_which(answers: dict[str, tuple[int, str]]) -> None:
    for name, (_, doing) in LACKING.items():
        code, said = answers[name]
        assert code == 1
        assert f"msg2: {doing}" in said
        extra = re.search(r"\n  pip install 'msg2\[(\w+)\]'\n$", said)
        assert extra is not None, said
        assert extra[1] in PROJECT["optional-dependencies"]
