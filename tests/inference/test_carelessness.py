"""Who is careless: planted runs that break many edges, and runs that break one."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msg2
from msg2.graph import SubtaskGraph, step
from msg2.inference.carelessness import _careless, _fit, careless_shares
from msg2.sequences import Sequences
from msg2.task import Segment, Task, Video

PAIRS = ["ab", "cd", "ef", "gh", "ij", "kl"]
NAMES = "".join(PAIRS)
GRAPH = SubtaskGraph("t", NAMES, {after: step(before) for before, after in PAIRS})


def run(broken: str = "") -> str:
    """All pairs in order, but for those that are named by their first step."""
    return "".join(pair[::-1] if pair[0] in broken else pair for pair in PAIRS)


def shares(*runs: str, graph: SubtaskGraph = GRAPH) -> dict[tuple[str, str], float]:
    videos = [Video(f"v{number:03}", map(Segment, order)) for number, order in enumerate(runs)]
    sequences = Sequences.from_task(Task("t", graph.steps, videos, "skipped"))
    return dict(careless_shares(sequences, graph))


def test_only_careless_runs_break_a_rule_and_careful_ones_a_habit() -> None:
    careful, sloppy, habit = [run()] * 60, [run("acegi")] * 10, [run("k")] * 12
    found = shares(*careful, *sloppy, *habit)
    assert set(found) == {("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j"), ("k", "l")}
    assert all(share > 0.95 for pair, share in found.items() if pair != ("k", "l"))
    assert found["k", "l"] < 0.05


def test_a_rule_that_both_break_is_in_between() -> None:
    found = shares(*[run()] * 60, *[run("acegk")] * 10, *[run("k")] * 10)
    assert found["k", "l"] == pytest.approx(0.5, abs=0.1)


def test_nothing_is_said_without_edges_breaks_or_all_labels() -> None:
    assert shares(run("a"), graph=SubtaskGraph("t", NAMES, {})) == {}
    assert shares(*[run()] * 9) == {}
    patchy = msg2.infer([list(order) for order in [*[run()] * 20, *[run("ace")] * 3]], absent="unknown")
    assert all(edge.support is None or edge.support.careless is None for edge in patchy.edges())


def test_edges_of_the_same_step_do_not_tell_on_each_other() -> None:
    """One slip: a comes last, after all that need it. That breaks four edges, and is no sign of carelessness."""
    graph = SubtaskGraph("t", "abcde", {name: step("a") for name in "bcde"})
    found = shares(*["abcde"] * 40, *["bcdea"] * 5, graph=graph)
    apart = shares(*[run()] * 40, *[run("aceg")] * 5)
    assert all(share < 0.5 for share in found.values())
    assert apart["a", "b"] > max(found.values()) + 0.3


@settings(max_examples=25)
@given(st.lists(st.integers(0, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=20))
def test_the_fit_is_a_mixture_in_which_the_careless_break_more(counts: list[tuple[int, int]]) -> None:
    broken, judged = np.array(counts, dtype=float).T
    share, low, high = _fit(broken, judged, np.ones(len(counts)))
    assert 0 < share < 1
    assert 0 < low <= high / 2 < high < 1
    careless = _careless(broken, judged, share, low, high)
    for k, n, found in zip(broken.astype(int), judged.astype(int), careless, strict=True):
        sloppy = share * comb(n, k) * high**k * (1 - high) ** (n - k)
        tidy = (1 - share) * comb(n, k) * low**k * (1 - low) ** (n - k)
        assert found == pytest.approx(sloppy / (sloppy + tidy))


def test_planted_rates_are_found() -> None:
    rng = np.random.default_rng(0)
    rates = np.where(rng.random(3000) < 0.25, 0.3, 0.01)
    judged = np.full(3000, 20.0)
    share, low, high = _fit(rng.binomial(20, rates).astype(float), judged, np.ones(3000))
    assert (share, low, high) == pytest.approx((0.25, 0.01, 0.3), rel=0.1)


def test_what_careless_runs_do_counts_for_nothing() -> None:
    """As many runs break both edges, and only one of these edges is believed."""
    runs = [*[run()] * 40, *[run("aceg")] * 6, *[run("i")] * 6]
    graph = msg2.infer([list(order) for order in runs], absent="skipped")
    chances = []
    for pair, expected in (("ab", 1.0), ("ij", 0.0)):
        support = graph.support(*pair)
        assert support is not None
        assert support.careless == pytest.approx(expected, abs=0.1)
        (mistake,) = msg2.check(graph, {"new": list(run(pair[0]))}).mistakes
        chances.append(mistake.probability)
    assert chances[0] > 0.5 > chances[1]
