"""Turn videos into a feature store: frames at regular times and narration, as vectors, several videos in parallel.

A run resumes from what is there: only new or changed videos are processed. A video that fails is reported with its
reason, and the others are kept.
"""

import time
from collections.abc import Sequence
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from msg2.errors import InputError, require
from msg2.files import locked_folder
from msg2.formats import feature_store
from msg2.formats.feature_store import STREAMS, Encoders, StoreEntry, VideoFeatures
from msg2.formats.video_files import VideoFiles
from msg2.media.image_encoders import image_encoder
from msg2.media.narration import read_narration
from msg2.media.sound_and_motion import WIDTH, WithMotion, encode_sound, split_motion
from msg2.media.speech_recognition import SpeechRecognizer
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.media.video_decoding import FrameOptions, decoder_version, encode_frames
from msg2.options import options_class
from msg2.parallel import ENGINES, WorkerDied
from msg2.progress import LOGGER, Progress, collect_logs, no_progress
from msg2.text import short_repr
from msg2.text_encoders import text_encoder


@options_class
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
    audio: bool = False
    """Also what is heard around each frame: log-mel energies of the sound track."""
    motion: bool = False
    """Also what moves before each frame: differences of brightness."""

    def __post_init__(self) -> None:
        without = self.frame_encoder == "none" and (self.audio or self.motion)
        require(not without, "audio and motion come with frames, and there are to be none")


class FeatureExtractor:
    """Makes features as its options say, with models that are loaded once."""

    def __init__(self, options: ExtractionOptions) -> None:
        name, speech, phrases = options.frame_encoder, options.speech_model, options.phrase_model
        own_texts = "words" if name in ("none", "descriptors") else name  # CLIP encodes texts, too
        self.frame_options = options.frames
        self.image_encoder = None if name == "none" else image_encoder(name)
        self.streams = [name for name in STREAMS if getattr(options, name)]
        self.text_encoder = text_encoder(options.text_encoder or own_texts)
        self.recognizer = None if speech is None else SpeechRecognizer(speech, options.language)
        self.phrases = None if phrases is None else VerbPhraseExtractor(phrases, keep_sentences=options.keep_sentences)

    @property
    def encoders(self) -> Encoders:
        """All that the features depend on, beside the files they are made from."""
        images, texts = self.image_encoder, self.text_encoder
        models = {"speech": self.recognizer, "phrases": self.phrases}
        parts = [part for part in (images, texts, *models.values()) if part is not None]
        versions = {package: version for part in parts for package, version in part.versions.items()}
        settings: dict[str, str | float] = {}
        if images is not None:
            versions |= decoder_version()
            settings |= {"every": self.frame_options.every, "size": self.frame_options.size}
        settings |= {name: model.name for name, model in models.items() if model is not None}
        frames, frame_width = (None, 0) if images is None else (images.name, images.width)
        streams = {name: ("log-mel" if name == "audio" else "differences", WIDTH) for name in self.streams}
        return Encoders(frames, texts.name, frame_width, texts.width, versions, settings, streams)

    def __call__(self, files: VideoFiles) -> tuple[VideoFeatures, str | None]:
        """Make the features of a video, and say where its narration comes from."""
        spoken, source = read_narration(files, self.recognizer, self.phrases)
        sentences = sorted(spoken, key=lambda sentence: (sentence.start, sentence.end, sentence.text))  # as in a Video
        times = np.array([(sentence.start, sentence.end) for sentence in sentences]).reshape(-1, 2)
        texts = tuple(sentence.text for sentence in sentences)
        width = 0 if self.image_encoder is None else self.image_encoder.width
        frame_times, frames = np.zeros(0), np.zeros((0, width), np.float32)
        streams = {name: np.zeros((0, WIDTH), np.float32) for name in self.streams}
        if self.image_encoder is not None and files.media is not None:
            encoder = WithMotion(self.image_encoder) if "motion" in streams else self.image_encoder
            frame_times, frames = encode_frames(files.media, encoder, self.frame_options)
            if "motion" in streams:
                frames, streams["motion"] = split_motion(frames)
            if "audio" in streams:
                streams["audio"] = encode_sound(files.media, frame_times, self.frame_options.every)
        return VideoFeatures(frame_times, frames, times, self.text_encoder(texts), texts, streams), source


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
    """Make the features of new and changed videos into the store in `folder`, which will hold these and no others."""
    if all(files.media is None for files in videos):
        options = replace(options, frame_encoder="none", audio=False, motion=False)
    progress(0, len(videos), "loading encoders")
    encoders, folder = _extractor(options).encoders, Path(folder)
    with locked_folder(folder):
        names = {files.video for files in videos}
        entries: dict[str, StoreEntry] = {}  # until a video is done, what the store has of it stays there
        if feature_store.is_feature_store(folder) and (store := feature_store.open_store(folder)).encoders == encoders:
            entries = {
                key[1]: entry for key, entry in store.entries.items() if key[1] in names and store.is_intact(key)
            }
        results: list[ExtractionResult] = []
        saved, save_seconds = time.monotonic(), 0.0
        items = [(files, entries[files.video].source_sha256 if files.video in entries else None) for files in videos]
        for (files, _), result in ENGINES[engine](partial(_process_video, options), items, jobs):
            if isinstance(result, WorkerDied):
                result = f"{files.path}: the program broke down over this file", []
            outcome, messages = result
            for level, message in messages:
                LOGGER.log(level, "%s: %s", short_repr(files.video), message)
            if outcome is not None:
                entries.pop(files.video, None)
            if isinstance(outcome, tuple):
                entries[files.video] = feature_store.write_features(folder, (None, files.video), *outcome)
            began = time.monotonic()
            if began - saved > 20 * save_seconds:  # what is quickly saved is saved after every video or so
                feature_store.write_manifest(folder, encoders, entries.values())
                saved = time.monotonic()
                save_seconds = saved - began
            failure = outcome if isinstance(outcome, str) else None
            results.append(ExtractionResult(files.video, unchanged=outcome is None, failure=failure))
            progress(len(results), len(videos), files.video)
        feature_store.write_manifest(folder, encoders, entries.values())
        return results


_Outcome: TypeAlias = tuple[VideoFeatures, str, str | None] | str | None
"""Features, the hash of their files and where the narration comes from; or why there are none; or None, where the files
have not changed."""


def _process_video(
    options: ExtractionOptions, item: tuple[VideoFiles, str | None]
) -> tuple[_Outcome, list[tuple[int, str]]]:
    """Make the features of one video, unless its files have the hash of an earlier run; also return what is logged."""
    files, known_sha256 = item
    outcome: _Outcome = None
    with collect_logs() as log:
        try:
            if (sha256 := files.sha256()) != known_sha256:
                features, narration = _extractor(options)(files)
                outcome = features, sha256, narration
        except InputError as error:
            outcome = " ".join(str(error).split())
        except MemoryError:
            outcome = f"{files.path}: there is not enough memory for this file"
    return outcome, log.messages


_extractor = cache(FeatureExtractor)
"""The models of a process."""
