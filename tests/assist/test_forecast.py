"""The learned next-step model against scikit-learn and brute force; what must hold for any data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist import LEARNT_RANKERS, endings, evaluate, learned, outlook, recency, waiting
from msg2.assist.calibration import Prediction, predictions, reliability
from msg2.assist.choice import Choices, Moments, Penalty, best_penalty, fitted, penalties
from msg2.assist.forecast import FEATURES, folded, known, places, places_of
from msg2.assist.situations import COUNTED, counted, counts, similar, situations, under_graph
from msg2.assist.transfer import borrowed, likeness
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, step
from msg2.media.text import HashedWords
from msg2.options import ForecastOptions, WorldOptions
from msg2.task import Segment, Task, Video
from msg2.worlds import simulate, world

NAMES = "abcd"
GRAPH = SubtaskGraph("t", NAMES, {"c": all_of([step("a"), step("b")])})


def task_of(sequences: Sequence[str], steps: str = NAMES, name: str = "t") -> Task:
    return Task(name, steps, [Video(f"v{n:02}", map(Segment, s)) for n, s in enumerate(sequences)])


SEQUENCES = st.lists(st.permutations(NAMES).flatmap(lambda p: st.integers(1, 4).map(lambda n: "".join(p[:n]))),
                     min_size=1, max_size=8)  # fmt: skip
DONE = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)


# -- the choice -------------------------------------------------------------------------------------------------


def random_choices(rng: np.random.Generator, rows: int = 60, features: int = 2, all_open: bool = False) -> Choices:
    open_ = np.ones((rows, 3), dtype=bool) if all_open else rng.random((rows, 3)) < 0.7
    came = rng.integers(0, 3, rows)
    open_[np.arange(rows), came] = True
    return Choices(Moments(rng.normal(size=(rows, 4)), rng.normal(size=(rows, 3, features)), open_), came)


def test_terms_are_scikit_learns_multinomial_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    choices = random_choices(np.random.default_rng(0), features=0, all_open=True)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8, max_iter=1000)
    theirs.fit(choices.moments.context, choices.came)
    ours = fitted(choices, Penalty(2.0, 1.0), np.zeros(0))
    assert ours.terms == pytest.approx(theirs.coef_.T, abs=1e-3)


def test_weights_of_two_candidates_are_scikit_learns_binary_regression() -> None:
    """With two open candidates, the choice is a logistic regression on the difference of their features."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    features, came = rng.normal(size=(50, 2, 3)), rng.integers(0, 2, 50)
    choices = Choices(Moments(np.zeros((50, 0)), features, np.ones((50, 2), dtype=bool)), came)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(features[:, 1] - features[:, 0], came)
    assert fitted(choices, Penalty(1.0, 1.0), np.zeros(3)).weights == pytest.approx(theirs.coef_[0], abs=1e-3)


def test_a_fit_is_where_the_penalised_likelihood_is_highest() -> None:
    rng = np.random.default_rng(2)
    choices, prior = random_choices(rng), np.array([1.0, -1.0])
    best = fitted(choices, Penalty(3.0, 2.0), prior)

    def cost(terms: np.ndarray, weights: np.ndarray) -> float:
        total = 1.5 * (terms**2).sum() + ((weights - prior) ** 2).sum()
        for x, phi, is_open, came in zip(choices.moments.context, choices.moments.features, choices.moments.open,
                                         choices.came, strict=True):  # fmt: skip
            utility = [x @ terms[:, n] + phi[n] @ weights for n in range(3)]
            total -= utility[came] - math.log(sum(math.exp(u) for u, o in zip(utility, is_open, strict=True) if o))
        return float(total)

    least = cost(best.terms, best.weights)
    for _ in range(20):
        away = cost(best.terms + rng.normal(0, 0.05, best.terms.shape), best.weights + rng.normal(0, 0.05, 2))
        assert least < away
    held = fitted(choices, Penalty(1e9, 1e9), prior)
    assert held.weights == pytest.approx(prior, abs=1e-4)
    assert np.abs(held.terms).max() < 1e-4


def test_the_penalty_with_the_best_held_out_likelihood_is_chosen() -> None:
    rng = np.random.default_rng(3)
    trials = [(random_choices(rng), random_choices(rng)) for _ in range(2)]
    grid = penalties([100.0, 1.0], [100.0, 1.0])
    likelihood = [sum(fitted(a, p, np.zeros(2)).log_likelihood(b) for a, b in trials) for p in grid]
    assert best_penalty(trials, np.zeros(2), grid) == grid[int(np.argmax(likelihood))]
    assert grid[0] == best_penalty([], np.zeros(2), grid) == Penalty(100.0, 100.0)


