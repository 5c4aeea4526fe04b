"""What a cue says for each step: its similarity to the step's name, and to what is said during the step elsewhere.

By name: cosines, standardised over the cues of the task and centred over the steps, so that a name that is similar to
everything says nothing. By prototype: cues of a step are normal around its mean with the covariance Σ of all cues, so
that the log-likelihood ratio to the background is linear: with z = Σ^(-1/2) x,  z·(m_s − m_0) − (|m_s|² − |m_0|²) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msg2.arrays import FloatArray
from msg2.labelling.narration_grid import EncodeTexts, NarrationGrid
from msg2.task import Step

_SHRINKAGE = 1.0
"""Share of the mean variance that is added to every direction."""
_COMPONENTS = 512
"""Directions that are kept, those of the largest variance."""


def name_evidence(grid: NarrationGrid, steps: Sequence[Step], task: str, encode: EncodeTexts) -> FloatArray:
    """Compare every cue with the names of the steps, alone and in the context of the task.

    Parameters
    ----------
    grid : NarrationGrid
    steps : sequence of Step
    task : str
        Its name: "put wheel" means more "when you change a tire".
    encode : callable
        From texts to vectors.

    Returns
    -------
    array of shape (C, N)
        In standard deviations.
    """
    evidence = np.zeros((len(grid.spoken), len(steps)))
    contexts = ["{step}", "{step} when you {task}"] if task else ["{step}"]
    for context in contexts:
        texts = [context.format(step=step, task=task.lower()) for step in steps]
        cosines = grid.spoken @ np.asarray(encode(texts), np.float64).T
        spread = cosines.std(axis=0)
        scores = (cosines - cosines.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
        evidence += scores - scores.mean(axis=1, keepdims=True)
    return evidence / len(contexts)


def whiten(vectors: FloatArray) -> FloatArray:
    """Scale vectors so that the covariance of all of them is about the identity; shape (C, components)."""
    centred = vectors - vectors.mean(axis=0)
    count, width = centred.shape
    ridge = _SHRINKAGE * (centred**2).sum() / (count * width)
    if count < width:  # the smaller of the two matrices has the same spectrum
        spectrum, rows = np.linalg.eigh(centred @ centred.T)
        kept = np.flatnonzero(spectrum > 1e-9 * max(spectrum[-1], 1e-9))[-_COMPONENTS:]
        projected = rows[:, kept] * np.sqrt(spectrum[kept])
    else:
        spectrum, directions = np.linalg.eigh(centred.T @ centred)
        kept = np.arange(width)[-_COMPONENTS:]
        projected = centred @ directions[:, kept]
    return np.asarray(projected / np.sqrt(np.maximum(spectrum[kept], 0) / count + max(ridge, 1e-12)))


def prototype_evidence(whitened: FloatArray, weights: FloatArray, pseudo_count: float) -> FloatArray:
    """Compare every cue with the means of the cues of the steps.

    Parameters
    ----------
    whitened : array of shape (C, width)
        The vectors z of all cues.
    weights : array of shape (C, N)
        How much each cue belongs to each step; what is left of 1 belongs to the background.
    pseudo_count : float
        Cues of the background that every step is thought to have.

    Returns
    -------
    array of shape (C, N)
        Log-likelihood ratios of the steps to the background.
    """
    background = np.maximum(1 - weights.sum(axis=1), 0.0)
    centre = background @ whitened / max(background.sum(), 1e-9)
    counts = weights.sum(axis=0)[:, None]
    means = (weights.T @ whitened + pseudo_count * centre) / (counts + pseudo_count)
    offset = (means**2).sum(axis=1) - centre @ centre
    return np.asarray(whitened @ (means - centre).T - offset / 2)
