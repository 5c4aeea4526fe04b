"""Frames by time: pictures that carry their number, in every container, and everything that goes wrong with files."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from msg2.errors import InputError, MissingExtraError
from msg2.media import video_decoding
from msg2.media.image_encoders import ImageDescriptors
from msg2.media.video_decoding import FrameOptions, SampledFrame, encode_frames, sample_frames

pytest.importorskip("av")

Film = Callable[..., Path]
Reader = Callable[[np.ndarray], int]

STEADY = [k / 25 for k in range(100)]
"""Seconds: four of them, 25 pictures each."""
UNEVEN = [0, 0.1, 0.2, 1.3, 1.35, 4.0, 4.1]


def on_screen(seconds: Sequence[float], end: float, every: float = 0.5) -> list[tuple[float, int]]:
    """(grid time, picture): by its definition, the last picture that has appeared by then."""
    grid = [k * every for k in range(10_000) if k * every < end - 1e-6]
    return [(at, max(k for k, begins in enumerate(seconds) if begins <= at + 1e-6)) for at in grid]


@pytest.fixture
def seen(read_number: Reader) -> Callable[..., list[tuple[float, int]]]:
    """(seconds, number) of the frames of a file."""

    def look(path: Path, **options: float) -> list[tuple[float, int]]:
        shown = sample_frames(path, FrameOptions(**options))  # type: ignore[arg-type]
        return [(round(frame.seconds, 6), read_number(frame.image)) for frame in shown]

    return look


Seen = Callable[..., list[tuple[float, int]]]


# -- containers and codecs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("a.mp4", {}),
        ("silent.mp4", {"sound": 0.0}),
        ("a.mkv", {"tone": "libopus"}),
        ("vp9.webm", {"codec": "libvpx-vp9", "tone": "libopus"}),
        ("vp8.webm", {"codec": "libvpx", "tone": "libopus"}),
        ("a.avi", {"codec": "mpeg4", "tone": "mp2"}),
        ("a name: 50%d, no address.mov", {}),
    ],
)
def test_times_and_content(tmp_path: Path, film: Film, seen: Seen, name: str, recipe: dict[str, object]) -> None:
    path = film(tmp_path / name, STEADY, **({"sound": 4.0} | recipe))
    assert seen(path) == on_screen(STEADY, 4)


@pytest.mark.parametrize("every", [0.04, 0.1, 0.3, 1.0, 7.0])
def test_any_grid(tmp_path: Path, film: Film, seen: Seen, every: float) -> None:
    path = film(tmp_path / "a.mkv", STEADY)
    assert seen(path, every=every) == [(round(at, 6), k) for at, k in on_screen(STEADY, 4, every)]


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_variable_frame_rate(tmp_path: Path, film: Film, seen: Seen, suffix: str) -> None:
    path = film(tmp_path / f"v.{suffix}", UNEVEN)
    assert seen(path) == on_screen(UNEVEN, 4.14)
    images = [frame.image for frame in sample_frames(path)]
    assert images[1] is images[2]  # one picture, converted once


def test_times_begin_with_the_container(tmp_path: Path, film: Film, seen: Seen) -> None:
    late = film(tmp_path / "late.mp4", [2.25 + at for at in STEADY], sound=7.0)
    shown = seen(late)
    assert shown[:3] == [(2.0, 0), (2.5, 6), (3.0, 18)]  # the first also stands for the grid time before it
    assert shown[-1] == (6.0, 93)
    stream = film(tmp_path / "a.ts", STEADY)  # its clock begins at 1.4 seconds
    assert seen(stream) == on_screen(STEADY, 4)


def test_one_picture(tmp_path: Path, film: Film, seen: Seen) -> None:
    assert seen(film(tmp_path / "one.mp4", [0.0])) == [(0.0, 0)]


def test_sound_only_and_covers(tmp_path: Path, film: Film, seen: Seen) -> None:
    path = film(tmp_path / "a.mp4", sound=2.0)
    assert seen(path) == []
    times, vectors = encode_frames(path, ImageDescriptors())
    assert (times.shape, vectors.shape) == ((0,), (0, 512))
    assert seen(film(tmp_path / "cover.mp4", sound=2.0, cover=True)) == []
    assert seen(film(tmp_path / "both.mp4", STEADY, cover=True)) == on_screen(STEADY, 4)


# -- pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_turned_pictures_come_upright(
    tmp_path: Path, film: Film, seen: Seen, degrees: int, mirrored: bool
) -> None:  # fmt: skip
    import av

    def lying(image: np.ndarray) -> np.ndarray:
        """What a camera stores that was held otherwise: the screen turns it counterclockwise, then mirrors it."""
        return np.rot90(image[:, :: -1 if mirrored else 1], -degrees // 90)

    turn = {"degrees": degrees, "hflip": mirrored}
    path = film(tmp_path / "turned.mp4", STEADY[:30], turn=turn, stored=lying)
    with av.open(str(path)) as file:
        stored = next(file.decode(video=0))
        if not mirrored:
            assert stored.rotation % 360 == degrees
    assert seen(path) == on_screen(STEADY[:30], 1.2)
    image = next(sample_frames(path)).image
    assert image.shape == (48, 88, 3)
    assert image.flags.c_contiguous


@pytest.mark.parametrize(
    ("size", "most", "shape", "expected"),
    [
        ((48, 88), 224, None, (48, 88)),  # never enlarged
        ((48, 88), 24, None, (24, 44)),
        ((96, 48), 24, None, (48, 24)),
        ((48, 88), 24, Fraction(2), (24, 88)),  # pixels twice as wide as high
        ((48, 88), 224, Fraction(2), (24, 88)),
        ((48, 88), 224, Fraction(1, 2), (48, 44)),
    ],
)
def test_sizes(
    tmp_path: Path, film: Film, read_number: Reader, size: tuple[int, int], most: int,
    shape: Fraction | None, expected: tuple[int, int],
) -> None:  # fmt: skip
    path = film(tmp_path / "a.mkv", STEADY[:20], size=size, shape=shape)
    shown = list(sample_frames(path, FrameOptions(size=most)))
    assert [frame.image.shape for frame in shown] == [(*expected, 3)] * 2
    assert [read_number(frame.image) for frame in shown] == [0, 12]
    assert shown[0].image.dtype == np.uint8


# -- broken files -----------------------------------------------------------------------------------------------


def cut(path: Path, share: float = 0.5) -> Path:
    content = path.read_bytes()
    other = path.with_name(f"cut-{path.name}")
    other.write_bytes(content[: int(share * len(content))])
    return other


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("a.mkv", {}),
        ("a.webm", {"codec": "libvpx", "tone": "libopus"}),
        ("a.mp4", {"container": {"movflags": "faststart"}}),
    ],
)
def test_what_is_cut_off(
    tmp_path: Path, film: Film, seen: Seen, caplog: pytest.LogCaptureFixture, name: str, recipe: dict[str, object]
) -> None:
    path = film(tmp_path / name, STEADY, sound=4.0, **recipe)
    whole = seen(path)
    assert not caplog.records
    kept = seen(cut(path))
    assert kept == whole[: len(kept)]
    assert 3 <= len(kept) <= 5
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"cut-{name}: breaks off at second " in record.getMessage()
    assert " of 4.0;" in record.getMessage()
    broken_off = float(record.getMessage().split("second ")[1].split()[0])
    assert kept[-1][0] < broken_off < kept[-1][0] + 1


@pytest.mark.parametrize("name", ["a.ts", "fragmented.mp4"])
def test_what_is_cut_off_and_does_not_say_how_long_it_was(tmp_path: Path, film: Film, seen: Seen, name: str) -> None:
    fragments = {"movflags": "frag_keyframe+empty_moov"} if name.endswith("mp4") else {}
    path = film(tmp_path / name, STEADY, container=fragments)
    kept = seen(cut(path, 0.55))
    assert kept == seen(path)[: len(kept)]
    assert 3 <= len(kept) <= 5


def test_missing_times(tmp_path: Path, film: Film, seen: Seen) -> None:
    path = film(tmp_path / "raw.h264", STEADY, form="h264")  # has no clock at all
    assert seen(path) == on_screen(STEADY, 4)


def test_a_clock_that_starts_again(
    tmp_path: Path, film: Film, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    one = film(tmp_path / "one.ts", STEADY)
    both = tmp_path / "both.ts"
    both.write_bytes(one.read_bytes() * 2)
    assert seen(both) == on_screen(STEADY, 4) + [(at + 4, k) for at, k in on_screen(STEADY, 4)]
    assert "its clock jumps" in caplog.text


@pytest.mark.parametrize("jump", [1e4, 1e6])
def test_a_clock_that_leaps(
    tmp_path: Path,
    film: Film,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    jump: float,
) -> None:
    """Without end: the pictures after the leap follow those before it, wherever the file says they are."""
    leaping = [at + (jump if k >= 50 else 0) for k, at in enumerate(STEADY)]
    path = film(tmp_path / "leap.mkv", leaping)
    monkeypatch.setattr(video_decoding, "LONGEST_FRAME", 100.0)
    shown = seen(path)
    assert shown == on_screen(STEADY, 4)
    assert "its clock jumps (1 times)" in caplog.text


# -- files that are no videos -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"dear diary\n" * 200, "is no video that can be read"),
        (bytes(10_000), "is no video that can be read"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nhello\n\n" * 9, "holds neither picture nor sound"),
        (b"#EXTM3U\n#EXTINF:9,\nhttp://127.0.0.1:1/a.ts\n#EXT-X-ENDLIST\n", "is no video that can be read"),
        (b"ffconcat version 1.0\nfile real.mp4\n", "holds neither picture nor sound"),
    ],
)
def test_what_is_no_video(tmp_path: Path, film: Film, content: bytes, complaint: str) -> None:
    film(tmp_path / "real.mp4", STEADY[:5])
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        list(sample_frames(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) <= 2


def test_files_that_cannot_be_opened(tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    without_index = cut(film(tmp_path / "a.mp4", STEADY))
    with pytest.raises(InputError, match=r"is no video that can be read .*\n.*a download that broke off"):
        list(sample_frames(without_index))
    with pytest.raises(InputError, match="is a folder, not a video"):
        list(sample_frames(tmp_path))
    with pytest.raises(InputError, match="is not there"):
        list(sample_frames(tmp_path / "none.mp4"))
    unknown = tmp_path / "unknown.mp4"
    unknown.write_bytes((tmp_path / "a.mp4").read_bytes().replace(b"avc1", b"zzzz"))
    with pytest.raises(InputError, match="its pictures cannot be decoded: FFmpeg does not know the codec"):
        list(sample_frames(unknown))

    headless = cut(film(tmp_path / "b.mp4", STEADY, container={"movflags": "faststart"}), 0.3)
    with pytest.raises(InputError, match="has pictures, but cannot be decoded"):
        list(sample_frames(headless))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        list(sample_frames(tmp_path / "a.mp4"))
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        list(sample_frames(tmp_path / "a.mp4"))


def test_noise_in_the_middle(tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bytes are, something comes, or one clear complaint."""
    content = film(tmp_path / "a.mkv", STEADY, sound=4.0).read_bytes()
    path = tmp_path / "noise.mkv"
    monkeypatch.setattr(video_decoding, "LONGEST_FRAME", 60.0)
    for seed in range(12):
        noise = np.frombuffer(content, np.uint8).copy()
        rng = np.random.default_rng(seed)
        noise[rng.integers(300, len(noise), 200)] = rng.integers(0, 256, 200)
        path.write_bytes(noise.tobytes())
        with suppress(InputError):
            times = [frame.seconds for frame in sample_frames(path)]
            assert times == sorted(times)
            assert len(times) < 1000


