"""The workbench over HTTP: the labels that people make of videos, with drafts, captions and the graph so far.

Labels are plain files in `data/ID/labelling/TASK/`, so that nothing that was acknowledged is lost: `base.json` is what
the data say (read again whenever the workbench is opened), `drafts.json` drafts and `steps.json` steps that were added,
`people/PERSON/VIDEO.json` all labels of one video by one person, `graphs/PERSON.json` how the graph moved. TASK, PERSON
and VIDEO are hashes of the names, which are in the files. Everything is written whole.
"""

from __future__ import annotations

import hashlib
import mimetypes
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats.captions import CAPTION_SUFFIXES
from msg2.formats.step_table import to_csv
from msg2.media.video_files import MEDIA_SUFFIXES
from msg2.metrics import annotator_agreement
from msg2.metrics.annotator_agreement import AnnotatorAgreement
from msg2.server import dataset_workers, schemas
from msg2.server.schemas import DatasetRecord, LabelRow, RecordId, SaveLabelsRequest, StrictModel, VideoLabels
from msg2.server.workers import JsonObject
from msg2.server.workspace import NotFoundError, Workspace, WorkspaceDep
from msg2.task import DRAFT, PREDICTED, Segment, Task, Video

DRAFT_SOURCES = frozenset({DRAFT, PREDICTED})
"""Sources of labels that wait for a person."""

_Model = TypeVar("_Model", bound=BaseModel)
_saving = threading.Lock()
_MAX_HISTORY = 200


class VideoPlace(StrictModel):
    """Where the files of a video lie: in the folder of which dataset, and under which names there."""

    data: str
    media: str | None = None
    captions: str | None = None


class LabellingBase(schemas.TaskLabelsResponse):
    """What the data say of a task: its steps, all labels and drafts by video, and the files of the videos."""

    places: dict[str, VideoPlace]


class GraphEntry(StrictModel):
    """A graph that was learned with so many labelled videos; of all but the last, only how much it moved."""

    videos: int
    movement: float | None
    graph: JsonObject | None


class _AddedByPeople(StrictModel):
    steps: list[str] = Field(default_factory=list)
    videos: list[VideoLabels] = Field(default_factory=list)


_HISTORY = TypeAdapter(list[GraphEntry])


