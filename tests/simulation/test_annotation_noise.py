"""Every named rate, alone, does what it says and as often as it says."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.simulation import Demonstration, NoiseOptions, World, household_world, simulate
from msg2.simulation.simulator import SimulationOptions

LETTERS = "abcdefghij"
CHAIN = World(SubtaskGraph("chain", LETTERS, {after: step(before) for before, after in pairwise(LETTERS)}))
RATE = 0.3


def simulate_with(**rates: float) -> tuple[Demonstration, ...]:
    noise = replace(NoiseOptions.none(), **rates)
    return simulate(CHAIN, SimulationOptions(videos=1500, noise=noise), seed=7).demonstrations


def assert_frequency(count: int, trials: int, rate: float = RATE) -> None:
    """Within four standard deviations of the binomial: one draw in 16,000 would miss it, and the seed is fixed."""
    assert trials > 1000
    assert abs(count / trials - rate) <= 4 * math.sqrt(rate * (1 - rate) / trials)


def shown(demonstration: Demonstration) -> str:
    return "".join(segment.step for segment in demonstration.performed)


def labels_are_right(demonstration: Demonstration) -> bool:
    return list(demonstration.labels) == [segment.step for segment in demonstration.performed]


def test_without_noise_everything_is_done_and_labelled() -> None:
    for demonstration in simulate_with():
        assert "".join(demonstration.intended) == shown(demonstration) == LETTERS
        assert labels_are_right(demonstration)
        assert demonstration.labelled == demonstration.performed
        assert not demonstration.skipped
        assert not demonstration.unlabelled


def test_skipped() -> None:
    demonstrations = simulate_with(skipped=RATE)
    assert_frequency(sum(len(demonstration.skipped) for demonstration in demonstrations), 10 * len(demonstrations))
    for demonstration in demonstrations:
        assert shown(demonstration) == "".join(letter for letter in LETTERS if letter not in demonstration.skipped)
        assert labels_are_right(demonstration)


def test_unlabelled() -> None:
    demonstrations = simulate_with(unlabelled=RATE)
    assert_frequency(sum(len(demonstration.unlabelled) for demonstration in demonstrations), 10 * len(demonstrations))
    for demonstration in demonstrations:
        assert shown(demonstration) == LETTERS
        assert sorted(demonstration.labelled + demonstration.unlabelled, key=lambda s: s.step) == list(
            demonstration.performed
        )


def test_swapped() -> None:
    swaps = pairs = 0
    for demonstration in simulate_with(swapped=RATE):
        order, position = shown(demonstration), 0
        while position + 1 < len(order):
            pairs += 1
            if order[position] > order[position + 1]:
                swaps += 1
                position += 1
            position += 1
        assert all(abs(place - LETTERS.index(letter)) <= 1 for place, letter in enumerate(order))
        assert sorted(order) == list(LETTERS)
        assert labels_are_right(demonstration)
    assert_frequency(swaps, pairs)


def test_repeated() -> None:
    demonstrations = simulate_with(repeated=RATE)
    assert_frequency(
        sum(len(demonstration.performed) - 10 for demonstration in demonstrations), 10 * len(demonstrations)
    )
    for demonstration in demonstrations:
        assert "".join(dict.fromkeys(shown(demonstration))) == LETTERS, "first occurrences keep their order"
        assert max(Counter(shown(demonstration)).values()) <= 2
        assert labels_are_right(demonstration)


def test_mislabelled() -> None:
    demonstrations = simulate_with(mislabelled=RATE)
    wrong = Counter(
        (segment.step, label)
        for demonstration in demonstrations
        for segment, label in zip(demonstration.performed, demonstration.labels, strict=True)
        if label != segment.step
    )
    assert_frequency(sum(wrong.values()), 10 * len(demonstrations))
    assert len(wrong) == 10 * 9, "any other step of the task"
    by_label = Counter(label for _, label in wrong.elements())
    for count in by_label.values():
        assert_frequency(count, by_label.total(), 1 / 10)
    assert all(shown(demonstration) == LETTERS for demonstration in demonstrations)
    assert all(
        [s.step for s in demonstration.labelled] == list(demonstration.labels) for demonstration in demonstrations
    )


def test_overlapping() -> None:
    demonstrations = simulate_with(overlapping=RATE)
    pairs = [pair for demonstration in demonstrations for pair in pairwise(demonstration.performed)]
    assert_frequency(sum(not one.before(other) for one, other in pairs), len(pairs))
    assert all(one.start < other.start and one.end < other.end for one, other in pairs)  # type: ignore[operator]
    assert all(shown(demonstration) == LETTERS for demonstration in demonstrations)


def test_times_are_log_normal() -> None:
    demonstrations = simulate(CHAIN, SimulationOptions(videos=1000, noise=NoiseOptions.none()), seed=1).demonstrations
    times = np.array(
        [[(segment.start, segment.end) for segment in demonstration.performed] for demonstration in demonstrations]
    )
    starts, ends = times[..., 0], times[..., 1]
    durations = np.log(ends - starts).ravel()
    gaps = np.log(np.maximum(starts[:, 1:] - ends[:, :-1], 0.01)).ravel()
    for logs, median, spread in ((durations, 5, 1), (gaps, 6, 1.5)):
        assert np.median(logs) == pytest.approx(math.log(median), abs=0.06)
        assert np.std(logs) == pytest.approx(spread, rel=0.04)
    assert (starts[:, 0] >= 0).all()


@pytest.mark.parametrize("both", [0.0, 0.25, 1.0])
def test_both_branches(both: float) -> None:
    options = SimulationOptions(videos=2000, both_branches=both, noise=NoiseOptions.none())
    pairs = [({"grind beans"}, {"open ground coffee"}), ({"boil water in kettle"}, {"heat water in microwave"})]
    done = [
        set(demonstration.intended)
        for demonstration in simulate(household_world("Make Coffee"), options, seed=2).demonstrations
    ]
    for one, other in pairs:
        assert all(steps & (one | other) for steps in done)
        assert_frequency(sum(one | other <= steps for steps in done), len(done), both)
        assert_frequency(sum(one <= steps for steps in done), len(done), 0.5 + both / 2)
    assert all(("fill kettle" in steps) == ("boil water in kettle" in steps) for steps in done), "only what is needed"


def test_free_order_is_uniform() -> None:
    free = World(SubtaskGraph("free", "abc", {}))
    demonstrations = simulate(free, SimulationOptions(videos=3000, noise=NoiseOptions.none()), seed=4).demonstrations
    counts = Counter(shown(demonstration) for demonstration in demonstrations)
    assert len(counts) == 6
    for count in counts.values():
        assert_frequency(count, 3000, 1 / 6)


@pytest.mark.parametrize("rate", [-0.1, 1.5, math.nan])
def test_rates_are_probabilities(rate: float) -> None:
    with pytest.raises(InputError, match=r"swapped is .* must be a number from 0 to 1"):
        NoiseOptions(swapped=rate)
    with pytest.raises(InputError, match="both_branches is"):
        SimulationOptions(both_branches=rate)
