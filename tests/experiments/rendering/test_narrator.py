"""The narrator speaks of what the storyboard mentions and of nothing else, in his slots, with or without a voice."""

from __future__ import annotations

import logging
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.rendering.narrator import (
    SAMPLE_RATE,
    find_espeak,
    mix,
    participle,
    sounds_of_actions,
    soundtrack,
    to_webvtt,
    utterance,
    write_narration,
)
from experiments.rendering.scenes import split_step_name
from msg2.errors import InputError
from msg2.formats.captions import caption_files, read_sentences
from msg2.simulation import NoiseOptions, household_world, household_worlds, simulate, video_storyboard
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Sentence

ESPEAK = shutil.which("espeak-ng") or ""
with_espeak = pytest.mark.skipif(not ESPEAK, reason="espeak-ng is not installed")


def words_in(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w+", text.casefold())}


@pytest.mark.parametrize("one", household_worlds(), ids=lambda one: one.name)
def test_a_sentence_speaks_of_the_step_that_the_script_mentions(one) -> None:  # type: ignore[no-untyped-def]
    simulation = simulate(one, SimulationOptions(videos=4, noise=NoiseOptions(skipped=0.3)), seed=1)
    steps = simulation.graph.steps
    objects = {step: set(split_step_name(step)[1]) for step in steps}
    spoken_of = 0
    for demonstration in simulation.demonstrations:
        storyboard = video_storyboard(simulation, demonstration, FeatureOptions(narrated=1), seed=1)
        said = write_narration(storyboard, steps, np.random.default_rng(5))
        assert [(s.start, s.end) for s in said] == [tuple(times) for times in storyboard.sentence_times.tolist()]
        performed = {segment.step for segment in demonstration.performed}
        for sentence, row in zip(said, storyboard.mentioned, strict=True):
            words = words_in(sentence.text)
            if row.any():
                step = steps[int(row.argmax())]
                spoken_of += 1
                assert step in performed
                assert objects[step] <= words, (step, sentence.text)
            else:
                assert not any(words & some for some in objects.values()), sentence.text
    assert spoken_of > 20


def test_sentences_vary_and_the_stream_decides() -> None:
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(videos=1), seed=0)
    storyboard = video_storyboard(simulation, simulation.demonstrations[0], FeatureOptions(), seed=0)
    one, again, other = (
        write_narration(storyboard, simulation.graph.steps, np.random.default_rng(n)) for n in (1, 1, 2)
    )
    assert one == again != other
    storyboard = replace(storyboard, mentioned=np.tile(np.eye(len(simulation.graph.steps))[3], (len(one), 1)))
    texts = {
        sentence.text for sentence in write_narration(storyboard, simulation.graph.steps, np.random.default_rng(0))
    }
    assert len(texts) > 8
    assert any(" and " in text for text in texts)
    assert any(re.search(r"(should|can) be \w+$", text) for text in texts)


def test_participles() -> None:
    known = {
        "stir": "stirred", "plug": "plugged", "tap": "tapped", "flip": "flipped", "mix": "mixed", "boil": "boiled",
        "heat": "heated", "season": "seasoned", "cover": "covered", "fry": "fried", "play": "played", "saw": "sawed",
        "raise": "raised", "put": "put", "take": "taken", "scoop": "scooped", "unpack": "unpacked",
    }  # fmt: skip
    assert {verb: participle(verb) for verb in known} == known


def test_captions_read_back_as_they_were_said(tmp_path: Path) -> None:
    said = [
        Sentence("now fill it", 0.0, 3.5),
        Sentence("salt & pepper <lots>", 59.9996, 63.5),
        Sentence("an hour later", 3661.25, 3664.0),
    ]
    (tmp_path / "v1.vtt").write_text(to_webvtt(said), encoding="utf-8")
    read = read_sentences(caption_files(tmp_path)["v1"])
    assert [sentence.text for sentence in read] == [sentence.text for sentence in said]
    for one, other in zip(read, said, strict=True):
        assert (one.start, one.end) == pytest.approx((other.start, other.end), abs=0.0006)


@with_espeak
@pytest.mark.parametrize("seconds", [5.0, 1.5, 0.3])
def test_an_utterance_fits_its_slot_by_haste_and_then_by_force(seconds: float) -> None:
    sound = utterance(ESPEAK, "the next thing is to pour the remaining water", seconds)
    assert 0 < len(sound) <= seconds * SAMPLE_RATE
    assert np.abs(sound).max() > 3000
    assert abs(int(sound[-1])) < 300, "no click at the end"


@with_espeak
def test_sentences_are_heard_at_their_times_and_silence_between() -> None:
    said = [Sentence("now we fill the kettle", 3.5, 7.0), Sentence("okay", 10.5, 14.0)]
    track = soundtrack(said, ESPEAK, seconds=12.0, sentence_seconds=3.5)
    assert len(track) == 14.0 * SAMPLE_RATE, "the last sentence is not cut"
    loud = [np.abs(part).max() > 1000 for part in np.split(track, 4)]
    assert loud == [False, True, False, True]
    sound = utterance(ESPEAK, said[0].text, 3.5)
    assert (track[56_000 : 56_000 + len(sound)] == sound).all()


def test_without_espeak_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with caplog.at_level(logging.INFO, "msg2"):
        assert find_espeak() is None
    assert "espeak-ng is not installed" in caplog.text


def test_a_program_that_does_not_speak_is_named() -> None:
    with pytest.raises(InputError, match="espeak-ng did not speak 'hello you'"):
        utterance(shutil.which("true") or "/bin/true", "hello you", 3.5)


def test_every_action_has_its_own_sound_while_it_is_seen() -> None:
    shown = np.zeros((20, 3))  # 2 frames a second: pour, silence, stir, silence; then pour something else
    shown[0:4, 0], shown[8:12, 1], shown[16:20, 2] = 1, 1, 1
    steps = ["pour milk", "stir it", "pour tea"]
    track = sounds_of_actions(shown, steps, 2, 0.2, np.random.default_rng(0)).astype(np.float64)
    assert len(track) == 10 * SAMPLE_RATE
    assert not track[2 * SAMPLE_RATE : 4 * SAMPLE_RATE].any()
    parts = [track[second * SAMPLE_RATE :][: 2 * SAMPLE_RATE] for second in (0, 4, 8)]
    spectra = [np.abs(np.fft.rfft(part))[:12_000].reshape(-1, 600).max(axis=1) for part in parts]  # bands of 300 Hz
    loudest = [set(np.argsort(spectrum)[-3:].tolist()) for spectrum in spectra]
    near = [{band + by for band in some for by in (-1, 0, 1)} for some in loudest]  # tones are a little out of tune
    assert loudest[2] <= near[0]
    assert not loudest[1] <= near[0]


def test_mixed_tracks_are_heard_together() -> None:
    one, other = np.array([1000, -20_000, 5], np.int16), np.array([500, -20_000], np.int16)
    assert mix(one, other).tolist() == [1500, -32768, 5]
