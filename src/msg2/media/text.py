"""Sentences -> vectors, by hashed words or by any sentence encoder; the cosine of two vectors is their likeness."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.media.checkpoints import Checkpoint, checkpoint, fingerprint, loading, of_length_one, ready, versions
from msg2.media.features import Features
from msg2.options import TextOptions
from msg2.task import Sentence


class TextEncoder(Protocol):
    """Turns n texts into float32 vectors of shape (n, width), each of length 1 (or 0, where a text says nothing)."""

    @property
    def name(self) -> str:
        """Says which encoder this is: the same name and width, the same vectors."""

    @property
    def width(self) -> int:
        """Of a vector."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> version, of every package that has a part in the numbers."""

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """The vectors."""


def text_encoder(name: str | None = None, options: TextOptions | None = None) -> TextEncoder:
    """The encoder of that name: "words", or a sentence encoder or CLIP model: its folder, or its name on the hub.

    >>> text_encoder("words").width
    512
    """
    options = options or TextOptions()
    name = name or options.encoder
    if name == "words":
        return HashedWords(options.width)
    found = checkpoint(name, _WANTED)
    if found.kind == "clip":
        from msg2.media.clip import clip

        return replace(clip(found).texts, batch=options.batch)
    return SentenceModel(found, options.batch)


def narration_features(sentences: Iterable[Sentence], encoder: TextEncoder) -> Features:
    """The features of a video of which only the narration is known: no frames, of width 0.

    >>> narration_features([Sentence("now flip the bread", 60.0, 62.5)], HashedWords(8)).sentences.shape
    (1, 8)
    """
    ordered = sorted(sentences, key=lambda s: (s.start, s.end, s.text))  # as in a Video
    times = np.array([(sentence.start, sentence.end) for sentence in ordered]).reshape(-1, 2)
    return Features(np.zeros(0), np.zeros((0, 0), np.float32), times, encoder([sentence.text for sentence in ordered]))


# -- hashed words -----------------------------------------------------------------------------------------------


class HashedWords:
    """Words and pairs of neighbouring words, each hashed to a place and a sign; needs no model and knows no language.

    A word (or pair) w that occurs n times in a text adds s(w) (1 + ln n) at place h(w) of its vector.

    >>> one, same, other = HashedWords()(["Flip the bread!", "flip the BREAD", "jack up the car"])
    >>> bool(one @ same > 0.99), bool(one @ other < 0.5)
    (True, True)
    """

    name = "words"

    def __init__(self, width: int | None = None) -> None:
        self.width = TextOptions().width if width is None else width
        self.versions: Mapping[str, str] = {"numpy": np.__version__}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width); a text without words has length 0."""
        vectors = np.zeros((len(texts), self.width))
        for vector, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
            for term, count in Counter([*words, *map(" ".join, pairwise(words))]).items():
                place, sign = self._hashed(term)
                vector[place] += sign * (1 + math.log(count))
        return of_length_one(vectors)

    def _hashed(self, term: str) -> tuple[int, int]:
        """The place and the sign of a term; Python's own `hash` would be another one in every process."""
        number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
        return (number >> 1) % self.width, 1 if number & 1 else -1


# -- sentence encoders ------------------------------------------------------------------------------------------

_POOLINGS = ("mean", "cls")
_MODULES = ("Transformer", "Pooling", "Normalize")
_WANTED = "sentence encoder"


class SentenceModel:
    """A sentence encoder that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    The vector of a sentence is the mean of its tokens' last states, or the first of them where the pooling that the
    model brings in `1_Pooling/config.json` says so. A folder is never looked for on the network.
    """

    def __init__(self, path: str | Path | Checkpoint, batch: int | None = None) -> None:
        found = path if isinstance(path, Checkpoint) else checkpoint(path, _WANTED)
        self._pooling, self._batch = _pooling(found), batch or TextOptions().batch
        with loading(found, _WANTED) as (torch, transformers):
            place = {"pretrained_model_name_or_path": found.folder, "local_files_only": True}
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
            self._model = ready(transformers.AutoModel.from_pretrained(**place, trust_remote_code=False), torch)
        self._torch = torch
        self._tokens = _most_tokens(found, self._tokenizer, self._model.config)
        self.width = int(self._model.config.hidden_size)
        self.name = f"{found.name}@{fingerprint(self._model, self._pooling, self._tokens)}"
        self.versions = versions()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        vectors = np.zeros((len(texts), self.width))
        with self._torch.inference_mode():
            for first in range(0, len(texts), self._batch):
                batch = list(texts[first : first + self._batch])
                vectors[first : first + len(batch)] = self._pooled(batch).cpu().numpy()
        return of_length_one(vectors)

    def _pooled(self, texts: list[str]) -> Any:
        """The states of the tokens, shape (n, tokens, width), pooled to (n, width); padding has no part in it."""
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt")
        tokens = tokens.to(self._model.device)
        states = self._model(**tokens).last_hidden_state
        if self._pooling == "cls":
            return states[:, 0]
        present = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * present).sum(1) / present.sum(1).clamp(min=1e-9)


def _pooling(model: Checkpoint) -> str:
    """How the model pools, by its own account; the mean where it gives none."""
    for module in model.settings("modules.json", []):
        kind = module["type"].rpartition(".")[2]
        if kind not in _MODULES:
            raise InputError(f"has a module {kind!r}, msg2 knows only {', '.join(_MODULES)}", where=model.folder)
    settings = model.settings("1_Pooling/config.json", {"pooling_mode": "mean"})
    older = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
             for key, on in settings.items() if key.startswith("pooling_mode_") and on]  # fmt: skip
    chosen = settings.get("pooling_mode", older[0] if len(older) == 1 else older)
    if chosen not in _POOLINGS:
        raise InputError(f"pools by {chosen}, msg2 knows only {' and '.join(_POOLINGS)}", where=model.folder)
    return str(chosen)


def _most_tokens(model: Checkpoint, tokenizer: Any, config: Any) -> int:
    """Longer sentences are cut: at the model's own setting, else at what it can take."""
    limits = (tokenizer.model_max_length, getattr(config, "max_position_embeddings", None))
    setting = model.settings("sentence_bert_config.json", {}).get("max_seq_length")
    return int(setting or min(limit for limit in limits if limit))
