"""Tables of steps: what is accepted, the order of rows that means nothing where there are times, what is written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
from pathlib import Path

import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import read, read_all
from msg2.formats.conversion import to_dataframe
from msg2.formats.registry import WRITERS, write
from msg2.formats.step_table import _json_lines, to_csv, to_parquet
from msg2.simulation import NoiseOptions, household_world, household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from msg2.text import name_fault

# -- reading ----------------------------------------------------------------------------------------------------


TIMED = "video,step,start,end\nv1,flip,5,6.5\nv1,fry,0,5\nv2,fry,1,2\n"
TOAST = Task(
    "toast",
    ["flip", "fry"],
    [Video("v1", [Segment("fry", 0, 5), Segment("flip", 5, 6.5)]), Video("v2", [Segment("fry", 1, 2)])],
)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        TIMED,
        TIMED.replace("\n", "\r\n"),
        TIMED.replace("\n", "\r"),
        TIMED.replace(",", "\t"),
        "\ufeff" + TIMED,
        "\n\n" + TIMED + "\n\n",
        TIMED.rstrip("\n"),
        "end,start,step,video\n6.5,5,flip,v1\n2,1,fry,v2\n5,0,fry,v1\n",
        "task,video,step,start,end\ntoast,v1,flip,5,6.5\ntoast,v1,fry,0,5\ntoast,v2,fry,1,2\n",
        '"video","step","start","end"\n"v1","flip","5","6.5"\n"v1","fry","0","5"\n"v2","fry","1","2"\n',
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_same_table_in_many_spellings(tmp_path: Path, content: str, packed: bool) -> None:
    # The suffix lies on purpose: only the content counts.
    data = gzip.compress(content.encode()) if packed else content.encode()
    assert read_all(written(tmp_path / "toast.dat", data)) == [TOAST]


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"video": "v1", "step": "flip", "start": 5, "end": 6.5},
        {"step": "fry", "video": "v1", "start": 0, "end": 5.0},
        {"video": "v2", "step": "fry", "start": 1, "end": 2},
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    assert read(written(tmp_path / "toast.json", text)) == TOAST
    assert read(written(tmp_path / "toast.json", "\ufeff" + text + "\n\n")) == TOAST
    one = read(written(tmp_path / "one.jsonl", json.dumps({"video": "v", "step": "a"})))
    assert one == Task("one", ["a"], [Video("v", [Segment("a")])])


def test_parquet_with_columns_that_are_lists_and_are_not_used(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"video": ["v", "v"], "step": ["a", "b"], "tags": [["x"], ["y", "z"]], "more": [{"step": "q"}] * 2}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    assert [segment.step for segment in read(tmp_path / "x.parquet").videos[0].segments] == ["a", "b"]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"video": ["v1", "v1", "v2"], "step": ["flip", "fry", "fry"], "start": [5, 0, 1], "end": [6.5, 5, 2]}
    table = pa.table({**columns, "step": pa.array(columns["step"]).dictionary_encode()})
    parquet.write_table(table, tmp_path / "toast.bin")
    assert read(tmp_path / "toast.bin") == TOAST
    parquet.write_table(pa.table({"video": [1], "step": ["a"]}), tmp_path / "numbers.parquet")
    with pytest.raises(InputError, match=r"row 1: the video '1' is not text"):
        read(tmp_path / "numbers.parquet")
    written(tmp_path / "broken.parquet", b"PAR1" + b"x" * 50)
    with pytest.raises(InputError, match="broken Parquet"):
        read(tmp_path / "broken.parquet")


def test_names_are_verbatim(tmp_path: Path) -> None:
    names = [
        "007",
        "NA",
        "nan",
        " spaced ",
        "null",
        "1e3",
        "ключ",
        "🍞",
        "line\nbreak",
        "a\u2028b\x85c\x0bd",
        "x" * 10_000,
    ]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerows([["task", "video", "step"], *(["001", "1.0", name] for name in names)])
    task = read(written(tmp_path / "t.csv", buffer.getvalue()))
    assert (task.name, task.videos[0].id) == ("001", "1.0")
    assert task.videos[0].sequence() == tuple(names)
    lines = "\n".join(json.dumps({"video": "1.0", "step": name}, ensure_ascii=False) for name in names)
    assert read(written(tmp_path / "t.jsonl", lines)).videos[0].sequence() == tuple(names)


def test_without_times_rows_are_in_order_within_their_video(tmp_path: Path) -> None:
    one = read(written(tmp_path / "t.csv", "video,step\nv1,b\nv2,c\nv1,a\nv2,a\n"))
    other = read(written(tmp_path / "t.csv", "video,step\nv2,c\nv2,a\nv1,b\nv1,a\n"))
    assert one == other
    assert [video.sequence() for video in one] == [("b", "a"), ("c", "a")]
    blank = read(written(tmp_path / "t.csv", "video,step,start,end\nv1,b,,\nv1,a,,\nv2,c,,\nv2,a,,\n"))
    assert blank == one


def test_optional_columns_and_unknown_ones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "video,step,start,end,confidence,source,note,mood\nv,a,0,1,0.5,me,x,y\nv,b,1,2,,,x,y\n"
    with caplog.at_level(logging.WARNING):
        task = read(written(tmp_path / "t.csv", text))
    assert task.videos[0].segments == (Segment("a", 0, 1, 0.5, "me"), Segment("b", 1, 2))
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "columns that are not used: 'mood', 'note'"
    ]


def test_a_folder_of_one_table_per_video(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "toast"
    folder.mkdir()
    written(folder / "v1.csv", "step,start,end\nflip,5,6.5\nfry,0,5\n")
    written(folder / "v2.csv.gz", gzip.compress(b"step,start,end\nfry,1,2\n"))
    written(folder / ".hidden.csv", "nonsense")
    assert read(folder) == TOAST
    written(folder / "README.md", "# Toast\n")
    with caplog.at_level(logging.WARNING):
        assert read(folder) == TOAST
    assert "README.md" in caplog.text
    written(folder / "v0.csv", "step\n")
    assert read(folder).videos[0] == Video("v0", [])
    written(folder / "v2.tsv", "step\tstart\tend\nfry\t1\t2\n")
    with pytest.raises(InputError, match=r"v2.tsv: the video 'v2' of task 'toast' is in another file"):
        read(folder)


def test_a_folder_of_only_steps(tmp_path: Path) -> None:
    folder = tmp_path / "tea"
    folder.mkdir()
    written(folder / "a.b.csv", "step\nboil\npour\n")
    assert read(folder) == Task("tea", ["boil", "pour"], [Video("a.b", [Segment("boil"), Segment("pour")])])


def test_a_folder_of_full_tables(tmp_path: Path) -> None:
    written(tmp_path / "toast.csv", TIMED)
    written(tmp_path / "tea.jsonl", '{"video": "v1", "step": "pour"}\n{"video": "v1", "step": "drink"}\n')
    assert [task.name for task in read_all(tmp_path)] == ["tea", "toast"]
    assert read(tmp_path, task=" TOAST ") == TOAST
    written(tmp_path / "again.csv", "task," + TIMED.replace("v", "toast,v").replace("toast,video", "video"))
    with pytest.raises(InputError, match="is in another file as well"):
        read_all(tmp_path)
    written(tmp_path / "again.csv", "step\nfry\n")
    with pytest.raises(InputError, match=r"has the column 'video', 'again.csv' in the same folder has not"):
        read_all(tmp_path)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8).filter(
    lambda text: not name_fault(text)
)
times = st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda pair: (pair[0] / 4, (pair[0] + pair[1]) / 4))
confidence = st.sampled_from(["", "0", "0.5", "1"])
table = st.lists(
    st.tuples(st.sampled_from("vw"), words, times, confidence, st.sampled_from(["", "x", "y"])), min_size=1
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table, st.randoms(use_true_random=False), st.permutations(range(5)), st.sampled_from(["first", "keep"]))
def test_order_of_rows_and_columns_means_nothing_with_times(tmp_path, rows, random, columns, repeats) -> None:
    header = ("video", "step", "start", "end", "confidence", "source")
    flat = [(video, step, *map(repr, span), sure, origin) for video, step, span, sure, origin in rows]

    def read_back(order, content) -> list[Task]:
        buffer = io.StringIO()
        writer = csv.writer(buffer)
        writer.writerows([cells[i] for i in order] for cells in [header, *content])
        return read_all(written(tmp_path / "t.csv", buffer.getvalue()), repeats=repeats)

    shuffled = random.sample(flat, len(flat))
    expected = read_back(range(6), flat)
    assert read_back([*columns, 5], shuffled) == expected
    if repeats == "keep":
        kept = sorted((v.id, s.step, s.start, s.end) for v in expected[0] for s in v.segments)
        assert kept == sorted((video, step, *span) for video, step, span, _, _ in rows)


def test_options(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "video,step,start,end\nv,a,0,10\nv,b,4,6\nv,a,5,7\nv,c,8,9\n")
    assert len(read(path).videos[0].segments) == 3
    assert len(read(path, repeats="keep").videos[0].segments) == 4
    # The second "a" is dropped before anything is cut, so it does not shorten "b".
    cut = read(path, overlap="start").videos[0].segments
    assert cut == (Segment("a", 0, 4), Segment("b", 4, 6), Segment("c", 8, 9))
    for change, complaint in (
        ({"repeat": "keep"}, "there is no option 'repeat'"),
        ({"repeats": "last"}, "it must be 'first' or 'keep'"),
        ({"order": "time"}, "takes no order"),
        ({"order": "file"}, "takes no order"),
    ):
        with pytest.raises(InputError, match=complaint):
            read(path, **change)


def test_choosing_a_task(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "task,video,step\nTea,v,a\ntea,v,a\nCoffee,v,a\n")
    assert read(path, "tea").name == "tea"
    assert read(path, "COFFEE ").name == "Coffee"
    for name, complaint in (
        (None, r"holds 3 tasks\n  choose one of: 'Coffee', 'Tea', 'tea'"),
        ("TEA", r"holds 2 tasks that could be 'TEA'\n  choose one of: 'Tea', 'tea'"),
        ("milk", r"holds no task 'milk'\n  choose one of: 'Coffee', 'Tea', 'tea'"),
    ):
        with pytest.raises(InputError, match=complaint):
            read(path, name)


# -- writing ----------------------------------------------------------------------------------------------------


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: not name_fault(text))
seconds = st.floats(0, 1e9, allow_nan=False)


def read_back(table: str, delimiter: str = ",") -> list[Task]:
    """An independent reader: Python's csv, and nothing else."""
    tasks: dict[str, dict[str, list[Segment]]] = {}
    for row in csv.DictReader(io.StringIO(table, newline=""), delimiter=delimiter):
        number = {name: float(row[name]) for name in ("start", "end", "confidence") if row.get(name)}
        segment = Segment(row["step"], **number, source=row.get("source") or None)
        tasks.setdefault(row["task"], {}).setdefault(row["video"], []).append(segment)
    return [
        Task(
            name, {s.step for segments in videos.values() for s in segments}, [Video(*item) for item in videos.items()]
        )
        for name, videos in tasks.items()
    ]


