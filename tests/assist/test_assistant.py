"""An assistant of one run: beliefs against brute force, save and load, undo, and every answer on a kitchen task."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msg2
from msg2.assist import Assistant, check
from msg2.assist.belief import Belief, Hypothesis
from msg2.assist.events import answer_event
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.monitoring import fit_monitor
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
        segments = [Segment(name, 10 * place, 10 * place + 5) for place, name in enumerate(names)]
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


def test_a_mistake_is_explained_and_does_not_blind(assistant: Assistant) -> None:
    early = assistant.did("fry")
    assert early.mistake
    assert early.reason == "'fry' needs 'dip', which 40 of 40 videos did before it"
    assert assistant.progress() == ()
    assert assistant.done() == {"fry": 1.0}
    assert [one.step for one in assistant.missing()] == ["dip", "fry", "whisk"]
    assert not assistant.did("whisk").mistake  # the slip is told once
    assert not assistant.did("dip").mistake
    second = assistant.did("serve")  # later mistakes still count
    assert second.mistake
    again = assistant.did("fry")
    assert (again.mistake, again.corrects) == (False, ("fry",))
    assert again.reason == "it makes good 'fry'"
    assert assistant.progress() == ("whisk", "dip", "fry")  # it counts from now on


def test_a_mistake_that_was_made_good_leaves_no_trace(assistant: Assistant) -> None:
    for name in ["fry", "whisk", "dip", "fry", "flip", "serve"]:
        assistant.did(name)
    faultless = TRAINED.new_run()
    for name in ["whisk", "dip", "fry", "flip", "serve"]:
        faultless.did(name)
    assert assistant.progress() == faultless.progress()
    assert assistant.finished() == faultless.finished()


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
    assistant.did("dip")
    assert assistant.progress() == ()
    assistant.accept("whisk")  # what came without it was no mistake, then
    assert assistant.progress() == ("dip", "whisk")
    assert not assistant.did("fry").mistake
    assistant.accept("dip")
    assert assistant.progress() == ("dip", "whisk", "fry")
    assert assistant.missing() == []
    assert [one.report is None for one in assistant.log()] == [False, True, False, True]


def test_time_goes_on_while_nothing_counts(assistant: Assistant) -> None:
    assistant.did("whisk", at=5)
    left, later = assistant.time_left(), assistant.time_left(now=12)
    assert left is not None
    assert later is not None
    assert later.median == pytest.approx(left.median - 7)
    assert assistant.did("serve", at=12).mistake
    assert assistant.time_left() == later


def test_an_unsure_mistake_is_no_accusation(assistant: Assistant) -> None:
    report = assistant.did("serve", confidence=0.45)
    assert report.confidence < 0.5 < report.probability
    assert not report.mistake


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
        (lambda one: one.saw(["whisk"]), "must be a mapping"),
        (lambda one: one.next(1.5), "whole number"),
        (lambda one: one.plan(None), "a step is a text"),
        (lambda one: one.plan("serve", length="4"), "whole number"),
        (lambda one: one.time_left(now=float("nan")), "number of seconds"),
        (lambda one: Assistant(TOAST, absent="unkown"), "'skipped' or 'unknown'"),
        (lambda one: one.saw({}), "nothing was seen"),
        (lambda one: one.saw({"whisk": 0.7, "dip": 0.7}), "above 1"),
        (lambda one: one.saw({"whisk": "high"}), "from 0 to 1"),
        (lambda one: one.saw({"whisk": float("nan")}), "from 0 to 1"),
        (lambda one: (one.did("whisk", at=5), one.did("dip", at=4)), "before the last step"),
        (lambda one: one.did("whisk", at=float("inf")), "number of seconds"),
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


def brute_force(events: Sequence[Mapping[str, float]], forecast: Mapping[tuple[str, ...], Mapping[str, float]]) -> dict:
    """Every way to read the events, each with its weight by the definition."""
    weights: dict[tuple[str, ...], float] = {}
    for choice in product(*[[*event, None] for event in events]):
        weight, done = 1.0, ()
        for event, name in zip(events, choice, strict=True):
            told = sum(event.values())
            ratio = {one: 0.05 if one in done else len(forecast[done]) * forecast[done][one] for one in event}
            weight *= 1 - told + sum(event[one] * ratio[one] for one in event)
            if name is None:
                weight *= 1 - told
            else:
                weight *= told * event[name] * (1 + ratio[name]) / sum(event[one] * (1 + ratio[one]) for one in event)
                done = done if name in done else (*done, name)
        weights[done] = weights.get(done, 0.0) + weight
    total = sum(weights.values())
    return {done: weight / total for done, weight in weights.items() if weight > 0}


@settings(max_examples=25)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), min_size=1), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
def test_the_belief_is_that_of_every_way_to_read_the_events(counts: list[dict[str, int]], rng: random.Random) -> None:
    events = [{name: count / 9.5 for name, count in event.items()} for event in counts]
    forecast = {}
    for size in range(4):
        for done in product("abc", repeat=size):
            left = [name for name in "abc" if name not in done]
            shares = [rng.random() + 0.01 for _ in left]
            forecast[done] = {name: share / sum(shares) for name, share in zip(left, shares, strict=True)}
    graph = SubtaskGraph("t", "abc", {})
    belief = Belief((Hypothesis(1.0, (), fit_monitor(graph, Task("t", "abc", []))),))
    for event in events:
        belief = belief.after(event, lambda done: forecast[tuple(done)])
    found: dict[tuple[str, ...], float] = {}
    for one in belief.hypotheses:
        found[one.done] = found.get(one.done, 0.0) + one.probability
    assert found == pytest.approx(brute_force(events, forecast))
    by_step = {name: sum(share for done, share in found.items() if name in done) for name in "abc"}
    assert {name: share for name, share in by_step.items() if share > 0} == pytest.approx(belief.probability_done())


def test_what_comes_later_says_what_was_done_before(assistant: Assistant) -> None:
    assistant.saw({"whisk": 0.5, "sugar": 0.5})
    assert assistant.done()["whisk"] > 0.8  # nobody begins with the sugar
    other = TRAINED.new_run()
    other.did("whisk")
    other.did("dip", confidence=0.4)
    unsure = other.done()["dip"]
    other.did("fry")
    assert other.done()["dip"] > max(unsure, 0.95)
    assert sum(one.probability or 0.0 for one in other.next()) == pytest.approx(1)


@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.95])
def test_that_something_was_done_is_believed_as_it_is_told(assistant: Assistant, confidence: float) -> None:
    report = assistant.did("serve", confidence=np.float32(confidence))
    assert report.confidence == pytest.approx(confidence)  # though nobody begins with that
    assert report.mistake == (confidence > 0.5)


def test_what_was_clearly_seen_is_not_taken_for_what_was_expected(assistant: Assistant) -> None:
    report = assistant.saw({"serve": 0.9, "whisk": 0.1})
    assert report.step == "serve"
    assert report.mistake


# -- questions ----------------------------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_forecaster(assistant: Assistant) -> None:
    forecaster = fit_forecaster(TOAST, KITCHEN)
    for name in ["whisk", "dip"]:
        assistant.did(name)
    assert {one.step: one.probability for one in assistant.next()} == forecaster(["whisk", "dip"])
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
    assert alone.plan("dip")[0].steps == ("whisk", "dip")
    for name in ["whisk", "dip", "fry", "flip"]:
        assert not alone.did(name).mistake
    assert not alone.finished().finished
    alone.did("serve")
    assert alone.finished() == alone.finished()
    assert alone.finished().finished
    assert not alone.did("serve").mistake  # the graph does not say how usual that is
    untimed = Assistant(TOAST, [["whisk", "dip", "fry", "flip", "serve"]] * 5)
    assert list(untimed.limitations()) == ["time_left"]


def test_a_graph_with_evidence_says_how_sure_it_is() -> None:
    orders = [["boil", "pour", "stir"]] * 12 + [["pour", "boil", "stir"]] * 2
    graph = msg2.infer(orders, "msg2")
    assert graph.precondition("pour") == step("boil")
    report = Assistant(graph).did("pour")
    (finding,) = report.findings
    assert (finding.times, finding.chances) == (2, 14)
    assert report.probability == pytest.approx(Assistant(graph, orders).did("pour").probability, abs=0.05)
    sure = msg2.infer([["boil", "pour", "stir"]] * 12, "msg2")
    assert Assistant(sure).did("pour").probability > report.probability


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
    (both,) = one.did("leaves").findings
    assert both.deviation.kind == "exclusive"
    assert one.progress() == ("bag",)
    assert {ranked.step: ranked.reason for ranked in one.next()}["leaves"] == "ruled out by 'bag'"


# -- save and load ------------------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.fixed_dictionaries({"did": st.sampled_from(STEPS)}),
    st.fixed_dictionaries({"did": st.sampled_from(STEPS), "confidence": st.sampled_from([0.2, 0.6, 1.0])}),
    st.fixed_dictionaries({"saw": st.dictionaries(st.sampled_from(STEPS), st.just(0.3), min_size=1, max_size=3)}),
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
    for content, complaint in (("{", "saved run"), ("[]", "no saved run"), ('{"format": "msg2.run/1"}', "another")):
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


def test_it_agrees_with_check_about_a_finished_video() -> None:
    """What `check` says of the order of a whole video, the assistant said while it went on."""
    wrong = Video("w", [Segment(name) for name in ["whisk", "dip", "flip", "fry", "serve"]])
    graph = msg2.infer(KITCHEN)
    told = {one.step for one in check(graph, Task("toast", STEPS, [wrong])).mistakes if one.probability >= 0.5}
    one = Assistant(graph, KITCHEN)
    reports = [one.did(segment.step) for segment in wrong.segments]
    assert [report.step for report in reports if report.mistake] == ["flip"]
    assert told == {"fry"}  # of a reversed pair, `check` names the one that came too late
