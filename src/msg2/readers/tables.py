"""Our own input: a table of steps, or a folder of them.

A folder holds either full tables (with a column `video`), or one table per video (without it): then the file's stem is
the video and the folder's name the task. A table without a column `task` is the task that its file is named after.
"""

from __future__ import annotations

import logging

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.found import Found, Labels, merge, tasks_of, unsorted_rows
from msg2.readers.markup import root_name
from msg2.readers.rows import columns, rows
from msg2.readers.sources import Source
from msg2.readers.wording import listed

READS = "a table of steps (CSV, TSV, JSON Lines, Parquet) or a folder of them"
TAKES = ()

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_log = logging.getLogger(__name__)


def recognises(source: Source) -> bool:
    """Whether there is a table: any file that nobody else knows is read as one, so that errors can name the row."""
    if source.is_folder:
        return any(_is_table(file) for file in source.files)
    return source.is_json_lines or not (source.is_json or root_name(source))


def read(source: Source, options: ReadOptions) -> Found:
    """The tasks of one table, or of all tables in a folder."""
    files = [file for file in source.files if _is_table(file)] if source.is_folder else [source]
    one_per_video = source.is_folder and _one_per_video(files)
    ignored: set[str] = set()
    labels: Labels = {}
    unsorted: dict[str, int] = {}
    for file in files:
        task, video = (source.stem, file.stem) if one_per_video else (file.stem, None)
        found = _labels(file, task, video, ignored)
        merge(labels, found, str(file.path))
        unsorted[file.path.name] = unsorted_rows(found)
    if not any(labels.values()):
        raise InputError("has no rows below its header", where=source.path, hint="add one row per labelled step")
    if ignored:
        _log.warning("%s: columns that are not used: %s", source.path, listed(ignored))
    others = {file.path.name for file in source.files} - {file.path.name for file in files}
    if others:
        _log.warning("%s: files that are no tables of steps, not read: %s", source.path, listed(others))
    return Found.of(tasks_of(labels), unsorted)


def _labels(file: Source, task: str, video: str | None, ignored: set[str]) -> Labels:
    """The segments of one file; `task` and `video` are the names where it has no such column."""
    labels: Labels = {}
    for row in rows(file, ignored, ("video", "step") if video is None else ("step",)):
        key = (row.task or task, row.video or video or "")
        labels.setdefault(key, []).append(row.segment)
    return labels if labels or video is None else {(task, video): []}


def _is_table(file: Source) -> bool:
    """Whether a file in a folder is meant to be a table: by its suffix, or else by a column `step`."""
    if file.path.name.lower().removesuffix(".gz").endswith(_SUFFIXES):
        return True
    try:
        return recognises(file) and "step" in columns(file)
    except InputError:
        return False  # a picture, a readme, …: it does not claim to be a table


def _one_per_video(files: list[Source]) -> bool:
    """Whether the tables of a folder are one per video; a folder that mixes both kinds is refused."""
    full = [file for file in files if "video" in columns(file)]
    if full and len(full) < len(files):
        other = next(file for file in files if file not in full)
        what = f"has the column 'video', {shortened(other.path.name)} in the same folder has not"
        raise InputError(what, where=full[0].path, hint="give every table this column, or one table per video")
    return not full
