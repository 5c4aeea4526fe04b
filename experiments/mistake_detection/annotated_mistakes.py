"""What is a mistake in a CaptainCook4D recording, and what its annotations do not say.

They mark steps that went wrong in any way (`has_errors`) and steps that were skipped, but not of which kind an error
is. Mistakes of order are therefore those that two human sources agree on: the task graph of the recipe, and a mark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from msg2.formats import read_all, read_graph
from msg2.formats.json_files import member
from msg2.graph import SubtaskGraph
from msg2.task import Segment, Step, Task, Video

ANNOTATIONS = "complete_step_annotations.json"


@dataclass(frozen=True, slots=True)
class Recording:
    """A video, and for each of its segments whether annotators marked an error, and whether it is one of order.

    `premature`: the human task graph says that it came too early, and it is marked or what it lacks never came at all.
    `late`: a step that needs it, directly or through others, came before it, and it is marked.
    """

    video: Video
    marked: tuple[bool, ...]
    premature: tuple[bool, ...]
    late: tuple[bool, ...]
    flawless: bool
    """Nothing is marked, and nothing was skipped."""

    @property
    def out_of_order(self) -> tuple[bool, ...]:
        """Premature or late."""
        return tuple(early or late for early, late in zip(self.premature, self.late, strict=True))


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recordings of a recipe, all its steps, and its human task graph."""

    name: str
    steps: tuple[Step, ...]
    graph: SubtaskGraph
    recordings: tuple[Recording, ...]

    def training(self, test: Recording, flawless: bool) -> Task:
        """The other recordings; where `flawless`, only those without any error.

        Parameters
        ----------
        test : Recording
            The recording that is left out.
        flawless : bool
            Whether only recordings without any error are taken.

        Returns
        -------
        Task
            The other recordings.
        """
        others = [one for one in self.recordings if one is not test and (one.flawless or not flawless)]
        return Task(self.name, self.steps, [one.video for one in others])


def read_recipes(folder: Path, order: str) -> list[Recipe]:
    """The recipes in the `order` of the file or of time, repeated steps kept, with what is true of every segment.

    Parameters
    ----------
    folder : Path
        Of CaptainCook4D.
    order : str
        `file` or `time`.

    Returns
    -------
    list[Recipe]
        With the recordings of each.
    """
    path = folder / ANNOTATIONS
    tasks = read_all(path, order="file", repeats="keep")
    document = json.loads(path.read_text(encoding="utf-8"))  # in the form that the reader has checked
    graphs = {file.stem: read_graph(file) for file in sorted((folder / "task_graphs").glob("*.json"))}
    recipes = []
    for task in tasks:
        graph = graphs["".join(filter(str.isalnum, task.name)).lower()]
        recordings = []
        for video in task:
            rows = document[video.id]["steps"]
            where = f"{path}, $.{video.id}.steps"
            marks = [member(row, "has_errors", bool, f"{where}[{place}]") for place, row in enumerate(rows)]
            performed = [(row, mark) for row, mark in zip(rows, marks, strict=True) if row["start_time"] >= 0]
            marked = [
                (Segment(segment.step, row["start_time"], row["end_time"]), mark)
                for segment, (row, mark) in zip(video.segments, performed, strict=True)
            ]
            if order == "time":
                marked.sort(key=lambda one: (one[0].start, one[0].end, one[0].step))  # as `Video` sorts
            else:
                marked = [(Segment(segment.step), mark) for segment, mark in marked]
            shown = Video(video.id, [segment for segment, _ in marked])
            recordings.append(annotate_recording(shown, tuple(mark for _, mark in marked), graph, not any(marks)))
        recipes.append(Recipe(task.name, task.steps, graph, tuple(recordings)))
    return recipes


def annotate_recording(video: Video, marked: tuple[bool, ...], graph: SubtaskGraph, flawless: bool) -> Recording:
    """What the human task graph and the marks agree on, for every segment.

    A step counts as done once it has begun: annotators rarely mark a step that begins while another one is running.

    Parameters
    ----------
    video : Video
        The video.
    marked : tuple[bool, ...]
        Whether annotators marked an error, for every segment.
    graph : SubtaskGraph
        The human task graph.
    flawless : bool
        Whether nothing is marked or skipped.

    Returns
    -------
    Recording
        With its premature and late segments.
    """
    performed = {segment.step for segment in video.segments}
    shown: set[Step] = set()
    owed: set[Step] = set()
    premature, late = [], []
    for segment, mark in zip(video.segments, marked, strict=True):
        missing = graph.parents(segment.step) - shown
        premature.append(bool(missing) and (mark or not missing <= performed))
        late.append(mark and segment.step in owed)
        shown.add(segment.step)
        owed = (owed | graph.ancestors(segment.step)) - shown
    return Recording(video, marked, tuple(premature), tuple(late), flawless)
