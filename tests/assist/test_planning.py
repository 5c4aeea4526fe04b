"""Plans, against every order of every set of steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist.planning import Plan, plan_steps
from msg2.assist.rankers import Ranker, recency
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from tests.assist.deviation_examples import COFFEE, NAMES, TEA, graphs_of_all_kinds

DONE = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)
LENGTHS = st.none() | st.integers(1, 5)


def random_ranker(seed: int) -> Ranker:
    """Depends on the whole order of what is done, and gives something to steps that are done or forbidden, too."""

    def probabilities_after(done: Sequence[str]) -> Mapping[str, float]:
        shares = np.random.default_rng([seed, *map(ord, "".join(done))]).dirichlet(np.ones(len(NAMES)))
        return dict(zip(NAMES, shares.tolist(), strict=True))

    return probabilities_after


def orders_to(graph: SubtaskGraph, done: Sequence[str], goal: str, length: int | None) -> list[tuple[str, ...]]:
    """All sequences to the goal whose every step is eligible when it comes, by definition."""
    left = [name for name in graph.steps if name not in done]
    sizes = range(1, len(left) + 1) if length is None else [length]
    return [
        order
        for size in sizes
        for order in permutations(left, size)
        if order[-1] == goal and respects(graph, done, order)
    ]


def respects(graph: SubtaskGraph, done: Sequence[str], order: Sequence[str]) -> bool:
    return all(name in graph.eligible({*done, *order[:place]}) for place, name in enumerate(order))


def cost(graph: SubtaskGraph, done: Sequence[str], order: Sequence[str], ranker: Ranker) -> float:
    total = 0.0
    for place, name in enumerate(order):
        before = [*done, *order[:place]]
        shares = {n: p for n, p in ranker(before).items() if n in graph.eligible(before) and n not in before}
        total -= math.log(shares[name] / sum(shares.values()))
    return total


def plans_or_none(find: Callable[[], list[Plan]]) -> list[Plan]:
    try:
        return find()
    except InputError:
        return []


@settings(max_examples=50)
@given(graphs_of_all_kinds(), DONE, st.sampled_from(NAMES), LENGTHS, st.integers(0, 999), st.integers(1, 5))
def test_the_k_best_are_those_of_brute_force(
    graph: SubtaskGraph, done: list[str], goal: str, length: int | None, seed: int, k: int
) -> None:
    ranker = random_ranker(seed)
    found = plans_or_none(lambda: plan_steps(graph, done, goal, ranker=ranker, length=length, k=k))
    everything = [] if goal in done else orders_to(graph, done, goal, length)
    costs = {order: cost(graph, done, order, ranker) for order in everything}
    best = sorted(costs, key=lambda order: costs[order])[:k]
    total = sum(math.exp(-one) for one in costs.values())
    assert [plan.steps for plan in found] == best
    assert [plan.probability for plan in found] == pytest.approx([math.exp(-costs[o]) / total for o in best], abs=1e-5)
    assert all(plan.exact for plan in found)


@settings(max_examples=50)
@given(graphs_of_all_kinds(), DONE, st.sampled_from(NAMES), LENGTHS, st.integers(1, 4))
def test_without_a_ranker_the_shortest_come_first(
    graph: SubtaskGraph, done: list[str], goal: str, length: int | None, k: int
) -> None:
    found = plans_or_none(lambda: plan_steps(graph, done, goal, length=length, k=k))
    everything = [] if goal in done else orders_to(graph, done, goal, length)
    assert bool(found) == bool(everything)
    assert {plan.steps for plan in found} <= set(everything)
    sizes = [len(plan.steps) for plan in found]
    assert sizes == sorted(sizes)
    assert all(plan.probability is None and plan.exact for plan in found)


@settings(max_examples=50)
@given(graphs_of_all_kinds(), DONE, st.sampled_from(NAMES), st.integers(1, 9))
def test_without_a_ranker_a_plan_has_only_what_the_goal_needs(
    graph: SubtaskGraph, done: list[str], goal: str, k: int
) -> None:
    """Where all steps are optional, nothing is due before another: what is needed is what cannot be left out."""
    graph = SubtaskGraph("t", graph.steps, graph.preconditions, order=graph.order, exclusive=graph.exclusive,
                         optional=graph.steps)  # fmt: skip
    everything = [] if goal in done else orders_to(graph, done, goal, None)
    needed = [
        order
        for order in everything
        if not any(respects(graph, done, order[:n] + order[n + 1 :]) for n in range(len(order) - 1))
    ]
    best = sorted(needed, key=lambda order: (len(order), [graph.steps.index(name) for name in order]))[:k]
    found = plans_or_none(lambda: plan_steps(graph, done, goal, k=k))
    assert [plan.steps for plan in found] == best
    assert all(set(plan.steps) <= graph.ancestors(goal) | {goal} for plan in found)


@settings(max_examples=30)
@given(graphs_of_all_kinds(), DONE, st.sampled_from(NAMES), LENGTHS, st.integers(0, 999), st.integers(1, 3))
def test_a_beam_is_never_better_than_what_is_exact(
    graph: SubtaskGraph, done: list[str], goal: str, length: int | None, seed: int, k: int
) -> None:
    ranker = random_ranker(seed)

    def find() -> list[Plan]:
        return plan_steps(graph, done, goal, ranker=ranker, length=length, k=k)

    exact = plans_or_none(find)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msg2.assist.planning.MAX_EXPANDED", 4)
        beam = plans_or_none(find)
    assert len(beam) <= len(exact)
    for narrow, wide in zip(beam, exact, strict=False):
        assert respects(graph, done, narrow.steps)
        assert cost(graph, done, narrow.steps, ranker) >= cost(graph, done, wide.steps, ranker) - 1e-9
        assert narrow.steps == wide.steps or not narrow.exact
        assert 0 < narrow.probability <= 1 + 1e-9  # type: ignore[operator]


def test_a_beam_finds_the_way_through_a_long_task() -> None:
    """Thirty steps in a chain and as many free ones: 30 steps lead to the end, and data says which."""
    chain, free = [f"c{n:02}" for n in range(30)], [f"f{n:02}" for n in range(30)]
    needs = {after: step(before) for before, after in pairwise(chain)}
    graph = SubtaskGraph("long", chain + free, needs)

    def mostly_the_chain(done: Sequence[str]) -> Mapping[str, float]:
        return {name: 8.0 if name in chain else 0.1 for name in graph.steps if name not in done}

    best, second = plan_steps(graph, [], "c29", ranker=mostly_the_chain, k=2)
    assert best.steps == tuple(chain)
    assert not best.exact
    assert len(second.steps) == 31
    assert best.probability > second.probability > 0  # type: ignore[operator]
    alone = plan_steps(graph, ["c00", "f01"], "c29")
    assert alone == [Plan(tuple(chain[1:]), None, True)]


def test_alternatives() -> None:
    assert [plan.steps for plan in plan_steps(COFFEE, ["grind"], "pour", k=9)] == [("boil", "pour")]
    assert [plan.steps for plan in plan_steps(COFFEE, [], "pour", k=2)] == [
        ("boil", "grind", "pour"), ("boil", "open", "pour"),
    ]  # fmt: skip
    assert all({"bag", "leaves"} - set(plan.steps) for plan in plan_steps(TEA, [], "stir", length=5, k=99))


def test_a_plan_does_not_rule_out_what_every_run_has() -> None:
    """Salt is in every faultless run, and comes before the pasta; sugar may be left out."""
    graph = SubtaskGraph("pasta", ["salt", "sugar", "pasta"], {}, order=[("salt", "pasta"), ("sugar", "pasta")],
                         optional=["sugar"])  # fmt: skip
    assert plan_steps(graph, [], "pasta")[0].steps == ("salt", "pasta")
    assert plan_steps(graph, [], "pasta", length=1)[0].steps == ("pasta",)  # if it must be so short
    ordered = SubtaskGraph("pasta", ["salt", "pasta", "eat"], {}, order=[("salt", "pasta"), ("pasta", "eat")])
    assert plan_steps(ordered, ["pasta"], "eat")[0].steps == ("eat",)  # the salt is too late


def test_a_step_that_the_ranker_deems_impossible_is_planned_where_nothing_else_will_do() -> None:
    (plan,) = plan_steps(COFFEE, ["boil"], "pour", ranker=lambda done: {"boil": 0.9, "open": 0.0, "grind": 0.1})
    assert plan.steps == ("grind", "pour")
    (plan,) = plan_steps(COFFEE, ["boil", "grind"], "pour", ranker=lambda done: {"open": 1.0}, length=1)
    assert (plan.steps, plan.probability) == (("pour",), pytest.approx(1.0))
    (plan,) = plan_steps(COFFEE, [], "open", ranker=recency(COFFEE), length=1)
    assert plan.probability == pytest.approx(1.0)


def test_a_negation_that_holds_no_more_is_out_of_reach() -> None:
    graph = SubtaskGraph("t", "abc", {"b": negation(step("a")), "c": any_of([step("b"), all_of([step("a")])])})
    assert plan_steps(graph, ["a"], "c")[0].steps == ("c",)
    with pytest.raises(InputError, match="no way to 'b'"):
        plan_steps(graph, ["a"], "b")


@pytest.mark.parametrize(
    ("done", "goal", "length", "what"),
    [
        (["boil"], "boil", None, "'boil' is already done\n  steps that are left: 'bag', 'leaves', 'sugar'"),
        ([], "boyl", None, "'boyl' is not a step of the graph\n  did you mean 'boil'"),
        (["boyl"], "boil", None, "'boyl' is not a step of the graph"),
        (["bag"], "leaves", None, "cannot be reached any more\n  'bag' is done, and it is never done as well"),
        (["stir"], "sugar", None, "cannot be reached any more\n  'stir' is done, and it comes only before that"),
        ([], "stir", 2, "no plan to 'stir' has exactly 2 steps\n  the shortest plan has 4"),
        ([], "stir", 9, "no plan to 'stir' has exactly 9 steps\n  the shortest plan has 4"),
        ([], "stir", 0, "length is 0"),
    ],
)
def test_what_cannot_be_planned_is_explained(done: list[str], goal: str, length: int | None, what: str) -> None:
    for ranker in (None, recency(TEA)):
        with pytest.raises(InputError) as error:
            plan_steps(TEA, done, goal, length=length, ranker=ranker)
        assert what in str(error.value)


def test_k_is_checked() -> None:
    with pytest.raises(InputError, match="k is 0"):
        plan_steps(TEA, [], "boil", k=0)
