"""`msg2 data`: public annotation sets, fetched from their home pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.formats.downloads import PUBLIC_DATASETS

_FOLDER = Path("datasets")


def data(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A set; without it, all are listed.", autocompletion=lambda: list(PUBLIC_DATASETS)
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The set is FOLDER/NAME.")] = _FOLDER,
) -> None:
    """Fetch a public annotation set from its home page; without NAME, list them. No videos are fetched.

    A download that broke off goes on when the same command is given again. What was downloaded first is recorded by its
    SHA-256, and whatever comes later has to be the same. Mind the licences.

    Example: `msg2 data crosstask`, then `msg2 describe datasets/crosstask/crosstask_release`
    """
    if name is None:
        console.print_table(
            ["name", "set", "size", "licence", "home page"],
            [(name, one.title, one.size, one.licence, one.home) for name, one in PUBLIC_DATASETS.items()],
        )
        return
    from msg2.formats.downloads import (  # what speaks HTTP is slow to import
        download_dataset,
        find_dataset,
    )

    with console.usage_errors():
        wanted = find_dataset(name)
    with console.progress_bar(wanted.title) as progress:
        ready = download_dataset(wanted, output / name, progress)
    console.print_line(f"{wanted.title}, {wanted.licence}: {ready}")
