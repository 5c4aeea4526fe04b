"""`msg2 convert`: data written for another tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from msg2.formats import read_all


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_tables_of_every_kind(suffix: str, msg2, table: Path, tmp_path: Path) -> None:
    ran = msg2("convert", table, "-o", tmp_path / f"new{suffix}")
    assert (ran.code, ran.out, ran.err) == (0, f"25 labels of 8 videos: {tmp_path}/new{suffix}\n", "")
    assert read_all(tmp_path / f"new{suffix}") == read_all(table)


def test_every_label_is_kept_and_one_task_can_be_chosen(msg2, many: Path, tmp_path: Path) -> None:
    tasks = read_all(many, repeats="keep")
    assert msg2("convert", many, "-o", tmp_path / "all.jsonl").code == 0
    assert read_all(tmp_path / "all.jsonl", repeats="keep") == tasks
    assert msg2("convert", many, "-o", tmp_path / "one.tsv", "--task", "make coffee").code == 0
    assert read_all(tmp_path / "one.tsv", repeats="keep") == [task for task in tasks if task.name == "Make Coffee"]


def test_for_annotators(msg2, table: Path, many: Path, tmp_path: Path) -> None:
    ran = msg2("convert", table, "-o", tmp_path / "elan.eaf")
    assert ran.out == f"25 labels of 8 videos: 8 files in {tmp_path}/elan\n"
    assert sorted(path.name for path in (tmp_path / "elan").iterdir()) == [f"v{n}.eaf" for n in range(8)]
    ran = msg2("convert", many, "-o", tmp_path / "many.eaf")
    assert ran.out.endswith(f"45 files in {tmp_path}/many\n")
    names = [tmp_path / "x.label-studio.json", tmp_path / "x.label-studio.xml"]
    ran = msg2("convert", table, "-o", names[0], "--frames", "25", "--media", "s3://videos/{video}.mp4")
    assert ran.out == f"25 labels of 8 videos: {names[0]}, {names[1]}\n"
    assert '"s3://videos/v0.mp4"' in names[0].read_text()


def test_back_from_the_annotators(msg2, table: Path, tmp_path: Path) -> None:
    assert msg2("convert", table, "-o", tmp_path / "elan.eaf").code == 0
    assert msg2("convert", tmp_path / "elan", "-o", tmp_path / "a" / "toast.csv").code == 0
    assert msg2("convert", table, "-o", tmp_path / "x.label-studio.json", "--frames", "10").code == 0
    assert msg2("convert", tmp_path / "x.label-studio.json", "-o", tmp_path / "b" / "toast.csv").code == 0
    for folder in "ab":
        assert read_all(tmp_path / folder / "toast.csv") == read_all(table)


def test_real_annotations(msg2, data: Path, tmp_path: Path) -> None:
    release = data / "crosstask" / "crosstask_release"
    ran = msg2("convert", release, "-o", tmp_path / "steps.csv", "--task", "Change a Tire")
    assert ran.code == 0
    (expected,) = [task for task in read_all(release, repeats="keep") if task.name == "Change a Tire"]
    (found,) = read_all(tmp_path / "steps.csv", repeats="keep")
    assert [v for v in found if v.segments] == [v for v in expected if v.segments]


def test_what_is_refused(msg2, table: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert "its suffix is no format of labels" in msg2("convert", table, "-o", tmp_path / "x.json").complaint
    assert "is the data, the result would replace it" in msg2("convert", table, "-o", table).complaint
    assert "is not there" in msg2("convert", tmp_path / "nowhere.csv", "-o", tmp_path / "x.csv").complaint
    ran = msg2("convert", table, "-o", tmp_path / "x.label-studio.json", "--frames", "0")
    assert ran.code == 2
    assert "fps is 0" in ran.err
    assert sorted(tmp_path.iterdir()) == before


def test_cells_that_a_spreadsheet_would_run_are_guarded(msg2, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("task,video,step\nt,@v,=cmd|'/c calc'!A1\nt,@v,-2 °C\nt,@v,a=b\n")
    assert msg2("convert", data, "-o", tmp_path / "out.csv", "--guard").code == 0
    cells = [row.split(",")[1:] for row in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert cells == [["'@v", "'=cmd|'/c calc'!A1"], ["'@v", "'-2 °C"], ["'@v", "a=b"]]
    assert msg2("convert", data, "-o", tmp_path / "plain.csv").code == 0
    assert (tmp_path / "plain.csv").read_text() == data.read_text()
    assert "leave out --guard" in msg2("convert", data, "-o", tmp_path / "out.jsonl", "--guard").complaint
