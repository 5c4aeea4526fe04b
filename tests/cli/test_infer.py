"""`msg2 infer`: graphs and tables as files, the same bytes whatever the order and the jobs."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import pytest

import msg2 as package
from msg2.cli.infer import MOST_RULES
from msg2.inference import METHODS


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_one_task_is_one_file(msg2, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "graph.json"
    ran = msg2(
        "infer", table, "-o", out, "--method", "msg2", "--set", "delta=0.9", "--set", "alpha=0.1", "--set", "recency=1",
        "--set", "max_literals=none",
    )  # fmt: skip
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.splitlines()[0].split() == ["task", "videos", "steps", "edges", "delta", "file"]
    assert ran.out.splitlines()[1].split() == ["toast", "8", "4", "3", "0.9", str(out)]
    found = json.loads(out.read_text())
    assert found["preconditions"] == {"dip": "whisk", "fry": {"all": ["dip", "whisk"]}}
    assert found["method"]["options"] == {
        "delta": 0.9, "alpha": 0.1, "recency": 1.0, "recency_rule": "each", "max_literals": None,
        "exclude_relatives": False,
    }  # fmt: skip
    assert [path.name for path in out.parent.iterdir()] == ["graph.json"]


def test_the_default_method_tells_kinds_and_has_no_delta(msg2, tmp_path: Path) -> None:
    path, out = tmp_path / "tea.csv", tmp_path / "tea.json"
    runs = ["boil,sugar,pour", "boil,honey,pour", "boil,pour"] * 8
    path.write_text(
        "video,step\n" + "".join(f"v{n:02},{step}\n" for n, run in enumerate(runs) for step in run.split(","))
    )
    ran = msg2("infer", path, "-o", out, "--absent", "skipped")
    assert (ran.code, ran.err) == (0, "")
    columns, values, empty, *_ = (line.split() for line in ran.out.splitlines())
    assert empty == []
    assert "pour  needs  'boil' (24 of 24 runs)" in ran.out
    assert columns == ["task", "runs", "steps", "edges", "after", "exclusive", "optional", "file"]
    found = package.load(out)
    assert found.method["name"] == "likelihood"
    after = [edge for edge in found.edges() if edge.kind == "after"]
    assert {(edge.before, edge.after) for edge in after} == {("sugar", "pour"), ("honey", "pour")}
    assert (found.exclusive, found.optional) == ((("honey", "sugar"),), {"honey", "sugar"})
    assert values == ["tea", "24", "4", str(len(found.edges())), "2", "1", "2", str(out)]


def test_the_rules_of_a_graph_are_printed_and_those_of_a_large_one_counted(msg2, tmp_path: Path) -> None:
    path, out = tmp_path / "chain.csv", tmp_path / "chain.json"
    steps = [f"s{number:02}" for number in range(MOST_RULES + 4)]
    path.write_text("video,step\n" + "".join(f"v{n},{step}\n" for n in range(9) for step in steps))
    _, _, _, *rules, more = msg2("infer", path, "-o", out).out.splitlines()
    assert rules == package.load(out).explain().splitlines()[:MOST_RULES]
    assert rules[0] == "s01  needs  's00' (9 of 9 videos)"
    assert more == f"… and 3 more rules; every edge: msg2 explain {out}"
    path.write_text("video,step\nv1,a\nv1,b\nv2,b\nv2,a\n")
    assert msg2("infer", path, "-o", out).out.splitlines()[3:] == ["no rule: the steps may come in any order"]


def test_with_samples_every_rule_says_how_sure_it_is(msg2, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    said = msg2("infer", table, "-o", out, "--samples", "10").out.splitlines()[3:]
    sure = package.load(out).evidence["dip"]["confidence"]
    assert f"dip  needs  'whisk' (8 of 8 videos, {100 * sure:.0f} %)" in said
    assert said[-1] == "(%: of the 10 samples that say this)"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_gives_what_the_library_gives(msg2, many: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / "cpr.json"
    assert msg2("infer", many, "-o", out, "--task", " perform CPR", "--method", method).code == 0
    assert out.read_text() == package.infer(package.read(many, task="Perform CPR"), method).dumps()


def test_the_chosen_delta_is_told(msg2, table: Path, tmp_path: Path) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", "msg2")
    assert "(chosen)" in ran.out
    assert ran.err == "toast: delta 0.99 was chosen from the data (highest likelihood of held-out videos)\n"


def test_many_tasks_are_a_folder(msg2, many: Path, tmp_path: Path) -> None:
    ran = msg2("infer", many, "-o", tmp_path / "graphs")
    assert sorted(contents(tmp_path / "graphs")) == ["make-coffee.json", "perform-cpr.json", "repot-plant.json"]
    assert len(ran.out.splitlines()) == 4
    assert "graphs/repot-plant.json" in ran.out
    into_file = msg2("infer", many, "-o", tmp_path / "graph.json")
    assert "holds 3 tasks" in into_file.complaint
    assert not (tmp_path / "graph.json").exists()


def test_any_task_names_make_safe_files(msg2, tmp_path: Path) -> None:
    names = ["../x", "/etc/passwd", "CON", "con", "☕", "🍞", "A b", "a B", "x" * 10_000, "x" * 9_999, "..", ".", " a"]
    path = tmp_path / "d.csv"
    path.write_text("task,video,step\n" + "".join(f'"{name}",v,a\n"{name}",v,b\n' for name in names), encoding="utf-8")
    out = tmp_path / "out" / "graphs"
    assert msg2("infer", path, "-o", out).code == 0
    assert {json.loads(text)["task"] for text in contents(out).values()} == set(names)
    assert len({name.casefold() for name in contents(out)}) == len(names)
    assert all(len(name) < 70 and name.replace("-", "").removesuffix(".json").isalnum() for name in contents(out))
    assert {path.name for path in tmp_path.rglob("*")} == {"d.csv", "out", "graphs", *contents(out)}


def test_the_same_bytes_for_any_order_and_number_of_jobs(msg2, many: Path, tmp_path: Path) -> None:
    header, *lines = many.read_text().splitlines()
    random.Random(0).shuffle(lines)
    columns = [4, 2, 0, 3, 1]
    shuffled = tmp_path / "other" / "many.csv"
    shuffled.parent.mkdir()
    swapped = [",".join(line.split(",")[column] for column in columns) for line in (header, *lines)]
    shuffled.write_text("\n".join(swapped) + "\n")
    results = []
    for number, (path, *jobs) in enumerate([(many,), (many, "--jobs", 2), (shuffled, "--jobs", 10**6), (many,)]):
        out, stats = tmp_path / f"out{number}", tmp_path / f"stats{number}.csv"
        ran = msg2("infer", path, "-o", out, "--stats", stats, *jobs)
        assert ran.code == 0, ran.err
        results.append((contents(out), stats.read_bytes(), ran.err))
    assert all(result == results[0] for result in results)


def test_the_order_of_rows_counts_without_times(msg2, tmp_path: Path) -> None:
    rows = ["v,whisk", "w,whisk", "v,dip", "w,dip", "v,fry", "w,fry"]
    graphs = []
    for number, order in enumerate([rows, sorted(rows, key=lambda row: row[0]), rows[::-1]]):
        (tmp_path / f"{number}").mkdir()
        path = tmp_path / f"{number}" / "d.csv"
        path.write_text("\n".join(["video,step", *order]) + "\n")
        msg2("infer", path, "-o", path.with_suffix(".json"), "--method", "msg2", "--set", "delta=0.9")
        graphs.append(json.loads(path.with_suffix(".json").read_text()))
    assert graphs[0] == graphs[1]
    assert graphs[2]["preconditions"] == {"dip": "fry", "whisk": {"all": ["dip", "fry"]}}


def test_statistics(msg2, table: Path, tmp_path: Path) -> None:
    stats = tmp_path / "stats.csv"
    learn = ("infer", table, "-o", tmp_path / "g.json", "--method", "msg2", "--set", "delta=0.9")
    assert msg2(*learn, "--stats", stats).code == 0
    rows = rows_of(stats)
    assert list(rows[0]) == ["task", "kind", "step", "candidate", "value", "videos", "chosen"]
    shares = {(r["step"], r["candidate"]): (float(r["value"]), int(r["videos"])) for r in rows if r["kind"] == "purity"}
    assert shares["dip", "whisk"] == (1.0, 8)
    assert shares["whisk", "dip"] == (0.0, 8)
    assert ("fry", "heat") not in shares  # they overlap wherever they meet
    assert len(shares) == 6
    [chosen] = [row for row in rows if row["kind"] == "score" and row["step"] == "dip" and row["chosen"] == "True"]
    assert chosen["candidate"] == "whisk"
    assert float(chosen["value"]) == json.loads((tmp_path / "g.json").read_text())["evidence"]["dip"]["score"]


SMALL = {
    "one row": "v,a\n",
    "one video": "v,a\nv,b\n",
    "one step": "v,a\nw,a\n",
    "no order": "v,a\nw,b\n",
    "two thousand labels": "".join(f"v,s{number}\n" for number in range(2000)),
    "long names": "".join(f"v{number},{'x' * 10_000}{step}\n" for number in range(3) for step in "ab"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [kind for kind in SMALL if kind != "two thousand labels"])
def test_the_smallest_data(msg2, tmp_path: Path, kind: str, method: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\n" + SMALL[kind])
    assert msg2("infer", path, "-o", tmp_path / "g.json", "--method", method).code == 0
    assert package.load(tmp_path / "g.json").steps
    for suffix in ("svg", "html", "pddl"):
        assert msg2("show", tmp_path / "g.json", "-o", tmp_path / f"g.{suffix}").code == 0
    assert msg2("check", tmp_path / "g.json", path).code == 0


def test_two_thousand_labels_in_a_video(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\n" + SMALL["two thousand labels"])
    assert msg2("describe", path).code == 0
    assert msg2("infer", path, "-o", tmp_path / "g.json", "--method", "always-before").code == 0
    assert len(package.load(tmp_path / "g.json").steps) == 2000


@pytest.mark.parametrize("method", METHODS)
def test_segments_that_say_nothing_about_order(msg2, tmp_path: Path, method: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step,start,end\n" + "".join(f"v{n},{step},0,10\n" for n in range(4) for step in "abc"))
    ran = msg2("infer", path, "-o", tmp_path / "g.json", "--method", method)
    assert "no video orders any two steps" in ran.err
    assert package.load(tmp_path / "g.json").edge_pairs() == set()


@pytest.mark.parametrize("method", ["likelihood", "msg2"])
def test_options_of_reading(msg2, tmp_path: Path, method: str) -> None:
    path = tmp_path / "d.csv"
    rows = "".join(f"v{n},a,0,10\nv{n},b,5,15\nv{n},a,20,30\n" for n in range(6))
    path.write_text("video,step,start,end\n" + rows)
    edges = {}
    for options in ((), ("--overlap", "start"), ("--repeats", "keep")):
        msg2("infer", path, "-o", tmp_path / "g.json", "--method", method, *options)
        edges[options] = package.load(tmp_path / "g.json").edge_pairs()
    expected = {
        options: package.infer(package.read(path, **dict([(options[0][2:], options[1])] if options else [])), method)
        for options in edges
    }
    assert edges == {options: graph.edge_pairs() for options, graph in expected.items()}
    assert edges["--overlap", "start"] == {("a", "b")}
    assert edges[()] == set()


def test_confidence_and_samples(msg2, many: Path, tmp_path: Path) -> None:
    learn = (
        "infer",
        many,
        "--task",
        "Make Coffee",
        "--method",
        "always-before",
        "--set",
        "delta=0.7",
        "--samples",
        "20",
    )
    graphs = []
    for number, more in enumerate([(), ("--jobs", 2), ("--confidence", "0.9"), ("--confidence", "0.9", "--seed", 1)]):
        out, stats = tmp_path / f"{number}.json", tmp_path / f"{number}.csv"
        assert msg2(*learn, "-o", out, "--stats", stats, *more).code == 0
        graphs.append(package.load(out))
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    free, sure = ({(a, b) for b in graph.steps for a in graph.ancestors(b)} for graph in (graphs[0], graphs[2]))
    assert sure < free
    assert all(
        e["probability"] >= 0.9 for entry in graphs[2].evidence.values() for e in entry.get("edges", {}).values()
    )
    assert (tmp_path / "2.csv").read_bytes() != (tmp_path / "3.csv").read_bytes()
    assert {row["kind"] for row in rows_of(tmp_path / "0.csv")} == {"purity", "ancestor", "clause"}
    assert msg2(*learn, "-o", tmp_path / "g.json", "--confidence", "1.5").code == 2


def test_a_text_alone_or_beside_data(msg2, table: Path, tmp_path: Path) -> None:
    text, out = tmp_path / "recipe.md", tmp_path / "graph.json"
    text.write_text("# French toast\n1. Whisk\n2. Dip the bread\n3. Fry\n")
    ran = msg2("infer", "--text", text, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    assert "Fry  needs  'Dip the bread' (from the text)" in ran.out
    assert package.load(out).task == "French toast"
    ran = msg2("infer", table, "--text", text, "-o", out)
    assert ran.code == 0
    assert "'Dip the bread' of the text is taken for 'dip'" in ran.err
    assert "from the text" in ran.out
    assert msg2("infer", "-o", out).code == 2
    assert msg2("infer", "--text", text, "-o", out, "--samples", "3").code == 2
    assert msg2("infer", "--text", text, "-o", text).code == 1
    assert text.read_text().startswith("# French toast")
