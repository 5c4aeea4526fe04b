"""The paper's ablation (App. A) and what goes beyond it, by name: each is a set of options, not a model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msg2.errors import InputError
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.text import short_repr


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
