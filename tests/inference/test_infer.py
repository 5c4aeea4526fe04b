"""`infer` as users meet it: the same bytes whatever the order of the input, evidence that adds up, and odd tasks."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.graph.evidence import WEAK_BELOW
from msg2.inference import METHODS, OrderStatements, infer
from msg2.inference.inference import run_inference
from msg2.inference.msg2 import Msg2Options
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from tests.inference.conftest import dataset, tasks, times_before

WAYS: list[tuple[str, dict[str, Any]]] = [
    ("msg2", {}),
    ("msg2", {"delta": 0.55}),
    ("msg2", {"delta": 0.8, "max_literals": None, "recency_rule": "satisfied"}),
    ("msgi", {}),
    ("msgi+", {}),
    ("always-before", {}),
    ("always-before", {"delta": 0.8}),
]
"""Methods whose graphs have preconditions only."""
LIKELIHOOD: list[tuple[str, dict[str, Any]]] = [("likelihood", {}), ("likelihood", {"absent": "skipped"})]
"""The default method, whose graphs tell kinds as well."""
EVERY_WAY = st.sampled_from([*WAYS, *LIKELIHOOD])
RANDOMNESS = st.randoms(use_true_random=False)
NOISY = simulate(household_world("Make Coffee"), SimulationOptions(videos=40), seed=7).task


def untimed(*sequences: str) -> Task:
    steps = sorted(set("".join(sequences)))
    return Task("t", steps, (Video(f"v{number}", map(Segment, seen)) for number, seen in enumerate(sequences)))


def shuffled(task: Task, randomness: random.Random) -> Task:
    """The same task with its videos, steps and (where they have times) rows given in another order."""

    def mixed(items: Any) -> list[Any]:
        items = list(items)
        return randomness.sample(items, len(items))

    videos = [Video(v.id, mixed(v.segments) if v.is_timed else v.segments) for v in task]
    return Task(task.name, mixed(task.steps), mixed(videos))


# -- the same bytes -----------------------------------------------------------------------------------------------


@given(tasks(repeats=True), EVERY_WAY, RANDOMNESS)
def test_the_order_of_videos_rows_and_steps_means_nothing(
    task: Task, way: tuple[str, dict[str, Any]], randomness: random.Random
) -> None:
    method, options = way
    assert infer(shuffled(task, randomness), method, **options).dumps() == infer(task, method, **options).dumps()


@pytest.mark.parametrize(("method", "options"), [*WAYS, *LIKELIHOOD])
def test_order_means_nothing_in_a_noisy_world(method: str, options: dict[str, Any]) -> None:
    expected = infer(NOISY, method, **options).dumps()
    assert infer(NOISY, method, **options).dumps() == expected
    for seed in range(3):
        assert infer(shuffled(NOISY, random.Random(seed)), method, **options).dumps() == expected


@given(tasks(repeats=True), EVERY_WAY.filter(lambda way: way != ("msg2", {})), RANDOMNESS)
def test_names_of_videos_mean_nothing(task: Task, way: tuple[str, dict[str, Any]], randomness: random.Random) -> None:
    method, options = way
    names = dict(zip((v.id for v in task), randomness.sample(range(1000), len(task)), strict=True))
    renamed = task.with_videos(Video(f"clip {names[v.id]}", v.segments) for v in task)
    expected = infer(task, method, **options)
    found = infer(renamed, method, **options)
    assert found.preconditions == expected.preconditions
    assert without_videos(found) == without_videos(expected)


def test_names_of_videos_in_the_same_order_choose_the_same_delta() -> None:
    renamed = NOISY.with_videos(Video(f"clip {v.id}", v.segments) for v in NOISY)
    assert without_videos(infer(renamed, "msg2")) == without_videos(infer(NOISY, "msg2"))


def without_videos(graph: SubtaskGraph) -> Any:
    """The graph file with the numbers of named videos instead of their names."""
    written = json.loads(graph.dumps())
    del written["method"]["videos"]
    for entry in written["evidence"].values():
        for named in ("examples", "violations"):
            entry[named] = len(entry.get(named, ()))
    return written


@given(tasks(repeats=True), EVERY_WAY, st.data())
def test_other_step_names_in_the_same_order_only_relabel(
    task: Task, way: tuple[str, dict[str, Any]], more: st.DataObject
) -> None:
    method, options = way
    alphabet = st.sampled_from("ab !&|~\t¬é")
    name = st.text(alphabet, min_size=1, max_size=4).filter(str.strip)
    names = st.lists(name, min_size=6, max_size=6, unique=True).map(sorted)
    new = dict(zip(task.steps, more.draw(names), strict=False))
    renamed = Task(
        task.name,
        (new[name] for name in task.steps),
        (Video(v.id, (Segment(new[s.step], s.start, s.end) for s in v.segments)) for v in task),
    )

    def relabelled(value: Any) -> Any:
        if isinstance(value, dict):
            return {new.get(key, key): relabelled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [relabelled(inner) for inner in value]
        return new.get(value, value) if isinstance(value, str) else value

    expected = relabelled(json.loads(infer(task, method, **options).dumps()))
    found = json.loads(infer(renamed, method, **options).dumps())
    assert json.dumps(found) == json.dumps(expected)  # as text: the order of keys counts


def test_the_hash_seed_means_nothing() -> None:
    program = """
