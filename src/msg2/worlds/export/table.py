"""Tasks as our table of steps, in text (or Parquet) that reads back as the same tasks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from msg2.errors import InputError, MissingExtraError
from msg2.task import Task

Cell = str | float | None


def as_table(tasks: Iterable[Task], separator: str = ",") -> str:
    """`tasks` as CSV: columns task, video, step and, where there are times, start and end in seconds.

    Numbers are written exactly; `confidence` and `source` are columns where a label has them. What has no label (a
    video without any, a step that is never seen) has no row.

    >>> from msg2.task import Segment, Video
    >>> print(as_table([Task("toast", ["fry, flip"], [Video("v1", [Segment("fry, flip", 0.5, 2)])])]), end="")
    task,video,step,start,end
    toast,v1,"fry, flip",0.5,2.0
    """
    columns, rows = columns_and_rows(tasks)
    lines = [separator.join(columns), *(separator.join(_field(cell, separator) for cell in row) for row in rows)]
    return "\n".join(lines) + "\n"


def as_json_lines(tasks: Iterable[Task]) -> str:
    """`tasks` as JSON Lines: an object per label, with the columns of `as_table`; what is not known is left out.

    >>> from msg2.task import Segment, Video
    >>> print(as_json_lines([Task("toast", ["fry"], [Video("v1", [Segment("fry")])])]), end="")
    {"task": "toast", "video": "v1", "step": "fry"}
    """
    columns, rows = columns_and_rows(tasks)
    objects = ({name: cell for name, cell in zip(columns, row, strict=True) if cell is not None} for row in rows)
    return "".join(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in objects)


def as_parquet(tasks: Iterable[Task]) -> bytes:
    """`tasks` as a Parquet file with the columns of `as_table`."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    columns, rows = columns_and_rows(tasks)
    kinds = [pyarrow.float64() if name in ("start", "end", "confidence") else pyarrow.string() for name in columns]
    cells = [pyarrow.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(cells, names=columns), content)
    return content.getvalue()


def to_dataframe(tasks: Task | Iterable[Task]) -> Any:
    """The labels of one task or of many as a `pandas.DataFrame`, a row per label, with the columns of a table of steps.

    >>> from msg2.task import Segment, Video
    >>> to_dataframe(Task("toast", ["fry"], [Video("v1", [Segment("fry", 0.5, 2)])]))
        task video step  start  end
    0  toast    v1  fry    0.5  2.0
    """
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("data frames", "pandas") from None
    columns, rows = columns_and_rows([tasks] if isinstance(tasks, Task) else tasks)
    return pandas.DataFrame(rows, columns=columns)


def columns_and_rows(tasks: Iterable[Task]) -> tuple[list[str], list[list[Cell]]]:
    """The columns of the table of `tasks`, and a row per label; numbers are floats, what is not known is None."""
    labels = [(task.name, video.id, segment) for task in tasks for video in task for segment in video.segments]
    segments = [segment for *_, segment in labels]
    timed = {segment.timed for segment in segments}
    if len(timed) > 1:
        raise InputError("some of the tasks have times and some have not", hint="write them into tables of their own")
    numbers = [*(("start", "end") if timed != {False} else ())]
    numbers += ["confidence"] if any(segment.confidence is not None for segment in segments) else []
    texts = ["source"] if any(segment.source is not None for segment in segments) else []
    rows = [
        [
            task,
            video,
            segment.step,
            *(None if (value := getattr(segment, name)) is None else float(value) for name in numbers),
            *(getattr(segment, name) for name in texts),
        ]
        for task, video, segment in labels
    ]
    return ["task", "video", "step", *numbers, *texts], rows


def _field(value: Cell, separator: str) -> str:
    """One field of delimited text; a text is quoted where a reader could mistake it (RFC 4180)."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value and value == value.strip() and not any(character in value for character in (separator, *'"\r\n'))
    return value if plain else '"' + value.replace('"', '""') + '"'
