"""Files appear whole or not at all, under names that are safe everywhere."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2 import files
from msg2.errors import InputError
from msg2.files import locked_folder, safe_names, write_together, write_whole
from msg2.formats.feature_store import open_store


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
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.txt", "whole")
    assert tree(tmp_path) == {}


def test_what_is_renamed_is_on_the_disk_before_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[tuple[str, str]] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        happened.append(("sync", path.name if path.is_dir() else path.read_text()))
        sync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        happened.append(("rename", target.name))
        return replace(path, target)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    write_together({tmp_path / "out" / "a.txt": "A", tmp_path / "out" / "b.txt": "B"})
    renamed = [("rename", "a.txt"), ("rename", "b.txt")]
    assert happened == [("sync", "A"), ("sync", "B"), *renamed, ("sync", "out")]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for mode in (0o600, 0o640, 0o444):
        path.touch()
        path.chmod(mode)
        write_whole(path, "new")
        assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (mode, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch(mode=0o660)
    os.chown(path, 65534, 65533)
    write_whole(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65533)


def test_a_group_that_cannot_be_kept_gains_no_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(0o664)
    old = path.stat()

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    files._pass_on(os.stat_result([*old[:4], old.st_uid, old.st_gid + 1, *old[6:]]), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_leftovers_of_killed_processes_are_swept_and_those_of_others_stay(tmp_path: Path) -> None:
    machine = files._MACHINE
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING, tmp_path / "a.txt"], env=os.environ | {"PYTHONPATH": SOURCES},
        check=False,
    )  # fmt: skip
    (left,) = tmp_path.iterdir()
    assert (killed.returncode, left.name[:15]) == (-9, f".msg2-{machine}-")
    kept = {f".msg2-{machine}-{os.getpid()}-00000000", ".msg2-0badhost-1-00000000", ".msg2-01234567-1-00000000"}
    for name in (*kept, ".msg2-01234567-2-00000000"):
        (tmp_path / name).touch()
    os.utime(tmp_path / ".msg2-01234567-2-00000000", (0, 0))  # of another machine, but of long ago
    folder = tmp_path / f".msg2-{machine}-{2**22 + 1}-00000000"
    (folder / "content").mkdir(parents=True)
    write_whole(tmp_path / "a.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "a.txt"}


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from msg2.files import write_whole
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
write_whole(Path(sys.argv[1]), "half")
"""
SOURCES = str(Path(files.__file__).parents[1])


@given(st.lists(st.text(max_size=80) | st.sampled_from(["a", "A", "a-2", "con", "../x", ""]), max_size=30))
def test_names_are_safe_and_unique(names: list[str]) -> None:
    found = safe_names(names)
    assert len(found) == len(names) == len(set(found))
    for name in found:
        assert 0 < len(name) <= 60
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not name.startswith("-")
        assert name not in ("con", "nul", "aux", "prn", "com1", "lpt9")


def test_names_are_recognised() -> None:
    assert safe_names(["Make a Latte", "make a latte", "../", "CON"]) == [
        "make-a-latte", "make-a-latte-2", "task", "task-con",
    ]  # fmt: skip


def test_thousands_of_names_that_are_alike() -> None:
    found = safe_names(["☕"] * 20_000)
    assert (found[0], found[1], found[-1]) == ("task", "task-2", "task-20000")


def test_contents_of_every_kind(tmp_path: Path) -> None:
    contents = {
        "text": "é",
        "bytes": b"ab",
        "array": bytearray(b"ab"),
        "pieces": iter([b"a", b"b"]),
        "view": memoryview(b"ab"),
    }
    write_together({tmp_path / name: content for name, content in contents.items()})  # type: ignore[dict-item]
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"ab", "é".encode()}
    assert len([*tmp_path.iterdir()]) == 5


def test_two_programs_that_write_one_store_do_not_break_it(tmp_path: Path) -> None:
    """Two processes write stores of other videos into one folder: what is there is whole."""
    pytest.importorskip("safetensors")
    writer = (
        "import sys, numpy as np\n"
        "from msg2.errors import InputError\n"
        "from msg2.formats.feature_store import Encoders, VideoFeatures, write_store\n"
        "rows = np.ones((50, 40)) * int(sys.argv[2])\n"
        "made = {(None, f'{sys.argv[2]}-{n}'): VideoFeatures(np.arange(50.0), rows + n, np.zeros((0, 2)),"
        " np.zeros((0, 4))) for n in range(60)}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for _ in range(3):\n"
        "    try:\n"
        "        write_store(sys.argv[1], made, Encoders('clip', 'words', 40, 4)); print('written')\n"
        "    except InputError as error:\n"
        "        print(error.what)\n"
    )
    command = [sys.executable, "-c", writer, str(tmp_path / "store")]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "12"
    ]
    assert [writer.stdout.readline() for writer in writers if writer.stdout] == ["ready\n"] * 2
    for process in writers:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300)[0].split("\n")[:-1] for process in writers]
    assert {line for lines in said for line in lines} <= {"written", "another msg2 is writing into this folder"}
    assert any("written" in lines for lines in said)
    store = open_store(tmp_path / "store")
    assert all(store.is_intact(key) for key in store.entries)
    assert len(store.entries) == 60


def test_a_folder_is_locked_for_others_and_an_empty_one_is_gone(tmp_path: Path) -> None:
    with locked_folder(tmp_path / "a" / "b"):
        with (
            pytest.raises(InputError, match="another msg2 is writing into this folder"),
            locked_folder(tmp_path / "a/b"),
        ):
            pass
        (tmp_path / "a" / "kept").touch()
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "a", tmp_path / "a" / "kept"]
    with pytest.raises(OSError, match="mine"), locked_folder(tmp_path / "c"):
        raise OSError("mine")
