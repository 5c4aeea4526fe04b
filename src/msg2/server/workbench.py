"""The workbench without HTTP: what people label, with the drafts, captions, videos and graphs around it.

Whatever comes from files is read in the sandbox; what people save is checked by its schema and kept by `LabelStore`.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from pathlib import Path

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats.caption_files import CAPTION_SUFFIXES
from msg2.formats.step_table import to_csv
from msg2.media.video_files import MEDIA_SUFFIXES
from msg2.metrics import annotator_agreement
from msg2.server import dataset_workers, label_workers
from msg2.server.label_store import LabellingBase, LabelStore, to_video
from msg2.server.schemas import (
    AgreementResponse,
    CaptionsResponse,
    DatasetRecord,
    DraftRequest,
    FillRequest,
    LiveGraphResponse,
    StabilityPoint,
    VideoLabels,
    WorkbenchResponse,
    WorkbenchVideo,
)
from msg2.server.storage import NotFoundError
from msg2.server.workspace import Workspace, update_record

_MAX_HISTORY = 200


def open_workbench(workspace: Workspace, id: str, task: str | None, person: str) -> WorkbenchResponse:
    """Read what there is to label, and what a person has made of it.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task : str or None
        Which task; None where there is only one.
    person : str
        Whose labels.

    Returns
    -------
    WorkbenchResponse
    """
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
    """Get drafts for the videos of a task, in the place of those that were added before.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    request : DraftRequest
        Where they come from.
    """
    store = open_store(workspace, id, request.task)
    names = [each.video for each in store.base.videos]
    if request.data is None:
        labelled, source = store.labelled_task(request.person), workspace.datasets.get(id)
        result = workspace.run_on_dataset(source, label_workers.draft_from_narration, names, store.steps(), labelled)
    else:
        result = workspace.run_on_dataset(workspace.datasets.get(request.data), label_workers.read_drafts, names)
    store.add_drafts(VideoLabels.model_validate(each) for each in result.value)


def live_graph(workspace: Workspace, id: str, task: str, person: str) -> LiveGraphResponse:
    """Learn the graph of a person's labels so far, in the sandbox, and remember how it moved.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task : str
        The task.
    person : str
        Whose labels.

    Returns
    -------
    LiveGraphResponse
    """
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
    """Make a dataset of a person's labels, or bring it up to date: what graphs are learned from, and downloads made of.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task : str
        The task.
    person : str
        Whose labels.

    Returns
    -------
    DatasetRecord
        The same one for the same person, whenever it is made.

    Raises
    ------
    InputError
        Where there is no label yet.
    """
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
    """Make a dataset in which the videos without labels have drafts, from what is said in them.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        A folder of videos with captions, or of captions alone.
    request : FillRequest
        What is known of the steps.

    Returns
    -------
    DatasetRecord
        The same one whenever it is made; its remarks say how much was filled in, and how sure it is.

    Raises
    ------
    InputError
        Where there is nothing to fill them in from.
    """
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
    """Return the file of a video: one with the suffix of a video, in a folder that this server was told of.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task, video : str
        The task, and a video of it.

    Returns
    -------
    Path

    Raises
    ------
    NotFoundError
        Where there is none.
    """
    return _video_file(workspace, id, task, video, "media")


def captions_of(workspace: Workspace, id: str, task: str, video: str) -> CaptionsResponse:
    """Read the captions of a video, in the sandbox.

    Parameters
    ----------
    workspace : Workspace
        Of the app.
    id : str
        The dataset.
    task, video : str
        The task, and a video of it.

    Returns
    -------
    CaptionsResponse
    """
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
