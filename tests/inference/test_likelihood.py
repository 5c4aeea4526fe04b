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
from msg2.evidence import Evidence
from msg2.graph import all_of, any_of, step
from msg2.inference import infer
from msg2.inference.alternatives import _integrated, grouped
from msg2.inference.either import with_alternatives
from msg2.inference.layers import closure
from msg2.inference.likelihood import _starts
from msg2.inference.names import log_sums
from msg2.inference.noise import Noise
from msg2.inference.orders import Prior, Search
from msg2.media.text import HashedWords
from msg2.options import LikelihoodOptions, NoiseOptions, RandomWorldOptions, WorldOptions
from msg2.task import Segment, Task, Video
from msg2.worlds import random_world, simulate

OPTIONS = LikelihoodOptions()


def task_of(*sequences: str, steps: str = "abcd") -> Task:
    return Task("t", [*steps], [Video(f"v{i}", map(Segment, order)) for i, order in enumerate(sequences)])


def orders(count: int) -> list[np.ndarray]:
    """All strict partial orders of so many steps: the transitive ones among all acyclic relations."""
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    found = []
    for bits in product([False, True], repeat=len(pairs)):
        relation = np.zeros((count, count), dtype=bool)
        for pair, bit in zip(pairs, bits, strict=True):
            relation[pair] = bit
        if not np.trace(relation @ relation) and (closure(relation) == relation).all():
            found.append(relation)
    return found


def score_by_hand(task: Task, relation: np.ndarray, noise: Noise) -> float:
    """log p(choices) of untimed videos, one choice after the other."""
    names = task.steps
    total = float(np.log(noise.shares).mean())
    for video in task:
        order = [names.index(one) for one in video.sequence()]
        chances = np.zeros(len(noise.levels))
        for place, begun in enumerate(order[:-1]):
            left = order[place:]
            late = {a for a in left for b in order[:place] if relation[a, b]}
            eligible = [b for b in left if not any(relation[a, b] and a not in late for a in left)]
            rule = (begun in eligible) / len(eligible) if eligible else 0.0
            chances += np.log((1 - noise.levels) * rule + noise.levels / len(left))
        total += math.log((noise.shares * np.exp(chances)).sum())
    return total


sequences = st.lists(st.permutations("abcd").map("".join).flatmap(lambda s: st.integers(1, 4).map(lambda n: s[:n])),
                     min_size=1, max_size=6)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(sequences, st.integers(0, 10**6))
def test_the_score_is_the_one_of_the_definition(found: list[str], seed: int) -> None:
    task, rng = task_of(*found), np.random.default_rng(seed)
    search = Search.on(Evidence.of(task), OPTIONS)
    noise = Noise(np.array(OPTIONS.levels), rng.dirichlet(np.ones(len(OPTIONS.levels))))
    here, there = (FOUR[number] for number in rng.integers(len(FOUR), size=2))
    fit = replace(search.begun(here), noise=noise)
    assert fit.score - fit.prior == pytest.approx(score_by_hand(task, here, noise), abs=1e-9)
    moved = search.moved(fit, there)
    assert moved.score - moved.prior == pytest.approx(score_by_hand(task, there, noise), abs=1e-9)
    assert (moved.case == search.begun(there).case).all()


FOUR = orders(4)


def test_there_are_as_many_orders_as_there_are_posets() -> None:
    assert [len(orders(count)) for count in (1, 2, 3)] == [1, 3, 19]
    assert len(FOUR) == 219


@settings(max_examples=10, deadline=None)
@given(sequences)
def test_the_search_ends_where_no_single_move_helps_and_never_below_a_start(found: list[str]) -> None:
    evidence = Evidence.of(task_of(*found))
    search = Search.on(evidence, OPTIONS)
    for start in _starts(evidence, OPTIONS):
        end = search.climbed(start)
        begin = search.refitted(search.begun(start))
        assert end.score >= begin.score - 1e-9
        for relation in FOUR:
            if (relation != end.relation).sum() == 1:
                assert search.moved(end, relation).score <= end.score + OPTIONS.refit + 1e-6


def test_the_best_of_all_orders_is_found() -> None:
    task = simulate(random_world(RandomWorldOptions(steps=4, depth=2, or_rate=0.0), 3), WorldOptions(videos=12), 1).task
    evidence = Evidence.of(task)
    search = Search.on(evidence, OPTIONS)
    climbed = max(search.climbed(start).score for start in _starts(evidence, OPTIONS))
    best = max(search.refitted(search.begun(one)).score for one in FOUR)
    assert climbed == pytest.approx(best, abs=OPTIONS.refit)


