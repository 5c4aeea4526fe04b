"""Plans between two known steps, against counts by hand, brute force over all windows and planted chains."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.forecasting import window_planning
from experiments.forecasting.window_planning import (
    CONCENTRATION,
    DEFAULT_PRIOR,
    FEATURES,
    candidate_windows,
    count_windows,
    fit_window_planner,
    fit_window_weights,
    penalised_loss,
    window_features,
)
from msg2.assist.learned_forecaster import k_fold_split
from msg2.errors import InputError
from msg2.task import Segment, Task, Video

NAMES = "abcd"
TEXTS = st.lists(st.text(NAMES, max_size=9), min_size=1, max_size=8)


def task_of(texts: list[str], steps: str = NAMES) -> Task:
    return Task("t", steps, [Video(f"v{n:03}", map(Segment, text)) for n, text in enumerate(texts)])


def indices(texts: list[str]) -> list[tuple[int, ...]]:
    return [tuple(map(NAMES.index, text)) for text in texts]


def windows(texts: list[str], length: int) -> Counter[str]:
    return Counter(text[start : start + length] for text in texts for start in range(len(text) - length + 1))


@given(TEXTS, st.integers(3, 5))
def test_counts_are_those_of_a_counter(texts: list[str], length: int) -> None:
    counts = count_windows(indices(texts), 4, length)
    rows = np.array(list(product(range(4), repeat=length)))
    words = ["".join(NAMES[n] for n in row) for row in rows]
    seen, longer = windows(texts, length), Counter[str]()
    for word, count in windows(texts, length + 1).items():
        for place in range(1, length):
            longer[word[:place] + word[place + 1 :]] += count
    assert counts.windows.lookup(rows).tolist() == [seen[word] for word in words]
    assert counts.longer_windows.lookup(rows).tolist() == [longer[word] for word in words]
    assert counts.bigram.sum(axis=1) == pytest.approx(1)
    assert counts.next_but_one.sum(axis=1) == pytest.approx(1)
    assert counts.frequency.sum() == pytest.approx(1)
    assert counts.usual_order == pytest.approx(-counts.usual_order.T)


@given(TEXTS)
def test_smoothing_is_witten_and_bells(texts: list[str]) -> None:
    """(count + different followers · backoff) / (all + different followers), at least one follower held back."""
    counts = count_windows(indices(texts), 4, 3)
    single, pairs, triples = (windows(texts, n) for n in (1, 2, 3))

    def smoothed(context: str, name: str, seen: Counter[str], backoff: float) -> float:
        after = [seen[context + other] for other in NAMES]
        held_back = max(1, sum(one > 0 for one in after))
        return (seen[context + name] + held_back * backoff) / (sum(after) + held_back)

    rows = np.array(list(product(range(4), repeat=3)))
    trigram = window_features(counts, rows)[:, FEATURES.index("trigram")]
    for (a, b, c), found in zip(product(NAMES, repeat=3), trigram.tolist(), strict=True):
        share = {name: (single[name] + 1) / (single.total() + 4) for name in NAMES}
        first = smoothed(a, b, pairs, share[b])
        second = smoothed(a + b, c, triples, smoothed(b, c, pairs, share[c]))
        assert found == pytest.approx(np.log(first) + np.log(second))


@settings(max_examples=25)
@given(TEXTS, st.integers(3, 4))
def test_probabilities_are_those_of_the_definition(texts: list[str], length: int) -> None:
    planner = fit_window_planner(task_of(texts), length, weights := np.linspace(-0.5, 1, len(FEATURES)))
    seen = windows(texts, length)
    for first, last in product(NAMES, repeat=2):
        words = ["".join((first, *middle, last)) for middle in product(NAMES, repeat=length - 2)]
        rows = np.array([[NAMES.index(name) for name in word] for word in words])
        base = np.exp(window_features(planner.counts, rows) @ weights)
        base /= base.sum()
        total = sum(seen[word] for word in words)
        expected = {
            tuple(word): (seen[word] + CONCENTRATION * share) / (total + CONCENTRATION)
            for word, share in zip(words, base.tolist(), strict=True)
        }
        plans = planner.plan(first, last, k=len(words))
        assert {plan.steps: plan.probability for plan in plans} == pytest.approx(expected)
        assert sum(expected.values()) == pytest.approx(1)
        assert all(plan.exact for plan in plans)
        probabilities = [round(plan.probability or 0, 9) for plan in plans]
        assert probabilities == sorted(probabilities, reverse=True)
        assert planner.plan(first, last) == plans[:1]


@settings(max_examples=20)
@given(TEXTS, st.integers(0, 99))
def test_the_gradient_is_that_of_the_loss(texts: list[str], seed: int) -> None:
    from scipy.optimize import check_grad

    inside, others = k_fold_split(indices([*texts, "abcabd"]), 2)[0]
    observed = window_planning._observed_windows([*inside, (0, 1, 2, 3)], count_windows(others, 4, 4))
    assert observed is not None
    loss = penalised_loss(observed)
    weights = np.random.default_rng(seed).normal(size=len(FEATURES))
    error = check_grad(lambda w: loss(w)[0], lambda w: loss(w)[1], weights)
    assert error < 1e-3 * (1 + np.linalg.norm(loss(weights)[1]))


def test_fitted_weights_are_better_where_videos_are_held_out() -> None:
    """On windows with counts from other folds, the weights found beat the prior, and any that are near."""
    rng = np.random.default_rng(0)
    task = task_of(["".join(rng.choice(["abcd", "abdc", "bacd"]) for _ in range(2)) for _ in range(30)])
    sequences = indices(["".join(video.segments[n].step for n in range(8)) for video in task])
    parts = [window_planning._observed_windows(one, count_windows(rest, 4, 4)) for one, rest in k_fold_split(sequences)]
    loss = penalised_loss(window_planning._concatenate_windows([part for part in parts if part is not None]))
    found = fit_window_weights([task], 4)
    assert loss(found)[0] < loss(DEFAULT_PRIOR)[0]
    assert all(loss(found)[0] <= loss(found + rng.normal(0, 0.05, len(FEATURES)))[0] for _ in range(20))


def test_a_planted_chain_is_planned_as_well_as_can_be() -> None:
    """Of a second-order chain, the best answer is known: what is learned is right nearly as often."""
    rng = np.random.default_rng(1)
    follows = rng.dirichlet(np.full(5, 0.3), size=(5, 5))

    def sample(count: int) -> list[list[int]]:
        made = []
        for _ in range(count):
            one = rng.integers(5, size=2).tolist()
            while len(one) < 9:
                one.append(int(rng.choice(5, p=follows[one[-2], one[-1]])))
            made.append(one)
        return made

    def as_task(sequences: list[list[int]]) -> Task:
        videos = [Video(f"v{n:04}", [Segment("abcde"[s]) for s in one]) for n, one in enumerate(sequences)]
        return Task("t", "abcde", videos)

    pair = np.full((5, 5), 1 / 25)  # how often a window begins with a pair: nearly the stationary distribution
    for _ in range(4):
        pair = np.einsum("ab,abc->bc", pair, follows)
    chance = np.einsum("ab,abc,bcd->abcd", pair, follows, follows)
    best = chance.transpose(0, 3, 1, 2).reshape(5, 5, 25).argmax(axis=2)
    planner = fit_window_planner(as_task(sample(300)), 4)
    test = [one[start : start + 4] for one in sample(200) for start in range(6)]
    known = {(a, z): planner.plan("abcde"[a], "abcde"[z])[0].steps for a in range(5) for z in range(5)}
    learned = np.mean([known[one[0], one[-1]] == tuple("abcde"[s] for s in one) for one in test])
    optimal = np.mean([best[one[0], one[-1]] == 5 * one[1] + one[2] for one in test])
    assert optimal - 0.03 < learned < optimal + 0.02


def test_other_names_only_relabel() -> None:
    texts = ["abcd", "abdc", "abcda", "cabd", "aabcd"]
    renamed = ["".join(dict(zip(NAMES, "dbca", strict=True))[name] for name in text) for text in texts]
    one, other = (fit_window_planner(task_of(list(each)), 4) for each in (texts, renamed))
    assert one.weights == pytest.approx(other.weights, abs=1e-3)
    (plan,), (again,) = one.plan("a", "d"), other.plan("d", "a")
    assert plan.steps == ("a", "b", "c", "d")
    assert again.steps == ("d", "b", "c", "a")
    assert plan.probability == pytest.approx(again.probability, abs=1e-4)


@settings(max_examples=30)
@given(TEXTS, st.integers(4, 5), st.integers(1, 20))
def test_of_too_many_windows_the_best_by_the_bigram_and_those_seen_are_weighed(
    texts: list[str], length: int, most: int
) -> None:
    counts = count_windows(indices(texts), 4, length)
    everything = candidate_windows(counts, 0, 1)
    assert len(everything) == 4 ** (length - 2)
    scores = window_features(counts, everything)[:, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_planning, "MAX_CANDIDATES", most)
        found = {tuple(row) for row in candidate_windows(counts, 0, 1).tolist()}
        plans = fit_window_planner(task_of(texts), length, DEFAULT_PRIOR).plan("a", "b", k=999)
    assert len(plans) == len(found)
    assert all(plan.exact == (len(found) == len(everything)) for plan in plans)
    worst = sorted(scores.tolist())[-min(most, len(scores))]
    for row, score in zip(everything.tolist(), scores.tolist(), strict=True):
        word = "".join(NAMES[n] for n in row)
        assert (tuple(row) in found) or (score <= worst + 1e-9 and not windows(texts, length)[word])


def test_nothing_to_learn_from() -> None:
    planner = fit_window_planner(task_of(["", "ab"]), 4)
    assert planner.weights.tolist() == DEFAULT_PRIOR.tolist()
    assert len(planner.plan("a", "d")[0].steps) == 4
    assert fit_window_planner(task_of(["aaaa"], "a"), 3).plan("a", "a")[0].probability == pytest.approx(1)


def test_wrong_questions_are_explained() -> None:
    planner = fit_window_planner(Task("t", ["boil", "pour"], [Video("v", map(Segment, ["boil", "pour"]))]), 3)
    with pytest.raises(InputError, match="'boyl' is not a step") as error:
        planner.plan("boyl", "pour")
    assert error.value.hint == "did you mean 'boil'?"
    with pytest.raises(InputError, match="k is 0"):
        planner.plan("boil", "pour", k=0)
    with pytest.raises(InputError, match="length is 2"):
        fit_window_planner(task_of(["abc"]), 2)
    with pytest.raises(InputError, match="too long"):
        fit_window_planner(task_of(["abc"]), 40)
