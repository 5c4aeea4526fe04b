"""What is answered over the wire, and what of it lies in the folder: the same types for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from msg2.server.models import Id, Job, Model, Reading, Row, Share


class Problem(Model):
    """Every answer that is no success: what is wrong, where, and what to do about it."""

    error: str
    where: str | None = None
    hint: str | None = None


class Ranked(Model):
    """A step that is left, with the clauses that do not hold yet (formulas as in a graph file)."""

    step: str
    probability: Share
    eligible: bool
    unmet: list[Any]


class Ranking(Model):
    """The steps that are left, the most probable first."""

    steps: list[Ranked]


class Picture(Model):
    """A laid out graph: the SVG, and the graph with its steps in order."""

    svg: str
    graph: dict[str, Any]


class TaskFacts(Model):
    """A task of a dataset."""

    name: str
    videos: int
    steps: list[str]


class Dataset(Model):
    """Data that graphs can be learnt from. `path` where it lies outside the folder, `corrects` what it improves on."""

    id: Id
    made: float
    name: str
    format: str
    tasks: list[TaskFacts]
    reading: Reading = Reading()
    remarks: list[str] = Field(default_factory=list)
    path: str | None = None
    corrects: Id | None = None

    @property
    def title(self) -> str:
        """The name without its suffix: what a task is called that has no name of its own."""
        return Path(self.name).stem or self.name


class Ballot(Model):
    """A clause of a step, who (from 0) of how many have it, and what became of it."""

    step: str
    clause: Any
    voters: list[int]
    of: int
    outcome: Literal["kept", "dropped", "tie", "contradiction"]


class Work(Model):
    """A graph that is kept, or the job that is to make it; `news` says what a running one is doing."""

    id: Id
    made: float
    kind: Literal["learnt", "given", "drawn", "merged"]
    state: Literal["waiting", "running", "done", "failed"]
    task: str = ""
    name: str = ""
    job: Job | None = None
    attempts: int = 0
    steps: list[str] = Field(default_factory=list)
    edges: int = 0
    videos: int = 0
    annotators: list[str] = Field(default_factory=list)
    votes: list[Ballot] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    problem: Problem | None = None
    news: str | None = None


class Datasets(Model):
    """All data, the newest first."""

    data: list[Dataset]


class Works(Model):
    """All graphs and jobs, the newest first."""

    work: list[Work]


class VideoLabels(Model):
    """The labels of one video, in order."""

    video: str
    labels: list[Row]


class Labels(Model):
    """The labels of a task, every one of them, video by video."""

    task: str
    steps: list[str]
    videos: list[VideoLabels]


class Choices(Model):
    """What there is to choose from: methods with the options they take and their defaults, and formats."""

    methods: dict[str, dict[str, Any]]
    default: str
    graph_formats: list[str]
    label_formats: list[str]
