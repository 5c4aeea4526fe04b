"""Mistakes: too early, and left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import SkippedStep, StepTotal, check
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.task import Segment, Task, Video

NAMES = "abcde"
COFFEE = SubtaskGraph(
    "coffee",
    ["boil", "grind", "open", "pour"],
    {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])])},
)


def untimed(steps: Sequence[str], id: str = "v") -> Video:
    return Video(id, map(Segment, steps))


@st.composite
def graphs(draw: st.DrawFn) -> SubtaskGraph:
    preconditions = {}
    for place, name in enumerate(NAMES[1:], start=1):
        literals = st.lists(st.sampled_from(NAMES[:place]).map(step), max_size=3)
        joined = literals.map(all_of) | literals.filter(bool).map(any_of)
        preconditions[name] = draw(st.lists(joined, max_size=2).map(all_of))
    return SubtaskGraph("task", NAMES, preconditions)


def test_the_unmet_clause_is_named() -> None:
    report = check(COFFEE, untimed(["boil", "pour", "grind"]))
    (mistake,) = report.mistakes
    assert (mistake.video, mistake.step, mistake.start, mistake.position) == ("v", "pour", None, 2)
    assert mistake.unmet == (any_of([step("grind"), step("open")]),)
    assert mistake.completed == ("boil",)
    assert report.skipped == ()


def test_a_step_in_time_must_have_ended() -> None:
    early = [Segment("boil", 0, 10), Segment("grind", 2, 4), Segment("pour", 9, 12)]
    (mistake,) = check(COFFEE, Video("v", early)).mistakes
    assert (mistake.start, mistake.unmet, mistake.completed) == (9, (step("boil"),), ("grind",))
    late = [Segment("boil", 0, 9), Segment("grind", 2, 4), Segment("pour", 9, 12)]
    assert check(COFFEE, Video("v", late)).mistakes == ()


def test_every_occurrence_is_checked() -> None:
    report = check(COFFEE, untimed(["pour", "boil", "pour", "open", "pour"]))
    assert [mistake.position for mistake in report.mistakes] == [1, 3]
    assert report.totals == (
        StepTotal("boil", 1, 0, 0),
        StepTotal("grind", 0, 0, 0),
        StepTotal("open", 1, 0, 0),
        StepTotal("pour", 3, 2, 0),
    )


@given(graphs(), st.data())
def test_mistakes_in_time_against_every_pair_of_segments(graph: SubtaskGraph, data: st.DataObject) -> None:
    segments = data.draw(
        st.lists(
            st.builds(
                lambda name, start, length: Segment(name, start, start + length),
                st.sampled_from(NAMES),
                st.integers(0, 8),
                st.integers(0, 4),
            ),
            max_size=7,
        )
    )
    video = Video("v", segments)
    expected = []
    for position, segment in enumerate(video.segments, start=1):
        completed = {other.step for other in video.segments if other.before(segment)}
        if segment.step not in graph.eligible(completed):
            expected.append((segment.step, segment.start, position, tuple(sorted(completed))))
    found = [(m.step, m.start, m.position, m.completed) for m in check(graph, video).mistakes]
    assert found == expected


@given(graphs(), st.permutations(NAMES))
def test_an_order_that_follows_the_graph_has_no_mistakes(graph: SubtaskGraph, wishes: list[str]) -> None:
    done: list[str] = []
    while len(done) < len(NAMES):
        done.append(next(name for name in wishes if name in graph.eligible(done) and name not in done))
    report = check(graph, untimed(done))
    assert (report.mistakes, report.skipped) == ((), ())


# -- skipped ----------------------------------------------------------------------------------------------------------


def test_one_way_of_an_or_is_enough() -> None:
    assert check(COFFEE, untimed(["boil", "open", "pour"])).skipped == ()
    assert check(COFFEE, untimed(["open", "pour"])).skipped == (SkippedStep("v", "boil", ("pour",)),)


def test_with_no_way_taken_no_single_step_was_skipped() -> None:
    """Either would have done: the mistake says so, and neither of the two is blamed."""
    report = check(COFFEE, untimed(["boil", "pour"]))
    assert report.skipped == ()
    assert len(report.mistakes) == 1


def test_what_is_absent_but_not_needed_is_not_skipped() -> None:
    assert check(COFFEE, untimed(["grind"])).skipped == ()
    assert check(COFFEE, Video("v", [])).skipped == ()


def test_needed_through_other_steps() -> None:
    ways = SubtaskGraph("t", "abcd", {"b": step("a"), "c": step("a"), "d": any_of([step("b"), step("c")])})
    assert check(ways, untimed("bd")).skipped == (SkippedStep("v", "a", ("b", "d")),)
    assert check(ways, untimed("d")).skipped == (SkippedStep("v", "a", ("d",)),)


def test_a_negation_does_not_ask_for_a_step() -> None:
    graph = SubtaskGraph("t", "ab", {"b": negation(step("a"))})
    assert check(graph, untimed("b")).skipped == ()
    assert [mistake.unmet for mistake in check(graph, untimed("ab")).mistakes] == [(negation(step("a")),)]


@given(graphs(), st.sets(st.sampled_from(NAMES)))
def test_skipped_is_what_no_execution_can_do_without(graph: SubtaskGraph, shown: set[str]) -> None:
    expected = {}
    for missing in set(NAMES) - shown:
        possible: set[str] = set()
        for _ in NAMES:
            possible |= graph.eligible(possible) - {missing}
        if shown - possible:
            expected[missing] = shown - possible
    found = {s.step: s.needed_by for s in check(graph, untimed(sorted(shown))).skipped}
    assert found == {name: tuple(n for n in graph.steps if n in needed) for name, needed in expected.items()}
    assert list(found) == [name for name in graph.steps if name in expected]


class CountedName(str):
    """A name that counts how often it is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        CountedName.lookups += 1
        return super().__hash__()


