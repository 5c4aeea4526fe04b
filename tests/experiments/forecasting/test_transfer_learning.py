"""What other tasks say about a task with few videos."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.forecasting.transfer_learning import fit_transfer_prior, sharpened_similarity
from msg2.assist.contexts import COUNT_FEATURES, count_transitions
from msg2.assist.learned_forecaster import FEATURES, fit_forecaster, step_indices
from msg2.errors import InputError
from msg2.text_encoders import HashedWords
from tests.assist.forecast_examples import GRAPH, NAMES, task_of


def test_the_same_steps_under_other_names_lend_their_counts() -> None:
    """With exactly the same names, borrowed counts are the other task's own, and the task itself lends nothing."""
    other, own = task_of(["abc", "abd", "acb"], name="other"), task_of(["dcba"] * 3)
    lent = fit_transfer_prior(GRAPH, 1, [other, own], lambda texts: np.eye(4)[[NAMES.index(text) for text in texts]])
    sequences = [step_indices(video.sequence(), GRAPH) for video in other]
    expected = count_transitions(sequences, 4)
    for field in ("shown", "positions", "after", "second", "before"):
        assert getattr(lent.counts, field) == pytest.approx(getattr(expected, field)), field
    assert lent.counts.videos == pytest.approx([3] * 4)
    assert len(lent.weights) == len(FEATURES) + len(COUNT_FEATURES)
    with pytest.raises(InputError, match="no task other than 't'"):
        fit_transfer_prior(GRAPH, 1, [own], HashedWords())
    with pytest.raises(InputError, match="the text encoder gave"):
        fit_transfer_prior(GRAPH, 1, [other], lambda texts: np.zeros((1, 2)))


def test_likeness() -> None:
    vectors = HashedWords()(["pour milk", "pour the milk", "jack up"]).astype(float)
    alike = sharpened_similarity(vectors, vectors)
    assert np.diag(alike) == pytest.approx(np.ones(3))
    assert alike[0, 2] < alike[0, 1] < 1


def test_a_task_with_one_video_learns_from_its_twins() -> None:
    """The twins show b before a; the one video of the task shows neither."""
    twins = [task_of(["bacd"] * 8 + ["bad"] * 4, name=f"twin {n}") for n in range(3)]
    own = task_of(["cd"])
    lent = fit_transfer_prior(GRAPH, len(own), [*twins, own], lambda texts: np.eye(4)[[NAMES.index(t) for t in texts]])
    alone, helped = fit_forecaster(GRAPH, own)([]), fit_forecaster(GRAPH, own, transfer=lent)([])
    assert helped["b"] > helped["a"]
    assert alone["b"] == pytest.approx(alone["a"], abs=1e-3)
    assert helped["b"] > alone["b"]
