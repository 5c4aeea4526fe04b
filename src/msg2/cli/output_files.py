"""What commands write: tables as CSV, and never over what they read."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from msg2.errors import InputError


def refuse_clashes(outputs: Sequence[Path], data: Path) -> None:
    """Refuse to write a result over another one, or over the data."""
    for path, times in Counter(map(os.path.realpath, outputs)).items():
        if times > 1:
            raise InputError("two results are to be written there", where=path, hint="give each a file of its own")
        if path == os.path.realpath(data):
            raise InputError("is the data, the result would replace it", where=path, hint="choose another output")


def as_csv(kind: type[Any], rows_of_tasks: Iterable[tuple[str, Iterable[Any]]]) -> str:
    """Write dataclass instances of one kind as a CSV table, with the name of the task in front."""
    names = [field.name for field in fields(kind)]
    values = attrgetter(*names)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["task", *names])
    writer.writerows((task, *values(row)) for task, rows in rows_of_tasks for row in rows)
    return text.getvalue()
