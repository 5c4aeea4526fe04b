"""What is said around steps, against counting by hand and against SciPy's G²."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, power_divergence

from msg2.metrics.step_phrases import _g2, phrases_around_steps
from msg2.task import Segment, Sentence, Task, Video

STEPS = ["dip", "fry", "serve"]
times = st.integers(0, 30)
spans = st.tuples(times, st.integers(1, 6)).map(lambda pair: (float(pair[0]), float(sum(pair))))
sentences = st.builds(
    lambda text, span: Sentence(text, *span), st.sampled_from(["dip it", "Fry it", "fry it", "so", "ok"]), spans
)
segments = st.builds(lambda step, span: Segment(step, *span), st.sampled_from(STEPS[:2]), spans)
tasks = st.lists(st.tuples(st.lists(segments, max_size=4), st.lists(sentences, max_size=8)), max_size=4).map(
    lambda videos: Task("toast", STEPS, [Video(f"v{number}", *found) for number, found in enumerate(videos)])
)


def counted(task: Task, step: str, seconds: float) -> tuple[Counter[str], Counter[str], dict[str, set[str]]]:
    """Around the step, in all, and the videos, from the definition: a sentence is around a step or not."""
    near, in_all, where = Counter(), Counter(), {}
    for video in task:
        for sentence in video.sentences:
            phrase = sentence.text.lower()
            in_all[phrase] += 1
            gaps = [
                max(segment.start - sentence.end, sentence.start - segment.end)
                for segment in video.segments
                if segment.step == step
            ]
            if gaps and min(gaps) <= seconds:
                near[phrase] += 1
                where.setdefault(phrase, set()).add(video.id)
    return near, in_all, where


@settings(max_examples=30)
@given(tasks, st.sampled_from([0.0, 2.0, 5.5]))
def test_counts_are_those_of_brute_force(task: Task, seconds: float) -> None:
    found = phrases_around_steps(task, seconds)
    assert list(found) == list(task.steps)
    for step, said in found.items():
        near, in_all, where = counted(task, step, seconds)
        expected = {
            phrase: (near[phrase], in_all[phrase], len(where[phrase]))
            for phrase in near
            if near[phrase] * in_all.total() > in_all[phrase] * near.total()
        }
        assert {one.phrase: (one.near, one.times, one.videos) for one in said} == expected
        for one in said:
            others = np.array([near.total() - one.near, in_all.total() - one.times - near.total() + one.near])
            table = np.array([[one.near, one.times - one.near], others])
            assert one.g2 == pytest.approx(g2(table), abs=1e-9)
            assert one.lift == pytest.approx((one.near / one.times) * in_all.total() / near.total())
        assert [one.g2 for one in said] == pytest.approx(sorted((one.g2 for one in said), reverse=True))


def g2(table: np.ndarray) -> float:
    """G² by SciPy; where a row or column is empty, there is nothing to be surprised by."""
    if 0 in (*table.sum(axis=0), *table.sum(axis=1)):
        return 0.0
    return chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic


@settings(max_examples=30)
@given(st.tuples(*[st.integers(0, 1000)] * 4))
def test_g2_is_that_of_scipy(cells: tuple[int, int, int, int]) -> None:
    table = np.array(cells).reshape(2, 2)
    assume((table.sum(axis=0) > 0).all() and (table.sum(axis=1) > 0).all())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    assert _g2(*cells) == pytest.approx(g2(table), abs=1e-6)
    other = power_divergence(table.ravel(), expected.ravel(), lambda_="log-likelihood").statistic
    assert _g2(*cells) == pytest.approx(other, abs=1e-6)


def test_the_most_telling_come_first_and_equals_by_name() -> None:
    def said(*texts: str, at: float) -> list[Sentence]:
        return [Sentence(text, at, at + 1) for text in texts]

    videos = [
        Video(f"v{number}", [Segment("dip", 10, 12)], said("dip it", "b", "a", at=10) + said("so", "so", at=90))
        for number in range(2)
    ]
    last = Video("v9", [Segment("dip", 10, 12)], said("dip it", at=11) + said("so", at=10))
    task = Task("toast", STEPS, [*videos, last])
    (first, *others) = phrases_around_steps(task, 5)["dip"]
    assert (first.phrase, first.near, first.times, first.videos) == ("dip it", 3, 3, 3)
    assert [one.phrase for one in others] == ["a", "b"]
    assert first.g2 > others[0].g2 == others[1].g2


def test_a_step_that_occurs_twice_hears_a_sentence_once() -> None:
    video = Video(
        "v1", [Segment("dip", 1, 2), Segment("dip", 3, 4)], [Sentence("dip it", 2, 3), Sentence("so", 90, 91)]
    )
    assert [(one.near, one.times) for one in phrases_around_steps(Task("toast", STEPS, [video]), 5)["dip"]] == [(1, 1)]


def test_steps_without_times_have_nothing_around_them() -> None:
    video = Video("v1", [Segment("dip"), Segment("fry")], [Sentence("dip it", 2, 3)])
    assert phrases_around_steps(Task("toast", STEPS, [video]), 5) == {step: [] for step in STEPS}
