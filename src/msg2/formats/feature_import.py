"""Features that you made yourself: a folder with one .npy, .npz, .h5 or .pt file per video -> a feature store.

A file holds one array of shape (rows, width), or several by name: frames, sentences, audio, motion, or another word for
one of these (`_NAMES`). They may also lie in folders of such names: frames/v1.npy and audio/v1.npy. Rows come at `fps`
a second or have `times`, both of which a file may hold, also as `audio_times`; sentences may have start and end.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.formats.feature_store import (
    STREAMS,
    Encoders,
    FeatureStore,
    VideoFeatures,
    VideoKey,
    nearest_index,
    write_store,
)
from msg2.sequences import FloatArray

SUFFIXES = ".npy", ".npz", ".h5", ".hdf5", ".pt", ".pth"
_WORDS = {
    "frames": "frame visual vision video image images rgb clip features feature feats",
    "sentences": "sentence text texts narration asr language",
    "audio": "sound",
    "motion": "flow",
}
_NAMES = {name: stream for stream, names in _WORDS.items() for name in [stream, *names.split()]}
_TIMES = {"times": "times", "time": "times", "timestamps": "times", "fps": "fps"}
_log = logging.getLogger(__name__)

TimedVectors: TypeAlias = tuple[FloatArray, FloatArray]  # seconds, shape (rows,) or (rows, 2), and (rows, width)


def import_features(folder: str | Path, store: str | Path, fps: float | None = None) -> FeatureStore:
    """Make a feature store of the arrays in a folder; `fps`: rows per second, where the files do not say.

    Of audio and motion, the mean around each frame counts. What comes first of frames, audio and motion takes the
    place of the frames.
    """
    folder = Path(folder)
    require(fps is None or 0 < fps < np.inf, f"fps is {fps}, it must be above 0")
    videos: dict[str, dict[str, TimedVectors]] = defaultdict(dict)
    for path in array_files(folder):
        default = _NAMES.get(path.parent.name.lower(), "frames") if path.parent != folder else "frames"
        with errors_at(path):
            for stream, vectors in _timed_vectors(_read_arrays(path), default, fps).items():
                what = f"is the second file with {stream} of the video {path.stem!r}"
                require(stream not in videos[path.stem], what, hint="keep one file per video")
                videos[path.stem][stream] = vectors
    require(videos, "holds no arrays", where=folder, hint=f"put a file per video there: {' '.join(SUFFIXES)}")
    widths = {stream: vectors.shape[1] for streams in videos.values() for stream, (_, vectors) in streams.items()}
    first = next((stream for stream in ("frames", *STREAMS) if stream in widths), "frames")
    others = {stream: ("imported", widths[stream]) for stream in STREAMS if stream in widths and stream != first}
    sizes = widths.get(first, 0), widths.get("sentences", 0)
    frame_encoder, sentence_encoder = ("imported" if size else None for size in sizes)
    encoders = Encoders(frame_encoder, sentence_encoder, *sizes, streams=others)
    entries: dict[VideoKey, VideoFeatures] = {}
    for video, streams in videos.items():
        with errors_at(folder / video):
            times, frames = streams.get(first, (np.zeros(0), np.zeros((0, sizes[0]))))
            spans, sentences = streams.get("sentences", (np.zeros((0, 2)), np.zeros((0, sizes[1]))))
            if spans.ndim == 1:  # each until the next one
                last = spans[-1:] + (np.diff(spans)[-1:] if len(spans) > 1 else 1)
                spans = np.column_stack([spans, np.append(spans[1:], last)])
            rows = {name: _at_frames(streams.get(name), times, width) for name, (_, width) in others.items()}
            arrays = [each.astype(np.float32) for each in (frames, sentences)]
            entries[None, video] = VideoFeatures(times, arrays[0], spans, arrays[1], streams=rows)
    return write_store(store, entries, encoders)


def array_files(folder: Path) -> list[Path]:
    """List the files with arrays in a folder and the folders in it."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def _at_frames(stream: TimedVectors | None, frames: FloatArray, width: int) -> NDArray[np.float32]:
    """The mean of the vectors nearest to each frame, or the one that is nearest to it; 0 where there are none."""
    sums = np.zeros((len(frames), width), np.float32)
    if stream is None or not len(stream[0]) or not len(frames):
        return sums
    nearest = nearest_index(frames, stream[0])
    np.add.at(sums, nearest, stream[1])
    counts = np.bincount(nearest, minlength=len(frames))[:, None]
    return np.where(counts > 0, sums / counts.clip(1).astype(np.float32), stream[1][nearest_index(stream[0], frames)])


def _timed_vectors(arrays: Mapping[str, np.ndarray], default: str, fps: float | None) -> dict[str, TimedVectors]:
    """By stream, the vectors of a file with their times; a lone array without a known name is of `default`."""
    vectors, times, found = {}, {}, {}
    for name, array in arrays.items():
        what, _, kind = name.lower().rpartition("_")
        if kind in _TIMES and (not what or what in _NAMES):
            times[_NAMES.get(what, ""), _TIMES[kind]] = array.astype(np.float64)
        else:
            vectors[name.lower()] = array
    if len(vectors) == 1 and not (default == "frames" and vectors.keys() <= _NAMES.keys()):
        vectors = dict.fromkeys([default], *vectors.values())
    if unknown := sorted(vectors.keys() - _NAMES.keys()):
        _log.warning("arrays that are not used, since their names are not known: %s", ", ".join(unknown))
    for name in vectors.keys() & _NAMES.keys():
        stream, array = _NAMES[name], vectors[name]
        require(stream not in found, f"holds {stream} twice, under two names")
        array = array.reshape(array.shape[-2:]) if array.size == np.prod(array.shape[-2:]) and array.ndim > 2 else array
        require(array.ndim == 2, f"{stream} has the shape {array.shape}, not (rows, width)")
        moments, rate = (times.get((stream, kind), times.get(("", kind))) for kind in ("times", "fps"))
        if moments is None:
            every = fps if rate is None else rate.item()
            require(every, f"nothing says when the rows of {stream} are", hint="give --fps, rows per second")
            moments = np.arange(len(array)) / (every or 1)
        require(len(moments) == len(array), f"{stream} has {len(array)} rows, and {len(moments)} times")
        found[stream] = moments, array
    return found


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of numbers in a file, by name; the only one of a .npy file, or of a tensor alone, has the name ""."""
    content: Any
    try:
        if path.suffix.lower() in (".npy", ".npz"):
            content = np.load(path, allow_pickle=False)
        elif path.suffix.lower() in (".pt", ".pth"):
            with optional_dependency("reading .pt files", "video"):
                import torch
            content = torch.load(path, map_location="cpu", weights_only=True)
        else:
            content = _read_hdf5(path)
        named = dict(content.items()) if hasattr(content, "items") else {"": content}
        plain = {name: each.detach().float() if hasattr(each, "detach") else each for name, each in named.items()}
        return {str(name): array for name, each in plain.items() if (array := np.asarray(each)).dtype.kind in "fiub"}
    except InputError:
        raise
    except Exception as error:  # every package has errors of its own for a broken file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot be read ({reason})", hint="save plain arrays of numbers in it") from None


def _read_hdf5(path: Path) -> dict[str, Any]:
    try:
        import h5py  # type: ignore[import-not-found]
    except ImportError:
        raise InputError("reading HDF5 files needs h5py, which is not installed", hint="pip install h5py") from None
    with h5py.File(path, "r") as file:
        return {name: value[()] for name, value in file.items() if isinstance(value, h5py.Dataset)}
