"""ELAN files are read by another library as the same labels, and obey ELAN's own rules."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pympi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.options import ExportOptions, NoiseOptions, WorldOptions
from msg2.readers import read_all
from msg2.task import Segment, Task, Video
from msg2.worlds import simulate, worlds
from msg2.worlds.export import as_elan, write

text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="￾￿"), min_size=1)
segments = st.builds(
    lambda step, start, duration, source: Segment(step, start / 1000, (start + duration) / 1000, None, source),
    text, st.integers(0, 50), st.integers(1, 30), st.sampled_from([None, "predicted", "ann's"]),
)  # fmt: skip


def task_of(*labels: Segment, name: str = "toast", video: str = "v1") -> Task:
    return Task(name, {label.step for label in labels} | {"never seen"}, [Video(video, labels)])


def read(path: Path) -> pympi.Elan.Eaf:
    logging.getLogger("pympi").setLevel(logging.ERROR)
    return pympi.Elan.Eaf(str(path))


@given(st.lists(segments, max_size=8), text, text)
def test_every_label_survives_in_milliseconds(labels: list[Segment], name: str, video: str) -> None:
    task = task_of(*labels, name=name, video=video)
    root = ElementTree.fromstring(as_elan(task, task.videos[0], ExportOptions()))
    slots = {slot.get("TIME_SLOT_ID"): int(slot.get("TIME_VALUE", "")) for slot in root.iter("TIME_SLOT")}
    found = []
    for tier in root.iter("TIER"):
        spans = []
        for mark in tier.iter("ALIGNABLE_ANNOTATION"):
            start, end = slots[mark.get("TIME_SLOT_REF1")], slots[mark.get("TIME_SLOT_REF2")]
            value = mark.findtext("ANNOTATION_VALUE", "")
            spans.append((start, end))
            found.append(Segment(value, start / 1000, end / 1000, None, tier.get("ANNOTATOR")))
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(spans))), "no overlap within a tier"
    key = str
    assert sorted(found, key=key) == sorted(labels, key=key)
    properties = {one.get("NAME"): one.text for one in root.iter("PROPERTY")}
    assert properties == {"msg2.task": name, "msg2.video": video}
    assert [value.text for value in root.iter("CVE_VALUE")] == list(task.steps)
    tiers = [tier.get("TIER_ID") for tier in root.iter("TIER")]
    assert len(set(tiers)) == len(tiers) >= 1


def test_pympi_reads_it(tmp_path: Path) -> None:
    labels = [Segment("whisk", 1.5, 4.0), Segment('heat <pan> & "oil"', 2.0, 9.25), Segment("fry", 12.3456, 12.3456)]
    predicted = Segment("dip", 9.25, 12.0, 0.8, "predicted")
    (path,) = write(task_of(*labels, predicted), tmp_path / "v1.eaf", ExportOptions(media="videos/{video}.webm"))
    assert path == tmp_path / "v1.eaf"
    eaf = read(path)
    assert {name: sorted(value[:3] for value in eaf.get_annotation_data_for_tier(name)) for name in eaf.tiers} == {
        "steps": [(1500, 4000, "whisk"), (12346, 12347, "fry")],
        "steps 2": [(2000, 9250, 'heat <pan> & "oil"')],
        "steps (predicted)": [(9250, 12000, "dip")],
    }
    assert eaf.get_linked_files()[0]["MEDIA_URL"] == "videos/v1.webm"
    assert eaf.get_parameters_for_linguistic_type("step")["CONTROLLED_VOCABULARY_REF"] == "steps"
    entries = eaf.get_cv_entries("steps")
    assert sorted(value[0][0] for value, _ in entries.values()) == sorted(
        ["dip", "fry", 'heat <pan> & "oil"', "never seen", "whisk"]
    )
    eaf.add_annotation("steps", 20_000, 21_000, "flip")  # as a person would, and saved by the other library
    eaf.to_file(str(tmp_path / "changed.eaf"))
    assert "flip" in {value[2] for value in read(tmp_path / "changed.eaf").get_annotation_data_for_tier("steps")}


def test_a_file_per_video_and_a_folder_per_task(tmp_path: Path) -> None:
    videos = [Video(name, [Segment("a", 0, 1)]) for name in ("aB_-1", "v.2")]
    one, other = Task("Make Tea", "a", videos), Task("make tea", "a", [*videos, Video("../x", [])])
    files = write([one, other], tmp_path / "out.eaf")
    assert sorted(file.relative_to(tmp_path).as_posix() for file in files) == [
        "out/make-tea-2/ab-1.eaf", "out/make-tea-2/v-2.eaf", "out/make-tea-2/x.eaf",
        "out/make-tea/aB_-1.eaf", "out/make-tea/v.2.eaf",
    ]  # fmt: skip
    assert sorted(files) == sorted(tmp_path.rglob("*.eaf"))
    assert {file.parent for file in write(one, tmp_path / "one.eaf")} == {tmp_path / "one"}
    assert list(read(tmp_path / "out/make-tea-2/x.eaf").tiers) == ["steps"]


@pytest.mark.parametrize("name", ["bell \x07", "half \ud800", "\ufffe", "nul \x00"])
def test_what_xml_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a character that no XML file can hold"):
        write(task_of(Segment(name, 0, 1)), tmp_path / "v1.eaf")
    assert not list(tmp_path.iterdir())


def test_line_ends_in_names_survive() -> None:
    task = task_of(Segment("two\r\nlines\tand a tab", 0, 1), video="v\n1")
    root = ElementTree.fromstring(as_elan(task, task.videos[0], ExportOptions()))
    assert root.findtext(".//ANNOTATION_VALUE") == "two\r\nlines\tand a tab"
    assert root.find(".//MEDIA_DESCRIPTOR").get("MEDIA_URL") == "v\n1.mp4"


def test_our_reader_reads_it_back(tmp_path: Path) -> None:
    tasks = [
        simulate(one, WorldOptions(videos=5, noise=NoiseOptions(overlapping=0.2)), seed=0).task for one in worlds()[:3]
    ]
    for task in tasks:
        files = write(task, tmp_path / f"{task.name}.eaf")
        assert any("steps 2" in read(file).tiers for file in files), "some labels overlap"
        (found,) = read_all(files[0].parent, repeats="keep")
        assert found == task  # times in the worlds are hundredths of seconds


def test_sources_and_names_read_back(tmp_path: Path) -> None:
    labels = [Segment("whisk", 1.5, 4.0), Segment("dip", 2.0, 12.0, None, "predicted"), Segment("fry", 3.0, 5.0)]
    task = task_of(*labels, name="Toast: how to?", video="a/b c")
    (found,) = read_all(*write(task, tmp_path / "x.eaf"), repeats="keep")
    assert found == task
