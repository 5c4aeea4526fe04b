"""What the narrator of a rendered video says: as sentences, as captions, and as sound where espeak-ng is installed.

Every sentence of the script is said: about the step that it mentions, or about nothing of the task.
"""

from __future__ import annotations

import html
import io
import logging
import re
import shutil
import subprocess
import wave
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, shortened
from msg2.options import RenderOptions
from msg2.task import Sentence, Step
from msg2.worlds.features import SMALL_WORDS
from msg2.worlds.script import Script

_log = logging.getLogger(__name__)

Sound: TypeAlias = NDArray[np.int16]
"""One channel."""

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


def sentences(script: Script, steps: Sequence[Step], rng: np.random.Generator) -> list[Sentence]:
    """What is said in the video of `script`, sentence by sentence; `steps` are those of its columns.

    >>> from msg2.options import FeatureOptions
    >>> from msg2.task import Segment
    >>> from msg2.worlds.noise import Demonstration
    >>> from msg2.worlds.script import video_script
    >>> show = Demonstration("v", ("grind beans",), (Segment("grind beans", 0.0, 7.0),), (None,))
    >>> options = FeatureOptions(narrated=1, shift_seconds=0, off_topic=0, after_seconds=3)
    >>> script = video_script(show, ["grind beans"], options, np.random.default_rng(0))
    >>> [sentence.text for sentence in sentences(script, ["grind beans"], np.random.default_rng(0))]
    ['now we grind the beans', 'now the beans should be ground', 'as you know I am no expert']
    """
    said = []
    for (start, end), row in zip(script.sentence_times.tolist(), script.mentioned, strict=True):
        mentioned = np.flatnonzero(row)
        text = _about(steps[mentioned[0]], rng) if len(mentioned) else _OFF_TOPIC[rng.integers(len(_OFF_TOPIC))]
        said.append(Sentence(text, start, end))
    return said


def _about(step: Step, rng: np.random.Generator) -> str:
    """A sentence about `step`: its name with or without an article, at times in the passive where that is easy."""
    verb, *rest = step.split()
    bare = [word for word in rest if word.casefold() in SMALL_WORDS | _ADVERBS]
    article = bool(rest) and rest[0] not in bare
    form, kind, with_article = int(rng.integers(1000)), rng.random(), rng.random() < 0.5
    if article and not bare and verb != "let" and kind < 0.2:
        return _PASSIVE[form % len(_PASSIVE)].format(" ".join(["the", *rest]), participle(verb))
    name = " ".join([verb, "the", *rest]) if article and with_article else " ".join([verb, *rest])
    return _ACTIVE[form % len(_ACTIVE)].format(name)


def participle(verb: str) -> str:
    """The past participle of an English verb, by rule where it is not one of the irregular ones we know.

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


def as_captions(said: Iterable[Sentence]) -> str:
    """A WebVTT file, to the thousandth of a second.

    >>> print(as_captions([Sentence("now flip it", 3.5, 7.0)]), end="")
    WEBVTT
    <BLANKLINE>
    00:00:03.500 --> 00:00:07.000
    now flip it
    """
    cues = (f"\n{_clock(one.start)} --> {_clock(one.end)}\n{html.escape(one.text, quote=False)}\n" for one in said)
    return "WEBVTT\n" + "".join(cues)


def _clock(seconds: float) -> str:
    minutes, thousandths = divmod(round(1000 * seconds), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{thousandths // 1000:02d}.{thousandths % 1000:03d}"


# -- sound ------------------------------------------------------------------------------------------------------


def narrator() -> str | None:
    """The path of espeak-ng; None, and a remark, where it is not installed."""
    found = shutil.which("espeak-ng")
    if found is None:
        _log.warning("espeak-ng is not installed: the videos get captions, but no sound")
    return found


@lru_cache(maxsize=4096)
def utterance(program: str, text: str, options: RenderOptions) -> Sound:
    """`text` as espeak-ng at `program` speaks it, at the options' sample rate and no longer than a sentence may be.

    What would take longer is spoken faster; what is too long even so is faded out: sentences never overlap.
    """
    longest = int(options.script.sentence_seconds * options.sample_rate)
    sound = _speech(program, text, options.words_per_minute, options.sample_rate)
    if len(sound) > longest:
        faster = int(1.05 * options.words_per_minute * len(sound) / longest) + 1
        sound = _speech(program, text, min(_FASTEST, faster), options.sample_rate)
    if len(sound) > longest:
        fade = min(longest, int(_FADE_SECONDS * options.sample_rate))
        sound = sound[:longest].copy()
        sound[longest - fade :] = (sound[longest - fade :] * np.linspace(1, 0, fade)).astype(np.int16)
    return sound


def _speech(program: str, text: str, words_per_minute: int, sample_rate: int) -> Sound:
    from scipy.signal import resample_poly  # slow to import, and only needed here

    command = [program, "-v", _VOICE, "-s", str(words_per_minute), "--stdin", "--stdout"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    try:
        with wave.open(io.BytesIO(done.stdout)) as file:
            rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    except (wave.Error, EOFError):
        reason = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
        what = f"espeak-ng did not speak {shortened(text)} ({reason})"
        raise InputError(what, hint=f"try: {program} -v {_VOICE} hello") from None
    common = np.gcd(rate, sample_rate)
    resampled = resample_poly(samples.astype(np.float64), sample_rate // common, rate // common)
    sound: Sound = np.clip(resampled, -32768, 32767).astype(np.int16)
    return sound


def soundtrack(said: Sequence[Sentence], program: str, seconds: float, options: RenderOptions) -> Sound:
    """The sentences at their times, silence between them: as long as the video or, if longer, its last sentence."""
    end = max([seconds, *(one.end for one in said)])
    track = np.zeros(round(end * options.sample_rate), dtype=np.int16)
    for one in said:
        sound = utterance(program, one.text, options)
        room = track[round(one.start * options.sample_rate) :][: len(sound)]
        room[:] = sound[: len(room)]
    return track
