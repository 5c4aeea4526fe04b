"""The learning curve beside bigrams: its worlds, its baselines, and what must hold where a bigram is the truth."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import fmean

import pytest

from experiments.forecasting.few_videos import draw_chain, smoothed_bigram
from experiments.forecasting.next_step_transfer import subsample_videos
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import evaluate_ranker
from msg2.assist.rankers import bigram
from msg2.graph import SubtaskGraph


def test_chains_are_chains() -> None:
    """What comes next depends on the last step, and hardly on the one before it."""
    task = draw_chain(0, 3, repeats=True)
    counts: Counter[tuple[str, str, str]] = Counter()
    for video in task:
        names = [segment.step for segment in video.segments]
        counts.update(zip(names, names[1:], names[2:], strict=False))
    for middle in task.steps:
        after = {a: [counts[a, middle, b] for b in task.steps] for a in task.steps}
        shares = [[count / sum(row) for count in row] for row in after.values() if sum(row) > 60]
        for one, other in pairwise(shares):
            assert one == pytest.approx(other, abs=0.2)
    assert all(len(set(video.sequence())) == len(video.segments) for video in draw_chain(3, 6, repeats=False))


def test_smoothing_by_hand() -> None:
    task = draw_chain(1, 4, repeats=True)
    single = Counter(segment.step for video in task for segment in video.segments)
    first = Counter(video.segments[0].step for video in task)
    whole = single.total() + 0.5 * len(task.steps)
    expected = {name: (first[name] + 2 * (single[name] + 0.5) / whole) / (len(task) + 2) for name in task.steps}
    assert smoothed_bigram(task, 2.0)([]) == pytest.approx(expected)


def test_with_few_videos_the_forecaster_keeps_up_with_a_bigram_that_is_the_truth() -> None:
    points = []
    for number in range(8):
        task = draw_chain(number, 5 + number, repeats=False)
        training, test = subsample_videos(task.select(range(40)), 5, number), task.select(range(40, 60))
        learned = fit_forecaster(SubtaskGraph(task.name, task.steps, {}), training)
        both = (evaluate_ranker(ranker, test).accuracy or 0 for ranker in (learned, bigram(training)))
        points.append(100 * (next(both) - next(both)))
    assert fmean(points) > -0.5
