"""One video -> its features: its frames at regular times and its narration, as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from msg2.formats.caption_files import read_fragments, read_sentences
from msg2.formats.source import Source
from msg2.media.feature_store import Encoders
from msg2.media.frame_sampling import FrameOptions, encode_frames
from msg2.media.image_encoders import ImageEncoder, image_encoder
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.text_encoders import TextEncoder, text_encoder
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.media.video_decoding import decoder_version
from msg2.media.video_features import VideoFeatures
from msg2.media.video_files import VideoFiles
from msg2.task import Sentence


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """From video files to features (`msg2 features`)."""

    frame_encoder: str = "descriptors"
    """Classical descriptors, which need no model; "none": frames are not looked at; or a CLIP model: its folder, or
    its name on the Hugging Face hub."""
    text_encoder: str | None = None
    """Hashed words ("words"), which need no model; or a sentence encoder or CLIP model: its folder, or its name on the
    Hugging Face hub; None: CLIP's own where frames go through CLIP, else hashed words."""
    speech_model: str | None = None
    """A Whisper model for videos without captions: its name or folder; None: they have no narration."""
    phrase_model: str | None = None
    """A spaCy model that finds verb phrases: its name or folder; None: sentences stay as they are."""
    keep_sentences: bool = False
    """With a phrase model: sentences that have no verb phrase are kept as they are spoken."""
    language: str | None = None
    """Of the speech, such as "en"; None: as the speech model recognises it."""
    frames: FrameOptions = field(default_factory=FrameOptions)


@dataclass(frozen=True)
class FeatureExtractor:
    """Makes features as its options say; every model is loaded once, when it is first needed."""

    options: ExtractionOptions

    @cached_property
    def image_encoder(self) -> ImageEncoder | None:
        """What encodes frames; None where they are not looked at."""
        name = self.options.frame_encoder
        return None if name == "none" else image_encoder(name)

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """What encodes sentences: where none is named, CLIP's own if frames are CLIP's, else hashed words."""
        without_model = self.options.frame_encoder in ("none", "descriptors")
        return text_encoder(self.options.text_encoder or ("words" if without_model else self.options.frame_encoder))

    @cached_property
    def speech_recognizer(self) -> SpeechRecognizer | None:
        """What transcribes videos without captions."""
        model = self.options.speech_model
        return None if model is None else SpeechRecognizer(model, self.options.language)

    @cached_property
    def phrase_extractor(self) -> VerbPhraseExtractor | None:
        """What finds verb phrases."""
        model = self.options.phrase_model
        return None if model is None else VerbPhraseExtractor(model, keep_sentences=self.options.keep_sentences)

    @cached_property
    def encoders(self) -> Encoders:
        """All that the features depend on, beside the files they are made from."""
        images, texts = self.image_encoder, self.text_encoder
        models = {"speech": self.speech_recognizer, "phrases": self.phrase_extractor}
        parts = [part for part in (images, texts, *models.values()) if part is not None]
        versions = {package: version for part in parts for package, version in part.versions.items()}
        settings: dict[str, str | float] = {}
        if images is not None:
            versions |= decoder_version()
            settings |= {"every": self.options.frames.every, "size": self.options.frames.size}
        settings |= {name: model.name for name, model in models.items() if model is not None}
        frames, frame_width = (None, 0) if images is None else (images.name, images.width)
        return Encoders(frames, texts.name, frame_width, texts.width, versions, settings)

    def __call__(self, files: VideoFiles) -> tuple[VideoFeatures, str | None]:
        """Make the features of a video, and say where its narration comes from."""
        sentences, narration = self._narration(files)
        times = np.array([(sentence.start, sentence.end) for sentence in sentences]).reshape(-1, 2)
        texts = tuple(sentence.text for sentence in sentences)
        frame_times, frames = np.zeros(0), np.zeros((0, self.encoders.frame_width), np.float32)
        if self.image_encoder is not None and files.media is not None:
            frame_times, frames = encode_frames(files.media, self.image_encoder, self.options.frames)
        return VideoFeatures(frame_times, frames, times, self.text_encoder(texts), texts), narration

    def _narration(self, files: VideoFiles) -> tuple[Sequence[Sentence], str | None]:
        """Captions are preferred to speech; verb phrases take the place of sentences where they are wanted."""
        sentences: Sequence[Sentence] = ()
        narration, phrases = None, self.phrase_extractor
        if files.captions is not None:
            file = Source.at(files.captions)
            sentences = read_sentences(file) if phrases is None else phrases.extract_timed(read_fragments(file))
            narration = "captions"
        elif files.media is not None and self.speech_recognizer is not None:
            transcript = self.speech_recognizer.transcribe(files.media)
            sentences = transcript.sentences if phrases is None else phrases.extract_timed(transcript.words)
            narration = transcript.language and f"speech, {transcript.language}"
        # in the order of a Video
        return sorted(sentences, key=lambda sentence: (sentence.start, sentence.end, sentence.text)), narration
