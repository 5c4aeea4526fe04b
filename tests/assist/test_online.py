"""Mistakes while they happen: oddities against brute force, probabilities against integrals, and no look ahead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from math import log, nextafter

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from msg2.assist import check
from msg2.assist.oddities import Oddity, Trail
from msg2.assist.online import Habits, Noise, Verdict, mistake_probability, watch
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.options import OnlineOptions
from msg2.task import Segment, Task, Video

NAMES = "abcde"
CHAIN = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
COFFEE = SubtaskGraph(
    "coffee", ["boil", "grind", "open", "pour"], {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])])}
)


def untimed(steps: Sequence[str], id: str = "v") -> Video:
    return Video(id, map(Segment, steps))


def task(graph: SubtaskGraph, *sequences: Sequence[str]) -> Task:
    return Task(graph.task, graph.steps, [untimed(steps, f"v{n:03d}") for n, steps in enumerate(sequences)])


def oddities(graph: SubtaskGraph, video: Video) -> list[tuple[Oddity, ...]]:
    trail = Trail(graph)
    return [trail.oddities(segment) for segment in video.segments]


def kinds(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(finding.oddity.kind, finding.oddity.other) for finding in (*verdict.findings, *verdict.skipped)]


@st.composite
def graphs(draw: st.DrawFn, ors: bool = True) -> SubtaskGraph:
    preconditions = {}
    for place, name in enumerate(NAMES[1:], start=1):
        literals = st.lists(st.sampled_from(NAMES[:place]).map(step), max_size=3)
        joined = literals.map(all_of) | literals.filter(bool).map(any_of) if ors else literals.map(all_of)
        preconditions[name] = draw(st.lists(joined, max_size=2).map(all_of))
    return SubtaskGraph("task", NAMES, preconditions)


SEQUENCES = st.lists(st.sampled_from(NAMES), max_size=8)
TIMED = st.lists(
    st.builds(
        lambda name, start, length: Segment(name, start, start + length),
        st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 4),
    ),
    max_size=8,
).map(lambda segments: Video("v", segments))  # fmt: skip
VIDEOS = TIMED | SEQUENCES.map(untimed)
NOISES = st.builds(Noise, st.floats(0.01, 0.99), st.floats(1, 200))
COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


# -- what is odd ------------------------------------------------------------------------------------------------------


def test_a_step_too_early_then_the_one_it_lacked() -> None:
    early, late, again = oddities(CHAIN, untimed(["fry", "whisk", "whisk"]))
    assert early == (
        Oddity("premature", "fry", None, step("dip")),
        Oddity("skipped", "fry", "dip", step("dip")),
        Oddity("skipped", "fry", "whisk", step("dip")),
    )
    assert late == (Oddity("out of order", "whisk", "fry", step("dip")),)
    assert again == (Oddity("repeated", "whisk"),)


def test_of_two_ways_neither_is_skipped() -> None:
    (_, pour, grind) = oddities(COFFEE, untimed(["boil", "pour", "grind"]))
    assert pour == (Oddity("premature", "pour", None, any_of([step("grind"), step("open")])),)
    assert grind == ()


def test_what_runs_is_not_completed_and_not_skipped() -> None:
    during = Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 10), Segment("fry", 10, 12)])
    assert oddities(CHAIN, during) == [(), (Oddity("premature", "dip", None, step("whisk")),), ()]


def test_a_negation_that_is_broken_lacks_nothing() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("b"), negation(step("a"))])})
    assert [odd.kind for odd in oddities(graph, untimed("ac"))[1]] == [
        "premature",
        "skipped",
    ]  # a is done: b it must be
    assert oddities(graph, untimed("c")) == [()]


@given(graphs(), VIDEOS)
def test_premature_is_what_check_finds(graph: SubtaskGraph, video: Video) -> None:
    found = [
        (position, odd.clause)
        for position, of_segment in enumerate(oddities(graph, video), start=1)
        for odd in of_segment
        if odd.kind == "premature"
    ]
    assert found == [(m.position, clause) for m in check(graph, video).mistakes for clause in m.unmet]


@given(graphs(ors=False), SEQUENCES)
def test_skipped_and_out_of_order_against_paths_through_what_is_undone(graph: SubtaskGraph, names: list[str]) -> None:
    needs = networkx.DiGraph(graph.edges())
    needs.add_nodes_from(NAMES)
    owed: set[tuple[str, str]] = set()
    for place, (name, odd) in enumerate(zip(names, oddities(graph, untimed(names)), strict=True)):
        done = set(names[:place])
        missing = networkx.ancestors(needs.subgraph((set(NAMES) - done) | {name}), name)
        assert {o.other for o in odd if o.kind == "skipped"} == missing
        assert {o.other for o in odd if o.kind == "out of order"} == {after for before, after in owed if before == name}
        assert ("repeated" in {o.kind for o in odd}) == (name in done)
        owed = {(before, after) for before, after in owed if before != name} | {(before, name) for before in missing}


def test_a_deep_graph_is_searched_once() -> None:
    """Every step needs all earlier ones: there are 2^38 ways from the last to the first."""
    names = [f"{number:02d}" for number in range(40)]
    graph = SubtaskGraph("t", names, {name: all_of(map(step, names[:place])) for place, name in enumerate(names)})
    (odd,) = oddities(graph, untimed([names[-1]]))
    assert [o.other for o in odd if o.kind == "skipped"] == names[:-1]


# -- how probably it is a mistake -------------------------------------------------------------------------------------


@given(COUNTS, NOISES)
def test_the_probability_is_that_of_the_two_integrals(counts: tuple[int, int], noise: Noise) -> None:
    (k, n), w, b = counts, noise.genuine, noise.rarity
    peak = [k / n] if 0 < k < n else None
    habit = quad(lambda x: x**k * (1 - x) ** (n - k), 0, 1, points=peak)[0]
    mistake = quad(lambda x: x**k * (1 - x) ** (n - k) * beta.pdf(x, 1, b), 0, 1, points=[0.01, 0.1])[0]
    assert mistake_probability(k, n, noise) == pytest.approx(w * mistake / (w * mistake + (1 - w) * habit), abs=1e-5)


@given(COUNTS, NOISES)
def test_the_more_videos_have_it_the_less_it_is_a_mistake(counts: tuple[int, int], noise: Noise) -> None:
    (k, n) = counts
    probabilities = [mistake_probability(times, n, noise) for times in range(n + 1)]
    assert all(0 <= p <= 1 for p in probabilities)
    assert all(one >= other - 1e-12 for one, other in pairwise(probabilities))
    assert mistake_probability(k, n, noise) <= mistake_probability(k, n + 1, noise) + 1e-12  # one more without it


def posterior(noise: Noise, counts: list[tuple[int, int]], options: OnlineOptions) -> float:
    """Of the noise, up to a constant: what expectation maximisation climbs."""
    w, b, believed = noise.genuine, noise.rarity, 1 / options.by_mistake - 1
    grid = (np.arange(4000) + 0.5) / 4000
    total = log(w) + log(1 - w) + log(b) - b / believed
    for k, n in counts:
        seen = grid**k * (1 - grid) ** (n - k)
        total += log(np.mean(seen * (w * b * (1 - grid) ** (b - 1) + 1 - w)))
    return total


@given(graphs(), st.lists(SEQUENCES, min_size=1, max_size=6))
def test_the_noise_becomes_more_probable_with_every_round(graph: SubtaskGraph, sequences: list[list[str]]) -> None:
    habits = Habits.of(graph, task(graph, *sequences))
    odd = [Oddity("premature", n, None, clause) for n in graph.steps for clause in graph.precondition(n).clauses()]
    counts = [(habits.odd.get(one, 0), habits.showing.get(one.step, 0)) for one in odd]
    tried = [OnlineOptions(rounds=rounds) for rounds in (1, 2, 3, 10, 50)]
    heights = [posterior(Noise.of(graph, habits, options), counts, options) for options in tried]
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(heights))


def test_noise_without_a_clause_is_what_is_believed() -> None:
    free = SubtaskGraph("t", "ab", {})
    assert Noise.of(free, Habits.of(free, []), OnlineOptions(by_mistake=0.1)) == Noise(0.5, pytest.approx(9))


def test_what_is_often_broken_is_a_habit_and_what_never_is_a_mistake() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "d": step("c")})
    training = task(graph, *["abcd"] * 6, *["bacd"] * 6)
    judge = watch(graph, training)
    habit, late, mistake = judge.step("b"), judge.step("a"), judge.step("d")
    assert max(habit.probability, late.probability) < 0.1
    assert mistake.probability > 0.7
    assert (habit.findings[0].times, habit.findings[0].chances) == (6, 12)
    assert (mistake.findings[0].times, mistake.findings[0].chances) == (0, 12)


def test_kinds_and_their_combination() -> None:
    judge = watch(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9))
    verdicts = [judge.step(name) for name in ["fry", "dip", "whisk", "whisk", "juggle"]]
    assert [kinds(verdict) for verdict in verdicts] == [
        [("premature", None), ("skipped", "dip"), ("skipped", "whisk")],
        [("out of order", "fry"), ("premature", None), ("skipped", "whisk")],
        [("out of order", "fry"), ("out of order", "dip")],
        [("repeated", None)],
        [("never seen", None)],
    ]
    assert [verdict.position for verdict in verdicts] == [1, 2, 3, 4, 5]
    assert all(verdict.mistake for verdict in verdicts)
    late, early = (finding.probability for finding in verdicts[1].findings)
    assert verdicts[1].probability == pytest.approx(1 - (1 - late) * (1 - early))
    assert verdicts[1].probability_of("premature") == pytest.approx(early)
    assert verdicts[1].probability_of("repeated") == 0
    assert judge.step("whisk").findings[0].oddity.kind == "repeated"


def test_a_repetition_that_others_show_is_a_habit() -> None:
    once, twice = [["whisk", "dip", "fry"]] * 9, [["whisk", "dip", "fry", "dip", "fry"]] * 9
    for sequences, expected in ((once, True), (twice, False)):
        *_, again = watch(CHAIN, task(CHAIN, *sequences)).video(untimed(["whisk", "dip", "fry", "dip"]))
        assert again.mistake is expected


def test_without_any_training_nothing_is_called_a_mistake() -> None:
    verdicts = watch(CHAIN, task(CHAIN)).video(untimed(["fry", "dip", "dip", "juggle"]))
    assert [verdict.mistake for verdict in verdicts] == [False] * 4


def test_the_operating_point_is_an_option() -> None:
    training = task(CHAIN, *[["whisk", "dip", "fry"]] * 9)
    probability = watch(CHAIN, training).step("dip").probability
    for threshold in (probability, nextafter(probability, 1)):
        verdict = watch(CHAIN, training, OnlineOptions(threshold=threshold)).step("dip")
        assert verdict.mistake is (threshold == probability)


# -- the watch --------------------------------------------------------------------------------------------------------


@given(graphs(), st.lists(SEQUENCES, max_size=5), VIDEOS, st.data())
def test_no_verdict_looks_ahead(graph: SubtaskGraph, seen: list[list[str]], video: Video, data: st.DataObject) -> None:
    judge = watch(graph, task(graph, *seen))
    verdicts = judge.video(video)
    assert all(0 <= verdict.probability <= 1 for verdict in verdicts)
    length = data.draw(st.integers(0, len(video.segments)))
    assert judge.video(Video("v", video.segments[:length])) == verdicts[:length]


@given(graphs(), TIMED)
def test_when_a_step_ends_matters_to_later_ones_only(graph: SubtaskGraph, video: Video) -> None:
    judge = watch(graph, task(graph))
    for place, segment in enumerate(video.segments):
        if all(other.start != segment.start for other in video.segments if other is not segment):
            shown = [*video.segments[:place], Segment(segment.step, segment.start, 100)]
            assert judge.video(Video("v", shown)) == judge.video(video)[: place + 1]


@given(graphs(), st.lists(SEQUENCES, max_size=5), SEQUENCES)
def test_habits_without_a_video_are_those_of_the_others(
    graph: SubtaskGraph, seen: list[list[str]], one: list[str]
) -> None:
    all_of_them = Habits.of(graph, [*task(graph, *seen), untimed(one, "w")])
    left = all_of_them.without(Habits.of(graph, [untimed(one, "w")]))
    assert left == Habits.of(graph, task(graph, *seen))
    for odd, times in left.odd.items():
        assert times == sum(odd in {o for os in oddities(graph, untimed(names)) for o in os} for names in seen)


def test_steps_may_come_as_moments() -> None:
    judge = watch(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9))
    assert [judge.step(name, time).mistake for name, time in [("whisk", 1), ("dip", 2.5), ("fry", 4)]] == [False] * 3


def test_a_step_out_of_time_is_refused_and_forgotten() -> None:
    judge = watch(CHAIN, task(CHAIN, ["whisk", "dip", "fry"]))
    judge.step("whisk", 5, 6)
    with pytest.raises(InputError, match="'dip' starts at 4, before the last one at 5"):
        judge.step("dip", 4, 5)
    with pytest.raises(InputError, match="'dip' comes without a time, 'whisk' came with"):
        judge.step("dip")
    assert judge.step("dip", 6, 7).findings == ()
    assert judge.step("fry", 7, 8).position == 3


def test_a_verdict_as_json() -> None:
    verdict = watch(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9)).step("dip", 1.5)
    value = json.loads(json.dumps(verdict.to_json()))
    probability = verdict.findings[0].probability
    finding = {"other": None, "clause": "whisk", "times": 0, "chances": 9, "probability": probability}
    assert value == {
        "step": "dip",
        "start": 1.5,
        "position": 1,
        "probability": pytest.approx(probability),
        "mistake": True,
        "findings": [{"kind": "premature", **finding}],
        "skipped": [{"kind": "skipped", **finding, "other": "whisk"}],
    }


@pytest.mark.parametrize("wrong", [{"by_mistake": 0}, {"by_mistake": 0.6}, {"rounds": 0}, {"threshold": 1.5}])
def test_impossible_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        OnlineOptions(**wrong)  # type: ignore[arg-type]
