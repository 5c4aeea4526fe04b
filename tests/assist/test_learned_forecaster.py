"""The learned next-step model: what must hold for any data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist import RANKERS
from msg2.assist.conditional_logit import ConditionalLogit
from msg2.assist.contexts import COUNT_FEATURES, count_transitions, encode_contexts
from msg2.assist.learned_forecaster import (
    FEATURES,
    LearnedForecaster,
    TransferPrior,
    fit_features,
    fit_forecaster,
    k_fold_split,
)
from msg2.assist.next_step_evaluation import evaluate_ranker, next_step_predictions
from msg2.assist.rankers import recency
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, step
from msg2.metrics.calibration import score_calibration
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Task
from tests.assist.forecast_examples import DONE, GRAPH, NAMES, SEQUENCES, task_of


@settings(max_examples=15)
@given(SEQUENCES, DONE)
def test_probabilities_sum_to_one(sequences: list[str], done: list[str]) -> None:
    for factory in RANKERS.values():
        found = factory.make(GRAPH, task_of(sequences))(done)
        assert set(found) == set(NAMES) - set(done)
        assert sum(found.values()) == pytest.approx(1)
        assert all(0 <= chance <= 1 for chance in found.values())


@settings(max_examples=10)
@given(SEQUENCES, DONE, st.permutations(NAMES))
def test_other_names_only_relabel_the_forecast(sequences: list[str], done: list[str], names: Sequence[str]) -> None:
    rename: Mapping[str, str] = dict(zip(NAMES, names, strict=True))
    other = SubtaskGraph("t", NAMES, {rename["c"]: all_of([step(rename["a"]), step(rename["b"])])})
    task, renamed = task_of(sequences), task_of(["".join(map(rename.__getitem__, s)) for s in sequences])
    one, two = fit_forecaster(GRAPH, task)(done), fit_forecaster(other, renamed)([rename[name] for name in done])
    assert {rename[name]: chance for name, chance in one.items()} == pytest.approx(two, abs=2e-3)


def test_without_videos_the_graph_alone_speaks() -> None:
    """c needs a and b; of b and d nothing is known."""
    found = fit_forecaster(GRAPH, task_of([]))(["a"])
    assert found["b"] == pytest.approx(found["d"])
    assert found["c"] < found["b"]
    empty = fit_forecaster(SubtaskGraph("t", NAMES, {}), task_of([]))(["a"])
    assert empty == pytest.approx(dict.fromkeys("bcd", 1 / 3))
    assert fit_forecaster(GRAPH, task_of(["abcd"]))("abcd") == {}
    once, twice = (fit_forecaster(GRAPH, task_of(["ab"]))(done) for done in (["a"], ["a", "a"]))
    assert twice == pytest.approx(once, abs=0.05)  # no video repeats a: only the n-gram "a a" is unheard of


def test_an_unknown_step_is_named() -> None:
    ranker = fit_forecaster(SubtaskGraph("t", ["flip bread"], {}), Task("t", ["flip bread"], []))
    with pytest.raises(InputError, match="'fip bread' is not a step of the graph"):
        ranker(["fip bread"])
    with pytest.raises(InputError, match="'e' is not a step of the graph"):
        fit_forecaster(GRAPH, task_of(["ae"], "abcde"))


def test_a_forecaster_can_be_written_down() -> None:
    ranker = fit_forecaster(GRAPH, task_of(["abcd", "badc", "", "dab"]))
    value = json.loads(json.dumps(ranker.to_json()))
    assert value["steps"] == list(GRAPH.steps)
    assert ["".join(value["steps"][place] for place in one) for one in value["sequences"]] == ["abcd", "badc", "dab"]
    again = LearnedForecaster(
        fit_features([tuple(one) for one in value["sequences"]], GRAPH),
        ConditionalLogit(np.array(value["terms"]), np.array(value["weights"])),
    )
    assert again(["b"]) == ranker(["b"])  # coefficients have no more digits than are written
    assert all(number == round(number, 5) for row in value["terms"] for number in row)
    lent = TransferPrior(count_transitions([(0, 1)], 4), np.zeros(len(FEATURES) + len(COUNT_FEATURES)))
    with pytest.raises(InputError, match="other tasks cannot be written down"):
        fit_forecaster(GRAPH, task_of(["abcd"]), lent).to_json()


def test_what_a_row_is_told_does_not_come_from_its_own_video() -> None:
    """A held-out fold looks the same whatever happens in it."""
    sequences = [(0, 1, 2), (1, 0, 3), (0, 2, 1), (3, 2, 1)]
    for fold, (inside, others) in enumerate(k_fold_split(sequences, 2)):
        assert not set(inside) & set(others)
        assert sorted([*inside, *others]) == sorted(sequences)
        changed = [(3, 1) if number % 2 == fold else one for number, one in enumerate(sequences)]
        asked = encode_contexts([(0,), (1, 0)], 4)
        before, after = (fit_features(k_fold_split(s, 2)[fold][1], GRAPH) for s in (sequences, changed))
        assert np.array_equal(before.choice_sets(asked).features, after.choice_sets(asked).features)


def test_learned_is_better_than_the_rule_and_no_worse_than_uncertain_where_nothing_is_to_learn() -> None:
    shown = simulate(household_world("Make Coffee"), SimulationOptions(videos=60), seed=1)
    training = shown.task.with_videos(shown.task.videos[:40])
    test = shown.task.videos[40:]
    rule, model = recency(shown.graph), fit_forecaster(shown.graph, training)
    assert (evaluate_ranker(model, test).accuracy or 0) > (evaluate_ranker(rule, test).accuracy or 0)
    loss = score_calibration(next_step_predictions(model, test)).log_loss
    assert loss < math.log(len(shown.graph.steps))