class LabelStore:
    """All labels of one task of a dataset, in a folder."""

    def __init__(self, dataset_folder: Path, task: str) -> None:
        self.task = task
        self._folder = dataset_folder / "labelling" / _hashed(task)

    @property
    def base(self) -> LabellingBase:
        """What the data say."""
        base = _read(self._folder / "base.json", LabellingBase)
        if base is None:
            raise NotFoundError("the workbench of this task has not been opened yet")
        return base

    def write_base(self, base: LabellingBase) -> None:
        """Keep what the data say now."""
        write_whole(self._folder / "base.json", base.model_dump_json(exclude_none=True))

    def add_steps(self, steps: Iterable[str]) -> None:
        """Add steps to those of the data."""
        with _saving:
            added = list(dict.fromkeys([*self._added("steps").steps, *steps]))
            write_whole(self._folder / "steps.json", _AddedByPeople(steps=added).model_dump_json(exclude={"videos"}))

    def add_drafts(self, drafts: Iterable[VideoLabels]) -> None:
        """Keep drafts, in the place of those that were added before."""
        added = _AddedByPeople(videos=list(drafts)).model_dump_json(exclude={"steps"}, exclude_none=True)
        write_whole(self._folder / "drafts.json", added)

    def steps(self) -> list[str]:
        """All steps, by name: of the data, of the drafts, and those that were added."""
        drafted = (row.step for each in self._added("drafts").videos for row in each.labels)
        used = (row.step for person in self.people() for saved in self.saved(person).values() for row in saved.labels)
        return sorted({*self.base.steps, *self._added("steps").steps, *drafted, *used})

    def given_labels(self) -> dict[str, list[LabelRow]]:
        """Video -> the labels that came with the data, without drafts."""
        return {
            each.video: [row for row in each.labels if row.source not in DRAFT_SOURCES] for each in self.base.videos
        }

    def drafts(self) -> dict[str, list[LabelRow]]:
        """Video -> all drafts, of the data and those that were added, whether they are settled or not."""
        added = {each.video: each.labels for each in self._added("drafts").videos}
        return {
            each.video: [*(row for row in each.labels if row.source in DRAFT_SOURCES), *added.get(each.video, ())]
            for each in self.base.videos
        }

    def _added(self, what: Literal["steps", "drafts"]) -> _AddedByPeople:
        return _read(self._folder / f"{what}.json", _AddedByPeople) or _AddedByPeople()

    def people(self) -> list[str]:
        """Everybody who has saved something, by name."""
        firsts = (next(iter(sorted(folder.glob("*.json"))), None) for folder in (self._folder / "people").glob("*"))
        saved = (_read(path, SaveLabelsRequest) for path in firsts if path is not None)
        return sorted({each.person for each in saved if each is not None})

    def saved(self, person: str) -> dict[str, SaveLabelsRequest]:
        """Video -> what a person has saved, of the videos that there are."""
        found = (_read(path, SaveLabelsRequest) for path in self._person_folder(person).glob("*.json"))
        known = {each.video for each in self.base.videos}
        return {each.video: each for each in found if each is not None and each.video in known}

    def save(self, request: SaveLabelsRequest) -> int:
        """Write all labels of one video by one person, and return their version."""
        if request.video not in {each.video for each in self.base.videos}:
            raise InputError("the task has no such video", where=request.video)
        to_video(request.video, request.labels)
        path = self._person_folder(request.person) / f"{_hashed(request.video)}.json"
        with _saving:
            before = _read(path, SaveLabelsRequest)
            version = 0 if before is None else before.version
            if before is not None and before.version == request.version + 1 and before.labels == request.labels:
                return before.version  # sent again, since the answer was lost
            if version != request.version:
                what = f"the labels of this video by {request.person} have been changed elsewhere"
                raise InputError(what, where=request.video, hint="load the page again")
            kept = request.model_copy(update={"version": version + 1})
            write_whole(path, kept.model_dump_json(exclude_none=True))
        return version + 1

    def labelled_task(self, person: str, *, only_saved: bool = False) -> Task:
        """The labels of a person as a task: what they saved and, unless `only_saved`, what came with the data."""
        saved = {video: each.labels for video, each in self.saved(person).items()}
        rows = saved if only_saved else {**self.given_labels(), **saved}
        videos = [to_video(name, labels) for name, labels in sorted(rows.items()) if labels or only_saved]
        return Task(self.task, {segment.step for video in videos for segment in video.segments}, videos)

    def graph_history(self, person: str) -> list[GraphEntry]:
        """The graphs that were learned before, the last one last."""
        try:
            return _HISTORY.validate_json((self._folder / "graphs" / f"{_hashed(person)}.json").read_bytes())
        except (OSError, ValueError):  # none yet, or nothing that is worth stopping for
            return []

    def write_graph_history(self, person: str, history: list[GraphEntry]) -> None:
        """Keep the graphs that were learned."""
        write_whole(self._folder / "graphs" / f"{_hashed(person)}.json", _HISTORY.dump_json(history))

    def _person_folder(self, person: str) -> Path:
        return self._folder / "people" / _hashed(person)


def to_video(name: str, rows: Iterable[LabelRow]) -> Video:
    """Make a video of its labels."""
    return Video(name, [Segment(**row.model_dump(exclude={"task", "video"})) for row in rows])


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path, kind: type[_Model]) -> _Model | None:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        raise InputError("cannot be read, somebody has changed the file", where=path.name) from None


router = APIRouter(prefix="/api/data/{id}/workbench", tags=["workbench"])


def open_store(workspace: Workspace, id: str, task: str) -> LabelStore:
    """Return the labels of a task of a dataset that is kept."""
    return LabelStore(workspace.datasets.folder(workspace.datasets.get(id).id), task)


