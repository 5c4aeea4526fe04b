"""The folder of the app: datasets, graphs and live runs as plain files, one folder per record, named by its id.

`data/ID/` has an upload, `work/ID/` a graph with its page or the job that makes it, `runs/ID/` a live run; each has a
`record.json`. At the start, unfinished uploads and removals are deleted; an unreadable record is logged and left alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Generic, TypeAlias, TypeVar, cast

from fastapi import Depends, Request
from pydantic import ValidationError

from msg2.errors import InputError
from msg2.files import lock, sync_folder, write_whole
from msg2.server import dataset_functions, graph_functions
from msg2.server.dataset_functions import Dataset
from msg2.server.sandbox import JsonObject, KeyedLocks, NamedFile, Sandbox, is_transient
from msg2.server.schemas import DatasetRecord, GraphRecord, ReadSettings, RunRecord, UploadQuery
from msg2.server.settings import ServerSettings

Record = TypeVar("Record", DatasetRecord, GraphRecord, RunRecord)

_log = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{32}")
_RECORD_FILE, _LOCK_FILE = "record.json", ".lock"
_REMOVED_PREFIX = "removed-"
_PRIVATE = 0o700
"""The mode of folders: nobody else on the machine looks into them."""


class NotFoundError(InputError):
    """Nothing is kept under this id."""


class UnreadableRecordError(NotFoundError):
    """What is kept under this id is no record."""


class ConflictError(InputError):
    """Somebody else has changed what a change rests on; `current` is what there is now."""

    def __init__(self, what: str, where: str, hint: str, current: JsonObject) -> None:
        super().__init__(what, where=where, hint=hint)
        self.current = current


def new_id() -> str:
    """Make an id of 128 random bits: ids are not counted, guessed, or made of what a visitor sends."""
    return secrets.token_hex(16)


class RecordStore(Generic[Record]):
    """All records of one kind, in `root`. The files are the truth: nothing is kept in memory."""

    def __init__(self, root: Path, kind: type[Record]) -> None:
        self.root = root
        self._kind: type[Record] = kind
        try:
            root.mkdir(_PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be a folder ({error.strerror})", where=root) from None
        delete_leftovers(root)
        for folder in root.iterdir():
            try:
                self.get(folder.name)
            except UnreadableRecordError as error:
                _log.warning("%s", error)
            except NotFoundError:
                continue  # somebody else's

    def folder(self, id: str) -> Path:
        """Return the folder of a record, whether it is there or not."""
        if not _ID.fullmatch(id):
            raise NotFoundError("there is nothing of this name")
        return self.root / id

    @contextmanager
    def new_folder(self, id: str) -> Iterator[Path]:
        """Make the folder of a record, unless it is there already; a new one is gone again where the work fails."""
        folder = self.folder(id)
        is_new = not folder.exists()
        folder.mkdir(exist_ok=True)
        sync_folder(self.root)
        try:
            yield folder
        except BaseException:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def records(self) -> list[Record]:
        """List all records, the newest first."""
        readable: list[Record] = []
        for folder in self.root.iterdir():
            with suppress(NotFoundError):  # being uploaded, or just removed
                readable.append(self.get(folder.name))
        return sorted(readable, key=lambda record: (-record.made, record.id))

    def get(self, id: str) -> Record:
        """Read the record of this id."""
        path = self.folder(id) / _RECORD_FILE
        try:
            if not stat.S_ISREG(path.lstat().st_mode):  # a link to a file elsewhere, or a pipe that never ends
                raise OSError("is no plain file")
            return self._kind.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise NotFoundError("there is nothing of this name, it may have been removed") from None
        except (OSError, ValidationError) as error:
            if is_transient(error):  # it is there, and can be read again in a moment
                raise
            where = f"{self.root.name}/{id}/{_RECORD_FILE}"
            raise UnreadableRecordError("is no record that can be read", where=where) from None

    def put(self, record: Record) -> Record:
        """Write a record, new or changed, and return it."""
        content = record.model_dump_json(indent=1, exclude_defaults=True) + "\n"
        write_whole(self.folder(record.id) / _RECORD_FILE, content)
        return record

    def remove(self, id: str) -> None:
        """Remove a record and its files; it is gone at once, even where that takes long."""
        self.get(id)
        doomed = self.root / f"{_REMOVED_PREFIX}{new_id()}"
        self.folder(id).rename(doomed)
        sync_folder(self.root)
        shutil.rmtree(doomed, ignore_errors=True)


def delete_leftovers(root: Path) -> None:
    """Delete what this app left unfinished in `root`: folders named by an id, without a record."""
    for folder in root.iterdir() if root.is_dir() else ():
        removed = folder.name.startswith(_REMOVED_PREFIX)
        ours = _ID.fullmatch(folder.name.removeprefix(_REMOVED_PREFIX)) and folder.is_dir() and not folder.is_symlink()
        if ours and (removed or not os.path.lexists(folder / _RECORD_FILE)):
            shutil.rmtree(folder, ignore_errors=True)


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock a folder for this server until the file that is returned is closed: two would both begin waiting jobs."""
    try:
        folder.mkdir(_PRIVATE, parents=True, exist_ok=True)
        if (folder / _LOCK_FILE).exists():  # a folder of this app; what else somebody names here stays as open as it is
            folder.chmod(_PRIVATE)
        lock_file = (folder / _LOCK_FILE).open("ab")
    except OSError as error:
        raise InputError(f"cannot be written to ({error.strerror})", where=folder) from None
    with ExitStack() as undo:
        undo.push(lock_file)
        hint = "end it, or choose another --folder"
        lock(lock_file.fileno(), folder, "another msg2 serve is using this folder", hint)
        undo.pop_all()
    return lock_file


