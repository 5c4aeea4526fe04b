"""The options of state models: sampling, model, training and filling; and the paper's variants of them, by name.

Every row of the paper's ablation (App. A), and what goes beyond it, is a set of options, not a model of its own.
Nothing here needs PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from msg2.errors import require
from msg2.options import (
    Count,
    NonNegativeInteger,
    Positive,
    Probability,
    ShareBelowOne,
    from_json,
    option_specs,
    options_class,
)
from msg2.text import short_repr

VARIANT = "evidence"
"""Of the state model, where none is named: one that trains anywhere, without weights from elsewhere."""


@options_class
class SamplingOptions:
    """Which frames and sentences of a video the state model sees (App. A)."""

    frames: Literal["segments", "video"] = "segments"
    """Frames are taken from the labelled segments only (the paper), or from the whole video, background included."""
    per_segment: Count = 3
    """Frames per segment: at least so many in training, exactly so many, equidistant, in testing."""
    most_frames: Count = 190
    """Frames per video in all."""
    sentences: Count = 3
    """Consecutive sentences around each frame, the middle one nearest to it."""
    dropped: ShareBelowOne = 0.25
    """In training, up to this share of a video's labels is dropped: they must be predicted without their borders."""
    always: bool = False
    """Exactly that share is dropped, at least one label, and not up to it."""

    def __post_init__(self) -> None:
        require(self.sentences % 2 == 1, f"sentences is {self.sentences}, it must be odd: one in the middle")


@options_class
class StateModelOptions:
    """The state model (Sec. 4.1); every row of the paper's ablation is a value of these (see `VARIANTS`)."""

    inputs: Literal["fused", "vision", "text"] = "fused"
    """Frames enriched by sentences (the paper), frames alone, or sentences alone in the place of frames."""
    audio: bool = True
    """Use the sound too, where the features hold it: not in the paper. It is fused like a sentence."""
    motion: bool = True
    """Use the motion too, where the features hold it."""
    skip: bool = False
    """A skip connection around the fusion: the paper's "Vision + ASR"."""
    encoder: Annotated[str, Field(min_length=1)] = "google/t5-v1_1-large"
    """A T5, ViT or VisualBERT checkpoint by name or folder, or a size without weights such as "t5-small"."""
    direct: bool = False
    """VisualBERT only: frames and sentences are fed to it as they are, without fusion ("VisualBERT†")."""
    heads: Count = 16
    """Attention heads of the fusion."""
    dropout: ShareBelowOne = 0.1
    """Of the fusion; the encoder has its own."""
    threshold: Positive = 1.0
    """b: a step is not started below -b and completed above b (Eq. 4)."""
    in_progress: bool = True
    """Without it the first of the two losses is left out ("w/o in progress")."""
    evidence: bool = False
    """Not in the paper: every token is classified as one of the steps, and evidence so far is added to the scores."""
    evidence_dropout: float = 0.3
    """Of the features that the evidence model sees."""
    evidence_l2: float = 0.005
    """Weight in the loss of the squared length of the evidence model's weights."""
    cooccurrence: bool = False
    """Not in the paper: which labels usually go along with which, and when; and whether a step is there at all."""
    cooccurrence_l2: float = 0.0001
    """Weight in the loss of the squared length of the co-occurrence model's weights; ten times that for presence."""
    context: bool = True
    """Without it the transformer is left out: the evidence and co-occurrence models are all there is."""

    def streams(self, known: Iterable[str]) -> list[str]:
        """Which of the streams that the features hold are used."""
        off = self.inputs == "text" or self.direct
        return [] if off else [name for name in sorted(known) if getattr(self, name)]

    def __post_init__(self) -> None:
        require(not (self.skip and self.inputs != "fused"), "skip goes with fused inputs")
        require(self.context or self.evidence or self.cooccurrence,
               "without context there must be evidence or cooccurrence")  # fmt: skip


