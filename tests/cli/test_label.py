from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.rendering.narrator import to_webvtt
from msg2.formats.step_table import to_csv
from tests.assist.test_frames import HZ, RECORDINGS, TRAINED, frames
from tests.assist.test_frames import STEPS as TOAST
from tests.labelling.planted_narration import STEPS, planted_task, planted_truth


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    folder = tmp_path / "captions"
    folder.mkdir()
    for video in planted_task(8):
        (folder / f"{video.id}.vtt").write_text(to_webvtt(video.sentences))
    (tmp_path / "steps.txt").write_text("\n".join(STEPS))
    return folder


def test_from_captions_and_a_list_to_a_table_and_a_graph(msg2, captions: Path, tmp_path: Path) -> None:
    ran = msg2("label", captions, "--steps", tmp_path / "steps.txt", "-o", tmp_path / "draft.csv")
    assert (ran.code, ran.err) == (0, "")
    assert "from      step names" in ran.out
    assert "not checked" in ran.out
    assert f"msg2 infer {tmp_path / 'draft.csv'}" in ran.out
    assert (tmp_path / "draft.csv").read_text().startswith("task,video,step,start,end,confidence,source\n")
    assert msg2("infer", tmp_path / "draft.csv", "-o", tmp_path / "graph.json").code == 0


def test_labels_are_kept(msg2, captions: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(to_csv([planted_truth(8).with_videos(planted_truth(8).videos[:2])]))
    ran = msg2("label", captions, "--labels", tmp_path / "labels.csv", "-o", tmp_path / "draft.csv")
    assert "2 labelled videos are too few" in ran.out
    rows = (tmp_path / "draft.csv").read_text()
    assert all(f"{row},," in rows for row in (tmp_path / "labels.csv").read_text().splitlines()[1:])
    complaint = msg2("label", captions, "--labels", tmp_path / "labels.csv", "-o", tmp_path / "labels.csv").complaint
    assert "is the data" in complaint


def test_run_takes_the_same_way_in(msg2, captions: Path, tmp_path: Path) -> None:
    ran = msg2("run", captions, "--steps", tmp_path / "steps.txt", "-o", tmp_path / "out")
    assert ran.code == 0
    assert "there are no labels: they were drafted from step names" in ran.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"labels.csv", "graph.json", "page.html"}


@pytest.mark.parametrize(("suffix", "code"), [("json", 2), ("txt", 1)])
def test_outputs_that_cannot_be(msg2, captions: Path, tmp_path: Path, suffix: str, code: int) -> None:
    assert msg2("label", captions, "--steps", tmp_path / "steps.txt", "-o", tmp_path / f"a.{suffix}").code == code


def test_an_empty_folder(msg2, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    complaint = msg2("label", tmp_path / "empty", "-o", tmp_path / "draft.csv").complaint
    assert "no videos and no captions" in complaint
    assert "transcripts (.json)" in complaint


def test_two_processes_listen_to_the_same(msg2, captions: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        ran = msg2("label", captions, "--steps", tmp_path / "steps.txt", "-o", tmp_path / f"{jobs}.csv", "--jobs", jobs)
        assert ran.code == 0
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_a_table_is_no_list_of_steps(msg2, captions: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(to_csv([planted_truth(8)]))
    complaint = msg2("label", captions, "--steps", tmp_path / "labels.csv", "-o", tmp_path / "draft.csv").complaint
    assert "labels.csv: is a table of labels, not a list of steps" in complaint
    assert "give the table with --labels" in complaint


def test_from_scores_of_frames_to_a_table(msg2, tmp_path: Path) -> None:
    (scores := tmp_path / "scores").mkdir()
    np.save(scores / "v.npy", [[seen[name] for name in TRAINED.graph.steps] for seen, _ in frames(TOAST)])
    TRAINED.graph.save(tmp_path / "graph.json")
    (tmp_path / "labels.csv").write_text(to_csv([RECORDINGS]))
    out = ["-o", tmp_path / "draft.csv"]
    for known in (["--graph", tmp_path / "graph.json"], ["--labels", tmp_path / "labels.csv"]):
        ran = msg2("label", "--from-scores", scores, *known, "--fps", HZ, *out)
        assert (ran.code, ran.err) == (0, "")
        assert "from      scores of frames\ndrafts    4 labels of 4 steps in 1 videos\n" in ran.out
        assert f"or correct it: msg2 serve {tmp_path / 'draft.csv'}\n" in ran.out
        assert (tmp_path / "draft.csv").read_text().startswith("task,video,step,start,end,confidence,source\n")
    assert "has no times" in msg2("label", "--from-scores", scores, *known, *out).complaint
    assert "give a graph, or labels" in msg2("label", "--from-scores", scores, *out).complaint
    for usage in (out, [scores, "--fps", "5", *out], ["--from-scores", scores, "--steps", tmp_path, *out]):
        assert msg2("label", *usage).code == 2
