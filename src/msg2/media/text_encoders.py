"""Sentences -> vectors, by hashed words or by any sentence encoder; the cosine of two vectors is their similarity."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.media import pretrained_models
from msg2.media.encoders import Encoder, encode_in_batches
from msg2.media.pretrained_models import Checkpoint, find_checkpoint
from msg2.media.video_features import l2_normalize

HASHED_WIDTH = 512
"""Length of the vectors of hashed words; a sentence encoder has its own."""
BATCH_SIZE = 64
"""Sentences that a sentence encoder takes at once."""


TextEncoder: TypeAlias = Encoder[str]
"""Turns n texts into float32 vectors of shape (n, width), each of length 1 (or 0, where a text says nothing)."""


def text_encoder(name: str = "words") -> TextEncoder:
    """Return the encoder of that name: "words", or a sentence encoder or CLIP model by its folder or hub name.

    >>> text_encoder("words").width
    512
    """
    if name == "words":
        return HashedWords()
    found = find_checkpoint(name, _KIND)
    if found.kind == "clip":
        from msg2.media.clip import load_clip

        return load_clip(found).text_encoder
    return SentenceEncoder(found)


# -- hashed words -----------------------------------------------------------------------------------------------


class HashedWords:
    """Words and pairs of neighbouring words, each hashed to a place and a sign; needs no model and knows no language.

    A word (or pair) w that occurs n times in a text adds s(w) (1 + ln n) at place h(w) of its vector.

    >>> one, same, other = HashedWords()(["Flip the bread!", "flip the BREAD", "jack up the car"])
    >>> bool(one @ same > 0.99), bool(one @ other < 0.5)
    (True, True)
    """

    name = "words"

    def __init__(self, width: int = HASHED_WIDTH) -> None:
        self.width = width
        self.versions: Mapping[str, str] = {"numpy": np.__version__}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width); a text without words has length 0."""
        vectors = np.zeros((len(texts), self.width))
        for vector, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
            for term, count in Counter([*words, *map(" ".join, pairwise(words))]).items():
                place, sign = self._hash(term)
                vector[place] += sign * (1 + math.log(count))
        return l2_normalize(vectors).astype(np.float32)

    def _hash(self, term: str) -> tuple[int, int]:
        """The place and the sign of a term; Python's own `hash` would be another one in every process."""
        number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
        return (number >> 1) % self.width, 1 if number & 1 else -1


# -- sentence encoders ------------------------------------------------------------------------------------------

_POOLINGS = ("mean", "cls")
_MODULES = ("Transformer", "Pooling", "Normalize")
_KIND = "sentence encoder"


class SentenceEncoder:
    """A sentence encoder that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    The vector of a sentence is the mean of its tokens' last states, or the first of them where the pooling that the
    model brings in `1_Pooling/config.json` says so. A folder is never looked for on the network.
    """

    def __init__(self, path: str | Path | Checkpoint) -> None:
        found = path if isinstance(path, Checkpoint) else find_checkpoint(path, _KIND)
        self._pooling = _pooling(found)
        with pretrained_models.loading_model(found, _KIND) as (torch, transformers):
            self._tokenizer = found.load(transformers.AutoTokenizer)
            model = found.load(transformers.AutoModel, trust_remote_code=False)
            self._model = pretrained_models.prepare_for_inference(model, torch)
        self._torch = torch
        self._max_tokens = _max_tokens(found, self._tokenizer, self._model.config)
        self.width = int(self._model.config.hidden_size)
        self.name = f"{found.name}@{pretrained_models.fingerprint(self._model, self._pooling, self._max_tokens)}"
        self.versions = pretrained_models.package_versions()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        with self._torch.inference_mode():
            return encode_in_batches(self._encode_batch, texts, BATCH_SIZE, self.width)

    def _encode_batch(self, texts: list[str]) -> NDArray[np.float32]:
        """The states of the tokens, shape (n, tokens, width), pooled to (n, width); padding has no part in it."""
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt")
        tokens = tokens.to(self._model.device)
        states = self._model(**tokens).last_hidden_state
        present = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        means = (states * present).sum(1) / present.sum(1).clamp(min=1e-9)
        return np.asarray((states[:, 0] if self._pooling == "cls" else means).cpu().numpy(), np.float32)


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


def _max_tokens(model: Checkpoint, tokenizer: Any, config: Any) -> int:
    """Longer sentences are cut: at the model's own setting, else at what it can take."""
    limits = (tokenizer.model_max_length, getattr(config, "max_position_embeddings", None))
    setting = model.settings("sentence_bert_config.json", {}).get("max_seq_length")
    return int(setting or min(limit for limit in limits if limit))
