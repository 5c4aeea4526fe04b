"""How probably it is a mistake to break a rule: against enumeration over which rules are real, and over all paths."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import exp, log

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from msg2.assist import rule_probabilities
from msg2.assist.rule_probabilities import (
    CARELESS_ODDS,
    EVIDENCE_WEIGHT,
    LEAST_RARITY,
    PRIOR_MISTAKE_RATE,
    PRIOR_ODDS,
    REPEAT_RARITY,
    RequirementModel,
    RuleProbabilities,
    mistake_probability,
)
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.graph.graph_file import StatedRule

NAMES = "abcde"
PAIRS = list(pairwise(NAMES))
GAINS = st.floats(-30, 30)


def chain(*supports: dict[str, float]) -> SubtaskGraph:
    """a before b before c …, with the support of each pair."""
    preconditions = {after: step(before) for before, after in PAIRS[: len(supports)]}
    evidence = {
        after: {"videos": 40, "edges": {before: support}}
        for (before, after), support in zip(PAIRS, supports, strict=False)
    }
    return SubtaskGraph("t", NAMES, preconditions, {}, evidence)


def tempered(gain: float) -> float:
    """How probably one rule is real, by itself."""
    return 1 / (1 + exp(-EVIDENCE_WEIGHT * gain - PRIOR_ODDS))


def probability_by_enumeration(gains: list[float], odds: float, chosen: list[int]) -> float:
    """Each rule is real or not; the real ones explain their gains, and any real one costs the video that breaks all."""
    weights = {
        real: exp(sum(EVIDENCE_WEIGHT * g for g, true in zip(gains, real, strict=True) if true) + odds * any(real))
        for real in product([False, True], repeat=len(gains))
    }
    return sum(weight for real, weight in weights.items() if any(real[i] for i in chosen)) / sum(weights.values())


@given(st.lists(GAINS, min_size=1, max_size=4), st.none() | st.floats(-40, 2), st.floats(0, 1), st.data())
def test_order_is_the_posterior_over_which_rules_are_real(
    gains: list[float], cost: float | None, careless: float, data: st.DataObject
) -> None:
    """A video that the graph was learned from has paid already: it has no cost."""
    rules = RuleProbabilities(chain(*({"gain": gain} for gain in gains)))
    chances = rules.order(PAIRS[: len(gains)], cost, careless)
    odds = PRIOR_ODDS + CARELESS_ODDS * careless + EVIDENCE_WEIGHT * (cost or 0.0)
    everything = list(range(len(gains)))
    chosen = data.draw(st.lists(st.sampled_from(everything), min_size=1, unique=True))
    assert chances.any_of(chosen) == pytest.approx(probability_by_enumeration(gains, odds, chosen), abs=1e-9)
    assert chances.any_of() == pytest.approx(probability_by_enumeration(gains, odds, everything), abs=1e-9)


@pytest.mark.parametrize("gain", [-1e9, -240.0, 240.0, 1e9])
@pytest.mark.parametrize("cost", [-30.0, 0.0, None])
def test_extreme_gains_are_certain_either_way(gain: float, cost: float | None) -> None:
    found = RuleProbabilities(chain({"gain": gain})).order(PAIRS[:1], cost).any_of()
    assert found == pytest.approx(float(gain > 0), abs=1e-6)


@given(st.lists(GAINS, min_size=2, max_size=4), st.integers(0, 3), st.none() | st.floats(-40, 2))
def test_a_stated_rule_is_certain_whatever_else_is_broken(gains: list[float], place: int, cost: float | None) -> None:
    before, after = PAIRS[place % len(gains)]
    learned = chain(*({"gain": gain, "before": 10, "together": 40} for gain in gains))
    graph = replace(learned, rules=[StatedRule(before=before, after=after)])
    rules = RuleProbabilities(graph)
    chances = rules.order(PAIRS[: len(gains)], cost)
    assert chances.any_of([place % len(gains)]) == chances.any_of() == 1
    assert rules.need(after, step(before), cost) == 1


def test_without_evidence_the_graph_is_believed() -> None:
    free = SubtaskGraph(
        "t", NAMES, {"b": step("a"), "c": any_of([step("a"), step("b")])}, exclusive=["de"], order=["bd"]
    )
    rules = RuleProbabilities(free)
    for new in (True, False):
        cost = -50.0 if new else None
        chances = rules.order([("a", "b"), ("b", "d")], cost)
        assert [chances.any_of([0]), chances.any_of([1]), chances.any_of()] == [1.0, 1.0, 1.0]
        assert rules.exclusive("d", "e", new) == 1
        assert rules.need("b", step("a"), cost) == 1
        assert rules.need("c", free.precondition("c"), cost) == 1
        assert rules.left_out("a", new) == 1
        assert rules.all_left_out(("d", "e"), new) == 1
        assert rules.repeated("a", None, new) == 1


# -- counts -------------------------------------------------------------------------------------------------------

COUNTS = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers((n + 1) // 2, n), st.just(n)))


@given(st.lists(COUNTS, min_size=1, max_size=4), st.booleans())
def test_a_rule_that_videos_break_is_less_of_one(counts: list[tuple[int, int]], new: bool) -> None:
    rules = RuleProbabilities(chain(*({"before": before, "together": n} for before, n in counts)))
    broken = [(n - before, n) for before, n in counts]
    model = RequirementModel.fit(broken, highest=0.5)
    for pair, (k, n) in zip(PAIRS, broken, strict=False):
        found = rules.order([pair], -3.0 if new else None).any_of()
        assert found == pytest.approx(mistake_probability(k + new, n + new, model))


@given(st.dictionaries(st.sampled_from([p for p in product(NAMES, NAMES) if p[0] < p[1]]), GAINS, min_size=1))
def test_a_pair_that_follows_from_others_is_as_sure_as_its_weakest_part(edges: dict[tuple[str, str], float]) -> None:
    """Of several paths, the strongest counts."""
    graph = SubtaskGraph(
        "t", NAMES,
        {b: all_of(step(a) for a, after in edges if after == b) for b in NAMES},
        {},
        {b: {"edges": {a: {"gain": gain} for (a, after), gain in edges.items() if after == b}} for b in NAMES},
    )  # fmt: skip
    ways = networkx.DiGraph(list(edges))
    for a, b in product(ways, ways):
        paths = [list(pairwise(path)) for path in networkx.all_simple_paths(ways, a, b)] if a != b else []
        if paths:
            gain = max(min(edges[pair] for pair in path) for path in paths)
            assert RuleProbabilities(graph).order([(a, b)], None).any_of() == pytest.approx(tempered(gain))


def test_a_path_is_as_sure_as_all_its_parts() -> None:
    graph = chain({"before": 40, "together": 40}, {"before": 30, "together": 40})
    rules = RuleProbabilities(graph)
    first, second, both = (rules.order([pair], None).any_of() for pair in [("a", "b"), ("b", "c"), ("a", "c")])
    assert both == pytest.approx(first * second)
    assert second < first


def test_both_of_an_exclusive_pair() -> None:
    evidence = {"a": {"videos": 20, "exclusive": {"b": 1}}, "b": {"videos": 30, "exclusive": {"a": 1}}}
    rules = RuleProbabilities(SubtaskGraph("t", "abc", {}, {}, evidence, exclusive=["ab"]))
    model = RequirementModel.fit([(1, 49)])
    assert rules.exclusive("a", "b", False) == pytest.approx(mistake_probability(1, 49, model))
    assert rules.exclusive("b", "a", True) == pytest.approx(mistake_probability(2, 50, model))


def test_a_need_that_is_not_met() -> None:
    videos = [f"v{number}" for number in range(50)]
    evidence = {
        "a": {"videos": 48},
        "b": {"videos": 40, "edges": {"a": {"before": 36, "together": 37, "lacking": 3}}},
        "c": {"videos": 30, "holds": 28, "any_gain": 2.0},
    }
    preconditions = {"b": step("a"), "c": any_of([step("a"), step("b")])}
    graph = SubtaskGraph("t", "abc", preconditions, {"videos": videos}, evidence, optional="bc")
    rules, absences = RuleProbabilities(graph), RequirementModel.fit([(2, 50)])
    assert rules.need("b", step("a"), None) == pytest.approx(mistake_probability(3, 40, absences))
    assert rules.need("b", step("a"), 0.0) == pytest.approx(mistake_probability(4, 41, absences))
    assert rules.left_out("a", True) == pytest.approx(mistake_probability(3, 51, absences))
    assert rules.left_out("a", False) == pytest.approx(mistake_probability(2, 50, absences))
    orders = RequirementModel.fit([(1, 37)], highest=0.5)
    either = graph.precondition("c")
    usual = mistake_probability(2, 30, orders), mistake_probability(3, 31, orders)
    assert rules.need("c", either, None) == pytest.approx(usual[0] * tempered(2.0))
    assert rules.need("c", either, -1.5) == pytest.approx(usual[1] * tempered(0.5))


@pytest.mark.parametrize(("both", "lacking"), [(0, 10), (4, 14)])
def test_all_of_an_exclusive_group_left_out(both: int, lacking: int) -> None:
    """60 videos: 20 with a and 30 with b, so that 10 have neither, and as many more as have both."""
    evidence = {"a": {"videos": 20, "exclusive": {"b": both}}, "b": {"videos": 30, "exclusive": {"a": both}},
                "c": {"videos": 59}}  # fmt: skip
    method = {"videos": [f"v{number}" for number in range(60)]}
    rules = RuleProbabilities(SubtaskGraph("t", "abc", {}, method, evidence, exclusive=["ab"]))
    model = RequirementModel.fit([(1, 60)])
    for new in (False, True):
        expected = mistake_probability(lacking + new, 60 + new, model)
        assert rules.all_left_out(("a", "b"), new) == pytest.approx(expected)


def test_doing_a_step_again() -> None:
    evidence = {name: {"videos": 400} for name in "abcdef"}
    rules = RuleProbabilities(SubtaskGraph("t", "abcdef", {}, {}, evidence, repeats={"a": 0.3, "b": 0.05}))
    counts = [(120, 400), (20, 400), *[(0, 400)] * 4]
    model = RequirementModel.fit(counts, least_rarity=REPEAT_RARITY)
    found = [rules.repeated(name, None, True) for name in "abc"]
    assert found == pytest.approx([mistake_probability(k + 1, n + 1, model) for k, n in counts[:3]])
    assert found[0] < found[1] < 0.1 < 0.9 < found[2]  # one run in twenty is usual


def test_doing_a_step_again_right_after_another_one() -> None:
    """A loop from b back to a: usual after b, and never right after a itself."""
    again = {
        "b": {"times": 500, "again": {"a": 100}, "of": {"a": 500}},
        "a": {"times": 600, "again": {}, "of": {"a": 600}},
    }
    graph = SubtaskGraph("t", "abc", {}, {"model": {"repetitions": again}}, {n: {"videos": 500} for n in "abc"},
                         repeats={"a": 0.2})  # fmt: skip
    rules = RuleProbabilities(graph)
    assert rules.repeated("a", "b", True) < 0.01
    assert rules.repeated("a", "a", True) > 0.9
    assert rules.repeated("a", "c", True) < 0.3  # it could never have come then: that says nothing
    assert rules.repeated("a", None, True) < 0.01
    assert rules.repeated("c", "b", True) > 0.9


def test_what_had_to_follow() -> None:
    follows = [
        {"follows": "b", "held": 1759, "videos": 1759},
        {"follows": {"any": ["c", "d"]}, "held": 60, "videos": 100},
    ]
    evidence = {"a": {"videos": 1759, "responses": follows}}
    graph = SubtaskGraph("t", "abcd", {}, {"videos": ["v"] * 1759}, evidence,
                         responses=[("a", step("b")), ("a", any_of([step("c"), step("d")]))])  # fmt: skip
    rules = RuleProbabilities(graph)
    assert rules.not_followed("a", step("b"), True) > 0.9
    assert rules.not_followed("a", any_of([step("c"), step("d")]), True) < 0.1
    assert rules.not_followed("b", step("c"), True) == 1  # without evidence, the graph is believed


def test_a_step_that_nobody_has_seen() -> None:
    def of(videos: int, seldom: int) -> float:
        evidence = {f"s{n}": {"videos": 1 if n < seldom else videos} for n in range(10)}
        graph = SubtaskGraph("t", evidence, {}, {"videos": [f"v{n}" for n in range(videos)]}, evidence)
        return RuleProbabilities(graph).unknown_step()

    assert of(1000, 0) > 0.98
    assert of(1000, 0) > of(20, 0) > of(20, 5)
    assert of(20, 5) < 0.2  # each run brings steps that no other one has
    assert RuleProbabilities(SubtaskGraph("t", "a", {})).unknown_step() == 1


def test_an_edge_without_a_gain_beside_one_with() -> None:
    """An order that nobody measured is taken for real, whatever the rest of the graph says of itself."""
    rules = RuleProbabilities(chain({"gain": -3.0}, {}))
    chances = rules.order(PAIRS[:2], -1.0)
    assert chances.any_of([1]) == chances.any_of() == 1
    assert chances.any_of([0]) < 0.5


# -- the model of requirements ----------------------------------------------------------------------------------------


MODELS = st.builds(RequirementModel, st.floats(0.01, 0.99), st.floats(1, 200), st.sampled_from([1.0, 0.5, 0.2]))
COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
RULES = st.lists(COUNTS, max_size=8)


def probability_by_integrals(k: int, n: int, model: RequirementModel, up_to: float = 1.0) -> float:
    """The rate of a habit is uniform, with the density 1 / `highest`; that of a mistake is Beta(1, b)."""
    w, b = model.genuine, model.rarity
    peak = [k / n] if 0 < k < n and k / n < up_to else None
    habit = quad(lambda x: x**k * (1 - x) ** (n - k), 0, up_to, points=peak)[0] / model.highest
    mistake = quad(lambda x: x**k * (1 - x) ** (n - k) * beta.pdf(x, 1, b), 0, 1, points=[0.01, 0.1])[0]
    return w * mistake / (w * mistake + (1 - w) * habit)


@given(COUNTS, MODELS)
def test_the_probability_is_that_of_the_two_integrals(counts: tuple[int, int], model: RequirementModel) -> None:
    expected = probability_by_integrals(*counts, model)
    assert mistake_probability(*counts, model) == pytest.approx(expected, abs=1e-5)


@given(st.integers(20, 80), st.floats(0, 0.25), st.floats(0.05, 0.95), st.floats(1, 200))
def test_the_highest_rate_of_a_habit_cuts_off_what_hardly_counts(n: int, share: float, w: float, b: float) -> None:
    """Where a rule is broken clearly less often than that, the integral up to it is the whole one."""
    k, model = int(n * share), RequirementModel(w, b, highest=0.5)
    exact = probability_by_integrals(k, n, model, up_to=0.5)
    assert mistake_probability(k, n, model) == pytest.approx(exact, abs=0.005)


@given(COUNTS, MODELS)
def test_the_more_videos_have_it_the_less_it_is_a_mistake(counts: tuple[int, int], model: RequirementModel) -> None:
    (k, n) = counts
    probabilities = [mistake_probability(times, n, model) for times in range(n + 1)]
    assert all(0 <= p <= 1 for p in probabilities)
    assert all(one >= other - 1e-12 for one, other in pairwise(probabilities))
    assert mistake_probability(k, n, model) <= mistake_probability(k, n + 1, model) + 1e-12  # one more without it


@given(COUNTS, st.floats(0.01, 0.99), st.floats(1, 200))
def test_a_habit_within_narrower_bounds_explains_more_of_what_is_rare(
    counts: tuple[int, int], w: float, b: float
) -> None:
    chances = [mistake_probability(*counts, RequirementModel(w, b, highest)) for highest in (1.0, 0.5, 0.1)]
    assert chances == sorted(chances, reverse=True)


def log_posterior(model: RequirementModel, rules: list[tuple[int, int]]) -> float:
    """Of the model, up to a constant: what expectation maximisation climbs."""
    w, b, believed = model.genuine, model.rarity, 1 / PRIOR_MISTAKE_RATE - 1
    grid = (np.arange(4000) + 0.5) / 4000
    total = log(w) + log(1 - w) + log(b) - b / believed
    for k, n in rules:
        seen = grid**k * (1 - grid) ** (n - k)
        total += log(np.mean(seen * (w * b * (1 - grid) ** (b - 1) + (1 - w) / model.highest)))
    return total


@given(RULES, st.sampled_from([1.0, 0.5]))
def test_the_model_becomes_more_probable_with_every_round(rules: list[tuple[int, int]], highest: float) -> None:
    heights = []
    for rounds in (1, 2, 3, 10, 50):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rule_probabilities, "_EM_ROUNDS", rounds)
            model = RequirementModel.fit(rules, highest)
        assert model.rarity >= LEAST_RARITY
        assert model.highest == highest
        heights.append(log_posterior(model, rules))
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(heights))


def test_without_a_rule_it_is_what_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_probabilities, "LEAST_RARITY", 9.0)
    assert RequirementModel.fit([]) == RequirementModel(0.5, pytest.approx(9))


def test_rules_that_nobody_breaks_are_real_and_those_that_half_break_are_not() -> None:
    """What is broken more often than one time in 20 is no mistake."""
    kept, broken = (RequirementModel.fit([(times, 50)] * 20) for times in (0, 25))
    assert kept.genuine > 0.9 > 0.1 > broken.genuine
    assert mistake_probability(1, 51, kept) > 0.9
    assert mistake_probability(26, 51, broken) < 0.01
    mixed = RequirementModel.fit([(0, 50)] * 10 + [(25, 50)] * 10)
    assert mixed.genuine == pytest.approx(0.5, abs=0.05)
