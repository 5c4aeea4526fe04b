"""Forecasts in one call are put together from the parts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from msg2.assist import RANKERS, check, check_online, evaluate_next_step, forecast, next_steps
from msg2.assist.forecasting import fit_end_probability, look_ahead
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.rankers import bigram, make_ranker, recency
from msg2.assist.time_left import fit_waiting_times
from msg2.errors import InputError
from msg2.task import Segment, Task, Video
from tests.assist.forecast_examples import GRAPH, NAMES, task_of

TIMED = Task("t", NAMES, [Video(f"v{n}", [Segment("a", 1, 2), Segment("b", 4, 5 + n)]) for n in range(3)])


def test_a_forecast_from_the_graph_alone() -> None:
    found = forecast(GRAPH, ["a"], horizon=2)
    assert list(found.steps) == next_steps(GRAPH, ["a"])
    assert (found.ranker, found.calibrated) == ("recency", False)
    assert found.waiting_times is None
    assert found.lookahead == look_ahead(recency(GRAPH), ["a"], 2)
    value = json.loads(json.dumps(found.to_json()))
    assert "seconds" not in value["next"][0]
    assert [(one["rank"], one["probability"], one["within"]) for one in value["next"]] == [
        (rank, None, None) for rank in (1, 2, 3)
    ]
    assert (value["ends"], value["path_probability"], value["path"]) == (None, None, list(found.lookahead.path))


@pytest.mark.parametrize("ranker", RANKERS)
def test_a_forecast_from_videos(ranker: str) -> None:
    found = forecast(GRAPH, ["a"], ranker, TIMED, horizon=2)
    rank = make_ranker(ranker, GRAPH, TIMED)
    calibrated = ranker in ("bigram", "learned")
    expected = next_steps(GRAPH, ["a"], rank)
    assert list(found.steps) == [one if calibrated else replace(one, probability=None) for one in expected]
    assert found.lookahead == look_ahead(rank, ["a"], 2, fit_end_probability(GRAPH, TIMED))
    value = json.loads(json.dumps(found.to_json()))
    assert (value["task"], value["done"], value["ranker"], value["horizon"]) == ("t", ["a"], ranker, 2)
    assert {one["step"]: one["probability"] for one in value["next"]} == (
        rank(["a"]) if calibrated else dict.fromkeys("bcd")
    )
    assert [one["step"] for one in value["next"]] == [one.step for one in expected]
    assert (value["ends"] is not None, value["next"][0]["within"] is not None) == (calibrated, calibrated)
    wait = fit_waiting_times(TIMED)("a", "b")
    assert wait is not None
    assert next(one["seconds"] for one in value["next"] if one["step"] == "b") == asdict(wait)


def test_videos_without_times_say_nothing_about_seconds() -> None:
    found = forecast(GRAPH, ["a"], task=task_of(["abc"]))
    assert found.waiting_times == dict.fromkeys("bcd")
    assert found.to_json()["next"][0]["seconds"] is None


def test_videos_are_learned_from_unless_another_ranker_is_asked_for() -> None:
    task = task_of(["abcd", "abdc"])
    found = forecast(GRAPH, ["a"], task=task)
    assert (found.ranker, found.calibrated) == ("learned", True)
    assert {one.step: one.probability for one in found.steps} == fit_forecaster(GRAPH, task)(["a"])
    assert not forecast(GRAPH, ["a"], "recency", task).calibrated


def test_rankers_by_name() -> None:
    task = task_of(["abcd", "abdc"])
    assert make_ranker("bigram", GRAPH, task)(["a"]) == bigram(task)(["a"])
    assert make_ranker("recency", GRAPH)(["a"]) == recency(GRAPH)(["a"])
    with pytest.raises(InputError, match="there is no ranker 'oracle'") as caught:
        make_ranker("oracle", GRAPH)
    assert caught.value.hint == "there are recency, grprop"
    with pytest.raises(InputError, match="the ranker 'learned' learns from videos"):
        make_ranker("learned", GRAPH)


def test_data_of_any_kind_is_what_a_task_of_it_is(tmp_path: Path) -> None:
    orders = [["a", "b", "c"], ["b", "a", "c"], ["a", "b"]] * 3
    path = tmp_path / "steps.csv"
    rows = [f"t,{number},{name}" for number, order in enumerate(orders, start=1) for name in order]
    path.write_text("\n".join(["task,video,step", *rows]))
    task = Task("t", NAMES, [Video(str(number), map(Segment, order)) for number, order in enumerate(orders, start=1)])
    for data in (path, orders):
        assert check(GRAPH, data).to_json() == check(GRAPH, task).to_json()
        assert check_online(GRAPH, data).videos == check_online(GRAPH, task).videos
        assert forecast(GRAPH, ["a"], task=data) == forecast(GRAPH, ["a"], task=task)
        assert bigram(data)([])["a"] == pytest.approx(bigram(task)([])["a"], abs=0.01)
        accuracies = evaluate_next_step(data, "bigram", splits=2).tasks.values()
        assert list(accuracies) == pytest.approx(list(evaluate_next_step(task, "bigram", splits=2).tasks.values()))
