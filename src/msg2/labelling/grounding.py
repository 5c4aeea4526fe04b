"""Per-frame probabilities of steps to segments: which step went on when, by the filter that follows a stream live.

A folder has one file per video. `.npy` is an array of frames by steps, in the order of `steps.txt` beside it or of the
graph; `.npz` holds such an array, and if it likes `time` and `steps`; tables (`.csv`, `.tsv`, also gzipped) name the
steps in their first row and may have a column `time` in seconds. What is missing to 1 in a frame is background. The
result is the most probable way through the hypotheses of `msg2.assist.frames`, by the whole recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from msg2.assist.belief import AssistantModel
from msg2.assist.following import unknown_step_error
from msg2.assist.frames import FrameFilter
from msg2.errors import InputError, errors_at, is_finite, require
from msg2.formats.source import Source
from msg2.formats.tables import open_table
from msg2.graph import SubtaskGraph
from msg2.labelling.step_names import read_steps
from msg2.progress import Progress
from msg2.sequences import FloatArray
from msg2.task import DRAFT, Segment, Step, Task, Video
from msg2.text import join_names, short_repr

_STEP_LIST, _TIME, _BACKGROUND = "steps.txt", "time", "background"
_ARRAYS, _TABLES = (".npy", ".npz"), (".csv", ".tsv")
_ROUNDING = 0.01
"""By which the sum of the probabilities of a frame may exceed 1."""
_MENTIONED = 1e-4
"""Less is as good as nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FrameScores:
    """Of one video: probabilities, shape (frames, steps), and when each frame was, in seconds."""

    video: str
    steps: tuple[Step, ...]
    probabilities: FloatArray
    at: FloatArray


def score_files(folder: str | Path) -> list[Source]:
    """The files of scores in a folder: each is a video."""
    source = Source.at(folder)
    files = [file for file in source.files_or_self if _suffix(file) is not None]
    hint = f"scores are {', '.join((*_ARRAYS, *_TABLES))}: one file per video, one column per step"
    require(files, "has no scores of frames", where=source.path, hint=hint)
    for name, times in Counter(file.stem for file in files).items():
        require(times == 1, f"has {times} files of the video {short_repr(name)}", where=source.path)
    return files


def read_scores(file: Source, steps: tuple[Step, ...], fps: float | None) -> FrameScores:
    """Read the scores of a video; `steps` are the columns of an array, `fps` is for a file without times."""
    with errors_at(file.path):
        return _read_array(file, steps, fps) if _suffix(file) in _ARRAYS else _read_table(file, fps)


def ground_video(model: AssistantModel, scores: FrameScores) -> Video:
    """The steps that probably went on in a video, as drafts; columns that are no steps of the graph are background."""
    stream, index = FrameFilter(model, remembers=True), model.graph.index
    places = [(column, index[name]) for column, name in enumerate(scores.steps) if name in index]
    require(places, f"no column is a step of the graph, such as {short_repr(model.graph.steps[0])}")
    columns, chosen = (list(part) for part in zip(*places, strict=True))
    for at, row in zip(scores.at.tolist(), scores.probabilities[:, columns].tolist(), strict=True):
        stream.observe({step: share for step, share in zip(chosen, row, strict=True) if share > _MENTIONED}, at)
    segments = []
    for part in stream.stretches():
        if part.step is not None:
            name, sure = model.graph.steps[part.step], round(part.confidence, 4)
            segments.append(Segment(name, round(part.start, 3), round(part.end, 3), sure, DRAFT))
    return Video(scores.video, segments)


def ground_scores(
    folder: str | Path, graph: SubtaskGraph, labelled: Task | None, fps: float | None, progress: Progress
) -> tuple[Task, list[str]]:
    """Draft the videos of a folder of scores that have no labels; and what is to be said about the columns."""
    for name in labelled.steps if labelled is not None else ():
        if name not in graph.index:
            raise unknown_step_error(name, graph, where="the labels")
    require(fps is None or (is_finite(fps) and fps > 0), f"fps is {fps}, it must be a number above 0")
    files, known = score_files(folder), {video.id: video for video in labelled or () if video.segments}
    model = AssistantModel(graph, labelled, "skipped")
    listed = Path(folder) / _STEP_LIST
    columns = read_steps(listed).steps if listed.is_file() else graph.steps
    videos, strange, seen = list(known.values()), dict[Step, None](), set[Step]()
    for number, file in enumerate(files, start=1):
        scores = read_scores(file, columns, fps)
        strange |= dict.fromkeys(name for name in scores.steps if name not in graph.index)
        seen.update(scores.steps)
        if scores.video not in known:
            with errors_at(file.path):
                videos.append(ground_video(model, scores))
        progress(number, len(files), scores.video)
    unseen = [name for name in graph.steps if name not in seen]
    notes = [f"columns that are no steps of the graph count as background: {join_names([*strange])}"] if strange else []
    notes += [f"steps of the graph without a column are not found: {join_names(unseen)}"] if unseen else []
    return Task(graph.task, graph.steps, videos, "unknown" if labelled is None else labelled.absent), notes