class Workspace:
    """Datasets and graphs, without HTTP. The folder is this server's alone until `close`."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        with ExitStack() as undo:
            self._lock_file = undo.enter_context(lock_folder(settings.folder))
            self.datasets = RecordStore(settings.folder / "data", DatasetRecord)
            self.graphs = RecordStore(settings.folder / "work", GraphRecord)
            self.runs = RecordStore(settings.folder / "runs", RunRecord)
            undo.pop_all()
        self.sandbox = Sandbox(settings)
        self.graph_locks = KeyedLocks()
        """Of graphs: one change after the other."""
        self._scratch = settings.folder / "scratch"
        delete_leftovers(self._scratch)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs in the sandbox, and unlock the folder."""
        self.sandbox.close()
        self._lock_file.close()

    @contextmanager
    def scratch_folder(self) -> Iterator[Path]:
        """Make a folder that is gone afterwards."""
        folder = self._scratch / new_id()
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def dataset(self, record: DatasetRecord | str) -> Dataset:
        """Return the data of a record, or of its id, under the name that it was uploaded under."""
        record = self.datasets.get(record) if isinstance(record, str) else record
        path = Path(record.path) if record.path is not None else self.datasets.folder(record.id) / record.id
        return Dataset(path, record.path or record.name, record)

    def describe(self, dataset: DatasetRecord, remarks: Sequence[str] = ()) -> DatasetRecord:
        """Read a dataset, and keep its record with what it holds; an archive that was uploaded becomes a folder."""
        megabytes = self.settings.unpacked_megabytes
        result = self.sandbox.call(dataset_functions.describe_dataset, self.dataset(dataset), megabytes)
        return self.datasets.put(update_record(dataset, **result.value, remarks=[*remarks, *result.messages]))

    def read_again(self, id: str, reading: ReadSettings) -> DatasetRecord:
        """Read a dataset in another way; if that fails, it stays as it was."""
        dataset = self.datasets.get(id)
        settings = {**dataset.reading.model_dump(), **reading.model_dump(exclude_unset=True)}
        return self.describe(update_record(dataset, reading=settings))

    def add_path(self, path: Path) -> DatasetRecord | GraphRecord:
        """Add data or a graph that lies elsewhere; the same path is the same dataset, or graph."""
        where, name = str(path.resolve()), path.resolve().name
        id = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        file = NamedFile(path, str(path))
        if self.sandbox.call(dataset_functions.is_graph_file, file).value:
            return self.add_graph(new_graph("given", id=id, name=name), graph_functions.save_graph_file, file)
        reading = ReadSettings()
        with suppress(NotFoundError):  # what was said about it in the app still holds
            reading = self.datasets.get(id).reading
        return self.describe(new_dataset(name, id=id, path=where, reading=reading))

    def add_graph(self, graph: GraphRecord, function: Callable[..., JsonObject], *arguments: object) -> GraphRecord:
        """Keep a graph that a function makes at once."""
        with self.graphs.new_folder(graph.id) as folder:
            result = self.sandbox.call(function, *arguments, folder)
        return self.graphs.put(update_record(graph, **result.value, remarks=result.messages))

    def recordings(self, graph: GraphRecord) -> graph_functions.Recordings:
        """What a graph was learned from; None where nobody learned it, or the data was removed."""
        with suppress(NotFoundError):
            return None if graph.job is None else (self.dataset(graph.job.data), graph.job)
        return None

    @contextmanager
    def changing_graph(self, id: str, version: int | None) -> Iterator[GraphRecord]:
        """Read the record of a graph that nobody else changes until the end of the block, as its next version."""
        with self.graph_locks[id]:
            record = self.graphs.get(id)
            if version is not None and version != record.version:
                kept = json.loads(self.graph_file(id).read_bytes())
                current: JsonObject = {**record.model_dump(include={"version", "save_id", "title"}), "graph": kept}
                hint = "load it again, or keep yours as a new graph"
                raise ConflictError("somebody else has changed this graph", record.title or record.task, hint, current)
            yield update_record(record, version=record.version + 1)

    def graph_file(self, id: str, name: str = graph_functions.GRAPH_FILE) -> Path:
        """Return the path of a file of a graph."""
        path = self.graphs.folder(self.graphs.get(id).id) / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            _log.warning("work/%s/%s: is no plain file, and is passed over", id, name)
            raise NotFoundError("the graph cannot be read, the log of the server says why")
        if not path.is_file():
            raise NotFoundError("the graph is not there yet")
        return path


def new_dataset(name: str, **fields: object) -> DatasetRecord:
    """Make the record of a dataset of which nothing is known yet but these fields."""
    known = {"id": new_id(), "made": time.time(), "name": name, "format": "", "tasks": []}
    return DatasetRecord.model_validate({**known, **fields})


def new_upload(query: UploadQuery) -> DatasetRecord:
    """Make the record of an upload."""
    return new_dataset(query.name, reading=query.model_dump(exclude={"name"}))


def new_graph(kind: str, **fields: object) -> GraphRecord:
    """Make the record of a graph of this kind."""
    return GraphRecord.model_validate({"id": new_id(), "made": time.time(), "kind": kind, "state": "done", **fields})


def update_record(record: Record, **values: object) -> Record:
    """Return the record with other values, checked."""
    return type(record).model_validate({**record.model_dump(), **values})


def _get_workspace(request: Request) -> Workspace:
    return cast(Workspace, request.app.state.workspace)


WorkspaceDep: TypeAlias = Annotated[Workspace, Depends(_get_workspace)]
"""The workspace of the app that was asked."""
