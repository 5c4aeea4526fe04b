"""`python -m experiments.scripts`: from scripts to a model, from a model to graphs, and what goes wrong on the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("torch")

from experiments.scripts import __main__
from experiments.scripts.proscript import to_json_lines
from msg2.errors import InputError
from msg2.formats import read_graph
from tests.experiments.scripts.test_script_model import SCRIPTS, base


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def ran(*arguments: object) -> Result:
    """How `python -m experiments.scripts …` ends."""
    return CliRunner().invoke(__main__.app, list(map(str, arguments)))


def complaint(*arguments: object) -> str:
    """What is wrong with the input, by a command that says nothing else."""
    ended = ran(*arguments)
    assert isinstance(ended.exception, InputError), ended
    assert ended.stdout == ""
    return str(ended.exception)


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base(tmp_path_factory.mktemp("scripts") / "t5")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    path.write_text(to_json_lines(SCRIPTS))
    return path


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    path = tmp_path / "steps.csv"
    path.write_text("task,video,step\ntea,v,drink\ntea,v,boil\nbath,w,fill\nbath,w,undress\nbath,w,bathe\n")
    return path


def train(lines: Path, output: Path, t5: Path, **changes: Any) -> Result:
    given = {"base": t5, "epochs": 2, "device": "cpu", **changes}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    return ran("train", lines, "-o", output, *words)


def test_from_scripts_to_graphs(lines: Path, steps: Path, t5: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    trained = train(lines, model, t5)
    assert trained.exit_code == 0, trained
    assert trained.stdout.splitlines()[-1].split()[:3] == ["3", "3", "2"]
    assert {"config.json", "model.safetensors", "scripts.json", "tokenizer.json"} <= {p.name for p in model.iterdir()}
    ordered = ran("order", steps, "--model", model, "-o", tmp_path / "graphs")
    assert ordered.exit_code == 0, ordered
    found = {path.name: read_graph(path) for path in (tmp_path / "graphs").iterdir()}
    assert {name: set(graph.steps) for name, graph in found.items()} == {
        "tea.json": {"drink", "boil"}, "bath.json": {"fill", "undress", "bathe"},
    }  # fmt: skip
    one = tmp_path / "one.json"
    assert ran("order", steps, "--model", model, "-o", one, "--task", "tea", "--beams", 4).exit_code == 0
    assert one.read_text() == (tmp_path / "graphs" / "tea.json").read_text()
    assert json.loads(one.read_text())["method"]["name"] == "scripts"


def test_the_same_command_again_changes_nothing(lines: Path, t5: Path, tmp_path: Path) -> None:
    first = train(lines, tmp_path / "m", t5)
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    assert train(lines, tmp_path / "m", t5).stdout == first.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
    with pytest.raises(InputError, match="holds another training"):
        raise train(lines, tmp_path / "m", t5, seed=1).exception or AssertionError


def test_wrong_input_is_told_and_nothing_is_written(lines: Path, steps: Path, t5: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "row 1" in complaint("train", steps, "-o", out, "--base", t5)
    assert "is not there" in complaint("train", tmp_path / "nowhere.jsonl", "-o", out, "--base", t5)
    assert "none came from the Hugging Face hub" in complaint("train", lines, "-o", out, "--base", "nobody/nothing")
    assert "is not a T5 model" in complaint("order", steps, "--model", tmp_path, "-o", out)
    assert "cannot hold 2 tasks" in complaint("order", steps, "--model", t5, "-o", tmp_path / "g.json")
    assert "is the data" in complaint("order", steps, "--model", t5, "-o", steps, "--task", "tea")
    assert {path.name for path in tmp_path.iterdir()} == {"train.jsonl", "steps.csv"}


def test_options_out_of_range_are_usage_errors(lines: Path, steps: Path, t5: Path, tmp_path: Path) -> None:
    assert train(lines, tmp_path / "m", t5, epochs=0).exit_code == 2
    assert train(lines, tmp_path / "m", t5, learning_rate=-1).exit_code == 2
    assert ran("order", steps, "--model", t5, "-o", tmp_path / "g", "--beams", 0).exit_code == 2


def test_without_pytorch_it_says_what_to_install(steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("experiments.scripts.script_model", "experiments.scripts.script_training"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "pip install 'msg2[video]'" in complaint("order", steps, "--model", "t5", "-o", tmp_path / "g")


@pytest.mark.parametrize("command", ["train", "order"])
def test_every_command_has_an_example(command: str) -> None:
    (callback,) = (one.callback for one in __main__.app.registered_commands if one.callback.__name__ == command)
    assert f"Example: `python -m experiments.scripts {command}" in " ".join(callback.__doc__.split())
