"""COIN JSON, on small files of its layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import read_all
from msg2.task import Segment, Task, Video


def coin() -> dict[str, Any]:
    def video(kind: str, *labels: tuple[str, float, float]) -> dict[str, Any]:
        rows = [{"id": str(n), "label": label, "segment": [a, b]} for n, (label, a, b) in enumerate(labels)]
        return {"class": kind, "annotation": rows, "duration": 60.5, "subset": "training", "video_url": "x"}

    return {
        "database": {
            "bb": video("MakeTea", ("pour", 9, 12.5), ("boil", 1.0, 8)),
            "aa": video("MakeTea", ("boil", 0, 2)),
            "cc": video("Fly"),
        }
    }


@pytest.mark.parametrize("indent", [None, 1])
def test_coin(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "COIN.json").write_text(json.dumps(coin(), indent=indent))
    tea = [Video("aa", [Segment("boil", 0, 2)]), Video("bb", [Segment("boil", 1, 8), Segment("pour", 9, 12.5)])]
    expected = [Task("Fly", [], [Video("cc", [])]), Task("MakeTea", ["boil", "pour"], tea)]
    assert read_all(tmp_path / "COIN.json") == expected
    assert read_all(tmp_path) == expected


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"segment": [3, 1]}, r"\$.database.bb.annotation\[1\]: step 'boil' ends at 1, before its start at 3"),
        ({"segment": [3]}, r"\$.database.bb.annotation\[1\].segment: is not a pair"),
        ({"segment": ["a", 3]}, r"\$.database.bb.annotation\[1\].segment\[0\]: is not a number"),
        ({"segment": 3}, r"\$.database.bb.annotation\[1\].segment: is not a list"),
        ({"label": 3}, r"\$.database.bb.annotation\[1\].label: is not text"),
    ],
)
def test_broken_coin(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    value = coin()
    value["database"]["bb"]["annotation"][1] |= change
    (tmp_path / "COIN.json").write_text(json.dumps(value))
    with pytest.raises(InputError, match=complaint):
        read_all(tmp_path / "COIN.json")


def test_a_video_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "COIN.json").write_text(json.dumps(coin()).replace('"bb"', '""'))
    with pytest.raises(InputError, match=r"COIN.json: the name of the video or of the task is empty"):
        read_all(tmp_path / "COIN.json")
