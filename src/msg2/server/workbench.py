"""The workbench over HTTP: the labels that people make of videos, with drafts, captions and the graph so far.

Labels are plain files in `data/ID/labelling/TASK/`: `base.json` is what the data say, `drafts.json` and `steps.json`
what was added, `people/PERSON/VIDEO.json` the labels of one video by one person, and `graphs/PERSON.json` how the graph
changed. TASK, PERSON and VIDEO are hashes of the names.
"""

import hashlib
import mimetypes
import threading
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field, ValidationError

from msg2.errors import InputError, require
from msg2.files import write_whole
from msg2.formats.captions import CAPTION_SUFFIXES
from msg2.formats.step_table import to_csv
from msg2.formats.video_files import MEDIA_SUFFIXES
from msg2.metrics import AnnotatorAgreement, annotator_agreement
from msg2.server import dataset_functions, schemas
from msg2.server.sandbox import NamedFile
from msg2.server.schemas import DatasetRecord, LabelRow, PersonName, QueryText, RecordId, SaveLabelsRequest
from msg2.server.workspace import NotFoundError, Workspace, WorkspaceDep, new_dataset
from msg2.task import DRAFT, LLM, PREDICTED, Segment, Task, Video

DRAFT_SOURCES = frozenset({DRAFT, LLM, PREDICTED})
"""Sources of labels that wait for a person."""

_Model = TypeVar("_Model", bound=BaseModel)
_saving = threading.Lock()


class VideoPlace(schemas.StrictModel):
    """Where the files of a video lie: in the folder of which dataset, and under which names there."""

    data: str
    media: str | None = None
    captions: str | None = None


class LabellingBase(schemas.TaskLabelsResponse):
    """What the data say of a task: its steps, all labels and drafts by video, and the files of the videos."""

    places: dict[str, VideoPlace]


class _Added(schemas.StrictModel):
    """What people have added to the data: steps, or drafts of videos."""

    steps: list[str] = Field(default_factory=list)
    videos: list[schemas.VideoLabels] = Field(default_factory=list)


class LabelStore:
    """All labels of one task of a dataset, in a folder."""

    def __init__(self, dataset_folder: Path, task: str) -> None:
        self.task = task
        self._folder = dataset_folder / "labelling" / _hashed(task)

    @cached_property
    def base(self) -> LabellingBase:
        """What the data say."""
        base = _read(self._folder / "base.json", LabellingBase)
        if base is None:
            raise NotFoundError("the workbench of this task has not been opened yet")
        return base

    def write_base(self, base: LabellingBase) -> None:
        """Keep what the data say now."""
        _write(self._folder / "base.json", base)

    def add_steps(self, steps: Iterable[str]) -> None:
        """Add steps to those of the data."""
        with _saving:
            added = dict.fromkeys([*self._added("steps").steps, *steps])
            _write(self._folder / "steps.json", _Added(steps=list(added)))

    def add_drafts(self, drafts: Iterable[schemas.VideoLabels]) -> None:
        """Keep drafts, in the place of those that were added before."""
        _write(self._folder / "drafts.json", _Added(videos=list(drafts)))

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

    def _added(self, what: Literal["steps", "drafts"]) -> _Added:
        return _read(self._folder / f"{what}.json", _Added) or _Added()

    def people(self) -> list[str]:
        """Everybody who has saved something, by name."""
        firsts = (min(folder.glob("*.json"), default=None) for folder in (self._folder / "people").glob("*"))
        saved = (_read(path, SaveLabelsRequest) for path in firsts if path is not None)
        return sorted({each.person for each in saved if each is not None})

    def saved(self, person: str) -> dict[str, SaveLabelsRequest]:
        """Video -> what a person has saved, of the videos that there are."""
        every = (_read(path, SaveLabelsRequest) for path in self._person_folder(person).glob("*.json"))
        known = {each.video for each in self.base.videos}
        return {each.video: each for each in every if each is not None and each.video in known}

    def save(self, request: SaveLabelsRequest) -> int:
        """Write all labels of one video by one person, and return their version."""
        require(request.video in self.given_labels(), "the task has no such video", where=request.video)
        to_video(request.video, request.labels)
        path = self._person_folder(request.person) / f"{_hashed(request.video)}.json"
        with _saving:
            before, after = _read(path, SaveLabelsRequest), request.version + 1
            if before is not None and before.version == after and before.labels == request.labels:
                return after  # sent again, since the answer was lost
            if request.version != (0 if before is None else before.version):
                what = f"the labels of this video by {request.person} have been changed elsewhere"
                raise InputError(what, where=request.video, hint="load the page again")
            _write(path, request.model_copy(update={"version": after}))
        return after

    def labelled_task(self, person: str, *, only_saved: bool = False) -> Task:
        """The labels of a person as a task: what they saved and, unless `only_saved`, what came with the data."""
        saved = {video: each.labels for video, each in self.saved(person).items()}
        rows = saved if only_saved else {**self.given_labels(), **saved}
        videos = [to_video(name, labels) for name, labels in sorted(rows.items()) if labels or only_saved]
        return Task(self.task, {segment.step for video in videos for segment in video.segments}, videos)

    def graph_history(self, person: str) -> Path:
        """The file of the graphs that were learned from the labels of a person."""
        return self._folder / "graphs" / f"{_hashed(person)}.json"

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


