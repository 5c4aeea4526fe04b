"""What an assistant has learned, as a file: graph, videos, and the numbers that took time to fit.

`Assistant(path)` starts from such a file without learning anything again. It is plain JSON, checked as it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from msg2.assist.belief import AssistantModel
from msg2.assist.conditional_logit import ConditionalLogit
from msg2.assist.forecasting import EndForecaster
from msg2.assist.learned_forecaster import FEATURES, load_forecaster
from msg2.assist.time_left import TimeConstants, fit_time_left
from msg2.errors import InputError, errors_at, require
from msg2.files import write_whole
from msg2.graph import SubtaskGraph
from msg2.task import Absent, LabelColumns, Task

MODEL_FORMAT: Literal["msg2.assistant/1"] = "msg2.assistant/1"
_Numbers = list[FiniteFloat]
_Indices = list[Annotated[int, Field(ge=0)]]


class _SavedPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _SavedVideos(_SavedPart):
    """Labels of videos, sorted by video and time; `step` counts the steps of the graph by name."""

    ids: list[str]
    absent: Absent
    timed: bool
    video: _Indices
    step: _Indices
    start: _Numbers
    end: _Numbers


class _SavedModel(_SavedPart):
    format: Literal["msg2.assistant/1"] = MODEL_FORMAT
    graph: dict[str, object]
    videos: _SavedVideos
    terms: list[_Numbers]
    weights: _Numbers
    end_terms: list[_Numbers] | None
    time_left: TimeConstants | None


def save_model(model: AssistantModel, path: Path) -> None:
    """Write what an assistant has learned from videos."""
    forecaster, ends, left, videos = model.forecaster, model.end_probability, model.time_left, model.videos
    if forecaster is None or ends is None or videos is None:
        raise InputError("the assistant has learned from no videos", hint="a graph alone is its own file")
    columns, place = videos.columns, {name: number for number, name in enumerate(sorted(model.graph.steps))}
    saved = _SavedModel(
        graph=model.graph.to_json(),
        videos=_SavedVideos(
            ids=list(columns.videos), absent=videos.absent, timed=columns.is_timed, video=columns.video.tolist(),
            step=[place[videos.steps[number]] for number in columns.step.tolist()],
            start=columns.start.tolist(), end=columns.end.tolist(),
        ),
        terms=forecaster.model.terms.tolist(),
        weights=forecaster.model.weights.tolist(),
        end_terms=None if ends.model is None else ends.model.terms.tolist(),
        time_left=None if left is None else left.constants,
    )  # fmt: skip
    write_whole(path, saved.model_dump_json() + "\n")


def is_saved_model(path: Path) -> bool:
    """Whether a file begins as `save_model` writes it."""
    try:
        with path.open("rb") as file:
            return file.read(len(MODEL_FORMAT) + 12) == f'{{"format":"{MODEL_FORMAT}"'.encode()
    except OSError:
        return False


def load_model(path: Path) -> tuple[SubtaskGraph, Task, Mapping[str, object]]:
    """Read what `save_model` wrote: a graph, videos, and what an `AssistantModel` of them need not learn again."""
    try:
        saved = _SavedModel.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"cannot be read as a saved assistant ({type(error).__name__})", where=path) from None
    with errors_at(path):
        graph = SubtaskGraph.from_json(saved.graph)
        videos = _read_videos(saved.videos, graph)
        rows = 3 * len(graph.steps) + 2
        model = _logit(saved.terms, saved.weights, (rows, len(graph.steps)))
        ends = None if saved.end_terms is None else _logit(saved.end_terms, [], (rows, 2))
        return graph, videos, {
            "forecaster": load_forecaster(graph, videos, model),
            "end_probability": EndForecaster(graph, ends),
            "time_left": None if saved.time_left is None else fit_time_left(graph, videos, saved.time_left),
        }  # fmt: skip


def _logit(terms: list[_Numbers], weights: _Numbers, shape: tuple[int, int]) -> ConditionalLogit:
    """Coefficients of this shape."""
    is_table = len(terms) == shape[0] and all(len(row) == shape[1] for row in terms)
    require(is_table, "is damaged: its coefficients are those of other steps")
    require(len(weights) in (0, len(FEATURES)), "is damaged: its weights are those of other features")
    return ConditionalLogit(np.array(terms), np.array(weights))


def _read_videos(saved: _SavedVideos, graph: SubtaskGraph) -> Task:
    video, step = (np.array(places, dtype=np.int32) for places in (saved.video, saved.step))
    start, end = (np.array(times, dtype=np.float64) for times in (saved.start, saved.end))
    sizes = {len(column) for column in (video, step, start, end)}
    names = sorted(graph.steps)
    fits = max(saved.video, default=-1) < len(saved.ids) and max(saved.step, default=-1) < len(names)
    require(len(sizes) == 1 and fits, "is damaged: its labels are those of other videos or steps")
    columns = LabelColumns(tuple(saved.ids), video, step, start, end, saved.timed)
    task = Task.from_columns(graph.task, names, columns, saved.absent)
    return task.with_videos(task)  # which are looked at several times
