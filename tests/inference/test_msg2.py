"""MSG² against an exhaustive search with an objective written down term by term."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.paper_figures.search_trace import search_trace
from msg2.graph import TRUE, Formula, all_of, any_of, step
from msg2.inference import msg2
from msg2.inference.msg2 import Msg2Options
from msg2.inference.result import Candidate, rank_candidates
from msg2.sequences import Sequences
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.inference.conftest import (
    DELTAS,
    Gaps,
    chance,
    critical_graph,
    dataset,
    longest_paths,
    name_order,
    tasks,
)

RULES = st.sampled_from(["each", "satisfied"])
ALPHAS = st.sampled_from([0.0, 0.2, 0.5, 1.0, 2.0])
RECENCIES = st.sampled_from([0.3, 0.5, 0.7, 1.0])


def weight(formula: Formula, gaps: Gaps, options: Msg2Options) -> float:
    """w · f(c) of one row of D_n, 0 where the formula does not hold."""
    if formula == TRUE:
        return 1
    if options.recency_rule == "satisfied":
        longest = max(gaps.values(), default=0)
        for gap in range(longest, 0, -1):  # forward in time: the first moment at which the formula holds
            if formula.evaluate({name for name in gaps if gaps[name] >= gap}):
                return recency(gap, options)
        return 0
    if formula.kind == "step":
        return recency(gaps[formula.name], options) if formula.name in gaps else 0
    inner = [weight(operand, gaps, options) for operand in formula.operands]
    return min(inner) if formula.kind == "all" else max(inner)


def recency(gap: int, options: Msg2Options) -> float:
    return max(0.1, options.recency ** (gap - 1))


def objective(formula: Formula, rows: Sequence[Gaps], options: Msg2Options) -> float:
    """Eq. jours with recency: the mean is over the rows in which anything had been completed."""
    if formula == TRUE:
        return 1
    counted = [gaps for gaps in rows if gaps]
    mean = sum(weight(formula, gaps, options) for gaps in counted) / len(counted)
    return mean / chance(formula) - options.alpha * (formula.literal_count - 1)


def best(scores: dict[Formula, float]) -> Formula:
    highest = max(scores.values())
    return min((formula for formula, score in scores.items() if score >= highest - 1e-9), key=name_order)


def expected_two_literals(task: Task, options: Msg2Options) -> dict[Step, dict[Formula, float]]:
    """All candidates of every step above layer 0, with their scores."""
    assert isinstance(options.delta, float)
    graph, _ = critical_graph(task, options.delta)
    depth = longest_paths(graph)
    result = {}
    for name in (name for name in task.steps if depth[name]):
        rows = [gaps for _, gaps in dataset(task, name)]
        scores = {}
        for p in (p for p in graph.predecessors(name) if depth[p] == depth[name] - 1):
            scores[step(p)] = objective(step(p), rows, options)
            for q in (q for q in task.steps if depth[q] < depth[name] and q != p):
                related = networkx.has_path(graph, p, q) or networkx.has_path(graph, q, p)
                if not (options.exclude_relatives and related):
                    for pair in (all_of([step(p), step(q)]), any_of([step(p), step(q)])):
                        scores[pair] = objective(pair, rows, options)
        result[name] = scores
    return result


def check_two_literals(task: Task, options: Msg2Options) -> None:
    learnt = msg2.learn(Sequences.from_task(task), options)
    expected = expected_two_literals(task, options)
    assert set(learnt.preconditions) == set(learnt.candidates) == set(expected)
    for name, scores in expected.items():
        candidates = learnt.candidates[name]
        assert learnt.preconditions[name] == candidates[0].formula
        assert len(candidates) == min(len(scores), 8)
        for candidate in candidates:
            assert candidate.score == pytest.approx(scores[candidate.formula], abs=1e-12)
        left = dict(scores)
        for candidate in candidates[:2]:  # the chosen one and the runner-up
            assert candidate.formula == best(left)
            del left[candidate.formula]


def settings_of(draw: st.DrawFn, max_literals: int | None) -> Msg2Options:
    return Msg2Options(
        delta=draw(DELTAS),
        alpha=draw(ALPHAS),
        recency=draw(RECENCIES),
        recency_rule=draw(RULES),
        max_literals=max_literals,
        exclude_relatives=draw(st.booleans()),
    )


@st.composite
def two_literal_options(draw: st.DrawFn) -> Msg2Options:
    return settings_of(draw, 2)


@st.composite
def greedy_options(draw: st.DrawFn) -> Msg2Options:
    return settings_of(draw, draw(st.sampled_from([None, 1, 3, 4])))


@given(tasks(repeats=True), two_literal_options())
def test_two_literals_is_the_best_of_all_candidates(task: Task, options: Msg2Options) -> None:
    check_two_literals(task, options)


@pytest.mark.parametrize("rule", ["each", "satisfied"])
@pytest.mark.parametrize("exclude", [False, True])
def test_two_literals_on_a_noisy_world(rule: Literal["each", "satisfied"], exclude: bool) -> None:
    task = simulate(household_world("Perform CPR"), SimulationOptions(videos=40), seed=1).task
    check_two_literals(task, Msg2Options(delta=0.7, recency_rule=rule, exclude_relatives=exclude))


def test_scores_by_hand() -> None:
    """c is done after a, b (gaps 2, 1) in three videos and after b alone in one: w_a = 0.7 · 3/4, w_b = 1."""
    seen = ["abc", "abc", "abc", "bc"]
    task = Task("t", "abc", (Video(str(number), map(Segment, steps)) for number, steps in enumerate(seen)))
    learnt = msg2.learn(Sequences.from_task(task), Msg2Options(delta=0.9))
    # a → b → c are three layers, so b is the only direct critical predecessor of c, and a the only other step below it.
    scores = {str(candidate.formula): candidate.score for candidate in learnt.candidates["c"]}
    assert scores == pytest.approx({"b": 2.0, "a & b": 4 * 0.7 * 3 / 4 - 0.2, "a | b": 4 / 3 * 1 - 0.2})
    learnt = msg2.learn(Sequences.from_task(task), Msg2Options(delta=0.9, recency_rule="satisfied"))
    scores = {str(candidate.formula): candidate.score for candidate in learnt.candidates["c"]}
    assert scores == pytest.approx({"b": 2.0, "a & b": 4 * 3 / 4 - 0.2, "a | b": 4 / 3 * (3 * 0.7 + 1) / 4 - 0.2})
    assert learnt.preconditions == {"b": step("a"), "c": all_of([step("a"), step("b")])}


def test_old_steps_keep_a_tenth_of_their_weight() -> None:
    names = [f"{number:02d}" for number in range(12)]
    task = Task("t", names, [Video("v", map(Segment, names))])
    learnt = msg2.learn(Sequences.from_task(task), Msg2Options(delta=0.9, max_literals=1))
    scores = {candidate.formula: candidate.score for candidate in learnt.candidates[names[-1]]}
    assert scores[step("10")] == pytest.approx(2)
    assert scores[step("06")] == pytest.approx(2 * 0.7**4)
    check_two_literals(task, Msg2Options(delta=0.9))
    rows = [gaps for _, gaps in dataset(task, names[-1])]
    assert objective(step("00"), rows, Msg2Options()) == 0.2


def test_ties_go_to_fewer_literals_then_by_name() -> None:
    def formula_candidates(*formulas: Formula) -> list[Candidate]:
        return [Candidate(formula, 1 + number * 1e-10) for number, formula in enumerate(formulas)]

    a, b, c = map(step, "abc")
    tied = formula_candidates(c, all_of([a, b]), b, any_of([a, b]))
    assert [candidate.formula for candidate in rank_candidates(tied, 4)] == [b, c, all_of([a, b]), any_of([a, b])]
    assert rank_candidates(tied, 2) == rank_candidates(tied[::-1], 2)
    apart = [Candidate(a, 1.0), Candidate(b, 1 + 1e-8)]
    assert rank_candidates(apart, 1)[0].formula == b


def test_ties_by_name_follow_the_names_not_their_text() -> None:
    """'a' comes before 'a !', though 'a ! & z' comes before 'a & z'."""
    one, other = all_of([step("a"), step("z")]), all_of([step("a !"), step("z")])
    assert rank_candidates([Candidate(other, 1.0), Candidate(one, 1.0)], 1)[0].formula == one


# -- the paper's greedy search ------------------------------------------------------------------------------------


def greedy_path(task: Task, name: Step, options: Msg2Options) -> list[tuple[Formula, float]]:
    """The best formula of every iteration with its score, from the null precondition on."""
    assert isinstance(options.delta, float)
    depth = longest_paths(critical_graph(task, options.delta)[0])
    lower = [other for other in task.steps if depth[other] < depth[name]]
    rows = [gaps for _, gaps in dataset(task, name)]
    path = [(TRUE, 1.0)]
    while options.max_literals is None or len(path) <= options.max_literals:
        current, score = path[-1]
        new = [step(x) for x in lower if x not in current.steps]
        joins = (all_of, any_of) if current != TRUE else (all_of,)
        scores = {join([current, x]): objective(join([current, x]), rows, options) for x in new for join in joins}
        if not scores or max(scores.values()) <= score + 1e-9:
            break
        path.append((best(scores), scores[best(scores)]))
    return path


@given(tasks(repeats=True), greedy_options())
def test_greedy_follows_the_paper(task: Task, options: Msg2Options) -> None:
    assert isinstance(options.delta, float)
    depth = longest_paths(critical_graph(task, options.delta)[0])
    learnt = msg2.learn(Sequences.from_task(task), options)
    assert set(learnt.preconditions) == {name for name in task.steps if depth[name]}
    for name, formula in learnt.preconditions.items():
        path = greedy_path(task, name, options)
        assert formula == path[-1][0]
        assert learnt.candidates[name][0].score == pytest.approx(path[-1][1], abs=1e-12)
        assert all(earlier < later for (_, earlier), (_, later) in pairwise(path))  # the objective never falls


def test_greedy_on_a_noisy_world() -> None:
    task = simulate(household_world("Perform CPR"), SimulationOptions(videos=40), seed=2).task
    options = Msg2Options(delta=0.6, recency=1.0, max_literals=None)
    learnt = msg2.learn(Sequences.from_task(task), options)
    assert max(formula.literal_count for formula in learnt.preconditions.values()) > 2
    for name, formula in learnt.preconditions.items():
        assert formula == greedy_path(task, name, options)[-1][0]


@given(tasks(), greedy_options())
def test_more_literals_never_score_less(task: Task, options: Msg2Options) -> None:
    sequences = Sequences.from_task(task)
    scores = []
    for most in (1, 3, 4, None):
        learnt = msg2.learn(sequences, Msg2Options(options.delta, options.alpha, max_literals=most))
        assert all(formula.literal_count <= (most or 99) for formula in learnt.preconditions.values())
        scores.append({name: candidates[0].score for name, candidates in learnt.candidates.items()})
    for fewer, more in pairwise(scores):
        assert all(1 <= fewer[name] <= more[name] for name in fewer)


def test_the_null_precondition_scores_one() -> None:
    """A step done long before, in half of the videos, is no better than nothing: 2 · (1/2) = 1."""
    seen = ["ab", "cb"]
    task = Task("t", "abc", (Video(str(number), map(Segment, steps)) for number, steps in enumerate(seen)))
    learnt = msg2.learn(Sequences.from_task(task), Msg2Options(delta=0.9, max_literals=None))
    assert learnt.candidates["b"][0] == Candidate(TRUE, 1.0)
    assert {candidate.formula: candidate.score for candidate in learnt.candidates["b"][1:]} == {
        step("a"): 1.0,
        step("c"): 1.0,
    }
    two = msg2.learn(Sequences.from_task(task), Msg2Options(delta=0.9))
    assert two.preconditions["b"] == any_of([step("a"), step("c")])  # 4/3 - 0.2 beats 2 · 1/2


# -- the search, round by round -----------------------------------------------------------------------------------


@given(tasks(repeats=True), two_literal_options() | greedy_options(), st.integers(1, 12))
def test_a_trace_tells_how_the_choice_was_made(task: Task, options: Msg2Options, most: int) -> None:
    sequences = Sequences.from_task(task)
    learnt = msg2.learn(sequences, options)
    for name in task.steps:
        rounds = search_trace(sequences, name, options, most)
        assert bool(rounds) == (name in learnt.preconditions)
        if not rounds:
            continue
        sizes = [{candidate.formula.literal_count for candidate in one.candidates} for one in rounds]
        first = 1 if options.max_literals == 2 else 0
        assert sizes == [{literals} for literals in range(first, first + len(rounds))]
        assert all(1 <= len(one.candidates) <= most for one in rounds)
        (found,) = (one for one in rounds if one.outcome == "found")
        assert found.candidates[0] == learnt.candidates[name][0]
        best = [one.candidates[0].score for one in rounds[: rounds.index(found) + 1] if one.outcome != "no better"]
        assert all(earlier < later for earlier, later in pairwise(best))
        assert all(one.outcome == "no better" for one in rounds[rounds.index(found) + 1 :])


@given(tasks(repeats=True), two_literal_options())
def test_a_trace_of_two_literals_has_all_candidates(task: Task, options: Msg2Options) -> None:
    for name, scores in expected_two_literals(task, options).items():
        rounds = search_trace(Sequences.from_task(task), name, options, len(scores))
        found = {candidate.formula: candidate.score for one in rounds for candidate in one.candidates}
        assert found == pytest.approx(scores, abs=1e-12)


@given(tasks(repeats=True), greedy_options())
def test_a_greedy_trace_follows_the_paper(task: Task, options: Msg2Options) -> None:
    for name in task.steps:
        rounds = search_trace(Sequences.from_task(task), name, options, 1)
        led = [one.candidates[0] for one in rounds if one.outcome != "no better"]
        if rounds:
            path = greedy_path(task, name, options)
            assert [candidate.formula for candidate in led] == [formula for formula, _ in path]
            assert [candidate.score for candidate in led] == pytest.approx([score for _, score in path], abs=1e-12)


# -- what the options do ------------------------------------------------------------------------------------------


@given(tasks(), two_literal_options() | greedy_options(), st.floats(0, 3), st.floats(0, 3))
def test_a_higher_alpha_never_adds_literals(task: Task, options: Msg2Options, one: float, other: float) -> None:
    cheap, dear = (
        msg2.learn(
            Sequences.from_task(task),
            Msg2Options(options.delta, alpha, options.recency, options.recency_rule, options.max_literals),
        ).preconditions
        for alpha in sorted([one, other])
    )
    assert all(dear[name].literal_count <= cheap[name].literal_count for name in cheap)


@given(tasks(repeats=True), DELTAS, st.sampled_from([2, None]))
def test_without_recency_the_rules_agree(task: Task, delta: float, most: int | None) -> None:
    each, satisfied = (
        msg2.learn(Sequences.from_task(task), Msg2Options(delta, 0.2, 1.0, rule, most))
        for rule in ("each", "satisfied")  # type: Literal["each", "satisfied"]
    )
    assert each.preconditions == satisfied.preconditions


@given(tasks(repeats=True), two_literal_options() | greedy_options())
def test_preconditions_use_lower_layers_only(task: Task, options: Msg2Options) -> None:
    assert isinstance(options.delta, float)
    depth = longest_paths(critical_graph(task, options.delta)[0])
    for name, formula in msg2.learn(Sequences.from_task(task), options).preconditions.items():
        assert all(depth[parent] < depth[name] for parent in formula.steps)


def test_delta_must_have_been_chosen() -> None:
    with pytest.raises(ValueError, match="auto"):
        msg2.learn(Sequences.from_task(Task("t", "a", [])), Msg2Options())
