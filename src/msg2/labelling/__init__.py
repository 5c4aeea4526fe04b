"""Narration and step names, or a few labels, to drafts of labels; which video to label next."""

from msg2.labelling.drafts import LabelOptions, LabelResult, label

__all__ = ["LabelOptions", "LabelResult", "label"]
