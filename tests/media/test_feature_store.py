"""The feature store: what comes back is what was written, and whatever is wrong with a file is said."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save, save_file

from msg2.errors import InputError, MissingExtraError
from msg2.formats.feature_store import Encoders, VideoFeatures, open_store, write_store

ENCODERS = Encoders("clip", "words", 4, 3, {"numpy": "2.0", "clip": "1"})
TENSORS = ("frame_times", "frames", "sentence_times", "sentences")


def some(seed: int = 0, frames: int = 5, sentences: int = 2) -> VideoFeatures:
    """Random features."""
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.random(sentences))
    return VideoFeatures(
        np.sort(rng.random(frames)), rng.normal(size=(frames, 4)).astype(np.float32),
        np.stack([starts, starts + 1], axis=1), rng.normal(size=(sentences, 3)).astype(np.float32),
    )  # fmt: skip


def same(one: VideoFeatures | None, other: VideoFeatures | None) -> bool:
    """Whether all arrays are equal, bit by bit."""
    return (
        one is not None
        and other is not None
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in TENSORS)
    )


def content(folder: Path) -> dict[str, bytes]:
    """Every file in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


keys = st.tuples(st.none() | st.text(max_size=3), st.text(min_size=1, max_size=4))


@settings(max_examples=25)
@given(st.dictionaries(keys, st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), max_size=5))
def test_what_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, sizes: dict[Any, Any]) -> None:
    folders = [tmp_path_factory.mktemp("store") for _ in "ab"]
    entries = {key: some(*size) for key, size in sizes.items()}
    write_store(folders[0], entries, ENCODERS)
    write_store(folders[1], dict(reversed(entries.items())), ENCODERS)
    assert content(folders[0]) == content(folders[1])
    store = open_store(folders[0])
    assert store.encoders == ENCODERS
    assert store.entries.keys() == entries.keys()
    for key, features in entries.items():
        assert same(store.read(key), features)
    listed = json.loads((folders[0] / "manifest.json").read_text())["videos"]
    assert listed == sorted(listed, key=lambda v: (v["task"] is not None, v["task"] or "", v["video"]))
    for video in listed:
        assert hashlib.sha256((folders[0] / video["file"]).read_bytes()).hexdigest() == video["sha256"]


def test_the_task_s_own_features_come_first(tmp_path: Path) -> None:
    entries = {("coffee", "v1"): some(1), ("tea", "v1"): some(2), (None, "v1"): some(3), (None, "7_v2"): some(4)}
    entries[("coffee", "x_v3")] = some(5)
    store = write_store(tmp_path, entries, ENCODERS)
    assert same(store.features("coffee", "v1"), entries["coffee", "v1"])
    assert same(store.features("toast", "v1"), entries[None, "v1"])
    assert same(store.features("coffee", "v2"), entries[None, "7_v2"])
    assert store.features("coffee", "v3") is None
    store = write_store(tmp_path, {(None, "7_v2"): some(), (None, "8_v2"): some()}, ENCODERS)
    with pytest.raises(InputError, match=f"{tmp_path}: video 'v2' could be '7_v2' or '8_v2'"):
        store.features("coffee", "v2")


def test_a_new_store_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "mine.safetensors").write_bytes(b"not of the store")
    write_store(tmp_path, {(None, "v1"): some(1), (None, "v2"): some(2)}, ENCODERS)
    old = content(tmp_path)
    store = write_store(tmp_path, {(None, "v1"): some(3), (None, "v2"): some(2)}, ENCODERS)
    assert same(store.features("t", "v1"), some(3))
    assert len(content(tmp_path)) == len(old) == 4
    assert len(content(tmp_path).keys() & old.keys()) == 3  # the manifest, v2 and what is not ours


def test_a_write_that_fails_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_store(tmp_path, {(None, "v1"): some(1)}, ENCODERS)

    def full(path: Path, data: str | bytes) -> None:
        if path.name == "manifest.json":
            raise InputError("cannot be written (No space left on device)", where=path)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    monkeypatch.setattr("msg2.formats.feature_store.write_whole", full)
    with pytest.raises(InputError, match="No space left"):
        write_store(tmp_path, {(None, "v1"): some(2)}, ENCODERS)
    assert same(open_store(tmp_path).features("t", "v1"), some(1))


def test_widths_are_those_of_the_encoders(tmp_path: Path) -> None:
    narrow = VideoFeatures(np.zeros(1), np.zeros((1, 3)), np.zeros((0, 2)), np.zeros((0, 3)))
    with pytest.raises(InputError, match="the frames of video 'v2' are 3 wide, those of the store are 4"):
        write_store(tmp_path / "new", {(None, "v1"): some(), (None, "v2"): narrow}, ENCODERS)
    assert not (tmp_path / "new").exists()


# -- what is wrong with a file ----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of one video, v1."""
    write_store(tmp_path / "store", {(None, "v1"): some()}, ENCODERS)
    return tmp_path / "store"


def the_file(store: Path) -> Path:
    """The only file of features."""
    return next(store.glob("v1-*.safetensors"))


