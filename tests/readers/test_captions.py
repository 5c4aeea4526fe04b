"""WebVTT captions: what the format allows, what is refused with its row, and which video a file belongs to."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msg2
from msg2.errors import InputError
from msg2.readers.captions import name_finder, narrated, read_captions, sentences_in
from msg2.readers.sources import Source
from msg2.task import Sentence, Task, Video

FULL = """\ufeffWEBVTT - made by hand
Kind: captions
Language: en

STYLE
::cue { color: red }

REGION
id:left

NOTE one line

NOTE
00:00.000 --> 00:01.000
taken out

intro
00:01.500 --> 00:03.000 align:start position:0%
<v Anna>now <i>flip</i></v>
the&nbsp;bread &amp; fry<00:02.000><c.loud> it</c>

01:00:00.000-->01:00:02.250\tline:0
 \n2 &lt; 3 < 4

STYLE
100:00:00.000 --> 100:00:00.000
a cue that is named so

00:04.000 --> 00:05.000
<c></c>

00:06.000 --> 00:07.000
two in
00:06.500 --> 00:08.000
one block
"""
SENTENCES = (
    Sentence("now flip the bread & fry it", 1.5, 3.0),
    Sentence("2 < 3 < 4", 3600.0, 3602.25),
    Sentence("a cue that is named so", 360_000.0, 360_000.0),
    Sentence("two in", 6.0, 7.0),
    Sentence("one block", 6.5, 8.0),
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_that_the_format_allows(tmp_path: Path, end: str) -> None:
    path = tmp_path / "v.vtt"
    path.write_bytes(FULL.replace("\n", end).encode())
    assert read_captions(path) == {"v": SENTENCES}


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "a_b.c.vtt").write_text("WEBVTT")
    (tmp_path / "packed.vtt.gz").write_bytes(gzip.compress(FULL.encode()))
    (tmp_path / "durations.csv").write_text("video,seconds\n")
    (tmp_path / ".hidden.vtt").write_text("no captions")
    assert read_captions(tmp_path) == {"a_b.c": (), "packed": SENTENCES}
    (tmp_path / "packed.vtt").write_text("WEBVTT")
    with pytest.raises(
        InputError, match=r"packed\.vtt\.gz: is the second caption file of 'packed', beside packed\.vtt"
    ):
        read_captions(tmp_path)


def test_a_cue_right_after_the_header(tmp_path: Path) -> None:
    path = tmp_path / "v.vtt"
    path.write_text("WEBVTT\n00:01.000 --> 00:02.000\nflip\n")
    assert read_captions(path) == {"v": (Sentence("flip", 1.0, 2.0),)}


REFUSED = {
    "": (1, "is not a file of captions"),
    "\nWEBVTT\n": (1, "is not a file of captions"),
    "WEBVTTX\n": (1, "is not a file of captions"),
    "1\n00:00:01,000 --> 00:00:02,000\nan SRT file\n": (1, "is not a file of captions"),
    "WEBVTT\n\n00:01.000 --> 00:02.000\ntext\n\nmore text\n": (6, "the lines have no times"),
    "WEBVTT\n\nname\ntext\n00:01.000 --> 00:02.000\n": (3, "the lines have no times"),
    "WEBVTT\n\n00:01,000 --> 00:02.000\ntext\n": (3, "'00:01,000 --> 00:02.000' is not the timing of a cue"),
    "WEBVTT\n\nid\n00:61.000 --> 01:02.000\ntext\n": (4, "is not the timing"),
    "WEBVTT\n\n1.000 --> 00:02.000\ntext\n": (3, "is not the timing"),
    "WEBVTT\n\n00:01.000 --> 00:02.000\nfile --> open\n": (4, "'file --> open' is not the timing"),
    "WEBVTT\n\n00:09.000 --> 00:08.000\ntext\n": (3, "the cue ends at 8, before its start at 9"),
    "WEBVTT\n\n٠٠:٠١.٠٠٠ --> 00:02.000\ntext\n": (3, "is not the timing"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "v.vtt"
    path.write_text(text, encoding="utf-8")
    row, what = REFUSED[text]
    with pytest.raises(InputError) as refused:
        read_captions(path)
    assert refused.value.where == f"{path}, row {row}"
    assert what in refused.value.what


def test_no_captions_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no captions"):
        read_captions(tmp_path)
    with pytest.raises(InputError, match="is not there"):
        read_captions(tmp_path / "nowhere")


def stamp(milliseconds: int, hours: bool) -> str:
    """A time as WebVTT writes it."""
    seconds, rest = divmod(milliseconds, 1000)
    short = f"{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
    return f"{seconds // 3600:02}:{short}" if hours or seconds >= 3600 else short


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**5), st.booleans())))
def test_times_come_back(tmp_path_factory: pytest.TempPathFactory, cues: list[tuple[int, int, bool]]) -> None:
    path = tmp_path_factory.mktemp("captions") / "v.vtt"
    lines = [f"{stamp(start, h)} --> {stamp(start + length, h)}\ncue {n}" for n, (start, length, h) in enumerate(cues)]
    path.write_text("\n\n".join(["WEBVTT", *lines]))
    expected = [
        Sentence(f"cue {n}", start / 1000, (start + length) / 1000) for n, (start, length, _) in enumerate(cues)
    ]
    assert sentences_in(Source.at(path)) == tuple(expected)


# -- captions and videos ----------------------------------------------------------------------------------------


@given(st.sets(st.text("ab_", max_size=5)), st.text("ab_", max_size=4))
def test_the_rule_for_names(names: set[str], video: str) -> None:
    fitting = [name for name in names if name == video] or [name for name in names if name.endswith(f"_{video}")]
    find = name_finder(names)
    if len(fitting) > 1:
        with pytest.raises(InputError, match="could have the captions"):
            find(video)
    else:
        assert find(video) == (fitting[0] if fitting else None)


def test_sentences_go_to_their_videos(caplog: pytest.LogCaptureFixture) -> None:
    own = Sentence("its own", 0.0, 1.0)
    videos = [Video("v_1", []), Video("1", []), Video("2", [], [own]), Video("3", [])]
    said = {"v_1": [Sentence("b", 2.0, 3.0), Sentence("a", 1.0, 3.0)], "1": [Sentence("c", 0.0, 1.0)], "7_3": []}
    with caplog.at_level("INFO"):
        task = narrated(Task("t", [], videos), said)
    assert {video.id: [s.text for s in video.sentences] for video in task} == {
        "v_1": ["a", "b"], "1": ["c"], "2": ["its own"], "3": [],
    }  # fmt: skip
    assert "t: 1 of 4 videos have no captions" in caplog.text
    with pytest.raises(InputError, match="video '1' could have the captions '7_1' or '8_1'"):
        narrated(task, {"7_1": [], "8_1": []})


def test_the_transcripts_of_crosstask(data: Path) -> None:
    captions = read_captions(data / "crosstask/transcripts")
    files = sorted((data / "crosstask/transcripts").glob("*.vtt"))
    assert list(captions) == [file.stem for file in files]
    for file in files[::50]:
        text = file.read_text(encoding="utf-8")
        assert len(captions[file.stem]) == len(re.findall(r"^[\d:.]+ --> [\d:.]+$", text, re.MULTILINE))
    assert sum(map(len, captions.values())) == 41_247
    tasks = [narrated(task, captions) for task in msg2.read_all(data / "crosstask/crosstask_release")]
    counts = {task.name: sum(bool(video.sentences) for video in task) for task in tasks}
    assert {name: count for name, count in counts.items() if count} == {
        "Build Simple Floating Shelves": 152, "Change a Tire": 99, "Make French Toast": 250,
    }  # fmt: skip
