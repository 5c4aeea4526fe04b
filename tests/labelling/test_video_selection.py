"""Which video next and enough: against brute force over pairs of graphs, and against planted situations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from msg2.graph import SubtaskGraph, step
from msg2.inference.inference import run_inference
from msg2.labelling.video_selection import (
    FEWEST_VIDEOS,
    differing_pairs,
    draft_presence,
    graph_movement,
    graph_stability,
    rank_videos,
)
from msg2.metrics import compare_graphs
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video


def drafts(name: str, steps: str, sure: float = 0.9) -> Video:
    return Video(name, [Segment(one, place, place + 1, sure, "draft") for place, one in enumerate(steps)])


def labels(name: str, steps: str) -> Video:
    return Video(name, [Segment(one, place, place + 1) for place, one in enumerate(steps)])


def learned(task: Task) -> tuple[SubtaskGraph, ...]:
    frequencies = run_inference(task, samples=20).frequencies
    assert frequencies is not None
    return frequencies.graphs


def test_presence_is_that_of_independent_drafts() -> None:
    video = Video("v", [Segment("a", 0, 1, 0.5, "draft"), Segment("a", 2, 3, 0.2, "draft"), Segment("b", 4, 5)])
    assert draft_presence(video) == pytest.approx({"a": 1 - 0.5 * 0.8, "b": 0.5})


def test_pairs_that_nobody_has_shown_come_first() -> None:
    task = Task("t", "abcd", [labels(f"v{n}", "abc") for n in range(8)])
    choices = rank_videos([drafts("known", "abc"), drafts("new", "abd")], task, learned(task))
    assert [choice.video for choice in choices] == ["new", "known"]
    assert "no labelled video shows together" in choices[0].reason


def test_pairs_whose_order_is_open_come_before_those_that_are_settled() -> None:
    """a and b come either way round, c and d always in this order, each in as many videos."""
    either = [labels(f"e{n}", "ab" if n % 2 else "ba") for n in range(3)]
    settled = [labels(f"s{n}", "cd") for n in range(3)]
    graphs = [
        SubtaskGraph("t", "abcd", {"b": step("a"), "d": step("c")}),
        SubtaskGraph("t", "abcd", {"a": step("b"), "d": step("c")}),
    ]
    choices = rank_videos([drafts("cd", "cd"), drafts("ab", "ab")], Task("t", "abcd", either + settled), graphs)
    assert [choice.video for choice in choices] == ["ab", "cd"]
    assert choices[0].gain > choices[1].gain


def test_unsure_drafts_promise_less_and_no_drafts_are_an_average_video() -> None:
    task = Task("t", "abc", [labels("v0", "abc"), labels("v1", "acb")])
    choices = rank_videos([drafts("unsure", "abc", 0.4), drafts("sure", "abc"), Video("none", [])], task, learned(task))
    assert [choice.video for choice in choices] == ["none", "sure", "unsure"]  # every labelled video shows all three
    assert "average video" in choices[0].reason
    nothing = rank_videos([Video("b", []), Video("a", [])], Task("t", [], []), ())
    assert [(choice.video, choice.gain, choice.reason) for choice in nothing] == [
        ("a", 0.0, "nothing is known about it"), ("b", 0.0, "nothing is known about it"),
    ]  # fmt: skip


def test_the_order_of_videos_means_nothing() -> None:
    task = Task("t", "abcd", [labels("v0", "abcd"), labels("v1", "bacd")])
    videos = [drafts("x", "ab"), drafts("y", "abcd"), drafts("z", "cd")]
    assert rank_videos(videos, task, learned(task)) == rank_videos(videos[::-1], task, learned(task))


def test_movement_is_the_mean_distance_of_all_two_graphs() -> None:
    graphs = [
        SubtaskGraph("t", "abc", {"b": step("a")}),
        SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")}),
        SubtaskGraph("t", "abc", {"a": step("b")}),
        SubtaskGraph("t", "abc", {}, exclusive=["ac"]),
    ]
    distances = [1 - compare_graphs(a, b).agreement for a, b in combinations(graphs, 2)]
    assert graph_movement(graphs) == pytest.approx(np.mean(distances))


def test_more_videos_move_the_graph_less() -> None:
    options = SimulationOptions(videos=60)
    task = simulate(household_world("Make Coffee"), options, 0).task.with_first_labels()
    movements = []
    for count in (6, 60):
        some = task.with_videos(task.videos[:count])
        stability = graph_stability(learned(some), count)
        assert stability.movement is not None
        movements.append(stability.movement)
    assert movements[1] < movements[0]


def test_few_videos_are_never_enough() -> None:
    graphs = [SubtaskGraph("t", "ab", {"b": step("a")})] * 10
    few, many = graph_stability(graphs, FEWEST_VIDEOS - 1), graph_stability(graphs, FEWEST_VIDEOS)
    assert (few.movement, few.enough) == (None, False)
    assert "1 more video." in few.sentence
    assert (many.movement, many.enough) == (0, True)
    assert "Not yet" in graph_stability([*graphs[:5], *[SubtaskGraph("t", "ab", {})] * 5], 9).sentence


def test_differences_of_graphs_with_other_steps() -> None:
    first = SubtaskGraph("t", "abc", {"b": step("a")})
    second = SubtaskGraph("t", "abd", {"a": step("b"), "d": step("a")})
    found = {(pair.before, pair.after): (pair.first, pair.second) for pair in differing_pairs(first, second)}
    assert found == {("b", "a"): ("free", "needs"), ("a", "d"): ("free", "needs"), ("b", "d"): ("free", "needs")}
    assert differing_pairs(first, first) == ()