def test_ffmpeg_says_nothing_on_the_terminal(tmp_path: Path, film: Film) -> None:
    path = cut(film(tmp_path / "a.mp4", STEADY, sound=4.0, container={"movflags": "faststart"}), 0.7)
    code = f"from msg2.media.video_decoding import sample_frames; print(len(list(sample_frames({str(path)!r}))))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) >= 4
    assert ran.stderr.splitlines() == [f"{path}: {ran.stderr.partition(': ')[2].rstrip()}"]  # ours, and nothing else
    assert "breaks off" in ran.stderr


# -- features ---------------------------------------------------------------------------------------------------


class Counting:
    """An encoder that remembers what it was given; the vector of a picture is its number."""

    name, width = "numbers", 1
    versions: Mapping[str, str] = MappingProxyType({})

    def __init__(self, read: Reader) -> None:
        self.batches: list[int] = []
        self.read = read

    def __call__(self, images: Sequence[np.ndarray]) -> np.ndarray:
        self.batches.append(len(images))
        return np.array([[self.read(image)] for image in images], np.float32)


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_features_of_frames(
    tmp_path: Path, film: Film, read_number: Reader, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    path = film(tmp_path / "a.mkv", UNEVEN)
    encoder = Counting(read_number)
    monkeypatch.setattr(video_decoding, "BATCH_SIZE", batch)
    times, vectors = encode_frames(path, encoder, FrameOptions(every=0.25))
    expected = on_screen(UNEVEN, 4.14, 0.25)
    assert list(zip(times.tolist(), vectors[:, 0].tolist(), strict=True)) == expected
    assert (times.dtype, vectors.dtype) == (np.float64, np.float32)
    assert sum(encoder.batches) == len({number for _, number in expected})
    assert max(encoder.batches) <= batch


def test_a_failing_encoder_leaves_no_thread(tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Counting):
        def __call__(self, images: Sequence[np.ndarray]) -> np.ndarray:
            raise KeyboardInterrupt

    path = film(tmp_path / "a.mp4", STEADY)
    monkeypatch.setattr(video_decoding, "BATCH_SIZE", 2)
    with pytest.raises(KeyboardInterrupt):
        encode_frames(path, Failing(lambda _: 0), FrameOptions(every=0.04))
    assert not encoder_threads()


def encoder_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "msg2 encoder" in thread.name]


def test_encoding_overlaps_with_decoding_and_one_batch_waits_at_most(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    decoded: list[int] = []
    ahead: list[int] = []
    two_are_decoded = threading.Event()

    def decode(*_: object) -> Iterator[SampledFrame]:
        for k in range(8):
            decoded.append(k)
            if k:
                two_are_decoded.set()
            yield SampledFrame(float(k), np.full((1, 1, 3), k, np.uint8))

    def read(image: np.ndarray) -> int:
        assert two_are_decoded.wait(60)  # while this one is encoded
        ahead.append(len(decoded) - image[0, 0, 0])
        return int(image[0, 0, 0])

    monkeypatch.setattr(video_decoding, "sample_frames", decode)
    monkeypatch.setattr(video_decoding, "BATCH_SIZE", 1)
    (tmp_path / "a.mp4").touch()
    times, vectors = encode_frames(tmp_path / "a.mp4", Counting(read))
    assert times.tolist() == vectors[:, 0].tolist() == list(range(8))
    assert max(ahead) <= 3


def test_options() -> None:
    for wrong in ({"every": 0.0}, {"every": float("nan")}, {"size": 0}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} is"):
            FrameOptions(**wrong)  # type: ignore[arg-type]
