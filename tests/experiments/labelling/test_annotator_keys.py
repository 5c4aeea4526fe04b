"""Keys of the simulated annotator: hand-made videos, a search over all ways to seek, and the labels that come out."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from experiments.labelling.annotator_keys import (
    KeyCount,
    Precision,
    SimulatedBench,
    is_right,
    label_video,
    match_drafts,
)
from msg2.task import Segment

STEPS = ("brew", "pour", "stir")
SECONDS = 300.0
TRUTH = (Segment("brew", 0, 4), Segment("pour", 20, 30), Segment("stir", 40, 45))


def test_without_drafts_a_label_is_chosen_started_and_ended() -> None:
    bench = label_video(STEPS, SECONDS, TRUTH, (), "exact")
    # brew is the first step, and a new label of 5 seconds is near enough; stir is 5 seconds long
    assert bench.pressed["startNow"] == 3
    assert bench.pressed["endNow"] == 1
    assert bench.pressed["chooseStep"] + bench.pressed["stepDown"] == 2
    assert bench.count() == KeyCount(deciding=3 + 1 + 2 + 1, seeking=2 + 1 + 1)  # 0 → 20 → 30 → 40


def test_right_drafts_take_one_key_each() -> None:
    bench = label_video(STEPS, SECONDS, TRUTH, TRUTH, "exact")
    assert dict(bench.pressed) == {"accept": 3, "nextVideo": 1}
    assert [(one.step, one.start, one.end) for one in bench.labels] == [(s.step, s.start, s.end) for s in TRUTH]


def test_a_wrong_draft_is_rejected_with_one_key_and_a_missing_label_made_from_scratch() -> None:
    drafts = [TRUTH[0], Segment("pour", 100, 110)]
    bench = label_video(STEPS, SECONDS, [TRUTH[0], TRUTH[2]], drafts, "exact")
    assert bench.pressed["reject"] == bench.pressed["accept"] == bench.pressed["startNow"] == 1
    assert [one.step for one in bench.labels] == ["brew", "stir"]


def test_a_draft_that_overlaps_its_label_is_moved_by_its_ends() -> None:
    early = label_video(STEPS, SECONDS, TRUTH[1:2], [Segment("pour", 12, 22)], "exact")
    assert dict(early.pressed) == {
        "forward": 2,
        "back": 1,
        "startNow": 1,
        "endNow": 1,
        "nextVideo": 1,
    }  # 12 → 22 → 20 → 30
    late = label_video(STEPS, SECONDS, TRUTH[1:2], [Segment("pour", 20.5, 40)], "exact")
    assert dict(late.pressed) == {"forward": 1, "endNow": 1, "nextVideo": 1}


def test_a_rough_annotator_leaves_what_has_its_middle_in_the_segment() -> None:
    draft = [Segment("pour", 26, 33)]
    assert dict(label_video(STEPS, SECONDS, TRUTH[1:2], draft, "rough").pressed) == {"accept": 1, "nextVideo": 1}
    assert label_video(STEPS, SECONDS, TRUTH[1:2], draft, "exact").pressed["startNow"] == 1


def test_the_same_step_twice_needs_no_choice_but_an_unchosen_label() -> None:
    bench = label_video(STEPS, SECONDS, [Segment("brew", 0, 5), Segment("brew", 10, 15)], (), "exact")
    assert dict(bench.pressed) == {"startNow": 2, "unchoose": 1, "forward": 1, "nextVideo": 1}


def test_steps_after_the_ninth_are_reached_by_arrows() -> None:
    steps = [f"step {number}" for number in range(12)]
    bench = SimulatedBench(steps, SECONDS)
    bench.choose_step("step 10")
    assert dict(bench.pressed) == {"chooseStep": 1, "stepDown": 2}
    bench.choose_step("step 9")
    assert bench.pressed["stepUp"] == 1
    assert bench.pressed.total() == 4


def test_drafts_go_to_the_label_that_they_overlap_and_to_no_label_twice() -> None:
    twice = [Segment("stir", 0, 10), Segment("stir", 50, 60)]
    assert match_drafts([Segment("stir", 9, 58)], twice) == [twice[1]]
    assert match_drafts([Segment("stir", 51, 53), Segment("stir", 54, 59)], twice) == [twice[1], None]
    assert match_drafts([Segment("stir", 11, 49)], twice) == [None]
    assert match_drafts([Segment("pour", 0, 10)], twice) == [None]


def fewest_presses(start: float, low: float, high: float, length: float) -> int:
    """Breadth first over all sequences of arrow keys."""
    queue, seen = deque([(start, 0)]), {start}
    while queue:
        time, presses = queue.popleft()
        if low <= time <= high:
            return presses
        for by in (-10, -2, 2, 10):
            reached = round(min(max(time + by, 0.0), length), 9)
            if reached not in seen:
                seen.add(reached)
                queue.append((reached, presses + 1))
    raise AssertionError("out of reach")


def test_seeking_takes_the_fewest_keys() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        start, low, width = map(float, random.uniform((0, 0, 2), (90, 90, 20)))
        bench = SimulatedBench(STEPS, SECONDS)
        bench.time = start
        bench.seek(low, low + width)
        assert low <= bench.time <= low + width
        assert bench.pressed.total() == fewest_presses(start, low, low + width, SECONDS)


@pytest.mark.parametrize("precision", ["exact", "rough"])
def test_the_labels_come_out_whatever_the_drafts_are(precision: Precision) -> None:
    random = np.random.default_rng(1)

    def segments(count: int) -> list[Segment]:
        starts, lengths = random.uniform(0, 250, count), random.uniform(0.3, 30, count)
        steps = random.choice(STEPS, count)
        return [
            Segment(str(a), round(float(b), 2), round(float(b + c), 2))
            for a, b, c in zip(steps, starts, lengths, strict=True)
        ]

    for _ in range(100):
        truth, drafts = segments(int(random.integers(0, 6))), segments(int(random.integers(0, 6)))
        bench = label_video(STEPS, SECONDS, truth, drafts, precision)
        assert len(bench.rows) == len(bench.labels) == len(truth)
        left = list(bench.labels)
        for segment in truth:
            found = next(one for one in left if one.step == segment.step and is_right(one, segment, precision))
            left.remove(found)


def test_the_keys_are_those_of_the_workbench() -> None:
    folder = Path(__file__).parents[3] / "src" / "msg2" / "server" / "static"
    bound = set(re.findall(r'", "(\w+)"\],$', (folder / "label_keys.js").read_text(encoding="utf-8"), re.MULTILINE))
    keys = (method for name, method in vars(SimulatedBench).items() if not name.startswith("_") and callable(method))
    used = {word for method in keys for word in method.__code__.co_consts if isinstance(word, str)}
    used = {word for word in used if re.fullmatch(r"[a-z]+[A-Z]?[a-z]+", word)}
    assert {"forward", "nextRow", "accept", "reject", "startNow", "stepDown"} <= used
    assert used - {"chooseStep"} <= bound
    source = (folder / "workbench.js").read_text(encoding="utf-8")
    assert "const NEW_SECONDS = 5;" in source
    assert "event.shiftKey ? 10 : 2" in source
