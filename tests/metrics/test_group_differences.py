"""Groups of runs compared: planted differences are found, chance is not, and p-values are those of shuffling."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.formats.run_selection import compare_runs
from msg2.metrics import SIGNIFICANT, GroupDifference, compare_groups
from msg2.sequences import Sequences
from msg2.task import Segment, Task, Video

RUNS = 200
EARLY = np.arange(RUNS) < RUNS // 2


def runs(seed: int, drift: bool) -> Sequences:
    """Of the later half, with drift: d is done less often, f and g change places, h is done again."""
    rng, videos = random.Random(seed), []
    for number in range(RUNS):
        late = drift and number >= RUNS // 2
        steps = list("abcdefgh")
        if rng.random() < (0.5 if late else 0.1):
            steps.remove("d")
        if rng.random() < (0.8 if late else 0.3):
            steps[-3:-1] = ["g", "f"]
        if rng.random() < (0.6 if late else 0.2):
            steps.append("h")
        videos.append(Video(f"v{number:03}", [Segment(step) for step in steps]))
    return Sequences.from_task(Task("t", "abcdefgh", videos))


def told(found: tuple[GroupDifference, ...]) -> set[tuple[str, str, str | None]]:
    return {(each.kind, each.step, each.after) for each in found if each.corrected <= SIGNIFICANT}


def test_planted_drift_is_found() -> None:
    found = compare_groups(runs(1, drift=True), {"early": (EARLY, ~EARLY)})
    assert told(found) == {("done", "d", None), ("order", "f", "g"), ("repeated", "h", None)}
    first = found[0]
    assert (first.kind, first.difference > 0.4) == ("order", True)
    assert first.to_english().startswith("'f' comes before 'g' in 7")


def test_where_nothing_differs_little_is_told() -> None:
    """Of a hundred comparisons of the same with the same, some five may tell anything."""
    false = sum(bool(told(compare_groups(runs(seed, drift=False), {"early": (EARLY, ~EARLY)}))) for seed in range(100))
    assert false <= 10


def test_p_values_are_those_of_shuffling() -> None:
    sequences = runs(3, drift=False)
    (found,) = (f for f in compare_groups(sequences, {"early": (EARLY, ~EARLY)}) if f.kind == "done")
    has = sequences.shown[sequences.run_of_video][:, sequences.steps.index("d")]
    assert found.inside == (has[EARLY].sum(), EARLY.sum())
    rng = np.random.default_rng(0)
    shuffled = np.array([rng.permutation(has)[EARLY].sum() for _ in range(20_000)])
    expected = has.sum() / 2
    share = (abs(shuffled - expected) >= abs(has[EARLY].sum() - expected)).mean()
    assert found.p_value == pytest.approx(share, abs=0.02)


def test_groups_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [
        f"{number:02},{step},{2011 + number % 2}-01-0{day},{'Phone' if number % 4 < 2 else 'Shop'},{number}"
        for number in range(40)
        for day, step in enumerate("ab" if number % 2 else "ba", start=1)
    ]
    path.write_text("\n".join(["case,activity,time,channel,clerk", *rows]))
    (found,) = compare_runs(path, "start<2012-01-01")
    assert (found.inside, found.outside, found.step, found.after) == ((0, 20), (20, 20), "a", "b")
    (other,) = compare_runs(path, "channel")
    assert (other.group, other.inside, other.outside) == ("channel=Phone", (10, 20), (10, 20))
    for by, complaint in (
        ("clerk", "'clerk' has 40 values\n  give a condition"),
        ("colour", "no run has a 'colour'"),
        ("start<2010-01-01", "'start<2010-01-01' holds for no run"),
        ("step=c", "there is no step 'c'"),
        ("step<a", "a step is there or not"),
        ("variant=most", "variant is 'most', it must be a whole number"),
        ("start>soon", "the time 'soon' is not a point in time"),
    ):
        with pytest.raises(InputError, match=complaint):
            compare_runs(path, by)
    path.write_text("video,step\nv,a\nv,b\nw,a\n")
    (only,) = compare_runs(path, "step=b")
    assert (only.step, only.p_value) == ("b", 1)
    with pytest.raises(InputError, match="the data has no dates, so that start means nothing"):
        compare_runs(path, "start<2012-01-01")