@options_class
class TrainingOptions:
    """How the state model is trained (App. A)."""

    epochs: Count = 600
    """Passes over the training videos; by default 600, or 60 without a transformer."""
    batch: Count = 32
    """Videos per step of the optimiser."""
    learning_rate: Positive = 3e-4
    """Of Adam."""
    evidence_rate: float = 0.05
    """Learning rate of the evidence and co-occurrence models, which have few weights and start at zero."""
    warmup: NonNegativeInteger = 100
    """Steps until the learning rate is reached; from there it falls along a cosine."""
    clip: Positive = 1.0
    """Longest gradient."""
    validation: ShareBelowOne = 0.15
    """Share of the videos that is kept for validation."""
    validate_every: Count = 5
    """Epochs from one validation to the next."""
    patience: Count | None = None
    """Validations without a better one until training stops early; None: never."""
    save_seconds: float = 30.0
    """At most this much work is lost when the training is killed."""
    seed: NonNegativeInteger = 0
    """Everything random follows from it."""
    device: str = "auto"
    """cpu, cuda, cuda:1 (the second GPU) or mps (Apple's); auto: a GPU of NVIDIA's or AMD's where there is one."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: mixed precision (bfloat16) on such a GPU."""
    captured: bool = True
    """On a GPU, launch the kernels of a whole step at once, as a CUDA graph."""
    row: int | None = None
    """Least tokens of a row, which short videos share; 0: each has its own; None: they share where there is a
    transformer."""
    calibrate: bool = True
    """Whether confidences of added labels are calibrated on hidden ones, which takes three more trainings of most
    models. By default not for the paper's models: they add what the score alone says."""

    def __post_init__(self) -> None:
        known = re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", self.device)
        require(known, f"device is {self.device!r}, it must be auto, cpu, cuda, cuda:NUMBER or mps")


@options_class
class FillOptions:
    """How scores become labels (App. A, Ablation Study)."""

    threshold: float | None = None
    """A step is completed where its score is at least this. None: 0 (the paper); with an evidence model b/2, half way
    from "in progress" to "completed"."""
    read_at: Literal["next", "same", "seen"] | None = None
    """The state at a step is read where the next one stands (the paper), or where the step itself stands; or a step is
    added where there is most evidence of it. None: seen with an evidence model, otherwise next."""
    confidence: Probability = 0.8
    """Labels are added whose calibrated confidence is at least this."""
    uncalibrated: bool = False
    """Steps are added that are completed by the score alone (the paper); confidences are then calibrated on nothing."""

    def for_model(self, model: StateModelOptions) -> FillOptions:
        """Return the same options with what is None chosen for a model with these options."""
        threshold, read_at = (model.threshold / 2, "seen") if model.evidence else (0.0, "next")
        return replace(
            self,
            threshold=threshold if self.threshold is None else self.threshold,
            read_at=self.read_at or read_at,  # type: ignore[arg-type]
        )


class StateOptions(NamedTuple):
    """All that can be set from labels and features to completed labels."""

    model: StateModelOptions
    sampling: SamplingOptions
    training: TrainingOptions
    filling: FillOptions


_CLASSES = StateModelOptions, SamplingOptions, TrainingOptions, FillOptions
STATE_OPTIONS = {
    "b" if (cls, spec.name) == (StateModelOptions, "threshold") else spec.name: (cls, spec)
    for cls in _CLASSES
    for spec in option_specs(cls)
}
"""Every option by the name that `--set` has for it, and its class; b is the `threshold` of the model."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs from the paper's options, and what it is called in the paper's table."""

    description: str
    changes: Mapping[str, bool | int | str] = field(default_factory=dict)

    def options(self, **changes: object) -> StateOptions:
        """Return the options of the variant, with these changes, by the names of `STATE_OPTIONS`.

        >>> VARIANTS["paper"].options(heads=8, b=2.0).model.threshold
        2.0
        """
        parts: dict[type, dict[str, Any]] = {cls: {} for cls in _CLASSES}
        for name, value in {**self.changes, **changes}.items():
            require(name in STATE_OPTIONS, f"there is no option {short_repr(name)} of state models")
            cls, spec = STATE_OPTIONS[name]
            parts[cls][spec.name] = value
        return StateOptions(*(cls(**parts[cls]) for cls in _CLASSES))  # type: ignore[arg-type]


VARIANTS: Mapping[str, Variant] = from_json(
    dict[str, Variant], files("msg2.states").joinpath("variants.json").read_bytes(), "variants.json"
)
"""The rows of the paper's Table A, text alone, and ours."""


def get_variant(name: str) -> Variant:
    """Return the variant of this name."""
    require(name in VARIANTS, f"there is no variant {short_repr(name)}", hint=f"the variants are {', '.join(VARIANTS)}")
    return VARIANTS[name]
