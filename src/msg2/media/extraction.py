"""One video -> its features: what is seen at regular times, and what is said, as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from msg2.media.decoding import decoder_version
from msg2.media.features import Features
from msg2.media.manifest import Encoders
from msg2.media.phrases import Phrases
from msg2.media.pictures import PictureEncoder, picture_encoder
from msg2.media.recordings import Recording
from msg2.media.speech import Speech
from msg2.media.text import TextEncoder, text_encoder
from msg2.media.video import frame_features
from msg2.options import ExtractionOptions
from msg2.readers.captions import pieces_in, sentences_in
from msg2.readers.sources import Source
from msg2.task import Sentence


@dataclass(frozen=True)
class Extractor:
    """Makes features as its options say; every model is loaded once, when it is first needed."""

    options: ExtractionOptions

    @cached_property
    def pictures(self) -> PictureEncoder | None:
        """What encodes frames; None where they are not looked at."""
        name = self.options.frame_encoder
        return None if name == "none" else picture_encoder(name)

    @cached_property
    def texts(self) -> TextEncoder:
        """What encodes sentences: where none is named, CLIP's own if frames are CLIP's, else hashed words."""
        plain = self.options.frame_encoder in ("none", "descriptors")
        return text_encoder(self.options.text_encoder or ("words" if plain else self.options.frame_encoder))

    @cached_property
    def speech(self) -> Speech | None:
        """What listens to videos without captions."""
        return None if self.options.speech is None else Speech(self.options.speech, self.options.listening)

    @cached_property
    def phrases(self) -> Phrases | None:
        """What finds verb phrases."""
        return None if self.options.phrases is None else Phrases(self.options.phrases, self.options.wording)

    @cached_property
    def encoders(self) -> Encoders:
        """All that the features depend on, beside the files they are made from."""
        parts = [part for part in (self.pictures, self.texts, self.speech, self.phrases) if part is not None]
        versions = {package: version for part in parts for package, version in part.versions.items()}
        settings: dict[str, str | float] = {}
        if self.pictures is not None:
            versions |= decoder_version()
            settings |= {"every": self.options.frames.every, "size": self.options.frames.size}
        for name, part in (("speech", self.speech), ("phrases", self.phrases)):
            if part is not None:
                settings |= {name: part.name}
        return Encoders(
            None if self.pictures is None else self.pictures.name,
            self.texts.name,
            0 if self.pictures is None else self.pictures.width,
            self.texts.width,
            versions,
            settings,
        )

    def __call__(self, recording: Recording) -> tuple[Features, str | None]:
        """The features of a recording, and where its narration comes from."""
        sentences, narration = self._narration(recording)
        times = np.array([(sentence.start, sentence.end) for sentence in sentences]).reshape(-1, 2)
        texts = tuple(sentence.text for sentence in sentences)
        frame_times, frames = np.zeros(0), np.zeros((0, self.encoders.frame_width), np.float32)
        if self.pictures is not None and recording.media is not None:
            frame_times, frames = frame_features(recording.media, self.pictures, self.options.frames)
        return Features(frame_times, frames, times, self.texts(texts), texts), narration

    def _narration(self, recording: Recording) -> tuple[Sequence[Sentence], str | None]:
        """Captions are preferred to speech; verb phrases take the place of sentences where they are wanted."""
        found: Sequence[Sentence] = ()
        narration = None
        if recording.captions is not None:
            file = Source.at(recording.captions)
            found = sentences_in(file) if self.phrases is None else self.phrases.of(pieces_in(file))
            narration = "captions"
        elif recording.media is not None and self.speech is not None:
            heard = self.speech.transcribed(recording.media)
            found = heard.sentences if self.phrases is None else self.phrases.of(heard.words)
            narration = heard.language and f"speech, {heard.language}"
        return sorted(found, key=lambda one: (one.start, one.end, one.text)), narration  # as in a Video
