"""Statements on the order of steps: believed as far as the videos show them right, and outweighed by many videos."""

from __future__ import annotations

from itertools import permutations
from statistics import fmean

import numpy as np
import pytest

from msg2.graph import SubtaskGraph
from msg2.inference import Constraints, infer
from msg2.inference.likelihood.score import OrderPrior
from msg2.inference.likelihood.statements import OrderStatements, weigh
from msg2.metrics import score_graph
from msg2.sequences import Sequences
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Task

SHAPE = RandomWorldOptions(steps=12, depth=5, or_rate=0, max_parents=2)


def worlds(videos: int, count: int) -> list[tuple[Task, SubtaskGraph]]:
    options = SimulationOptions(videos=videos, noise=NoiseOptions.none())
    shown = [simulate(random_world(SHAPE, seed), options, seed) for seed in range(count)]
    return [(one.task, one.graph) for one in shown]


def answers(truth: SubtaskGraph, right: float, seed: int) -> OrderStatements:
    rng = np.random.default_rng(seed)
    said = {(a, b) for a, b in permutations(truth.steps, 2) if (a in truth.ancestors(b)) == (rng.random() < right)}
    return OrderStatements("answers", frozenset(truth.steps), frozenset(said))


@pytest.mark.parametrize("right", [0.95, 0.8, 0.65, 0.5])
def test_the_reliability_is_about_the_true_one(right: float) -> None:
    found = []
    for seed, (task, truth) in enumerate(worlds(10, 8)):
        before = Sequences.from_task(task).before
        found.append(weigh([answers(truth, right, seed)], task.steps, before).reliability["answers"])
    assert abs(fmean(found) - right) < 0.1


def test_good_answers_help_where_videos_are_few_and_nonsense_does_no_harm() -> None:
    def f1(right: float | None) -> float:
        scores = []
        for seed, (task, truth) in enumerate(worlds(2, 8)):
            said = [] if right is None else [answers(truth, right, seed)]
            scores.append(score_graph(infer(task, statements=said), truth).edges.f1 or 0.0)
        return fmean(scores)

    alone = f1(None)
    assert f1(0.95) > alone + 0.15
    assert f1(0.5) > alone - 0.02


def test_many_videos_outweigh_a_source_that_is_wrong() -> None:
    wrong = OrderStatements("wrong", frozenset("abcd"), frozenset([("d", "a"), ("c", "a"), ("b", "a")]))
    graph = infer([list("abcd"), list("acbd")] * 40, statements=[wrong])
    assert graph.kind("a", "d") == graph.kind("b", "d") == "needs"


def test_a_stated_rule_is_above_every_source() -> None:
    source = OrderStatements("model", frozenset("abcd"), frozenset([("b", "a"), ("b", "c"), ("a", "d"), ("c", "d")]))
    graph = infer([list("abcd"), list("bacd")], statements=[source], constraints=Constraints(required=[("a", "b")]))
    assert graph.kind("a", "b") == "needs"


def test_what_is_said_of_a_pair_is_added_to_the_prior_of_every_order_with_it() -> None:
    before = np.array([[0, 2, 1], [0, 0, 1], [1, 1, 0]])
    gain = np.array([[0.0, 1.5, -2.0], [-1.0, 0.0, 0.5], [0.25, 0.0, 0.0]])
    plain, told = OrderPrior.from_counts(before), OrderPrior.from_counts(before, None, gain)
    orders = np.array([[[0, 0, 0]] * 3, [[0, 1, 1], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [1, 0, 0]]], bool)
    rise = told.log_probability(orders) - plain.log_probability(orders)
    assert np.allclose(rise - rise[0], [0.0, 1.5 - 2.0 + 0.5, -1.0 + 0.25])
    assert (told.log_probability(orders) <= 0).all()


def test_what_a_source_does_not_know_it_says_nothing_of() -> None:
    source = OrderStatements("text", frozenset("ab"), frozenset([("a", "b")]))
    weights = weigh([source], "abc", np.array([[0, 3, 3], [0, 0, 3], [0, 0, 0]]))
    assert weights.gain[2].tolist() == weights.gain[:, 2].tolist() == [0, 0, 0]
    nobody = weigh([OrderStatements("text", frozenset("a"), frozenset())], "abc", np.zeros((3, 3), int))
    assert (nobody.reliability, nobody.belief) == ({}, 0.0)


def test_a_graph_names_its_sources_and_samples_believe_them_alike() -> None:
    source = OrderStatements("recipe", frozenset("abc"), frozenset([("a", "b"), ("b", "c"), ("a", "c")]))
    graph = infer([list("abc"), list("abc"), list("acb")], statements=[source], samples=3)
    assert 0 <= graph.method["model"]["reliability"]["recipe"] <= 1
    assert graph.evidence["b"]["edges"]["a"]["said_by"] == ["recipe"]
    assert "from the recipe" in graph.explain()


def test_a_source_tells_apart_what_no_video_does() -> None:
    source = OrderStatements("text", frozenset("abc"), frozenset([("a", "b"), ("b", "c"), ("a", "c")]))
    for runs in ([list("abc"), list("bac")], [list("abc"), list("bac"), list("cab"), list("acb")]):
        graph = infer(runs, statements=[source], samples=2)
        assert graph.kind("b", "a") == "free"


def test_statements_that_follow_from_each_other_count_less() -> None:
    before = np.triu(np.full((6, 6), 4), 1)
    written = frozenset((a, b) for a, b in permutations("abcdef", 2) if a < b)
    as_text = weigh([OrderStatements("text", frozenset("abcdef"), written)], "abcdef", before)
    broken = weigh([OrderStatements("text", frozenset("abcdef"), written - {("a", "f")})], "abcdef", before)
    assert 0 < as_text.gain[0, 1] < broken.gain[0, 1]