from msg2.inference import METHODS, OrderStatements, infer
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
task = simulate(household_world("Make Coffee"), SimulationOptions(videos=20), seed=7).task
for method in METHODS:
    print(infer(task, method).dumps())
print(infer(task, "msg2", max_literals=None).dumps())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(("method", "options"), [*WAYS, *LIKELIHOOD])
def test_the_file_has_no_path_date_or_machine_in_it(method: str, options: dict[str, Any]) -> None:
    written = infer(NOISY, method, **options).dumps()
    assert set(json.loads(written)["method"]) - {"delta_chosen", "model"} == {"name", "options", "videos"}
    assert re.findall(r"\S*[/\\]\S*", written) == ['"msg2.graph/2",']
    assert not re.search(r"\b20\d\d-\d\d|\d\d:\d\d", written)
    assert os.uname().nodename not in written


def test_the_seed_reaches_the_folds() -> None:
    fits = {json.dumps(dict(infer(NOISY, "msg2", seed=seed).method["delta_chosen"]["fits"])) for seed in range(3)}
    assert len(fits) == 3


# -- evidence -----------------------------------------------------------------------------------------------------


@given(tasks(repeats=True, most_videos=8), EVERY_WAY)
def test_evidence_adds_up(task: Task, way: tuple[str, dict[str, Any]]) -> None:
    graph = infer(task, way[0], **way[1])
    assert list(graph.evidence) == list(graph.steps)
    for name in graph.steps:
        formula, entry, rows = graph.precondition(name), graph.evidence[name], dataset(task, name)
        violating, overlapping = {video for video, gaps in rows if not formula.evaluate(set(gaps))}, set()
        if "not" not in formula.kinds and all(segment.is_timed for video in task for segment in video.segments):
            overlapping = violating - {
                video.id
                for video in task
                for segment in video.segments
                if segment.step == name
                if not formula.evaluate({other.step for other in video.segments if not segment.before(other)} - {name})
            }
        assert entry["videos"] == len({video for video, _ in rows})
        assert entry["holds"] == entry["videos"] - len(violating)
        assert "not" in formula.kinds or entry.get("violations", []) == sorted(violating - overlapping)
        earlier = formula.steps | graph.order_predecessors(name)
        assert ("edges" in entry) == bool(earlier)
        for parent, edge in entry.get("edges", {}).items():
            firsts = task.with_first_labels()
            before, after = times_before(firsts, parent, name), times_before(firsts, name, parent)
            assert edge["before"] == before
            assert edge["together"] == before + after
            assert edge.get("weak", False) == (before + after < WEAK_BELOW)
            lacking = edge.get("lacking", sum(parent not in v.sequence() for v in task if name in v.sequence()))
            assert lacking == sum(parent not in v.sequence() for v in task if name in v.sequence())
        assert set(entry.get("edges", {})) == earlier
        partners = {one: sum({one, name} <= {*v.sequence()} for v in task) for one in graph.partners(name)}
        assert entry.get("exclusive", {}) == partners


