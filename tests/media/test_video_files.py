"""Which files belong to which video: the usual layouts of downloads, captions beside them or elsewhere, copies."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats.video_files import find_video_files

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """`folder("a/v1.mp4", **{"v1.vtt": "said"})`: a folder of files; what is not said is a file's own path."""

    def make(*names: str, at: str = "videos", **contents: str) -> Path:
        for name, content in ({name: name for name in names} | contents).items():
            path = tmp_path / at / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return tmp_path / at

    return make


def relative(path: Path | None, root: Path) -> str | None:
    return None if path is None else str(path.relative_to(root))


@pytest.mark.parametrize("id", ["0TiNZJum-bk", "-TiNZJum_bk", "_TiNZJum-bk", "v1"])
@pytest.mark.parametrize(
    "layout",
    [
        "{}.mp4", "{}.MKV", "Best toast [{}].mp4", "Best toast-{}.webm", "40567_{}.mp4", "Make Toast/{}.mp4",
        "40567/deep/er/{}.mov", "{}.f137.mp4", "Best [toast] - it's 5.5 {{stars}} [{}].f137.mp4", "{}.f140.m4a",
    ],
)  # fmt: skip
def test_a_video_is_found_by_its_id_in_the_usual_layouts(folder: Folder, layout: str, id: str) -> None:
    name = layout.format(id)
    root = folder(name, "other.mp4", "notes.txt", f"{id}.mp4.part", f"{id}.info.json")
    found, missing = find_video_files(root, wanted=[id, "v404", id])
    assert [(one.video, relative(one.media, root), one.captions) for one in found] == [(id, name, None)]
    assert missing == ("v404",)


def test_without_wanted_ids_every_file_is_a_video_by_its_own_name(folder: Folder) -> None:
    root = folder("a/v2.mp4", "b/Title [v1].webm", "v3.mp3", "list.csv", ".hidden.mp4")
    found, missing = find_video_files(root)
    assert sorted((one.video, relative(one.path, root)) for one in found) == [
        ("Title [v1]", "b/Title [v1].webm"), ("v2", "a/v2.mp4"), ("v3", "v3.mp3"),
    ]  # fmt: skip
    assert missing == ()


def test_an_id_of_one_video_at_the_end_of_another_s_is_not_mistaken(folder: Folder) -> None:
    """`b-a` is itself, though its name also ends in `-a`; and `a` is the file of that very name."""
    root = folder("a.mp4", "b-a.mp4")
    assert {one.video: relative(one.media, root) for one in find_video_files(root, wanted=["a", "b-a"]).found} == {
        "a": "a.mp4",
        "b-a": "b-a.mp4",
    }


# -- captions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [["v1"], None])
@pytest.mark.parametrize("captions", ["Toast [v1].vtt", "Toast [v1].en.srt", "subs/Toast [v1].en-US.auto.vtt.gz"])
def test_captions_beside_the_video(folder: Folder, captions: str, wanted: list[str] | None) -> None:
    root = folder("Toast [v1].mp4", captions, "Other [v2].mp4", "nobody.vtt")
    found = {str(one.media): one.captions for one in find_video_files(root, wanted=wanted).found}
    assert found.pop(str(root / "Toast [v1].mp4")) == root / captions
    assert set(found.values()) <= {None}


def test_captions_in_another_folder_take_the_place_of_those_beside(folder: Folder) -> None:
    root = folder("Toast [v1].mp4", "Toast [v1].vtt", "40567_v2.mp4")
    other = folder("40567_v1.en.vtt", "deeper/v2.srt", at="captions")
    found = find_video_files(root, captions=other, wanted=["v1", "v2"]).found
    assert [relative(one.captions, other) for one in found] == ["40567_v1.en.vtt", "deeper/v2.srt"]
    single = find_video_files(root, captions=other / "deeper" / "v2.srt", wanted=["v1", "v2"]).found
    assert [relative(one.captions, other) for one in single] == [None, "deeper/v2.srt"]


def test_captions_that_are_called_after_the_id_in_a_name(folder: Folder) -> None:
    root = folder("Toast [v1].f137.mp4", "Toast [the best] [v2].mp4", "40567_v1.vtt", "v2.de.vtt", "the best.vtt")
    assert [relative(one.captions, root) for one in find_video_files(root).found] == ["v2.de.vtt", "40567_v1.vtt"]


@pytest.mark.parametrize(
    ("language", "chosen"), [(None, "v1.en.vtt"), ("en", "v1.en.vtt"), ("de", "v1.de.vtt"), ("fr", "v1.en.vtt")]
)
def test_captions_in_several_languages(folder: Folder, language: str | None, chosen: str) -> None:
    root = folder("v1.mp4", "v1.de.vtt", "v1.en.vtt", "v1.es-419.vtt")
    (one,) = find_video_files(root, language=language).found
    assert relative(one.captions, root) == chosen


