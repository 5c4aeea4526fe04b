"""Writes the pages about the commands, `docs/commands.md` and `docs/commands/`, from the same source as `--help`.

python docs/commands.py
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument
from typer.main import get_command

from msg2.cli.app import app
from msg2.cli.flags import list_settings

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

Made from the same source as `--help`. A command reads any of the [formats](formats.md), and writes whole files or none.
Exit 0: done; 1: the input is wrong; 2: wrong usage; 130: interrupted. `msg2 --install-completion` lets your shell
complete commands, options and their values.
"""
_MANY = "options-of-many-commands"


def command_pages() -> dict[Path, str]:
    """The text of every page: an overview, and one page for each group of commands."""
    groups: dict[str, list[tuple[str, Any]]] = {group: [] for group in FILES}
    for name, command, group in _commands():
        groups[group].append((name, command))
    uses = Counter(row for commands in groups.values() for name, command in commands for _, row in _rows(name, command))
    shared = _shared([row for row, count in uses.items() if count > 1])
    overview = [_HEAD]
    pages = {}
    for group, commands in groups.items():
        rows = [
            (f"[`{name}`](commands/{FILES[group]}.md#{name.replace(' ', '-')})", _first(command))
            for name, command in commands
        ]
        overview.append(f"## {group}\n\n{_list(rows)}")
        sections = [section for name, command in commands for section in _section(name, command, shared)]
        pages[FOLDER / f"commands/{FILES[group]}.md"] = "\n".join([f"# {group}\n", *sections])
    overview.append(f"## Options of many commands\n\n{_list(sorted(shared, key=_option))}")
    return {FOLDER / "commands.md": "\n".join(overview), **pages}


def _commands() -> Iterator[tuple[str, Any, str]]:
    """Every command with its whole name and its group; those of `msg2 states` belong to the group of that."""
    program: Any = get_command(app)
    for name in program.list_commands(None):
        command = program.get_command(None, name)
        for inner, subcommand in getattr(command, "commands", {"": command}).items():
            yield f"msg2 {name} {inner}".strip(), subcommand, command.rich_help_panel


def _first(command: Any) -> str:
    """The first sentence of a command's help, as far as its first colon or semicolon."""
    return re.split(r"[.:;](?: |$)", str(command.help).replace("\n", " "), maxsplit=1)[0] + "."


def _rows(name: str, command: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """The panel, and the name and text, of every argument and option of a command."""
    context = typer.Context(command, info_name=name)
    for parameter in command.get_params(context):
        if parameter.name != "help":
            yield parameter.rich_help_panel or "", _row(parameter, context)


def _shared(repeated: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is told once: not options that a command requires, nor those of which a name has two meanings."""
    names = Counter(_option(row) for row in repeated)
    once = [row for row in repeated if names[_option(row)] == 1]
    return [row for row in once if not (_option(row).startswith("--") and "*Required.*" in row[1])]


def _section(name: str, command: Any, shared: list[tuple[str, str]]) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    yield f"## {name}\n"
    yield f"`{' '.join([name, *command.collect_usage_pieces(context)])}`\n"
    yield f"{command.help}\n"
    panels: dict[str, list[tuple[str, str]]] = {}
    common: list[tuple[str, str]] = []
    for panel, row in _rows(name, command):
        (common if row in shared else panels.setdefault(panel, [])).append(row)
    for panel, rows in panels.items():
        yield f"{panel and f'*{panel}*'}\n\n{_list(rows)}".lstrip()
    if common:
        yield f"[Also](../commands.md#{_MANY}): {', '.join(f'`{_option(row)}`' for row in common)}.\n"
    if name == "msg2 infer":
        yield from _methods()
    if name == "msg2 states train":
        yield (
            "`--set NAME=VALUE`, also of `msg2 run`, changes any [option of the state model](../api/state-options.md); "
            "`msg2 states train --set help` lists them with their defaults.\n"
        )


def _methods() -> Iterator[str]:
    """The methods, and the names of what `--set` can set."""
    yield "### Methods and their options\n"
    yield (
        "`--set NAME=VALUE`, also of the other commands that learn; `msg2 infer --set help` says what each is and what "
        "it may be, and so does [Python](../api/methods.md#options-of-the-methods).\n"
    )
    rows = []
    for name, summary, specs in list_settings():
        options = ", ".join(f"`{spec.name}={spec.default_text}`" for spec in specs)
        rows.append((f"**`{name}`**", f"{summary} {options and f'Options: {options}.'}".strip()))
    yield _list(rows)


def _option(row: tuple[str, str]) -> str:
    """The bare name of an option or argument."""
    return row[0].split("`")[1].split()[0]


def _row(parameter: Any, context: typer.Context) -> tuple[str, str]:
    if isinstance(parameter, TyperArgument):
        name = f"`{parameter.metavar}`"
    else:
        flags = (*parameter.opts, *parameter.secondary_opts)
        name = ", ".join(f"`{f'{flag} {parameter.metavar}'.strip()}`" for flag in flags)
    default = parameter.get_default(context)
    told = "" if default in (None, False) or not parameter.show_default else f" Default: `{default}`."
    return name, f"{parameter.help.replace('<', '&lt;')}{' *Required.*' if parameter.required else told}"


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- {name}: {text}\n" for name, text in rows)


if __name__ == "__main__":
    for page, text in command_pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
