"""Scores of frames to segments: planted runs are found again, whatever the file; and what is wrong with a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import msg2
from msg2.errors import InputError
from msg2.labelling import LabelResult
from msg2.labelling.drafts import NO_DRAFTS
from msg2.task import Task, Video
from tests.assist.test_frames import HZ, PAUSE, RECORDINGS, SECONDS, STEPS, frames

GRAPH = msg2.infer(RECORDINGS)
ORDERS = {"usual": STEPS, "without": ("whisk", "fry", "serve"), "swapped": ("whisk", "fry", "dip", "serve")}


def rows(order: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    stream = [*frames(order, right=0.9, seed=len(order))]
    return np.array([[scores[name] for name in STEPS] for scores, _ in stream]), np.arange(len(stream)) / HZ


def write_table(path: Path, header: Sequence[str], table: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *table.round(5).tolist()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (scores := tmp_path / "scores").mkdir()
    for name, order in ORDERS.items():
        np.save(scores / f"{name}.npy", rows(order)[0])
    return scores


def found(result: LabelResult, video: str) -> list[tuple[str, float, float]]:
    (chosen,) = (each for each in result.task if each.id == video)
    return [(segment.step, segment.start or 0.0, segment.end or 0.0) for segment in chosen.segments]


def check_planted(result: LabelResult, video: str) -> None:
    """Each step lasts 12 seconds, with 3 between them; times are known to a second or two."""
    segments = found(result, video)
    assert [name for name, _, _ in segments] == list(ORDERS[video])
    for place, (_, start, end) in enumerate(segments):
        assert start == pytest.approx(place * (SECONDS + PAUSE), abs=2)
        assert end == pytest.approx(place * (SECONDS + PAUSE) + SECONDS, abs=2)


def test_planted_runs_are_found_again(folder: Path) -> None:
    """Also one without a step, and one in an order that no labelled video has."""
    shown: list[tuple[int, int | None, str]] = []
    result = msg2.label(
        scores=folder, labels=RECORDINGS, fps=HZ, task="toast", progress=lambda *step: shown.append(step)
    )
    assert shown == [(1, 3, "swapped"), (2, 3, "usual"), (3, 3, "without")]
    for video in ORDERS:
        check_planted(result, video)
    drafts = [segment for video in result.task for segment in video.segments if segment.source == "draft"]
    assert len(drafts) == result.drafted == sum(map(len, ORDERS.values()))
    assert all(0.5 < (segment.confidence or 0.0) <= 1 for segment in drafts)
    assert (result.way, result.steps, result.graph_confidence) == ("scores of frames", GRAPH.steps, NO_DRAFTS)
    assert not result.notes
    # What was labelled is there as it was.
    assert result.task.with_videos(video for video in result.task if video.id not in ORDERS) == Task(
        "toast", GRAPH.steps, RECORDINGS.videos, "skipped"
    )


def test_every_kind_of_file_says_the_same(tmp_path: Path) -> None:
    values, at = rows(STEPS)
    backwards, rest = values[:, ::-1], 1 - values.sum(axis=1, keepdims=True)
    for kind in ("npy", "npz", "csv", "background"):
        (tmp_path / kind).mkdir()
    np.save(tmp_path / "npy" / "usual.npy", backwards)
    (tmp_path / "npy" / "steps.txt").write_text("\n".join(STEPS[::-1]))
    np.savez(tmp_path / "npz" / "usual.npz", scores=values, time=at, steps=np.array(STEPS))
    write_table(tmp_path / "csv" / "usual.csv", [*STEPS[::-1], "time"], np.column_stack([backwards, at]))
    write_table(tmp_path / "background" / "usual.tsv", ["background", *STEPS], np.hstack([rest, values]))
    results = [msg2.label(scores=tmp_path / kind, graph=GRAPH, fps=HZ) for kind in ("npy", "npz", "csv", "background")]
    check_planted(results[0], "usual")
    for result in results[1:]:
        assert found(result, "usual") == found(results[0], "usual")
    assert results[0].graph_confidence == 0


def test_a_single_file_and_columns_that_the_graph_does_not_have(tmp_path: Path) -> None:
    values, at = rows(STEPS)
    write_table(
        tmp_path / "usual.csv", ["time", *STEPS[:3], "sing"], np.column_stack([at, values[:, :3], values[:, 3]])
    )
    result = msg2.label(scores=tmp_path / "usual.csv", graph=GRAPH)
    assert [name for name, _, _ in found(result, "usual")] == list(STEPS[:3])
    assert list(result.notes) == [
        "columns that are no steps of the graph count as background: 'sing'",
        "steps of the graph without a column are not found: 'serve'",
    ]


def test_a_video_without_labels_is_drafted_although_it_is_listed(folder: Path) -> None:
    labels = RECORDINGS.with_videos([*RECORDINGS, Video("usual", ())])
    assert found(msg2.label(scores=folder, labels=labels, fps=HZ), "usual")


WRONG_TABLES = [
    ("time,whisk\n0,0.5\n1,2.5\n", "v.csv, row 3: 'whisk' is 2.5, it must be a probability from 0 to 1\n  make"),
    ("time,whisk\n0,nan\n", "v.csv, row 2: 'whisk' is nan, it must be"),
    ("time,whisk,dip\n0,0.7,0.6\n", r"v.csv, row 2: the probabilities have the sum 1.3, above 1\n  one step"),
    ("time,whisk\n1,0.5\n0,0.5\n", r"v.csv, row 3: the time is 0: times .* ascend\n  sort"),
    ("time,whisk\n-1,0.5\n", "v.csv, row 2: the time is -1"),
    ("time,whisk\n0,much\n", r"v.csv, row 2: has a cell that is no number\n  every cell"),
    ("time,whisk\n0,0.5,0.1\n", "v.csv, row 2: there are 2 columns, but the row has 3"),
    ("time,whisk\n", "v.csv: has no frames"),
    ("time,background\n0,1\n", "v.csv: has no columns of steps"),
    ("whisk,whisk\n0,1\n", "v.csv: has two columns of the same name"),
    ("whisk,dip\n0,1\n", r"v.csv: has no times\n  say how many"),
    ("time,sing\n0,1\n", "v.csv: no column is a step of the graph, such as"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG_TABLES)
def test_what_is_wrong_with_a_table(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        msg2.label(scores=tmp_path, graph=GRAPH)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((3, 2)), r"v.npy: has 2 columns, but there are 4 steps\n  name the columns in steps.txt"),
        (np.zeros(3), "it must be frames by steps"),
        (np.zeros((0, 4)), "it must be frames by steps"),
        (np.array([["a"] * 4]), r"cannot be read as an array \(ValueError\)"),
        (np.array([None] * 4), r"cannot be read as an array \(ValueError\)"),
        (np.full((2, 4), 0.3), "v.npy, row 1: the probabilities have the sum 1.2"),
    ],
)
def test_what_is_wrong_with_an_array(array: np.ndarray, complaint: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InputError, match=complaint):
        msg2.label(scores=tmp_path, graph=GRAPH, fps=HZ)


def test_what_cannot_be_asked(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, complaint in (
        ({"scores": folder}, "a graph, or labels"),
        ({"scores": folder, "data": folder, "graph": GRAPH}, "neither videos nor steps"),
        ({"data": folder, "graph": GRAPH}, "go with scores"),
        ({}, "nothing to label"),
        ({"scores": tmp_path / "empty", "graph": GRAPH}, "has no scores of frames"),
        ({"scores": folder, "graph": GRAPH, "fps": 0.0}, "above 0"),
        ({"scores": folder, "graph": msg2.SubtaskGraph("t", ["a"], {}), "labels": RECORDINGS}, "not a step"),
    ):
        with pytest.raises(InputError, match=complaint):
            msg2.label(**arguments)  # type: ignore[arg-type]
    (folder / "usual.csv").write_text("time,whisk\n0,1\n")
    with pytest.raises(InputError, match="has 2 files of the video 'usual'"):
        msg2.label(scores=folder, graph=GRAPH, fps=HZ)
    (folder / "usual.csv").unlink()
    for broken in (b"\x93NUMPY broken", b"PK\x03\x04 broken", b""):
        (folder / "usual.npy").write_bytes(broken)
        with pytest.raises(InputError, match=r"usual.npy: cannot be read as an array"):
            msg2.label(scores=folder, graph=GRAPH, fps=HZ)
