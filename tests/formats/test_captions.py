"""WebVTT and SRT captions: what they may hold, what is refused with its row, what rolls, and whose a file is."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats.captions import (
    Cue,
    caption_files,
    name_finder,
    read_fragments,
    read_sentences,
    remove_repeated_lines,
)
from msg2.formats.source import Source
from msg2.task import Sentence

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


def read_captions(path: Path) -> dict[str, tuple[Sentence, ...]]:
    return {name: read_sentences(file) for name, file in caption_files(path).items()}


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


SRT = """\ufeff1
00:00:01,500 --> 00:00:03,000  X1:100 X2:200 Y1:10 Y2:20
{\\an8}<i>now flip</i>
<font color="#ffffff">the bread</font>

00:00:02,000 --> 00:00:05,250
a cue without its number

after an empty line
3
0:01:00.000 --> 0:01:02.000
4

4
00:01:02,000-->00:01:03,000

5
01:00:00,000 --> 01:00:01,000
{stir} & <3
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_srt_as_it_is_found(tmp_path: Path, end: str) -> None:
    (tmp_path / "v.srt").write_bytes(SRT.replace("\n", end).encode())
    (tmp_path / "packed.srt.gz").write_bytes(gzip.compress(SRT.encode()))
    (tmp_path / "wrong suffix.vtt").write_bytes(SRT.encode())
    expected = (
        Sentence("now flip the bread", 1.5, 3.0),
        Sentence("a cue without its number after an empty line", 2.0, 5.25),
        Sentence("4", 60.0, 62.0),
        Sentence("{stir} & <3", 3600.0, 3601.0),
    )
    assert read_captions(tmp_path) == {"v": expected, "packed": expected, "wrong suffix": expected}