def test_a_video_that_skips_nothing_costs_no_look_at_every_pair_of_steps() -> None:
    names = [CountedName(f"{number:02d}") for number in range(60)]
    chain = SubtaskGraph("chain", names, {after: step(before) for before, after in pairwise(names)})
    costs = []
    for videos in (1, 11):
        before = CountedName.lookups
        report = check(chain, Task("chain", names, [untimed(names, f"v{n}") for n in range(videos)]))
        costs.append(CountedName.lookups - before)
        assert (report.mistakes, report.skipped) == ((), ())
    assert (costs[1] - costs[0]) / 10 < 60 * 60 / 2


# -- report -----------------------------------------------------------------------------------------------------------


def test_a_task_is_checked_video_by_video() -> None:
    task = Task("coffee", COFFEE.steps, [untimed(["pour"], "v2"), untimed(["pour", "boil"], "v1"), Video("v0", [])])
    report = check(COFFEE, task)
    assert report.videos == 3
    assert [(m.video, m.step) for m in report.mistakes] == [("v1", "pour"), ("v2", "pour")]
    assert report.skipped == (SkippedStep("v2", "boil", ("pour",)),)


def test_report_as_json() -> None:
    report = check(COFFEE, Video("v", [Segment("pour", 1.5, 2.0)]))
    value = json.loads(json.dumps(report.to_json()))
    assert value == {
        "videos": 1,
        "mistakes": [
            {
                "video": "v",
                "step": "pour",
                "start": 1.5,
                "position": 1,
                "unmet": ["boil", {"any": ["grind", "open"]}],
                "completed": [],
            }
        ],
        "skipped": [{"video": "v", "step": "boil", "needed_by": ["pour"]}],
        "totals": [
            {"step": "boil", "occurrences": 0, "violations": 0, "skipped": 1},
            {"step": "grind", "occurrences": 0, "violations": 0, "skipped": 0},
            {"step": "open", "occurrences": 0, "violations": 0, "skipped": 0},
            {"step": "pour", "occurrences": 1, "violations": 1, "skipped": 0},
        ],
    }


def test_an_unknown_step_is_named_with_its_video() -> None:
    with pytest.raises(InputError, match="video 'v': 'brew' is not a step of the graph"):
        check(COFFEE, untimed(["boil", "brew"]))


def test_marks_are_short_notes_on_what_went_wrong() -> None:
    videos = [untimed(["pour", "boil"], "v1"), untimed(["pour"], "v2"), untimed(["boil", "grind", "pour"], "v3")]
    marks = check(COFFEE, Task("coffee", COFFEE.steps, videos)).marks()
    assert marks == {"boil": "skipped once", "pour": "2 of 3 too early"}
