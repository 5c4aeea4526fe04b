"""The search: against brute force over all graphs of a few steps, and against the truth of worlds without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from experiments.graph_learning.or_recovery import true_order
from msg2.graph import are_equivalent
from msg2.inference import infer
from msg2.inference.likelihood import LikelihoodOptions
from msg2.inference.likelihood.choices import Disjunction
from msg2.inference.likelihood.score import OrderScorer
from msg2.inference.likelihood.search import _choose_end, find_order
from msg2.sequences import Sequences, Variants
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Task
from tests.inference.test_likelihood import orders

OPTIONS = LikelihoodOptions()


def variants_of(task: Task) -> Variants:
    return Variants.from_sequences(Sequences.from_task(task))


def with_ors(relation: np.ndarray, most: int) -> Iterator[frozenset[Disjunction]]:
    """All sets of at most so many ORs, one a step, that can be added to an order."""
    size = len(relation)
    possible: list[list[Disjunction | None]] = []
    for step in range(size):
        free = [a for a in range(size) if a != step and not relation[a, step] and not relation[step, a]]
        groups = [frozenset(group) for count in range(2, len(free) + 1) for group in combinations(free, count)]
        possible.append([None, *((step, group) for group in groups)])
    for chosen in product(*possible):
        ors = frozenset(one for one in chosen if one is not None)
        if len(ors) <= most:
            yield ors


def best_by_brute_force(scorer: OrderScorer, size: int, most_ors: int) -> float:
    best = -np.inf
    for relation in orders(size):
        for ors in with_ors(relation, most_ors):
            order = scorer.score(relation, ors)
            if order.score > best - 3 and not order.reachable.diagonal().any():  # the noise is not estimated yet
                best = max(best, scorer.refit_noise(order).score)
    return float(best)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [NoiseOptions.none(), NoiseOptions()], ids=["clean", "noisy"])
def test_the_best_of_all_graphs_of_four_steps(seed: int, noise: NoiseOptions) -> None:
    world = random_world(RandomWorldOptions(steps=4, depth=1, or_rate=0.5), seed)
    task = simulate(world, SimulationOptions(videos=40, noise=noise, both_branches=0.5), seed).task
    scorer, found = find_order(variants_of(task), OPTIONS)
    short = OPTIONS.tolerance if noise == NoiseOptions.none() else 0.5  # hill climbing in a rugged country
    assert found.score >= best_by_brute_force(scorer, 4, most_ors=2) - short


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [NoiseOptions.none(), NoiseOptions()], ids=["clean", "noisy"])
def test_the_best_of_all_graphs_of_five_steps(seed: int, noise: NoiseOptions) -> None:
    world = random_world(RandomWorldOptions(steps=5, depth=1, or_rate=0.5), seed)
    task = simulate(world, SimulationOptions(videos=30, noise=noise, both_branches=0.5), seed).task
    scorer, found = find_order(variants_of(task), OPTIONS)
    short = OPTIONS.tolerance if noise == NoiseOptions.none() else 0.5
    assert found.score >= best_by_brute_force(scorer, 5, most_ors=1) - short


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_it_does_not_end_below_the_truth(seed: int) -> None:
    world = random_world(RandomWorldOptions(steps=12, depth=3, or_rate=0.5), seed)
    task = simulate(world, SimulationOptions(videos=300, noise=NoiseOptions.none()), seed).task
    variants = variants_of(task)
    scorer, found = find_order(variants, OPTIONS)
    truth = scorer.refit_noise(scorer.score(*true_order(world.graph, variants.steps)))
    assert found.score >= truth.score - OPTIONS.tolerance


def test_ors_are_found_without_noise() -> None:
    right = ors = 0
    for seed in range(2000, 2006):
        world = random_world(RandomWorldOptions(steps=12, depth=3, or_rate=0.5), seed)
        graph = infer(
            simulate(world, SimulationOptions(videos=300, noise=NoiseOptions.none()), seed).task, "likelihood"
        )
        ours, theirs = graph.transitive_reduction(), world.graph.transitive_reduction()
        for name, formula in theirs.preconditions.items():
            if "any" in formula.kinds:
                ors += 1
                right += are_equivalent(ours.precondition(name), formula)
    assert right >= 0.9 * ors


def test_of_ends_that_score_about_alike_the_one_that_fewest_choices_break_is_taken() -> None:
    world = random_world(RandomWorldOptions(steps=6, depth=2, or_rate=0.0), 1)
    variants = variants_of(simulate(world, SimulationOptions(videos=60, noise=NoiseOptions().scale(2)), 1).task)
    scorer, best = find_order(variants, OPTIONS)
    free = scorer.refit_noise(scorer.score(np.zeros_like(best.relation)))
    turned = scorer.refit_noise(scorer.score(best.relation.T))  # against all videos, so far below
    assert scorer.count_disorderly(free) == 0 < scorer.count_disorderly(turned)
    assert _choose_end(scorer, [best, turned]) is best
    worse = replace(best, prior=best.prior - 2)  # as disorderly, and less probable
    assert _choose_end(scorer, [worse, best]) is best
    orderly = replace(free, prior=free.prior + best.score - free.score - 2)
    hardly = replace(free, prior=free.prior + best.score - free.score - 4)
    assert scorer.count_disorderly(best) > 0
    assert _choose_end(scorer, [best, orderly]) is orderly
    assert _choose_end(scorer, [best, hardly]) is best
