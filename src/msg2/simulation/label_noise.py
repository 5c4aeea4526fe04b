"""Noise in demonstrations and their labels: steps that are skipped, repeated, swapped, unlabelled or mislabelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from msg2.options import Probability, options_class
from msg2.task import Step


@options_class
class NoiseOptions:
    """How simulated demonstrations differ from flawless, fully labelled ones; every rate is a probability.

    The defaults are calibrated: over the twelve household worlds about 29 % of the labels violate the true graph, as
    the paper found for ProceL (Sec. 3), mostly because steps were left out of the video or of its labels.
    """

    skipped: Probability = 0.08
    """Of each intended step: it is really not done, and the person goes on as if it were."""
    unlabelled: Probability = 0.2
    """Of each shown occurrence of a step: it is done, and the annotator does not label it."""
    swapped: Probability = 0.06
    """Of each two neighbours in the video, from left to right: the editor swaps them (a step is moved once)."""
    repeated: Probability = 0.05
    """Of each step that is done: it is done once more, at any later moment."""
    mislabelled: Probability = 0.02
    """Of each labelled occurrence: its label is that of another step of the task, any with equal chance."""
    overlapping: Probability = 0.0
    """Of each step after the first: it starts before the one before it has ended."""

    @staticmethod
    def none() -> NoiseOptions:
        """Return the rates of flawless demonstrations, completely labelled."""
        return NoiseOptions().scale(0)

    def scale(self, factor: float) -> NoiseOptions:
        """Return rates that are `factor` times as high, at most 1."""
        return NoiseOptions(**{rate.name: min(1.0, factor * getattr(self, rate.name)) for rate in fields(self)})


def draw_performed_steps(intended: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator) -> list[Step]:
    """Draw the steps that the finished video shows: without the skipped, with repeats, neighbours swapped."""
    kept = np.flatnonzero(rng.random(len(intended)) >= noise.skipped)
    again = kept[rng.random(len(kept)) < noise.repeated]
    # A repeat comes at any later moment: its place is drawn between its step and the end.
    places = np.concatenate([kept, again + (len(intended) - again) * rng.random(len(again))])
    order = np.concatenate([kept, again])[np.argsort(places, kind="stable")]
    performed = [intended[position] for position in order.tolist()]
    swaps = (rng.random(len(performed)) < noise.swapped).tolist()
    first = 0
    while first + 1 < len(performed):
        if swaps[first]:
            performed[first], performed[first + 1] = performed[first + 1], performed[first]
            first += 1  # a step is moved once: the next pair starts behind this one
        first += 1
    return performed


def draw_labels(
    performed: Sequence[Step], steps: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator
) -> tuple[Step | None, ...]:
    """Draw what the annotator calls each performed step."""
    missing = rng.random(len(performed)) < noise.unlabelled
    wrong = rng.random(len(performed)) < noise.mislabelled
    labels = list(performed)
    for i in np.flatnonzero(wrong).tolist():
        others = [name for name in steps if name != performed[i]]
        if others:
            labels[i] = others[rng.integers(len(others))]
    return tuple(None if absent else label for label, absent in zip(labels, missing.tolist(), strict=True))