def complaint(store: Path) -> str:
    """What reading v1 is refused with; it names the file and says what to do."""
    with pytest.raises(InputError) as refused:
        open_store(store).features("t", "v1")
    assert str(the_file(store) if any(store.glob("v1-*")) else store) in str(refused.value)
    assert refused.value.hint == "make the features again"
    return refused.value.what


def signed(store: Path) -> None:
    """Make the manifest agree with the file as it is now."""
    path = store / "manifest.json"
    document = json.loads(path.read_text())
    document["videos"][0]["sha256"] = hashlib.sha256(the_file(store).read_bytes()).hexdigest()
    path.write_text(json.dumps(document))


def test_a_file_that_is_gone_or_changed(store: Path) -> None:
    file = the_file(store)
    whole = file.read_bytes()
    for broken in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(broken)
        assert "another sha256" in complaint(store)
    file.unlink()
    file.mkdir()
    assert "cannot be read" in complaint(store)
    file.rmdir()
    assert complaint(store) == "cannot be read (No such file or directory)"


@pytest.mark.parametrize("wrong", [b"", b"\xff" * 40, save({"a": np.zeros(1)})[:-2]])
def test_a_file_that_is_not_safetensors(store: Path, wrong: bytes) -> None:
    the_file(store).write_bytes(wrong)
    signed(store)
    assert "is no safetensors file" in complaint(store)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a tensor more": ({"more": np.zeros(1)}, "holds the tensors frame_times, frames, more"),
    "another type": ({"frames": np.zeros((5, 4))}, "frames is float64 of shape"),
    "another width": ({"frames": np.zeros((5, 3), np.float32)}, "not float32 of shape (5, 4)"),
    "another count": ({"sentence_times": np.zeros((3, 2))}, "sentence_times is float64 of shape (3, 2), not"),
    "times that fall": ({"frame_times": np.arange(5.0)[::-1].copy()}, "frame_times is not in ascending order"),
    "no number": ({"sentences": np.full((2, 3), np.nan, np.float32)}, "sentences holds a value that is not a number"),
    "an end before its start": ({"sentence_times": np.array([[1.0, 0.0], [2.0, 3.0]])}, "ends before it starts"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_tensors_that_are_wrong(store: Path, kind: str) -> None:
    changes, what = WRONG[kind]
    save_file({**load_file(the_file(store)), **changes}, the_file(store))
    signed(store)
    assert what in complaint(store)


BAD: dict[str, tuple[Any, str]] = {
    "format": ("msg2.features/9", "$.format: Input should be 'msg2.features/1'"),
    "encoder": (None, "$.encoder: Input should be an object"),
    "encoder.frames": (7, "$.encoder.frames: Input should be a valid string"),
    "encoder.frame_width": (-1, "$.encoder.frame_width: Input should be greater than or equal to 0"),
    "encoder.sentence_width": (True, "$.encoder.sentence_width: Input should be a valid integer"),
    "versions.numpy": (2, "$.versions.numpy: Input should be a valid string"),
    "videos": ({}, "$.videos: Input should be a valid array"),
    "videos.0": ("v1", "$.videos[0]: Input should be an object"),
    "videos.0.task": (1, "$.videos[0].task: Input should be a valid string"),
    "videos.0.video": (None, "$.videos[0].video: Input should be a valid string"),
    "videos.0.file": ("../v1.safetensors", "$.videos[0].file: String should match pattern"),
    "videos.0.frames": (1.5, "$.videos[0].frames: Input should be a valid integer"),
}


@pytest.mark.parametrize("place", BAD)
def test_a_manifest_that_is_wrong(store: Path, place: str) -> None:
    value, expected = BAD[place]
    path = store / "manifest.json"
    document = json.loads(path.read_text())
    *way, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    holder = document
    for part in way:
        holder = holder[part]
    holder[last] = value
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as refused:
        open_store(store)
    assert f"{path}: {expected}" in str(refused.value)
    assert refused.value.hint == "remove the folder and make the features again"
    if place in ("format", "encoder", "videos", "videos.0.video", "videos.0.file"):
        del holder[last]
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match="is missing"):
            open_store(store)


def test_no_manifest(store: Path) -> None:
    path = store / "manifest.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "videos": document["videos"] * 2}))
    with pytest.raises(InputError, match="lists the video 'v1' twice"):
        open_store(store)
    for text, what in (("", "Invalid JSON"), ("[]", "should be an object"), ("{", "Invalid JSON")):
        path.write_text(text)
        with pytest.raises(InputError, match=what):
            open_store(store)
        with pytest.raises(InputError, match=what):  # nor is it overwritten: it may be of another program
            write_store(store, {}, ENCODERS)
    shutil.rmtree(store)
    store.mkdir()
    with pytest.raises(InputError, match=r"is not a feature store, there is no manifest\.json in it"):
        open_store(store)


def test_without_safetensors(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        open_store(store).features("t", "v1")
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        write_store(store, {(None, "v2"): some()}, ENCODERS)
