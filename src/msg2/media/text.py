"""Sentences -> vectors, by hashed words or by any sentence encoder; the cosine of two vectors is their likeness."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, MissingExtraError, shortened
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

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors."""


def text_encoder(name: str | None = None, options: TextOptions | None = None) -> TextEncoder:
    """The encoder of that name: "words", the folder of a sentence encoder, or its name on the Hugging Face hub.

    >>> text_encoder("words").width
    512
    """
    options = options or TextOptions()
    name = name or options.encoder
    return HashedWords(options.width) if name == "words" else SentenceModel(name, options.batch)


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
        return _of_length_one(vectors)

    def _hashed(self, term: str) -> tuple[int, int]:
        """The place and the sign of a term; Python's own `hash` would be another one in every process."""
        number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
        return (number >> 1) % self.width, 1 if number & 1 else -1


def _of_length_one(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


# -- sentence encoders ------------------------------------------------------------------------------------------

_POOLINGS = ("mean", "cls")
_MODULES = ("Transformer", "Pooling", "Normalize")
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched of a model on the hub: no pickled weights, and none for other frameworks."""


class SentenceModel:
    """A sentence encoder that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    The vector of a sentence is the mean of its tokens' last states, or the first of them where the pooling that the
    model brings in `1_Pooling/config.json` says so. A folder is never looked for on the network.
    """

    def __init__(self, path: str | Path, batch: int | None = None) -> None:
        try:
            import torch
            import transformers
        except ImportError:
            raise MissingExtraError(f"the sentence encoder {shortened(str(path))}", "states") from None
        folder = _folder(path)
        self._pooling, self._batch, self._torch = _pooling(folder), batch or TextOptions().batch, torch
        try:
            with _quietly(transformers):
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
                model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise _no_encoder(path, str(error)) from None
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = model.float().eval().to(device)
        self._tokens = _most_tokens(folder, self._tokenizer, model.config)
        self.width = int(model.config.hidden_size)
        self.name = f"{path if folder != Path(path) else folder.resolve().name}@{self._fingerprint()}"
        self.versions: Mapping[str, str] = {name: version(name) for name in ("numpy", "torch", "transformers")}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        vectors = np.zeros((len(texts), self.width))
        with self._torch.inference_mode():
            for first in range(0, len(texts), self._batch):
                batch = list(texts[first : first + self._batch])
                vectors[first : first + len(batch)] = self._pooled(batch).cpu().numpy()
        return _of_length_one(vectors)

    def _pooled(self, texts: list[str]) -> Any:
        """The states of the tokens, shape (n, tokens, width), pooled to (n, width); padding has no part in it."""
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt")
        tokens = tokens.to(self._model.device)
        states = self._model(**tokens).last_hidden_state
        if self._pooling == "cls":
            return states[:, 0]
        present = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * present).sum(1) / present.sum(1).clamp(min=1e-9)

    def _fingerprint(self) -> str:
        """Says which weights these are, wherever they lie."""
        digest = hashlib.sha256(f"{self._pooling} {self._tokens}".encode())
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]


def _folder(path: str | Path) -> Path:
    if Path(path).is_dir():
        return Path(path)
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(str(path), allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        raise _no_encoder(path, "there is no such folder, and none came from the Hugging Face hub") from error


def _no_encoder(path: str | Path, why: str) -> InputError:
    hint = "give 'words', the folder of a model for transformers, or its name on the Hugging Face hub"
    first = (why.strip().splitlines() or [""])[0]
    return InputError(f"is not a sentence encoder ({shortened(first, 200)[1:-1]})", where=path, hint=hint)


def _pooling(folder: Path) -> str:
    """How the model pools, by its own account; the mean where it gives none."""
    for module in _settings(folder / "modules.json", []):
        kind = module["type"].rpartition(".")[2]
        if kind not in _MODULES:
            raise InputError(f"has a module {kind!r}, msg2 knows only {', '.join(_MODULES)}", where=folder)
    settings = _settings(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean"})
    older = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
             for key, on in settings.items() if key.startswith("pooling_mode_") and on]  # fmt: skip
    chosen = settings.get("pooling_mode", older[0] if len(older) == 1 else older)
    if chosen not in _POOLINGS:
        raise InputError(f"pools by {chosen}, msg2 knows only {' and '.join(_POOLINGS)}", where=folder)
    return str(chosen)


def _most_tokens(folder: Path, tokenizer: Any, config: Any) -> int:
    """Longer sentences are cut: at the model's own setting, else at what it can take."""
    limits = (tokenizer.model_max_length, getattr(config, "max_position_embeddings", None))
    setting = _settings(folder / "sentence_bert_config.json", {}).get("max_seq_length")
    return int(setting or min(limit for limit in limits if limit))


def _settings(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=path) from None


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """No progress bars and remarks of the package while it loads a model."""
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()
