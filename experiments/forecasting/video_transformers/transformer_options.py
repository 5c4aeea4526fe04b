"""Options of the transformers that predict the next step, and of their training."""

from __future__ import annotations

from dataclasses import dataclass, field

from msg2.errors import require
from msg2.states.configuration import TrainingOptions


@dataclass(frozen=True, slots=True)
class VideoTransformerOptions:
    """Transformers that predict the next step from frames and narration (`python -m experiments video-next-step`)."""

    frames: int = 3
    """Of each step that is done: equidistant, in training at random (App. C)."""
    around: int = 3
    """Sentences around each frame that are fused with it; odd, the middle one is nearest to it."""
    heard: int = 12
    """Sentences since the last step began, at most; 0: the text-and-label transformer does not listen."""
    labels: bool = True
    """Whether frames are told the step that they show."""
    width: int = 32
    layers: int = 2
    """Of attention over time, or over the tokens of the text-and-label transformer."""
    spatial_layers: int = 1
    """Of ViViT's attention within a frame."""
    heads: int = 4
    dropout: float = 0.3
    weight_decay: float = 0.1
    training: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(
            epochs=40, batch=64, learning_rate=1e-3, warmup=20, validate_every=1, patience=8, device="cpu"
        )
    )
    """A batch is of moments here; patience is with the loss on videos that are kept for validation."""

    def __post_init__(self) -> None:
        require(self.heard >= 0, f"heard is {self.heard}, it must be 0 or more")
        for name in ("frames", "layers", "spatial_layers", "heads"):
            value = getattr(self, name)
            require(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        require(self.around >= 1 and self.around % 2 == 1, f"around is {self.around}, it must be odd")
        require(self.width >= 1 and self.width % self.heads == 0,
               f"width is {self.width}, it must be a multiple of the {self.heads} heads")  # fmt: skip
        require(0 <= self.dropout < 1, f"dropout is {self.dropout}, it must be 0 or more and below 1")
        require(self.weight_decay >= 0, f"weight-decay is {self.weight_decay}, it must be 0 or more")
