"""Names of version 0.1: each is gone, its sentence names one that exists, and other names are as unknown as before."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import msg2
from msg2.cli.app import app
from msg2.renamed import RENAMED, RENAMED_COMMANDS


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_gone_and_its_import_names_the_new_one(old: str) -> None:
    module, _, name = old.rpartition(".")
    assert name not in vars(importlib.import_module(module))
    for code in (f"import {old}", f"from {module} import {name}", f"from {old} import anything"):
        with pytest.raises(ModuleNotFoundError) as caught:
            exec(code, {})
        assert f"'{old}' of version 0.1 is now {RENAMED[old]}" in str(caught.value)


@pytest.mark.parametrize("new", [new for new in RENAMED.values() if new.startswith("msg2.")])
def test_a_new_name_exists(new: str) -> None:
    module, _, name = new.partition(",")[0].rpartition(".")
    parent = importlib.import_module(module)
    assert hasattr(parent, name) or importlib.import_module(f"{module}.{name}")


def test_an_attribute_of_the_package_names_the_new_one() -> None:
    with pytest.raises(AttributeError, match=r"'msg2\.read_graph' of version 0\.1 is now msg2\.load"):
        _ = msg2.read_graph  # type: ignore[attr-defined]
    assert not hasattr(msg2, "read_graph")


def test_unknown_names_are_as_unknown_as_before() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'msg2\.nothing'"):
        importlib.import_module("msg2.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'msg2'"):
        exec("from msg2 import nothing", {})


def test_reloading_the_package_adds_no_second_finder() -> None:
    code = (
        "import importlib, sys, msg2; importlib.reload(msg2);"
        "print(sum(type(finder).__name__ == 'RenamedNameFinder' for finder in sys.meta_path))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("old", RENAMED_COMMANDS)
def test_an_old_command_names_what_there_is_instead(old: str) -> None:
    done = CliRunner().invoke(app, [old, "next-step"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert f"is now {RENAMED_COMMANDS[old]}" in done.output
    unknown = CliRunner().invoke(app, ["experimentt"], env={"COLUMNS": "200"})
    assert unknown.exit_code == 2
    assert "version 0.1" not in unknown.output
