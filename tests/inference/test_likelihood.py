"""`likelihood`: its score by hand, its search against all orders of a few steps, and what noise must not do to it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import all_of, any_of, step
from msg2.graph.closure import transitive_closure
from msg2.inference import infer
from msg2.inference.likelihood import LikelihoodOptions
from msg2.inference.likelihood.score import OrderPrior, OrderScorer
from msg2.inference.likelihood.search import (
    PreconditionMoves,
    climb,
    find_order,
    move_pairs,
    rebuild_losing_steps,
    starting_orders,
)
from msg2.inference.likelihood.structure import _joined, group_alternatives
from msg2.sequences import Sequences, Variants
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from msg2.text_encoders import HashedWords

OPTIONS = LikelihoodOptions()


def task_of(*sequences: str, steps: str = "abcd") -> Task:
    return Task("t", [*steps], [Video(f"v{i}", map(Segment, order)) for i, order in enumerate(sequences)])


def variants_of(task: Task) -> Variants:
    return Variants.from_sequences(Sequences.from_task(task))


def orders(count: int) -> list[np.ndarray]:
    """All strict partial orders of so many steps: the transitive ones among all acyclic relations."""
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    found = []
    for bits in product([False, True], repeat=len(pairs)):
        relation = np.zeros((count, count), dtype=bool)
        for pair, bit in zip(pairs, bits, strict=True):
            relation[pair] = bit
        if not np.trace(relation @ relation) and (transitive_closure(relation) == relation).all():
            found.append(relation)
    return found


def score_by_hand(task: Task, relation: np.ndarray, noise: np.ndarray) -> float:
    """log p(choices) of untimed videos, one choice after the other."""
    names, levels = task.steps, np.array(OPTIONS.levels)
    total = float(np.log(noise).mean())
    for video in task:
        order = [names.index(one) for one in video.sequence()]
        chances = np.zeros(len(levels))
        for place, begun in enumerate(order[:-1]):
            left = order[place:]
            late = {a for a in left for b in order[:place] if relation[a, b]}
            eligible = [b for b in left if not any(relation[a, b] and a not in late for a in left)]
            rule = (begun in eligible) / len(eligible) if eligible else 0.0
            chances += np.log((1 - levels) * rule + levels / len(left))
        total += math.log((noise * np.exp(chances)).sum())
    return total


sequences = st.lists(st.permutations("abcd").map("".join).flatmap(lambda s: st.integers(1, 4).map(lambda n: s[:n])),
                     min_size=1, max_size=6)  # fmt: skip


@given(sequences, st.integers(0, 10**6))
def test_the_score_is_the_one_of_the_definition(found: list[str], seed: int) -> None:
    task, rng = task_of(*found), np.random.default_rng(seed)
    scorer = OrderScorer.from_variants(variants_of(task), OPTIONS)
    noise = rng.dirichlet(np.ones(len(OPTIONS.levels)))
    here, there = (FOUR[number] for number in rng.integers(len(FOUR), size=2))
    fit = replace(scorer.score(here), noise=noise)
    assert fit.score - fit.prior == pytest.approx(score_by_hand(task, here, noise), abs=1e-9)
    moved = scorer.score(there, fit.disjunctions, fit)
    assert moved.score - moved.prior == pytest.approx(score_by_hand(task, there, noise), abs=1e-9)
    assert (moved.table_row == scorer.score(there).table_row).all()


FOUR = orders(4)


def test_there_are_as_many_orders_as_there_are_posets() -> None:
    assert [len(orders(count)) for count in (1, 2, 3)] == [1, 3, 19]
    assert len(FOUR) == 219


@settings(max_examples=10)
@given(sequences)
def test_the_search_ends_where_no_single_move_helps_and_never_below_a_start(found: list[str]) -> None:
    variants = variants_of(task_of(*found))
    scorer = OrderScorer.from_variants(variants, OPTIONS)
    for start in starting_orders(variants, OPTIONS):
        end = climb(scorer, scorer.score(start), [move_pairs, PreconditionMoves(), rebuild_losing_steps])
        begin = scorer.refit_noise(scorer.score(start))
        assert end.score >= begin.score - 1e-9
        for relation in FOUR:
            if (relation != end.relation).sum() == 1:
                moved = scorer.score(relation, end.disjunctions, end)
                assert moved.score <= end.score + OPTIONS.tolerance + 1e-6


def test_the_best_of_all_orders_is_found() -> None:
    task = simulate(
        random_world(RandomWorldOptions(steps=4, depth=2, or_rate=0.0), 3), SimulationOptions(videos=12), 1
    ).task
    scorer, found = find_order(variants_of(task), OPTIONS)
    best = max(scorer.refit_noise(scorer.score(one)).score for one in FOUR)
    assert found.score >= best - OPTIONS.tolerance


def test_the_prior_of_each_step_adds_up() -> None:
    sequences = Sequences.from_task(task_of("abcd", "abdc"))
    prior = OrderPrior.from_counts(sequences.before)
    for index, n in enumerate(prior.usual.sum(axis=0)):
        sets = [math.comb(int(n), r) * math.exp(-prior.cost[index, r]) for r in range(n + 1)]
        assert sets == pytest.approx([1.0] * (n + 1))


def test_without_noise_it_is_what_always_comes_before() -> None:
    found = infer(task_of("abcd", "bacd", "abcd", "bacd", "abcd", "bacd"), "likelihood")
    assert found.precondition("c") == all_of([step("a"), step("b")])
    assert found.precondition("d") == step("c")
    assert not found.parents("a")
    assert not found.parents("b")


def test_one_chaotic_video_does_not_spoil_the_graph() -> None:
    orderly = ["abcdefgh"] * 4 + ["bacdefhg"] * 4
    clean = infer(task_of(*orderly, steps="abcdefgh"), "likelihood")
    spoilt = infer(task_of(*orderly, "hgfedcba", steps="abcdefgh"), "likelihood")
    assert spoilt.preconditions == clean.preconditions


def test_what_a_video_leaves_out_is_no_violation() -> None:
    videos = ["abcd", "acd", "abd", "abc", "bcd", "abcd", "acd"]
    found = infer(task_of(*videos), "likelihood")
    assert found.ancestors("d") == {"a", "b", "c"}


def test_overlapping_segments_are_not_ordered() -> None:
    videos = [Video(f"v{i}", [Segment("a", 0, 10), Segment("b", 5, 12), Segment("c", 20, 25)]) for i in range(8)]
    swapped = [Video(f"w{i}", [Segment("b", 0, 10), Segment("a", 5, 12), Segment("c", 20, 25)]) for i in range(8)]
    found = infer(Task("t", "abc", [*videos, *swapped]), "likelihood")
    assert found.precondition("c") == all_of([step("a"), step("b")])
    assert not found.parents("a")
    assert not found.parents("b")


def test_alternatives_are_told_from_what_is_all_needed() -> None:
    either = infer(task_of(*["acd", "bcd"] * 10), "likelihood")
    assert either.precondition("c") == any_of([step("a"), step("b")])
    both = infer(task_of(*["abcd", "bacd"] * 8, "acd", "bcd"), "likelihood")
    assert both.precondition("c") == all_of([step("a"), step("b")])
    sequences = Sequences.from_task(
        task_of(*["abcd", "bacd", "cd", "cd"] * 5)
    )  # both or neither: optional, not alternatives
    assert group_alternatives([0, 1], sequences.shown, sequences.weight, 0.01)[0] == []


def test_alternatives_that_are_both_done_are_told_by_the_order() -> None:
    found = infer(task_of(*["abc", "acb", "cba", "cab"] * 6, steps="abc"), "likelihood")
    assert found.precondition("b") == any_of([step("a"), step("c")])
    never_alone = infer(task_of(*["acb", "cab"] * 12, steps="abc"), "likelihood")
    assert never_alone.precondition("b") == all_of([step("a"), step("c")])


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_where_the_search_ends_scores_afresh_the_same(seed: int) -> None:
    world = random_world(RandomWorldOptions(steps=8, depth=3, or_rate=0.3), seed)
    scorer, end = find_order(variants_of(simulate(world, SimulationOptions(videos=25), seed).task), OPTIONS)
    afresh = scorer.score(end.relation, end.disjunctions)
    assert (afresh.table_row == end.table_row).all()
    assert replace(afresh, noise=end.noise).score == pytest.approx(end.score)
    assert not end.reachable.diagonal().any()


def test_rates_are_integrated_out() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.dirichlet([1, 1, 1], size=200_000)
    # Two videos show both groups, one only the first, three only the second.
    joined = float(_joined(np.array(2.0), np.array(3), 5, 6, rate=0.1)) - 6 * math.log(0.9)
    assert math.exp(joined) == pytest.approx((drawn ** [2, 1, 3]).prod(axis=1).mean(), rel=0.02)


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_other_names_and_orders_only_relabel_the_graph(order: tuple[int, ...]) -> None:
    noise = NoiseOptions()
    task = simulate(random_world(RandomWorldOptions(steps=7), 5), SimulationOptions(videos=15, noise=noise), 2).task
    graph = infer(task, "likelihood")
    videos = [*task.videos]
    again = infer(Task(task.name, task.steps, [videos[i % 15] for i in np.random.default_rng(order).permutation(15)]),
                  "likelihood")  # fmt: skip
    assert again == graph


def test_many_videos_are_thinned_out_for_the_way_but_not_for_the_result() -> None:
    task = simulate(random_world(RandomWorldOptions(steps=8), 1), SimulationOptions(videos=60), 0).task
    few = infer(task, "likelihood", scout_labels=120)
    assert few.preconditions == infer(task, "likelihood").preconditions


def test_names_choose_among_the_usual_predecessors_not_how_many() -> None:
    rng = np.random.default_rng(0)
    usual = np.triu(rng.random((6, 6)) < 0.7, k=1)
    similarity = rng.normal(size=(6, 6))
    prior = OrderPrior.from_counts(usual.astype(np.int64), similarity)
    for step_, column in enumerate(usual.T):
        before = np.flatnonzero(column)
        for count in range(7):
            sets = [math.exp(sum(similarity[a, step_] for a in chosen)) for chosen in combinations(before, count)]
            assert math.exp(prior.cost[step_, count]) == pytest.approx(sum(sets))
    empty = prior.log_probability(np.zeros((6, 6), dtype=bool))
    for count in range(int(usual[:, 4].sum()) + 1):
        chances = 0.0
        for chosen in combinations(np.flatnonzero(usual[:, 4]), count):
            relation = np.zeros((6, 6), dtype=bool)
            relation[list(chosen), 4] = True
            chances += math.exp(prior.log_probability(relation) - empty)
        assert chances == pytest.approx(1)  # as likely as any other number of predecessors


def test_names_are_read_where_they_are_given() -> None:
    task = task_of(*["abcd", "bacd"] * 5)
    graph = infer(task, "likelihood", names=HashedWords())
    assert graph.method["names"].startswith("words")
    assert "names" not in infer(task, "likelihood").method
    with pytest.raises(InputError, match="does not read the names"):
        infer(task, "always-before", names=HashedWords())