@st.composite
def some_tasks(draw: st.DrawFn) -> list[Task]:
    rows = draw(st.lists(st.tuples(names, names, names, seconds, seconds), min_size=1, max_size=6))
    tasks: list[Task] = []
    for name in dict.fromkeys(row[0] for row in rows):
        videos: dict[str, list[Segment]] = {}
        for _, video, label, start, duration in (row for row in rows if row[0] == name):
            videos.setdefault(video, []).append(Segment(label, start, start + duration))
        steps = {segment.step for segments in videos.values() for segment in segments}
        tasks.append(Task(name, steps, [Video(*item) for item in videos.items()]))
    return tasks


@given(some_tasks())
def test_any_name_and_number_survives(tasks: list[Task]) -> None:
    assert read_back(to_csv(tasks)) == tasks
    assert read_back(to_csv(tasks, "\t"), "\t") == tasks


@given(some_tasks())
def test_other_libraries_read_the_same_table(tasks: list[Task]) -> None:
    frame = pandas.read_parquet(io.BytesIO(to_parquet(tasks)))
    pandas.testing.assert_frame_equal(frame, to_dataframe(tasks))
    objects = [json.loads(line) for line in _json_lines(tasks)]
    assert objects == frame.to_dict("records")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_our_reader_reads_the_same_tasks(suffix: str, tmp_path: Path) -> None:
    tasks = [
        simulate(one, SimulationOptions(noise=NoiseOptions(overlapping=0.1)), seed=0).task for one in household_worlds()
    ]
    (path,) = write(tasks, tmp_path / f"table{suffix}")
    found = read_all(path, repeats="keep")
    assert sorted(found, key=lambda task: task.name) == sorted(tasks, key=lambda task: task.name)