def _write(path: Path, content: BaseModel) -> None:
    write_whole(path, content.model_dump_json(exclude_defaults=True))


router = APIRouter(prefix="/api/data/{id}/workbench", tags=["workbench"])


def open_store(workspace: Workspace, id: str, task: str) -> LabelStore:
    """Return the labels of a task of a dataset that is kept."""
    return LabelStore(workspace.datasets.folder(workspace.datasets.get(id).id), task)


@router.get("", response_model_exclude_none=True)
def get_workbench(
    id: RecordId, person: PersonName, workspace: WorkspaceDep, task: QueryText | None = None
) -> schemas.WorkbenchResponse:
    """All videos of a task with the labels of one person, and all drafts."""
    folders = [other for other in workspace.datasets.records() if other.media and other.id != id]
    others = {other.id: workspace.dataset(other).path for other in folders}
    result = workspace.sandbox.call(dataset_functions.read_base, workspace.dataset(id), task, others)
    base = LabellingBase.model_validate(result.value)
    store = open_store(workspace, id, base.task)
    store.write_base(base)
    saved, drafts, videos = store.saved(person), store.drafts(), []
    for name, labels in store.given_labels().items():
        new = SaveLabelsRequest(task=base.task, person=person, video=name, version=0, labels=labels)
        own = saved.get(name, new).model_dump(include={"video", "labels", "settled", "version"})
        place = base.places.get(name, VideoPlace(data=id))
        files = {"media": place.media is not None, "captions": place.captions is not None}
        fields = {**own, **files, "drafts": drafts[name], "own": name in saved}
        videos.append(schemas.WorkbenchVideo.model_validate(fields))
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
    data, call = workspace.dataset(request.data or id), workspace.sandbox.call
    if request.data is None:
        labelled = store.labelled_task(request.person)
        result = call(dataset_functions.draft_from_narration, data, names, store.steps(), labelled)
    else:
        result = call(dataset_functions.read_drafts, data, names)
    store.add_drafts(schemas.VideoLabels.model_validate(each) for each in result.value)


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
    result = workspace.sandbox.call(dataset_functions.learn_live_graph, labelled, unlabelled, history)
    return schemas.LiveGraphResponse.model_validate(result.value, strict=False)


