"""An assistant of one run: every answer on a kitchen task, beliefs against brute force, save and load."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msg2
from msg2.assist import Assistant
from msg2.assist.belief import AssistantModel, Belief
from msg2.assist.events import answer_event
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.planning import plan_steps
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, any_of, step
from msg2.task import Segment, Task, Video

NEEDS = {"dip": step("whisk"), "fry": step("dip"), "flip": step("fry"), "serve": step("flip")}
STEPS = ("whisk", "butter", "dip", "fry", "flip", "sugar", "serve")
TOAST = SubtaskGraph("toast", STEPS, NEEDS, order=[("butter", "fry")], optional=["butter", "sugar"])


def kitchen(videos: int = 40) -> Task:
    """Runs that respect the graph, each step 10 seconds after the last; half have butter, a third sugar."""
    rng, found = random.Random(3), []
    for number in range(videos):
        names = ["whisk", "dip", "fry", "flip", "serve"]
        if rng.random() < 0.5:
            names.insert(rng.randrange(0, 3), "butter")
        if rng.random() < 1 / 3:
            names.append("sugar")
        segments = [Segment(name, 10 * place, 10 * place + 8) for place, name in enumerate(names)]
        found.append(Video(f"v{number}", segments))
    return Task("toast", STEPS, found)


KITCHEN = kitchen()
TRAINED = Assistant(TOAST, KITCHEN)


@pytest.fixture
def assistant() -> Assistant:
    return TRAINED.new_run()


def answers(one: Assistant) -> dict[str, object]:
    return answer_event(one, {"ask": True})


# -- what happens -------------------------------------------------------------------------------------------------


def test_a_run_without_mistakes(assistant: Assistant) -> None:
    for place, name in enumerate(["whisk", "dip", "fry", "flip"]):
        report = assistant.did(name, at=10.0 * place + 5)
        assert (report.mistake, report.findings, report.confidence) == (False, (), 1.0)
        assert report.reason == "nothing speaks against it"
    assert assistant.progress() == ("whisk", "dip", "fry", "flip")
    assert assistant.missing() == []
    best = assistant.next(1)[0]
    assert (best.step, best.rank, best.eligible) == ("serve", 1, True)
    assert best.probability is not None
    assert best.probability > 0.8
    assert best.reason == "26 of 26 videos that had done the same went on with it; what it needs is done"
    left = assistant.time_left()
    assert left is not None
    assert left.low <= 10 <= left.high
    assert not assistant.finished().finished
    assistant.did("serve", at=45.0)
    end = assistant.finished()
    assert end.finished
    assert end.left == ()


def test_an_alarm_is_raised_once_and_does_not_blind(assistant: Assistant) -> None:
    early = assistant.did("fry")
    assert (early.mistake, early.kind, early.probability) == (True, "need", 1.0)
    assert early.reason == "'fry' needs 'dip', which is not done"
    assert [missing.step for missing in assistant.missing()] == ["dip"]
    assert not assistant.did("whisk").mistake
    late = assistant.did("dip")  # the same pair, told once
    assert (late.mistake, late.kind, late.reason) == (False, "order", "'dip' comes before 'fry', not after")
    assert assistant.did("serve").mistake  # later mistakes still count
    assert [alarm.reason for alarm in assistant.alarms()] == [
        "'dip' comes before 'fry', not after",
        "'serve' needs 'flip', which is not done",
    ]
    assert assistant.progress() == ("fry", "whisk", "dip", "serve")
    assert [missing.step for missing in assistant.missing()] == ["flip"]


def test_a_warning_comes_when_a_step_begins() -> None:
    learned = Assistant(msg2.infer(KITCHEN, absent="skipped"), KITCHEN)
    warning = learned.began("fry", at=1.0)
    assert (warning.step, warning.mistake, warning.kind) == ("fry", True, "need")
    assert [alarm.at for alarm in learned.alarms()] == [1.0]
    assert learned.progress() == ()
    assert "fry" not in [expected.step for expected in learned.next()]  # it goes on
    assert not learned.did("fry", at=9.0).mistake  # told already
    assert [alarm.at for alarm in learned.alarms()] == [1.0]


def test_what_is_required_and_not_done_is_not_finished(assistant: Assistant) -> None:
    assistant.accept("serve")
    end = assistant.finished()
    assert end.probability is not None
    assert end.left
    assert not end.finished


def test_a_pause_does_not_do_the_steps_that_are_left(assistant: Assistant) -> None:
    assistant.did("whisk", at=5)
    rested = assistant.time_left(now=5000)
    assert rested is not None
    assert rested.median >= rested.least > 0


def test_a_step_is_done_after_all(assistant: Assistant) -> None:
    assert assistant.did("dip").mistake
    assistant.accept("whisk")  # nobody saw it
    assert assistant.alarms() == assistant.missing() == []
    assert not assistant.did("fry").mistake
    assert assistant.progress() == ("dip", "whisk", "fry")
    assert [event.report is None for event in assistant.log()] == [False, True, False]
    assistant.undo(), assistant.undo()
    assert len(assistant.alarms()) == 1


def test_time_goes_on_and_stops_in_a_pause(assistant: Assistant) -> None:
    assistant.did("whisk", at=5)
    left, later = assistant.time_left(), assistant.time_left(now=12)
    assert left is not None
    assert later is not None
    assert later.median == pytest.approx(left.median - 7)
    assistant.pause(at=12)
    assert assistant.time_left(now=12) == assistant.time_left(now=500) == later
    assistant.resume(at=1000)
    assert assistant.time_left(now=1000) == later
    paused = TRAINED.new_run()
    paused.did("whisk", at=5)
    paused.did("dip", at=15)
    assistant.did("dip", at=1003)
    assert assistant.time_left() == paused.time_left()


def test_undo_takes_back_one_thing_after_the_other(assistant: Assistant) -> None:
    states = [answers(assistant)]
    for name in ["whisk", "serve", "dip"]:
        assistant.did(name)
        states.append(answers(assistant))
    assistant.accept("serve")
    for state in reversed(states):
        assistant.undo()
        assert answers(assistant) == states.pop(states.index(state))
        if not assistant.log():
            break
    with pytest.raises(InputError, match="nothing to undo"):
        TRAINED.new_run().undo()


def test_what_is_missing_when_the_run_is_over(assistant: Assistant) -> None:
    assistant.did("whisk")
    assert assistant.missing() == []
    missing = {one.step: one.reason for one in assistant.missing(ended=True)}
    assert set(missing) == {"dip", "fry", "flip", "serve"}
    assert missing["dip"] == "the graph says that every run does it"


@pytest.mark.parametrize(
    ("tell", "complaint"),
    [
        (lambda one: one.did("wisk"), "did you mean 'whisk'"),
        (lambda one: one.did("whisk", confidence=1.5), "from 0 to 1"),
        (lambda one: one.did("whisk", confidence="much"), "must be a number"),
        (lambda one: one.did(["whisk"]), "a step is a text"),
        (lambda one: one.did(["whisk"], confidence=0.5), "a step is a text"),
        (lambda one: one.began({}), "a step is a text"),
        (lambda one: one.accept(["whisk"]), "a step is a text"),
        (lambda one: one.saw(["whisk"]), "must be a mapping"),
        (lambda one: one.next(1.5), "whole number"),
        (lambda one: one.plan(None), "a step is a text"),
        (lambda one: one.plan("serve", length="4"), "whole number"),
        (lambda one: one.time_left(now=float("nan")), "number of seconds"),
        (lambda one: Assistant(TOAST, absent="unkown"), "'skipped' or 'unknown'"),
        (lambda one: one.saw({"whisk": 0.7, "dip": 0.7}), "above 1"),
        (lambda one: one.saw({"whisk": "high"}), "from 0 to 1"),
        (lambda one: one.saw({"whisk": float("nan")}), "from 0 to 1"),
        (lambda one: (one.did("whisk", at=5), one.did("dip", at=-26)), "31 seconds before the last event at 5"),
        (lambda one: one.did("whisk", at=float("inf")), "number of seconds"),
        (lambda one: one.did("whisk", at="soon"), "number of seconds"),
        (lambda one: one.undo("x"), "nothing to undo"),
        (lambda one: (one.did("whisk"), one.undo("x")), "no event with the id 'x'"),
        (lambda one: (one.did("whisk", id="x"), one.correct("x", "wisk")), "did you mean 'whisk'"),
        (lambda one: (one.did("whisk"), one.observe({"whisk": 1.0}, at=1.0)), "frames cannot be added"),
        (lambda one: one.observe({"whisk": 1.0}, at=None), "needs its time"),
        (lambda one: (one.observe({"whisk": 1.0}, at=1.0), one.did("whisk")), "events cannot be added"),
        (lambda one: Assistant(TOAST, threshold=2), "threshold"),
        (lambda one: Assistant(TOAST, alarm_cost=0), "alarm_cost is 0"),
        (lambda one: Assistant(TOAST, missed=1), "missed is 1"),
        (lambda one: one.next(0), "k is 0"),
        (lambda one: one.plan("whisk2"), "not a step"),
        (lambda one: (one.did("whisk", at=5), one.time_left(now=3)), "before the last step"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(assistant: Assistant, tell: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        tell(assistant)  # type: ignore[operator]
    assert len(assistant.log()) <= 1


# -- not being sure -----------------------------------------------------------------------------------------------


MISSED, AGAIN = 0.2, 0.05


def brute_force(model: AssistantModel, events: Sequence[Mapping[int, float]]) -> dict[frozenset[int], float]:
    """Every way to read the events, by the formulas of `msg2.assist.belief`: what is done, and how probably."""
    ways = {(): 1.0}
    size = len(model.graph.steps)

    def forecast(done: tuple[int, ...], place: int) -> float:
        return float(model.forecasts([done])[0][place])

    for event in events:
        after: dict[tuple[int, ...], float] = {}
        for done, weight in ways.items():
            outcomes = [(done, 1 - sum(event.values()))]
            left = [place for place in range(size) if place not in done]
            for missed in [(), *((a,) for a in left), *((a, b) for a in left for b in left if a != b)]:
                chance = 1.0
                for number, place in enumerate(missed):
                    chance *= MISSED * forecast((*done, *missed[:number]), place)
                for place, share in event.items():
                    if place not in (*done, *missed):
                        way = (*done, *missed, place)
                        seen = 0.95 * forecast(way[:-1], place) + 0.05 / (size - len(way) + 1)
                        outcomes.append((way, chance * (1 - MISSED) * size * share * seen))
            outcomes += [(done, size * share * AGAIN / len(done)) for place, share in event.items() if place in done]
            for way, chance in outcomes:
                after[way] = after.get(way, 0.0) + weight * chance
        ways = after
    total = sum(ways.values())
    by_set: dict[frozenset[int], float] = {}
    for way, weight in ways.items():
        by_set[frozenset(way)] = by_set.get(frozenset(way), 0.0) + weight / total
    return by_set


@settings(max_examples=15)
@given(st.lists(st.dictionaries(st.integers(0, 2), st.integers(1, 3), min_size=1), min_size=1, max_size=3))
def test_the_belief_is_that_of_every_way_to_read_the_events(counts: list[dict[int, int]]) -> None:
    """Without data the forecast is that of the set of steps done, so that merging equal sets loses nothing."""
    graph = SubtaskGraph("t", "abc", {})
    model = AssistantModel(graph, None, "skipped", MISSED)
    events = [{name: count / 9.5 for name, count in event.items()} for event in counts]
    belief = Belief()
    for event in events:
        belief = belief.after(event, None, model)
    found: dict[frozenset[int], float] = {}
    for each in belief.hypotheses:
        found[frozenset(each.done)] = found.get(frozenset(each.done), 0.0) + each.probability
    assert found == pytest.approx(brute_force(model, events), abs=2e-3)
    by_step = {place: sum(share for done, share in found.items() if place in done) for place in range(3)}
    assert {place: share for place, share in by_step.items() if share > 0} == pytest.approx(belief.shares())


def test_what_comes_later_says_what_was_done_before(assistant: Assistant) -> None:
    assistant.saw({"whisk": 0.5, "sugar": 0.5})
    assert assistant.done()["whisk"] > 0.8  # nobody begins with the sugar
    other = TRAINED.new_run()
    other.did("whisk")
    other.did("dip", confidence=0.4)
    unsure = other.done()["dip"]
    other.did("fry")
    assert other.done()["dip"] > max(unsure, 0.95)
    assert sum(expected.probability or 0.0 for expected in other.next()) == pytest.approx(1)


def test_an_unsure_mistake_is_no_alarm(assistant: Assistant) -> None:
    report = assistant.did("serve", confidence=0.45)
    assert report.confidence < 0.5
    assert not report.mistake


def test_what_was_seen_alone_and_surely_is_believed(assistant: Assistant) -> None:
    report = assistant.saw({"serve": 1.0})
    assert (report.step, report.mistake) == ("serve", True)
    assert report.confidence == pytest.approx(1)


# -- questions ----------------------------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_forecaster(assistant: Assistant) -> None:
    forecaster = fit_forecaster(TOAST, KITCHEN)
    for name in ["whisk", "dip"]:
        assistant.did(name)
    assert {one.step: one.probability for one in assistant.next()} == pytest.approx(forecaster(["whisk", "dip"]))
    assert assistant.plan("serve", k=2) == plan_steps(TOAST, ["whisk", "dip"], "serve", ranker=forecaster, k=2)


def test_alone_with_a_graph_it_says_what_it_cannot_answer() -> None:
    alone = Assistant(TOAST)
    assert set(alone.limitations()) == {"next", "finished", "plan", "time_left"}
    assert TRAINED.limitations() == {}
    assert alone.time_left() is None
    assert [one.probability for one in alone.next()] == [None] * 7
    report = alone.did("dip")
    assert (report.mistake, report.probability) == (True, 1.0)  # without evidence the graph is believed
    assert report.reason == "'dip' needs 'whisk', which is not done"
    assert alone.plan("serve")[0].steps == ("fry", "flip", "serve")
    for name in ["whisk", "fry", "flip"]:
        assert not alone.did(name).mistake
    assert not alone.finished().finished
    alone.did("serve")
    assert alone.finished().finished
    assert not alone.did("serve").mistake  # the graph does not say how usual that is
    untimed = Assistant(TOAST, [["whisk", "dip", "fry", "flip", "serve"]] * 5)
    assert list(untimed.limitations()) == ["time_left"]


def test_a_graph_with_evidence_says_how_sure_it_is() -> None:
    usual, other = [["boil", "pour", "stir"]] * 12, [["pour", "boil", "stir"]] * 2
    unsure, sure = (msg2.infer(orders, "msg2") for orders in (usual + other, usual))
    assert unsure.precondition("pour") == step("boil")
    chances = [Assistant(graph).did("pour").probability for graph in (unsure, sure)]
    assert chances[0] < chances[1] < 1
    assert Assistant(unsure).did("pour").reason == "'pour' needs 'boil', which is not done (so 12 of 14 videos)"


def test_an_alarm_costs_as_much_as_it_is_said_to(assistant: Assistant) -> None:
    graph = msg2.infer(KITCHEN, absent="skipped")
    probability = Assistant(graph).did("fry").probability
    assert 0.5 < probability < 1
    odds = probability / (1 - probability)
    for cost, expected in ((odds * 0.99, True), (odds * 1.01, False)):
        assert Assistant(graph, alarm_cost=cost).did("fry").mistake is expected


def test_the_one_who_watches_may_miss_steps() -> None:
    watcher = Assistant(TOAST, KITCHEN, absent="unknown")
    assert not watcher.did("dip").mistake
    assert watcher.did("whisk").mistake  # it comes too late, that is sure


def test_data_as_a_path_and_of_another_task(tmp_path: Path) -> None:
    graph, data = tmp_path / "graph.json", tmp_path / "steps.csv"
    graph.write_text(TOAST.dumps())
    msg2.write([KITCHEN], data)
    assert answers(Assistant(graph, data)) == answers(TRAINED.new_run())
    with pytest.raises(InputError, match="'stir' is not a step of the graph"):
        Assistant(TOAST, [["stir"]])


def test_exclusive_steps_and_ors() -> None:
    needs = {"pour": any_of([step("bag"), step("leaves")])}
    tea = SubtaskGraph("tea", ["bag", "leaves", "pour"], needs, exclusive=[["bag", "leaves"]])
    one = Assistant(tea, [["bag", "pour"]] * 9 + [["leaves", "pour"]] * 9)
    one.did("bag")
    assert {ranked.step: ranked.reason for ranked in one.next()}["leaves"] == "ruled out by 'bag'"
    (both,) = one.did("leaves").findings
    assert both.kind == "exclusive"
    assert one.progress() == ("bag", "leaves")


# -- save and load ------------------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.fixed_dictionaries({"did": st.sampled_from(STEPS)}),
    st.fixed_dictionaries({"did": st.sampled_from(STEPS), "confidence": st.sampled_from([0.2, 0.6, 1.0])}),
    st.fixed_dictionaries({"saw": st.dictionaries(st.sampled_from(STEPS), st.just(0.3), max_size=3)}),
    st.fixed_dictionaries({"began": st.sampled_from(STEPS), "actor": st.just("Ada")}),
    st.fixed_dictionaries({"accept": st.sampled_from(STEPS)}),
)


@settings(max_examples=20)
@given(st.lists(EVENTS, max_size=5), st.lists(EVENTS, max_size=3))
def test_to_save_and_load_in_the_middle_changes_nothing(before: list[dict], after: list[dict]) -> None:
    one = TRAINED.new_run()
    for event in before:
        answer_event(one, event)
    other = TRAINED.new_run()
    other.replay(json.loads(json.dumps(one.to_json()))["events"])
    assert answers(one) == answers(other)
    for event in after:
        assert answer_event(one, event) == answer_event(other, event)
    assert one.log() == other.log()


def test_files_of_runs(assistant: Assistant, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    assistant.did("whisk", at=3.5)
    assistant.save(path)
    loaded = Assistant.load(path, TOAST, KITCHEN)
    assert answers(loaded) == answers(assistant)
    with pytest.raises(InputError, match="another graph"):
        Assistant.load(path, SubtaskGraph("toast", STEPS, {}), KITCHEN)
    for content, complaint in (("{", "saved run"), ("[]", "no saved run"), ('{"format": "msg2.run/2"}', "another")):
        path.write_text(content)
        with pytest.raises(InputError, match=complaint):
            Assistant.load(path, TOAST, KITCHEN)
    damaged = {**assistant.to_json(), "events": [{"saw": 3}]}
    path.write_text(json.dumps(damaged))
    with pytest.raises(InputError, match="damaged"):
        Assistant.load(path, TOAST, KITCHEN)
    with pytest.raises(InputError, match="saved run"):
        Assistant.load(tmp_path / "none.json", TOAST)


def test_runs_do_not_disturb_each_other() -> None:
    one, other = TRAINED.new_run(), TRAINED.new_run()
    one.did("whisk")
    assert other.log() == ()
    assert other.progress() == ()
    assert one.graph is other.graph


# -- events as JSON -----------------------------------------------------------------------------------------------


def test_every_kind_of_event_is_that_call() -> None:
    told, called = TRAINED.new_run(), TRAINED.new_run()
    for event in (
        {"began": "whisk", "at": 1, "actor": "Ada"},
        {"did": "whisk", "at": 5, "id": "first"},
        {"pause": True, "at": 6},
        {"resume": True, "at": 60},
        {"saw": {"fry": 0.9}, "at": 70, "id": "second"},
        {"saw": {}, "at": 71},
        {"correct": "second", "did": "dip"},
        {"did": "butter", "confidence": 0.9, "id": "third"},
        {"undo": "third"},
        {"accept": "butter"},
        {"undo": True},
        {"plan": "serve", "k": 2},
    ):
        answer = answer_event(told, event)
    assert len(answer["plans"]) == 2
    called.began("whisk", 1, actor="Ada")
    called.did("whisk", 5, id="first")
    called.pause(6)
    called.resume(60)
    called.did("dip", 70, id="second")
    called.saw({}, 71)
    assert answers(told) == answers(called)
    assert [event.kind for event in told.log()] == ["began", "did", "pause", "resume", "did", "saw"]
    frames = answer_event(TRAINED.new_run(), {"observe": {"whisk": 0.9}, "at": 0.0})
    assert frames["alarms"] == []
    ended = answer_event(told, {"ask": True, "ended": True})
    assert [missing["step"] for missing in ended["missing"]] == ["flip", "fry", "serve"]


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        ({}, "an event is an object with one of"),
        ({"did": "whisk", "saw": {}}, "an event is an object with one of"),
        ({"did": "whisk", "when": 3}, "an event with 'did' has no 'when'"),
        ({"did": "whisk", "id": 3}, "'id' is 3, it must be a text"),
        ({"pause": False}, "'pause' is false, it must be true"),
        ({"undo": 3}, "'undo' is 3, it must be true or a text"),
        ({"correct": "x"}, "has either 'did' or 'saw'"),
        ({"observe": [1]}, "must be an object from steps to probabilities"),
        ({"ask": True, "ended": 1}, "must be true or false"),
    ],
)
def test_an_event_that_is_none_is_refused(assistant: Assistant, event: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        answer_event(assistant, event)
    assert assistant.log() == ()
