"""The probe is logistic regression, and the simulated features are as difficult by it as they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments.state_prediction.linear_probe import (
    difficulty_table,
    fit_linear_classifier,
    frame_and_sentence_examples,
    probe_accuracy,
)
from msg2.simulation import household_world, simulate, video_storyboard
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions


@pytest.mark.parametrize(("penalty", "classes"), [(0.1, 2), (1.0, 5), (10.0, 9)])
def test_the_same_as_scikit_learn(penalty: float, classes: int) -> None:
    rng = np.random.default_rng(classes)
    names = rng.integers(classes, size=300) * 3 + 1
    vectors = rng.standard_normal((300, 12)) + rng.standard_normal((3 * classes + 1, 12))[names]
    ours = fit_linear_classifier(vectors, names, penalty, tolerance=1e-9)
    theirs = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(vectors, names)
    assert (ours.classes == theirs.classes_).all()
    fresh = rng.standard_normal((100, 12))
    scores = fresh @ ours.weights.T + ours.intercepts
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    if classes == 2:  # scikit-learn fits the difference of the two: the same model, with the penalty counted otherwise
        theirs = LogisticRegression(C=2 / penalty, tol=1e-10, max_iter=10_000).fit(vectors, names)
    assert odds / odds.sum(axis=1, keepdims=True) == pytest.approx(theirs.predict_proba(fresh), abs=1e-4)
    assert (ours.predict(fresh) == theirs.predict(fresh)).mean() > 0.98


def test_examples_are_what_was_performed_and_mentioned() -> None:
    simulation, options = (
        simulate(household_world("Perform CPR"), SimulationOptions(videos=5), seed=0),
        FeatureOptions(width=8),
    )
    frames, sentences = frame_and_sentence_examples(simulation, options, 0)
    for show in simulation.demonstrations:
        times = np.arange(0, 10_000)
        expected = [s.step for s in show.performed for t in times if s.start <= t < s.end]
        assert [simulation.graph.steps[k] for k in frames.of([show.video]).classes] == expected
        mentioned = video_storyboard(simulation, show, options, 0).mentioned
        assert (sentences.of([show.video]).classes == mentioned.argmax(axis=1)[mentioned.any(axis=1)]).all()


def test_more_clutter_is_more_difficult() -> None:
    simulation = simulate(household_world("Perform CPR"), SimulationOptions(), seed=0)
    accuracies = np.array([
        [probe_accuracy(simulation, examples) for examples in both]
        for clutter in (2.0, 6.0, 10.0, 60.0)
        for both in [frame_and_sentence_examples(simulation, FeatureOptions(clutter=clutter), 0)]
    ])  # fmt: skip
    assert (np.diff(accuracies, axis=0) < 0).all()
    assert (accuracies[0] > 0.85).all()
    assert (accuracies[-1] < 0.35).all()


@pytest.mark.slow
def test_by_default_the_step_of_a_frame_is_recognised_six_times_in_ten() -> None:
    """The promise of `FeatureOptions.clutter`, over the twelve worlds."""
    options = FeatureOptions()
    table = difficulty_table([options.clutter])
    ((clutter, frames, sentences),) = table.rows
    assert clutter == options.clutter
    assert frames == pytest.approx(60, abs=1.5)
    assert 40 < sentences < 70
