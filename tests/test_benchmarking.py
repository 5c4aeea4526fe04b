"""Methods side by side: what is measured, its mean, spread and intervals, how it is written, and that it goes on."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
import pytest

import msg2
from msg2 import benchmarking, metrics
from msg2.assist.next_step_evaluation import train_test_split
from msg2.benchmarking import BenchmarkResult, ResultTable, benchmark, learn, read_method
from msg2.inference import infer
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from tests.experiments.progress_recorder import ProgressRecorder

SIMULATIONS = [simulate(household_world(name), SimulationOptions(videos=12), 1) for name in ("Make Coffee", "Tie Tie")]
TASKS = [each.task.with_first_labels() for each in SIMULATIONS]
TRUTHS = {each.task.name: each.graph for each in SIMULATIONS}
BASELINE = "always-before:delta=0.8"


def test_graphs_of_all_videos_are_compared_with_the_truth() -> None:
    result = benchmark(TASKS, TRUTHS, ["msgi", BASELINE], against="msgi")
    expected = [
        metrics.score_graph(infer(task, "always-before", delta=0.8), TRUTHS[task.name], task).to_json()
        for task in TASKS
    ]
    assert [result.scores[BASELINE][task.name, 0] for task in TASKS] == [
        {**scores, "next_step": None} for scores in expected
    ]
    table = result.table()
    assert list(table.columns[::2]) == ["method", "± tasks", "± tasks", "± tasks", "± tasks"]
    row = dict(zip(table.columns, table.rows[1], strict=True))
    f1 = [100 * float(scores["f1"] or 0) for scores in expected]
    assert row["edge F1"] == pytest.approx(fmean(f1))
    assert table.rows[1][-1] == pytest.approx(pstdev(f1))
    assert table.rows[0][5:7] == [None, None], "the null graphs of msgi have no compatibility"
    assert [row[0] for row in result.task_table("f1").rows] == [task.name for task in TASKS]
    assert [row[2] for row in result.task_table("f1").rows] == pytest.approx(f1)


def test_the_next_steps_of_held_out_videos_are_predicted() -> None:
    result = benchmark(TASKS, TRUTHS, {"ours": "likelihood", "counts": "bigram"}, seeds=2)
    training, test = train_test_split(TASKS[0], seed=1)
    graph = infer(training, "likelihood")
    found = result.scores["ours"][TASKS[0].name, 1]
    assert found["f1"] == metrics.edge_scores(graph, TRUTHS[TASKS[0].name], ends=True).f1
    hits = total = 0.0
    for video in test:
        sequence = [segment.step for segment in video.segments]
        for place, came in enumerate(sequence):
            ranks = msg2.assist.rankers.recency(graph)(sequence[:place])
            best = [name for name, weight in ranks.items() if weight >= max(ranks.values()) - 1e-9]
            hits, total = hits + (came in best) / len(best), total + 1
    assert found["next_step"] == pytest.approx(hits / total)
    counts = result.scores["counts"][TASKS[0].name, 1]
    assert set(counts) == {"next_step"}, "a ranker has no graph of its own"
    assert counts["next_step"] == pytest.approx(
        msg2.evaluate_next_step(TASKS[0], "bigram", splits=2).accuracy * 2  # type: ignore[operator]
        - result.scores["counts"][TASKS[0].name, 0]["next_step"]
    )
    assert benchmark(TASKS[0], methods=["bigram"]).table().rows[0][1] == pytest.approx(
        100 * (msg2.evaluate_next_step(TASKS[0], "bigram").accuracy or 0)
    )


def invented(gain: float, tasks: int, seeds: int = 1) -> BenchmarkResult:
    """Two methods whose scores vary much from task to task, and differ by about the same everywhere."""
    draw = np.random.default_rng(7)
    levels, noise = draw.uniform(0.2, 0.8, tasks), draw.normal(0, 0.01, (tasks, seeds))
    places = [(f"t{task}", seed) for task in range(tasks) for seed in range(seeds)]
    low = {(name, seed): {"f1": float(levels[int(name[1:])])} for name, seed in places}
    high = {
        (name, seed): {"f1": float(levels[int(name[1:])] + gain + noise[int(name[1:]), seed])} for name, seed in places
    }
    return BenchmarkResult({"low": low, "high": high}, "low")


def test_the_paired_interval_is_that_of_normal_theory_where_that_holds() -> None:
    result = invented(0.03, tasks=200)
    name, gain, low, high = result.differences().rows[0]
    of_low, of_high = ([float(cell["f1"] or 0) for cell in result.scores[row].values()] for row in ("low", "high"))
    units = [100 * (ours - theirs) for ours, theirs in zip(of_high, of_low, strict=True)]
    error = np.std(units, ddof=1) / np.sqrt(len(units))
    assert (name, gain) == ("high", pytest.approx(fmean(units)))
    assert low == pytest.approx(fmean(units) - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(fmean(units) + 1.96 * error, abs=0.2 * error)
    assert "of the tasks" in result.differences().notes[0]


def test_seeds_of_one_task_are_resampled_and_spread_is_theirs() -> None:
    result = invented(0.03, tasks=1, seeds=30)
    assert "of the seeds" in result.differences().notes[0]
    assert result.table().columns == ["method", "edge F1", "± seeds"]
    values = [100 * float(cell["f1"] or 0) for cell in result.scores["high"].values()]
    assert result.table().rows[1][2] == pytest.approx(pstdev(values))
    with pytest.raises(msg2.InputError, match="there is no row 'other'"):
        BenchmarkResult(result.scores, "other").differences()


def test_an_interrupted_benchmark_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, methods, learnt = tmp_path / "table.cells.json", ["msgi", "always-before", BASELINE], []
    stops = {"once"}

    def interrupted(data: object, method: str, **options: object) -> msg2.SubtaskGraph:
        learnt.append((method, options))
        if stops and len(learnt) == 3:
            stops.clear()
            raise KeyboardInterrupt
        return infer(data, method, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(benchmarking, "infer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        benchmark(TASKS, TRUTHS, methods, cells=file)
    assert len(json.loads(file.read_text())) == 2
    news = ProgressRecorder()
    found = benchmark(TASKS, TRUTHS, methods, cells=file, progress=news)
    assert len(learnt) == 3 + 4
    assert found.scores == benchmark(TASKS, TRUTHS, methods).scores
    learnt.clear()
    assert benchmark(TASKS, TRUTHS, methods, cells=file).to_json() == found.to_json()
    assert not learnt
    benchmark([TASKS[0].select(range(6)), TASKS[1]], TRUTHS, methods, cells=file)
    assert len(learnt) == 3, "other videos are measured again"


def test_processes_give_the_same() -> None:
    methods = ["msgi", BASELINE]
    assert benchmark(TASKS, TRUTHS, methods, jobs=2).scores == benchmark(TASKS, TRUTHS, methods).scores


def test_tables_are_written_by_suffix(tmp_path: Path) -> None:
    result = benchmark(TASKS, TRUTHS, ["msgi", "msg2:delta=0.8"], against="msgi")
    paths = [tmp_path / f"table{suffix}" for suffix in (".md", ".tex", ".csv")]
    result.save(*paths)
    markdown, latex, table = (path.read_text() for path in paths)
    assert [line for line in markdown.splitlines() if line.startswith("### ")] == [
        "### All tasks, percent", "### Better than msgi by, points", "### Accuracy per task, percent",
        "### SPOC per task, percent", "### Compatibility per task, percent", "### Edge F1 per task, percent",
    ]  # fmt: skip
    assert latex.count(r"\begin{tabular}") == latex.count(r"\bottomrule") == 6
    rows = list(csv.DictReader(table.splitlines()))
    assert [(row["method"], row["task"]) for row in rows[:2]] == [("msgi", task.name) for task in TASKS]
    assert [float(row["f1"]) for row in rows[2:]] == [cell["f1"] for cell in result.scores["msg2:delta=0.8"].values()]
    with pytest.raises(msg2.InputError, match=r"is not written in this format\n  use one of \.md \.tex"):
        result.save(tmp_path / "table.docx")


def test_the_plot_is_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = invented(0.1, tasks=3)
    result.save(tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "c.png")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_latex_has_no_special_characters_left() -> None:
    table = ResultTable("50 % of A_1", ["method", "±"], [["a & b, δ = 0.8 {x} ~ ^ \\ # $", 1.0], ["c", None]], ["N."])
    lines = table.to_latex().splitlines()
    assert lines[1] == r"\caption{50 \% of A\_1 N.}"
    assert lines[4] == r"method & $\pm$ \\"
    assert lines[6] == (
        r"a \& b, $\delta$ = 0.8 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \# \$ & 1.00 \\"
    )
    assert lines[7] == r"c & N/A \\"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"methods": ["oracle"]}, "there is no method 'oracle'"),
        ({"methods": ["msg2:speed=2"]}, "'msg2' has no option 'speed'"),
        ({"methods": ["msg2:delta"]}, "'delta' is not of the form NAME=VALUE"),
        ({"methods": ["msg2:delta=2"]}, "delta"),
        ({"methods": {}}, "no method to compare"),
        ({"methods": ["msgi"], "against": "msg2"}, "there is no row 'msg2'"),
        ({"methods": ["msgi", "bigram"]}, "the ranker 'bigram' predicts held-out videos"),
        ({"seeds": 0}, "seeds is 0"),
        ({"methods": "oracle"}, "there is no method 'oracle'"),
        ({"ranker": "oracle"}, "there is no ranker 'oracle'"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(msg2.InputError, match=words):
        benchmark(TASKS, **{"truth": TRUTHS, **given})  # type: ignore[arg-type]


def test_methods_are_read_with_their_options() -> None:
    assert read_method("msg2:delta=0.8:max_literals=none") == ("msg2", {"delta": 0.8, "max_literals": None})
    assert read_method("likelihood:levels=0.02,0.2") == ("likelihood", {"levels": (0.02, 0.2)})
    assert read_method("bigram") == ("bigram", {})
    assert learn([["a", "b"]] * 5, "msg2:delta=0.9").method["options"]["delta"] == 0.9


def test_a_task_without_truth_is_named_and_has_no_scores(caplog: pytest.LogCaptureFixture) -> None:
    name = TASKS[0].name
    with caplog.at_level(logging.WARNING, "msg2"):
        result = benchmark(TASKS, {name: TRUTHS[name]}, ["msgi"])
    assert caplog.messages == [f"{TASKS[1].name}: it has no true graph to be compared with"]
    assert result.scores["msgi"][TASKS[1].name, 0] == {"next_step": None}
    assert result.table().rows[0][1] == pytest.approx(100 * float(result.scores["msgi"][name, 0]["accuracy"] or 0))