def test_times_are_short_and_exact() -> None:
    table = to_csv([simulate(household_world("Tie Tie"), SimulationOptions(videos=20), seed=0).task])
    numbers = [text for row in csv.reader(table.splitlines()[1:]) for text in row[3:]]
    assert numbers
    assert all(len(text.partition(".")[2]) <= 2 for text in numbers)


def test_optional_columns_and_order_without_times(tmp_path: Path) -> None:
    untimed = Task("t", "ab", [Video("v", [Segment("b"), Segment("a", confidence=0.25, source="me, myself")])])
    assert to_csv([untimed]) == 'task,video,step,confidence,source\nt,v,b,,\nt,v,a,0.25,"me, myself"\n'
    assert read_back(to_csv([untimed])) == [untimed]
    for suffix in (".tsv", ".jsonl", ".parquet"):
        assert read_all(*write(untimed, tmp_path / f"t{suffix}")) == [untimed]
    timed = Task("u", "a", [Video("v", [Segment("a", 0, 1)])])
    with pytest.raises(InputError, match="some of the tasks have times"):
        to_csv([untimed, timed])
    assert to_csv([]) == "task,video,step,start,end\n"
    assert write([], tmp_path / "t.jsonl")[0].read_text() == ""


@pytest.mark.parametrize("name", ["labels.json", "labels", "labels.xml", "eaf"])
def test_unknown_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"use one of {' '.join(WRITERS)}".replace(".", r"\.")):
        write([], tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["labels.eaf", "labels.label-studio.json"])
def test_labels_without_times_are_for_tables_only(name: str, tmp_path: Path) -> None:
    videos = [Video("v", [Segment("a", 0, 1)]), Video("w", [Segment("a")])]
    with pytest.raises(InputError, match=r"labels.*: video 'w' has no times, which .* needs\n  write a table") as error:
        write(Task("t", "a", videos), tmp_path / name)
    assert error.value.where == str(tmp_path / name)
    assert not list(tmp_path.iterdir())