def test_captions_in_languages_of_which_none_is_wanted_are_asked_about(folder: Folder) -> None:
    root = folder("v1.mp4", "v1.de.vtt", "v1.es-419.vtt")
    with pytest.raises(InputError, match=r"video 'v1' could be 'v1\.(de|es-419)' or 'v1\.(de|es-419)'"):
        find_video_files(root)
    assert relative(find_video_files(root, language="es").found[0].captions, root) == "v1.es-419.vtt"


def test_where_there_are_captions_only_these_are_the_videos(folder: Folder) -> None:
    root = folder("7_v1.vtt", "sub/8_v2.srt", "readme.md")
    found, missing = find_video_files(root, wanted=["v2", "v3"])
    assert [(one.video, one.media, relative(one.captions, root)) for one in found] == [("v2", None, "sub/8_v2.srt")]
    assert missing == ("v3",)
    assert {one.video for one in find_video_files(root).found} == {"7_v1", "8_v2"}
    assert all(one.path == one.captions for one in find_video_files(root).found)


# -- copies -----------------------------------------------------------------------------------------------------


def test_of_copies_of_one_file_the_first_is_taken(folder: Folder) -> None:
    root = folder(**{"coffee/v1.mp4": "film", "tea/v1.mp4": "film", "coffee/v1.vtt": "said", "tea/v1.vtt": "said"})
    (one,) = find_video_files(root, wanted=["v1"]).found
    assert [relative(path, root) for path in (one.media, one.captions)] == ["coffee/v1.mp4", "coffee/v1.vtt"]


@pytest.mark.parametrize(
    ("one", "two"),
    [("coffee/v1.mp4", "tea/v1.mp4"), ("v1.mp4", "v1.mkv"), ("v1.vtt", "v1.srt"), ("v1.vtt", "s/v1.vtt")],
)
@pytest.mark.parametrize("sizes", [("one", "two"), ("film", "another film")])
def test_two_different_files_of_one_name_are_asked_about(
    folder: Folder, one: str, two: str, sizes: tuple[str, str]
) -> None:
    root = folder("v0.mp4", **{one: sizes[0], two: sizes[1]})
    with pytest.raises(InputError, match="is the second file of 'v1', beside ") as caught:
        find_video_files(root)
    named = {caught.value.where, caught.value.what.rsplit("beside ", 1)[1]}
    assert named == {str(root / one), str(root / two)}


def test_two_different_files_of_one_id_are_asked_about(folder: Folder) -> None:
    root = folder("Best toast [v1].mp4", "Better toast [v1].mp4")
    with pytest.raises(InputError, match=r"video 'v1' could be 'Best toast \[v1\]' or 'Better toast \[v1\]'"):
        find_video_files(root, wanted=["v1"])
    assert len(find_video_files(root).found) == 2


# -- one file, or nothing ---------------------------------------------------------------------------------------


def test_a_single_file_is_a_video_whatever_its_suffix(folder: Folder) -> None:
    root = folder("v1.mp4", "v1.en.vtt", "v2.mp4", "film.bin")
    (one,) = find_video_files(root / "v1.mp4").found
    assert (one.video, one.media, one.captions) == ("v1", root / "v1.mp4", root / "v1.en.vtt")
    (plain,) = find_video_files(root / "film.bin").found
    assert (plain.video, plain.media, plain.captions) == ("film", root / "film.bin", None)
    (said,) = find_video_files(root / "v1.en.vtt").found
    assert (said.video, said.media, said.captions) == ("v1.en", None, root / "v1.en.vtt")
    assert find_video_files(root / "v1.mp4", wanted=["v2"]) == ((), ("v2",))


def test_nothing_to_find(folder: Folder, tmp_path: Path) -> None:
    empty = folder("notes.txt", at="empty")
    with pytest.raises(InputError, match="holds no videos and no captions"):
        find_video_files(empty)
    with pytest.raises(InputError, match="the folder holds no captions"):
        find_video_files(folder("v1.mp4"), captions=empty)
    with pytest.raises(InputError, match="is not there"):
        find_video_files(tmp_path / "nowhere")


# -- hashes -----------------------------------------------------------------------------------------------------


def test_a_hash_is_that_of_the_file_and_knows_captions(folder: Folder) -> None:
    root = folder("v1.mp4", "v2.mp4", "v2.vtt")
    alone, both = find_video_files(root).found
    assert alone.sha256() == hashlib.sha256(b"v1.mp4").hexdigest()
    before = both.sha256()
    (root / "v2.vtt").write_text("said otherwise")
    after = both.sha256()
    (root / "v2.mp4").write_text("filmed otherwise")
    assert len({alone.sha256(), before, after, both.sha256()}) == 4
    (root / "v2.mp4").unlink()
    with pytest.raises(InputError, match="cannot be read") as caught:
        both.sha256()
    assert caught.value.where == str(root / "v2.mp4")