REFUSED = {
    "": (1, "is not a file of captions"),
    "\nWEBVTT\n": (1, "is not a file of captions"),
    "WEBVTTX\n": (1, "is not a file of captions"),
    "text\n\n1\n00:00:01,000 --> 00:00:02,000\nan SRT file\n": (1, "is not a file of captions"),
    "1\n00:00:01,000 --> 00:00:02\nan SRT file\n": (2, "is not the timing"),
    "1\n\n00:00:01,000 --> 00:00:02,000\none\n\n2\n00:00:03,000 -> 00:00:04\ntwo --> three": (8, "is not the timing"),
    "so\n00:00:01,000 --> 00:00:02,000\nan SRT file\n": (1, "the lines have no times"),
    "1\n00:00:09,000 --> 00:00:08,000\ntext\n": (2, "the cue ends at 8, before its start at 9"),
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
    assert read_sentences(Source.at(path)) == tuple(expected)


# -- rolling captions -------------------------------------------------------------------------------------------

AUTOMATIC = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.470 align:start position:0%
 
crack<00:00:00.480><c> the</c><00:00:01.290><c> eggs</c>

00:00:02.470 --> 00:00:02.480 align:start position:0%
crack the eggs
 

00:00:02.480 --> 00:00:04.990 align:start position:0%
crack the eggs
stir<00:00:03.000><c> stir</c>

00:00:04.990 --> 00:00:05.000 align:start position:0%
stir stir
 

00:00:05.000 --> 00:00:06.990 align:start position:0%
stir stir
stir<00:00:05.500><c> stir</c>

00:00:06.990 --> 00:00:07.000 align:start position:0%
stir stir
 

00:00:07.000 --> 00:00:09.000 align:start position:0%
stir stir
okay
"""  # noqa: W293


def test_automatic_captions_say_every_word_once(tmp_path: Path) -> None:
    path = tmp_path / "v.vtt"
    path.write_text(AUTOMATIC)
    assert read_sentences(Source.at(path)) == (
        Sentence("crack the eggs", 0.16, 2.47), Sentence("stir stir", 2.48, 4.99),
        Sentence("stir stir", 5.0, 6.99), Sentence("okay", 7.0, 9.0),
    )  # fmt: skip
    assert read_fragments(Source.at(path)) == (
        Sentence("crack", 0.16, 0.48), Sentence("the", 0.48, 1.29), Sentence("eggs", 1.29, 2.47),
        Sentence("stir", 2.48, 3.0), Sentence("stir", 3.0, 4.99), Sentence("stir", 5.0, 5.5),
        Sentence("stir", 5.5, 6.99), Sentence("okay", 7.0, 9.0),
    )  # fmt: skip


LINES = st.lists(st.sampled_from(["stir", "stir stir", "flip it", "okay"]), min_size=3, max_size=12)


@given(LINES, st.booleans(), st.integers(1, 3))
def test_rolled_lines_come_back(lines: list[str], blinks: bool, height: int) -> None:
    """A window of lines rolls over the text, maybe with cues of 10 ms between; repeated lines are still repeated."""
    cues, shown = [], []
    for second, line in enumerate(lines):
        shown = [*shown[-height:], line]
        cues.append(Cue(second, second + 1 - 0.01 * blinks, tuple(shown)))
        if blinks:
            shown = shown[-height:]
            cues.append(Cue(second + 0.99, second + 1, tuple(shown)))
    hypothesis.assume(
        blinks or all(len(set(lines[i : i + height + 1])) == height + 1 for i in range(len(lines))[:-height])
    )
    said = [(cue.start, line) for cue in remove_repeated_lines(cues) for line in cue.lines]
    assert said == list(enumerate(lines))


@given(LINES)
def test_a_speaker_may_repeat_herself(lines: list[str]) -> None:
    """Ordinary captions, a line per cue: nothing is lost, whether or not the cues touch."""
    for length in (1.0, 0.9, 1.5):
        cues = [Cue(float(second), second + length, (line,)) for second, line in enumerate(lines)]
        assert remove_repeated_lines(cues) == cues


def test_one_line_that_looks_rolled_is_not_enough() -> None:
    cues = [Cue(0, 2, ("stir, stir",)), Cue(2, 4, ("stir, stir", "until it is smooth")), Cue(4, 6, ("pour it",))]
    assert remove_repeated_lines(cues) == cues
    assert remove_repeated_lines(cues[:2]) == cues[:2]


def test_times_within_a_cue(tmp_path: Path) -> None:
    path = tmp_path / "v.vtt"
    text = "<v Anna>flip<00:01.500> the fry<00:01.700>ing pan\n<00:09.000>now<00:00.100> &amp; here<x><99:99>"
    path.write_text(f"WEBVTT\n\n00:01.000 --> 00:03.000\n{text}\n")
    assert read_fragments(Source.at(path)) == (
        Sentence("flip", 1.0, 1.5), Sentence("the frying pan", 1.5, 3.0),
        Sentence("now", 3.0, 3.0), Sentence("& here", 3.0, 3.0),
    )  # fmt: skip


# -- captions and videos ----------------------------------------------------------------------------------------


NAMES = st.text("ab_-. []", max_size=7)


@given(st.sets(NAMES), st.text("ab_-.", min_size=1, max_size=3))
def test_the_rule_for_names(names: set[str], video: str) -> None:
    """Without languages: the first kind that fits, the name without variants where there is one, never a guess."""
    variants = r"((?:\.[ab-]+)*)"
    kinds = [
        rf"{re.escape(video)}((?:\..*)?)", rf".* \[{re.escape(video)}\]{variants}",
        rf".*_{re.escape(video)}{variants}", rf".*-{re.escape(video)}{variants}",
    ]  # fmt: skip
    fitting = ([(name, match[1]) for name in names if (match := re.fullmatch(kind, name))] for kind in kinds)
    best = next((found for found in fitting if found), [])
    bases = {name.removesuffix(suffix) for name, suffix in best}
    plain = [name for name, suffix in best if not suffix]
    find = name_finder(names)
    if len(best) > 1 and not (len(bases) == 1 and plain):
        with pytest.raises(InputError, match="could be") as refused:
            find(video)
        assert sum(repr(name) in refused.value.what for name, _ in best) >= 2
    else:
        assert find(video) == (plain or [name for name, _ in best] or [None])[0]


@pytest.mark.parametrize(
    "names",
    [
        ["{}"], ["{}.en"], ["{}.en-US"], ["{}.en.auto"], ["{}.f137"], ["7_{}"], ["7_{}.en"], ["French Toast-{}"],
        ["French Toast-{}.en"], ["Mr. O's toast: 1.5 eggs [{}]"], ["Mr. O's toast: 1.5 eggs [{}].en-orig"],
        ["{}", "7_{}"], ["{}.en", "{}.de", "{}.fr"], ["{}.en", "{}.en.auto"], ["{}.en-GB", "{}.en-US"],
        ["7_{}", "7_{}.de"], ["Toast [{}].en", "Toast [{}].fr", "8_{}", "9_{}"], ["7_{}", "Toast-{}", "Salad-{}"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("video", ["0TiNZJum-bk", "-_WZiAX4wz4", "abc"])
def test_the_usual_names(names: list[str], video: str) -> None:
    """The first one belongs to the video, and to no other one that is named like it."""
    named = [name.format(video) for name in names]
    find = name_finder([*reversed(named), *(name.format("x_" + video[1:]) for name in names)])
    assert find(video) == named[0]
    assert find("another") is None


def test_two_videos_or_two_languages_are_no_guess() -> None:
    for names in (["Toast-v1", "Salad-v1"], ["v1.de", "v1.fr"], ["v1.f137", "v1.f140"], ["a [v1].en", "b [v1].de"]):
        with pytest.raises(InputError) as refused:
            name_finder(names)("v1")
        assert refused.value.what == "video 'v1' could be {!r} or {!r}".format(*sorted(names))
    assert name_finder(["v1.de", "v1.fr", "v1.en"], language="fr")("v1") == "v1.fr"
    assert name_finder(["v1.de-AT", "v1", "v1.en"], language="DE")("v1") == "v1.de-AT"
    assert name_finder(["v1.de-AT", "v1.en"], language="fr")("v1") == "v1.en"


def test_the_transcripts_of_crosstask(data: Path) -> None:
    captions = read_captions(data / "crosstask/transcripts")
    files = sorted((data / "crosstask/transcripts").glob("*.vtt"))
    assert list(captions) == [file.stem for file in files]
    for file in files:  # none of them rolls, so every word of each is there
        header, *lines = file.read_text(encoding="utf-8").splitlines()
        words = " ".join(line for line in lines if "-->" not in line).replace("&amp;", "&").split()
        assert header == "WEBVTT"
        assert " ".join(sentence.text for sentence in captions[file.stem]).split() == words
        assert len(captions[file.stem]) == sum("-->" in line for line in lines)
    assert sum(map(len, captions.values())) == 41_247