@router.get("", response_model_exclude_none=True)
def get_workbench(
    id: RecordId, query: Annotated[schemas.WorkbenchQuery, Query()], workspace: WorkspaceDep
) -> schemas.WorkbenchResponse:
    """All videos of a task with the labels of one person, and all drafts."""
    others = {
        other.id: workspace.dataset_path(other)
        for other in workspace.datasets.records()
        if other.media and other.id != id
    }
    result = workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.read_base, query.task, others)
    base = LabellingBase.model_validate(result.value)
    store = open_store(workspace, id, base.task)
    store.write_base(base)
    saved, drafts, videos = store.saved(query.person), store.drafts(), []
    for name, labels in store.given_labels().items():
        own, place = saved.get(name), base.places.get(name)
        videos.append(
            schemas.WorkbenchVideo(
                video=name,
                labels=labels if own is None else own.labels,
                drafts=drafts[name],
                settled=[] if own is None else own.settled,
                version=0 if own is None else own.version,
                own=own is not None,
                media=place is not None and place.media is not None,
                captions=place is not None and place.captions is not None,
            )
        )
    return schemas.WorkbenchResponse(task=base.task, steps=store.steps(), people=store.people(), videos=videos)


@router.put("")
def save_labels(id: RecordId, request: SaveLabelsRequest, workspace: WorkspaceDep) -> dict[Literal["version"], int]:
    """All labels of one video by one person. They are on the disk when this is answered."""
    return {"version": open_store(workspace, id, request.task).save(request)}


@router.post("/steps", status_code=204)
def add_steps(id: RecordId, request: schemas.AddStepsRequest, workspace: WorkspaceDep) -> None:
    """Steps that there are beside those of the labels, for everybody."""
    open_store(workspace, id, request.task).add_steps(request.steps)


@router.post("/drafts", status_code=204)
def add_drafts(id: RecordId, request: schemas.DraftRequest, workspace: WorkspaceDep) -> None:
    """Drafts from other data, or made from what is said; what was rejected does not come back."""
    store = open_store(workspace, id, request.task)
    names = [each.video for each in store.base.videos]
    if request.data is None:
        labelled, source = store.labelled_task(request.person), workspace.datasets.get(id)
        result = workspace.run_on_dataset(source, dataset_workers.draft_from_narration, names, store.steps(), labelled)
    else:
        result = workspace.run_on_dataset(workspace.datasets.get(request.data), dataset_workers.read_drafts, names)
    store.add_drafts(VideoLabels.model_validate(each) for each in result.value)


@router.post("/graph")
def learn_live_graph(
    id: RecordId, request: schemas.PersonRequest, workspace: WorkspaceDep
) -> schemas.LiveGraphResponse:
    """The graph of a person's labels so far; whether they are enough, and which video to label next."""
    store, person = open_store(workspace, id, request.task), request.person
    labelled = store.labelled_task(person)
    done = {video.id for video in labelled} | store.saved(person).keys()
    unlabelled = [to_video(name, rows) for name, rows in store.drafts().items() if name not in done]
    history = store.graph_history(person)
    previous = history[-1].graph if history else None
    result = workspace.sandbox.run(dataset_workers.learn_live_graph, labelled, unlabelled, previous).value
    graph, labels = result.pop("graph"), sum(len(video.segments) for video in labelled)
    if graph is not None:
        fields = {"videos": len(labelled), "movement": result["movement"], "graph": graph}
        kept = [entry.model_copy(update={"graph": None}) for entry in history if entry.videos != len(labelled)]
        history = [*kept[-_MAX_HISTORY:], GraphEntry.model_validate(fields)]
        store.write_graph_history(person, history)
    trend = [
        {"videos": entry.videos, "movement": entry.movement}
        for entry in sorted(history, key=lambda entry: entry.videos)
        if entry.movement is not None
    ]
    fields = {**result, "videos": len(labelled), "labels": labels, "trend": trend}
    return schemas.LiveGraphResponse.model_validate(fields, strict=False)


@router.post("/table", status_code=201)
def make_table(id: RecordId, request: schemas.PersonRequest, workspace: WorkspaceDep) -> DatasetRecord:
    """A dataset of a person's labels, to learn graphs from and to download; it is brought up to date every time."""
    labelled = open_store(workspace, id, request.task).labelled_task(request.person)
    if not len(labelled):
        raise InputError("there is no label yet", hint="accept a draft, or make a label")
    dataset = workspace.datasets.get(id)
    record = _corrected(dataset, f"labels of {request.person}", id, request.task, request.person)
    write_whole(workspace.dataset_path(record), to_csv([labelled]))
    return workspace.describe(record)


