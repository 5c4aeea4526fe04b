"""The labels that people make of the videos of a task, as plain files, so that nothing that was acknowledged is lost.

In `data/ID/labelling/TASK/`: `base.json` is what the data say (read again whenever the workbench is opened),
`drafts.json` drafts that were added, `steps.json` steps that were added, `people/PERSON/VIDEO.json` all labels of one
video by one person, `graphs/PERSON.json` how the graph moved. TASK, PERSON and VIDEO are hashes of the names, which are
in the files. Everything is written whole.

The workbench without HTTP: what people label, with the drafts, captions, videos and graphs around it.

Whatever comes from files is read in the sandbox; what people save is checked by its schema and kept by `LabelStore`.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats.captions import CAPTION_SUFFIXES
from msg2.formats.step_table import to_csv
from msg2.media.video_files import MEDIA_SUFFIXES
from msg2.metrics import annotator_agreement
from msg2.server import dataset_workers, label_workers
from msg2.server.schemas import (
    AgreementResponse,
    CaptionsResponse,
    DatasetRecord,
    DraftRequest,
    FillRequest,
    LabelRow,
    LiveGraphResponse,
    SaveLabelsRequest,
    StabilityPoint,
    StrictModel,
    VideoLabels,
    WorkbenchResponse,
    WorkbenchVideo,
)
from msg2.server.workspace import NotFoundError, Workspace, update_record
from msg2.task import DRAFT, PREDICTED, Segment, Task, Video

DRAFT_SOURCES = frozenset({DRAFT, PREDICTED})
"""Sources of labels that wait for a person."""

_Model = TypeVar("_Model", bound=BaseModel)
_saving = threading.Lock()


class VideoPlace(StrictModel):
    """Where the files of a video lie: in the folder of which dataset, and under which names there."""

    data: str
    media: str | None = None
    captions: str | None = None


class LabellingBase(StrictModel):
    """What the data say of a task: its steps, all labels and drafts by video, and the files of the videos."""

    task: str
    steps: list[str]
    videos: list[VideoLabels]
    places: dict[str, VideoPlace]


class _AddedDrafts(StrictModel):
    videos: list[VideoLabels] = Field(default_factory=list)


class _AddedSteps(StrictModel):
    steps: list[str] = Field(default_factory=list)


class LabelStore:
    """All labels of one task of a dataset, in a folder."""

    def __init__(self, dataset_folder: Path, task: str) -> None:
        self.task = task
        self._folder = dataset_folder / "labelling" / _hashed(task)

    # -- what is there to begin with ----------------------------------------------------------------------------

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
            known = _read(self._folder / "steps.json", _AddedSteps) or _AddedSteps()
            added = _AddedSteps(steps=list(dict.fromkeys([*known.steps, *steps])))
            write_whole(self._folder / "steps.json", added.model_dump_json())

    def add_drafts(self, drafts: Iterable[VideoLabels]) -> None:
        """Keep drafts, in the place of those that were added before."""
        write_whole(self._folder / "drafts.json", _AddedDrafts(videos=list(drafts)).model_dump_json(exclude_none=True))

    def steps(self) -> list[str]:
        """All steps, by name: of the data, of the drafts, and those that were added."""
        added = _read(self._folder / "steps.json", _AddedSteps) or _AddedSteps()
        drafted = (row.step for rows in self._added_drafts().values() for row in rows)
        used = (row.step for person in self.people() for saved in self.saved(person).values() for row in saved.labels)
        return sorted({*self.base.steps, *added.steps, *drafted, *used})

    def given_labels(self) -> dict[str, list[LabelRow]]:
        """Video -> the labels that came with the data, without drafts."""
        return {
            each.video: [row for row in each.labels if row.source not in DRAFT_SOURCES] for each in self.base.videos
        }

    def drafts(self) -> dict[str, list[LabelRow]]:
        """Video -> all drafts, of the data and those that were added, whether they are settled or not."""
        added = self._added_drafts()
        return {
            each.video: [*(row for row in each.labels if row.source in DRAFT_SOURCES), *added.get(each.video, ())]
            for each in self.base.videos
        }

    def _added_drafts(self) -> dict[str, list[LabelRow]]:
        added = _read(self._folder / "drafts.json", _AddedDrafts) or _AddedDrafts()
        return {each.video: each.labels for each in added.videos}

    # -- what people make of it ---------------------------------------------------------------------------------

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

    # -- how the graph moved ------------------------------------------------------------------------------------

    def graph_history(self, person: str) -> list[dict[str, Any]]:
        """The graphs that were learned before, the last one last."""
        try:
            return list(json.loads((self._folder / "graphs" / f"{_hashed(person)}.json").read_bytes()))
        except (OSError, ValueError):  # none yet, or nothing that is worth stopping for
            return []

    def write_graph_history(self, person: str, history: Sequence[dict[str, Any]]) -> None:
        """Keep the graphs that were learned."""
        write_whole(self._folder / "graphs" / f"{_hashed(person)}.json", json.dumps(list(history)))

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


_MAX_HISTORY = 200


def open_workbench(workspace: Workspace, id: str, task: str | None, person: str) -> WorkbenchResponse:
    """Read what there is to label, and what a person has made of it."""
    dataset = workspace.datasets.get(id)
    others = {
        other.id: workspace.dataset_path(other)
        for other in workspace.datasets.records()
        if other.media and other.id != id
    }
    result = workspace.run_on_dataset(dataset, label_workers.read_base, task, others)
    base = LabellingBase.model_validate(result.value)
    store = open_store(workspace, id, base.task)
    store.write_base(base)
    saved, given = store.saved(person), store.given_labels()
    drafts, videos = store.drafts(), []
    for name, labels in given.items():
        own, place = saved.get(name), base.places.get(name)
        videos.append(
            WorkbenchVideo(
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
    return WorkbenchResponse(task=base.task, steps=store.steps(), people=store.people(), videos=videos)


def open_store(workspace: Workspace, id: str, task: str) -> LabelStore:
    """Return the labels of a task of a dataset that is kept.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task : str
        The task.

    Returns
    -------
    LabelStore
    """
    return LabelStore(workspace.datasets.folder(workspace.datasets.get(id).id), task)


def add_drafts(workspace: Workspace, id: str, request: DraftRequest) -> None:
    """Get drafts for the videos of a task, in the place of those that were added before."""
    store = open_store(workspace, id, request.task)
    names = [each.video for each in store.base.videos]
    if request.data is None:
        labelled, source = store.labelled_task(request.person), workspace.datasets.get(id)
        result = workspace.run_on_dataset(source, label_workers.draft_from_narration, names, store.steps(), labelled)
    else:
        result = workspace.run_on_dataset(workspace.datasets.get(request.data), label_workers.read_drafts, names)
    store.add_drafts(VideoLabels.model_validate(each) for each in result.value)


def live_graph(workspace: Workspace, id: str, task: str, person: str) -> LiveGraphResponse:
    """Learn the graph of a person's labels so far, in the sandbox, and remember how it moved."""
    store = open_store(workspace, id, task)
    labelled = store.labelled_task(person)
    done = {video.id for video in labelled} | store.saved(person).keys()
    unlabelled = [to_video(name, rows) for name, rows in store.drafts().items() if name not in done]
    history = store.graph_history(person)
    previous = history[-1]["graph"] if history else None
    result = workspace.sandbox.run(label_workers.learn_live_graph, labelled, unlabelled, previous).value
    graph, labels = result.pop("graph"), sum(len(video.segments) for video in labelled)
    if graph is not None:
        kept = [each for each in history if each["videos"] != len(labelled)]
        entry = {"videos": len(labelled), "movement": result["movement"], "graph": graph}
        history = [*({**each, "graph": None} for each in kept[-_MAX_HISTORY:]), entry]
        store.write_graph_history(person, history)
    trend = [
        StabilityPoint(videos=each["videos"], movement=each["movement"])
        for each in sorted(history, key=lambda each: each["videos"])
        if each["movement"] is not None
    ]
    return LiveGraphResponse.model_validate({**result, "videos": len(labelled), "labels": labels, "trend": trend})


