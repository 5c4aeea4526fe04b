"""Tasks as our table of steps, in text that reads back as the same tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msg2.errors import InputError
from msg2.task import Segment, Task


def as_table(tasks: Iterable[Task]) -> str:
    """`tasks` as CSV: columns task, video, step and, where there are times, start and end in seconds.

    Numbers are written exactly; `confidence` and `source` are columns where a label has them. What has no label (a
    video without any, a step that is never seen) has no row.

    >>> from msg2.task import Video
    >>> print(as_table([Task("toast", ["fry, flip"], [Video("v1", [Segment("fry, flip", 0.5, 2)])])]), end="")
    task,video,step,start,end
    toast,v1,"fry, flip",0.5,2.0
    """
    rows = [(task.name, video.id, segment) for task in tasks for video in task for segment in video.segments]
    segments = [segment for _, _, segment in rows]
    timed = {segment.timed for segment in segments}
    if len(timed) > 1:
        raise InputError("some of the tasks have times and some have not", hint="write them into tables of their own")
    columns = [*(("start", "end") if timed != {False} else ())]
    columns += [name for name in ("confidence", "source") if any(getattr(s, name) is not None for s in segments)]
    lines = [",".join(["task", "video", "step", *columns])]
    lines += [",".join(map(_field, [task, video, *_values(segment, columns)])) for task, video, segment in rows]
    return "\n".join(lines) + "\n"


def _values(segment: Segment, columns: Iterable[str]) -> Iterator[str | float | None]:
    yield segment.step
    for name in columns:
        yield getattr(segment, name)


def _field(value: str | float | None) -> str:
    """One CSV field; a text is quoted where a reader could mistake it (RFC 4180)."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(float(value))
    plain = value and value == value.strip() and not any(character in value for character in ',"\r\n')
    return value if plain else '"' + value.replace('"', '""') + '"'