def test_score_and_runner_up_are_in_the_evidence() -> None:
    entry = infer(untimed("abc", "abc", "abc", "bc"), "msg2", delta=0.9).evidence["c"]
    assert entry["score"] == 2
    assert entry["runner_up"] == {"precondition": {"all": ["a", "b"]}, "score": 1.9}


def test_little_support_is_flagged() -> None:
    few, many = (infer(untimed(*["ab"] * count), "msg2", delta=0.9).evidence["b"]["edges"]["a"] for count in (4, 5))
    assert few == {"before": 4, "together": 4, "weak": True}
    assert many == {"before": 5, "together": 5}


def test_statistics_are_what_delta_and_alpha_are_chosen_by() -> None:
    task = untimed("abc", "abc", "acb")
    found = run_inference(task, "msg2", delta=0.6)
    rows = [(s.kind, s.step, s.candidate, round(s.value, 3), s.videos, s.chosen) for s in found.statistics()]
    assert [row for row in rows if row[0] == "purity" and row[1] == "c"] == [
        ("purity", "c", "a", 1.0, 3, found.graph.precondition("c").steps >= {"a"}),
        ("purity", "c", "b", 0.667, 3, True),
    ]
    scores = [row for row in rows if row[0] == "score" and row[1] == "c"]
    assert [row[-1] for row in scores] == [True] + [False] * (len(scores) - 1)
    assert scores[0][2] == str(found.graph.precondition("c"))


# -- odd tasks ----------------------------------------------------------------------------------------------------

ODD = {
    "no steps": (Task("t", "", []), ["0 video(s)"]),
    "no videos": (Task("t", "ab", []), ["0 video(s)", "no video shows 'a', 'b'", "nothing to learn from"]),
    "videos without labels": (Task("t", "ab", [Video("1", []), Video("2", [])]), ["no video shows 'a', 'b'"]),
    "one step": (Task("t", "a", [Video("1", [Segment("a")]), Video("2", [Segment("a", 1, 2)])]), []),
    "one step, one video": (Task("t", "a", [Video("1", [Segment("a")])]), ["1 video(s)"]),
    "one video": (untimed("abc"), ["1 video(s)"]),
    "a step never seen": (Task("t", "abcdef", untimed("ab", "ab").videos), ["no video shows 'c', 'd', 'e' …"]),
    "no order at all": (
        Task("t", "ab", (Video(v, [Segment("a", 0, 5), Segment("b", 1, 6)]) for v in "12")),
        ["no video orders any two steps"],
    ),
    "steps that never meet": (untimed("a", "b"), ["no video orders any two steps"]),
    "an orderly task": (untimed(*["ab"] * 5), []),
}


@pytest.mark.parametrize(("method", "options"), [*WAYS, *LIKELIHOOD])
@pytest.mark.parametrize("kind", ODD)
def test_odd_tasks_give_a_graph_and_a_warning(
    kind: str, method: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    task, expected = ODD[kind]
    graph = infer(task, method, **options)
    assert sorted(graph.steps) == sorted(task.steps)
    assert SubtaskGraph.from_json(json.loads(graph.dumps())) == graph
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("msg2")]
    assert all(record.levelname == "WARNING" for record in caplog.records)
    if options.get("absent") == "skipped":  # as in logs, which have runs
        expected = [part.replace("video", "run") for part in expected]
    for part in expected:
        assert any(part in warning for warning in warnings), (part, warnings)
    if not expected:
        assert warnings == []
    if kind not in ("one video", "a step never seen", "an orderly task"):
        assert graph.preconditions == {}


def test_one_video_gives_its_own_order() -> None:
    assert infer(untimed("abc"), "msg2").edge_pairs() >= {("a", "b"), ("b", "c")}
    assert infer(untimed("abc"), "always-before").edge_pairs() == {("a", "b"), ("b", "c")}
    assert infer(untimed("abc"), "msgi+").edge_pairs() == {("a", "b"), ("b", "c")}
    assert infer(untimed("abc"), "msgi").edge_pairs() == frozenset()


