"""The directly-follows view against counts that are made in another way."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pygraphviz
import pytest

from msg2 import drawing
from msg2.drawing import PictureOptions
from msg2.drawing.dot import directly_follows
from msg2.errors import InputError
from msg2.formats import read
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video


@pytest.fixture(scope="module")
def task() -> Task:
    return simulate(household_world("Make Coffee"), SimulationOptions(), 0).task


def test_the_counts(task: Task) -> None:
    expected: Counter[tuple[str | None, str | None]] = Counter()
    for video in task:
        last = None
        for name in (segment.step for segment in video.segments):
            expected[last, name] += 1
            last = name
        expected[last, None] += bool(video.segments)
    assert directly_follows(task) == expected
    # What leaves a step is what reaches it.
    for step in task.steps:
        assert sum(n for (a, _), n in expected.items() if a == step) == sum(
            n for (_, b), n in expected.items() if b == step
        )


def test_every_repetition_counts() -> None:
    videos = [Video("v", map(Segment, "aabab")), Video("w", map(Segment, "b"))]
    expected = {(None, "a"): 1, ("a", "a"): 1, ("a", "b"): 2, ("b", "a"): 1, ("b", None): 2, (None, "b"): 1}
    assert directly_follows(Task("t", "ab", videos)) == expected


def test_the_counts_of_pm4py(data: Path) -> None:
    """Stored by `benchmarks/pm4py_peer.py follows`."""
    for name, counts in json.loads(Path(__file__).with_name("directly_follows.json").read_text("utf-8")).items():
        log = read(data / "logs" / f"{name}.xes.gz", repeats="keep", ties="file")
        assert directly_follows(log) == {(before, after): times for before, after, times in counts}


def test_the_picture_has_the_frequent_ones(task: Task, tmp_path: Path) -> None:
    file = drawing.show_directly_follows(task, tmp_path / "data.dot")
    read = pygraphviz.AGraph(string=file.read_text("utf-8"))
    names = {f"s{number}": name for number, name in enumerate(task.steps, start=1)} | {"start": None, "end": None}
    drawn = {(names[a], names[b]): int(read.get_edge(a, b).attr["label"]) for a, b in read.edges()}
    counts = directly_follows(task)
    assert drawn.items() <= counts.items()
    left_out = {pair: n for pair, n in counts.items() if pair not in drawn}
    assert left_out
    assert max(left_out.values()) < 0.05 * len(task)
    assert f"{len(left_out)} rarer" in read.graph_attr["label"]
    for step in task.steps:
        out = {pair: n for pair, n in counts.items() if pair[0] == step}
        assert any(drawn.get(pair) == max(out.values()) for pair in out)
    again = drawing.show_directly_follows(task.with_videos(list(task)[::-1]), tmp_path / "again.dot")
    assert again.read_bytes() == file.read_bytes()


def test_formats_and_hostile_names(tmp_path: Path) -> None:
    names = ["<b>", 'say "hi" \\N', "日本", "x" * 300, "two\nlines"]
    task = Task("t", names, [Video("v", map(Segment, [*names, names[0]])), Video("empty", [])])
    for suffix in (".svg", ".png", ".pdf", ".dot"):
        picture = PictureOptions(direction="TB", width="12cm")
        assert drawing.show_directly_follows(task, tmp_path / f"g{suffix}", picture).stat().st_size > 0
    text = (tmp_path / "g.svg").read_text("utf-8")
    assert "&lt;b&gt;" in text
    assert int(re.findall(r'width="(\d+)pt', text)[0]) <= 12 / 2.54 * 72 + 1
    with pytest.raises(InputError, match="cannot show what directly follows"):
        drawing.show_directly_follows(task, tmp_path / "g.html")


def test_arrows_of_logs_say_how_long_it_takes_and_the_slowest_is_marked(tmp_path: Path) -> None:
    day = 86_400
    videos = [
        Video(f"c{n}", [Segment("a", 0, 10), Segment("b", 40, 40), Segment("c", 40 + wait * day, 40 + wait * day)])
        for n, wait in enumerate((1, 3, 8))
    ]
    dot = drawing.show_directly_follows(Task("t", "abc", videos, "skipped"), tmp_path / "t.dot").read_text()
    assert 's1 -> s2 [label="3\\n30 seconds", penwidth' in dot
    assert 's2 -> s3 [label="3\\n3.0 days", color="#cc3311", penwidth' in dot
    assert "seconds" not in drawing.show_directly_follows(Task("t", "abc", videos), tmp_path / "t.dot").read_text()
