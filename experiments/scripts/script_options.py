"""Options of the text-to-text model of scripts: how it is fine-tuned, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msg2.errors import require


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    """The text-to-text model of scripts (`python -m experiments.scripts`): how it is fine-tuned, and how it is read."""

    base: str = "google-t5/t5-large"
    """A T5 checkpoint: its folder, or its name on the Hugging Face hub."""
    epochs: int = 20
    batch: int = 16
    """Scripts per step."""
    learning_rate: float = 1e-4
    warmup: int = 100
    """Steps until the learning rate is reached; from there it falls along a cosine."""
    clip: float = 1.0
    """Longest gradient."""
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    beams: int = 4
    """Orders that are followed at the same time when one is written."""
    edges_per_step: int = 4
    """Longest order that is written; in proScript there is about one edge per step."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "beams", "edges_per_step"):
            value = getattr(self, name)
            require(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        require(0 < self.learning_rate < float("inf"), f"learning-rate is {self.learning_rate}, it must be above 0")
        require(self.warmup >= 0, f"warmup is {self.warmup}, it must be 0 or more")
        require(self.clip > 0, f"clip is {self.clip}, it must be above 0")
        require(self.seed >= 0, f"seed is {self.seed}, it must be 0 or more")
        require(self.device in ("auto", "cpu", "cuda"), f"device is {self.device!r}, it must be auto, cpu or cuda")
