"""Agreement of two people, against scikit-learn on a grid of seconds and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from msg2.metrics import annotator_agreement, cohen_kappa
from msg2.task import Segment, Task, Video

STEPS = ("dip", "fry", "whisk")


def random_task(seed: int, videos: int = 6) -> Task:
    """Labels whose times are whole seconds; some steps are left out, some are there twice."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(videos):
        segments = [
            Segment(name, float(start), float(start + random.integers(1, 15)))
            for name in STEPS
            for start in random.integers(0, 40, size=random.integers(0, 3))
        ]
        made.append(Video(f"v{number}", [*segments, Segment("whisk", 59, 60)]))  # so that both end at the same time
    return Task("toast", STEPS, made)


def on_a_grid(task: Task, name: str) -> np.ndarray:
    """For every second of every video, whether the step goes on in the middle of it."""
    seconds = np.arange(60) + 0.5
    spans = [[(s.start, s.end) for s in video.segments if s.step == name] for video in task]
    return np.array([any(start <= at < end for start, end in each) for each in spans for at in seconds])


@pytest.mark.parametrize("seed", range(5))
def test_kappas_are_those_of_scikit_learn(seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    first, second = random_task(seed), random_task(seed + 100)
    found = annotator_agreement(first, second)
    assert found.videos == 6
    grids = {name: (on_a_grid(first, name), on_a_grid(second, name)) for name in STEPS}
    for one in found.steps[:2]:
        assert one.time_kappa == pytest.approx(sklearn.cohen_kappa_score(*grids[one.step]))
        shown = [[any(s.step == one.step for s in v.segments) for v in task] for task in (first, second)]
        if len({*shown[0], *shown[1]}) > 1:
            assert one.presence_kappa == pytest.approx(sklearn.cohen_kappa_score(*shown))
        assert (one.first, one.second) == (sum(shown[0]), sum(shown[1]))
    pooled = [np.concatenate([grids[name][who] for name in STEPS]) for who in range(2)]
    assert found.overall.time_kappa == pytest.approx(sklearn.cohen_kappa_score(*pooled))


def test_by_hand() -> None:
    ann = Task("t", "ab", [Video("v", [Segment("a", 0, 5)]), Video("w", [Segment("b", 0, 10)]), Video("x", [])])
    ben = Task("t", "ab", [Video("v", [Segment("a", 0, 10)]), Video("w", []), Video("y", [])])
    found = annotator_agreement(ann, ben)
    assert found.videos == 2  # x and y are not in both
    a, b = found.steps
    assert a.presence_kappa == 1
    # Ann: 5 of 20 seconds, Ben: 10, both: 5; p_o = 15/20, p_e = 5/20 10/20 + 15/20 10/20 = 1/2.
    assert a.time_kappa == pytest.approx(0.5)
    assert (b.first, b.second, b.both, b.presence_kappa) == (1, 0, 0, 0)


def test_nothing_to_compare_is_not_zero() -> None:
    assert cohen_kappa(np.zeros((2, 2))) is None
    assert cohen_kappa(np.array([[0.0, 0.0], [0.0, 7.0]])) is None
    empty = annotator_agreement(Task("t", [], []), Task("t", [], []))
    assert (empty.videos, empty.steps, empty.overall.presence_kappa) == (0, (), None)
    untimed = Task("t", "ab", [Video("v", [Segment("a")]), Video("w", [Segment("b")])])
    one = annotator_agreement(untimed, untimed).steps[0]
    assert (one.presence_kappa, one.time_kappa) == (1, None)


def test_who_is_first_does_not_matter_and_neither_does_the_unit() -> None:
    first, second = random_task(1), random_task(2)
    there, back = annotator_agreement(first, second), annotator_agreement(second, first)
    assert there.overall.time_kappa == pytest.approx(back.overall.time_kappa)
    vast = [
        Task(
            "t",
            STEPS,
            [Video(v.id, [Segment(s.step, s.start * 1e300, s.end * 1e300) for s in v.segments]) for v in task],
        )
        for task in (first, second)
    ]
    assert annotator_agreement(*vast).overall.time_kappa == pytest.approx(there.overall.time_kappa)
