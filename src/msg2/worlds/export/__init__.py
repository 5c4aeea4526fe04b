"""Tasks as files: our own tables, and the formats of the tools in which people annotate. One writer per format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from msg2.errors import InputError
from msg2.files import safe_names, write_together
from msg2.options import ExportOptions
from msg2.task import Task
from msg2.worlds.export.elan import as_elan
from msg2.worlds.export.label_studio import as_label_studio, labelling_interface
from msg2.worlds.export.table import as_json_lines, as_parquet, as_table, to_dataframe

__all__ = [
    "SUFFIXES", "as_elan", "as_json_lines", "as_label_studio", "as_parquet", "as_table", "suffix_of", "to_dataframe",
    "write",
]  # fmt: skip

Contents: TypeAlias = Mapping[Path, str | bytes]
Writer: TypeAlias = Callable[[Sequence[Task], Path, ExportOptions], Contents]


def write(tasks: Task | Sequence[Task], path: str | Path, options: ExportOptions | None = None) -> list[Path]:
    """Write the labels of one task or of many in the format of the suffix of `path`, and return the files written.

    ELAN has a file per video: of many videos, `labels.eaf` is a folder `labels` of them, in folders per task where
    there are many tasks. Beside `labels.label-studio.json`, `labels.label-studio.xml` is the labelling interface.
    All of the files appear, or none.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.task import Segment, Video
    >>> toast = Task("toast", ["fry"], [Video(name, [Segment("fry", 0.5, 2)]) for name in ("v1", "v2")])
    >>> with TemporaryDirectory() as folder:
    ...     sorted(file.name for file in write(toast, f"{folder}/labels.eaf"))
    ['v1.eaf', 'v2.eaf']
    """
    path, tasks = Path(path), [tasks] if isinstance(tasks, Task) else tasks
    suffix = suffix_of(path)
    try:
        contents = _WRITERS[suffix](tasks, path, options or ExportOptions())
    except InputError as error:
        raise InputError(error.what, where=error.where or path, hint=error.hint) from None
    write_together(contents)
    return list(contents)


def suffix_of(path: Path) -> str:
    """The one of `SUFFIXES` that `path` ends in; any other is refused, best before there is anything to write.

    >>> suffix_of(Path("toast.label-studio.json"))
    '.label-studio.json'
    """
    found = next((known for known in _WRITERS if path.name.lower().endswith(known)), None)
    if found is None:
        hint = f"use one of {' '.join(SUFFIXES)}"
        raise InputError("its suffix is no format of labels that msg2 can write", where=path, hint=hint)
    return found


def _elan_files(tasks: Sequence[Task], path: Path, options: ExportOptions) -> Contents:
    pairs = [(task, video) for task in tasks for video in task]
    if len(pairs) == 1:
        return {path: as_elan(*pairs[0], options)}
    folder = path.with_suffix("")
    folders = [folder / name for name in safe_names([task.name for task in tasks])] if len(tasks) > 1 else [folder]
    return {
        place / f"{name}.eaf": as_elan(task, video, options)
        for task, place in zip(tasks, folders, strict=True)
        for video, name in zip(task, _file_names([video.id for video in task]), strict=True)
    }


def _file_names(ids: Sequence[str]) -> list[str]:
    """The ids of videos as they are where all of them are plain, and otherwise safe names.

    >>> _file_names(["xQ-1_a", "v1.2"])
    ['xQ-1_a', 'v1.2']
    >>> _file_names(["../x", "a", "A"])
    ['x', 'a', 'a-2']
    """
    safe = safe_names(ids)
    good = all(re.fullmatch(r"[\w-][\w.-]{0,99}", name, re.ASCII) for name in ids)
    return list(ids) if good and len({name.lower() for name in ids}) == len(ids) else safe


def _label_studio_files(tasks: Sequence[Task], path: Path, options: ExportOptions) -> Contents:
    return {path: as_label_studio(tasks, options), path.with_suffix(".xml"): labelling_interface(tasks, options)}


def _one_file(content: Callable[[Iterable[Task]], str | bytes]) -> Writer:
    return lambda tasks, path, options: {path: content(tasks)}


_WRITERS: Mapping[str, Writer] = {
    ".csv": _one_file(as_table),
    ".tsv": _one_file(lambda tasks: as_table(tasks, "\t")),
    ".jsonl": _one_file(as_json_lines),
    ".parquet": _one_file(as_parquet),
    ".eaf": _elan_files,
    ".label-studio.json": _label_studio_files,
}
SUFFIXES = tuple(_WRITERS)
"""The formats of labels that can be written, by the end of the file's name."""
