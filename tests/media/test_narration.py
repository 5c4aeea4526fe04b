"""The narration of labelled videos, from files of captions."""

from __future__ import annotations

from pathlib import Path

import pytest

import msg2
from msg2.errors import InputError
from msg2.media.narration import add_narration
from msg2.task import Task, Video

CUE = "00:0{}.000 --> 00:03.000\n{}\n\n"


def test_sentences_go_to_their_videos(tmp_path: Path) -> None:
    for name, cues in {"v_1": [(2, "b"), (1, "a")], "1": [(0, "c")], "7_3": []}.items():
        text = "WEBVTT\n\n" + "".join(CUE.format(*cue) for cue in cues)
        (tmp_path / f"{name}.vtt").write_text(text, encoding="utf-8")
    task = Task("t", [], [Video(id, []) for id in ("v_1", "1", "2", "3")])
    (narrated,) = add_narration([task, Task("silent", [], [Video("2", [])])], tmp_path)
    assert {video.id: [sentence.text for sentence in video.sentences] for video in narrated} == {
        "v_1": ["a", "b"], "1": ["c"], "2": [], "3": [],
    }  # fmt: skip
    (tmp_path / "8_3.vtt").write_text("WEBVTT\n", encoding="utf-8")
    with pytest.raises(InputError, match="video '3' could be '7_3' or '8_3'"):
        add_narration([task], tmp_path)


@pytest.mark.slow
def test_the_transcripts_of_crosstask(data: Path) -> None:
    tasks = add_narration(msg2.read_all(data / "crosstask/crosstask_release"), data / "crosstask/transcripts")
    assert {task.name: sum(bool(video.sentences) for video in task) for task in tasks} == {
        "Build Simple Floating Shelves": 152, "Change a Tire": 99, "Make French Toast": 250,
    }  # fmt: skip
