"""Which steps a run does: planted truths recovered, what cannot be told left open, no claim without evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from msg2.inference.likelihood.presence import PresenceModel, log_any_rate, log_binomial, log_rate_above
from msg2.sequences import Sequences, Variants
from msg2.task import Absent, Segment, Task, Video

REQUIRED = ("r1", "r2", "r3", "r4")
OPTIONAL = {"o3": 0.3, "o5": 0.5, "o7": 0.7}
STEPS = (*REQUIRED, *OPTIONAL, "x1", "x2", "s1", "s2")
"""x1 and x2 are exclusive, one of them in every run; s1 is done in half of the runs, s2 in 6 of 10 of these."""


def task_of(sets: Iterable[Iterable[str]], steps: Iterable[str]) -> Task:
    return Task("t", steps, [Video(f"v{i:05d}", map(Segment, shown)) for i, shown in enumerate(sets)])


def fit(sets: Iterable[Iterable[str]], steps: Iterable[str], absent: Absent = "unknown") -> PresenceModel:
    return PresenceModel.fit(Variants.from_sequences(Sequences.from_task(task_of(sets, steps))), absent)


def planted_run(rng: np.random.Generator) -> list[str]:
    done = [*REQUIRED, *(name for name, rate in OPTIONAL.items() if rng.random() < rate)]
    done.append("x1" if rng.random() < 0.5 else "x2")
    if rng.random() < 0.5:
        done += ["s1", "s2"] if rng.random() < 0.6 else ["s1"]
    return done


def planted(videos: int, missing: float, seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[name for name in planted_run(rng) if rng.random() >= missing] for _ in range(videos)]


class Named:
    """A model with its findings by name."""

    def __init__(self, model: PresenceModel, steps: Iterable[str]) -> None:
        self.steps = sorted(steps)
        self.model = model
        self.required = {n for n, required in zip(self.steps, model.required, strict=True) if required}
        self.exclusive = {self._pair(place) for place in np.argwhere(np.triu(model.exclusive)).tolist()}
        self.implied = {self._pair(place) for place in np.argwhere(model.implied).tolist()}

    def _pair(self, place: Sequence[int]) -> tuple[str, str]:
        return self.steps[place[0]], self.steps[place[1]]

    def done_rate(self, name: str) -> float:
        """How often a run does a step, from how often a video shows it."""
        shown = np.average(self.model.shown[:, self.steps.index(name)], weights=self.model.weight)
        return float(shown / (1 - self.model.absent_rate))


# -- planted truths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.4])
def test_planted_truths_are_recovered(missing: float, seed: int) -> None:
    """Within four standard errors of what a sample of so many videos can say."""
    videos = 2000
    found = Named(fit(planted(videos, missing, seed), STEPS), STEPS)
    error = sqrt(missing * (1 - missing) / (len(REQUIRED) * videos))
    assert found.model.absent_rate == pytest.approx(missing, abs=4 * error + 1 / videos)
    assert found.required == set(REQUIRED)
    assert found.exclusive == {("x1", "x2")}
    assert {pair for pair in found.implied if pair[0] not in REQUIRED} == {("s1", "s2")}
    assert {pair for pair in found.implied if pair[0] in REQUIRED} == {
        (a, b) for a in REQUIRED for b in STEPS if a != b
    }
    for name, rate in {**OPTIONAL, "x1": 0.5, "s1": 0.5, "s2": 0.3}.items():
        shown = rate * (1 - missing)
        error_of_rate = sqrt(shown * (1 - shown) / videos) / (1 - missing) + error / (1 - missing)
        assert found.done_rate(name) == pytest.approx(rate, abs=4 * error_of_rate + 1 / videos)


def test_fewer_videos_are_read_less_surely_but_without_missing_labels_still_rightly() -> None:
    for seed in range(5):
        found = Named(fit(planted(100, 0.0, seed), STEPS), STEPS)
        assert found.required == set(REQUIRED)
        assert found.exclusive == {("x1", "x2")}
        assert ("s1", "s2") in found.implied


def test_where_every_label_is_there_what_is_absent_was_left_out_which_is_rare() -> None:
    """People leave out 4 % of what the task needs: with `skipped` and with `unknown` alike."""
    rng = np.random.default_rng(0)
    sets = [[name for name in planted_run(rng) if name not in REQUIRED or rng.random() >= 0.04] for _ in range(1000)]
    for absent in ("skipped", "unknown"):
        found = Named(fit(sets, STEPS, absent), STEPS)
        assert found.required == set(REQUIRED)
        assert found.model.absent_rate == pytest.approx(0.04, abs=4 * sqrt(0.04 * 0.96 / 4000))


def test_steps_too_many_do_not_hide_what_is_exclusive() -> None:
    rng = np.random.default_rng(1)
    sets = [planted_run(rng) for _ in range(1000)]
    odd = [{*done, STEPS[rng.integers(len(STEPS))]} if rng.random() < 0.03 else done for done in sets]
    found = Named(fit(odd, STEPS, "skipped"), STEPS)
    assert found.exclusive == {("x1", "x2")}
    assert found.required == set(REQUIRED)
    assert ("s1", "s2") in found.implied


# -- what cannot be told ------------------------------------------------------------------------------------------


def halves(rng: np.random.Generator, names: str) -> list[str]:
    return [name for name in names if rng.random() < 0.5]


@pytest.mark.parametrize("seed", range(5))
def test_optional_at_one_half_is_told_from_half_unlabelled_by_a_step_that_is_always_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounded = Named(fit([["a", *halves(rng, "bcdefgh")] for _ in range(200)], "abcdefgh"), "abcdefgh")
    assert bounded.required == {"a"}
    assert bounded.model.absent_rate < 0.02
    unlabelled = Named(fit([halves(rng, "abcdefgh") for _ in range(200)], "abcdefgh"), "abcdefgh")
    assert unlabelled.required == set("abcdefgh")  # the simpler reading, where nothing speaks against it
    assert unlabelled.model.absent_rate == pytest.approx(0.5, abs=4 * sqrt(0.25 / 1600))


@pytest.mark.parametrize("seed", range(20))
def test_no_step_is_absent_less_often_than_the_rate_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    videos, steps = int(rng.integers(10, 300)), int(rng.integers(2, 12))
    shown = rng.random((videos, steps)) < rng.random(steps) ** rng.choice([0.2, 0.5, 1])
    names = [f"step {n:02d}" for n in range(steps)]
    model = fit([[n for n, there in zip(names, row, strict=True) if there] for row in shown], names)
    least, rate = 1 - model.shown.mean(axis=0).max(), model.absent_rate
    assert 0 < rate < 1
    assert rate <= least + 4.5 * sqrt(rate * (1 - rate) / len(model.shown))


# -- exclusive ----------------------------------------------------------------------------------------------------


def rare_steps(videos: int, seed: int) -> PresenceModel:
    """Five steps that have nothing to do with each other, each in 6 % of the videos."""
    rng = np.random.default_rng(seed)
    sets = [["a", *(name for name in "bcdef" if rng.random() < 0.06)] for _ in range(videos)]
    return fit(sets, "abcdef", "skipped")


@pytest.mark.parametrize("videos", [20, 50, 100])
def test_rare_steps_that_never_meet_by_chance_are_free(videos: int) -> None:
    never_met = 0
    for seed in range(10):
        model = rare_steps(videos, seed)
        counts = model.shown.astype(int).T @ model.shown
        seen = counts.diagonal() > 0
        never_met += int((np.triu(counts == 0, k=1) & np.outer(seen, seen)).sum())
        assert not model.exclusive.any()
    assert never_met > 40


def test_of_steps_that_should_have_met_once_or_twice_few_are_taken_for_exclusive() -> None:
    """In 300 videos a pair is expected to meet 1.1 times: never is no evidence, and mostly not taken for any."""
    wrong = sum(int(np.triu(rare_steps(300, seed).exclusive).sum()) for seed in range(30))
    assert wrong <= 0.1 * 30 * 10


def test_steps_that_never_meet_though_they_should_are_exclusive() -> None:
    often = [["a", "b" if n % 2 else "c"] for n in range(40)]
    assert Named(fit(often, "abc"), "abc").exclusive == {("b", "c")}
    together = [["a", *("bc" if n % 2 else "")] for n in range(40)]
    assert Named(fit(together, "abc"), "abc").exclusive == set()


def test_alternatives_of_which_both_are_seen_are_not_exclusive() -> None:
    sets = ["ad", "bd", "abd", "ad", "bd", "bad"] * 20  # d needs a or b; in a third of the runs both are done
    assert Named(fit(sets, "abd"), "abd").exclusive == set()
    once_in_a_while = ["ad", "bd"] * 60 + ["abd"]
    assert Named(fit(once_in_a_while, "abd"), "abd").exclusive == {("a", "b")}


def test_an_exclusive_pair_implies_nothing_of_each_other() -> None:
    model = fit([["a", "b" if n % 2 else "c"] for n in range(40)], "abc")
    assert not (model.exclusive & model.implied).any()
    assert (model.exclusive == model.exclusive.T).all()
    assert not model.exclusive.diagonal().any()
    assert not model.implied.diagonal().any()


# -- invariance and small data ------------------------------------------------------------------------------------

SETS = st.lists(st.sets(st.sampled_from("abcde")), min_size=1, max_size=12)


def same(one: PresenceModel, other: PresenceModel, order: Sequence[int]) -> None:
    assert one.absent_rate == pytest.approx(other.absent_rate, abs=1e-9)
    assert one.extra_rate == other.extra_rate
    assert (one.required[[*order]] == other.required).all()
    for name in ("implied", "exclusive"):
        assert (getattr(one, name)[np.ix_(order, order)] == getattr(other, name)).all()


@given(SETS, st.permutations("abcde"), st.randoms(use_true_random=False))
def test_other_names_and_another_order_of_videos_only_relabel(
    sets: list[set[str]], names: list[str], randomness: object
) -> None:
    other_name = dict(zip("abcde", names, strict=True))
    renamed = [{other_name[name] for name in shown} for shown in sets]
    randomness.shuffle(renamed)  # type: ignore[attr-defined]
    order = ["abcde".index(old) for old, _ in sorted(other_name.items(), key=lambda both: both[1])]
    same(fit(map(sorted, sets), "abcde"), fit(map(sorted, renamed), "abcde"), order)


def test_many_steps_and_videos_in_any_order() -> None:
    sets = planted(150, 0.2, 7)
    found = fit(sets, STEPS)
    turned = {name: f"{len(STEPS) - place:02d}" for place, name in enumerate(sorted(STEPS))}
    other = fit([[turned[name] for name in shown] for shown in reversed(sets)], turned.values())
    same(found, other, range(len(STEPS))[::-1])


@pytest.mark.parametrize("absent", ["unknown", "skipped"])
@pytest.mark.parametrize(
    ("sets", "steps", "required"),
    [
        ([], "", ""),
        ([], "ab", ""),
        ([""], "ab", ""),
        (["a"], "a", "a"),
        (["ab"], "ab", "ab"),
        (["", "ab", ""], "ab", "ab"),  # a video without labels says nothing
        (["ab"] * 9, "abz", "ab"),  # nobody does z: nothing is known about it
        (["abcdefghij"], "abcdefghij", "abcdefghij"),
    ],
)
def test_little_data_gives_defined_results(sets: list[str], steps: str, required: str, absent: Absent) -> None:
    found = Named(fit(sets, steps, absent), steps)
    assert found.required == set(required)
    assert found.exclusive == set()
    assert {b for _, b in found.implied} <= set(required)
    assert 0 < found.model.absent_rate < 1
    assert 0 < found.model.extra_rate < 1


# -- integrals ----------------------------------------------------------------------------------------------------

COUNTS = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def integral(function: Callable[[float], float], low: float, high: float, peak: float) -> float:
    return float(quad(function, low, high, points=[peak] if low < peak < high else None)[0])


@given(COUNTS, st.floats(0.01, 0.9))
def test_unknown_rates_are_integrated_out(counts: tuple[int, int], rate: float) -> None:
    k, n = counts
    assert np.exp(log_binomial(np.array(k), n, rate)) == pytest.approx(rate**k * (1 - rate) ** (n - k))
    whole = integral(lambda x: x**k * (1 - x) ** (n - k), 0, 1, k / n)
    assert np.exp(log_any_rate(np.array(k), np.array(n))) == pytest.approx(whole)


@given(COUNTS, st.floats(0.01, 0.5))
def test_a_rate_above_a_bound_is_the_integral_where_that_is_what_is_seen(counts: tuple[int, int], least: float) -> None:
    """Else an upper bound by large deviations: what is seen so rarely is improbable at any rate above the bound."""
    k, n = counts
    exact = integral(lambda x: x**k * (1 - x) ** (n - k), least, 1, k / n) / (1 - least)
    found = float(np.exp(log_rate_above(np.array(k), np.array(n), least)))
    assert found >= exact * (1 - 1e-6)
    if k / n > least + 3 * sqrt(least * (1 - least) / n):
        assert found == pytest.approx(exact, rel=0.1)
    if k / n < least:
        usual = max(k / n, 1e-12)
        chance = least**k * (1 - least) ** (n - k) / (usual**k * (1 - usual) ** (n - k))
        assert found == pytest.approx(
            float(np.exp(log_any_rate(np.array(k), np.array(n)))) * chance / (1 - least), rel=1e-6
        )
