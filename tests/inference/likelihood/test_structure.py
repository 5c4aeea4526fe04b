"""Order and presence together: the graph that is made of them says of every pair what was found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from msg2.graph import SubtaskGraph, all_of, step
from msg2.graph.closure import transitive_closure
from msg2.inference.likelihood import LikelihoodOptions
from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.score import OrderScorer
from msg2.inference.likelihood.structure import Structure, combine
from msg2.sequences import Sequences, Variants
from msg2.task import Segment, Task, Video

NAMES = "abcdef"
SIZE = len(NAMES)
ABOVE = np.triu(np.ones((SIZE, SIZE), dtype=bool), k=1)


def pairs_of(pairs: Iterable[str]) -> np.ndarray:
    relation = np.zeros((SIZE, SIZE), dtype=bool)
    for before, after in pairs:
        relation[NAMES.index(before), NAMES.index(after)] = True
    return relation


def structure(
    before: np.ndarray, required: str = "", implied: Iterable[str] = (), exclusive: Iterable[str] = (),
    shown: Iterable[str] = (),
) -> Structure:  # fmt: skip
    """What follows from an order (transitive) and from who is there with whom; `implied` has pairs as in "b has a"."""
    videos = [Video(f"v{number}", map(Segment, names)) for number, names in enumerate(shown)]
    sequences = Sequences.from_task(Task("t", NAMES, videos))
    variants = Variants.from_sequences(sequences)
    order = OrderScorer.from_variants(variants, LikelihoodOptions()).score(before)
    always = np.array([name in required for name in NAMES])
    never = pairs_of(exclusive) | pairs_of(exclusive).T
    there = (pairs_of(pair[::-1] for pair in implied) | always[:, None]) & ~never & ~np.eye(SIZE, dtype=bool)
    seen = sequences.shown.any(axis=1)
    presence = PresenceModel(sequences.shown[seen], sequences.weight[seen], 0.02, 0.001, always, there, never)
    return combine(order, presence, variants, every_label=False)


def graph_of(found: Structure) -> SubtaskGraph:
    """As the learner makes it, but for the alternatives."""
    return SubtaskGraph(
        "t", NAMES,
        {n: all_of(step(NAMES[a]) for a in np.flatnonzero(found.needs[:, b])) for b, n in enumerate(NAMES)},
        order=[(NAMES[a], NAMES[b]) for a, b in np.argwhere(found.order)],
        exclusive=[[NAMES[a] for a in group] for group in found.exclusive],
        optional=[name for name, optional in zip(NAMES, found.optional, strict=True) if optional],
    )  # fmt: skip


RELATIONS = arrays(bool, (SIZE, SIZE)).map(lambda pairs: transitive_closure(pairs & ABOVE))
PRESENT = arrays(bool, (SIZE, SIZE))


@given(RELATIONS, PRESENT, st.sets(st.sampled_from(NAMES)))
def test_the_graph_says_of_every_pair_what_was_found(before: np.ndarray, there: np.ndarray, required: set[str]) -> None:
    implied = [f"{NAMES[b]}{NAMES[a]}" for a, b in np.argwhere(there) if a != b]
    found = structure(before, "".join(required), implied)
    always = np.array([name in required for name in NAMES])
    needs = transitive_closure(before & (there | always[:, None]))
    graph = graph_of(found)
    for a, b in np.argwhere(ABOVE):
        kind = "needs" if needs[a, b] else "after" if before[a, b] else "free"
        assert graph.kind(NAMES[a], NAMES[b]) == kind
        assert graph.kind(NAMES[b], NAMES[a]) == "free"
    needed = required | {NAMES[a] for a, b in np.argwhere(needs) if NAMES[b] in required}
    assert graph.required == needed
    fewer = [(pair, [other for other in graph.order if other != pair]) for pair in graph.order]
    for pair, others in fewer:  # none of the pairs that are written follows from the rest
        rest = SubtaskGraph("t", NAMES, graph.preconditions, order=others, optional=graph.optional)
        assert rest.kind(*pair) == "free"


def test_where_a_step_is_required_what_comes_after_it_needs_it() -> None:
    assert graph_of(structure(pairs_of(["ab"]), required="a")).kind("a", "b") == "needs"
    assert graph_of(structure(pairs_of(["ab"]), implied=["ba"])).kind("a", "b") == "needs"
    assert graph_of(structure(pairs_of(["ab"]), implied=["ab"])).kind("a", "b") == "after"
    assert graph_of(structure(pairs_of(["ab"]))).kind("a", "b") == "after"


def test_a_pair_is_left_out_of_the_order_only_where_a_step_between_always_carries_it() -> None:
    chain = transitive_closure(pairs_of(["ab", "bc"]))
    assert {*map(tuple, np.argwhere(structure(chain).order).tolist())} == {(0, 1), (1, 2), (0, 2)}
    needed = structure(chain, implied=["cb"])  # every run with c has b
    assert np.argwhere(needed.order).tolist() == [[0, 1]]
    assert np.argwhere(needed.needs).tolist() == [[1, 2]]
    always = structure(chain, required="b")
    assert np.argwhere(always.order).tolist() == [[0, 1]]


def test_an_exclusive_pair_has_no_order() -> None:
    found = structure(transitive_closure(pairs_of(["ab", "bc"])), required="c", exclusive=["ab"],
                      shown=["ac", "bc"] * 9)  # fmt: skip
    assert found.exclusive == ((0, 1),)
    assert not found.order[0, 1]
    assert not found.needs[0, 1]
    assert graph_of(found).kind("a", "b") == "exclusive"


@pytest.mark.parametrize(("neither", "optional"), [(0, ""), (1, ""), (9, "ab")])
def test_the_steps_of_a_group_that_is_always_there_are_not_optional(neither: int, optional: str) -> None:
    found = structure(pairs_of([]), required="c", exclusive=["ab"], shown=["ac", "bc"] * 9 + ["c"] * neither)
    assert {name for name, one in zip("abc", found.optional, strict=False) if one} == set(optional)


def test_alternatives_belong_to_the_first_step_that_needs_one_of_them() -> None:
    shown = ["acd", "bcd"] * 15
    before = transitive_closure(pairs_of(["ac", "bc", "cd"]))
    found = structure(before, required="cd", exclusive=["ab"], shown=shown)
    assert [set(groups) for groups in found.alternatives[:4]] == [set(), set(), {frozenset({0, 1})}, set()]
    assert all(gain > 0 for gain in found.alternatives[2].values())
    apart = structure(
        transitive_closure(pairs_of(["ac", "bc", "ad", "bd"])), required="cd", exclusive=["ab"], shown=shown
    )
    assert [set(groups) for groups in apart.alternatives[2:4]] == [{frozenset({0, 1})}] * 2


def test_of_alternatives_that_come_with_others_the_last_one_stands_for_all() -> None:
    """a always comes with b, and c with d: e needs b or d."""
    shown = ["abe", "cde"] * 15
    found = structure(transitive_closure(pairs_of(["ab", "be", "cd", "de"])), required="e",
                      implied=["ab", "ba", "cd", "dc"], exclusive=["ac", "ad", "bc", "bd"], shown=shown)  # fmt: skip
    assert set(found.alternatives[4]) == {frozenset({1, 3})}
