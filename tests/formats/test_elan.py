"""ELAN files of another library are read, and what msg2 writes is read by that library and obeys ELAN's own rules."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pympi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import read, read_all
from msg2.formats.elan import _file_names, to_elan
from msg2.formats.reading import WriteOptions
from msg2.formats.registry import write
from msg2.formats.source import Source
from msg2.simulation import NoiseOptions, household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from msg2.text import name_fault


def spans(path: Path, **options: Any) -> dict[str, list[tuple[str, float | None, float | None]]]:
    (task,) = read_all(path, repeats="keep", **options)
    return {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


# -- reading ----------------------------------------------------------------------------------------------------


@pytest.fixture
def eaf() -> pympi.Elan.Eaf:
    logging.getLogger("pympi").setLevel(logging.ERROR)
    made = pympi.Elan.Eaf(author="Ann")
    made.add_tier("steps")
    for start, end, value in [(0, 1500, "whisk <eggs>"), (2000, 2750, "dip\nbread"), (1500, 2000, "🍳 & 'heat'")]:
        made.add_annotation("steps", start, end, value)
    return made


def test_elan(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    folder = tmp_path / "toast"
    folder.mkdir()
    eaf.to_file(str(folder / "v1.eaf"))
    expected = [("whisk <eggs>", 0, 1.5), ("🍳 & 'heat'", 1.5, 2), ("dip\nbread", 2, 2.75)]
    assert spans(folder / "v1.eaf") == spans(folder) == {"v1": expected}
    assert read(folder).name == "toast"
    eaf.to_file(str(folder / "v2.eaf"))
    assert spans(folder) == {"v1": expected, "v2": expected}
    (tmp_path / "other").mkdir()
    eaf.to_file(str(tmp_path / "other" / "w.eaf"))
    assert [(task.name, len(task)) for task in read_all(tmp_path)] == [("other", 1), ("toast", 2)]


def test_elan_tiers(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    path = tmp_path / "v.eaf"
    eaf.add_tier("speech")
    eaf.add_annotation("speech", 100, 200, "ok")
    eaf.to_file(str(path))
    assert complaint(path).endswith(
        "has annotations on 2 tiers\n  choose the one with the steps (--tier NAME): 'speech', 'steps'"
    )
    assert spans(path, tier="speech") == {"v": [("ok", 0.1, 0.2)]}
    assert spans(path, tier="default") == {"v": []}
    assert "has no tier 'x'\n  its tiers are: 'default', 'speech', 'steps'" in complaint(path, tier="x")
    table = tmp_path / "t.csv"
    table.write_text("video,step\nv,a\n")
    assert "takes no tier" in complaint(table, tier="x")


def test_elan_annotations_that_refer_to_others(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    path = tmp_path / "v.eaf"
    eaf.add_linguistic_type("refers", "Symbolic_Association", timealignable=False)
    eaf.add_tier("names", "refers", "steps")
    eaf.add_ref_annotation("names", "steps", 100, "mix")
    eaf.add_tier("loud", "refers", "names")
    eaf.add_ref_annotation("loud", "names", 100, "MIX")
    eaf.to_file(str(path))
    assert spans(path, tier="names") == {"v": [("mix", 0, 1.5)]}
    assert spans(path, tier="loud") == {"v": [("MIX", 0, 1.5)]}
    path.write_text(path.read_text().replace("ANNOTATION_REF=", "OTHER_REF=", 1))
    assert "<REF_ANNOTATION> has no attribute 'ANNOTATION_REF'" in complaint(path, tier="names")


ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="1000"/><TIME_SLOT TIME_SLOT_ID="t2"/>
<TIME_SLOT TIME_SLOT_ID="t3"/><TIME_SLOT TIME_SLOT_ID="t4" TIME_VALUE="4000"/></TIME_ORDER>
<TIER TIER_ID="s" LINGUISTIC_TYPE_REF="d">{}</TIER></ANNOTATION_DOCUMENT>"""


def elan(*annotations: tuple[str, str, str]) -> str:
    return ELAN.format(
        "\n".join(
            f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{n}" TIME_SLOT_REF1="{a}" TIME_SLOT_REF2="{b}">'
            f"<ANNOTATION_VALUE>{value}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
            for n, (a, b, value) in enumerate(annotations)
        )
    )


