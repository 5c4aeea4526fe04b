"""What `msg2 describe` knows: counted by hand on small data, and on the real release."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from msg2.errors import InputError
from msg2.formats import summarize
from msg2.formats.data_summary import summarize_task
from msg2.formats.run_selection import find_variants
from msg2.task import Segment, Sentence, Task, Video


def test_counts_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "toast.csv"
    path.write_text(
        "video,step,start,end\n"
        "v1,fry,4,9\nv1,whisk,0,5\nv1,fry,10,12\nv1,Fry,12,12\n"  # unsorted, overlap, repeat, no length
        "v2,whisk,1.5,3\n"
    )
    found = summarize(path)
    (task,) = found.tasks
    assert found.unsorted == {"toast.csv": 1}
    assert found.findings == ("1 row in 1 file not in time order; they were sorted",)
    assert (task.task, task.videos, task.steps, task.segments) == ("toast", 2, 3, 5)
    assert (task.repeats, task.videos_with_repeats, task.overlaps, task.videos_with_overlaps) == (1, 1, 1, 1)
    assert (task.zero_length, task.videos_with_one_segment, task.timed_videos, task.narrated_videos) == (1, 1, 2, 0)
    assert task.coverage == pytest.approx((3 / 3 + 1 / 3) / 2)
    assert task.videos_with_step == {"Fry": 0.5, "fry": 0.5, "whisk": 1.0}
    assert task.lookalikes == (("Fry", "fry"),)
    assert (task.median_seconds, task.median_last_end, task.longest_last_end) == (2, 7.5, 12)
    assert task.findings == (
        "names that look the same: 'Fry', 'fry'",
        "1 video with only one label, which says nothing about order",
        "1 label of no length",
    )
    assert json.loads(json.dumps(found.to_json()))["tasks"][0]["videos_with_step"]["whisk"] == 1.0


def test_steps_that_never_occur_empty_videos_and_mixed_times() -> None:
    videos = [
        Video("a", [Segment("x", 0, 1), Segment("y", 1, 2)], [Sentence("hello", 0, 1)]),
        Video("b", [Segment("x"), Segment("y")]),
        Video("c", []),
    ]
    facts = summarize_task(Task("t", ["x", "y", "z"], videos))
    assert facts.narrated_videos == 1
    assert facts.findings == (
        "steps that never occur: 'z'",
        "only 1 of 3 videos have times",
        "1 video with no label at all",
    )


def timed(*spans: tuple[float, float]) -> Task:
    return Task("t", ["a"], [Video(f"v{n}", [Segment("a", *span)]) for n, span in enumerate(spans)])


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (timed((0, 9000), (100, 7500)), "may be frames, not seconds"),
        (timed((0, 9000.5), (100, 7500)), None),
        (timed((0, 90), (100, 750)), None),
        (timed((0, 60.5), (1, 61), (0, 30_000.5)), "after more than 6 hours"),
        (timed((0, 60.5), (1, 61), (0, 3000)), "1 video over 20 times longer than usual"),
    ],
)
def test_suspicious_times(task: Task, words: str | None) -> None:
    found = [finding for finding in summarize_task(task).findings if "only one label" not in finding]
    assert found == [] if words is None else any(words in finding for finding in found)


def test_an_empty_task() -> None:
    facts = summarize_task(Task("t", [], []))
    assert (facts.coverage, facts.median_seconds, facts.findings) == (0, None, ())


def test_the_official_crosstask_release(data: Path) -> None:
    found = summarize(data / "crosstask")
    assert sum(task.videos_with_overlaps for task in found.tasks) == 744
    assert sum(task.videos for task in found.tasks) == 2750
    assert all(task.timed_videos == task.videos and not task.never for task in found.tasks)
    with pytest.raises(InputError, match="takes no order"):
        summarize(data / "crosstask", order="time")


def test_captaincook4d_is_looked_at_in_time(data: Path) -> None:
    file = data / "captaincook4d" / "complete_step_annotations.json"
    assert all(task.timed_videos == task.videos for task in summarize(file).tasks)
    assert not any(task.timed_videos for task in summarize(file, order="file").tasks)
    assert summarize(file).unsorted == summarize(file, order="file").unsorted != {}


def test_agreement_of_annotators_is_that_of_scikit_learn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [
        ("v1", "a", 0, 5, "anna"), ("v1", "b", 6, 9, "anna"), ("v1", "a", 1, 5, "ben"), ("v2", "a", 0, 5, "anna"),
        ("v2", "b", 6, 9, "ben"), ("v3", "b", 0, 1, "anna"), ("v1", "b", 0, 1, "predicted"), ("v2", "a", 2, 3, "ben"),
    ]  # fmt: skip
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["video,step,start,end,Annotator", *lines]))
    summary = summarize(path)
    (pair,) = summary.tasks[0].agreement
    assert pair.annotators == ("anna", "ben")
    assert pair.agreement.videos == 2  # the third has labels of one only
    assert (pair.only_first, pair.only_second) == ({"b": ("v1",)}, {"b": ("v2",)})

    def going_on(who: str) -> list[bool]:
        """Every half second of both videos and steps, in its middle."""
        ends = {"v1": 9, "v2": 9}
        moments = [(v, s, i / 2 + 0.25) for v in ends for s in "ab" for i in range(2 * ends[v])]
        return [any(r[:2] == (v, s) and r[2] <= t < r[3] and r[4] == who for r in rows) for v, s, t in moments]

    expected = cohen_kappa_score(going_on("anna"), going_on("ben"))
    assert pair.agreement.overall.time_kappa == pytest.approx(expected)
    assert summary.tasks[0].findings[0] == "labels of 2 annotators, which are counted together: 'anna', 'ben'"
    assert summary.to_json()["tasks"][0]["agreement"][0]["only_first"] == {"b": ["v1"]}


def test_names_that_differ_by_a_space() -> None:
    task = Task("toast", ["flip", "Flip "], [Video("v1", [Segment("flip", 3, 3)])])
    assert summarize_task(task).findings[1] == "names that look the same: 'Flip ', 'flip'"


# -- logs: instants at once, clocks, variants, conditions ----------------------------------------------------------


def write_log(path: Path, clock: int) -> None:
    """Thirty runs of a, b, c (or a, c), every other one at a clock that only tells so many seconds."""
    base = datetime(2012, 1, 1, tzinfo=UTC)
    rows = []
    for run in range(30):
        for place, step in enumerate("abc" if run % 3 else "ac"):
            at = base + timedelta(days=run, seconds=place * 40_003 // clock * clock)
            rows.append(f"c{run:02},{step},{at.isoformat()},{'Phone' if run < 10 else 'Shop'}")
    path.write_text("\n".join(["case,activity,time,channel", *rows]))


@pytest.mark.parametrize(("clock", "told"), [(1, None), (60, "a minute"), (3600, "an hour"), (86_400, "a day")])
def test_coarse_clocks_and_instants_at_once(tmp_path: Path, clock: int, told: str | None) -> None:
    path = tmp_path / "log.csv"
    write_log(path, clock)
    (task,) = summarize(path).tasks
    # Of 20 runs a, b and c and of 10 a and c, all at once by days; otherwise at 0, 40,003 and 80,006 seconds.
    assert task.simultaneous == (20 * 2 + 10 if clock == 86_400 else 0)
    assert task.overlaps == 0
    found = [finding for finding in task.findings if "the clock has a resolution of" in finding]
    assert [told is not None and told in finding for finding in found] == [True] * (clock > 1)
    assert any("50 of 50 labels are at the same instant" in finding for finding in task.findings) == (clock == 86_400)


def test_variants_and_conditions(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write_log(path, 1)
    (task,) = summarize(path, variants=True).tasks
    assert [(v.to_english(), v.runs, v.share) for v in task.variants] == [
        ("a → b → c", 20, 20 / 30), ("a → c", 10, 10 / 30),
    ]  # fmt: skip
    for where, runs in (
        (["step=b"], 20),
        (["step!=b"], 10),
        (["variant<=1"], 20),
        (["start>=2012-01-11"], 20),
        (["end<2012-01-11T00:00:00Z", "step=b"], 6),
        (["end>2013-01-01"], 0),
        (["channel=Phone"], 10),
        (["channel!=Phone", "variant=2"], 6),
    ):
        if runs:
            assert [each.videos for each in summarize(path, where=where).tasks] == [runs], where
        else:
            with pytest.raises(InputError, match="nothing meets the conditions"):
                summarize(path, where=where)
    with pytest.raises(InputError, match="the condition 'b' is not understood"):
        summarize(path, where=["b"])
    together = Task(
        "t", "ab", [Video("v", [Segment("b", 0, 0), Segment("a", 0, 0), Segment("a", 1, 1)]), Video("w", [])]
    )
    assert [variant.to_english() for variant in find_variants(together)[0]] == ["nothing", "a + b → a"]


def test_attributes_of_xes_select_runs(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    traces = "".join(
        f"<trace><string key='concept:name' value='{n}'/><string key='channel' value='{'Shop' if n % 3 else 'Web'}'/>"
        f"<event><string key='concept:name' value='a'/><int key='cost' value='{n}'/></event>"
        "<event><string key='concept:name' value='b'/></event></trace>"
        for n in range(9)
    )
    path.write_text(f"<log>{traces}</log>")
    assert summarize(path, where=["channel=Web"]).tasks[0].videos == 3
    assert summarize(path, where=["cost>=7"]).tasks[0].videos == 2
