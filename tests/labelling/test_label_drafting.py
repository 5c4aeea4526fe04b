from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import msg2
from experiments.rendering.narrator import to_webvtt
from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.formats.step_table import to_csv
from msg2.labelling import LabelOptions, LabelResult, label
from msg2.labelling.alignment import Aligner
from msg2.labelling.drafts import NO_DRAFTS, draft_with
from msg2.labelling.narration_grid import EncodeTexts
from msg2.task import Sentence, Task, Video
from msg2.text_encoders import text_encoder
from tests.labelling.planted_narration import STEPS, planted_recall, planted_task, planted_truth

ENCODE = text_encoder("words")


def draft_labels(
    task: Task,
    order: tuple[str, ...] | None,
    encode: EncodeTexts,
    options: LabelOptions | None = None,
    frames: dict[str, VideoFeatures] | None = None,
) -> LabelResult:
    options = options or LabelOptions()
    return draft_with(Aligner.prepare(task, order, encode, options.alignment, frames=frames), task, options)


@pytest.mark.parametrize("order", [STEPS, None])
def test_planted_steps_are_recovered_without_labels(order: tuple[str, ...] | None) -> None:
    result = draft_labels(planted_task(), order, ENCODE)
    assert planted_recall(result.task, planted_truth()) > 0.7
    assert result.calibration is None
    assert any("not checked" in note for note in result.notes)


@pytest.mark.slow
def test_labels_help_where_names_are_never_said() -> None:
    truth = planted_truth(40, named=False)
    without = draft_labels(planted_task(40, named=False), None, ENCODE)
    few = draft_labels(planted_task(40, labelled=10, named=False), None, ENCODE)
    assert planted_recall(few.task, truth) > planted_recall(without.task, truth) + 0.1
    assert planted_recall(few.task, truth) > 0.8
    assert few.calibration is None
    assert any("10 labelled videos are too few" in note for note in few.notes)
    many = draft_labels(planted_task(40, labelled=32, named=False), None, ENCODE)
    assert many.calibration is not None
    assert many.calibration.videos == 32


def _frames(truth: Task) -> dict[str, VideoFeatures]:
    """A frame every second that shows which step is done, if one is; the last video has none."""
    found = {}
    for video in list(truth)[:-1]:
        times = np.arange(0.5, video.sentences[-1].end, 1.0)
        frames = np.zeros((len(times), len(STEPS) + 1))
        frames[:, -1] = 1
        for segment in video.segments:
            inside = (segment.start <= times) & (times <= segment.end)
            frames[inside] = np.eye(len(STEPS) + 1)[STEPS.index(segment.step)]
        found[video.id] = VideoFeatures(times, frames, np.zeros((0, 2)), np.zeros((0, 4)))
    return found


def test_frames_join_what_is_said() -> None:
    truth = planted_truth(20, named=False)
    mumbled = [Video(v.id, v.segments, (Sentence("so", s.start, s.end) for s in v.sentences)) for v in truth]
    task = truth.with_videos(v if number < 10 else Video(v.id, (), v.sentences) for number, v in enumerate(mumbled))
    deaf = draft_labels(task, None, ENCODE)
    seen = draft_labels(task, None, ENCODE, frames=_frames(truth))
    assert planted_recall(seen.task, truth) > planted_recall(deaf.task, truth) + 0.2
    assert planted_recall(seen.task, truth) > 0.8


def test_labels_stay_verbatim_and_drafts_never_share_an_instant() -> None:
    task = planted_task(labelled=6)
    result = draft_labels(task, STEPS, ENCODE)
    for before, after in zip(task, result.task, strict=True):
        if before.segments:
            assert after.segments == before.segments
            continue
        assert {segment.source for segment in after.segments} <= {"draft"}
        for first, second in zip(after.segments, after.segments[1:], strict=False):
            assert first.end <= second.start
            assert first.start < second.start


def test_order_of_steps_and_videos_means_nothing() -> None:
    task = planted_task(12)
    again = Task(task.name, reversed(task.steps), reversed(task.videos))
    assert to_csv([draft_labels(task, STEPS, ENCODE).task]) == to_csv([draft_labels(again, STEPS, ENCODE).task])