def make_table(workspace: Workspace, id: str, task: str, person: str) -> DatasetRecord:
    """Create or update the dataset of a person's labels, from which graphs are learned and downloads are made."""
    dataset = workspace.datasets.get(id)
    labelled = open_store(workspace, id, task).labelled_task(person)
    if not len(labelled):
        raise InputError("there is no label yet", hint="accept a draft, or make a label")
    new = hashlib.sha256("\n".join((id, task, person)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    name = f"{dataset.title}, labels of {person}.csv"
    record = DatasetRecord(id=new, made=time.time(), name=name, format="", tasks=[], corrects=id)
    write_whole(workspace.dataset_path(record), to_csv([labelled]))
    result = workspace.run_on_dataset(record, dataset_workers.describe_dataset)
    return workspace.datasets.put(update_record(record, **result.value, remarks=result.messages))


def fill_labels(workspace: Workspace, id: str, request: FillRequest) -> DatasetRecord:
    """Make a dataset in which the videos without labels have drafts, from what is said in them."""
    dataset = workspace.datasets.get(id)
    if not dataset.media:
        hint = "add the folder of the videos with their captions, and fill in the labels there"
        raise InputError("has labels only: there is nothing to fill in others from", where=dataset.name, hint=hint)
    known = workspace.datasets.get(request.labels) if request.labels is not None else dataset
    has_labels = any(task.steps for task in known.tasks)
    given = (workspace.dataset_path(known), known) if has_labels else None
    found = workspace.run_on_dataset(dataset, label_workers.fill_labels, request, given).value
    new = hashlib.sha256("\n".join((id, known.id, request.task or "", "filled in")).encode()).hexdigest()[:32]
    record = DatasetRecord(
        id=new, made=time.time(), name=f"{dataset.title}, filled in.csv", format="", tasks=[], corrects=id,
        draft_confidence=found["draft_confidence"],
    )  # fmt: skip
    write_whole(workspace.dataset_path(record), found["table"])
    result = workspace.run_on_dataset(record, dataset_workers.describe_dataset)
    return workspace.datasets.put(update_record(record, **result.value, remarks=[*found["remarks"], *result.messages]))


def agreement(workspace: Workspace, id: str, task: str, people: tuple[str, str]) -> AgreementResponse:
    """Compare the labels of two people, over the videos that both have saved.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task : str
        The task.
    people : tuple of str
        Their names.

    Returns
    -------
    AgreementResponse
    """
    store = open_store(workspace, id, task)
    first, second = (store.labelled_task(person, only_saved=True) for person in people)
    return AgreementResponse.model_validate(asdict(annotator_agreement(first, second)), strict=False)


# -- files of videos --------------------------------------------------------------------------------------------


def media_file(workspace: Workspace, id: str, task: str, video: str) -> Path:
    """Return the file of a video: one with the suffix of a video, in a folder that this server was told of."""
    return _video_file(workspace, id, task, video, "media")


def captions_of(workspace: Workspace, id: str, task: str, video: str) -> CaptionsResponse:
    """Read the captions of a video, in the sandbox."""
    path = _video_file(workspace, id, task, video, "captions")
    result = workspace.sandbox.run(
        label_workers.read_captions_of, path, translate=lambda text: text.replace(str(path), path.name)
    )
    return CaptionsResponse.model_validate({"captions": result.value}, strict=False)


def _video_file(workspace: Workspace, id: str, task: str, video: str, kind: str) -> Path:
    """The names of the files came out of the sandbox, so they are not trusted: no way up, no other kind of file."""
    place = open_store(workspace, id, task).base.places.get(video)
    name = None if place is None else place.media if kind == "media" else place.captions
    suffixes = MEDIA_SUFFIXES if kind == "media" else CAPTION_SUFFIXES
    if place is None or name is None or ".." in Path(name).parts or not name.lower().endswith(suffixes):
        raise NotFoundError(f"the video has no {kind}", where=video)
    holder = workspace.datasets.get(place.data)
    path = workspace.dataset_path(holder) / name
    if not holder.media or not path.is_relative_to(workspace.dataset_path(holder)) or not path.is_file():
        raise NotFoundError("the file is not there any more", where=name)
    return path
