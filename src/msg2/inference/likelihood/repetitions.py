"""What leads back: after which step which other one is done again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import Sequences
from msg2.task import Step


def count_repetitions(sequences: Sequences) -> dict[Step, dict[str, object]]:
    """Count how often each step was done, and what was done again right after it."""
    again = _is_again(sequences)
    if not again.any():
        return {}
    size, steps = len(sequences.steps), sequences.steps
    run, step, weight = sequences.run, sequences.step, sequences.weight[sequences.run]
    leads = (run[1:] == run[:-1]) & again[1:]
    pairs = step[:-1][leads] * np.int64(size) + step[1:][leads]
    counts = np.bincount(pairs, weight[1:][leads], size * size).reshape(size, size)
    times = np.bincount(step, weight, size)
    return {
        steps[n]: {"times": int(times[n]), "again": {steps[m]: int(counts[n, m]) for m in np.flatnonzero(counts[n])}}
        for n in np.flatnonzero(times)
    }


def _is_again(sequences: Sequences) -> NDArray[np.bool_]:
    """Whether each occurrence is not the first one of its step in its run."""
    keys = sequences.run * np.int64(len(sequences.steps)) + sequences.step
    again = np.ones(len(keys), dtype=np.bool_)
    again[np.unique(keys, return_index=True)[1]] = False  # occurrences are in the order of their start
    return again
