"""Many videos -> a store: only what is new or has changed is done; whatever comes between, the store is the same."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats.feature_store import open_store
from msg2.formats.video_files import find_video_files
from msg2.media import feature_extraction as jobs
from msg2.media.feature_extraction import ExtractionOptions, ExtractionResult, extract_features
from msg2.media.video_decoding import FrameOptions
from msg2.parallel import WorkerDied
from msg2.progress import collect_logs

pytest.importorskip("av")

OPTIONS = ExtractionOptions()
COMMAND = Path(sys.executable).with_name("msg2")
Content = dict[str, bytes]


@pytest.fixture
def videos(tmp_path: Path, film) -> Path:
    """v0 to v3: two seconds each, and captions of v1 and v2."""
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(4):
        film(folder / f"v{number}.mp4", [0.0, 0.5 + number / 10, 2.0])
    for number in (1, 2):
        (folder / f"v{number}.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\nstep {number}\n")
    return folder


def made(
    folder: Path, store: Path, options: ExtractionOptions = OPTIONS, **how: int | str
) -> tuple[list[ExtractionResult], Content]:
    """What became of every video, by name, and what the store is then."""
    dealt = extract_features(find_video_files(folder).found, store, options, **how)
    return sorted(dealt), content(store)


def content(store: Path) -> Content:
    return {path.name: path.read_bytes() for path in store.iterdir()}


def new(dealt: Sequence[ExtractionResult]) -> list[str]:
    return [one.video for one in dealt if not one.unchanged and one.failure is None]


# -- what has changed -------------------------------------------------------------------------------------------


def test_what_is_done_is_not_done_again(videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dealt, first = made(videos, tmp_path / "store")
    assert dealt == [ExtractionResult(f"v{number}") for number in range(4)]
    entries = open_store(tmp_path / "store").entries.values()
    assert [(entry.video, entry.sentences, entry.narration) for entry in entries] == [
        ("v0", 0, None), ("v1", 1, "captions"), ("v2", 1, "captions"), ("v3", 0, None),
    ]  # fmt: skip
    monkeypatch.setattr(jobs.FeatureExtractor, "__call__", None)  # it cannot be called
    dealt, second = made(videos, tmp_path / "store")
    assert dealt == [ExtractionResult(f"v{number}", unchanged=True) for number in range(4)]
    assert second == first


CHANGES: dict[str, tuple[Callable[[Path, Path, Callable[..., Path]], object], list[str]]] = {
    "another video": (lambda videos, _, film: film(videos / "v2.mp4", [0.0, 1.5]), ["v2"]),
    "other captions": (lambda videos, *_: _replaced(videos / "v1.vtt", "step", "stop"), ["v1"]),
    "new captions": (lambda videos, *_: (videos / "v3.srt").write_text("1\n00:01,000 --> 00:02,000\nhm\n"), ["v3"]),
    "no captions": (lambda videos, *_: (videos / "v2.vtt").unlink(), ["v2"]),
    "new video": (lambda videos, _, film: film(videos / "v9.mp4", [0.0]), ["v9"]),
    "removed video": (lambda videos, *_: (videos / "v0.mp4").unlink(), []),
    "renamed video": (lambda videos, *_: (videos / "v0.mp4").rename(videos / "x.mp4"), ["x"]),
    "touched video": (lambda videos, *_: (videos / "v0.mp4").touch(), []),
    "corrupt file": (lambda _, store, __: next(store.glob("v1-*")).write_bytes(b"half"), ["v1"]),
    "flipped bit": (lambda _, store, __: _flipped(next(store.glob("v3-*"))), ["v3"]),
    "lost file": (lambda _, store, __: next(store.glob("v0-*")).unlink(), ["v0"]),
    "leftovers": (lambda _, store, __: (store / "v0-0123456789abcdef.safetensors").write_bytes(b"half"), []),
}  # fmt: skip


def _replaced(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def _flipped(path: Path) -> None:
    found = bytearray(path.read_bytes())
    found[-1] ^= 1
    path.write_bytes(found)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed_and_only_that_is_done(videos: Path, tmp_path: Path, film, change: str) -> None:
    store = tmp_path / "store"
    made(videos, store)
    act, expected = CHANGES[change]
    act(videos, store, film)
    dealt, after = made(videos, store)
    assert new(dealt) == expected
    assert after == made(videos, tmp_path / "fresh")[1]


@pytest.mark.parametrize(
    "other",
    [replace(OPTIONS, frames=FrameOptions(every=1.0)), replace(OPTIONS, frames=FrameOptions(size=32)),
     replace(OPTIONS, frame_encoder="none")],
    ids=["every", "size", "encoder"],
)  # fmt: skip
def test_other_options_make_all_anew(videos: Path, tmp_path: Path, other: ExtractionOptions) -> None:
    store = tmp_path / "store"
    _, before = made(videos, store)
    dealt, after = made(videos, store, other)
    assert new(dealt) == ["v0", "v1", "v2", "v3"]
    assert after == made(videos, tmp_path / "fresh", other)[1] != before
    assert made(videos, store)[1] == before


def test_only_captions_need_no_encoder_of_frames(videos: Path, tmp_path: Path) -> None:
    for path in videos.glob("*.mp4"):
        path.unlink()
    made(videos, tmp_path / "store")
    assert open_store(tmp_path / "store").encoders.frames is None


# -- failures ---------------------------------------------------------------------------------------------------


def test_what_fails_is_told_and_the_others_are_kept(videos: Path, tmp_path: Path, film) -> None:
    store = tmp_path / "store"
    made(videos, store)
    (videos / "v1.mp4").write_text("this is no video")
    (videos / "v4.mp4").write_bytes(b"")
    dealt, after = made(videos, store)
    assert new(dealt) == []
    failures = {one.video: one.failure for one in dealt if one.failure is not None}
    assert failures.keys() == {"v1", "v4"}
    assert all(failure.startswith(f"{videos / video}.mp4: ") for video, failure in failures.items())
    assert all("\n" not in failure for failure in failures.values())
    assert "is empty" in failures["v4"]
    # What was made of v1 when it was another file is no longer true.
    assert [entry.video for entry in open_store(store).entries.values()] == ["v0", "v2", "v3"]
    assert after == made(videos, tmp_path / "fresh")[1]
    film(videos / "v4.mp4", [0.0, 1.0])
    dealt, _ = made(videos, store)
    assert new(dealt) == ["v4"]
    assert [one.video for one in dealt if one.failure is not None] == ["v1"]


def test_a_store_in_which_nothing_could_be_done_is_empty(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "v0.mp4").write_bytes(b"")
    dealt, _ = made(tmp_path / "videos", tmp_path / "store")
    assert [one.failure is None for one in dealt] == [False]
    assert open_store(tmp_path / "store").entries == {}


def test_too_little_memory_is_a_matter_of_one_file(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = jobs.FeatureExtractor.__call__

    def tight(self, files):
        if files.video == "v2":
            raise MemoryError
        return whole(self, files)

    monkeypatch.setattr(jobs.FeatureExtractor, "__call__", tight)
    dealt, _ = made(videos, tmp_path / "store")
    assert [one.failure for one in dealt if one.failure] == [
        f"{videos}/v2.mp4: there is not enough memory for this file"
    ]
    assert len(open_store(tmp_path / "store").entries) == 3


def test_what_kills_its_process_fails_like_any_other(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(work, items, _):
        return ((item, WorkerDied() if item[0].video == "v0" else work(item)) for item in items)

    made(videos, tmp_path / "store")
    (videos / "v0.vtt").write_text("WEBVTT\n")
    monkeypatch.setattr(jobs, "ENGINES", {"deadly": deadly})
    dealt, _ = made(videos, tmp_path / "store", engine="deadly")
    assert dealt[0] == ExtractionResult("v0", failure=f"{videos}/v0.mp4: the program broke down over this file")
    assert [one.unchanged for one in dealt[1:]] == [True] * 3
    assert [entry.video for entry in open_store(tmp_path / "store").entries.values()] == ["v1", "v2", "v3"]


def test_what_is_no_store_is_not_written_over(videos: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"\$\.format: is missing"):
        made(videos, tmp_path / "store")
    assert content(tmp_path / "store") == {"manifest.json": b"{}"}


# -- engines ----------------------------------------------------------------------------------------------------


def test_two_processes_give_the_same_bytes_and_remarks(videos: Path, tmp_path: Path, film) -> None:
    (videos / "v4.mp4").write_bytes(b"")
    whole = film(videos / "v5.mkv", [place / 5 for place in range(50)]).read_bytes()
    (videos / "v5.mkv").write_bytes(whole[: len(whole) // 2])
    found = []
    for count in (1, 2):
        with collect_logs() as remarks:
            found.append((*made(videos, tmp_path / f"store{count}", jobs=count), sorted(remarks.messages)))
    assert found[0] == found[1]
    dealt, _, remarks = found[0]
    assert [one.failure is not None for one in dealt] == [False] * 4 + [True, False]
    assert [text.partition(": breaks off")[0] for _, text in remarks] == [f"'v5': {videos}/v5.mkv"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'msg2[ray]')")
def test_a_local_ray_gives_the_same_bytes(videos: Path, tmp_path: Path, apart) -> None:
    (videos / "v0.mp4").unlink()
    # A socket's path must be short: the temporary folder of the tests may not be.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        program = apart.start(
            COMMAND, "features", videos, "-o", tmp_path / "ray", "--engine", "ray", "--jobs", 2, RAY_TMPDIR=folder
        )
        said, complaint = program.communicate(timeout=600)
        assert (program.returncode, complaint) == (0, "")
        assert not apart.running(patience=10)
    assert said.splitlines()[1].split()[:2] == ["3", "0"]
    assert content(tmp_path / "ray") == made(videos, tmp_path / "local")[1]


# -- sudden ends ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_was_killed_ten_times_ends_in_the_same_bytes(tmp_path: Path, film, apart) -> None:
    videos, store, fresh = (tmp_path / name for name in ("videos", "store", "fresh"))
    videos.mkdir()
    for number in range(20):
        film(videos / f"v{number}.mp4", [place / 20 + number / 1000 for place in range(40)], size=(180, 320))
        (videos / f"v{number}.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\nstep {number}\n")
    draw, seen = random.Random(7), []
    for kill, enough in enumerate(sorted(draw.sample(range(19), 10))):
        program = apart.start(COMMAND, "features", videos, "-o", store, "--every", 0.05, "--jobs", 1 + kill % 2)
        while done(store) < enough and program.poll() is None:
            time.sleep(0.001)
        time.sleep(0.05 * draw.random())
        program.kill()
        program.communicate(timeout=600)
        assert not apart.running(patience=10)
        seen.append((program.returncode, done(store)))
        assert_intact(store)
    finished = apart.start(COMMAND, "features", videos, "-o", store, "--every", 0.05)
    assert finished.communicate(timeout=600)[1] == ""
    options = ExtractionOptions(frames=FrameOptions(every=0.05))
    assert content(store) == made(videos, fresh, options)[1]
    assert len(content(store)) == 21
    in_the_middle = [count for code, count in seen if code == -9 and 0 < count < 20]
    assert len(set(in_the_middle)) >= 4, seen


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupted_run_ends_at_once_and_keeps_what_is_done(tmp_path: Path, film, apart, count: int) -> None:
    videos, store = tmp_path / "videos", tmp_path / "store"
    videos.mkdir()
    whole = film(videos / "v0.mp4", [place / 20 for place in range(100)], size=(180, 320)).read_bytes()
    for number in range(1, 30):
        (videos / f"v{number}.mp4").write_bytes(whole)
    program = apart.start(COMMAND, "features", videos, "-o", store, "--every", 0.05, "--jobs", count)
    while done(store) < 1 and program.poll() is None:
        time.sleep(0.001)
    began = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)
    assert program.communicate(timeout=600) == ("", "msg2: interrupted\n")
    assert time.monotonic() - began < 10
    assert program.returncode == 130
    assert not apart.running(patience=5)
    assert 0 < done(store) < 30
    assert_intact(store)


def done(store: Path) -> int:
    try:
        return len(json.loads((store / "manifest.json").read_text())["videos"])
    except FileNotFoundError:
        return 0


def assert_intact(store: Path) -> None:
    if (store / "manifest.json").exists():
        found = open_store(store)
        assert all(found.is_intact(key) for key in found.entries)