def test_elan_boundaries_without_a_time_lie_evenly(tmp_path: Path) -> None:
    path = tmp_path / "v.eaf"
    path.write_text(elan(("t1", "t2", "a"), ("t2", "t3", "b"), ("t3", "t4", "c")))
    assert spans(path) == {"v": [("a", 1, 2), ("b", 2, 3), ("c", 3, 4)]}
    path.write_text(elan(("t1", "t2", "a")))
    assert "v.eaf, annotation a0: has no times, and neither has what it refers to" in complaint(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('"4000"', '"4.5"'), "v.eaf: the time '4.5' is not a number of milliseconds"),
        (('"4000"', f'"{"9" * 400}"'), "v.eaf: the time '999"),
        (('"4000"', '"500"'), "annotation a0: step 'a' ends at 0.5, before its start at 1"),
        (('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"'), "v.eaf: the unit of time is 'PAL-frames'"),
        (('REF2="t4"', 'REF2="t9"'), "v.eaf: the time 't9' is not in <TIME_ORDER>"),
        ((">a<", "><"), "annotation a0: is empty\n  its value is the name of the step"),
        (("<HEADER", "<!-- \f --><HEADER"), "row 3: is not valid XML"),
        (('<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE x [<!ENTITY e "">]>'), "row 1: defines the entity 'e'"),
    ],
)
def test_elan_that_is_refused(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    path = tmp_path / "v.eaf"
    path.write_text(elan(("t1", "t4", "a")).replace(*change))
    assert expected in complaint(path)


def test_a_document_without_annotations(tmp_path: Path) -> None:
    (tmp_path / "v.eaf").write_text(elan())
    assert "v.eaf: has no annotations" in complaint(tmp_path)


# -- writing ----------------------------------------------------------------------------------------------------


text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="￾￿"), min_size=1).filter(
    lambda text: not name_fault(text)
)
segments = st.builds(
    lambda step, start, duration, source: Segment(step, start / 1000, (start + duration) / 1000, None, source),
    text, st.integers(0, 50), st.integers(1, 30), st.sampled_from([None, "predicted", "ann's"]),
)  # fmt: skip


def task_of(*labels: Segment, name: str = "toast", video: str = "v1") -> Task:
    return Task(name, {label.step for label in labels} | {"never seen"}, [Video(video, labels)])


def read_with_pympi(path: Path) -> pympi.Elan.Eaf:
    logging.getLogger("pympi").setLevel(logging.ERROR)
    return pympi.Elan.Eaf(str(path))


@given(st.lists(segments, max_size=8), text, text)
def test_every_label_survives_in_milliseconds(labels: list[Segment], name: str, video: str) -> None:
    task = task_of(*labels, name=name, video=video)
    root = ElementTree.fromstring(to_elan(task, task.videos[0], WriteOptions()))
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
    (path,) = write(task_of(*labels, predicted), tmp_path / "v1.eaf", WriteOptions(media="videos/{video}.webm"))
    assert path == tmp_path / "v1.eaf"
    eaf = read_with_pympi(path)
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
    assert "flip" in {
        value[2] for value in read_with_pympi(tmp_path / "changed.eaf").get_annotation_data_for_tier("steps")
    }


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
    assert list(read_with_pympi(tmp_path / "out/make-tea-2/x.eaf").tiers) == ["steps"]


@pytest.mark.parametrize("name", ["bell \x07", "half \ud800", "\ufffe"])
def test_what_xml_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a character that no XML file can hold"):
        write(task_of(Segment(name, 0, 1)), tmp_path / "v1.eaf")
    assert not list(tmp_path.iterdir())


def test_line_ends_in_names_survive() -> None:
    task = task_of(Segment("two\r\nlines\tand a tab", 0, 1), video="v\n1")
    root = ElementTree.fromstring(to_elan(task, task.videos[0], WriteOptions()))
    assert root.findtext(".//ANNOTATION_VALUE") == "two\r\nlines\tand a tab"
    assert root.find(".//MEDIA_DESCRIPTOR").get("MEDIA_URL") == "v\n1.mp4"


def test_our_reader_reads_it_back(tmp_path: Path) -> None:
    tasks = [
        simulate(one, SimulationOptions(videos=5, noise=NoiseOptions(overlapping=0.2)), seed=0).task
        for one in household_worlds()[:3]
    ]
    for task in tasks:
        files = write(task, tmp_path / f"{task.name}.eaf")
        assert any("steps 2" in read_with_pympi(file).tiers for file in files), "some labels overlap"
        (found,) = read_all(files[0].parent, repeats="keep")
        assert found == task  # times in the worlds are hundredths of seconds


