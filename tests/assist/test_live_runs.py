"""What holds of every run: live equals afterwards, stated rules warn, ids, late events, corrections, threads."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msg2
from msg2.assist import Assistant, Mistake, check, run_log
from msg2.assist.belief import Belief
from msg2.assist.events import answer_event
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.graph.graph_file import StatedRule
from msg2.task import Segment, Video
from tests.assist.deviation_examples import NAMES, TEA, graphs_of_all_kinds, untimed

USUAL = [list(order) for order in ["abcde"] * 12 + ["abdce"] * 6 + ["acbde"] * 2 + ["abde"] * 3]
LEARNED = msg2.infer(USUAL, absent="skipped")
TRAINED = Assistant(LEARNED, USUAL)
ORDERS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7)
DISTINCT = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
SHARES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.05, 0.1, 0.24]), max_size=4)


def told(mistakes: Iterable[Mistake]) -> list[tuple[object, ...]]:
    """Kind, step, what was not met, and the probability, in one order."""
    return sorted(
        (one.kind, one.step, sorted(str(clause) for clause in one.unmet), round(one.probability, 9)) for one in mistakes
    )


def state(assistant: Assistant) -> object:
    """What an assistant makes of a run, whichever way it came to know of it."""
    alarms = [(alarm.step, alarm.kind, round(alarm.probability, 9), alarm.at) for alarm in assistant.alarms()]
    return (
        assistant.progress(),
        {name: pytest.approx(share) for name, share in assistant.done().items()},
        [(following.step, pytest.approx(following.probability)) for following in assistant.next()],
        told(assistant.mistakes()),
        told(assistant.mistakes(ended=False)),
        alarms,
    )


def tell(assistant: Assistant, names: Sequence[str], *, timed: bool = False) -> Assistant:
    for place, name in enumerate(names):
        assistant.did(name, at=10.0 * place if timed else None)
    return assistant


# -- one probability --------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(ORDERS)
def test_at_the_end_of_a_run_the_assistant_has_found_what_check_finds(order: list[str]) -> None:
    assistant = tell(TRAINED.new_run(), order)
    assert told(assistant.mistakes()) == told(check(LEARNED, {"new": order}).mistakes)


@settings(max_examples=25)
@given(graphs_of_all_kinds(), DISTINCT)
def test_at_the_end_of_a_run_of_any_graph(graph: SubtaskGraph, order: list[str]) -> None:
    assistant = tell(Assistant(graph), order)
    assert told(assistant.mistakes()) == told(check(graph, untimed(order), "skipped").mistakes)


@settings(max_examples=25)
@given(graphs_of_all_kinds(ors=False), DISTINCT, st.randoms(use_true_random=False))
def test_steps_that_begin_and_end_are_in_the_order_that_check_sees(
    graph: SubtaskGraph, names: list[str], rng: random.Random
) -> None:
    graph = replace(graph, exclusive=())
    moments = rng.sample(range(100), 2 * len(names))
    spans = [(name, *sorted(moments[2 * place : 2 * place + 2])) for place, name in enumerate(names)]
    assistant = Assistant(graph)
    for at, kind, name in sorted([(a, "began", n) for n, a, _ in spans] + [(b, "did", n) for n, _, b in spans]):
        getattr(assistant, kind)(name, at=float(at))
    video = Video("new", [Segment(*span) for span in spans])
    assert told(assistant.mistakes()) == told(check(graph, video, "skipped").mistakes)


@settings(max_examples=25)
@given(ORDERS)
def test_a_mistake_is_announced_once(order: list[str]) -> None:
    """Every alarm that stands was raised by one call, and calls after it are silent about it."""
    assistant, raised = TRAINED.new_run(), 0
    for name in order:
        report = assistant.did(name)
        raised += report.mistake
        assert not assistant.did(name).mistake  # done already
        assert assistant.saw({}).mistake is False
    assert bool(assistant.alarms()) <= bool(raised)
    assert raised <= len(order)


def test_a_way_that_comes_late_is_the_mistake_that_was_told() -> None:
    """Pouring needs bag or leaves: one alarm when it comes without, and none when the leaves come after it."""
    assistant = Assistant(TEA)
    assert [assistant.did(name).mistake for name in ["boil", "pour", "leaves"]] == [False, True, False]
    assert assistant.missing() == []
    assert assistant.mistakes()[0].kind == "order"


# -- stated rules -----------------------------------------------------------------------------------------------------

PC = ["unplug", "open case", "fan", "screws"]


@settings(max_examples=6)
@given(st.lists(st.permutations(PC).map(lambda order: order[:3]), min_size=3, max_size=6), st.booleans())
def test_a_stated_rule_always_warns(recordings: list[list[str]], with_data: bool) -> None:
    recordings = [*recordings, PC]
    rule = msg2.Constraints(required=[("unplug", "open case")])
    graph = msg2.infer(recordings, constraints=rule)
    for first in ([], ["screws"], ["fan", "screws"]):
        assistant = tell(Assistant(graph, recordings if with_data else None), first)
        begun = assistant.new_run()
        assert begun.began("open case").mistake
        report = assistant.did("open case")
        assert report.mistake
        assert (report.probability, report.findings[0].kind) == (1.0, "need")
        assert "'unplug'" in report.reason
        assert "a stated rule" in report.reason or len(report.findings[0].unmet) > 1
        assert ("unplug", 1.0) in [(missing.step, missing.probability) for missing in assistant.missing()]
        assert ("left out", "unplug", [], 1.0) in told(assistant.mistakes())
        assert not assistant.finished().finished
        late = assistant.did("unplug")
        assert (late.kind, late.probability) == ("order", 1.0)
        (order,) = [mistake for mistake in assistant.mistakes() if mistake.step == "unplug"]
        assert (order.kind, order.probability, step("open case") in order.unmet) == ("order", 1.0, True)


def test_what_a_stated_rule_needs_is_required() -> None:
    recordings = [["open case", "fan"]] * 8 + [["unplug", "open case", "fan"]] * 2
    assert "unplug" in msg2.infer(recordings, absent="skipped").optional
    graph = msg2.infer(recordings, absent="skipped", constraints=msg2.Constraints(required=[("unplug", "open case")]))
    assert "unplug" in graph.required
    assert "unplug" not in graph.optional
    assert "optional" not in graph.explain("unplug")
    by_hand = SubtaskGraph(
        "t", ["unplug", "open case"], {"open case": step("unplug")},
        optional=["unplug"], rules=[StatedRule(before="unplug", after="open case")],
    )  # fmt: skip
    assert by_hand.required == {"unplug", "open case"}
    finished = tell(Assistant(graph, recordings), ["open case", "fan"]).finished()
    assert (finished.finished, finished.left) == (False, ("unplug",))


def test_what_breaks_a_stated_rule_is_not_expected_next() -> None:
    recordings = [["open case", "unplug", "fan"]] * 8
    graph = msg2.infer(recordings, constraints=msg2.Constraints(required=[("unplug", "open case")]))
    assistant = Assistant(graph, recordings)
    expected = {following.step: following for following in assistant.next()}
    assert expected["open case"].probability == 0
    assert expected["open case"].reason == "it needs 'unplug' (a stated rule)"
    assert assistant.next(1)[0].step == "unplug"
    assert sum(following.probability or 0.0 for following in expected.values()) == pytest.approx(1)
    assistant.did("unplug")
    assert {following.step: following.eligible for following in assistant.next()}["open case"]
    assert min(following.probability or 0.0 for following in assistant.next()) > 0


def test_a_rule_about_the_order_of_an_optional_step_warns_when_it_comes_late() -> None:
    recordings = [["stir", "sugar"]] * 3 + [["stir"]] * 3
    graph = msg2.infer(recordings, constraints=msg2.Constraints(required_order=[("sugar", "stir")]))
    assistant = Assistant(graph, recordings)
    assert "sugar" not in graph.required
    assert not assistant.did("stir").mistake
    late = assistant.did("sugar")
    assert (late.mistake, late.kind, late.probability) == (True, "order", 1.0)


@st.composite
def graphs_with_rules(draw: st.DrawFn, choices: bool = True) -> SubtaskGraph:
    """Graphs of all kinds, of which some pairs are stated; with evidence of some sort, the rest is not."""
    graph, names = draw(graphs_of_all_kinds()), st.sampled_from(NAMES)
    pairs = draw(st.sets(st.tuples(names, names).filter(lambda pair: pair[0] < pair[1]), max_size=3))
    kinds = st.sampled_from(["needs", "after"])
    rules = [{"before": before, "after": after, "kind": draw(kinds)} for before, after in sorted(pairs)]
    evidence = {name: {"videos": 9} for name in NAMES} if draw(st.booleans()) else {}
    groups = [list(group) for group in graph.exclusive] if choices else []  # these may contradict what is stated
    return SubtaskGraph.from_json({**graph.to_json(), "exclusive": groups, "rules": rules, "evidence": evidence})


@settings(max_examples=60)
@given(graphs_with_rules(), st.booleans())
def test_what_is_suggested_first_breaks_no_stated_rule(graph: SubtaskGraph, with_data: bool) -> None:
    """As *Follow along* offers it: the first step that is due, until there is none."""
    assistant, done = Assistant(graph, [[*NAMES], [*NAMES[::-1]], [*"bad"]] if with_data else None), list[str]()
    while due := [following for following in assistant.next() if following.due]:
        assert not due[0].stated
        done.append(due[0].step)
        assert "a stated rule" not in assistant.did(done[-1]).reason
    for rule in graph.rules:
        came = [name for name in done if name in (rule.before, rule.after)]
        assert came in ([], [rule.before], [rule.before, rule.after], [rule.after][rule.kind == "needs" :])
    assert assistant.progress() == tuple(done)
    assert (not graph.required <= {*done}) <= bool(assistant.finished().left)


@settings(max_examples=60)
@given(graphs_with_rules(choices=False), DISTINCT)
def test_a_hard_stop_is_said_beforehand_and_stands_afterwards(graph: SubtaskGraph, order: list[str]) -> None:
    """Up to the first alarm: what the next steps say of a stated rule is what an alarm says once the step was done."""
    assistant = Assistant(graph)
    for name in order:
        (following,) = [each for each in assistant.next() if each.step == name]
        raised = assistant.did(name).mistake
        assert {alarm.probability for alarm in assistant.alarms() if alarm.stated} == {1.0} & {float(following.stated)}
        if raised:
            return


def test_without_what_a_rule_says_comes_first_nothing_is_finished() -> None:
    """Also where neither step is required, and where nothing but the graph was drawn."""
    drawn = {"format": "msg2.graph/2", "task": "t", "steps": ["look", "unplug", "open case"],
             "preconditions": {"open case": "unplug"}, "optional": ["unplug", "open case"]}  # fmt: skip
    stated = {**drawn, "rules": [{"before": "unplug", "after": "open case"}], "evidence": {"look": {"videos": 3}}}
    for graph in (drawn, stated):
        assistant = tell(Assistant(SubtaskGraph.from_json(graph)), ["look"])
        assert assistant.finished().finished
        assistant.did("open case")
        assert (assistant.finished().finished, assistant.finished().left) == (False, ("unplug",))
        assert assistant.finished().reason == "1 required step left"
        assistant.accept("unplug")
        assert assistant.finished().finished


# -- events as they come ----------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(DISTINCT, st.data())
def test_an_event_that_is_told_twice_changes_nothing(order: list[str], data: st.DataObject) -> None:
    once, twice = TRAINED.new_run(), TRAINED.new_run()
    for place, name in enumerate(order):
        report = once.did(name, id=f"event {place}")
        assert twice.did(name, id=f"event {place}") == report
        again = data.draw(st.integers(0, place))
        assert twice.did(data.draw(st.sampled_from(NAMES)), id=f"event {again}") == twice.log()[again].report
    assert state(once) == state(twice)
    assert once.log() == twice.log()


@settings(max_examples=25)
@given(DISTINCT, st.randoms(use_true_random=False), st.booleans())
def test_any_order_of_late_events_gives_the_same_state(names: list[str], rng: random.Random, saw: bool) -> None:
    events = [(5.0 * place, name) for place, name in enumerate(names)]
    mixed = rng.sample(events, len(events))
    in_order, late = TRAINED.new_run(), TRAINED.new_run()
    for assistant, sequence in ((in_order, events), (late, mixed)):
        for at, name in sequence:
            if saw:
                assistant.saw({name: 0.7, neighbour(name): 0.2}, at=at)
            else:
                assistant.did(name, at=at)
    assert state(late) == state(in_order)
    assert late.log() == in_order.log()


def neighbour(name: str) -> str:
    return NAMES[NAMES.index(name) - 1]


def test_a_late_event_that_makes_a_mistake_of_a_later_one_raises_the_alarm() -> None:
    graph = SubtaskGraph("t", ["bag", "leaves", "pour"], {}, exclusive=[("bag", "leaves")])
    assistant = Assistant(graph)
    assert not assistant.did("leaves", at=20.0).mistake
    report = assistant.did("bag", at=10.0)
    assert (report.mistake, report.step, report.kind, report.at) == (True, "leaves", "exclusive", 20.0)
    assert len(assistant.alarms()) == 1


def test_an_alarm_that_a_late_event_only_moves_is_not_raised_again() -> None:
    assistant = Assistant(SubtaskGraph("t", "ab", {"b": step("a")}))
    assert assistant.did("b", at=20.0).mistake
    assert not assistant.did("b", at=10.0).mistake
    assert [alarm.at for alarm in assistant.alarms()] == [10.0]


def test_events_without_a_time_stay_where_they_came() -> None:
    assistant = TRAINED.new_run()
    for name, at in (("a", 0.0), ("b", None), ("d", 20.0), ("c", 15.0)):
        assistant.did(name, at=at)
    assert assistant.progress() == ("a", "b", "c", "d")
    assert assistant.alarms() == []


def test_an_event_may_come_late_by_as_much_as_the_window_says() -> None:
    assistant = Assistant(LEARNED, window=5.0)
    assistant.did("b", at=10.0)
    assistant.did("a", at=5.0)
    with pytest.raises(InputError, match="6 seconds before the last event"):
        assistant.did("c", at=4.0)
    assert assistant.progress() == ("a", "b")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=6), st.data())
def test_what_was_taken_back_or_corrected_was_never_told_otherwise(order: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(order) - 1))
    right = data.draw(st.sampled_from(NAMES))
    corrected, undone = TRAINED.new_run(), TRAINED.new_run()
    for number, name in enumerate(order):
        corrected.did(name, id=str(number))
        undone.did(name, id=str(number))
    report = corrected.correct(str(place), right)
    undone.undo(str(place))
    expected = tell(TRAINED.new_run(), [*order[:place], right, *order[place + 1 :]])
    assert state(corrected) == state(expected)
    assert report == expected.log()[place].report
    assert state(undone) == state(tell(TRAINED.new_run(), [*order[:place], *order[place + 1 :]]))
    undone.did(right, id=str(place))  # the id is free again
    assert undone.log()[-1].id == str(place)


def test_what_was_seen_can_be_corrected_too() -> None:
    assistant, expected = TRAINED.new_run(), TRAINED.new_run()
    assistant.saw({"e": 0.9}, id="first")
    assistant.saw({"b": 0.9})
    assistant.correct("first", {"a": 0.8})
    expected.saw({"a": 0.8})
    expected.saw({"b": 0.9})
    assert state(assistant) == state(expected)


def test_long_ago_can_still_be_corrected() -> None:
    """Beliefs are kept of the last 64 events; what was told is kept of all."""
    assistant, expected = TRAINED.new_run(), TRAINED.new_run()
    assistant.did("c", id="wrong")
    expected.did("a")
    for _ in range(100):
        assistant.saw({}), expected.saw({})
    assistant.did("b"), expected.did("b")
    assert len(assistant.alarms()) == 1
    assistant.correct("wrong", "a")
    assert state(assistant) == state(expected)


def test_a_moment_without_a_step_says_nothing() -> None:
    assistant, other = tell(TRAINED.new_run(), "ac"), tell(TRAINED.new_run(), "ac")
    report = assistant.saw({}, at=50.0)
    assert (report.step, report.mistake, report.kind, report.probability) == ("", False, None, 0.0)
    assert report.reason == "probably nothing was done"
    assert state(assistant) == state(other)
    assert len(assistant.log()) == 3
    assistant.saw({"b": 0.0})  # the same
    assert state(assistant) == state(other)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    assistant, plain = TRAINED.new_run(), TRAINED.new_run()
    assistant.did("a", at=np.float32(1.5))
    assistant.saw({"b": np.float32(0.5), "c": np.float16(0.25)}, at=np.int64(20))
    assistant.did("d", at=np.float64(30), confidence=np.float32(0.75))
    plain.did("a", at=1.5)
    plain.saw({"b": 0.5, "c": 0.25}, at=20)
    plain.did("d", at=30, confidence=0.75)
    assert state(assistant) == state(plain)
    assistant.save(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text()) == plain.to_json()
    loaded = Assistant.load(tmp_path / "run.json", LEARNED, USUAL)
    assert state(loaded) == state(plain)
    frames = TRAINED.new_run()
    assert not frames.observe({"a": np.float32(0.9)}, at=np.float32(0.25)).mistake


@settings(max_examples=15)
@given(DISTINCT, st.data())
def test_a_run_that_is_saved_and_loaded_goes_on(order: list[str], data: st.DataObject) -> None:
    assistant = TRAINED.new_run()
    for place, name in enumerate(order):
        kind = data.draw(st.sampled_from(["did", "began", "accept"]))
        getattr(assistant, kind)(name, id=str(place))
    loaded = TRAINED.new_run()
    loaded.replay(json.loads(json.dumps(assistant.to_json()))["events"])
    assert state(loaded) == state(assistant)
    assert loaded.log() == assistant.log()
    loaded.undo("0")
    assistant.undo("0")
    assert state(loaded) == state(assistant)


def test_an_edited_graph_takes_over_a_run() -> None:
    old = Assistant(TEA)
    old.did("boil", at=1.0, id="first")
    old.pause(at=2.0)
    old.resume(at=3.0)
    old.did("sugar", at=4.0, actor="Ada")
    names = [name for name in TEA.steps if name != "sugar"]
    edited = Assistant(SubtaskGraph("tea", names, {name: TEA.precondition(name) for name in names}))
    edited.take_over(old)
    assert edited.progress() == ("boil",)
    assert [event.kind for event in edited.log()] == ["did", "pause", "resume"]
    assert edited.did("boil", id="first") == edited.log()[0].report


def test_two_threads_lose_no_event() -> None:
    assistant, errors = TRAINED.new_run(), []

    def work(actor: str) -> None:
        try:
            for number in range(30):
                assistant.saw({NAMES[number % 5]: 0.3}, at=float(number), id=f"{actor} {number}", actor=actor)
                assistant.next(1), assistant.alarms(), assistant.finished()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(actor,)) for actor in ("Ada", "Bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert {event.id for event in assistant.log()} == {f"{actor} {n}" for actor in ("Ada", "Bob") for n in range(30)}
    times = [event.at for event in assistant.log()]
    assert times == sorted(times)


def test_the_work_for_one_event_does_not_grow_with_the_run() -> None:
    class Counted(list):  # type: ignore[type-arg]
        looked_at = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            for event in super().__iter__():
                Counted.looked_at += 1
                yield event

        def __getitem__(self, place):  # type: ignore[no-untyped-def]
            chosen = super().__getitem__(place)
            Counted.looked_at += len(chosen) if isinstance(place, slice) else 1
            return chosen

    assistant = TRAINED.new_run()
    assistant._log._events = Counted()
    spent = []
    for number in range(400):
        before = Counted.looked_at
        assistant.did(NAMES[number % 5], at=float(number), id=str(number))
        assistant.time_left(), assistant.next(1), assistant.alarms()
        spent.append(Counted.looked_at - before)
    assert max(spent[200:]) <= max(spent[100:200])


@pytest.mark.parametrize("kind", ["did", "saw", "observe"])
def test_a_run_takes_no_more_calls_per_event_the_longer_it_is(kind: str) -> None:
    """Calls of functions, which no clock disturbs: as many in the fourth fifty of events as in the third."""
    assistant, rng = TRAINED.new_run(), np.random.default_rng(0)
    calls: Counter[int] = Counter()

    def work(number: int) -> None:
        if kind == "did":
            assistant.did(NAMES[number % 5], at=float(number))
        else:
            seen = dict(zip(NAMES, rng.dirichlet(np.full(6, 0.3)).tolist(), strict=False))
            getattr(assistant, kind)(seen, at=float(number))
        assistant.next(1), assistant.alarms()

    for number in range(200):
        before = sys.getprofile()
        sys.setprofile(lambda *_, part=number // 50: calls.update([part]))
        try:
            work(number)
        finally:
            sys.setprofile(before)
    assert calls[3] <= 1.2 * calls[2]


# -- the log on disk --------------------------------------------------------------------------------------------------


def tell_at_random(assistant: Assistant, rng: random.Random, numbers: range) -> None:
    """Tell, correct and take back events, some of them late."""
    for number in numbers:
        at = number - rng.choice([0, 0, 0, 5])
        match rng.randrange(8):
            case 0:
                assistant.saw({rng.choice(NAMES): 0.6, rng.choice(NAMES[:2]): 0.2}, at=at, id=str(number))
            case 1:
                assistant.began(rng.choice(NAMES), at=at, id=str(number))
            case 2 if len(assistant.log()) > 3:
                assistant.undo()
            case 3 if number > 5 and any(event.id == str(number - 3) for event in assistant.log()):
                assistant.correct(str(number - 3), rng.choice(NAMES))
            case _:
                assistant.did(rng.choice(NAMES), at=at, id=str(number), actor="Ada")


@pytest.mark.parametrize("seed", range(3))
def test_a_run_with_a_log_on_disk_stands_where_one_without_stands(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "KEPT_EVENTS", 20)
    logged, remembered = TRAINED.new_run(log=tmp_path / "run.jsonl"), TRAINED.new_run()
    for run in (logged, remembered):
        tell_at_random(run, random.Random(seed), range(150))
    assert state(logged) == state(remembered)
    assert 20 <= len(logged.log()) < 40 < len(remembered.log())
    loaded = Assistant.load(tmp_path / "run.jsonl", TRAINED.graph, USUAL, log=tmp_path / "run.jsonl")
    assert state(loaded) == state(remembered)
    for run in (remembered, loaded):
        tell_at_random(run, random.Random(seed + 10), range(150, 180))
    assert state(loaded) == state(remembered)
    again = Assistant.load(tmp_path / "run.jsonl", TRAINED.graph, USUAL)
    assert state(again) == state(remembered)
    with pytest.raises(InputError, match="load the log"):
        loaded.save(tmp_path / "run.json")
    with pytest.raises(InputError, match=r"(?s)no event with the id '1'.*the last 20 events"):
        loaded.undo("1")


def test_a_saved_run_becomes_a_log(tmp_path: Path) -> None:
    assistant = Assistant(TEA)
    assistant.did("boil", at=1.0)
    assistant.save(file := tmp_path / "run.json")
    logged = Assistant.load(file, TEA, log=file)
    logged.did("sugar", at=2.0)
    with file.open("a") as stream:
        stream.write('{"kind": "did", "se')  # the power went
    loaded = Assistant.load(file, TEA, log=file)
    assert loaded.progress() == ("boil", "sugar")
    assert Assistant.load(file, TEA).progress() == ("boil", "sugar")
    with pytest.raises(InputError, match="is there already"):
        Assistant(TEA, log=file)


@pytest.mark.parametrize("timed", [True, False])
def test_a_saved_assistant_answers_as_the_one_that_learned(timed: bool, tmp_path: Path) -> None:
    orders = [list(order) for order in ["abcd"] * 8 + ["abdc"] * 3 + ["acd"] * 3]  # "e" is not in the data
    videos = [
        Video(str(n), [Segment(s, 9.0 * k + n, 9.0 * k + n + 5) if timed else Segment(s) for k, s in enumerate(order)])
        for n, order in enumerate(orders)
    ]
    task = msg2.Task("abc", NAMES[:4], videos, absent="skipped")
    graph = SubtaskGraph.from_json({**msg2.infer(task).to_json(), "steps": list(NAMES)})
    learned = Assistant(graph, task, threshold=0.2)
    learned.save_model(file := tmp_path / "assistant.json")
    saved = Assistant(file, threshold=0.2)
    for order in (["a", "c", "b"], ["e", "d"]):
        runs = learned.new_run(), saved.new_run()
        for name in order:
            answers = [answer_event(run, {"did": name}) for run in runs]
            assert answers[0] == answers[1]
    assert [learned.time_left(), learned.limitations()] == [saved.time_left(), saved.limitations()]
    with pytest.raises(InputError, match="was saved with its videos"):
        Assistant(file, orders)
    with pytest.raises(InputError, match="from no videos"):
        Assistant(graph).save_model(tmp_path / "none.json")
    whole = file.read_text()
    for wrong in (whole[:-9], whole.replace('"ids":["0",', '"ids":['), whole.replace('"terms":[[', '"terms":[[1.0,')):
        file.write_text(wrong)
        with pytest.raises(InputError, match=r"cannot be read as a saved assistant|is damaged"):
            Assistant(file)


# -- what was probably done -------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(st.lists(SHARES | st.sampled_from(NAMES), max_size=8), st.sampled_from([None, 0.0, 0.3]))
def test_the_belief_sums_to_one(events: list[dict[str, float] | str], missed: float | None) -> None:
    assistant = with_missed(missed).new_run()
    for event in events:
        if isinstance(event, str):
            assistant.did(event)
        else:
            assistant.saw(event)
        belief: Belief = assistant._belief
        assert sum(each.probability for each in belief.hypotheses) == pytest.approx(1)
        assert all(0 <= share <= 1 for share in (*assistant.done().values(), *assistant.inferred().values()))
        for each in belief.hypotheses:
            assert len(set(each.done)) == len(each.done) == len(each.starts)
            assert each.inferred <= set(each.done)
        assert sum(following.probability or 0.0 for following in assistant.next()) == pytest.approx(
            float(len(assistant.progress()) < len(NAMES))
        )


@cache
def with_missed(missed: float | None) -> Assistant:
    return Assistant(LEARNED, USUAL, missed=missed)


CHAIN = [["a", "b", "c", "d"]] * 20


def test_a_step_that_nobody_reported_is_inferred() -> None:
    assistant = Assistant(msg2.infer(CHAIN, absent="skipped"), CHAIN, missed=0.2)
    assert not assistant.saw({"a": 0.95}).mistake
    assert not assistant.saw({"c": 0.95}).mistake
    assert assistant.inferred()["b"] > 0.5
    assert assistant.alarms() == assistant.missing() == []
    assert assistant.progress() == ("a", "b", "c")
    assert assistant.next(1)[0].step == "d"
    assistant.did("b")  # somebody did see it
    assert "b" not in assistant.inferred()


def test_what_is_told_is_certain_and_nothing_is_inferred() -> None:
    assistant = Assistant(msg2.infer(CHAIN, absent="skipped"), CHAIN, missed=0.2)
    assert not assistant.did("a").mistake
    report = assistant.did("c")
    assert (report.mistake, report.kind) == (True, "need")
    assert assistant.inferred() == {}
    assert len(assistant.alarms()) == 1


def test_a_recogniser_that_misses_nothing_is_taken_at_its_word() -> None:
    assistant = Assistant(msg2.infer(CHAIN, absent="skipped"), CHAIN, missed=0.0)
    assistant.saw({"a": 1.0})
    assert assistant.saw({"c": 1.0}).mistake
    assert assistant.inferred() == {}


def test_time_tells_whether_a_step_was_missed() -> None:
    """Every step ends 10 seconds after the last one: 20 seconds later, one is missing."""
    videos = [
        Video(f"v{number}", [Segment(name, 10 * place, 10 * place + 9) for place, name in enumerate("abcd")])
        for number in range(20)
    ]
    graph = SubtaskGraph("t", "abcd", {})
    task = msg2.Task("t", "abcd", videos, "skipped")
    chances = []
    for gap in (10.0, 20.0):
        assistant = Assistant(graph, task, missed=0.2)
        assistant.saw({"a": 0.9}, at=9.0)
        assistant.saw({"b": 0.45, "c": 0.45}, at=9.0 + gap)
        chances.append(assistant.inferred().get("b", 0.0))
    assert chances[0] < chances[1]
