"""Rendered worlds: whole files that follow their storyboard, decided by the seed alone."""

from __future__ import annotations

import io
import logging
import shutil
import sys
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.rendering import video_writer
from experiments.rendering.__main__ import read_simulation
from experiments.rendering.scenes import RenderOptions, draw_frames, draw_props
from experiments.rendering.video_writer import VideoRenderer, encode_mp4, write_videos
from msg2.errors import InputError, MissingExtraError
from msg2.formats.captions import caption_files, read_sentences
from msg2.simulation import NoiseOptions, household_world, simulate
from msg2.simulation.simulated_features import StoryboardOptions, write_simulation
from msg2.simulation.simulator import SimulationOptions

av = pytest.importorskip("av")

BRIEF = SimulationOptions(
    videos=3, step_seconds=2, step_spread=0.3, gap_seconds=0.5, gap_spread=0.3,
    noise=NoiseOptions(skipped=0.25, unlabelled=0.4, swapped=0.3),
)  # fmt: skip
COFFEE = simulate(household_world("Make Coffee"), BRIEF, seed=2)
OPTIONS = RenderOptions(width=96, height=72, black=0.5)


def frames_of(path: Path) -> NDArray[np.uint8]:
    with av.open(str(path)) as file:
        return np.array([frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The videos of `COFFEE`, as one process writes them."""
    found = tmp_path_factory.mktemp("videos")
    write_videos(found, COFFEE, OPTIONS, seed=2)
    return found


def test_a_video_and_captions_for_every_demonstration(folder: Path) -> None:
    ids = [demonstration.video for demonstration in COFFEE.demonstrations]
    assert sorted(contents(folder)) == sorted([f"{video}.mp4" for video in ids] + [f"{video}.vtt" for video in ids])
    captions = {name: read_sentences(file) for name, file in caption_files(folder).items()}
    for demonstration in COFFEE.demonstrations:
        assert list(captions[demonstration.video]) == VideoRenderer(COFFEE, OPTIONS, seed=2).narration(demonstration)


def test_pictures_have_their_times(folder: Path) -> None:
    for demonstration in COFFEE.demonstrations:
        seconds = demonstration.performed[-1].end + OPTIONS.storyboard.after_seconds
        with av.open(str(folder / f"{demonstration.video}.mp4")) as file:
            (video,) = file.streams.video
            assert (video.codec_context.name, video.width, video.height) == ("h264", 96, 72)
            times = [frame.time for frame in file.decode(video=0)]
            assert times == pytest.approx(np.arange(int(seconds * 5) + 1) / 5)
            assert float(video.duration * video.time_base) == pytest.approx(len(times) / 5)
            assert "creation_time" not in file.metadata
            assert not file.metadata.get("encoder")


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_sound_goes_on_until_the_last_sentence(folder: Path) -> None:
    for demonstration in COFFEE.demonstrations:
        with av.open(str(folder / f"{demonstration.video}.mp4")) as file:
            (audio,) = file.streams.audio
            assert (audio.codec_context.name, audio.rate, audio.codec_context.layout.name) == ("aac", 16_000, "mono")
            sound = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
        end = VideoRenderer(COFFEE, OPTIONS, seed=2).narration(demonstration)[-1].end
        assert len(sound) / 16_000 == pytest.approx(end, abs=0.2)
        assert np.abs(sound).max() > 0.1


def test_the_decoded_pictures_are_the_drawn_ones() -> None:
    storyboard = VideoRenderer(COFFEE, OPTIONS, seed=2).storyboard(COFFEE.demonstrations[0])
    props = draw_props(COFFEE.task.name, COFFEE.graph.steps, seed=2)
    drawn = list(draw_frames(storyboard, props, OPTIONS, np.random.default_rng(0)))[:60]
    with av.open(io.BytesIO(encode_mp4(drawn, None, OPTIONS))) as file:
        decoded = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    assert len(decoded) == len(drawn)
    for one, other in zip(drawn, decoded, strict=True):
        assert np.abs(one.astype(float) - other).mean() < 12


def test_black_frames_are_there(folder: Path) -> None:
    frames = np.concatenate([frames_of(path) for path in sorted(folder.glob("*.mp4"))])
    black = frames.mean(axis=(1, 2, 3)) < 6
    assert 0.02 < black.mean() < 0.1


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_same_bytes_whatever_the_jobs(folder: Path, tmp_path: Path, jobs: int) -> None:
    calls: list[tuple[int, int | None]] = []
    written = write_videos(
        tmp_path / "new", COFFEE, OPTIONS, 2, jobs=jobs, progress=lambda done, total, _: calls.append((done, total))
    )
    assert contents(tmp_path / "new") == contents(folder)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert [path.name for path in written] == ["v00001.mp4", "v00002.mp4", "v00003.mp4"]


def test_labels_change_nothing(folder: Path, tmp_path: Path) -> None:
    """Unlabelled and mislabelled steps are shown and spoken of like any other."""
    demonstrations = tuple(
        replace(demonstration, labels=(None,) * len(demonstration.performed))
        for demonstration in COFFEE.demonstrations[:1]
    )
    write_videos(tmp_path, replace(COFFEE, demonstrations=demonstrations), OPTIONS, seed=2)
    assert contents(tmp_path) == {name: data for name, data in contents(folder).items() if "v00001" in name}


def test_the_script_is_about_what_was_performed_at_its_real_time() -> None:
    skipped = 0
    for demonstration in COFFEE.demonstrations:
        storyboard = VideoRenderer(COFFEE, OPTIONS, seed=2).storyboard(demonstration)
        for n, step in enumerate(COFFEE.graph.steps):
            inside = np.zeros(len(storyboard.frame_times), dtype=bool)
            for segment in (one for one in demonstration.performed if one.step == step):
                inside |= (storyboard.frame_times >= segment.start) & (storyboard.frame_times < segment.end)
            assert not (storyboard.shown[~inside, n] >= 1).any()
            if step in demonstration.skipped:
                skipped += 1
                assert not storyboard.shown[:, n].any()
                assert not storyboard.mentioned[:, n].any()
                assert not storyboard.done[:, n].any()
    assert skipped > 5


def test_blank_moments_are_whole_moments_in_their_share() -> None:
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(videos=30), seed=0)
    options = RenderOptions(StoryboardOptions(blank=0.3, distractors=0))
    hidden, moments = [], []
    for demonstration in simulation.demonstrations:
        times = (storyboard := VideoRenderer(simulation, options, seed=0).storyboard(demonstration)).frame_times
        inside = np.any([(times >= one.start) & (times < one.end) for one in demonstration.performed], axis=0)
        blank = inside & ~storyboard.shown.any(axis=1)
        hidden.append(blank[inside])
        second = times.astype(int)
        moments += [blank[inside & (second == s)] for s in np.unique(second[inside])]
    assert 0.26 < np.concatenate(hidden).mean() < 0.34
    assert all(moment.all() or not moment.any() for moment in moments)


def test_without_espeak_videos_are_silent_and_have_captions(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with caplog.at_level(logging.INFO, "msg2"):
        write_videos(tmp_path, COFFEE, OPTIONS, seed=2)
    assert caplog.text.count("captions, but no sound") == 1
    for path in tmp_path.glob("*.vtt"):
        assert path.read_bytes() == (folder / path.name).read_bytes()
    for path in tmp_path.glob("*.mp4"):
        with av.open(str(path)) as file:
            assert not file.streams.audio
        assert (frames_of(path) == frames_of(folder / path.name)).all()


def test_other_videos_in_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "v00004.vtt").write_text("WEBVTT\n")
    with pytest.raises(InputError, match=r"v00004.vtt: belongs to another simulation"):
        write_videos(tmp_path, COFFEE, OPTIONS, seed=2)
    assert [path.name for path in tmp_path.iterdir()] == ["v00004.vtt"]


def test_a_video_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise InputError("no captions today")

    monkeypatch.setattr(video_writer, "to_webvtt", broken)
    with pytest.raises(InputError, match="no captions today"):
        write_videos(tmp_path, COFFEE, OPTIONS, seed=2)
    assert not list(tmp_path.iterdir())


def test_without_pyav_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        write_videos(tmp_path, COFFEE, OPTIONS, seed=2)


def test_a_world_without_videos_and_a_video_without_steps(tmp_path: Path) -> None:
    assert write_videos(tmp_path, replace(COFFEE, demonstrations=()), OPTIONS, seed=0) == []
    nothing = simulate(household_world("Make Coffee"), replace(BRIEF, videos=1, noise=NoiseOptions(skipped=1)), seed=0)
    (path,) = write_videos(tmp_path, nothing, OPTIONS, seed=0)
    assert len(frames_of(path)) == 5 * OPTIONS.storyboard.after_seconds + 1


@pytest.mark.parametrize(
    "wrong",
    [{"width": 33}, {"height": 0}, {"frames_per_second": 0}, {"clutter": -1}, {"grain": -1}, {"black": 2},
     {"grain": float("nan")}],
)  # fmt: skip
def test_options_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        RenderOptions(**wrong)  # type: ignore[arg-type]


def test_no_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="jobs is 0"):
        write_videos(tmp_path, COFFEE, OPTIONS, seed=2, jobs=0)


def test_what_is_rendered_is_in_the_files_of_a_simulation(tmp_path: Path) -> None:
    write_simulation(tmp_path, COFFEE, seed=2)
    again = read_simulation(tmp_path)
    for demonstration, read in zip(COFFEE.demonstrations, again.demonstrations, strict=True):
        drawn = VideoRenderer(COFFEE, OPTIONS, seed=2).storyboard(demonstration)
        other = VideoRenderer(again, OPTIONS, seed=2).storyboard(read)
        assert all((one == two).all() for one, two in zip(astuple(drawn), astuple(other), strict=True))
