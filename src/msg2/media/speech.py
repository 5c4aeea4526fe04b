"""Sound -> what is said, with the time of every word, by a Whisper model (faster-whisper).

Seconds count from the start of the file, as they do for pictures. The same file and model give the same words: decoding
follows a beam at temperature 0, and never draws at random where it is unsure. Only what a detector of voices takes for
speech is listened to, since Whisper makes up words for silence and noise.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.media.decoding import opened
from msg2.options import SpeechOptions
from msg2.task import Sentence

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.container import InputContainer

_log = logging.getLogger(__name__)

_RATE = 16_000
"""Samples per second, as Whisper hears them."""
_QUIET = 0.5
"""Seconds of the pause that is looked for where sound is cut."""
_LOOK_BACK = 30.0
"""Seconds before the cut in which it is looked for."""
_LONGEST_GAP = 60.0
"""Seconds without sound that are believed to a file; a longer gap is a clock that jumps."""
_FILES = ("model.bin", "config.json", "tokenizer.json")
_PACKAGES = ("av", "ctranslate2", "faster-whisper", "onnxruntime")


class Transcript(NamedTuple):
    """What is said in a file: sentences, and the same word by word; the language is None where nobody speaks."""

    language: str | None
    sentences: tuple[Sentence, ...]
    words: tuple[Sentence, ...]


class Speech:
    """Listens with a Whisper model: a folder in the format of CTranslate2, or a name such as "base".

    A folder is never looked for on the network; a name is fetched from the Hugging Face hub once.
    """

    def __init__(self, model: str | Path, options: SpeechOptions | None = None) -> None:
        try:
            import ctranslate2
            import faster_whisper
        except ImportError:
            raise MissingExtraError("recognising speech", "media") from None
        self._options = options or SpeechOptions()
        folder = _folder(model, faster_whisper)
        device = self._options.device
        if device == "auto":
            device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        precision = "float16" if device == "cuda" else "int8"
        try:
            self._model = faster_whisper.WhisperModel(
                str(folder), device, compute_type=precision, cpu_threads=self._options.threads, local_files_only=True
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise _no_model(model, str(error)) from None
        if self._options.language not in (None, *self._model.supported_languages):
            raise InputError(f"does not know the language {shortened(str(self._options.language))}", where=model)
        name = model if folder != Path(model) else folder.resolve().name
        how = f"{self._options.language or 'any language'}, beam {self._options.beam}, {precision}"
        self.name = f"{name}@{_fingerprint(folder)} ({how})"
        self.versions: Mapping[str, str] = {package: version(package) for package in _PACKAGES}

    def transcribed(self, path: str | Path) -> Transcript:
        """What is said in a media file; nothing where it has no sound or is silent."""
        language = self._options.language
        sentences: list[Sentence] = []
        words: list[Sentence] = []
        for begin, sound in _stretches(Path(path), self._options.longest):
            segments, info = self._model.transcribe(
                sound,
                language=language,
                beam_size=self._options.beam,
                temperature=0.0,
                word_timestamps=True,
                vad_filter=True,
            )
            last = begin + len(sound) / _RATE
            for segment in segments:
                spoken = [_timed(word.word, word, begin, last) for word in segment.words or ()]
                words += [word for word in spoken if word.text]
                if segment.text.strip():
                    sentences.append(_timed(segment.text, segment, begin, last))
            if sentences:
                language = info.language  # the language of the first words is that of the file
        return Transcript(language if sentences else None, tuple(sentences), tuple(words))


def _timed(text: str, piece: Any, begin: float, last: float) -> Sentence:
    """A piece with its time in the file, where it ends."""
    start, end = (min(begin + float(seconds), last) for seconds in (piece.start, piece.end))
    return Sentence(" ".join(text.split()), round(start, 3), round(max(start, end), 3))


# -- sound ------------------------------------------------------------------------------------------------------


def _stretches(path: Path, longest: float) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(second at which it begins, samples) of the sound in parts of at most `longest` seconds, cut in pauses."""
    limit, look_back = int(longest * _RATE), int(_LOOK_BACK * _RATE)
    held: list[NDArray[np.float32]] = []
    begin, size = None, 0
    for second, samples in _samples(path):
        begin = max(second, 0.0) if begin is None else begin
        gap = second - begin - size / _RATE
        if _QUIET < gap < _LONGEST_GAP:
            samples = np.concatenate([np.zeros(int(gap * _RATE), np.float32), samples])
        held.append(samples)
        size += len(samples)
        while size > limit:
            sound = np.concatenate(held)
            cut = limit - look_back + _quietest(sound[limit - look_back : limit])
            yield begin, sound[:cut]
            held, begin, size = [sound[cut:]], begin + cut / _RATE, size - cut
    if begin is not None:
        yield begin, np.concatenate(held)


