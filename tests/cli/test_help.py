"""`msg2 --help` teaches by example, and shells complete commands and names."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer import rich_utils
from typer.main import get_command

from msg2.assist import RANKERS
from msg2.cli.app import app
from msg2.cli.flags import READING
from msg2.formats.downloads import PUBLIC_DATASETS
from msg2.inference import METHODS
from msg2.simulation import household_worlds

PROGRAM: Any = get_command(app)
COMMANDS = {name: PROGRAM.get_command(None, name) for name in PROGRAM.list_commands(None)}
GROUPS = {group: COMMANDS[group].commands for group in ("features", "states")}
ALL = {f"{group} {name}": command for group, inner in GROUPS.items() for name, command in inner.items()}
ALL |= {name: command for name, command in COMMANDS.items() if name not in GROUPS}
COMMANDS.pop("states")


def test_the_examples_of_the_help_are_commands_that_exist(msg2) -> None:
    text = " ".join(msg2("--help").out.split())
    assert all(name in text for name in COMMANDS)
    examples = re.findall(r"`(msg2 [^`]+)`", get_command(app).help or "")
    assert len(examples) >= 7
    for example in examples:
        _, name, *arguments = shlex.split(example)
        COMMANDS[name].make_context(name, arguments, resilient_parsing="--help" in arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_a_group(name: str) -> None:
    command = COMMANDS[name]
    assert re.search(rf"Examples?: `msg2 {name}", command.help or ""), command.help
    assert command.rich_help_panel in {
        "Data",
        "Learn a graph",
        "Use a graph",
        "From videos to labels",
        "From words to labels",
        "Try and measure",
    }


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(kind: str, shell) -> None:
    done = shell(f"msg2 --show-completion {kind}", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert "_MSG2_COMPLETE" in done.stdout


def test_shells_complete(shell) -> None:
    def completed(words: str) -> list[str]:
        count = len(words.split()) - (not words.endswith(" "))
        line = f'env _MSG2_COMPLETE=complete_bash COMP_WORDS="{words}" COMP_CWORD={count} msg2'
        return shell(line).stdout.split()

    assert completed("msg2 de") == ["demo", "describe"]
    assert completed("msg2 data ") == list(PUBLIC_DATASETS)
    assert completed("msg2 infer x.csv --set de") == ["delta="]
    assert completed("msg2 infer x.csv --method ") == list(METHODS)
    assert completed("msg2 infer x.csv --absent s") == ["skipped"]
    assert completed("msg2 infer x.csv --overlap s") == ["start"]
    assert completed("msg2 next x.csv --ranker ") == list(RANKERS)
    assert completed("msg2 states train x.csv --variant e") == ["evidence"]
    assert completed("msg2 simulate ") == [*(w.name.lower().replace(" ", "-") for w in household_worlds()), "random"]


def test_a_completed_world_is_one(msg2, tmp_path) -> None:
    assert "videos of 'Make Coffee'" in msg2("simulate", "make-coffee", "-o", tmp_path / "out").out


NOTATION = re.compile(r"<[a-z| ]+>|[{]\w+[}]|\[\[|\bBOOL")
"""What only programmers write: types, and the marks of a grammar."""


@pytest.mark.parametrize("name", ["", *COMMANDS, "states", "states train", "states fill", "features import"])
def test_help_is_written_for_people(msg2, name: str) -> None:
    text = msg2(*name.split(), "--help").out
    assert "Usage: msg2" in text
    assert NOTATION.findall(text.replace("{video}", "")) == []  # that is what a user writes
    assert "Usage: msg2 data [NAME] [OPTIONS]" in msg2("data", "--help").out


@pytest.mark.parametrize("name", ALL)
def test_no_command_has_too_many_flags(name: str) -> None:
    """Fifteen at most, beside the shared ones that say how data is read."""
    flags = [one for one in ALL[name].params if one.param_type_name == "option" and one.rich_help_panel != READING]
    shown = [flag.name for flag in flags if flag.name != "help" and not flag.hidden]
    assert len(shown) <= 15, shown


def test_the_help_of_infer_fits_on_a_screen(msg2, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 100)
    rows = msg2("infer", "--help").out.strip("\n").splitlines()
    assert len(rows) <= 40
    assert max(map(len, rows)) <= 100


def test_help_says_which_method_to_take(msg2) -> None:
    for said in (msg2("--help").out, msg2("infer", "--help").out):
        assert "Which method? The default" in " ".join(said.split())