# -- situations -------------------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    found = counts([(0, 1, 2), (1, 0)], 3)
    assert found.shown.tolist() == [2, 2, 1]
    assert found.after.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert found.second.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert found.before.tolist() == [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    assert found.places.tolist() == pytest.approx([1 / 6 + 3 / 4, 1 / 2 + 1 / 4, 5 / 6])


def test_counted_features_by_hand() -> None:
    features = counted(situations([(0,)], 3), counts([(0, 1, 2), (0, 2), (1, 0)], 3))[0]
    share = [3.5 / 4, 2.5 / 4, 2.5 / 4]
    assert features[0].tolist() == [0] * len(COUNTED)  # done
    after, second, log_share, after_done, before_left, position = features[1]
    assert after == pytest.approx(math.log((1 + 2 * 0.5) / (2 + 2)))  # a → b once of twice, backed off to one half
    assert second == pytest.approx(math.log((1 + 2 * 0.5) / (3 + 2 - 1)))  # from the start: b, c, and a, which is done
    assert log_share == pytest.approx(math.log(share[1]))
    assert after_done == pytest.approx(math.log((1 + 0.5) / (2 + 1)))
    assert before_left == pytest.approx(math.log((1 + 0.5) / (1 + 1)) * share[2] / (share[1] + share[2]))
    assert position == pytest.approx(-abs(1.5 / sum(share) - (1 / 2 + 1 / 4 + 0.5) / 3))


def test_similar_situations_by_brute_force() -> None:
    past, came = places_of([(0, 1, 2), (1, 0, 3)], 4)
    options = ForecastOptions(likeness=0.4)
    found = similar(situations([(0,)], 4), past, came, options)[0, :, 0]
    weights = np.zeros(4)
    for prefix, outcome in zip(past.prefixes, came, strict=True):
        apart = len({0} ^ set(prefix)) + (not prefix or prefix[-1] != 0)
        weights[outcome] += 0.4**apart
    weights += (np.bincount(came, minlength=4) + 0.5) / (len(came) + 2)
    weights[0] = 0
    assert np.exp(found[1:]) == pytest.approx(weights[1:] / weights.sum())


def test_the_graph_as_features() -> None:
    features = under_graph(situations([(0,), (0, 1)], 4), GRAPH, rho=0.5)
    of = {name: GRAPH.steps.index(name) for name in NAMES}
    assert features[0, of["c"]].tolist() == [0, 0, 1]  # b is missing
    assert features[1, of["c"]].tolist() == [1, 1, 0]
    assert features[1, of["d"]].tolist() == [1, 0.25, 0]
    assert features[1, of["a"]].tolist() == [0, 0, 0]


# -- the ranker -------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(SEQUENCES, DONE)
def test_probabilities_sum_to_one(sequences: list[str], done: list[str]) -> None:
    for make in LEARNT_RANKERS.values():
        found = make(GRAPH, task_of(sequences))(done)
        assert set(found) == set(NAMES) - set(done)
        assert sum(found.values()) == pytest.approx(1)
        assert all(0 <= chance <= 1 for chance in found.values())


@settings(max_examples=10)
@given(SEQUENCES, DONE, st.permutations(NAMES))
def test_other_names_only_relabel_the_forecast(sequences: list[str], done: list[str], names: Sequence[str]) -> None:
    rename: Mapping[str, str] = dict(zip(NAMES, names, strict=True))
    other = SubtaskGraph("t", NAMES, {rename["c"]: all_of([step(rename["a"]), step(rename["b"])])})
    task, renamed = task_of(sequences), task_of(["".join(map(rename.__getitem__, s)) for s in sequences])
    one, two = learned(GRAPH, task)(done), learned(other, renamed)([rename[name] for name in done])
    assert {rename[name]: chance for name, chance in one.items()} == pytest.approx(two, abs=2e-3)


def test_a_task_without_videos_leaves_everything_open() -> None:
    found = learned(GRAPH, task_of([]))(["a"])
    assert found == pytest.approx(dict.fromkeys("bcd", 1 / 3))
    assert learned(GRAPH, task_of(["abcd"]))("abcd") == {}
    assert learned(GRAPH, task_of(["ab"]))(["a", "a"]) == learned(GRAPH, task_of(["ab"]))(["a"])


def test_an_unknown_step_is_named() -> None:
    ranker = learned(SubtaskGraph("t", ["flip bread"], {}), Task("t", ["flip bread"], []))
    with pytest.raises(InputError, match="'fip bread' is not a step of the graph"):
        ranker(["fip bread"])
    with pytest.raises(InputError, match="'e' is not a step of the graph"):
        learned(GRAPH, task_of(["ae"], "abcde"))


def test_what_a_row_is_told_does_not_come_from_its_own_video() -> None:
    """A held-out fold looks the same whatever happens in it."""
    sequences = [(0, 1, 2), (1, 0, 3), (0, 2, 1), (3, 2, 1)]
    for fold, (inside, others) in enumerate(folded(sequences, 2)):
        assert not set(inside) & set(others)
        assert sorted([*inside, *others]) == sorted(sequences)
        changed = [(3, 1) if number % 2 == fold else one for number, one in enumerate(sequences)]
        asked = situations([(0,), (1, 0)], 4)
        before, after = (known(folded(s, 2)[fold][1], GRAPH, ForecastOptions()) for s in (sequences, changed))
        assert np.array_equal(before.moments(asked).features, after.moments(asked).features)


def test_learned_is_better_than_the_rule_and_no_worse_than_uncertain_where_nothing_is_to_learn() -> None:
    shown = simulate(world("Make Coffee"), WorldOptions(videos=60), seed=1)
    training = shown.task.with_videos(shown.task.videos[:40])
    test = shown.task.videos[40:]
    rule, model = recency(shown.graph), learned(shown.graph, training)
    assert (evaluate(model, test).accuracy or 0) > (evaluate(rule, test).accuracy or 0)
    loss = reliability(predictions(model, test)).log_loss
    assert loss < math.log(len(shown.graph.steps))


# -- further ahead ----------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(SEQUENCES, DONE, st.integers(1, 3))
def test_within_is_the_sum_over_all_paths(sequences: list[str], done: list[str], horizon: int) -> None:
    task = task_of(sequences)
    ranker, ends = learned(GRAPH, task), endings(GRAPH, task)
    found = outlook(ranker, done, horizon, ends)
    left = [name for name in NAMES if name not in done]
    most = min(horizon, len(left))
    expected, goes_on = dict.fromkeys(left, 0.0), 0.0
    for size in range(1, most + 1):
        for path in permutations(left, size):
            chance = 1.0
            for place, name in enumerate(path):
                seen = [*done, *path[:place]]
                chance *= (1 - ends(seen)) * ranker(seen)[name]
            expected[path[-1]] += chance
            goes_on += chance if size == most else 0.0
    assert found.within == pytest.approx(expected)
    assert found.ends == pytest.approx(1 - goes_on)
    assert list(found.within.values()) == sorted(found.within.values(), reverse=True)
    assert len(found.path) == most


def test_a_narrow_beam_keeps_the_total() -> None:
    ranker = learned(GRAPH, task_of(["abcd", "bacd", "dabc"]))
    narrow = outlook(ranker, [], 2, options=ForecastOptions(beam=1))
    assert sum(narrow.within.values()) == pytest.approx(2)
    assert narrow.ends == pytest.approx(0)
    with pytest.raises(InputError, match="horizon is 0"):
        outlook(ranker, [], 0)


def test_endings() -> None:
    ends = endings(GRAPH, task_of(["abc"] * 20 + ["abd"] * 20))
    assert ends([]) == 0
    assert ends("a") < 0.2 and ends("ab") < 0.2  # noqa: PT018
    assert ends("abc") > 0.8
    assert endings(GRAPH, task_of([]))("ab") == 0


def test_waiting_backs_off_where_pairs_are_rare() -> None:
    def video(number: int, first: str, gap: float) -> Video:
        return Video(f"{number:02}", [Segment("a", 2, 4), Segment(first, 4 + gap, 6 + gap), Segment(first, 90, 91)])

    task = Task("t", NAMES, [video(n, "b", n) for n in range(5)] + [video(9, "c", 10.0)])
    wait = waiting(task, ForecastOptions(gaps=5))
    often, rare = wait("a", "b"), wait("a", "c")
    assert often is not None
    assert rare is not None
    assert (often.median, often.low, often.high, often.gaps) == pytest.approx((2, 0, 4, 5))
    assert (rare.median, rare.gaps) == (2.5, 6)  # 0, 1, 2, 3, 4 and 10: all gaps after a
    elsewhere = wait("d", "a")
    assert elsewhere is not None
    assert elsewhere.gaps == 12
    assert waiting(task_of(["ab"]))("a", "b") is None
    overlapping = Task("t", "ab", [Video("v", [Segment("a", 0, 9), Segment("b", 5, 9)])])
    assert waiting(overlapping, ForecastOptions(gaps=1))("a", "b").median == 0  # type: ignore[union-attr]


def test_four_gaps_in_five_are_in_the_interval() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        *gaps, following = rng.exponential(10, 10).tolist()
        seen = [Video(str(n), [Segment("a", 0, 1), Segment("b", 1 + gap, 99)]) for n, gap in enumerate(gaps)]
        wait = waiting(Task("t", "ab", seen))("a", "b")
        assert wait is not None
        inside.append(wait.low <= following <= wait.high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.05)


# -- calibration ------------------------------------------------------------------------------------------------


def test_reliability_by_hand() -> None:
    made = [Prediction(0.95, 1, 0.95), Prediction(0.95, 0, 0.05), Prediction(0.5, 1, 0.5), Prediction(1.0, 1, 1.0)]
    found = reliability(made)
    assert [(b.low, b.high, b.predictions) for b in found.bins] == [(0.4, 0.5, 1), (0.9, 1.0, 3)]
    assert found.ece == pytest.approx((0.5 * 1 + 3 * abs(2.9 / 3 - 2 / 3)) / 4)
    assert found.log_loss == pytest.approx(-math.log(0.95 * 0.05 * 0.5) / 4)
    assert reliability([]).ece == 0


# -- transfer ---------------------------------------------------------------------------------------------------


def test_the_same_steps_under_other_names_lend_their_counts() -> None:
    """With exactly the same names, borrowed counts are the other task's own, and the task itself lends nothing."""
    other, own = task_of(["abc", "abd", "acb"], name="other"), task_of(["dcba"] * 3)
    lent = borrowed(GRAPH, 1, [other, own], lambda texts: np.eye(4)[[NAMES.index(text) for text in texts]])
    sequences = [places(video.sequence(), GRAPH) for video in other]
    expected = counts(sequences, 4)
    for field in ("shown", "places", "after", "second", "before"):
        assert getattr(lent.counts, field) == pytest.approx(getattr(expected, field)), field
    assert lent.counts.videos == pytest.approx([3] * 4)
    assert len(lent.weights) == len(FEATURES) + len(COUNTED)
    with pytest.raises(InputError, match="no task other than 't'"):
        borrowed(GRAPH, 1, [own], HashedWords())
    with pytest.raises(InputError, match="the text encoder gave"):
        borrowed(GRAPH, 1, [other], lambda texts: np.zeros((1, 2)))


def test_likeness() -> None:
    vectors = HashedWords()(["pour milk", "pour the milk", "jack up"]).astype(float)
    alike = likeness(vectors, vectors, 2.0)
    assert np.diag(alike) == pytest.approx(np.ones(3))
    assert alike[0, 2] < alike[0, 1] < 1


def test_a_task_with_one_video_learns_from_its_twins() -> None:
    """The twins show b before a; the one video of the task shows neither."""
    twins = [task_of(["bacd"] * 8 + ["bad"] * 4, name=f"twin {n}") for n in range(3)]
    own = task_of(["cd"])
    lent = borrowed(GRAPH, len(own), [*twins, own], lambda texts: np.eye(4)[[NAMES.index(t) for t in texts]])
    alone, helped = learned(GRAPH, own)([]), learned(GRAPH, own, borrowed=lent)([])
    assert helped["b"] > helped["a"]
    assert alone["b"] == pytest.approx(alone["a"], abs=1e-3)
    assert helped["b"] > alone["b"]


@pytest.mark.parametrize(
    "wrong", [{"likeness": 1.0}, {"term_penalties": ()}, {"weight_penalties": (0.0,)}, {"folds": 1}, {"beam": 0},
              {"interval": (0.9, 0.1)}],
)  # fmt: skip
def test_options_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="must be"):
        ForecastOptions(**wrong)  # type: ignore[arg-type]
