"""The study of the annotator on made-up measurements: means, paired differences and keys per label by hand."""

from __future__ import annotations

from experiments.labelling.annotator_study import count_keys, spread_drafts
from experiments.labelling.annotator_tables import annotator_chart, annotator_tables
from msg2.result_cache import Measurement
from msg2.task import Segment

RATES = (0.6, 0.3)


def order(
    task: str, way: str, seed: int, videos: int, f1: float, enough: tuple[int, float] | None = None
) -> Measurement:
    return {
        "task": task, "way": way, "seed": seed, "videos": 100, "steps": 5, "agreement": [f1, 1.0],
        "for good": videos, "first": videos - 1, "mean F1": f1, "labels": 3 * videos, "enough": enough,
    }  # fmt: skip


FOUND = [
    order("a", "at random", 0, 20, 0.5),
    order("a", "at random", 1, 40, 0.7),
    order("b", "at random", 0, 10, 0.8),
    order("a", "workbench: simulated drafts", 0, 20, 0.8, (14, 0.9)),
    order("b", "workbench: simulated drafts", 0, 10, 0.8),
    order("a", "workbench: drafts, words", 0, 30, 0.6),
]
KEYS = [
    {
        "task": "a",
        "encoder": "words",
        "labels": {"v": 2, "w": 4},
        "keys": {
            "no drafts": {"exact": {"v": [6, 4], "w": [12, 2]}, "rough": {"v": [4, 4], "w": [8, 2]}},
            "10 labelled": {"exact": {"v": [3, 1]}, "rough": {"v": [2, 0]}},
        },
    }
]


def test_differences_are_means_over_tasks_of_means_over_orders() -> None:
    difference, for_good, enough, _keys = annotator_tables(FOUND, KEYS, RATES)
    rows = {str(row[0]): row for row in difference.rows}
    assert rows["at random (the values themselves)"][1:] == [2, "20.0", "19.0", "70.0", "60.0"]
    assert str(rows["workbench: simulated drafts"][2]).startswith("-5.00 [-10.00, 0.00]")
    assert str(rows["workbench: simulated drafts"][4]).startswith("10.00 [0.00, 20.00]")
    assert rows["workbench: drafts, words"][1:3] == [1, "0.00 [0.00, 0.00]"]
    assert for_good.rows == [
        ["a", 100, 30.0, 20.0, 30.0],
        ["b", 100, 10.0, 10.0, None],
        ["mean", 100, 20.0, 15.0, None],
    ]
    assert enough.rows == [["a", 100, 14, 90.0, 20], ["b", 100, None, None, 10]]


def test_keys_are_counted_per_label_and_compared_on_the_same_videos() -> None:
    *_, keys = annotator_tables(FOUND, KEYS, RATES)
    assert str(keys.rows[0][2]).startswith("3.00 ")  # 18 keys of 6 labels, while the video plays
    assert str(keys.rows[1][2]).startswith("4.00 ")  # and 6 to seek
    assert [row[3] for row in keys.rows] == [
        f"{value:.2f} [{value:.2f}, {value:.2f}]" for value in (-1.5, -3.0, -1.0, -3.0)
    ]
    dots = annotator_chart(FOUND, KEYS)["keys per label, exact, seeking by arrow keys"]
    assert dots["a, words: no drafts"].value == 4


def test_counted_keys_are_those_of_each_video() -> None:
    truth = {"v": [Segment("brew", 0, 5)], "w": [Segment("pour", 20, 25)]}
    found = count_keys(["brew", "pour"], {"v": 60.0, "w": 60.0}, truth, {"v": truth["v"], "w": []})
    assert found == {"exact": {"v": (2.0, 0.0), "w": (3.0, 2.0)}, "rough": {"v": (2.0, 0.0), "w": (3.0, 2.0)}}


def test_spread_drafts_stay_within_the_video() -> None:
    assert [(one.start, one.end) for one in spread_drafts(["a", "b"], 4.0)] == [(0.0, 3.5), (0.5, 4.0)]
