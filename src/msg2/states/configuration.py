"""The options of state prediction: sampling, model, training and filling. Nothing here needs PyTorch.

The paper's ablation (App. A) and what goes beyond it, by name: each is a set of options, not a model of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from msg2.errors import InputError, require, require_probability
from msg2.text import short_repr

VARIANT = "evidence"
"""Of the state model, where none is named: one that trains anywhere, without weights from elsewhere."""


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Which frames and sentences of a video the state model sees (App. A)."""

    frames: Literal["segments", "video"] = "segments"
    """Frames are taken from the labelled segments only (the paper), or from the whole video, background included."""
    per_segment: int = 3
    """Frames per segment: at least so many in training, exactly so many, equidistant, in testing."""
    most_frames: int = 190
    """Frames per video in all."""
    sentences: int = 3
    """Consecutive sentences around each frame, the middle one nearest to it."""
    dropped: float = 0.25
    """In training, up to this share of a video's labels is dropped: they must be predicted without their borders."""
    always: bool = False
    """Exactly that share is dropped, at least one label, and not up to it."""

    def __post_init__(self) -> None:
        require(self.frames in ("segments", "video"), f"frames is {self.frames!r}, it must be 'segments' or 'video'")
        require(self.per_segment >= 1, f"per-segment is {self.per_segment}, it must be 1 or more")
        require(self.most_frames >= 1, f"most-frames is {self.most_frames}, it must be 1 or more")
        require(self.sentences >= 1 and self.sentences % 2 == 1,
               f"sentences is {self.sentences}, it must be odd: one in the middle")  # fmt: skip
        require(0 <= self.dropped < 1, f"dropped is {self.dropped}, it must be 0 or more and below 1")


@dataclass(frozen=True, slots=True)
class StateModelOptions:
    """The state model (Sec. 4.1); every row of the paper's ablation is a value of these (see `VARIANTS`)."""

    inputs: Literal["fused", "vision", "text"] = "fused"
    """Frames enriched by sentences (the paper), frames alone, or sentences alone in the place of frames."""
    skip: bool = False
    """A skip connection around the fusion: the paper's "Vision + ASR"."""
    encoder: str = "google/t5-v1_1-large"
    """A T5, ViT or VisualBERT checkpoint by name or folder, or a size without weights such as "t5-small"."""
    direct: bool = False
    """VisualBERT only: frames and sentences are fed to it as they are, without fusion ("VisualBERT†")."""
    heads: int = 16
    """Attention heads of the fusion."""
    dropout: float = 0.1
    """Of the fusion; the encoder has its own."""
    threshold: float = 1.0
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

    def __post_init__(self) -> None:
        kinds = ("fused", "vision", "text")
        require(self.inputs in kinds, f"inputs is {self.inputs!r}, it must be {' or '.join(kinds)}")
        require(bool(self.encoder), "encoder is empty, it must name a checkpoint or a size")
        require(not (self.skip and self.inputs != "fused"), "skip goes with fused inputs")
        require(self.context or self.evidence or self.cooccurrence,
               "without context there must be evidence or cooccurrence")  # fmt: skip
        require(self.heads >= 1, f"heads is {self.heads}, it must be 1 or more")
        require(0 <= self.dropout < 1, f"dropout is {self.dropout}, it must be 0 or more and below 1")
        require(0 < self.threshold < float("inf"), f"threshold is {self.threshold}, it must be a number above 0")


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How the state model is trained (App. A)."""

    epochs: int = 600
    batch: int = 32
    """Videos per step."""
    learning_rate: float = 3e-4
    evidence_rate: float = 0.05
    """Learning rate of the evidence and co-occurrence models, which have few weights and start at zero."""
    warmup: int = 100
    """Steps until the learning rate is reached; from there it falls along a cosine."""
    clip: float = 1.0
    """Longest gradient."""
    validation: float = 0.15
    """Share of the videos that is kept for validation."""
    validate_every: int = 5
    """Epochs from one validation to the next."""
    patience: int | None = None
    """Validations without a better one until training stops early; None: never."""
    save_seconds: float = 30.0
    """At most this much work is lost when the training is killed."""
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: mixed precision (bfloat16) on a GPU."""
    captured: bool = True
    """On a GPU, launch the kernels of a whole step at once, as a CUDA graph."""
    row: int | None = None
    """Least tokens of a row, which short videos share; 0: each has its own; None: they share where there is a
    transformer."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "validate_every"):
            value = getattr(self, name)
            require(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        require(0 < self.learning_rate < float("inf"), f"learning-rate is {self.learning_rate}, it must be above 0")
        require(self.warmup >= 0, f"warmup is {self.warmup}, it must be 0 or more")
        require(self.clip > 0, f"clip is {self.clip}, it must be above 0")
        require(0 <= self.validation < 1, f"validation is {self.validation}, it must be 0 or more and below 1")
        require(self.patience is None or self.patience >= 1, f"patience is {self.patience}, it must be 1 or more")
        require(self.seed >= 0, f"seed is {self.seed}, it must be 0 or more")
        require(self.device in ("auto", "cpu", "cuda"), f"device is {self.device!r}, it must be auto, cpu or cuda")
        require(self.precision in ("auto", "float32", "bfloat16"),
               f"precision is {self.precision!r}, it must be auto, float32 or bfloat16")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FillOptions:
    """How scores become labels (App. A, Ablation Study)."""

    threshold: float | None = None
    """A step is completed where its score is at least this. None: 0 (the paper); with an evidence model b/2, half way
    from "in progress" to "completed"."""
    read_at: Literal["next", "same", "seen"] | None = None
    """The state at a step is read where the next one stands (the paper), or where the step itself stands; or a step is
    added where there is most evidence of it. None: seen with an evidence model, otherwise next."""
    confidence: float = 0.8
    """Labels are added whose calibrated confidence is at least this."""
    uncalibrated: bool = False
    """Steps are added that are completed by the score alone (the paper); confidences are then calibrated on nothing."""

    def __post_init__(self) -> None:
        require(self.threshold is None or -float("inf") < self.threshold < float("inf"),
               f"threshold is {self.threshold}, it must be a number")  # fmt: skip
        require(self.read_at in ("next", "same", "seen", None),
               f"read-at is {self.read_at!r}, it must be next, same or seen")  # fmt: skip
        require_probability("confidence", self.confidence)

    def for_model(self, model: StateModelOptions) -> FillOptions:
        """Return the same options with what is None chosen for a model with these options."""
        threshold, read_at = (model.threshold / 2, "seen") if model.evidence else (0.0, "next")
        return replace(
            self,
            threshold=threshold if self.threshold is None else self.threshold,
            read_at=read_at if self.read_at is None else self.read_at,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs from the paper's model and sampling, and what it is called in the paper's table."""

    description: str
    model: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def options(self, **model: Any) -> tuple[StateModelOptions, SamplingOptions]:
        """Return the options of the variant; those in `model` win over its own."""
        return StateModelOptions(**{**self.model, **model}), SamplingOptions(**self.sampling)

    def training(self, **given: Any) -> TrainingOptions:
        """Return how it is trained, the paper's way; without a transformer, a tenth of that is enough."""
        brief = {} if self.model.get("context", True) else {"epochs": 60, "warmup": 10}
        return TrainingOptions(**{**brief, **given})


