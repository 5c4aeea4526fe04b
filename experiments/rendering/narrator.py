"""The narrator of a rendered video: what is said, as sentences, and as sound where espeak-ng is installed.

Every sentence of the storyboard is said: about the step that it mentions, or about nothing of the task.
"""

from __future__ import annotations

import html
import io
import logging
import re
import shutil
import subprocess
import wave
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, optional_dependency
from msg2.sequences import FloatArray
from msg2.simulation.simulated_features import FUNCTION_WORDS, Storyboard, content_words
from msg2.simulation.simulator import random_stream
from msg2.task import Sentence, Step
from msg2.text import short_repr

_log = logging.getLogger(__name__)

Waveform: TypeAlias = NDArray[np.int16]
"""Samples of one channel."""

SAMPLE_RATE = 16_000
"""Samples of the sound, per second."""
WORDS_PER_MINUTE = 170
"""How fast the narrator speaks, where there is time."""
_VOICE = "en-us"
_FASTEST = 450
"""Words per minute; beyond that espeak-ng sounds no faster."""
_FADE_SECONDS = 0.02

# -- sentences --------------------------------------------------------------------------------------------------

_ACTIVE = (
    "now we {}", "go ahead and {}", "the next thing is to {}", "you want to {}", "let's {}", "so I {} here",
    "make sure to {}", "take your time and {}", "here I am going to {}", "what we do is {}",
)  # fmt: skip
_PASSIVE = ("now {} should be {}", "then {} can be {}")
_OFF_TOPIC = (
    "hello and welcome everybody", "thanks for watching", "I love this moment", "my neighbour asked about this",
    "it rained all day yesterday", "leave a comment below", "that was easier than I thought", "my sister knows that",
    "sorry about the noise outside", "I hope you are having a great day", "this is really important",
    "it looks pretty nice", "that is what I like to see", "people ask me about it all the time",
    "I did this for many years", "as you know I am no expert", "so that is that", "okay", "alright, what is next",
    "do not worry if it takes a while", "the dog is barking again", "subscribe for more of this", "music is playing",
    "I will show it once more another day",
)  # fmt: skip
_ADVERBS = frozenset({"across", "apart", "away", "back", "close", "open", "straight", "together"})
"""Words in the names of steps that are no part of an object."""
_PARTICIPLES = {
    "buy": "bought", "cast": "cast", "choose": "chosen", "cut": "cut", "find": "found", "get": "got", "give": "given",
    "grind": "ground", "hold": "held", "lay": "laid", "put": "put", "send": "sent", "set": "set", "spread": "spread",
    "stick": "stuck", "take": "taken",
}  # fmt: skip


def write_narration(storyboard: Storyboard, steps: Sequence[Step], rng: np.random.Generator) -> list[Sentence]:
    """Write the sentences that the narrator of a video says."""
    sentences = []
    for (start, end), row in zip(storyboard.sentence_times.tolist(), storyboard.mentioned, strict=True):
        mentioned = np.flatnonzero(row)
        about_step = len(mentioned) > 0
        text = _sentence_about(steps[mentioned[0]], rng) if about_step else _OFF_TOPIC[rng.integers(len(_OFF_TOPIC))]
        sentences.append(Sentence(text, start, end))
    return sentences


def _sentence_about(step: Step, rng: np.random.Generator) -> str:
    """A sentence about `step`: its name with or without an article, at times in the passive where that is easy."""
    verb, *rest = step.split()
    bare = [word for word in rest if word.casefold() in FUNCTION_WORDS | _ADVERBS]
    article = bool(rest) and rest[0] not in bare
    form, kind, with_article = int(rng.integers(1000)), rng.random(), rng.random() < 0.5
    if article and not bare and verb != "let" and kind < 0.2:
        return _PASSIVE[form % len(_PASSIVE)].format(" ".join(["the", *rest]), participle(verb))
    name = " ".join([verb, "the", *rest]) if article and with_article else " ".join([verb, *rest])
    return _ACTIVE[form % len(_ACTIVE)].format(name)


def participle(verb: str) -> str:
    """Return the past participle of an English verb, by rule where it is not one of the irregular ones we know.

    >>> [participle(verb) for verb in ("open", "wrap", "remove", "apply", "grind", "press", "hand-tighten")]
    ['opened', 'wrapped', 'removed', 'applied', 'ground', 'pressed', 'hand-tightened']
    """
    if verb in _PARTICIPLES:
        return _PARTICIPLES[verb]
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    doubled = verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) else ""
    return f"{verb}{doubled}ed"


