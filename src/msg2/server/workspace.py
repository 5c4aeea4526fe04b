"""The folder of the app: the datasets, graphs and runs that are kept in it, and the ways in which they get there.

`data/ID/` has an upload with its record, `work/ID/` a graph with its page and its record, or the record of the job that
is to make it, `runs/ID/` the record of a live run. Whatever a visitor sends is read in the sandbox.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from msg2.server import dataset_workers, graph_workers
from msg2.server.sandbox import Sandbox, TaskResult, TranslateText, WorkerTask
from msg2.server.schemas import DatasetRecord, GraphRecord, ReadSettings, RunRecord, UploadQuery
from msg2.server.settings import ServerSettings
from msg2.server.storage import NotFoundError, Record, RecordStore, delete_leftovers, lock_folder, new_id

_log = logging.getLogger(__name__)


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

    # -- datasets -----------------------------------------------------------------------------------------------

    def dataset_path(self, dataset: DatasetRecord) -> Path:
        """Return where the data lies."""
        return Path(dataset.path) if dataset.path is not None else self.datasets.folder(dataset.id) / dataset.id

    def dataset_translator(self, dataset: DatasetRecord) -> TranslateText:
        """Return what turns the path of the data in a message into the name that it was uploaded under."""
        path = self.dataset_path(dataset)
        return str if dataset.path is not None else lambda text: text.replace(str(path), dataset.name)

    def run_on_dataset(self, dataset: DatasetRecord, task: WorkerTask, *arguments: Any) -> TaskResult:
        """Run a worker task on a dataset, and wait for its result.

        Parameters
        ----------
        dataset : DatasetRecord
            Its path and the record itself are the first arguments of the task.
        task : WorkerTask
            See there.
        *arguments : object
            The other arguments.

        Returns
        -------
        TaskResult
            The result with its messages.
        """
        path, translate = self.dataset_path(dataset), self.dataset_translator(dataset)
        return self.sandbox.run(task, path, dataset, *arguments, translate=translate, reads_files=True)

    def add_upload(self, id: str, query: UploadQuery) -> DatasetRecord:
        """Keep what has been written to the folder of a new dataset, if msg2 can read it.

        Parameters
        ----------
        id : str
            The id of the new dataset.
        query : UploadQuery
            Its name, and how it is to be read.

        Returns
        -------
        DatasetRecord
            The record, which is kept.

        Raises
        ------
        InputError
            Where it is in no format that msg2 knows, or is broken.
        """
        dataset = _new_dataset(id, query)
        result = self.run_on_dataset(dataset, dataset_workers.describe_upload, self.settings.unpacked_megabytes)
        return self.datasets.put(update_record(dataset, **result.value, remarks=result.messages))

    def preview_upload(self, query: UploadQuery, path: Path) -> dict[str, Any] | None:
        """Look at the columns of an upload that is not kept.

        Parameters
        ----------
        query : UploadQuery
            Its name, and how it is to be read.
        path : Path
            Where it lies.

        Returns
        -------
        dict or None
            A `TablePreviewResponse`; None where it has no columns to choose from.
        """
        result = self.sandbox.run(
            dataset_workers.preview_columns,
            path,
            _new_dataset(new_id(), query),
            translate=lambda text: text.replace(str(path), query.name),
            reads_files=True,
        )
        return cast(dict[str, Any] | None, result.value)

    def read_again(self, id: str, reading: ReadSettings) -> DatasetRecord:
        """Read a dataset in another way; what cannot be read so stays as it was.

        Parameters
        ----------
        id : str
            The dataset.
        reading : ReadSettings
            What is given there changes, the rest stays.

        Returns
        -------
        DatasetRecord
            The record, which is kept.
        """
        dataset = self.datasets.get(id)
        settings = {**dataset.reading.model_dump(), **reading.model_dump(exclude_unset=True)}
        return self._describe(update_record(dataset, reading=settings))

    def _describe(self, dataset: DatasetRecord) -> DatasetRecord:
        result = self.run_on_dataset(dataset, dataset_workers.describe_dataset)
        return self.datasets.put(update_record(dataset, **result.value, remarks=result.messages))

    def add_example(self) -> DatasetRecord:
        """Add a dataset to try everything on."""
        id = new_id()
        folder = self.datasets.folder(id)
        folder.mkdir()
        try:
            self.sandbox.run(dataset_workers.write_example, folder, id)
            return self.add_upload(id, UploadQuery(name=f"{dataset_workers.EXAMPLE_TASK} (example).csv"))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def add_path(self, path: Path) -> DatasetRecord | GraphRecord:
        """Add data or a graph that lies elsewhere; the same path is the same dataset, or graph."""
        where, name = str(path.resolve()), path.resolve().name
        id = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        if self.sandbox.run(dataset_workers.is_graph_file, path, reads_files=True).value:
            graph = GraphRecord(id=id, made=time.time(), kind="given", state="done", name=name)
            return self.add_graph(graph, graph_workers.save_graph_file, path, path.stem)
        reading = ReadSettings()
        with suppress(NotFoundError):  # what was said about it in the app still holds
            reading = self.datasets.get(id).reading
        dataset = DatasetRecord(id=id, made=time.time(), name=name, format="", tasks=[], path=where, reading=reading)
        return self._describe(dataset)

    # -- graphs -------------------------------------------------------------------------------------------------

    def add_graph_file(self, name: str, path: Path) -> GraphRecord:
        """Keep an uploaded graph file.

        Parameters
        ----------
        name : str
            The name that it was uploaded under.
        path : Path
            Where it lies.

        Returns
        -------
        GraphRecord
            The record, which is kept.

        Raises
        ------
        InputError
            Where it is no graph file.
        """
        graph = GraphRecord(id=new_id(), made=time.time(), kind="given", state="done", name=name)
        stem = Path(name).stem
        return self.add_graph(
            graph, graph_workers.save_graph_file, path, stem, translate=lambda text: text.replace(str(path), name)
        )

    def add_graph(
        self, graph: GraphRecord, task: WorkerTask, *arguments: Any, translate: TranslateText = str
    ) -> GraphRecord:
        """Keep a graph that a worker task makes at once.

        Parameters
        ----------
        graph : GraphRecord
            Its record so far.
        task : WorkerTask
            Writes the files of the graph; its last argument is the folder for them.
        *arguments : object
            The other arguments.
        translate : TranslateText
            Applied to every message that comes back.

        Returns
        -------
        GraphRecord
            The record, which is kept.
        """
        folder = self.graphs.folder(graph.id)
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            result = self.sandbox.run(task, *arguments, folder, translate=translate)
        except BaseException:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return self.graphs.put(update_record(graph, **result.value, state="done", remarks=result.messages))

    def graph_file(self, id: str, name: str) -> Path:
        """Return the path of a file of a graph.

        Parameters
        ----------
        id : str
            The graph.
        name : str
            One of `graph_tasks.GRAPH_FILE` and `graph_tasks.PAGE_FILE`.

        Returns
        -------
        Path
            The path, where a file is.

        Raises
        ------
        NotFoundError
            Where there is no such graph, or it is still to be learned.
        """
        path = self.graphs.folder(self.graphs.get(id).id) / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            _log.warning("work/%s/%s: is no plain file, and is passed over", id, name)
            raise NotFoundError("the graph cannot be read, the log of the server says why")
        if not path.is_file():
            raise NotFoundError("the graph is not there yet")
        return path


def _new_dataset(id: str, query: UploadQuery) -> DatasetRecord:
    """The record of an upload before anything is known of it."""
    reading = ReadSettings.model_validate(query.model_dump(exclude={"name"}))
    return DatasetRecord(id=id, made=time.time(), name=query.name, format="", tasks=[], reading=reading)


def update_record(record: Record, **values: Any) -> Record:
    """Return the record with other values, checked.

    Parameters
    ----------
    record : DatasetRecord, GraphRecord or RunRecord
        The record, which stays as it is.
    **values : object
        The fields that change.

    Returns
    -------
    DatasetRecord, GraphRecord or RunRecord
        A new record; it is not written yet.
    """
    return type(record).model_validate({**record.model_dump(), **values})
