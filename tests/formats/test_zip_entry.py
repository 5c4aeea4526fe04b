"""Archives and standard input: read as the files that they hold."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from msg2.errors import InputError
from msg2.formats import archives, read, read_all, source, summarize

V1, V2 = "step,start,end\nfry,0,5\nflip,5,6\n", "step,start,end\nfry,1,2\n"


def packed(path: Path, files: dict[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "plain" / "toast"
    folder.mkdir(parents=True)
    (folder / "v1.csv").write_text(V1)
    (folder / "v2.csv").write_text(V2)
    return folder


@pytest.mark.parametrize("outer", ["", "export/"])
def test_an_archive_is_the_folder_that_it_holds(tmp_path: Path, folder: Path, outer: str) -> None:
    junk = {"__MACOSX/._v1.csv": b"\0", f"{outer}.DS_Store": b"\0"}
    path = packed(tmp_path / "toast.zip", {f"{outer}v1.csv": V1, f"{outer}v2.csv": V2, **junk})
    assert read_all(path) == read_all(folder)
    assert summarize(path).to_json() == summarize(folder).to_json()


def test_an_archive_of_one_file_is_that_file(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.zip", {"toast.csv": "video,step\nv1,fry\n"})
    assert read(path).name == "toast"
    packed(path, {"toast.csv": "video,step\nv1,\n"})
    with pytest.raises(InputError, match=r"x.zip/toast.csv, row 2: the step is empty"):
        read(path)


def test_archives_of_other_formats(tmp_path: Path) -> None:
    document = (
        "<ANNOTATION_DOCUMENT><TIME_ORDER><TIME_SLOT TIME_SLOT_ID='t' TIME_VALUE='5'/></TIME_ORDER><TIER TIER_ID='x'>"
    )
    document += "<ALIGNABLE_ANNOTATION ANNOTATION_ID='a' TIME_SLOT_REF1='t' TIME_SLOT_REF2='t'><ANNOTATION_VALUE>s"
    document += "</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></TIER></ANNOTATION_DOCUMENT>"
    tasks = read_all(packed(tmp_path / "both.zip", {"tea/v1.eaf": document, "toast/v1.eaf": document}))
    assert [task.name for task in tasks] == ["tea", "toast"]
    release = {"tasks_primary.txt": "1\ntoast\nwww\n2\nfry,flip\n\n", "annotations/1_v.csv": "1,0,5\n2,5,6\n"}
    assert read(packed(tmp_path / "ct.zip", release)).videos[0].sequence() == ("fry", "flip")


def test_archives_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = packed(tmp_path / "in.zip", {"a.csv": V1}).read_bytes()
    path = packed(tmp_path / "x.zip", {"in.zip": inner})
    with pytest.raises(InputError, match=r"x.zip/in.zip: is an archive in an archive"):
        read_all(path)
    (tmp_path / "cut.zip").write_bytes(inner[:-30])
    with pytest.raises(InputError, match=r"cut.zip: is a zip archive that cannot be read .*\n.*pack or"):
        read_all(tmp_path / "cut.zip")
    changed = bytearray(packed(path, {"a.csv": "video,step\n" + "v,a\n" * 999}).read_bytes())
    changed[45:60] = bytes(15)
    path.write_bytes(changed)
    with pytest.raises(InputError, match=r"x.zip.* cannot be read"):
        read_all(path)
    with pytest.raises(InputError, match="is an empty archive"):
        read_all(packed(path, {".hidden": ""}))
    with pytest.raises(InputError, match="of an old or another program than Excel"):
        read_all(packed(path, {"mimetype": "x", "content.xml": "<a/>"}))
    monkeypatch.setattr(archives, "MAX_BYTES", 10**6)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_all(packed(path, {"a.csv": "0" * (10**6 + 1)}))


def test_standard_input(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [b"video;step\nv1;fry\n", packed(tmp_path / "toast.zip", {"v1.csv": V1, "v2.csv": V2}).read_bytes()]
    for content, expected in zip(contents, [1, 2], strict=True):
        source._read_stdin.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        (task,) = read_all("-")
        assert (task.name, len(task)) == ("stdin", expected)
        assert read_all("-") == [task]  # it is kept: a command may look twice
    source._read_stdin.cache_clear()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is no standard input"):
        read_all("-")
