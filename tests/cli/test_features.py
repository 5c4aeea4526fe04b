"""`msg2 features`: videos or captions in, a store out; a second run does only the rest."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from msg2.formats.feature_store import open_store
from msg2.text_encoders import HashedWords

HEADER = "WEBVTT\n\n"


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Four caption files in CrossTask's style."""
    folder = tmp_path / "captions"
    folder.mkdir()
    for number in range(4):
        (folder / f"7_v{number}.vtt").write_text(f"{HEADER}00:0{number}.000 --> 00:09.000\nstep {number}\n")
    return folder


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that were encoded, as they are."""
    texts: list[str] = []
    whole = HashedWords.__call__

    def watched(self: HashedWords, batch: list[str]):
        texts.extend(batch)
        return whole(self, batch)

    monkeypatch.setattr(HashedWords, "__call__", watched)
    return texts


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_from_captions_to_the_features_of_a_video(msg2, captions: Path, tmp_path: Path) -> None:
    ran = msg2("features", captions, "-o", tmp_path / "store")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].split() == ["4", "0", "0", "4", "none", "words", str(tmp_path / "store")]
    store = open_store(tmp_path / "store")
    features = store.features("Change a Tire", "v2")
    assert features is not None
    assert features.sentence_times.tolist() == [[2.0, 9.0]]
    assert (features.sentences == HashedWords()(["step 2"])).all()
    assert store.features("Change a Tire", "v9") is None
    one = msg2("features", captions / "7_v1.vtt", "-o", tmp_path / "one")
    assert one.code == 0
    assert list(open_store(tmp_path / "one").entries) == [(None, "7_v1")]


def test_a_second_run_does_only_the_rest(msg2, captions: Path, tmp_path: Path, encoded: list[str]) -> None:
    store, fresh = tmp_path / "store", tmp_path / "fresh"
    run = ("features", captions, "-o", store)
    msg2(*run)
    before = content(store)
    encoded.clear()
    assert msg2(*run).code == 0
    assert (encoded, content(store)) == ([], before)
    (captions / "7_v0.vtt").write_text(f"{HEADER}00:01.000 --> 00:02.000\nother words\n")
    (captions / "7_v1.vtt").unlink()
    (captions / "8_v4.vtt").write_text(f"{HEADER}00:01.000 --> 00:02.000\nmore words\n")
    next(store.glob("7-v2-*")).write_bytes(b"broken")
    assert msg2(*run).out.splitlines()[1].split()[:2] == ["4", "1"]
    assert encoded == ["other words", "step 2", "more words"]
    msg2("features", captions, "-o", fresh)
    assert content(store) == content(fresh)


def test_an_interrupted_run_goes_on(msg2, captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, whole, calls = tmp_path / "store", HashedWords.__call__, []

    def failing(self: HashedWords, batch: list[str]):
        calls.append(batch)
        if len(calls) == 3:
            raise OSError("the power is gone")
        return whole(self, batch)

    monkeypatch.setattr(HashedWords, "__call__", failing)
    assert "the power is gone" in msg2("features", captions, "-o", store).complaint
    done = len(open_store(store).entries)
    assert done in (1, 2)  # the first is saved at once, the second if saving the first was quick
    assert msg2("features", captions, "-o", store).code == 0
    assert calls[3:] == [(f"step {number}",) for number in range(done, 4)]
    msg2("features", captions, "-o", tmp_path / "fresh")
    assert content(store) == content(tmp_path / "fresh")


def test_another_encoder_makes_all_anew(msg2, captions: Path, tmp_path: Path, encoded: list[str]) -> None:
    store = tmp_path / "store"
    msg2("features", captions, "-o", store)
    manifest = store / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "versions": {"numpy": "0.1"}}))
    encoded.clear()
    assert msg2("features", captions, "-o", store).code == 0
    assert len(encoded) == 4
    assert json.loads(manifest.read_text()) == document


def test_what_is_wrong_with_a_file_is_said_and_the_others_are_kept(msg2, captions: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (captions / "8_x.vtt").write_text(f"{HEADER}00:01 --> 00:02\nno thousandths\n")
    ran = msg2("features", captions, "-o", store)
    assert ran.code == 1
    assert "8_x.vtt, row 3: '00:01 --> 00:02' is not the timing of a cue" in ran.out
    assert ran.err.startswith(f"msg2: {captions}: 1 of 5 videos have no features\n")
    assert len(open_store(store).entries) == 4
    assert msg2("features", captions, "-o", store).out.splitlines()[1].split()[:2] == ["4", "4"]


def test_what_cannot_be_used_is_said_before_anything_is_written(msg2, captions: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert "is not there" in msg2("features", tmp_path / "nowhere", "-o", store).complaint
    assert "is not a sentence encoder" in msg2("features", captions, "-o", store, "--text-encoder", tmp_path).complaint
    assert not store.exists()
    store.mkdir()
    (store / "manifest.json").write_text('{"name": "of another program"}')
    assert "$.format: is missing" in msg2("features", captions, "-o", store).complaint
    assert msg2("features", captions).code == 2
    assert msg2("features", captions, "-o", store, "--engine", "steam").code == 2
    assert msg2("features", captions, "-o", store, "--keep-sentences").code == 2


# -- videos -----------------------------------------------------------------------------------------------------


@pytest.fixture
def videos(tmp_path: Path, captions: Path) -> Path:
    """Four short videos in the style of yt-dlp, the first three with captions in another folder."""
    pytest.importorskip("av")
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(4):
        filmed(folder / f"How to do it, part {number} [v{number}].mp4", [10 * number, 40, 80])
    (captions / "7_v3.vtt").unlink()
    return folder


def filmed(path: Path, shades: list[int]) -> None:
    """A grey picture a second."""
    import av

    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=1)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for shade in shades:
            image = np.full((48, 64, 3), shade, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        file.mux(stream.encode())


def hummed(path: Path) -> None:
    """A second of sound."""
    import av

    with av.open(str(path), "w") as file:
        stream = file.add_stream("aac", rate=16_000)
        for start in range(0, 16_000, 1000):
            wave = np.sin(np.arange(start, start + 1000) / 10).astype(np.float32)[None]
            block = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            block.sample_rate, block.pts, block.time_base = 16_000, start, Fraction(1, 16_000)
            file.mux(stream.encode(block))
        file.mux(stream.encode())


def test_from_videos_to_features(msg2, videos: Path, captions: Path, tmp_path: Path) -> None:
    ran = msg2("features", videos, "--captions", captions, "-o", tmp_path / "store", "--every", 1)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].split() == [
        "4", "0", "12", "3", "descriptors", "words", str(tmp_path / "store"),
    ]  # fmt: skip
    features = open_store(tmp_path / "store").features("Make Toast", "v2")
    assert features is not None
    assert features.frame_times.tolist() == [0.0, 1.0, 2.0]


def test_labels_choose_the_videos_and_the_missing_are_listed(
    msg2, videos: Path, captions: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "steps.csv"
    labels.write_text("video,step,start,end\n" + "".join(f"{video},dip,0,1\n" for video in ("v1", "v2", "x1", "x2")))
    run = ("features", videos, "--captions", captions, "--labels", labels, "-o", tmp_path / "store")
    ran = msg2(*run)
    assert ran.code == 0
    assert ran.err == "warning: 2 of 4 labelled videos have no file: x1, x2\n"
    store = open_store(tmp_path / "store")
    assert [(entry.video, entry.sentences) for entry in store.entries.values()] == [("v1", 1), ("v2", 1)]
    labels.write_text("video,step,start,end\nx1,dip,0,1\n")
    complaint = msg2(*run).complaint
    assert "holds none of the labelled videos" in complaint
    assert "'x1'" in complaint
    assert len(open_store(tmp_path / "store").entries) == 2


def test_two_jobs_give_the_same_store(msg2, videos: Path, tmp_path: Path) -> None:
    told = []
    for jobs in (1, 2):
        ran = msg2("features", videos, "-o", tmp_path / "store", "--jobs", jobs)
        told.append((ran.out, content(tmp_path / "store")))
        for path in (tmp_path / "store").iterdir():
            path.unlink()
    assert told[0] == told[1]
    assert msg2("features", videos, "-o", tmp_path / "store", "--jobs", 0).code == 2


def test_a_video_that_fails_is_told_at_the_end(msg2, videos: Path, tmp_path: Path) -> None:
    (videos / "text.mp4").write_text("this is no video")
    (videos / "empty.webm").write_bytes(b"")
    ran = msg2("features", videos, "-o", tmp_path / "store", "--jobs", 2)
    assert ran.code == 1
    _, counts, *_, mark, one, two = ran.out.splitlines()
    assert counts.split()[0] == "4"
    assert mark == "failed"
    assert {line.partition(": ")[0] for line in (one, two)} == {f"{videos}/text.mp4", f"{videos}/empty.webm"}
    assert ran.err.splitlines() == [
        f"msg2: {videos}: 2 of 6 videos have no features",
        "  mend or remove these files and run the command again",
    ]
    assert len(open_store(tmp_path / "store").entries) == 4


def test_sound_alone_has_no_frames(msg2, captions: Path, tmp_path: Path) -> None:
    pytest.importorskip("av")
    hummed(tmp_path / "v1.m4a")
    ran = msg2("features", tmp_path / "v1.m4a", "--captions", captions, "-o", tmp_path / "store")
    assert (ran.code, ran.err) == (0, "")
    (entry,) = open_store(tmp_path / "store").entries.values()
    assert (entry.video, entry.frames, entry.sentences, entry.narration) == ("v1", 0, 1, "captions")


def test_frames_that_are_not_wanted(msg2, videos: Path, captions: Path, tmp_path: Path) -> None:
    run = ("features", videos, "--captions", captions, "-o", tmp_path / "store")
    ran = msg2(*run, "--frame-encoder", "none")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[:6] == ["4", "0", "0", "3", "none", "words"]
    assert msg2(*run).out.splitlines()[1].split()[:2] == ["4", "0"]
    assert "is not a CLIP model" in msg2(*run, "--frame-encoder", captions).complaint


def test_one_video_with_the_captions_beside_it(msg2, videos: Path, captions: Path, tmp_path: Path) -> None:
    (video,) = videos.glob("*v2*")
    video.with_suffix(".en.vtt").write_bytes((captions / "7_v2.vtt").read_bytes())
    assert msg2("features", video, "-o", tmp_path / "store").code == 0
    features = open_store(tmp_path / "store").features("Make Toast", "v2")
    assert features is not None
    assert features.texts == ("step 2",)
