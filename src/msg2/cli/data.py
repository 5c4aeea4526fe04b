"""`msg2 data`: public annotation sets, fetched from their home pages."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console
from msg2.cli.flags import argument, output_option
from msg2.formats.downloads import PUBLIC_DATASETS, download_dataset, find_dataset


def data(
    name: Annotated[
        str | None, argument("NAME", "A set; without it, all are listed.", autocompletion=lambda: list(PUBLIC_DATASETS))
    ] = None,
    output: Annotated[Path, output_option("FOLDER", "The set is FOLDER/NAME.")] = Path("datasets"),
) -> None:
    """Fetch a public annotation set from its home page; without NAME, list them. No videos are fetched.

    A download that broke off goes on when the same command is given again. What was downloaded first is recorded by its
    SHA-256, and whatever comes later has to be the same. Mind the licences.

    Example: `msg2 data crosstask`, then `msg2 describe datasets/crosstask/crosstask_release`
    """
    if name is None:
        rows = [(name, known.title, known.size, known.licence, known.home) for name, known in PUBLIC_DATASETS.items()]
        console.print_table(["name", "set", "size", "licence", "home page"], rows)
        return
    with console.usage_errors():
        wanted = find_dataset(name)
    with console.progress_bar(wanted.title) as progress:
        ready = download_dataset(wanted, output / name, progress)
    console.print_line(f"{wanted.title}, {wanted.licence}: {ready}")
