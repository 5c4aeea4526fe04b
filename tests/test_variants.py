"""Variants: the same partial orders counted once, against loops over videos and pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from msg2.sequences import Sequences, Variants
from msg2.task import Segment, Task, Video
from tests.inference.conftest import precedes, tasks


def variants_of(task: Task) -> Variants:
    return Variants.from_sequences(Sequences.from_task(task))


def partial_orders(task: Task) -> Counter[tuple[frozenset[str], frozenset[tuple[str, str]]]]:
    """The steps of each video and who came before whom, of first occurrences."""
    found: Counter[tuple[frozenset[str], frozenset[tuple[str, str]]]] = Counter()
    for video in task:
        first: dict[str, int] = {}
        for place, segment in enumerate(video.segments):
            first.setdefault(segment.step, place)
        pairs = {(a, b) for a, i in first.items() for b, j in first.items() if a != b and precedes(video, i, j)}
        found[frozenset(first), frozenset(pairs)] += 1
    return found


@given(tasks(repeats=True))
def test_they_are_the_partial_orders_of_the_videos(task: Task) -> None:
    variants = variants_of(task)
    found = {}
    for start, end, weight in zip(variants.start, variants.end, variants.weight.tolist(), strict=True):
        shown = {name for name, rank in zip(task.steps, start, strict=True) if rank >= 0}
        pairs = {(task.steps[a], task.steps[b]) for a, b in np.argwhere(end[:, None] <= start[None, :]).tolist()}
        found[frozenset(shown), frozenset(pairs)] = weight
    assert found == partial_orders(task)
    assert len(variants.weight) == len(found)


@given(tasks(repeats=True))
def test_what_is_counted_of_all_videos(task: Task) -> None:
    variants, sequences = variants_of(task), Sequences.from_task(task)
    orders = partial_orders(task)
    for (a, b), count in np.ndenumerate(variants.before):
        pair = task.steps[a], task.steps[b]
        assert count == sum(times for (_, pairs), times in orders.items() if pair in pairs)
    repeated = [sum(video.sequence().count(name) > 1 for video in task) for name in task.steps]
    raw = [sum([s.step for s in video.segments].count(name) > 1 for video in task) for name in task.steps]
    assert variants.repeated.tolist() in (repeated, raw)
    assert variants.weight.sum() == len(task.videos)
    assert (variants.weight @ variants.shown == sequences.weight @ sequences.shown).all()


@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_the_videos_does_not_matter(task: Task, random: object) -> None:
    videos = list(task.videos)
    random.shuffle(videos)  # type: ignore[attr-defined]
    # Names decide the order of the videos of a task.
    renamed = [Video(f"{number:03d}", video.segments) for number, video in enumerate(videos)]
    one, other = variants_of(task), variants_of(Task(task.name, task.steps, renamed))
    assert (one.start == other.start).all()
    assert (one.end == other.end).all()
    assert (one.weight == other.weight).all()


def test_a_sample_is_of_whole_videos_and_evenly_spread() -> None:
    runs = ["abc"] * 60 + ["acb"] * 30 + ["bac"] * 10
    task = Task("t", "abc", [Video(f"v{n:03d}", map(Segment, run)) for n, run in enumerate(runs)])
    variants = variants_of(task)
    assert variants.sample(300) is variants
    assert variants.sample(9) is variants  # three variants of three labels: nothing to save
    drawn = variants_of(task).sample(8)
    assert drawn.weight.sum() == 2
    many = Task("t", "abcdef", [Video(f"v{n:03d}", map(Segment, np.random.default_rng(n).permutation(list("abcdef"))))
                                for n in range(200)])  # fmt: skip
    sample = variants_of(many).sample(120)
    assert sample.weight.sum() == 20
    assert sample.weight @ sample.shown.sum(axis=1) == 120


def test_times_do_not_matter_but_who_came_before_whom() -> None:
    def video(name: str, *times: tuple[str, float, float]) -> Video:
        return Video(name, [Segment(*one) for one in times])

    same = [
        video("v", ("a", 0, 5), ("b", 3, 9), ("c", 20, 21)),
        video("w", ("b", 1, 2), ("a", 1, 2), ("c", 2, 400)),
    ]
    assert len(variants_of(Task("t", "abc", same)).weight) == 1
    other = video("x", ("a", 0, 3), ("b", 3, 9), ("c", 20, 21))
    assert len(variants_of(Task("t", "abc", [*same, other])).weight) == 2
