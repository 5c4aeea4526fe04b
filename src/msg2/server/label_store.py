"""The labels that people make of the videos of a task, as plain files, so that nothing that was acknowledged is lost.

In `data/ID/labelling/TASK/`: `base.json` is what the data say (read again whenever the workbench is opened),
`drafts.json` drafts that were added, `steps.json` steps that were added, `people/PERSON/VIDEO.json` all labels of one
video by one person, `graphs/PERSON.json` how the graph moved. TASK, PERSON and VIDEO are hashes of the names, which are
in the files. Everything is written whole.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.server.schemas import LabelRow, SaveLabelsRequest, StrictModel, VideoLabels
from msg2.server.storage import NotFoundError
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
        """Write all labels of one video by one person, and return their version.

        Raises
        ------
        InputError
            Where there is no such video, a label is wrong, or the labels have been changed elsewhere meanwhile.
        """
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
        """The labels of a person as a task: what they saved and, unless `only_saved`, what came with the data.

        Parameters
        ----------
        person : str
            Whose labels.
        only_saved : bool
            Whether videos that the person has not saved are left out; else those without any label are.

        Returns
        -------
        Task
        """
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
        """Keep the graphs that were learned.

        Parameters
        ----------
        person : str
            From whose labels.
        history : sequence of dict
            What `graph_history` is to return.
        """
        write_whole(self._folder / "graphs" / f"{_hashed(person)}.json", json.dumps(list(history)))

    def _person_folder(self, person: str) -> Path:
        return self._folder / "people" / _hashed(person)


def to_video(name: str, rows: Iterable[LabelRow]) -> Video:
    """Make a video of its labels.

    Parameters
    ----------
    name : str
        The video.
    rows : iterable of LabelRow
        Its labels.

    Returns
    -------
    Video
    """
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
