"""`msg2 data`: public annotation sets, fetched from their home pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.options import DownloadOptions
from msg2.readers.catalogue import SETS

_DEFAULT = DownloadOptions()


def data(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A set; without it, all are listed.", autocompletion=lambda: list(SETS)),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The set is FOLDER/NAME.")] = Path(
        _DEFAULT.folder
    ),
) -> None:
    """Fetch a public annotation set from its home page; without NAME, list them. No videos are fetched.

    A download that broke off goes on when the same command is given again. What was downloaded first is recorded by its
    SHA-256, and whatever comes later has to be the same. Mind the licences.

    Example: `msg2 data crosstask`, then `msg2 describe datasets/crosstask/crosstask_release`
    """
    if name is None:
        console.say_table(
            ["name", "set", "size", "licence", "home page"],
            [(name, one.title, one.size, one.licence, one.home) for name, one in SETS.items()],
        )
        return
    from msg2.readers.download import fetch, public_set  # what speaks HTTP is slow to import

    with console.usage():
        wanted = public_set(name)
    with console.bar(wanted.title) as show:
        ready = fetch(wanted, output / name, lambda file, done, total: show(done, total or done, f"bytes of {file}"))
    console.say(f"{wanted.title}, {wanted.licence}: {ready}")