def test_circles_are_said(caplog: pytest.LogCaptureFixture) -> None:
    infer(untimed("ab", "bc", "ca", "ab"), "msg2", delta=0.9)
    assert "run in a circle; pairs ordered in at most 1 videos were ignored" in caplog.text


def test_the_chosen_delta_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "msg2"):
        graph = infer(NOISY, "msg2")
    assert f"delta {graph.method['options']['delta']:g} was chosen from the data" in caplog.text


# -- options ------------------------------------------------------------------------------------------------------


def test_unknown_methods_and_options_are_refused() -> None:
    task = untimed("ab")
    with pytest.raises(InputError, match="no method 'magic'"):
        infer(task, "magic")
    with pytest.raises(InputError, match="'msgi' has no option 'delta'"):
        infer(task, "msgi", delta=0.5)
    with pytest.raises(InputError, match="'always-before' has no option 'alpha'"):
        infer(task, "always-before", alpha=0.5)
    with pytest.raises(InputError, match=r"'likelihood' has no option 'delta'\n.*msg2 and always-before have it"):
        infer(task, delta=0.5)
    for options in ({"delta": 1.5}, {"delta": -1}, {"alpha": -0.1}, {"recency": 0}, {"max_literals": 0}):
        with pytest.raises(InputError, match="it must be"):
            infer(task, "msg2", **options)


def test_the_default_method() -> None:
    assert infer(NOISY).dumps() == infer(NOISY, "likelihood").dumps()


def test_the_methods_of_the_paper_and_the_baselines() -> None:
    assert {"msg2", "msgi", "msgi+", "always-before"} <= set(METHODS)
    defaults = Msg2Options()
    assert (defaults.delta, defaults.alpha, defaults.recency, defaults.max_literals) == ("auto", 0.2, 0.7, 2)


def test_support_counts_videos_even_where_repeats_are_kept() -> None:
    task = Task("t", "ab", [Video(v, [Segment(step) for step in "abbbb"]) for v in "123"])
    assert infer(task, "msg2", delta=0.9).evidence["b"]["edges"] == {"a": {"before": 3, "together": 3, "weak": True}}


@pytest.mark.parametrize("method", METHODS)
def test_steps_that_start_together_are_not_ordered_by_their_names(method: str) -> None:
    together = [Segment("apple", 0, 10), Segment("zebra", 0, 10)]
    task = Task("t", ["apple", "zebra"], [Video(v, together) for v in "12345678"]).order_by_start()
    assert infer(task, method).edge_pairs() == frozenset()


def test_weak_edges_and_empty_graphs_are_told(caplog: pytest.LogCaptureFixture) -> None:
    infer(untimed("ab", "ab"), "msg2", delta=0.9)
    infer(untimed(*["ab"] * 10, *["ba"] * 10), "msg2", delta=0.9)
    assert "1 of 1 edges are weak: fewer than 5 videos tell" in caplog.text
    assert "no precondition was found" in caplog.text
    caplog.clear()
    infer(untimed("ab", "ab", "ab"))
    infer(untimed(*["ab"] * 10, *["ba"] * 10))
    assert "1 of 1 edges are weak: fewer than 5 videos tell" in caplog.text
    assert "no order was found" in caplog.text


@pytest.mark.parametrize("options", [{"recency_rule": "newest"}, {"alpha": "much"}, {"delta": "x"}])
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"recency_rule is|alpha is|delta is"):
        infer(untimed("ab", "ab"), "msg2", **options)


def test_edges_that_a_source_states_say_so_and_other_methods_take_no_statements() -> None:
    runs = [["boil", "grind", "pour"], ["grind", "boil", "pour"]]
    pairs = [("boil", "pour"), ("grind", "pour")]
    said = OrderStatements("recipe", frozenset(runs[0]), frozenset(pairs))
    graph = infer(runs * 3, statements=[said])
    assert {(edge.before, edge.after): edge.support.said_by for edge in graph.edges()} == dict.fromkeys(
        pairs, ("recipe",)
    )
    assert "from the recipe" in graph.explain("pour")
    assert graph.method["model"]["reliability"].keys() == {"recipe"}
    with pytest.raises(InputError, match="'msgi' takes no statements"):
        infer(runs, "msgi", statements=[said])
