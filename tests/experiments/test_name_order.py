"""An order from names alone: the rules by hand, and what must hold whatever the names."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import name_order
from experiments.name_order import BEGINNING, END, MIDDLE, NameOrderOptions, infer_by_names, stage
from msg2.errors import InputError
from msg2.inference import METHODS
from msg2.sequences import Sequences
from msg2.task import Segment, Task, Video

SOME_WORDS = ["open", "wash", "pour", "fry", "serve", "after", "before", "egg", "pan", "the", "it", "first"]
NAMES = st.lists(st.sampled_from(SOME_WORDS), min_size=1, max_size=4).map(" ".join)


def edges(*names: str) -> set[tuple[str, str]]:
    return set(infer_by_names(Task("t", names, [])).edge_pairs())


def test_stages() -> None:
    assert [stage(name) for name in ("Preheat oven", "stir", "Finally, stir", "")] == [BEGINNING, MIDDLE, END, MIDDLE]
    assert stage("put the cut onions in") == stage("cut onions")  # the first word that tells, wherever it stands
    assert stage("opening") == MIDDLE  # other forms of a word may be about something else


def test_what_is_about_the_same_thing_is_in_the_order_of_its_stages() -> None:
    assert edges("peel eggs", "add eggs", "fry onions") == {("peel eggs", "add eggs")}


def test_beginnings_and_ends_hold_for_all() -> None:
    assert edges("preheat oven", "peel eggs", "fry onions", "serve") == {
        ("preheat oven", "peel eggs"), ("preheat oven", "fry onions"), ("peel eggs", "serve"), ("fry onions", "serve"),
    }  # fmt: skip


def test_small_words_make_nothing_alike() -> None:
    assert edges("peel the eggs", "add the oil") == set()


def test_a_name_that_says_after_what_it_comes_outweighs_its_stage() -> None:
    assert edges("open wine", "pour broth") == {("open wine", "pour broth")}
    assert edges("open wine after broth", "pour broth") == {("pour broth", "open wine after broth")}
    assert edges("stir rice before adding salt", "salt") == {("stir rice before adding salt", "salt")}
    assert edges("stir rice before adding salt", "pepper") == set()


def test_names_that_contradict_each_other_say_nothing() -> None:
    assert edges("stir after mix", "mix after stir") == set()


@given(st.lists(NAMES, min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_whatever_the_names_it_is_an_order_and_the_videos_have_no_part_in_it(names, randomness) -> None:
    graph = infer_by_names(Task("t", names, []))
    drawn = networkx.DiGraph(graph.edge_pairs())
    assert networkx.is_directed_acyclic_graph(drawn)
    assert set(networkx.transitive_reduction(drawn).edges) == graph.edge_pairs()
    video = Video("v", [Segment(name) for name in randomness.sample(names, len(names))])
    assert infer_by_names(Task("t", names, [video])).preconditions == graph.preconditions


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_without_cues_every_edge_goes_to_a_later_stage(names: list[str]) -> None:
    plain = [name for name in names if not {"after", "before"} & set(name.split())]
    assert all(stage(a) < stage(b) for a, b in edges(*plain))


def test_another_encoder_says_what_is_alike() -> None:
    sequences = Sequences.from_task(Task("t", ["add yolks", "peel eggs"], []))
    found = name_order.learn(sequences, NameOrderOptions(), lambda texts: np.ones((len(texts), 1), np.float32))
    assert {name: sorted(formula.steps) for name, formula in found.preconditions.items()} == {
        "add yolks": ["peel eggs"], "peel eggs": [],
    }  # fmt: skip


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.5, float("nan")])
def test_a_similarity_out_of_range_is_refused(similarity: float) -> None:
    with pytest.raises(InputError, match="similarity"):
        NameOrderOptions(similarity)


def test_the_method_is_known_only_while_it_is_used() -> None:
    assert infer_by_names(Task("t", "ab", [])).method["name"] == "name-order"
    assert "name-order" not in METHODS
