"""What a graph is learned from, read file by file: folders that are larger than the memory, or for many machines.

Of each file only its runs are kept (`msg2.sequences`), which are few where runs repeat. The result is the same as that
of reading everything at once, for any engine and any number of jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msg2.errors import InputError, errors_at
from msg2.formats import event_log, step_table
from msg2.formats.columns import parse_columns
from msg2.formats.reading import Reader, ReadOptions, apply_options
from msg2.formats.registry import find_reader, log_notes, make_read_options, read_all
from msg2.formats.source import Source
from msg2.parallel import ENGINES, WorkerDied
from msg2.progress import LOGGER, Progress, collect_logs, no_progress
from msg2.sequences import RepeatedVideoError, Sequences

_FEW_LABELS = 1_000_000
"""Labels of runs that are not compared with others yet."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Part:
    """What was read of one file."""

    sequences: Sequence[Sequences]
    assumptions: tuple[str, ...]
    unused: tuple[str, ...]
    messages: Sequence[tuple[int, str]]


def read_sequences(
    path: str | Path, *, engine: str = "local", jobs: int = 1, progress: Progress = no_progress, **options: Any
) -> list[Sequences]:
    """Read the runs of all tasks in a file or folder of any known format.

    Parameters
    ----------
    path : str or Path
        The file or folder. The tables of a folder are read one at a time, or `jobs` at a time.
    engine : str
        Who reads them: "local", processes of this machine, or "ray", a cluster; see `msg2.parallel`.
    jobs : int
        How many are read at the same time.
    progress : Progress
        Is told after every table.
    **options
        Those of `ReadOptions`.

    Returns
    -------
    list of Sequences
        By the names of the tasks.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    chosen, source = make_read_options(options), Source.of_data(path)
    reader = find_reader(source, chosen.columns)
    files = _find_parts(source, reader, parse_columns(chosen.columns))
    if len(files) > 1:
        try:
            results = ENGINES[engine](partial(_read_part, folder=source.path, options=chosen), files, jobs)
            return _join_parts(source, len(files), results, progress)
        except RepeatedVideoError as error:
            if reader is step_table.READER:
                raise error.at(source.path) from None
            _log.warning("%s: cases go on from file to file, so all files are read at once", source.path)
    return [Sequences.from_task(task) for task in read_all(source, **options)]


def _find_parts(source: Source, reader: Reader, columns: Mapping[str, str]) -> list[Path]:
    """The tables of a folder that can be read one by one."""
    if not source.is_folder or source.content is not None:
        return []
    if reader is event_log.EVENT_TABLES:
        return [file.path for file in event_log.find_logs(source, columns)]
    if reader is not step_table.READER:
        return []
    tables = step_table.open_tables(source, columns)
    return [] if step_table.are_one_per_video(tables, columns) else [table.source.path for table in tables]


def _join_parts(
    source: Source, count: int, results: Iterable[tuple[Path, _Part | WorkerDied]], progress: Progress
) -> list[Sequences]:
    """The runs of all parts, in whatever order they come."""
    found: dict[str, list[Sequences]] = {}
    assumptions: dict[str, None] = {}
    unused: set[str] = set()
    for number, (path, part) in enumerate(results, start=1):
        if isinstance(part, WorkerDied):
            hint = "it may have run out of memory: take fewer --jobs, or smaller files"
            raise InputError("the process that read this has been ended from outside", where=path, hint=hint)
        for level, message in part.messages:
            LOGGER.log(level, message)
        assumptions |= dict.fromkeys(part.assumptions)
        unused |= set(part.unused)
        for sequences in part.sequences:
            own = found.setdefault(sequences.name, [])
            own.append(sequences)
            if sum(len(one.step) for one in own[1:]) > _FEW_LABELS + len(own[0].step):
                own[:] = [Sequences.join(own)]
        progress(number, count, path.name)
    log_notes(source, sorted(assumptions), sorted(unused))
    return [Sequences.join(found[name]) for name in sorted(found)]


def _read_part(path: Path, folder: Path, options: ReadOptions) -> _Part:
    """Read one table of a folder, in any process."""
    part = Source(folder, chosen_files=(Source.at(path),))
    reader = find_reader(part, options.columns)
    with collect_logs() as logs, errors_at(path):
        result = reader.read(part, options)
    own = [Sequences.from_task(apply_options(task, options)) for task in result.tasks]
    return _Part(own, result.assumptions, result.unused, logs.messages)