def _quietest(sound: NDArray[np.float32]) -> int:
    """The middle of the quietest half second."""
    width = int(_QUIET * _RATE)
    energy = np.cumsum(np.concatenate([[0.0], np.square(sound, dtype=np.float64)]))
    return int(np.argmin(energy[width:] - energy[:-width])) + width // 2


def _samples(path: Path) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(second, samples) of the sound in small pieces, one channel at 16 kHz; none where a file has no sound."""
    with opened(path) as container:
        import av

        kind, second = None, 0.0
        for frame in _frames(path, container):
            second = (frame.time or 0.0) - (container.start_time or 0) / 1e6
            if kind != (frame.format.name, frame.layout.name, frame.sample_rate):
                kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                resampler = av.AudioResampler(format="flt", layout="mono", rate=_RATE)
            frame.pts = None  # the resampler would take jumps of the clock amiss
            for block in resampler.resample(frame):
                yield second, block.to_ndarray().astype(np.float32, copy=False).reshape(-1)
        if kind is not None:
            for block in resampler.resample(None):
                yield second, block.to_ndarray().astype(np.float32, copy=False).reshape(-1)


def _frames(path: Path, container: InputContainer) -> Iterator[AudioFrame]:
    """The decoded sound; what cannot be decoded is left out, with a warning."""
    import av

    seen = lost = 0
    for stream in container.streams.audio[:1]:
        if not stream.codec_context:
            raise InputError("its sound is of a kind that FFmpeg cannot decode", where=path)
        packets = container.demux(stream)
        going = True
        while going:
            try:
                packet = next(packets, None)
                going = packet is not None
                for frame in packet.decode() if packet is not None else ():
                    seen += 1
                    yield frame
            except av.FFmpegError:
                lost += 1
    if lost and not seen:
        raise InputError("has sound, but none of it can be decoded", where=path)
    if lost:
        _log.warning("%s: %d pieces of its sound cannot be decoded; the others are kept", path, lost)


# -- models -----------------------------------------------------------------------------------------------------


def _folder(model: str | Path, faster_whisper: Any) -> Path:
    folder = Path(model)
    if not folder.is_dir():
        try:
            folder = Path(faster_whisper.download_model(str(model)))
        except (OSError, ValueError) as error:
            why = "there is no such folder, and none came from the Hugging Face hub"
            raise _no_model(model, why) from error
    if missing := [name for name in _FILES if not (folder / name).is_file()]:
        raise _no_model(model, f"it has no {missing[0]}")
    return folder


def _no_model(model: str | Path, why: str) -> InputError:
    hint = "give the folder of a Whisper model for CTranslate2, or a name such as base or small"
    first = (why.strip().splitlines() or [""])[0]
    return InputError(f"is not a model for speech ({shortened(first, 160)[1:-1]})", where=model, hint=hint)


def _fingerprint(folder: Path) -> str:
    """Says which weights these are, wherever they lie."""
    with (folder / "model.bin").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