def to_webvtt(sentences: Sequence[Sentence]) -> str:
    """The sentences as a WebVTT file, with times to the millisecond."""
    cues = (
        f"\n{_format_timestamp(sentence.start)} --> {_format_timestamp(sentence.end)}\n"
        f"{html.escape(sentence.text, quote=False)}\n"
        for sentence in sentences
    )
    return "WEBVTT\n" + "".join(cues)


def _format_timestamp(seconds: float) -> str:
    minutes, milliseconds = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}"


# -- sound ------------------------------------------------------------------------------------------------------


def find_espeak() -> str | None:
    """Return the path of espeak-ng; None, and a warning, where it is not installed."""
    program = shutil.which("espeak-ng")
    if program is None:
        _log.warning("espeak-ng is not installed: the videos get captions, but no sound")
    return program


@lru_cache(maxsize=4096)
def utterance(program: str, text: str, seconds: float) -> Waveform:
    """Synthesize the speech of one sentence.

    What would take longer than it may is spoken faster; what is too long even so is faded out: sentences never
    overlap.
    """
    longest = int(seconds * SAMPLE_RATE)
    sound = _synthesize(program, text, WORDS_PER_MINUTE)
    if len(sound) > longest:
        faster = int(1.05 * WORDS_PER_MINUTE * len(sound) / longest) + 1
        sound = _synthesize(program, text, min(_FASTEST, faster))
    if len(sound) > longest:
        fade = min(longest, int(_FADE_SECONDS * SAMPLE_RATE))
        sound = sound[:longest].copy()
        sound[longest - fade :] = (sound[longest - fade :] * np.linspace(1, 0, fade)).astype(np.int16)
    return sound


def _synthesize(program: str, text: str, words_per_minute: int) -> Waveform:
    with optional_dependency("spoken narration", "video"):
        from scipy.signal import resample_poly  # slow to import, and only needed here
    command = [program, "-v", _VOICE, "-s", str(words_per_minute), "--stdin", "--stdout"]
    process = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    try:
        with wave.open(io.BytesIO(process.stdout)) as file:
            rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    except (wave.Error, EOFError):
        reason = process.stderr.decode(errors="replace").strip() or f"exit status {process.returncode}"
        what = f"espeak-ng did not speak {short_repr(text)} ({reason})"
        raise InputError(what, hint=f"try: {program} -v {_VOICE} hello") from None
    common = np.gcd(rate, SAMPLE_RATE)
    resampled = resample_poly(samples.astype(np.float64), SAMPLE_RATE // common, rate // common)
    return np.asarray(np.clip(resampled, -32768, 32767), np.int16)


def soundtrack(sentences: Sequence[Sentence], program: str, seconds: float, sentence_seconds: float) -> Waveform:
    """Synthesize the sound of a video: the sentences at their times, silence between them."""
    end = max([seconds, *(sentence.end for sentence in sentences)])
    track = np.zeros(round(end * SAMPLE_RATE), dtype=np.int16)
    for sentence in sentences:
        sound = utterance(program, sentence.text, sentence_seconds)
        slot = track[round(sentence.start * SAMPLE_RATE) :][: len(sound)]
        slot[:] = sound[: len(slot)]
    return track


def sounds_of_actions(
    shown: FloatArray, steps: Sequence[Step], frames_per_second: int, loudness: float, rng: np.random.Generator
) -> Waveform:
    """Synthesize what is done: every action word has three tones of its own; they rise, fall and hiss in each video.

    `shown` says how strongly each frame shows each step, shape (frames, steps).
    """
    time = np.arange(len(shown) * SAMPLE_RATE // frames_per_second) / SAMPLE_RATE
    frame = np.minimum((time * frames_per_second).astype(np.intp), len(shown) - 1)
    track = np.zeros(len(time))
    for number, step in enumerate(steps):
        tones = random_stream(0, "sound", content_words(step)[0]).uniform(200, 6000, 3)
        detuned = tones * rng.uniform(0.97, 1.03, 3)
        wave = np.sin(2 * np.pi * detuned * time[:, None]).mean(axis=1) + rng.normal(0, 0.3, len(time))
        track += shown[frame, number] * wave * (1 + np.sin(2 * np.pi * rng.uniform(0.5, 3) * time)) / 2
    return np.asarray(np.clip(loudness * track, -1, 1) * 32767, np.int16)


def mix(*tracks: Waveform) -> Waveform:
    """Play tracks at the same time, as long as the longest of them."""
    total = np.zeros(max(map(len, tracks)))
    for track in tracks:
        total[: len(track)] += track
    return np.asarray(np.clip(total, -32768, 32767), np.int16)