def test_the_prior_of_each_step_adds_up() -> None:
    evidence = Evidence.of(task_of("abcd", "abdc"))
    prior = Prior.of(evidence)
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
    evidence = Evidence.of(task_of(*["abcd", "bacd", "cd", "cd"] * 5))  # both or neither: optional, not alternatives
    assert grouped([0, 1], 2, evidence) == [{0}, {1}]


def test_alternatives_that_are_both_done_are_told_by_the_order() -> None:
    found = infer(task_of(*["abc", "acb", "cba", "cab"] * 6, steps="abc"), "likelihood")
    assert found.precondition("b") == any_of([step("a"), step("c")])
    never_alone = infer(task_of(*["acb", "cab"] * 12, steps="abc"), "likelihood")
    assert never_alone.precondition("b") == all_of([step("a"), step("c")])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_clauses_only_raise_the_score_and_stay_in_the_open(seed: int) -> None:
    world = random_world(RandomWorldOptions(steps=8, depth=3, or_rate=0.3), seed)
    task = simulate(world, WorldOptions(videos=25), seed).task
    evidence = Evidence.of(task)
    search = Search.on(evidence, OPTIONS)
    begin = search.climbed(np.zeros((8, 8), dtype=bool))
    end = with_alternatives(search, begin)
    assert end.score >= begin.score
    afresh = search.begun(end.relation)
    blocked = end.eligible.under(end.relation, frozenset(), search.choices)
    assert (search._case(blocked) == afresh.case).all()  # without its clauses it is the order alone
    assert end.score == pytest.approx(
        end.noise.total(np.add.reduceat(search.chances[end.case], search.choices.first)) + end.prior
    )


def test_rates_are_integrated_out() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.dirichlet([1, 1, 1], size=200_000)
    assert math.exp(_integrated(2, 1, 3)) == pytest.approx((drawn ** [2, 1, 3]).prod(axis=1).mean(), rel=0.02)


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_other_names_and_orders_only_relabel_the_graph(order: tuple[int, ...]) -> None:
    noise = NoiseOptions()
    task = simulate(random_world(RandomWorldOptions(steps=7), 5), WorldOptions(videos=15, noise=noise), 2).task
    graph = infer(task, "likelihood")
    videos = [*task.videos]
    again = infer(Task(task.name, task.steps, [videos[i % 15] for i in np.random.default_rng(order).permutation(15)]),
                  "likelihood")  # fmt: skip
    assert again == graph


def test_many_videos_are_thinned_out_for_the_way_but_not_for_the_result() -> None:
    task = simulate(random_world(RandomWorldOptions(steps=8), 1), WorldOptions(videos=60), 0).task
    few = infer(task, "likelihood", videos=20)
    assert few.preconditions == infer(task, "likelihood").preconditions


def test_names_choose_among_the_usual_predecessors_not_how_many() -> None:
    rng = np.random.default_rng(0)
    usual = np.triu(rng.random((6, 6)) < 0.7, k=1)
    kin = rng.normal(size=(6, 6))
    logs = log_sums(kin, usual)
    for step_, column in enumerate(usual.T):
        before = np.flatnonzero(column)
        for count in range(7):
            sets = [math.exp(sum(kin[a, step_] for a in chosen)) for chosen in combinations(before, count)]
            assert math.exp(logs[step_, count]) == pytest.approx(sum(sets))
    prior = Prior(usual, kin, logs)
    empty = prior.of_order(np.zeros((6, 6), dtype=bool))
    for count in range(int(usual[:, 4].sum()) + 1):
        chances = 0.0
        for chosen in combinations(np.flatnonzero(usual[:, 4]), count):
            relation = np.zeros((6, 6), dtype=bool)
            relation[list(chosen), 4] = True
            chances += math.exp(prior.of_order(relation) - empty)
        assert chances == pytest.approx(1)  # as likely as any other number of predecessors


def test_names_are_read_where_they_are_given() -> None:
    task = task_of(*["abcd", "bacd"] * 5)
    graph = infer(task, "likelihood", names=HashedWords())
    assert graph.method["names"].startswith("words")
    assert "names" not in infer(task, "likelihood").method
    with pytest.raises(InputError, match="does not read the names"):
        infer(task, "always-before", names=HashedWords())
