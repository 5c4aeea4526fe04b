"""Turn videos into a feature store: frames at regular times and narration, as vectors, several videos in parallel.

A run resumes from what is there: only new or changed videos are processed. A video that fails is reported with its
reason, and the others are kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from msg2.errors import InputError
from msg2.media.encoders import ImageEncoder, TextEncoder, image_encoder, text_encoder
from msg2.media.feature_store import (
    Encoders,
    StoreEntry,
    VideoFeatures,
    VideoKey,
    is_feature_store,
    open_store,
    write_store,
)
from msg2.media.narration import read_narration
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.media.video_decoding import FrameOptions, decoder_version, encode_frames
from msg2.media.video_files import VideoFiles
from msg2.parallel import ENGINES, WorkerDied
from msg2.progress import LOGGER, Progress, collect_logs, no_progress
from msg2.text import short_repr


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
        spoken = read_narration(files, self.speech_recognizer, self.phrase_extractor)
        # in the order of a Video
        sentences = sorted(spoken.sentences, key=lambda sentence: (sentence.start, sentence.end, sentence.text))
        times = np.array([(sentence.start, sentence.end) for sentence in sentences]).reshape(-1, 2)
        texts = tuple(sentence.text for sentence in sentences)
        frame_times, frames = np.zeros(0), np.zeros((0, self.encoders.frame_width), np.float32)
        if self.image_encoder is not None and files.media is not None:
            frame_times, frames = encode_frames(files.media, self.image_encoder, self.options.frames)
        return VideoFeatures(frame_times, frames, times, self.text_encoder(texts), texts), spoken.source


class ExtractionResult(NamedTuple):
    """What became of a video."""

    video: str
    unchanged: bool = False
    """Whether its features are those of an earlier run."""
    failure: str | None = None
    """Why it has no features."""


def extract_features(
    videos: Sequence[VideoFiles],
    folder: str | Path,
    options: ExtractionOptions,
    *,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> list[ExtractionResult]:
    """Make the features of videos into the store in `folder`, which will hold these and no others.

    Videos whose files and encoders are as they were in an earlier run are not done again. The store is saved from time
    to time, so that little is lost where the run is interrupted.
    """
    if all(files.media is None for files in videos):
        options = replace(options, frame_encoder="none")
    progress(0, len(videos), "loading encoders")
    encoders, folder = _extractor(options).encoders, Path(folder)
    names = {files.video for files in videos}
    kept: dict[str, StoreEntry] = {}  # until a video is done, what the store has of it stays there
    if is_feature_store(folder) and (store := open_store(folder)).encoders == encoders:
        kept = {key[1]: entry for key, entry in store.entries.items() if key[1] in names and store.is_intact(key)}
    unsaved: dict[VideoKey, VideoFeatures] = {}
    origins: dict[VideoKey, tuple[str, str | None]] = {}
    results: list[ExtractionResult] = []
    saved, save_seconds = time.monotonic(), 0.0
    known = {video: entry.source_sha256 for video, entry in kept.items()}
    items = [(files, known.get(files.video)) for files in videos]
    for (files, _), result in ENGINES[engine](partial(_process_video, options), items, jobs):
        outcome, messages = result if not isinstance(result, WorkerDied) else (
            f"{files.path}: the program broke down over this file", []
        )  # fmt: skip
        for level, message in messages:
            LOGGER.log(level, "%s: %s", short_repr(files.video), message)
        if outcome is not None:
            kept.pop(files.video, None)
        failure = outcome if isinstance(outcome, str) else None
        if isinstance(outcome, tuple):
            key = (None, files.video)
            unsaved[key], origins[key] = outcome
        began = time.monotonic()
        if began - saved > 20 * save_seconds:  # what is quickly saved is saved after every video or so
            store = write_store(folder, unsaved, encoders, kept=kept.values(), origins=origins)
            kept, unsaved = {entry.video: entry for entry in store.entries.values()}, {}
            saved = time.monotonic()
            save_seconds = saved - began
        results.append(ExtractionResult(files.video, unchanged=outcome is None, failure=failure))
        progress(len(results), len(videos), files.video)
    write_store(folder, unsaved, encoders, kept=kept.values(), origins=origins)
    return results


_Outcome: TypeAlias = tuple[VideoFeatures, tuple[str, str | None]] | str | None
"""Features and where they come from; or why there are none; or nothing, where the files are as they were."""
_LogMessages: TypeAlias = list[tuple[int, str]]  # level and text


def _process_video(options: ExtractionOptions, item: tuple[VideoFiles, str | None]) -> tuple[_Outcome, _LogMessages]:
    """Make the features of one video, in whatever process; `item` has the hash of its files in an earlier run, too."""
    files, known_sha256 = item
    outcome: _Outcome = None
    with collect_logs() as log:
        try:
            sha256 = files.sha256()
            if sha256 != known_sha256:
                features, narration = _extractor(options)(files)
                outcome = features, (sha256, narration)
        except InputError as error:
            outcome = " ".join(str(error).split())
        except MemoryError:
            outcome = f"{files.path}: there is not enough memory for this file"
    return outcome, log.messages


_extractor = cache(FeatureExtractor)
"""The models of a process."""
