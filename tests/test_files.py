"""Files appear whole or not at all, under names that are safe everywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.files import safe_names, write_together, write_whole


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_text_is_utf8_and_bytes_are_bytes(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "deep" / "a.txt", "é\n")
    write_whole(tmp_path / "b.bin", b"\xff")
    assert (tmp_path / "new" / "deep" / "a.txt").read_bytes() == b"\xc3\xa9\n"
    assert (tmp_path / "b.bin").read_bytes() == b"\xff"
    assert sorted(tree(tmp_path)) == ["b.bin", "new", "new/deep", "new/deep/a.txt"]


def test_an_old_file_is_replaced_and_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old, and longer than the new one")
    reading = path.open()
    write_whole(path, "new")
    assert reading.read() == "old, and longer than the new one"
    reading.close()
    assert tree(tmp_path) == {"a.txt": b"new"}


def test_the_rights_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a.txt", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    write_whole(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(path, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.parametrize("bad", ["folder", "old.txt/x", "new/" + "x" * 300, "/proc/none/x", "/dev/full"])
def test_all_files_or_none(tmp_path: Path, bad: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.txt").write_text("old")
    before = tree(tmp_path)
    contents = {tmp_path / "old.txt": "new", tmp_path / "fresh" / "a.txt": "new", tmp_path / bad: "new"}
    with pytest.raises(InputError) as caught:
        write_together(contents)
    assert str(caught.value).startswith(str(tmp_path / bad)[:200])
    assert len(str(caught.value).splitlines()) == 1
    assert tree(tmp_path) == before


def test_an_interrupt_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path, data: bytes) -> int:
        with path.open("wb") as stream:
            stream.write(data[: len(data) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "new" / "a.txt", "whole")
    assert tree(tmp_path) == {}


@given(st.lists(st.text(max_size=80) | st.sampled_from(["a", "A", "a-2", "con", "../x", ""]), max_size=30))
def test_names_are_safe_and_unique(names: list[str]) -> None:
    found = safe_names(names)
    assert len(found) == len(names) == len(set(found))
    for name in found:
        assert 0 < len(name) <= 60
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not name.startswith("-")
        assert name not in ("con", "nul", "aux", "prn", "com1", "lpt9")


def test_thousands_of_names_that_are_alike() -> None:
    found = safe_names(["☕"] * 20_000)
    assert (found[0], found[1], found[-1]) == ("task", "task-2", "task-20000")
