"""MSGI and MSGI+: exact recovery from all 2^N vectors, scikit-learn, and a decision tree written as a recursion."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from msg2.graph import FALSE, TRUE, Formula, SubtaskGraph, all_of, any_of, are_equivalent, negation, simplify, step
from msg2.inference import infer
from msg2.inference.baselines import EligibilityExamples, MsgiOptions, fit_tree, fit_trees, learn_msgi, learn_msgi_plus
from msg2.sequences import Sequences
from msg2.simulation import NoiseOptions, household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.inference.conftest import NAMES, gaps_at, states, tasks, timed_segment

A, B, C, D, E, F = map(step, NAMES)
Example = tuple[frozenset[Step], bool]
"""What was completed, and whether the step was eligible."""


def vectors_of(steps: str, seen: Sequence[frozenset[Step]]) -> NDArray[np.bool_]:
    """Completion vectors, shape (states, steps)."""
    return np.array([[name in state for name in steps] for state in seen], dtype=np.bool_)


def tree_of(steps: str, seen: Sequence[Example]) -> Formula:
    labels = np.array([label for _, label in seen], dtype=np.int64)
    return fit_tree(
        list(steps), EligibilityExamples(vectors_of(steps, [state for state, _ in seen]), labels, 1 - labels)
    )


def decided(steps: str, truth: dict[Step, Formula]) -> dict[Step, Formula]:
    """What is learnt from the eligibility of every step in all 2^N states."""
    everything = list(states(steps))

    def labels(index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        eligible = np.array([truth.get(steps[index], TRUE).evaluate(s) for s in everything], dtype=np.int64)
        return eligible, 1 - eligible

    return fit_trees(tuple(steps), vectors_of(steps, everything), labels)


# -- all vectors --------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> dict[Step, Formula]:
    """A random graph of a – f with AND, OR and NOT; a step uses earlier letters only."""
    truth = {}
    for index, name in enumerate(NAMES):
        literals = [literal for parent in NAMES[:index] for literal in (step(parent), negation(step(parent)))]
        if literals:
            joined = st.recursive(
                st.sampled_from(literals),
                lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
                    lambda operands: st.sampled_from([all_of(operands), any_of(operands)])
                ),
                max_leaves=4,
            )
            formula = draw(joined | st.just(TRUE))
            truth[name] = TRUE if are_equivalent(formula, FALSE) else formula
    return truth


@given(graphs())
def test_all_vectors_give_back_the_functions(truth: dict[Step, Formula]) -> None:
    found = decided(NAMES, truth)
    for name in NAMES:
        assert are_equivalent(found.get(name, TRUE), truth.get(name, TRUE))


@pytest.mark.parametrize(
    "formula",
    [
        any_of([A, B]),
        any_of([A, B, C]),
        any_of([A, B, C, D]),
        all_of([A, any_of([B, C])]),
        any_of([all_of([A, B]), C]),
        any_of([all_of([A, B]), all_of([C, D])]),
        all_of([A, negation(B)]),
        negation(A),
        negation(all_of([A, B])),
    ],
    ids=str,
)
def test_a_formula_comes_back_as_people_write_it(formula: Formula) -> None:
    """Pure leaves under impure nodes are kept: A | B is not ¬A & B."""
    found = decided("abcdef", {"f": formula})
    assert set(found) == {"f"}
    assert are_equivalent(found["f"], formula)
    assert found["f"].literal_count == formula.literal_count
    if "¬" not in str(formula) and formula.literal_count < 4:
        assert found["f"] == formula


def test_parity_is_found_though_no_single_split_helps() -> None:
    parity = any_of([all_of([A, negation(B)]), all_of([B, negation(A)])])
    assert are_equivalent(decided("abc", {"c": parity})["c"], parity)


def test_deep_layers() -> None:
    chain = {after: step(before) for before, after in pairwise(NAMES)}
    assert decided(NAMES, chain) == chain


# -- the tree -----------------------------------------------------------------------------------------------------

ROWS = st.lists(st.tuples(st.frozensets(st.sampled_from("abcd")), st.booleans()), min_size=1, max_size=25)


def gini_tree(columns: str, seen: Sequence[Example], state: frozenset[Step]) -> bool:
    """The prediction of a decision tree for `state`: the split of least weighted Gini impurity, ties by name."""
    labels = [label for _, label in seen]
    if len(set(labels)) == 1:
        return labels[0]
    splits = {}
    for column in columns:
        sides = [[label for done, label in seen if (column in done) == value] for value in (True, False)]
        if all(sides):
            shares = [Fraction(sum(side), len(side)) for side in sides]
            splits[column] = sum(len(s) * 2 * p * (1 - p) for s, p in zip(sides, shares, strict=True))
    if not splits:
        return sum(labels) > len(labels) - sum(labels)
    chosen = min(splits, key=lambda column: (splits[column], column))
    side = [(done, label) for done, label in seen if (chosen in done) == (chosen in state)]
    return gini_tree(columns, side, state)


@given(ROWS)
def test_the_tree_splits_by_gini(seen: list[Example]) -> None:
    """Vectors that were never seen tell which splits were taken."""
    formula = tree_of("abcd", seen)
    for state in states("abcd"):
        assert formula.evaluate(state) == gini_tree("abcd", seen, state)
        assert simplify(formula).evaluate(state) == formula.evaluate(state)


@given(ROWS)
def test_the_tree_fits_as_well_as_scikit_learn(seen: list[Example]) -> None:
    formula = tree_of("abcd", seen)
    vectors = [[name in state for name in "abcd"] for state, _ in seen]
    labels = [label for _, label in seen]
    reference = DecisionTreeClassifier(criterion="gini", random_state=0).fit(vectors, labels).score(vectors, labels)
    ours = sum(formula.evaluate(state) == label for state, label in seen) / len(seen)
    assert ours == pytest.approx(reference)


# -- demonstrations -----------------------------------------------------------------------------------------------


@given(tasks(repeats=True))
def test_msgi_returns_null_on_demonstrations(task: Task) -> None:
    learnt = learn_msgi(Sequences.from_task(task), MsgiOptions())
    assert all(formula == TRUE for formula in learnt.preconditions.values())
    assert not infer(task, "msgi").preconditions


def moments(task: Task, target: Step) -> list[Example]:
    """e = 1 where the target first starts, e = 0 at every earlier start of another step, in every video."""
    seen = []
    for video in task:
        starts = [place if s.start is None else s.start for place, s in enumerate(video.segments)]
        first = min((t for t, s in zip(starts, video.segments, strict=True) if s.step == target), default=float("inf"))
        for place, segment in enumerate(video.segments):
            if segment.step == target and starts[place] == first:
                seen.append((frozenset(gaps_at(video, place)), True))
            elif starts[place] < first:
                seen.append((frozenset(gaps_at(video, place)), False))
    return seen


def separable(seen: list[Example], columns: set[Step]) -> bool:
    """Whether no two moments that look alike through these steps differ in eligibility."""
    views = {label: {state & columns for state, e in seen if e == label} for label in (True, False)}
    return not views[True] & views[False]


def check_msgi_plus(task: Task) -> int:
    """Number of preconditions, after comparing with the layer-wise definition."""
    found = learn_msgi_plus(Sequences.from_task(task), MsgiOptions()).preconditions
    seen = {name: moments(task, name) for name in task.steps}
    everything = set(task.steps)
    waiting = {
        name
        for name in task.steps
        if {label for _, label in seen[name]} == {True, False} and separable(seen[name], everything - {name})
    }
    expected: set[Step] = set()
    while layer := {name for name in waiting if separable(seen[name], everything - waiting)}:
        for name in layer:
            assert found[name].steps <= everything - waiting
            assert all(found[name].evaluate(state) == label for state, label in seen[name])
        expected |= layer
        waiting -= layer
    assert {name for name, formula in found.items() if formula != TRUE} == expected
    SubtaskGraph("t", task.steps, found)  # rejects cycles
    return len(expected)


ONLY_ITS_OWN_COMPLETION_TELLS = Task(
    "t",
    "abcde",
    [
        # b is labelled twice from second 5 on, the second time with its first label and c done.
        Video("1", [timed_segment("a", 1, 1), timed_segment("b", 5, 0), timed_segment("b", 5, 2),
                    timed_segment("c", 5, 0), timed_segment("d", 8, 1), timed_segment("e", 9, 1)]),
        Video("2", [timed_segment("a", 1, 2), timed_segment("c", 2, 2), timed_segment("d", 6, 1),
                    timed_segment("a", 8, 1)]),
    ],
)  # fmt: skip
"""a & c (b aside) is eligible and ineligible for b, which thus needs nothing; e needs b & d."""


@example(Task("t", "ab", [Video("v", [Segment("a", 1, 2), Segment("b", 1, 2)])]))
@example(ONLY_ITS_OWN_COMPLETION_TELLS)
@given(tasks(repeats=True, most_videos=3))
def test_msgi_plus_separates_every_earlier_moment_or_gives_up(task: Task) -> None:
    check_msgi_plus(task)


def test_msgi_plus_on_clean_worlds() -> None:
    clean = SimulationOptions(videos=10, noise=NoiseOptions.none())
    assert sum(check_msgi_plus(simulate(world, clean, seed=0).task) for world in household_worlds()[:4]) > 0


def test_msgi_plus_is_null_when_inseparable() -> None:
    """After a, c came next in one video and b in the other: a alone is both eligible and ineligible for c."""
    task = Task("t", "abc", [Video("1", map(Segment, "abc")), Video("2", map(Segment, "acb"))])
    graph = infer(task, "msgi+")
    assert graph.preconditions == {}
    assert networkx.is_directed_acyclic_graph(graph.to_networkx())


def test_msgi_plus_counts_videos_without_the_step() -> None:
    alone = Task("t", "abc", [Video("1", map(Segment, "ac"))])
    assert infer(alone, "msgi+").precondition("c") == A
    both = Task("t", "abc", [Video("1", map(Segment, "ac")), Video("2", map(Segment, "ab"))])
    assert infer(both, "msgi+").precondition("c") == TRUE  # the second video waits for c after a, in vain


def test_a_negation_can_be_learnt() -> None:
    """c is done at once, or not at all once a has been done."""
    task = Task("t", "abc", [Video("1", map(Segment, "bc")), Video("2", map(Segment, "bab"))])
    # c starts with b done; it is waited for with nothing, b, and a and b done: b alone is both.
    assert infer(task, "msgi+").precondition("c") == TRUE
    again = [Segment("b", 0, 1), Segment("a", 0, 2), Segment("b", 3, 4)]
    task = Task("t", "abc", [Video("1", map(Segment, "bc")), Video("2", again)])
    # Without a moment at which only b is done, all that is left is: after b, unless a has been done.
    assert infer(task, "msgi+").precondition("c") == all_of([B, negation(A)])
