"""Vectors that people have made themselves: any of four kinds of files, any rate, by name or by folder."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.formats.feature_import import import_features
from msg2.formats.feature_store import VideoFeatures, open_store

ROWS = np.arange(12.0).reshape(6, 2)


def imported(folder: Path, fps: float | None = None) -> dict[str, VideoFeatures]:
    store = import_features(folder, folder.parent / "store", fps)
    assert open_store(folder.parent / "store").entries == store.entries
    return {video: store.read((None, video)) for _, video in store.entries}


def save_torch(path: Path, content: Any) -> None:
    torch = pytest.importorskip("torch")
    tensors = {name: torch.tensor(value) for name, value in content.items()} if isinstance(content, dict) else None
    torch.save(torch.tensor(content) if tensors is None else tensors, path)


def save_npz(path: Path, content: Any) -> None:
    np.savez(path, **content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clip").mkdir()
    return tmp_path / "clip"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64])
def test_an_array_is_frames_at_a_rate(folder: Path, kind: type) -> None:
    np.save(folder / "v1.npy", ROWS.astype(kind))
    np.save(folder / "v2.npy", ROWS[None, :2])  # a batch of one
    videos = imported(folder, fps=2)
    assert list(videos) == ["v1", "v2"]
    assert videos["v1"].frame_times.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert videos["v1"].frames.tolist() == ROWS.tolist()
    assert (videos["v2"].frames.shape, videos["v1"].sentences.shape) == ((2, 2), (0, 0))


@pytest.mark.parametrize(("suffix", "save"), [(".npz", save_npz), (".pt", save_torch)])
def test_arrays_by_name_with_their_times(folder: Path, suffix: str, save: Callable[[Path, Any], None]) -> None:
    spans = np.array([[0.0, 1.0], [2.0, 5.0]])
    content = {"visual": ROWS, "visual_times": np.arange(6.0) + 10, "text": ROWS[:2] + 50, "text_timestamps": spans,
               "audio": ROWS, "fps": np.float64(4)}  # fmt: skip
    save(folder / f"v1{suffix}", content)
    video = imported(folder)["v1"]
    assert video.frame_times.tolist() == [10, 11, 12, 13, 14, 15]
    assert video.frames.tolist() == ROWS.tolist()
    assert (video.sentence_times.tolist(), video.sentences.tolist()) == (spans.tolist(), (ROWS[:2] + 50).tolist())
    # All six rows of sound come before second 10: the first frame has their mean, the others what is nearest.
    assert video.streams["audio"].tolist() == [ROWS.mean(0).tolist(), *[ROWS[-1].tolist()] * 5]


def test_tensors_that_need_gradients_and_lone_arrays_of_any_name(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.ones(3, 2, dtype=torch.bfloat16, requires_grad=True), folder / "v1.pt")
    np.savez(folder / "v2.npz", embeddings=ROWS, names=np.array(["a"]))
    videos = imported(folder, fps=1)
    assert (videos["v1"].frames.shape, videos["v2"].frames.shape) == ((3, 2), (6, 2))


def test_a_folder_for_each_stream_at_its_own_rate(folder: Path) -> None:
    for name in ("frames", "audio", "motion"):
        (folder / name).mkdir()
    np.save(folder / "frames" / "v1.npy", ROWS[:3])
    np.save(folder / "frames" / "v2.npy", ROWS)
    np.savez(folder / "audio" / "v1.npz", x=ROWS, times=np.array([0.1, 0.2, 0.9, 1.1, 1.2, 1.6]))
    np.savez(folder / "motion" / "v1.npz", motion=ROWS[:, :1], fps=3)
    videos = imported(folder, fps=1)
    nearest = [[0, 1], [2, 3, 4], [5]]  # rows of sound by the nearest of the frames at 0, 1 and 2 seconds
    assert videos["v1"].streams["audio"].tolist() == [ROWS[rows].mean(0).tolist() for rows in nearest]
    assert videos["v1"].streams["motion"].tolist() == [[1], [6], [10]]  # at thirds: 0 1, 2 3 4 and 5
    assert videos["v2"].streams["audio"].tolist() == np.zeros((6, 2)).tolist()


def test_without_frames_something_else_takes_their_place(folder: Path) -> None:
    np.savez(folder / "v1.npz", audio=ROWS, motion=ROWS[:3], fps=2)
    video = imported(folder)["v1"]
    assert (video.frames.tolist(), sorted(video.streams)) == (ROWS.tolist(), ["motion"])
    (folder / "v1.npz").unlink()
    np.savez(folder / "v2.npz", sentences=ROWS, times=np.arange(6.0))
    store = import_features(folder, folder.parent / "text")
    assert (store.encoders.frame_width, store.encoders.sentence_width) == (0, 2)
    assert store.read((None, "v2")).sentence_times.tolist() == [[n, n + 1] for n in range(6)]


def test_hdf5_is_read_where_h5py_is_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "v1.h5").write_bytes(b"any")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"v1.h5: reading HDF5 files needs h5py.*\n  pip install h5py"):
        import_features(folder, folder.parent / "store", 1)

    class Dataset:
        def __getitem__(self, key: tuple[()]) -> np.ndarray:
            return ROWS

    class File(dict[str, object]):
        def __init__(self, path: Path, mode: str) -> None:
            super().__init__(frames=Dataset(), group=object())

        def __enter__(self) -> File:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    stand_in = types.ModuleType("h5py")
    stand_in.Dataset, stand_in.File = Dataset, File  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "h5py", stand_in)
    assert imported(folder, fps=1)["v1"].frames.tolist() == ROWS.tolist()


@pytest.mark.parametrize(
    ("content", "fps", "what"),
    [
        (ROWS, None, "nothing says when the rows of frames are\n  give --fps"),
        (ROWS, 0, "fps is 0"),
        (ROWS[0], 1, r"has the shape \(2,\), not \(rows, width\)"),
        (np.full((2, 2), np.nan), 1, "frames holds a value that is not a number"),
        (np.array([{"a": 1}], dtype=object), 1, "cannot be read .*allow_pickle"),
        ({"frames": ROWS, "times": np.arange(5.0)}, 1, "frames has 6 rows, and 5 times"),
        ({"frames": ROWS, "times": np.arange(6.0)[::-1]}, 1, "frame_times is not in ascending order"),
        ({"frames": ROWS, "visual": ROWS}, 1, "holds frames twice, under two names"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(folder: Path, content: Any, fps: float | None, what: str) -> None:
    if isinstance(content, dict):
        np.savez(folder / "v1.npz", **content)
    else:
        np.save(folder / "v1.npy", content, allow_pickle=True)
    with pytest.raises(InputError, match=what):
        import_features(folder, folder.parent / "store", fps)
    assert not (folder.parent / "store").exists()


def test_files_that_cannot_be_read(folder: Path) -> None:
    with pytest.raises(InputError, match="holds no arrays"):
        import_features(folder, folder.parent / "store", 1)
    for name in ("v1.npy", "v1.npz", "v1.pt"):
        (folder / name).write_bytes(b"no such thing")
        with pytest.raises(InputError, match=f"{name}: cannot be read"):
            import_features(folder, folder.parent / "store", 1)
        (folder / name).unlink()
    np.save(folder / "v1.npy", ROWS)
    np.savez(folder / "v1.npz", frames=ROWS)
    with pytest.raises(InputError, match="second file with frames of the video 'v1'"):
        import_features(folder, folder.parent / "store", 1)
    (folder / "v1.npz").unlink()
    np.save(folder / "v2.npy", ROWS[:, :1])
    with pytest.raises(InputError, match=r"the frames of video 'v.' are . wide, those of the store are ."):
        import_features(folder, folder.parent / "store", 1)


def test_pickles_that_could_run_something_are_refused(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"frames": torch.ones(2, 2), "path": Path("x")}, folder / "v1.pt")
    with pytest.raises(InputError, match=r"v1.pt: cannot be read"):
        import_features(folder, folder.parent / "store", 1)


def test_names_that_nobody_knows_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.savez(folder / "v1.npz", frames=ROWS, smell=ROWS)
    assert imported(folder, fps=1)["v1"].frames.shape == (6, 2)
    assert "arrays that are not used, since their names are not known: smell" in caplog.text
