"""Orders of labelling: when to stop, random orders by brute force, and a choice that sees no label too early."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from statistics import fmean

import numpy as np
import pytest

from experiments.labelling import label_orders
from experiments.labelling.annotator_study import measure_order
from experiments.labelling.label_orders import (
    ChosenOrder,
    agreement_curve,
    close_for_good,
    curve_sizes,
    first_close,
    labels_within,
    mean_agreement,
    most_drafted_first,
    random_order,
    simulated_drafts,
    workbench_order,
)
from msg2 import metrics
from msg2.inference import infer
from msg2.inference.inference import run_inference
from msg2.labelling.video_selection import rank_videos
from msg2.task import Segment, Task, Video

SEQUENCES = {"v1": "abc", "v2": "acb", "v3": "ab", "v4": "bc"}


def task_of(sequences: dict[str, str]) -> Task:
    steps = sorted(set("".join(sequences.values())))
    videos = [
        Video(name, [Segment(step, 2 * at, 2 * at + 1) for at, step in enumerate(sequence)])
        for name, sequence in sequences.items()
    ]
    return Task("t", steps, videos)


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_orders, "SIZES", (1, 2, 3, 4, 5, 6, 7, 8))
    monkeypatch.setattr(label_orders, "SAMPLES", 4)


def test_the_stopping_rules_against_a_plain_search() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        sizes = sorted(random.choice(50, 8, replace=False).tolist())
        values = [*random.choice([0.5, 0.94, 0.95, 1.0], 7).tolist(), 1.0]
        close = [size for size, value in zip(sizes, values, strict=True) if value >= 0.95]
        assert first_close(sizes, values) == close[0]
        stays = [size for place, size in enumerate(sizes) if min(values[place:]) >= 0.95]
        assert close_for_good(sizes, values) == stays[0] >= close[0]


def test_the_mean_over_random_orders_is_the_mean_over_all_subsets() -> None:
    task = task_of(SEQUENCES)
    truth = infer(task)
    curves = np.array([agreement_curve(task, order, truth) for order in permutations(SEQUENCES)])
    for place, size in enumerate(curve_sizes(len(SEQUENCES))):
        graphs = [infer(task.with_videos(chosen)) for chosen in combinations(task, size)]
        expected = fmean(metrics.edge_scores(graph, truth, ends=True).f1 or 0.0 for graph in graphs)
        assert curves[:, place].mean() == pytest.approx(expected)
    assert curves[:, -1].tolist() == [1.0] * len(curves)


def test_random_orders_are_all_equally_probable() -> None:
    task = task_of({"v1": "ab", "v2": "ab", "v3": "ab"})
    counts = Counter(random_order(task, seed) for seed in range(600))
    assert set(counts) == set(permutations(("v1", "v2", "v3")))
    assert all(60 <= count <= 140 for count in counts.values())


def test_the_area_under_a_curve_is_a_sum_over_every_video() -> None:
    sizes, values = [1, 2, 5, 9], [0.1, 0.3, 0.9, 1.0]
    every = [0.1, 0.3, 0.5, 0.7, 0.9, 0.925, 0.95, 0.975, 1.0]
    assert mean_agreement(sizes, values) == pytest.approx(fmean(every))
    assert mean_agreement(sizes, values, videos=4) == pytest.approx(fmean(every[:4]))


def test_without_drafts_the_workbench_has_no_reason_but_the_name() -> None:
    task = task_of(SEQUENCES)
    order = workbench_order(task, {}).videos
    assert order == ("v1", "v2", "v3", "v4")
    for size in range(len(order)):
        labelled = task.with_videos([video for video in task if video.id in order[:size]])
        found = run_inference(labelled, samples=4).frequencies if size else None
        ranked = rank_videos([Video(name, ()) for name in order[size:]], labelled, found.graphs if found else ())
        assert tuple(choice.video for choice in ranked) == order[size:]
        assert len({round(choice.gain, 9) for choice in ranked}) == 1


def test_drafts_of_many_steps_come_first_and_all_videos_come() -> None:
    task = task_of(SEQUENCES)
    drafts = simulated_drafts(task, 1.0, 0.0, 0)
    assert {name: {one.step for one in video.segments} for name, video in drafts.items()} == {
        name: set(sequence) for name, sequence in SEQUENCES.items()
    }
    assert most_drafted_first(task, drafts) == ("v1", "v2", "v3", "v4")
    chosen = workbench_order(task, drafts).videos
    assert chosen[0] in {"v1", "v2"}
    assert sorted(chosen) == sorted(SEQUENCES)


def test_a_choice_does_not_see_labels_before_they_are_made() -> None:
    sequences = {f"v{number}": text for number, text in enumerate(["abcd", "acbd", "ab", "cd", "bd", "abd", "dcba"])}
    task = task_of(sequences)
    drafts = simulated_drafts(task, 0.7, 0.3, 1)
    order = workbench_order(task, drafts).videos
    for seen in range(1, len(order)):
        hidden = {name: (text if name in order[:seen] else "dcba"[: len(text)]) for name, text in sequences.items()}
        changed = Task("t", task.steps, task_of(hidden).videos)
        assert workbench_order(changed, drafts).videos[: seen + 1] == order[: seen + 1]


def test_simulated_drafts_have_their_rates() -> None:
    task = task_of({f"v{number}": "abc" if number % 2 else "cd" for number in range(400)})
    drafts = simulated_drafts(task, 0.7, 0.2, 3)
    shown = {video.id: {one.step for one in video.segments} for video in task}
    drafted = [one.step in shown[name] for name, video in drafts.items() for one in video.segments]
    right = sum(drafted)
    assert right / (400 * 2.5) == pytest.approx(0.7, abs=0.05)
    assert (len(drafted) - right) / (400 * 1.5) == pytest.approx(0.2, abs=0.05)


def test_an_order_is_measured_with_the_labels_that_it_took() -> None:
    task = task_of(SEQUENCES)
    found = measure_order(task, ChosenOrder(("v4", "v3", "v2", "v1"), ()))
    assert found["enough"] is None
    assert found["first"] <= found["for good"] <= 4
    assert found["labels"] == labels_within(task, ("v4", "v3", "v2", "v1"), found["for good"])
    assert labels_within(task, ("v4", "v3", "v2", "v1"), 3) == 7
