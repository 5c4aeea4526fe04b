"""What results say about where they come from: fingerprints, splits, and that nothing has leaked."""

from __future__ import annotations

import hashlib
from pathlib import Path

from experiments.forecasting.next_step_labels import held_out_videos
from experiments.provenance import fingerprint, provenance
from msg2.assist.next_step_evaluation import train_test_split
from msg2.formats import read_all
from msg2.inference import METHODS, infer


def test_a_fingerprint_tells_names_and_contents_apart(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b" / "c.txt").write_text("two")
    first = fingerprint(tmp_path)
    lines = "".join(
        f"{name}\0{hashlib.sha256(text).hexdigest()}\n" for name, text in (("a.txt", b"one"), ("b/c.txt", b"two"))
    )
    assert first == {"files": 2, "bytes": 6, "sha256": hashlib.sha256(lines.encode()).hexdigest()}
    (tmp_path / "b" / "c.txt").rename(tmp_path / "b" / "d.txt")
    assert fingerprint(tmp_path)["sha256"] != first["sha256"]


def test_versions_are_told_without_the_machine() -> None:
    found = provenance(None)
    assert {"python", "msg2", "numpy"} <= set(found)
    assert not any("+" in value for value in found.values())
    assert "data" not in found


def test_no_test_video_is_learnt_from(data: Path) -> None:
    tasks = read_all(data / "crosstask" / "crosstask_release")
    seeds = range(5)
    published = held_out_videos(tasks, seeds)
    assert len(published) == 18
    for task in tasks:
        everything = {video.id for video in task}
        for seed in seeds:
            training, test = train_test_split(task, seed=seed)
            ids = published[task.name][str(seed)]
            assert ids == [video.id for video in test]
            assert len(ids) == round(0.15 * len(task))
            assert {video.id for video in training} == everything - set(ids)
    training, test = train_test_split(tasks[0], seed=0)
    for method in METHODS:
        assert not {video.id for video in test} & set(infer(training, method).method["videos"])