def test_sources_and_names_read_back(tmp_path: Path) -> None:
    labels = [Segment("whisk", 1.5, 4.0), Segment("dip", 2.0, 12.0, None, "predicted"), Segment("fry", 3.0, 5.0)]
    task = task_of(*labels, name="Toast: how to?", video="a/b c")
    (found,) = read_all(*write(task, tmp_path / "x.eaf"), repeats="keep")
    assert found == task


def rich_document(path: Path) -> Path:
    """A document as another program writes it: two media, a tier of steps, speech, and glosses that refer to speech."""
    eaf = pympi.Elan.Eaf(author="ann")
    eaf.add_linked_file("file:///videos/front.mp4", mimetype="video/mp4")
    eaf.add_linked_file("file:///videos/top.mp4", mimetype="video/mp4")
    eaf.add_linguistic_type("gloss", constraints="Symbolic_Association", timealignable=False)
    for name in ("actions", "speech"):
        eaf.add_tier(name)
    eaf.add_tier("glosses", "gloss", parent="speech")
    for start, end, step in ((0, 1000, "whisk"), (500, 2000, "fry"), (3000, 3001, "flip")):
        eaf.add_annotation("actions" if step != "fry" else "speech", start, end, step)
    eaf.add_ref_annotation("glosses", "speech", 600, "FRY")
    eaf.to_file(str(path))
    return path


def annotations(path: Path) -> dict[str, list[tuple[object, ...]]]:
    eaf = read_with_pympi(path)
    return {name: sorted(value[:3] for value in eaf.get_annotation_data_for_tier(name)) for name in eaf.tiers}


def test_from_elan_to_elan_everything_else_stays(tmp_path: Path) -> None:
    path = rich_document(tmp_path / "v1.eaf")
    before = annotations(path)
    (task,) = read_all(path, tier="actions", repeats="keep")
    (first,) = write(task, tmp_path / "first.eaf", WriteOptions(original=Source.of_data(path)))
    after = annotations(first)
    assert {name: after[name] for name in before} == before
    assert after["steps"] == before["actions"]
    links = [link["MEDIA_URL"] for link in read_with_pympi(first).get_linked_files()]
    assert links == ["file:///videos/front.mp4", "file:///videos/top.mp4"]
    (found,) = read_all(first, repeats="keep")  # it now says which tier has the steps, and its names
    assert found == task
    ids = [one.get("ANNOTATION_ID") for one in ElementTree.parse(first).iter() if one.get("ANNOTATION_ID")]
    assert len(set(ids)) == len(ids) == 6
    (second,) = write(found, tmp_path / "second.eaf", WriteOptions(original=Source.of_data(first)))
    assert second.read_bytes() == first.read_bytes()  # nothing is missing any more
    added = found.with_videos([Video("v1", [*found.videos[0].segments, Segment("flip", 9, 10, 0.5, "predicted")])])
    (third,) = write(added, tmp_path / "third.eaf", WriteOptions(original=Source.of_data(second)))
    assert annotations(third) == after | {"steps (predicted)": [(9000, 10000, "flip")]}


def test_times_stay_in_their_order(tmp_path: Path) -> None:
    labels = [Segment("whisk", 1, 4), Segment("fry", 6, 9)]
    (path,) = write(task_of(*labels), tmp_path / "v1.eaf")
    more = task_of(*labels, Segment("dip", 0.5, 5), Segment("dip", 7, 12))
    (path,) = write(more, tmp_path / "x.eaf", WriteOptions(original=Source.of_data(path)))
    order = [int(slot.get("TIME_VALUE")) for slot in ElementTree.parse(path).iter("TIME_SLOT")]
    assert order == sorted(order)
    assert list(annotations(path)) == ["steps", "steps 2"]


def test_another_medium_and_other_data(tmp_path: Path) -> None:
    path = rich_document(tmp_path / "v1.eaf")
    (task,) = read_all(path, tier="actions", repeats="keep")
    (moved,) = write(task, tmp_path / "x.eaf", WriteOptions("new/{video}.mp4", original=Source.of_data(path)))
    assert [link["MEDIA_URL"] for link in read_with_pympi(moved).get_linked_files()] == ["new/v1.mp4"]
    other = Task("other", task.steps, task.videos)
    (plain,) = write(other, tmp_path / "y.eaf", WriteOptions(original=Source.of_data(path)))
    assert list(annotations(plain)) == ["steps"]


def test_files_are_named_after_plain_ids() -> None:
    assert _file_names(["xQ-1_a", "v1.2"]) == ["xQ-1_a", "v1.2"]
    assert _file_names(["../x", "a", "A"]) == ["x", "a", "a-2"]
