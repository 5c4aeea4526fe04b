"""A trained model on disk: weights as safetensors, everything else as JSON; nothing that runs when it is read.

model.json                  what it is: task, steps, options, widths, videos, versions, and how far training has come
best-000120.safetensors     the weights that did best in validation, after the epoch of the card's best validation
last-000123.safetensors     the latest weights and the moments of Adam, after the card's epoch: where training goes on
log.jsonl                   one line per validation

Tensors are named after their epoch, and the card is put in place after them: killed at any moment, the card tells of
tensors that are there and its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from msg2.errors import InputError
from msg2.files import write_together, write_whole
from msg2.states.card import Card, typed
from msg2.states.model import StateModel

FORMAT = "msg2.states/1"
_AGAIN = "train it again into another folder"


def save_checkpoint(folder: Path, card: Card, last: Mapping[str, Tensor], best: Mapping[str, Tensor] | None) -> None:
    """Write the card and the tensors, all or none; `best` only where it is new. Tensors of other epochs go."""
    document = {"format": FORMAT, **asdict(card), "versions": {name: version(name) for name in ("msg2", "torch")}}
    contents: dict[Path, Any] = {folder / card.last_file: as_file(last)}
    if best is not None:
        contents[folder / card.best_file] = as_file(best)
    contents[folder / "model.json"] = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    write_together(contents)
    for which, current in (("last", card.last_file), ("best", card.best_file)):
        for path in folder.glob(f"{which}-{'[0-9]' * 6}.safetensors"):
            if path.name != current:
                with suppress(OSError):
                    path.unlink()


def as_file(tensors: Mapping[str, Tensor]) -> memoryview:
    """A safetensors file of tensors in single precision, wherever they are: gigabytes, copied no more than once.

    It is the length of the header in 8 bytes, the header in JSON, and one tensor after the other.
    """
    ends = list(accumulate((value.nbytes for value in tensors.values()), initial=0))
    header = {
        name: {"dtype": "F32", "shape": list(value.shape), "data_offsets": list(span)}
        for (name, value), span in zip(tensors.items(), pairwise(ends), strict=True)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    begin = 8 + len(text)
    whole = np.empty(begin + ends[-1], dtype=np.uint8)  # NumPy asks for large pages, which halves the time
    whole[:begin] = np.frombuffer(len(text).to_bytes(8, "little") + text, dtype=np.uint8)
    numbers = torch.from_numpy(whole[begin:].view(np.float32))
    for value, (start, end) in zip(tensors.values(), pairwise(ends), strict=True):
        numbers[start // 4 : end // 4].view(value.shape).copy_(value.detach())
    return whole.data


def read_card(folder: Path) -> Card:
    """The card of the checkpoint in `folder`, checked."""
    path = folder / "model.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "make one with `msg2 states train`"
        raise InputError("is no trained model: it has no model.json", where=folder, hint=hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_AGAIN) from error
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise InputError(f"is not a model in the format {FORMAT!r}", where=path, hint=_AGAIN)
    document.pop("versions", None)
    try:
        card: Card = typed(Card, document, "the card")
    except (TypeError, InputError) as error:
        raise InputError(f"is damaged ({error!s})", where=path, hint=_AGAIN) from error
    return card


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return dict(load(path.read_bytes()))
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_AGAIN) from error


def load_weights(model: StateModel, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put the tensors into the model; they must be its own, every one of them."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"does not fit the model ({reason})", where=where, hint=_AGAIN) from error


def load_model(folder: Path) -> tuple[Card, StateModel]:
    """The best model of a training, ready to predict, whether or not the training has finished."""
    card = read_card(folder)
    path = folder / card.best_file
    if not card.best and not path.exists():
        raise InputError("has not come to its first validation", where=folder, hint="let the training go on")
    model = empty_model(folder, card)
    load_weights(model, read_tensors(path), path)
    return card, model.eval()


def empty_model(folder: Path, card: Card) -> StateModel:
    """The model of the card in `folder`, for weights to be put in."""
    try:
        return card.empty_model()
    except InputError as error:
        raise InputError(f"is damaged ({error.what})", where=folder / "model.json", hint=_AGAIN) from error


def log_until(folder: Path, epoch: int) -> list[dict[str, Any]]:
    """The lines of the log up to this epoch; those of later ones, whose work was lost, are taken out of it."""
    path = folder / "log.jsonl"
    if not path.is_file():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kept = [line for line in lines if line["epoch"] <= epoch]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint="remove it") from error
    if kept != lines:
        write_log(folder, kept)
    return kept


def write_log(folder: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """The log, a line per validation."""
    write_whole(folder / "log.jsonl", "".join(map(to_json, lines)))


def to_json(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False) + "\n"