def test_other_names_only_rename() -> None:
    """Which step is which is told by labels; names that say nothing leave the times as they are."""
    plain = planted_task(16, labelled=8)
    called = dict(zip(STEPS, ("e", "d", "c", "b", "a"), strict=True))

    def rename(video: Video) -> Video:
        return Video(video.id, (msg2.Segment(called[s.step], s.start, s.end) for s in video.segments), video.sentences)

    def drafted(task: Task) -> dict[tuple[str, str], float | None]:
        found = draft_labels(
            task, None, lambda texts: ENCODE(["" if "when you" in t or len(t) < 2 else t for t in texts])
        )
        return {(video.id, s.step): s.start for video in found.task for s in video.segments}

    silent = dict.fromkeys(STEPS, "")
    one = draft_labels(plain, None, lambda texts: ENCODE([silent.get(t, "" if "when you" in t else t) for t in texts]))
    times = {(video.id, called[s.step]): s.start for video in one.task for s in video.segments}
    assert drafted(Task("Make Toast", called.values(), map(rename, plain))) == times


def test_drafts_count_for_the_graph_only_where_labels_check_them() -> None:
    three = draft_labels(planted_task(20, labelled=3), STEPS, ENCODE)
    assert three.graph_confidence == NO_DRAFTS
    assert len(three.for_graph()) == 3
    none = draft_labels(planted_task(20), STEPS, ENCODE)
    assert none.for_graph().with_videos([v for v in none.task if v.segments]) == none.for_graph()
    assert len(none.for_graph()) > 15


def _write_captions(task: Task, folder: Path) -> Path:
    for video in task:
        (folder / f"{video.id}.vtt").write_text(to_webvtt(video.sentences))
    return folder


def test_label_reads_captions_steps_and_labels(tmp_path: Path) -> None:
    captions = tmp_path / "captions"
    captions.mkdir()
    _write_captions(planted_task(12), captions)
    (tmp_path / "steps.txt").write_text("".join(f"{n}. {step}\n" for n, step in enumerate(STEPS, start=1)))
    by_name = label(captions, tmp_path / "steps.txt", task="Make Toast")
    assert by_name.way == "step names"
    assert planted_recall(by_name.task, planted_truth(12)) > 0.6
    labelled = planted_truth(12).with_videos(planted_truth(12).videos[:6])
    (tmp_path / "labels.csv").write_text(to_csv([labelled]))
    few = msg2.label(captions, labels=tmp_path / "labels.csv")
    assert few.way == "labels"
    assert [v.segments for v in few.task][:6] == [
        v.segments for v in msg2.read(tmp_path / "labels.csv", repeats="keep")
    ]


def test_transcripts_as_json(tmp_path: Path) -> None:
    for video in planted_task(8):
        pieces = [{"text": s.text, "start": s.start, "duration": s.end - s.start} for s in video.sentences]
        (tmp_path / f"{video.id}.json").write_text(json.dumps({"segments": pieces} if video.id > "v03" else pieces))
    assert label(tmp_path, STEPS).drafted > 8


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('[{"text": "flip"}]', "piece 1 is not a text with times"),
        ('[{"start": 1, "end": 2}]', "piece 1 is not a text with times"),
        ('[{"text": "flip", "start": 2, "end": 1}]', "piece 1 is not a text with times"),
        ('{"words": []}', "is not a transcript"),
    ],
)
def test_transcripts_that_are_none(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "v1.json").write_text(content)
    with pytest.raises(InputError, match=what):
        label(tmp_path, STEPS)


def test_an_empty_folder_and_labels_of_other_videos(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no videos and no captions"):
        label(tmp_path, STEPS)
    _write_captions(planted_task(3), tmp_path)
    others = Task("Make Toast", STEPS, [Video("x1", planted_truth(1).videos[0].segments)])
    with pytest.raises(InputError, match="none of the labelled videos has narration here, not 'x1'"):
        label(tmp_path, labels=others)
    mixed = Task("Make Toast", STEPS, [*others, *planted_truth(1)])
    assert any("1 labelled videos have no narration" in note for note in label(tmp_path, labels=mixed).notes)


def test_presence_of_one_drafts_less() -> None:
    task = planted_task(10)
    few = draft_labels(task, STEPS, ENCODE, LabelOptions(presence=0.99)).drafted
    assert few < draft_labels(task, STEPS, ENCODE, LabelOptions(presence=0.0)).drafted == 50
    assert np.isfinite(few)
