"""Sound and motion without weights, against sines and squares whose bands and places are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")

from msg2.errors import InputError
from msg2.formats.feature_store import open_store
from msg2.formats.video_files import find_video_files
from msg2.media import sound_and_motion
from msg2.media.feature_extraction import ExtractionOptions, extract_features
from msg2.media.image_encoders import ImageDescriptors
from msg2.media.sound_and_motion import BANDS, WithMotion, encode_sound, log_mel, split_motion

RATE = 16_000


def sine(hertz: float, seconds: float, volume: float = 0.5) -> np.ndarray:
    return (volume * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)).astype(np.float32)


@pytest.mark.parametrize("hertz", [200, 440, 1000, 3000, 6500])
def test_a_tone_is_loudest_in_the_band_around_it(hertz: float) -> None:
    mels = log_mel(sine(hertz, 0.5))
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), BANDS + 2) / 2595) - 1)
    loudest = int(mels.mean(0).argmax())
    assert corners[loudest] - 32 <= hertz <= corners[loudest + 2] + 32  # half a bin of the FFT is 16 Hz
    assert mels.max() > 0.5


def test_silence_is_zero_and_louder_is_more() -> None:
    assert not log_mel(np.zeros(RATE, np.float32)).any()
    quiet, loud = (log_mel(sine(440, 0.5, volume)).sum() for volume in (0.01, 0.5))
    assert 0 < quiet < loud
    assert log_mel(np.zeros(399, np.float32)).shape == (0, BANDS)


def test_the_sound_around_each_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of silence, a second of sound that comes in two pieces; the file begins at half a second."""
    pieces = [(0.5, np.zeros(RATE, np.float32)), (1.5, sine(440, 0.5)), (2.0, sine(440, 0.5))]
    monkeypatch.setattr(sound_and_motion, "audio_chunks", lambda path, longest: iter(pieces))
    times = np.array([0.0, 1.0, 2.0, 3.0])
    encoded = encode_sound(Path("x"), times, 1.0)
    assert encoded.shape == (4, 2 * BANDS)
    assert not encoded[[0, 3]].any()  # of half a second of silence, and of nothing
    assert not encoded[1].any()
    alone = log_mel(sine(440, 0.5))
    both = np.vstack([alone, alone])
    assert np.allclose(encoded[2], [*both.mean(0), *both.std(0)], atol=1e-5)
    assert encode_sound(Path("x"), np.zeros(0), 1.0).shape == (0, 2 * BANDS)


def test_motion_is_where_the_picture_changes() -> None:
    still = np.full((64, 64, 3), 100, np.uint8)
    moved = still.copy()
    moved[8:16, 24:32] = 151  # the second row of cells, the fourth column; by 51 of 255
    moved[8, 24] = 255
    encoder = WithMotion(ImageDescriptors())
    vectors, motion = split_motion(encoder([still, still, moved]))
    assert (vectors == ImageDescriptors()([still, still, moved])).all()
    assert not motion[:2].any()
    cell = 8 + 3
    mean, most = motion[2, :64], motion[2, 64:]
    assert np.isclose(mean[cell], (63 * 51 + 155) / 64 / 255, atol=1e-6)
    assert np.isclose(most[cell], 155 / 255, atol=1e-6)
    assert not np.delete(mean, cell).any()
    assert not np.delete(most, cell).any()
    assert split_motion(encoder([]))[1].shape == (0, 128)


def test_real_files_give_streams_beside_the_frames(tmp_path: Path, film: Callable[..., Path]) -> None:
    """Two pictures and a tone of a second, and a silent video: rows go with frames, and a second run does nothing."""
    (tmp_path / "videos").mkdir()
    film(tmp_path / "videos" / "loud.mp4", [0.0, 1.0, 2.0], sound=1.0)
    film(tmp_path / "videos" / "quiet.mp4", [0.0, 1.0])
    files = find_video_files(tmp_path / "videos").found
    options = ExtractionOptions(audio=True, motion=True)
    extract_features(files, tmp_path / "store", options)
    store = open_store(tmp_path / "store")
    assert store.encoders.streams == {"audio": ("log-mel", 128), "motion": ("differences", 128)}
    loud, quiet = (store.read((None, name)) for name in ("loud", "quiet"))
    heard = loud.streams["audio"][:, :64].mean(axis=1)
    assert (heard[loud.frame_times < 0.9] > 0.05).all()  # a tone is in few bands
    assert (heard[loud.frame_times > 1.6] < 0.01).all()
    assert not quiet.streams["audio"].any()
    moved = loud.streams["motion"].any(axis=1)
    assert loud.frame_times[moved].tolist() == [1.0, 2.0]  # where another picture comes
    alone = extract_features(files, tmp_path / "plain", ExtractionOptions())
    assert [each.failure for each in alone] == [None, None]
    plain = open_store(tmp_path / "plain").read((None, "loud"))
    assert (plain.frames == loud.frames).all()
    assert all(each.unchanged for each in extract_features(files, tmp_path / "store", options))
    with pytest.raises(InputError, match="audio and motion come with frames"):
        ExtractionOptions("none", audio=True)
