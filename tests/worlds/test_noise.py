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
from msg2.options import NoiseOptions, WorldOptions
from msg2.worlds import Demonstration, World, simulate, world

LETTERS = "abcdefghij"
CHAIN = World(SubtaskGraph("chain", LETTERS, {after: step(before) for before, after in pairwise(LETTERS)}))
RATE = 0.3


def demonstrations(**rates: float) -> tuple[Demonstration, ...]:
    noise = replace(NoiseOptions.none(), **rates)
    return simulate(CHAIN, WorldOptions(videos=1500, noise=noise), seed=7).demonstrations


def assert_frequency(count: int, trials: int, rate: float = RATE) -> None:
    """Within four standard deviations of the binomial: one draw in 16,000 would miss it, and the seed is fixed."""
    assert trials > 1000
    assert abs(count / trials - rate) <= 4 * math.sqrt(rate * (1 - rate) / trials)


def shown(show: Demonstration) -> str:
    return "".join(segment.step for segment in show.performed)


def labels_are_right(show: Demonstration) -> bool:
    return list(show.labels) == [segment.step for segment in show.performed]


def test_without_noise_everything_is_done_and_labelled() -> None:
    for show in demonstrations():
        assert "".join(show.intended) == shown(show) == LETTERS
        assert labels_are_right(show)
        assert show.labelled == show.performed
        assert not show.skipped
        assert not show.unlabelled


def test_skipped() -> None:
    shows = demonstrations(skipped=RATE)
    assert_frequency(sum(len(show.skipped) for show in shows), 10 * len(shows))
    for show in shows:
        assert shown(show) == "".join(letter for letter in LETTERS if letter not in show.skipped)
        assert labels_are_right(show)


def test_unlabelled() -> None:
    shows = demonstrations(unlabelled=RATE)
    assert_frequency(sum(len(show.unlabelled) for show in shows), 10 * len(shows))
    for show in shows:
        assert shown(show) == LETTERS
        assert sorted(show.labelled + show.unlabelled, key=lambda s: s.step) == list(show.performed)


def test_swapped() -> None:
    swaps = pairs = 0
    for show in demonstrations(swapped=RATE):
        order, position = shown(show), 0
        while position + 1 < len(order):
            pairs += 1
            if order[position] > order[position + 1]:
                swaps += 1
                position += 1
            position += 1
        assert all(abs(place - LETTERS.index(letter)) <= 1 for place, letter in enumerate(order))
        assert sorted(order) == list(LETTERS)
        assert labels_are_right(show)
    assert_frequency(swaps, pairs)


def test_repeated() -> None:
    shows = demonstrations(repeated=RATE)
    assert_frequency(sum(len(show.performed) - 10 for show in shows), 10 * len(shows))
    for show in shows:
        assert "".join(dict.fromkeys(shown(show))) == LETTERS, "first occurrences keep their order"
        assert max(Counter(shown(show)).values()) <= 2
        assert labels_are_right(show)


def test_mislabelled() -> None:
    shows = demonstrations(mislabelled=RATE)
    wrong = Counter(
        (segment.step, label)
        for show in shows
        for segment, label in zip(show.performed, show.labels, strict=True)
        if label != segment.step
    )
    assert_frequency(sum(wrong.values()), 10 * len(shows))
    assert len(wrong) == 10 * 9, "any other step of the task"
    by_label = Counter(label for _, label in wrong.elements())
    for count in by_label.values():
        assert_frequency(count, by_label.total(), 1 / 10)
    assert all(shown(show) == LETTERS for show in shows)
    assert all([s.step for s in show.labelled] == list(show.labels) for show in shows)


def test_overlapping() -> None:
    shows = demonstrations(overlapping=RATE)
    pairs = [pair for show in shows for pair in pairwise(show.performed)]
    assert_frequency(sum(not one.before(other) for one, other in pairs), len(pairs))
    assert all(one.start < other.start and one.end < other.end for one, other in pairs)  # type: ignore[operator]
    assert all(shown(show) == LETTERS for show in shows)


def test_times_are_log_normal() -> None:
    shows = simulate(CHAIN, WorldOptions(videos=1000, noise=NoiseOptions.none()), seed=1).demonstrations
    times = np.array([[(segment.start, segment.end) for segment in show.performed] for show in shows])
    starts, ends = times[..., 0], times[..., 1]
    durations = np.log(ends - starts).ravel()
    gaps = np.log(np.maximum(starts[:, 1:] - ends[:, :-1], 0.01)).ravel()
    for logs, median, spread in ((durations, 5, 1), (gaps, 6, 1.5)):
        assert np.median(logs) == pytest.approx(math.log(median), abs=0.06)
        assert np.std(logs) == pytest.approx(spread, rel=0.04)
    assert (starts[:, 0] >= 0).all()


@pytest.mark.parametrize("both", [0.0, 0.25, 1.0])
def test_both_branches(both: float) -> None:
    options = WorldOptions(videos=2000, both_branches=both, noise=NoiseOptions.none())
    pairs = [({"grind beans"}, {"open ground coffee"}), ({"boil water in kettle"}, {"heat water in microwave"})]
    done = [set(show.intended) for show in simulate(world("Make Coffee"), options, seed=2).demonstrations]
    for one, other in pairs:
        assert all(steps & (one | other) for steps in done)
        assert_frequency(sum(one | other <= steps for steps in done), len(done), both)
        assert_frequency(sum(one <= steps for steps in done), len(done), 0.5 + both / 2)
    assert all(("fill kettle" in steps) == ("boil water in kettle" in steps) for steps in done), "only what is needed"


def test_free_order_is_uniform() -> None:
    free = World(SubtaskGraph("free", "abc", {}))
    shows = simulate(free, WorldOptions(videos=3000, noise=NoiseOptions.none()), seed=4).demonstrations
    counts = Counter(shown(show) for show in shows)
    assert len(counts) == 6
    for count in counts.values():
        assert_frequency(count, 3000, 1 / 6)


@pytest.mark.parametrize("rate", [-0.1, 1.5, math.nan])
def test_rates_are_probabilities(rate: float) -> None:
    with pytest.raises(InputError, match=r"swapped is .* must be between 0 and 1"):
        NoiseOptions(swapped=rate)
    with pytest.raises(InputError, match="both-branches is"):
        WorldOptions(both_branches=rate)