VARIANTS: Mapping[str, Variant] = {
    "paper": Variant("the paper's model: frames enriched by sentences, T5"),
    "vision-only": Variant("VisionOnly: frames alone", {"inputs": "vision"}),
    "vision+asr": Variant("Vision + ASR: with a skip connection around the fusion", {"skip": True}),
    "from-scratch": Variant("Ours (from scratch): T5 without weights", {"encoder": "t5-large"}),
    "no-in-progress": Variant("Ours (w/o in progress state)", {"in_progress": False}),
    "visualbert": Variant("VisualBERT in the place of T5", {"encoder": "uclanlp/visualbert-vqa-coco-pre"}),
    "visualbert-direct": Variant(
        "VisualBERT†: frames and sentences as they are", {"encoder": "uclanlp/visualbert-vqa-coco-pre", "direct": True}
    ),
    "vit": Variant("ViT in the place of T5", {"encoder": "google/vit-large-patch16-224"}),
    "text-only": Variant("sentences alone, in the place of frames", {"inputs": "text"}),
    "text-evidence": Variant(
        "the evidence in the sentences so far",
        {"inputs": "text", "evidence": True, "context": False},
        {"frames": "video"},
    ),
    "text+labels": Variant(
        "the evidence in the sentences so far, and which labels usually go along",
        {"inputs": "text", "evidence": True, "cooccurrence": True, "context": False},
        {"frames": "video", "always": True},
    ),
    "evidence": Variant(
        "the evidence in frames and sentences so far, in the whole video",
        {"evidence": True, "context": False},
        {"frames": "video"},
    ),
}
"""The rows of the paper's Table A, text alone, and ours."""


def get_variant(name: str) -> Variant:
    """Return the variant of this name."""
    if name not in VARIANTS:
        raise InputError(f"there is no variant {short_repr(name)}", hint=f"the variants are {', '.join(VARIANTS)}")
    return VARIANTS[name]