@router.post("/filled", status_code=201)
def fill_labels(id: RecordId, request: schemas.FillRequest, workspace: WorkspaceDep) -> DatasetRecord:
    """A dataset in which the videos without labels have drafts, from what is said in them; as `msg2 label`."""
    dataset = workspace.datasets.get(id)
    if not dataset.media:
        hint = "add the folder of the videos with their captions, and fill in the labels there"
        raise InputError("has labels only: there is nothing to fill in others from", where=dataset.name, hint=hint)
    known = workspace.datasets.get(request.labels) if request.labels is not None else dataset
    labels = (workspace.dataset_path(known), known) if any(task.steps for task in known.tasks) else None
    filled = workspace.run_on_dataset(dataset, dataset_workers.fill_labels, request, labels).value
    record = _corrected(
        dataset, "filled in", id, known.id, request.task or "", "filled in", draft_confidence=filled["draft_confidence"]
    )
    write_whole(workspace.dataset_path(record), filled["table"])
    return workspace.describe(record, filled["remarks"])


def _corrected(dataset: DatasetRecord, what: str, *key: str, draft_confidence: float | None = None) -> DatasetRecord:
    """Make the record of a table that improves on a dataset; the same key is the same record."""
    return DatasetRecord(
        id=_hashed("\n".join(key)), made=time.time(), name=f"{dataset.title}, {what}.csv", format="", tasks=[],
        corrects=dataset.id, draft_confidence=draft_confidence,
    )  # fmt: skip


@router.get("/agreement")
def get_agreement(
    id: RecordId, query: Annotated[schemas.AgreementQuery, Query()], workspace: WorkspaceDep
) -> AnnotatorAgreement:
    """How far two people agree over the videos that both have saved: Cohen's kappa, step by step."""
    store = open_store(workspace, id, query.task or "")
    first, second = (store.labelled_task(person, only_saved=True) for person in (query.person, query.other))
    return annotator_agreement(first, second)


_VIDEO = {"content": {"video/*": {"schema": {"type": "string", "format": "binary"}}}}


@router.get("/captions")
def get_captions(
    id: RecordId, query: Annotated[schemas.WorkbenchVideoQuery, Query()], workspace: WorkspaceDep
) -> dict[Literal["captions"], list[schemas.CaptionEntry]]:
    """The captions of a video."""
    path = _video_file(workspace, id, query, "captions")
    result = workspace.sandbox.run(dataset_workers.read_captions_of, path, path_name=(path, path.name))
    return {"captions": result.value}


@router.get("/media", response_class=Response, responses={200: _VIDEO, 206: {"description": "A part of it.", **_VIDEO}})
def get_media(
    id: RecordId, query: Annotated[schemas.WorkbenchVideoQuery, Query()], workspace: WorkspaceDep
) -> Response:
    """The file of a video, or the part of it that the header `Range` asks for."""
    path = _video_file(workspace, id, query, "media")
    return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")


def _video_file(
    workspace: Workspace, id: str, query: schemas.WorkbenchVideoQuery, kind: Literal["media", "captions"]
) -> Path:
    """The names of the files came out of a worker, so they are not trusted: no way up, no other kind of file."""
    place = open_store(workspace, id, query.task).base.places.get(query.video)
    name = None if place is None else place.media if kind == "media" else place.captions
    suffixes = MEDIA_SUFFIXES if kind == "media" else CAPTION_SUFFIXES
    if place is None or name is None or ".." in Path(name).parts or not name.lower().endswith(suffixes):
        raise NotFoundError(f"the video has no {kind}", where=query.video)
    holder = workspace.datasets.get(place.data)
    path = workspace.dataset_path(holder) / name
    if not holder.media or not path.is_relative_to(workspace.dataset_path(holder)) or not path.is_file():
        raise NotFoundError("the file is not there any more", where=name)
    return path
