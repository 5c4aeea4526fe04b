"""One video -> its features: what is seen, what is said, and on what all that depends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.formats.video_files import VideoFiles
from msg2.media import feature_extraction
from msg2.media.feature_extraction import ExtractionOptions, FeatureExtractor
from msg2.media.image_encoders import ImageDescriptors
from msg2.media.speech_recognition import Transcript
from msg2.media.video_decoding import FrameOptions
from msg2.task import Sentence
from msg2.text_encoders import HashedWords

pytest.importorskip("av")

CAPTIONS = "WEBVTT\n\n00:03.000 --> 00:04.000\nthen fry\n\n00:00.500 --> 00:02.000\nwhisk the eggs\n"


@pytest.fixture
def toast(tmp_path: Path, film) -> VideoFiles:
    """Four pictures, a second apart, and captions that are not in order."""
    (tmp_path / "v1.vtt").write_text(CAPTIONS)
    return VideoFiles("v1", film(tmp_path / "v1.mp4", [0.0, 1.0, 2.0, 3.0], sound=4.0), tmp_path / "v1.vtt")


def test_what_is_seen_and_said(toast: VideoFiles, film, read_number) -> None:
    seen: list[np.ndarray] = []

    class Watched(ImageDescriptors):
        def __call__(self, images):
            seen.extend(images)
            return super().__call__(images)

    extractor = FeatureExtractor(ExtractionOptions(frames=FrameOptions(every=0.5)))
    extractor.image_encoder = Watched()
    features, narration = extractor(toast)
    assert narration == "captions"
    assert features.frame_times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert [read_number(image) for image in seen] == [0, 1, 2, 3]
    assert np.array_equal(features.frames, ImageDescriptors()(seen)[[0, 0, 1, 1, 2, 2, 3]])
    assert features.texts == ("whisk the eggs", "then fry")
    assert features.sentence_times.tolist() == [[0.5, 2.0], [3.0, 4.0]]
    assert np.array_equal(features.sentences, HashedWords()(features.texts))


@pytest.mark.parametrize("frame_encoder", ["descriptors", "none"])
def test_what_is_not_there_or_not_wanted_has_no_vectors(
    toast: VideoFiles, tmp_path: Path, film, frame_encoder: str
) -> None:
    extractor = FeatureExtractor(ExtractionOptions(frame_encoder))
    width = 512 if frame_encoder == "descriptors" else 0
    sound = VideoFiles("v2", film(tmp_path / "v2.m4a", sound=1.0), None)
    said = VideoFiles("v3", None, toast.captions)
    silent = VideoFiles("v1", toast.media, None)
    shapes = [
        (features.frames.shape, features.sentences.shape, narration)
        for features, narration in map(extractor, (sound, said, silent))
    ]
    frames = 7 if width else 0
    assert shapes == [
        ((0, width), (0, extractor.text_encoder.width), None),
        ((0, width), (2, extractor.text_encoder.width), "captions"),
        ((frames, width), (0, extractor.text_encoder.width), None),
    ]


def test_a_file_without_pictures_is_not_opened_where_they_are_not_wanted(tmp_path: Path) -> None:
    (tmp_path / "v1.mp4").write_text("this is no video")
    files = VideoFiles("v1", tmp_path / "v1.mp4", None)
    assert len(FeatureExtractor(ExtractionOptions("none"))(files)[0].frames) == 0
    with pytest.raises(InputError, match="is no video that can be read"):
        FeatureExtractor(ExtractionOptions())(files)


# -- speech and phrases -----------------------------------------------------------------------------------------


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A recogniser that hears the same whatever is played, and phrases that are shouted words; what they were given."""
    given: list[object] = []
    words = tuple(Sentence(word, second, second + 1.0) for second, word in enumerate(("flip", "it")))

    class Recognizer:
        name, versions = "whisper (any language)", {"faster-whisper": "1"}

        def __init__(self, model: str, language: str | None) -> None:
            given.append((model, language))

        def transcribe(self, path: Path) -> Transcript:
            given.append(path)
            spoken = path.suffix != ".silent"
            return Transcript("en", (Sentence("flip it", 0.0, 2.0),), words) if spoken else Transcript(None, (), ())

    class Extractor:
        name, versions = "spacy", {"spacy": "2"}

        def __init__(self, model: str, *, keep_sentences: bool) -> None:
            given.append(model)

        def extract_timed(self, pieces: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
            return tuple(Sentence(piece.text.upper(), piece.start, piece.end) for piece in reversed(pieces))

    monkeypatch.setattr(feature_extraction, "SpeechRecognizer", Recognizer)
    monkeypatch.setattr(feature_extraction, "VerbPhraseExtractor", Extractor)
    return given


def test_captions_are_preferred_to_speech(toast: VideoFiles, listeners: list[object]) -> None:
    extractor = FeatureExtractor(ExtractionOptions("none", speech_model="base", language="en"))
    assert extractor(toast)[1] == "captions"
    assert listeners == [("base", "en")]
    features, narration = extractor(VideoFiles("v1", toast.media, None))
    assert (features.texts, narration) == (("flip it",), "speech, en")
    assert listeners == [("base", "en"), toast.media]
    assert extractor(VideoFiles("v2", Path("v2.silent"), None))[1] is None


def test_phrases_are_made_of_the_finest_pieces_and_in_order(toast: VideoFiles, listeners: list[object]) -> None:
    extractor = FeatureExtractor(ExtractionOptions("none", speech_model="base", phrase_model="english"))
    assert extractor(toast)[0].texts == ("WHISK THE EGGS", "THEN FRY")
    assert extractor(VideoFiles("v1", toast.media, None))[0].texts == ("FLIP", "IT")
    assert listeners[-1] == toast.media


# -- on what it depends -----------------------------------------------------------------------------------------


def test_the_encoders_tell_all_that_features_depend_on(listeners: list[object]) -> None:
    plain = FeatureExtractor(ExtractionOptions()).encoders
    assert (plain.frames, plain.frame_width, plain.sentences) == ("descriptors", 512, "words")
    assert plain.settings == {"every": 0.5, "size": 224}
    bare = FeatureExtractor(ExtractionOptions("none", frames=FrameOptions(every=2))).encoders
    assert (bare.frames, bare.frame_width, bare.settings) == (None, 0, {})
    whole = FeatureExtractor(ExtractionOptions(speech_model="base", phrase_model="english")).encoders
    assert whole.settings == {**plain.settings, "speech": "whisper (any language)", "phrases": "spacy"}
    assert {"faster-whisper": "1", "spacy": "2"}.items() <= whole.versions.items()
    assert plain == FeatureExtractor(ExtractionOptions()).encoders
    different = [FrameOptions(every=1), FrameOptions(size=64)]
    assert all(FeatureExtractor(ExtractionOptions(frames=frames)).encoders != plain for frames in different)


@pytest.mark.parametrize(
    ("frames", "texts", "chosen"),
    [("none", None, "words"), ("descriptors", None, "words"), ("some/clip", None, "some/clip"),
     ("some/clip", "words", "words"), ("none", "a/model", "a/model")],
)  # fmt: skip
def test_sentences_go_through_clip_where_frames_do(
    monkeypatch: pytest.MonkeyPatch, frames: str, texts: str | None, chosen: str
) -> None:
    for encoder in ("image_encoder", "text_encoder"):
        monkeypatch.setattr(feature_extraction, encoder, lambda name: SimpleNamespace(name=name))
    assert FeatureExtractor(ExtractionOptions(frames, texts)).text_encoder.name == chosen