@router.post("/table", status_code=201)
def make_table(id: RecordId, request: schemas.PersonRequest, workspace: WorkspaceDep) -> DatasetRecord:
    """A dataset of a person's labels, to learn graphs from and to download; it is brought up to date every time."""
    labelled = open_store(workspace, id, request.task).labelled_task(request.person)
    require(len(labelled), "there is no label yet", hint="accept a draft, or make a label")
    record = _corrected(workspace, id, f"labels of {request.person}", request.task, request.person)
    write_whole(workspace.dataset(record).path, to_csv([labelled]))
    return workspace.describe(record)


@router.post("/filled", status_code=201)
def fill_labels(id: RecordId, request: schemas.FillRequest, workspace: WorkspaceDep) -> DatasetRecord:
    """A dataset in which the videos without labels have drafts, from what is said in them; as `msg2 label`."""
    data, known = workspace.dataset(id), workspace.dataset(request.labels or id)
    if not data.record.media:
        hint = "add the folder of the videos with their captions, and fill in the labels there"
        raise InputError("has labels only: there is nothing to fill in others from", where=data.record.name, hint=hint)
    labels = known if any(task.steps for task in known.record.tasks) else None
    table, least, remarks = workspace.sandbox.call(dataset_functions.fill_labels, data, request, labels).value
    key = known.record.id, request.task or "", "filled in"
    record = _corrected(workspace, id, "filled in", *key, draft_confidence=least)
    write_whole(workspace.dataset(record).path, table)
    return workspace.describe(record, remarks)


def _corrected(workspace: Workspace, id: str, what: str, *key: str, **fields: float | None) -> DatasetRecord:
    """Make the record of a table that improves on a dataset; the same id and key is the same record."""
    title = workspace.datasets.get(id).title
    return new_dataset(f"{title}, {what}.csv", id=_hashed("\n".join((id, *key))), corrects=id, **fields)


@router.get("/agreement")
def get_agreement(
    id: RecordId, person: PersonName, other: PersonName, workspace: WorkspaceDep, task: QueryText | None = None
) -> AnnotatorAgreement:
    """How far two people agree over the videos that both have saved: Cohen's kappa, step by step."""
    store = open_store(workspace, id, task or "")
    return annotator_agreement(*(store.labelled_task(name, only_saved=True) for name in (person, other)))


_VIDEO = {"content": {"video/*": {"schema": {"type": "string", "format": "binary"}}}}


@router.get("/captions")
def get_captions(
    id: RecordId, task: QueryText, video: QueryText, workspace: WorkspaceDep
) -> dict[Literal["captions"], list[schemas.CaptionEntry]]:
    """The captions of a video."""
    path = _video_file(open_store(workspace, id, task), video, "captions", workspace)
    file = NamedFile(path, path.name)
    return {"captions": workspace.sandbox.call(dataset_functions.read_captions_of, file).value}


@router.get("/media", response_class=Response, responses={200: _VIDEO, 206: {"description": "A part of it.", **_VIDEO}})
def get_media(id: RecordId, task: QueryText, video: QueryText, workspace: WorkspaceDep) -> Response:
    """The file of a video, or the part of it that the header `Range` asks for."""
    path = _video_file(open_store(workspace, id, task), video, "media", workspace)
    return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")


def _video_file(store: LabelStore, video: str, kind: Literal["media", "captions"], workspace: Workspace) -> Path:
    """The names of the files came out of a sandbox, so they are not trusted: no way up, no other kind of file."""
    place = store.base.places.get(video, VideoPlace(data=""))
    name = place.media if kind == "media" else place.captions
    suffixes = MEDIA_SUFFIXES if kind == "media" else CAPTION_SUFFIXES
    if name is None or ".." in Path(name).parts or not name.lower().endswith(suffixes):
        raise NotFoundError(f"the video has no {kind}", where=video)
    data = workspace.dataset(place.data)
    path = data.path / name
    if not data.record.media or not path.is_relative_to(data.path) or not path.is_file():
        raise NotFoundError("the file is not there any more", where=name)
    return path
