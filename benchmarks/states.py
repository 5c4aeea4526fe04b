"""State models on one core, the program's loop against a plain one: `python -m benchmarks.states` (`--smoke`: seconds).

In the plain one every video has a row to itself, and every token maps its own frame and its own sentences.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.training import program, synthetic
from msg2.states.configuration import TrainingOptions, get_variant

VARIANTS = ("paper", "vision-only", "evidence")


def one_by_one(function: Callable[[Tensor], Tensor], vectors: Tensor, places: Tensor) -> Tensor:
    """`msg2.states.network.transform_rows` as one would write it first."""
    return function(F.embedding(places.clamp(min=0), vectors))


def main(arguments: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.states", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few videos and epochs")
    smoke = parser.parse_args(arguments).smoke
    videos, width, epochs = (4, 16, 3) if smoke else (54, 512, 8)
    torch.set_num_threads(1)
    held = synthetic(videos, width)
    training = TrainingOptions(epochs=100, validation=0, validate_every=100, save_seconds=1e9, device="cpu")
    print("| Variant | plain, s an epoch | here | times as fast |\n|---|--:|--:|--:|")
    for name in VARIANTS:
        model, *_ = get_variant(name).options(**({} if name == "evidence" else {"encoder": "t5-tiny"}))
        with (
            mock.patch("msg2.states.network.transform_rows", one_by_one),
            mock.patch("msg2.states.network.transform_rows", one_by_one),
        ):
            plain = median(program(held, model, replace(training, row=0), epochs).seconds[1:])
        here = median(program(held, model, training, epochs).seconds[1:])
        print(f"| {name} | {plain:.2f} | {here:.2f} | {plain / here:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
