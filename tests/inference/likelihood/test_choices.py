"""Choices: who is open and who has been begun, against a loop over all pairs of segments."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from msg2.inference.likelihood.choices import ChoiceEvents, to_flags
from msg2.sequences import Sequences, Variants
from msg2.task import Segment, Task, Video
from tests.inference.conftest import precedes, tasks


def choices(task: Task) -> ChoiceEvents:
    return ChoiceEvents.from_variants(Variants.from_sequences(Sequences.from_task(task)))


def choices_by_hand(task: Task) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """(step, open, begun) of every choice: the step itself, what starts after it ends, what ended before."""
    found = []
    for video in task:
        first: dict[str, int] = {}
        for place, segment in enumerate(video.segments):
            first.setdefault(segment.step, place)
        for name, place in first.items():
            still_open = {name} | {other for other, there in first.items() if precedes(video, place, there)}
            begun = {other for other, there in first.items() if precedes(video, there, place)}
            if len(still_open) > 1:
                found.append((name, frozenset(still_open), frozenset(begun)))
    return found


@given(tasks(repeats=True))
def test_overlapping_steps_are_neither_open_nor_begun(task: Task) -> None:
    events = choices(task)
    bits = [to_flags(flags, len(events.step)).astype(bool) for flags in (events.now, events.open, events.begun)]
    found: Counter[tuple[str, frozenset[str], frozenset[str]]] = Counter()
    for place in range(len(events.step)):
        now, still_open, begun = (
            frozenset(n for n, row in zip(task.steps, b, strict=True) if row[place]) for b in bits
        )
        assert now == {task.steps[events.step[place]]}
        assert events.open_count[place] == len(still_open)
        found[(*now, still_open, begun)] += int(events.weight[events.video[place]])
    assert found == Counter(choices_by_hand(task))


@given(tasks())
def test_without_an_order_all_that_is_open_is_eligible(task: Task) -> None:
    events = choices(task)
    free = events.eligible_under(np.zeros((len(task.steps), len(task.steps)), dtype=bool), frozenset())
    assert (free.count == events.open_count).all()
    assert to_flags([free.hit], len(events.step)).all()


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_steps_that_overlap_there_is_no_choice(first: str) -> None:
    second = "b" if first == "a" else "a"
    video = Video("v", [Segment(first, 0, 10), Segment(second, 5, 12), Segment("c", 20, 25)])
    events = choices(Task("t", "abc", [video]))
    assert len(events.step) == 2  # a or c, and b or c; when c comes nothing else is left
    assert events.open_count.tolist() == [2, 2]
    begun = to_flags(events.begun, len(events.step))
    assert not begun.any()
