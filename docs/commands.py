"""Writes the pages about the commands, `docs/commands.md` and `docs/commands/`, from the same source as `--help`.

python docs/commands.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument
from typer.main import get_command

from msg2.cli.app import app
from msg2.cli.flags import list_settings
from msg2.states.configuration import STATE_OPTIONS

FOLDER = Path(__file__).parent
FILES = {
    "Try and measure": "try-and-measure",
    "Data": "data",
    "Learn a graph": "learn",
    "Use a graph": "use",
    "From videos to labels": "videos",
    "From words to labels": "drafts",
}
"""The page of every group of commands."""
_HEAD = """# Commands

Every command and its options, made from the same source as `--help`. A command reads files in any format of
[Your data and formats](formats.md), and writes whole files or none. Exit 0: done; 1: the input is wrong; 2: wrong
usage; 130: interrupted. `msg2 --install-completion` lets your shell complete commands, options and their values.
"""


def command_pages() -> dict[Path, str]:
    """The text of every page: an overview, and one page for each group of commands."""
    groups: dict[str, list[tuple[str, Any]]] = {group: [] for group in FILES}
    for name, command, group in _commands():
        groups[group].append((name, command))
    overview = [_HEAD]
    pages = {}
    for group, commands in groups.items():
        rows = [
            (f"[`{name}`](commands/{FILES[group]}.md#{name.replace(' ', '-')})", _first(command))
            for name, command in commands
        ]
        overview.append(f"## {group}\n\n{_table(rows)}")
        sections = [section for name, command in commands for section in _section(name, command)]
        pages[FOLDER / f"commands/{FILES[group]}.md"] = "\n".join([f"# {group}\n", *sections])
    return {FOLDER / "commands.md": "\n".join(overview), **pages}


def _commands() -> Iterator[tuple[str, Any, str]]:
    """Every command with its whole name and its group; those of `msg2 states` belong to the group of that."""
    program: Any = get_command(app)
    for name in program.list_commands(None):
        command = program.get_command(None, name)
        for inner, subcommand in getattr(command, "commands", {"": command}).items():
            yield f"msg2 {name} {inner}".strip(), subcommand, command.rich_help_panel


def _first(command: Any) -> str:
    return str(command.help).split("\n\n")[0].replace("\n", " ")


def _section(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    yield f"## {name}\n"
    yield f"```text\n{' '.join([name, *command.collect_usage_pieces(context)])}\n```\n"
    yield f"{command.help}\n"
    parameters = [parameter for parameter in command.get_params(context) if parameter.name != "help"]
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in parameters:
        panels.setdefault(parameter.rich_help_panel or "", []).append(_row(parameter, context))
    for panel, rows in panels.items():
        yield f"{panel and f'*{panel}*'}\n\n{_table(rows)}".lstrip()
    if name == "msg2 infer":
        yield from _methods()
    if name == "msg2 states train":
        yield "### Options of state models\n"
        yield "`--set NAME=VALUE`, also of `msg2 run`; `msg2 states train --set help` prints the same.\n"
        yield _table(
            (f"`{name}={spec.default_text}`", f"{spec.help} {_sentence(spec.values)}")
            for name, (_, spec) in STATE_OPTIONS.items()
        )


def _methods() -> Iterator[str]:
    """What `--set` can set: the options of every method."""
    yield "### Options of the methods\n"
    yield "`--set NAME=VALUE`, also of the other commands that learn; `msg2 infer --set help` prints the same.\n"
    for name, summary, specs in list_settings():
        yield f"**`{name}`**: {summary}\n"
        if specs:
            yield _table(
                (f"`{spec.name}={spec.default_text}`", f"{spec.help} {_sentence(spec.values)}") for spec in specs
            )


def _sentence(values: str) -> str:
    return f"{values[0].upper()}{values[1:]}."


def _row(parameter: Any, context: typer.Context) -> tuple[str, str]:
    if isinstance(parameter, TyperArgument):
        name = f"`{parameter.metavar}`"
    else:
        flags = (*parameter.opts, *parameter.secondary_opts)
        name = ", ".join(f"`{f'{flag} {parameter.metavar}'.strip()}`" for flag in flags)
    default = parameter.get_default(context)
    told = "" if default in (None, False) or not parameter.show_default else f" Default: `{default}`."
    return name, f"{parameter.help.replace('<', '&lt;')}{' *Required.*' if parameter.required else told}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(["| | |\n|---|---|\n", *(f"| {name} | {text} |\n" for name, text in cells)])


if __name__ == "__main__":
    for page, text in command_pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