def _suffix(file: Source) -> str | None:
    name = file.path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in (*_ARRAYS, *_TABLES) if name.endswith(suffix)), None)


def _read_array(file: Source, steps: tuple[Step, ...], fps: float | None) -> FrameScores:
    try:
        with file.path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            arrays = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else {"": loaded}
        at = np.asarray(arrays.pop(_TIME), np.float64) if _TIME in arrays else None
        steps = tuple(map(str, arrays.pop("steps", steps)))
        (values,) = arrays.values()
        values = np.asarray(values, np.float64)
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        hint = "save an array of frames by steps with numpy.save"
        raise InputError(f"cannot be read as an array ({type(error).__name__})", hint=hint) from None
    require(values.ndim == 2 and len(values), f"has the shape {values.shape}, it must be frames by steps")
    width, count = values.shape[1], len(steps)
    hint = f"name the columns in {_STEP_LIST}, a line each; background may come last, without a name"
    require(width in (count, count + 1), f"has {width} columns, but there are {count} steps", hint=hint)
    scores = FrameScores(file.stem, steps, values[:, :count], _times(at, len(values), fps))
    return _checked(file, scores, range(1, len(values) + 1))


def _read_table(file: Source, fps: float | None) -> FrameScores:
    table = open_table(file, lambda cells: len(cells) > 1)
    lines, rows = list[int](), list[list[float]]()
    for line, cells in table.text_rows():
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            hint = "every cell is a probability; only the column time has seconds"
            raise InputError("has a cell that is no number", where=file.row(line), hint=hint) from None
        lines.append(line)
    require(rows, "has no frames")
    columns = dict(zip(map(str.strip, table.header), np.array(rows).T, strict=True))
    require(len(columns) == len(table.header), "has two columns of the same name")
    at = columns.pop(_TIME, None)
    columns.pop(_BACKGROUND, None)
    require(columns, "has no columns of steps")
    values = np.stack([*columns.values()], axis=1)
    return _checked(file, FrameScores(file.stem, tuple(columns), values, _times(at, len(values), fps)), lines)


def _times(at: FloatArray | None, frames: int, fps: float | None) -> FloatArray:
    """When each frame was: as the file says, else so many in a second."""
    if at is None:
        hint = "say how many frames there are in a second (--fps), or add the time of each in seconds"
        require(fps is not None, "has no times", hint=hint)
        return np.arange(frames) / (fps or 1.0)
    require(at.shape == (frames,), f"has {at.size} times for {frames} frames")
    return at


def _checked(file: Source, scores: FrameScores, rows: Sequence[int]) -> FrameScores:
    """Scores that are probabilities, at times that ascend; errors name the row."""
    steps, values, at = scores.steps, scores.probabilities, scores.at
    for row, column in np.argwhere(~((values >= 0) & (values <= 1 + _ROUNDING)))[:1].tolist():
        what = f"{short_repr(steps[column])} is {values[row, column]:g}, it must be a probability from 0 to 1"
        hint = "make probabilities of scores first, such as by a softmax over the steps and the background"
        raise InputError(what, where=file.row(rows[row]), hint=hint)
    for row in np.flatnonzero(values.sum(axis=1) > 1 + _ROUNDING)[:1].tolist():
        what = f"the probabilities have the sum {values[row].sum():g}, above 1"
        raise InputError(what, where=file.row(rows[row]), hint="one step goes on at a time: divide a row by its sum")
    for row in np.flatnonzero(~(np.diff(at, prepend=0.0) >= 0) | ~np.isfinite(at))[:1].tolist():
        what = f"the time is {at[row]:g}: times are seconds from 0 on, and ascend"
        raise InputError(what, where=file.row(rows[row]), hint="sort the frames")
    return scores
