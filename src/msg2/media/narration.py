"""Captions -> a feature store. A run goes on from what is there: it is cheap after an interruption or new captions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msg2.media.features import Features
from msg2.media.manifest import NAME, Encoders, Entry
from msg2.media.store import Key, open_store, write_store
from msg2.media.text import TextEncoder, narration_features
from msg2.readers.captions import caption_files, sentences_in
from msg2.readers.sources import Source
from msg2.task import Sentence

_SAVES = 20
"""How often a run saves what it has: an interruption costs at most a twentieth of it."""


class Captions(NamedTuple):
    """What is said in a video, and the hash of the file that says so."""

    sentences: tuple[Sentence, ...]
    sha256: str


@dataclass(frozen=True)
class NarrationJob:
    """What there is to do for a store of captions, and what is done already; see `narration_job`."""

    folder: Path
    encoder: TextEncoder
    done: tuple[Entry, ...]
    """Entries of the store that is there, made by the same encoder from the same captions."""
    pending: Mapping[str, Captions]

    def run(self) -> Iterator[str]:
        """Encode what is pending, giving back each name when it is encoded; at the end the store is complete."""
        encoders, kept = _encoders(self.encoder), self.done
        features: dict[Key, Features] = {}
        hashes: dict[Key, str] = {(None, name): captions.sha256 for name, captions in self.pending.items()}
        for number, (name, captions) in enumerate(self.pending.items(), start=1):
            features[None, name] = narration_features(captions.sentences, self.encoder)
            if number * _SAVES // len(self.pending) > (number - 1) * _SAVES // len(self.pending):
                kept = write_store(self.folder, features, encoders, kept=kept, sources=hashes).manifest.entries
                features = {}
            yield name
        write_store(self.folder, features, encoders, kept=kept, sources=hashes)


def narration_job(captions: str | Path, folder: str | Path, encoder: TextEncoder) -> NarrationJob:
    """The job of encoding the caption files of a folder (or one file) into the store in `folder`.

    The store will hold these videos, under the names of their files without suffix, and no others. All captions are
    read now, so that what is wrong with them is said before anything is written.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.media.text import HashedWords
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "7_v1.vtt").write_text("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nflip it\\n")
    ...     done = [*narration_job(folder, f"{folder}/store", HashedWords()).run()]
    ...     done, open_store(f"{folder}/store").features("toast", "v1").sentences.shape
    (['7_v1'], (1, 512))
    """
    folder = Path(folder)
    found = {name: Captions(sentences_in(file), _sha256(file)) for name, file in caption_files(captions).items()}
    done: tuple[Entry, ...] = ()
    if (folder / NAME).exists():
        store = open_store(folder)
        if store.encoders == _encoders(encoder):
            done = tuple(
                entry
                for (task, name), entry in store.entries.items()
                if task is None and name in found and entry.source_sha256 == found[name].sha256
                and store.intact((task, name))
            )  # fmt: skip
    names = {entry.video for entry in done}
    return NarrationJob(folder, encoder, done, {name: one for name, one in found.items() if name not in names})


def _encoders(encoder: TextEncoder) -> Encoders:
    return Encoders(sentences=encoder.name, sentence_width=encoder.width, versions=dict(encoder.versions))


def _sha256(file: Source) -> str:
    with file.binary() as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
