"""`msg2 phrases`: what is said around steps, from captions or a store, as a table, a page or a file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from msg2.formats.feature_store import Encoders, VideoFeatures, write_store

STEPS = {"dip": "dip it", "fry": '<script>"fry"</script>', "whisk": "whisk the eggs"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three videos that dip, fry and whisk, and say so; two of them have captions."""
    rows = ["task,video,step,start,end"]
    (tmp_path / "captions").mkdir()
    for video in ("v0", "v1", "v2"):
        cues = []
        for place, (step, said) in enumerate(STEPS.items()):
            rows.append(f"Make <b>Toast</b>,{video},{step},{15 * place},{15 * place + 5}")
            escaped = said.replace("<", "&lt;").replace(">", "&gt;")
            cues += [f"00:{15 * place:02}.000 --> 00:{15 * place + 2:02}.000\n{escaped}\n"]
            cues += [f"00:{15 * place + 9:02}.000 --> 00:{15 * place + 10:02}.000\nwell\n"]
        if video != "v2":
            (tmp_path / "captions" / f"7_{video}.en.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_from_captions_to_a_table(msg2, data: Path) -> None:
    ran = msg2("phrases", data / "steps.csv", data / "captions", "--seconds", 2)
    assert (ran.code, ran.err) == (0, "")
    title, header, *rows = ran.out.splitlines()
    assert title.strip() == "Make <b>Toast</b>"
    assert header.split()[0] == "step"
    assert [row.split(maxsplit=1)[1].strip() for row in rows] == [f"{said} (2/2)" for said in STEPS.values()]


def test_from_a_store_as_from_captions(msg2, data: Path) -> None:
    assert msg2("features", data / "captions", "-o", data / "store").code == 0
    tables = []
    for spoken in ("captions", "store"):
        ran = msg2("phrases", data / "steps.csv", data / spoken, "-o", data / f"{spoken}.csv")
        assert ran.code == 0
        assert ran.out.splitlines()[-1] == f"written  {data / spoken}.csv"
        tables.append((data / f"{spoken}.csv").read_bytes())
    assert tables[0] == tables[1]


def test_a_file_of_all_phrases(msg2, data: Path) -> None:
    table = data / "out" / "spoken.csv"
    assert msg2("phrases", data / "steps.csv", data / "captions", "--seconds", 2, "-o", table).code == 0
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["task"], row["step"], row["phrase"]) for row in rows] == [
        ("Make <b>Toast</b>", step, said) for step, said in STEPS.items()
    ]
    # Of 12 phrases in two videos, 2 are this one, and both are among the 2 around the step.
    assert [(row["videos"], row["around"], row["in_all"], row["times_as_often"]) for row in rows] == [
        ("2", "2", "2", "6")
    ] * 3


def test_a_page_on_which_names_are_text(msg2, data: Path) -> None:
    page = data / "spoken.HTML"
    assert msg2("phrases", data / "steps.csv", data / "captions", "-o", page).code == 0
    html = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;&quot;fry&quot;&lt;/script&gt;" in html
    assert "Make &lt;b&gt;Toast&lt;/b&gt;" in html
    assert "<script" not in html
    assert "<b>Toast" not in html


def test_only_the_task_that_is_named(msg2, data: Path) -> None:
    steps = (data / "steps.csv").read_text()
    (data / "steps.csv").write_text(steps + "Make Tea,v0,boil,0,5\n")
    both = msg2("phrases", data / "steps.csv", data / "captions")
    one = msg2("phrases", data / "steps.csv", data / "captions", "--task", "Make Tea")
    assert "Make Tea" in both.out
    assert "Toast" in both.out
    assert "Toast" not in one.out
    (data / "captions" / "7_v0.en.vtt").unlink()
    assert "Make Tea" not in msg2("phrases", data / "steps.csv", data / "captions").out


def test_where_nobody_speaks(msg2, data: Path) -> None:
    (data / "others").mkdir()
    (data / "others" / "x.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nwell\n")
    out = data / "spoken.html"
    complaint = msg2("phrases", data / "steps.csv", data / "others", "-o", out).complaint
    assert complaint == f"msg2: {data / 'others'}: none of the labelled videos has narration here\n"
    assert not out.exists()
    (data / "others" / "x.vtt").unlink()
    assert "holds no captions" in msg2("phrases", data / "steps.csv", data / "others").complaint
    assert "is not there" in msg2("phrases", data / "steps.csv", data / "nowhere").complaint


def test_options_that_cannot_be_used(msg2, data: Path) -> None:
    go = ("phrases", data / "steps.csv", data / "captions")
    assert msg2(*go, "-o", data / "spoken.txt").code == 2
    assert msg2(*go, "--seconds", -1).code == 2
    complaint = msg2(*go, "--phrases", "no_such_model").complaint
    assert "is not a model of spaCy (Can't find model 'no_such_model')" in complaint
    assert "[E" not in complaint
    msg2("features", data / "captions", "-o", data / "store")
    ran = msg2("phrases", data / "steps.csv", data / "store", "--phrases", "no_such_model")
    assert ran.code == 2
    assert "--phrases" in ran.err


def test_a_store_that_keeps_no_words(msg2, data: Path) -> None:
    bare = VideoFeatures(np.zeros(0), np.zeros((0, 0)), np.array([[0.0, 1.0]]), np.ones((1, 2)))
    write_store(data / "store", {(None, "v1"): bare}, Encoders(None, "model", 0, 2))
    assert "keeps no texts" in msg2("phrases", data / "steps.csv", data / "store").complaint
