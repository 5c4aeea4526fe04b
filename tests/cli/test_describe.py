"""`msg2 describe`: what is in the data, and what looks wrong."""

from __future__ import annotations

import re
from pathlib import Path


def test_a_table_in_words(msg2, table: Path) -> None:
    ran = msg2("describe", table)
    assert ran.code == 0
    assert ran.err == ""
    assert re.search(r"^toast +8 +4 +25 +78% +0 +3 +3$", ran.out, re.MULTILINE)
    assert re.search(r"^heat +12%$", ran.out, re.MULTILINE)


def test_what_looks_wrong(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,start,end\nv,Fry,9,9\nv,fry,2,3\n")
    ran = msg2("describe", path)
    assert "- 1 row in 1 file not in time order; they were sorted\n" in ran.out
    assert "- d: names that look the same: 'Fry', 'fry'\n- d: 1 label of no length\n" in ran.out


def test_as_json_nothing_else_is_on_stdout(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,mood\nv,é,good\nv,b,bad\n")
    ran = msg2("describe", path, "--json")
    assert ran.out.startswith("{")
    assert "é" in ran.out
    [task] = ran.json["tasks"]
    assert (task["task"], task["videos"], task["videos_with_step"]) == ("d", 1, {"b": 1.0, "é": 1.0})
    assert ran.err == f"warning: {path}: columns that are not used: 'mood'\n"


def test_times_at_the_edge_of_numbers(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,start,end\nv,a,-0.0,1.7e308\nw,a, 3 ,1.7e308\nx,b,1e5,1e300\n")
    ran = msg2("describe", path, "--json")
    assert ran.json["tasks"][0]["median_last_end"] == 1.7e308
    assert msg2("describe", path).code == 0


def test_cases_of_an_event_log_are_called_runs(msg2, tmp_path: Path) -> None:
    log, graph = tmp_path / "log.csv", tmp_path / "graph.json"
    rows = "".join(f"{case},{name}\n" for case in range(6) for name in ("pack", "ship"))
    log.write_text("case:concept:name,concept:name\n" + rows)
    for said in (
        msg2("describe", log).out,
        msg2("infer", log, "-o", graph).out,
        msg2("explain", graph, "--step", "ship").out,
        msg2("check", graph, log).out,
    ):
        assert "runs" in said
        assert "videos" not in said


def test_variants_conditions_and_ties_of_a_log(msg2, tmp_path: Path) -> None:
    log, graph = tmp_path / "log.csv", tmp_path / "graph.json"
    rows = [
        f"{case},{name},2012-0{1 + case // 3}-0{day}\n"
        for case in range(9)
        for day, name in ((1, "b"), (1, "a"), (4, "c"))
    ]
    log.write_text("case,activity,time\n" + "".join(rows))
    said = msg2("describe", log, "--variants", 5, "--where", "start>=2012-02-01").out
    assert re.search(r"^task .* days$\nlog +6 +3 +18 +100% +0 +0 +3\.0$", said, re.MULTILINE)
    assert "log: from 2012-02-01 to 2012-03-04\n" in said
    assert re.search(r"^Variants: 1 in all; .*\n +runs +share +steps *\n1 +6 +100% +a \+ b → c", said, re.MULTILINE)
    assert len(msg2("describe", log, "--variants", 1, "--json").json["tasks"][0]["variants"]) == 1
    inferred = msg2("infer", log, "-o", graph)
    assert "50% of the labels are at the same instant as the one before them" in inferred.err
    ordered = msg2("infer", log, "-o", graph, "--ties", "file")
    assert "a  needs  'b'" in ordered.out
    assert "same instant" not in ordered.err
    assert '"ties": "file"' in graph.read_text()
    assert "9 runs" in msg2("convert", log, "-o", tmp_path / "log.xes").out
    assert msg2("describe", log, "--where", "start").code == 1


def test_groups_of_runs_are_compared(msg2, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [
        f"{case},{name},2012-0{1 + case % 2}-0{day}\n"
        for case in range(40)
        for day, name in enumerate("ab"[: 1 + case % 2], 1)
    ]
    log.write_text("case,activity,time\n" + "".join(rows))
    ran = msg2("compare", log, "--by", "start<2012-02-01")
    assert ran.out.startswith("'b' is done in 0% (0 of 20) where start<2012-02-01, in 100% (20 of 20) elsewhere; p = ")
    assert ran.out.endswith("1 of 1 comparisons differ by more than chance.\n")
    (found,) = msg2("compare", log, "--by", "step=b", "--json").json["differences"]
    assert (found["kind"], found["inside"]) == ("done", [20, 20])
    assert msg2("compare", log, log, "--by", "step=b").code == 2
    assert msg2("compare", log, "--ties", "file").code == 2


def test_of_very_many_steps_the_most_frequent_are_listed(msg2, tmp_path: Path) -> None:
    rows = [f"v{video},s{step:05}\n" for video in range(2) for step in range(0, 1500, 1 + video)]
    (tmp_path / "steps.csv").write_text("video,step\n" + "".join(rows))
    said = msg2("describe", tmp_path / "steps.csv").out.splitlines()
    listed = [line.split() for line in said if line.startswith("s0")]
    assert [share for _, share in listed] == ["100%"] * 750 + ["50%"] * 250
    assert "and 500 more steps, which --json lists" in said
