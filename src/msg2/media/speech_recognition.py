"""Speech recognition: sound -> text with the time of every word, by a Whisper model (faster-whisper).

Seconds count from the start of the file, as they do for frames. The same file and model give the same words: decoding
follows a beam at temperature 0, and never draws at random where it is unsure. Only what a voice activity detector
takes for speech is transcribed, since Whisper makes up words for silence and noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, optional_dependency
from msg2.files import file_sha256
from msg2.media.video_decoding import decode_stream, open_media, start_seconds
from msg2.task import Sentence
from msg2.text import short_repr
from msg2.text_encoders import NOT_FOUND, wrong_model_error

if TYPE_CHECKING:
    from faster_whisper.transcribe import Segment, Word


BEAM_SIZE = 5  # hypotheses that are followed at the same time
CHUNK_SECONDS = 600.0
"""Sound that is transcribed at once; longer sound is cut where it is quiet, and memory stays bounded."""

RATE = 16_000  # samples per second, as Whisper takes them
_PAUSE_SECONDS = 0.5  # seconds of the pause that is looked for where sound is cut
_SEARCH_SECONDS = 30.0  # seconds before the cut in which it is looked for
_LONGEST_GAP = 60.0  # seconds without sound that are believed to a file; a longer gap is a clock that jumps
_MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
_KIND = "model for speech"
_HINT = "give the folder of a Whisper model for CTranslate2, or a name such as base or small"
_PACKAGES = ("av", "ctranslate2", "faster-whisper", "onnxruntime")


class Transcript(NamedTuple):
    """What is said in a file: sentences, and the same word by word; the language is None where nobody speaks."""

    language: str | None
    sentences: tuple[Sentence, ...]
    words: tuple[Sentence, ...]


class SpeechRecognizer:
    """Transcribes speech with a Whisper model: a folder in the format of CTranslate2, or a name such as "base"."""

    def __init__(self, model: str | Path, language: str | None = None) -> None:
        with optional_dependency("recognising speech", "video"):
            import ctranslate2
            from faster_whisper import WhisperModel
        self._language = language
        folder = _model_folder(model)
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        precision = "float16" if device == "cuda" else "int8"
        try:
            self._model = WhisperModel(str(folder), device, compute_type=precision, local_files_only=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise wrong_model_error(model, _KIND, str(error), _HINT) from None
        if language not in (None, *self._model.supported_languages):
            raise InputError(f"does not know the language {short_repr(str(language))}", where=model)
        name = model if folder != Path(model) else folder.resolve().name
        settings = f"{language or 'any language'}, beam {BEAM_SIZE}, {precision}"
        self.name = f"{name}@{file_sha256(folder / 'model.bin')[:12]} ({settings})"
        self.versions: Mapping[str, str] = {package: version(package) for package in _PACKAGES}

    def transcribe(self, path: str | Path) -> Transcript:
        """Transcribe a media file; the transcript is empty where it has no sound or is silent."""
        language = self._language
        sentences: list[Sentence] = []
        words: list[Sentence] = []
        for begin, sound in audio_chunks(Path(path), CHUNK_SECONDS):
            segments, info = self._model.transcribe(
                sound, language=language, beam_size=BEAM_SIZE, temperature=0.0, word_timestamps=True, vad_filter=True
            )
            last = begin + len(sound) / RATE
            for segment in segments:
                timed_words = [_to_sentence(word.word, word, begin, last) for word in segment.words or ()]
                words += [word for word in timed_words if word.text]
                if segment.text.strip():
                    sentences.append(_to_sentence(segment.text, segment, begin, last))
            if sentences:
                language = info.language  # the language of the first words is that of the file
        return Transcript(language if sentences else None, tuple(sentences), tuple(words))


def _to_sentence(text: str, piece: Segment | Word, begin: float, last: float) -> Sentence:
    """Make a sentence with the times of a piece in the file, which ends at `last`."""
    start, end = (min(begin + float(seconds), last) for seconds in (piece.start, piece.end))
    return Sentence(" ".join(text.split()), round(start, 3), round(max(start, end), 3))


def audio_chunks(path: Path, longest: float) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(second at which it begins, samples) of the sound in parts of at most `longest` seconds, cut in pauses."""
    limit, search, width = (int(seconds * RATE) for seconds in (longest, _SEARCH_SECONDS, _PAUSE_SECONDS))
    held: list[NDArray[np.float32]] = []
    begin, size = None, 0
    for second, samples in _read_samples(path):
        begin = max(second, 0.0) if begin is None else begin
        gap = second - begin - size / RATE
        if _PAUSE_SECONDS < gap < _LONGEST_GAP:
            samples = np.concatenate([np.zeros(int(gap * RATE), np.float32), samples])
        held.append(samples)
        size += len(samples)
        while size > limit:
            sound = np.concatenate(held)
            # Cut in the middle of the quietest half second before the limit.
            energy = np.cumsum(np.insert(np.square(sound[limit - search : limit], dtype=np.float64), 0, 0.0))
            cut = limit - search + int(np.argmin(energy[width:] - energy[:-width])) + width // 2
            yield begin, sound[:cut]
            held, begin, size = [sound[cut:]], begin + cut / RATE, size - cut
    if begin is not None:
        yield begin, np.concatenate(held)


def _read_samples(path: Path) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """(second, samples) of the sound in small pieces, one channel at 16 kHz; none where a file has no sound."""
    with open_media(path) as container:
        import av

        if not container.streams.audio:
            return
        resampler, kind, second = None, None, 0.0
        frames = decode_stream(path, container, container.streams.audio[0])
        for frame in chain(frames, [None]):  # at the end, the resampler gives what it has held back
            if frame is not None:
                second = (frame.time or 0.0) - start_seconds(container)
                if kind != (frame.format.name, frame.layout.name, frame.sample_rate):
                    kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
                frame.pts = None  # the resampler would take jumps of the clock amiss
            for block in resampler.resample(frame) if resampler is not None else ():
                yield second, block.to_ndarray().astype(np.float32, copy=False).reshape(-1)


def _model_folder(model: str | Path) -> Path:
    from faster_whisper import download_model

    folder = Path(model)
    if not folder.is_dir():
        try:
            folder = Path(download_model(str(model)))
        except (OSError, ValueError) as error:
            raise wrong_model_error(model, _KIND, NOT_FOUND, _HINT) from error
    if missing := [name for name in _MODEL_FILES if not (folder / name).is_file()]:
        raise wrong_model_error(model, _KIND, f"it has no {missing[0]}", _HINT)
    return folder
