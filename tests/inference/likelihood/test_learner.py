"""What is learned from whole sets of videos: overlaps, an event log of a known process, CrossTask, little data."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import msg2
from msg2.assist import CheckReport, check
from msg2.graph import SubtaskGraph, any_of, step
from msg2.inference import infer, infer_all
from msg2.inference.inference import run_inference
from msg2.simulation import RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Absent, Segment, Task, Video
from tests.inference.conftest import tasks, times_before

# -- overlapping segments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [("whisk eggs", "heat pan"), ("heat pan", "whisk eggs"), ("a", "b")])
@pytest.mark.parametrize("nested", [True, False])
def test_steps_that_always_run_at_the_same_time_are_in_no_order(one: str, other: str, nested: bool) -> None:
    """Whatever their names, and whichever starts first."""
    end = 9 if nested else 14
    videos = [
        Video(f"v{n:02d}", [Segment(one, 0, 10), Segment(other, 1, end), Segment("pour", 20, 25)]) for n in range(20)
    ]
    graph = infer(Task("eggs", [one, other, "pour"], videos), "likelihood")
    assert graph.kind(one, other) == graph.kind(other, one) == "together"
    assert graph.edge_pairs() == {(one, "pour"), (other, "pour")}
    assert check(graph, Task("eggs", graph.steps, videos)).mistakes == ()


def test_overlaps_say_nothing_beside_videos_that_do() -> None:
    overlapping = [Video(f"v{n:02d}", [Segment("b", 0, 10), Segment("a", 5, 12)]) for n in range(20)]
    ordered = [Video(f"w{n:02d}", [Segment("a", 0, 1), Segment("b", 5, 12)]) for n in range(10)]
    assert infer(Task("t", "ab", [*overlapping, *ordered]), "likelihood").kind("a", "b") == "needs"


# -- an event log of a known process ------------------------------------------------------------------------------

CASES, NOISE = 1000, 0.04
OPTIONAL = {"ask expert": 0.4, "call customer": 0.3}
ACTIVITIES = ("register claim", "check policy", "assess damage", "ask expert", "approve", "pay", "reject",
              "send by mail", "send by post", "call customer", "archive")  # fmt: skip


def claim(rng: np.random.Generator) -> list[str]:
    """One faultless case: two checks in any order, an expert if need be, a decision, a letter, an end."""
    checks = ["check policy", "assess damage"][:: 1 if rng.random() < 0.5 else -1]
    expert, call = ([name] if rng.random() < rate else [] for name, rate in OPTIONAL.items())
    decision = ["approve", "pay"] if rng.random() < 0.65 else ["reject"]
    letter = "send by mail" if rng.random() < 0.52 else "send by post"
    return ["register claim", *checks, *expert, *decision, letter, *call, "archive"]


def disturb(case: list[str], rng: np.random.Generator) -> list[str]:
    """One event is lost, comes before the one ahead of it, or does not belong there."""
    place = int(rng.integers(1, len(case)))
    match int(rng.integers(3)):
        case 0:
            return case[:place] + case[place + 1 :]
        case 1:
            return [*case[: place - 1], case[place], case[place - 1], *case[place + 1 :]]
    return [*case[:place], ACTIVITIES[int(rng.integers(len(ACTIVITIES)))], *case[place:]]


@pytest.fixture(scope="module", params=["csv", "xes"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, set[str]]:
    """The log as msg2 reads it, and the cases that were disturbed."""
    rng, noisy, rows = np.random.default_rng(15), set(), []
    for number in range(CASES):
        case, id = claim(rng), f"case {number:04d}"
        if rng.random() < NOISE:
            case = disturb(case, rng)
            noisy.add(id)
        rows += [(id, name, f"2024-03-01T{hour:02d}:00:00") for hour, name in enumerate(case)]
    path = tmp_path_factory.mktemp("log") / f"claims.{request.param}"
    path.write_text(csv_log(rows) if request.param == "csv" else xes_log(rows))
    return msg2.read(path), noisy


def csv_log(rows: list[tuple[str, str, str]]) -> str:
    return "\n".join(["case:concept:name,concept:name,time:timestamp", *(",".join(row) for row in rows)]) + "\n"


def xes_log(rows: list[tuple[str, str, str]]) -> str:
    text = ["<log xes.version='1.0'>"]
    for id in sorted({id for id, _, _ in rows}):
        events = [
            f"<event><string key='concept:name' value='{name}'/><date key='time:timestamp' value='{time}'/></event>"
            for other, name, time in rows
            if other == id
        ]
        text.append(f"<trace><string key='concept:name' value='{id}'/>{''.join(events)}</trace>")
    return "\n".join([*text, "</log>"])


@pytest.fixture(scope="module")
def claims(log: tuple[Task, set[str]]) -> tuple[SubtaskGraph, CheckReport, set[str]]:
    task, noisy = log
    graph = msg2.infer(task)
    return graph, check(graph, task), noisy


def test_in_an_event_log_what_is_absent_was_skipped(log: tuple[Task, set[str]]) -> None:
    task, noisy = log
    assert task.absent == "skipped"
    assert len(task) == CASES
    assert 25 <= len(noisy) <= 55
    few = task.with_videos(task.videos[:30])
    assert msg2.infer(few).method["options"]["absent"] == "skipped"
    assert msg2.infer(few, absent="unknown").method["options"]["absent"] == "unknown"


def test_the_kinds_of_a_known_process_are_found(claims: tuple[SubtaskGraph, CheckReport, set[str]]) -> None:
    """Every pair, as the process has it."""
    graph, _, _ = claims
    always = {"register claim", "check policy", "assess damage", "archive"}
    layer = dict(zip(ACTIVITIES, (0, 1, 1, 2, 3, 4, 3, 5, 5, 6, 7), strict=True))
    never = [("approve", "reject"), ("pay", "reject"), ("send by mail", "send by post")]
    for a, b in permutations(ACTIVITIES, 2):
        if (a, b) in never or (b, a) in never:
            kind = "exclusive"
        elif layer[a] >= layer[b]:
            kind = "free"
        else:
            kind = "needs" if a in always or (a, b) == ("approve", "pay") else "after"
        assert graph.kind(a, b) == kind
    assert graph.optional == set(OPTIONAL)
    assert set(graph.exclusive) == set(never)


def test_few_cases_are_accused_and_these_are_the_disturbed_ones(
    claims: tuple[SubtaskGraph, CheckReport, set[str]],
) -> None:
    _, report, noisy = claims
    accused = set(report.accused)
    assert len(accused) <= 0.05 * CASES
    assert len(accused & noisy) >= 0.9 * len(accused)
    assert len(accused & noisy) >= 0.6 * len(noisy)  # some of what was disturbed is still a possible case
    assert report.not_seen == ()


# -- CrossTask ----------------------------------------------------------------------------------------------------


def test_pancakes(data: Path) -> None:
    """84 of 182 videos lack sugar: it is optional, and nothing needs it; but all ingredients come before the pan."""
    task = msg2.read(data / "crosstask", task="Make Pancakes")
    assert sum("add sugar" not in video.sequence() for video in task) == 84
    graph = msg2.infer(task)
    assert graph.method["options"]["absent"] == "unknown"
    assert "add sugar" in graph.optional
    assert not any("add sugar" in needed for needed in graph.necessary.values())
    attached = {name for pair in graph.edge_pairs() for name in pair}
    assert {"add flour", "add sugar", "pour milk", "pour egg"} <= attached
    for name in ("add flour", "add sugar", "pour milk", "pour egg"):
        assert graph.kind(name, "pour mixture into pan") in ("needs", "after")
    assert len(check(graph, task).accused) <= 0.1 * len(task)


# -- the same for any order of steps and videos, and any number of processes --------------------------------------


def known_task(seed: int, videos: int = 30) -> Task:
    world = random_world(RandomWorldOptions(steps=7, depth=3), seed)
    return simulate(world, SimulationOptions(videos=videos), seed).task


def kinds(graph: SubtaskGraph) -> dict[tuple[str, str], str]:
    return {pair: graph.kind(*pair) for pair in permutations(graph.steps, 2)}


@pytest.mark.parametrize("seed", range(3))
def test_other_names_and_another_order_of_videos_only_relabel(seed: int) -> None:
    task = known_task(seed)
    rng = np.random.default_rng(seed)
    names = dict(zip(task.steps, (f"step {n:02d}" for n in rng.permutation(len(task.steps))), strict=True))
    ids = dict(zip([v.id for v in task], (f"w{n:03d}" for n in rng.permutation(len(task))), strict=True))
    videos = [
        Video(ids[v.id], [Segment(names[s.step], s.start, s.end) for s in v.segments]) for v in reversed(task.videos)
    ]
    graph, other = infer(task, "likelihood"), infer(Task(task.name, names.values(), videos), "likelihood")
    assert kinds(other) == {(names[a], names[b]): kind for (a, b), kind in kinds(graph).items()}
    assert other.optional == {names[name] for name in graph.optional}
    assert {*map(frozenset, other.exclusive)} == {frozenset(names[n] for n in group) for group in graph.exclusive}


def test_any_number_of_processes_gives_the_same_graph() -> None:
    task = known_task(5)
    one, two = (infer(task, "likelihood", samples=6, jobs=jobs) for jobs in (1, 2))
    assert one.dumps() == two.dumps()
    tasks = [Task(f"task {n}", task.steps, task.videos[n:]) for n in range(2)]
    assert [graph.dumps() for graph in infer_all(tasks, jobs=2)] == [
        graph.dumps() for graph in infer_all(tasks, jobs=1)
    ]


# -- little data --------------------------------------------------------------------------------------------------


def sequences_task(*sequences: str, steps: str) -> Task:
    return Task("t", steps, [Video(f"v{n}", map(Segment, order)) for n, order in enumerate(sequences)])


@pytest.mark.parametrize("absent", ["unknown", "skipped"])
@pytest.mark.parametrize(
    ("sequences", "steps", "optional"),
    [
        ((), "", ""),
        ((), "ab", "ab"),
        (("",), "ab", "ab"),
        (("a",), "a", ""),
        (("ab",), "ab", ""),
        (("ab",) * 9, "abz", "z"),
        (("ab", "ba") * 9, "ab", ""),
    ],
)
def test_little_data_gives_a_graph(sequences: tuple[str, ...], steps: str, optional: str, absent: Absent) -> None:
    """Without a warning of numpy: the tests turn them into errors."""
    task = sequences_task(*sequences, steps=steps)
    result = run_inference(task, "likelihood", absent=absent)
    assert set(result.graph.steps) == set(steps)
    assert result.graph.optional == set(optional)
    assert result.graph.exclusive == ()
    assert msg2.SubtaskGraph.from_json(result.graph.to_json()) == result.graph
    report = check(result.graph, task)
    assert report.mistakes == report.not_seen == ()


def test_a_step_that_no_video_shows_is_attached_to_nothing() -> None:
    graph = infer(sequences_task(*["ab"] * 9, steps="abz"), "likelihood")
    assert {pair for pair in graph.edge_pairs() if "z" in pair} == set()
    assert graph.kind("a", "b") == "needs"


# -- the kinds, by hand -------------------------------------------------------------------------------------------


def test_an_or_whose_branches_are_both_seen_is_not_exclusive() -> None:
    both = infer(sequences_task(*["acd", "bcd", "abcd", "bacd"] * 8, steps="abcd"), "likelihood", absent="skipped")
    assert both.exclusive == ()
    assert both.precondition("c") == any_of([step("a"), step("b")])
    one = infer(sequences_task(*["acd", "bcd"] * 16, steps="abcd"), "likelihood", absent="skipped")
    assert one.exclusive == (("a", "b"),)
    assert one.precondition("c") == any_of([step("a"), step("b")])
    assert one.precondition("d") == step("c")  # what c waits for is the affair of c
    assert one.optional == set()


def test_after_if_done_is_told_from_needs() -> None:
    graph = infer(sequences_task(*["abc", "ac", "abc", "ac"] * 8, steps="abc"), "likelihood", absent="skipped")
    assert graph.precondition("c") == step("a")
    assert graph.order == (("b", "c"),)
    assert graph.kind("a", "b") == "needs"
    assert graph.optional == {"b"}


def test_an_optional_step_that_another_one_needs() -> None:
    """d is done only where b is, which is done in half of the videos."""
    graph = infer(sequences_task(*["abdc", "ac", "abc", "ac", "abdc", "ac"] * 8, steps="abcd"), "likelihood",
                  absent="skipped")  # fmt: skip
    assert graph.kind("b", "d") == "needs"
    assert graph.kind("b", "c") == graph.kind("d", "c") == "after"
    assert graph.optional == {"b", "d"}


def test_repetitions_are_counted() -> None:
    task = sequences_task(*["abab"] * 3, *["ab"] * 9, *["aba"] * 2, *["b"] * 2, steps="ab")
    graph = infer(task, "likelihood", absent="skipped")
    assert graph.repeats == {"a": pytest.approx(5 / 14), "b": pytest.approx(3 / 16)}
    assert infer(task.with_first_labels(), "likelihood", absent="skipped").repeats == {}


def test_what_else_was_estimated_is_in_the_graph() -> None:
    task = sequences_task(*["abcd"] * 30, *["abd", "acd", "bcd", "abc"] * 5, steps="abcd")
    model = infer(task, "likelihood").method["model"]
    assert model["absent_rate"] == pytest.approx(20 / 200, abs=0.02)  # 20 of 50 · 4 labels are missing
    assert 0 < model["extra_rate"] < 0.02
    assert sum(model["disorder"]["shares"]) == pytest.approx(1, abs=1e-5)
    assert len(model["disorder"]["levels"]) == len(model["disorder"]["shares"])


# -- evidence -----------------------------------------------------------------------------------------------------


@given(tasks(repeats=True))
def test_the_evidence_of_each_kind_is_counted_in_videos(task: Task) -> None:
    graph = infer(task, "likelihood")
    shown = {video.id: set(video.sequence()) for video in task}
    firsts = task.with_first_labels()
    for name in graph.steps:
        evidence = graph.step_evidence(name)
        with_it = [video for video in task if name in shown[video.id]]
        assert evidence.videos == len(with_it)
        assert set(evidence.edges) == graph.parents(name) | graph.order_predecessors(name)
        for parent, support in evidence.edges.items():
            assert support.lacking == sum(parent not in shown[video.id] for video in with_it)
            assert support.before == times_before(firsts, parent, name)
            assert support.together == support.before + times_before(firsts, name, parent)
        assert set(evidence.exclusive) == graph.partners(name)
        for partner, both in evidence.exclusive.items():
            assert both == sum(partner in shown[video.id] for video in with_it)
        labelled = sum(map(bool, shown.values()))
        left_out = evidence.optional
        assert (left_out is None) == (name not in graph.optional)
        if left_out is not None:
            assert (left_out.without, left_out.videos) == (labelled - len(with_it), labelled)


def test_every_pair_has_a_gain_and_it_is_what_the_videos_lose_without_it() -> None:
    strong, weak = (infer(sequences_task(*["ab"] * n, steps="ab"), "likelihood") for n in (40, 8))
    gains = [graph.support("a", "b").gain for graph in (strong, weak)]  # type: ignore[union-attr]
    assert gains[0] is not None
    assert gains[1] is not None
    assert 0 < gains[1] < gains[0]
    # Without the order, either step comes first with the probability one half; with it, a does but for some disorder.
    assert gains[0] == pytest.approx(40 * np.log(2), abs=3)


def test_one_of_two_follows_only_where_hardly_any_run_lacks_both() -> None:
    def responses(lacking: int) -> set[tuple[str, str]]:
        followed = [["s", "a", "b", "e"], ["s", "a", "c", "e"]] * ((200 - lacking) // 2)
        # b and c are done without a, too: else they would only say that they need it.
        runs = [*followed, *[["s", "a", "e"]] * lacking, *[["s", "e"]] * 100, *[["s", "b", "e"], ["s", "c", "e"]] * 20]
        return {(before, str(formula)) for before, formula in infer(runs, absent="skipped").responses}

    assert ("a", "b | c") in responses(4)
    assert not {formula for before, formula in responses(16) if before == "a"} & {"b | c", "b", "c"}


def test_every_round_of_the_search_is_told() -> None:
    told: list[tuple[int, int | None, str]] = []
    runs = [["a", "b", "c", "d"], ["a", "c", "b", "d"]] * 10
    watched = infer(runs, progress=lambda done, total, message: told.append((done, total, message)))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {total for _, total, _ in told} == {7}
    assert (told[0][0], told[-1][0]) == (0, 6)
    assert all(message.startswith("search, round ") for _, _, message in told)
    assert watched == infer(runs)
