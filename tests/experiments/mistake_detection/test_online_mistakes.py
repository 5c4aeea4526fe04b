"""Mistakes on CaptainCook4D: what is true by hand, the trivial rules against brute force, the tables recomputed."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection import online_mistakes
from experiments.mistake_detection.annotated_mistakes import annotate_recording, read_recipes
from experiments.mistake_detection.online_mistakes import (
    MistakeSetting,
    always_before_pairs,
    pair_violations,
    run,
    truncate_after_first_mistake,
)
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, step
from msg2.metrics.detection import ScoredStep
from msg2.task import Segment, Task, Video
from tests.experiments.progress_recorder import ProgressRecorder

CHAIN = SubtaskGraph("tea", ["boil", "pour", "sip"], {"pour": step("boil"), "sip": step("pour")})


def untimed(steps: list[str], id: str = "v") -> Video:
    return Video(id, map(Segment, steps))


# -- protocol ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.builds(ScoredStep, st.just(0.5), st.booleans()), max_size=12))
def test_the_cut_ends_with_the_first_mistake(steps: list[ScoredStep]) -> None:
    cut = truncate_after_first_mistake(steps)
    assert list(cut) == steps[: len(cut)]
    assert not any(step.mistake for step in cut[:-1])
    assert len(cut) == len(steps) or cut[-1].mistake


# -- truth ------------------------------------------------------------------------------------------------------------


def people(steps: list[str], *marked: str) -> tuple[list[str], list[str]]:
    """The premature and the late steps, where these steps are marked."""
    found = annotate_recording(untimed(steps), tuple(name in marked for name in steps), CHAIN, False)
    premature = [name for name, true in zip(steps, found.premature, strict=True) if true]
    late = [name for name, true in zip(steps, found.late, strict=True) if true]
    assert found.out_of_order == tuple(map(max, found.premature, found.late))
    return premature, late


def test_both_sources_must_agree() -> None:
    swapped = ["pour", "boil", "sip"]
    assert people(swapped) == ([], [])
    assert people(swapped, "pour") == (["pour"], [])
    assert people(swapped, "pour", "boil") == (["pour"], ["boil"])
    assert people(["boil", "pour", "sip"], "boil", "pour", "sip") == ([], [])  # errors of another kind


def test_a_step_that_never_came_needs_no_mark() -> None:
    assert people(["boil", "sip"]) == (["sip"], [])
    assert people(["sip"]) == (["sip"], [])


def test_late_for_a_step_that_needs_it_through_others() -> None:
    assert people(["sip", "boil", "pour"], "sip", "boil", "pour") == (["sip"], ["boil", "pour"])


def test_a_repetition_is_late_only_once() -> None:
    assert people(["pour", "boil", "boil", "sip"], "boil") == ([], ["boil"])


# -- trivial rules ----------------------------------------------------------------------------------------------------

SEQUENCES = st.lists(st.lists(st.sampled_from("abcd"), max_size=5), max_size=5)


@given(SEQUENCES, st.lists(st.sampled_from("abcd"), max_size=6))
def test_always_before_against_all_pairs(seen: list[list[str]], judged: list[str]) -> None:
    training = Task("t", "abcd", [untimed(steps, f"v{number}") for number, steps in enumerate(seen)])
    pairs = always_before_pairs(training)
    for a, b in permutations("abcd", 2):
        both = [steps for steps in seen if a in steps and b in steps]
        assert ((a, b) in pairs) == (bool(both) and all(steps.index(a) < steps.index(b) for steps in both))
    for place, name in enumerate(judged):
        done = set(judged[:place])
        lacks = any((a, name) in pairs for a in set("abcd") - done)
        late = name not in done and any((name, b) in pairs for b in done)
        assert pair_violations(pairs, untimed(judged), both=False)[place] == lacks
        assert pair_violations(pairs, untimed(judged), both=True)[place] == (lacks or late)


# -- the experiment ---------------------------------------------------------------------------------------------------


def recording(steps: list[str], *marked: str, skipped: str = "") -> dict[str, Any]:
    rows = [
        {"step_id": ord(name[0]), "description": name, "start_time": 10.0 * place, "end_time": 10.0 * place + 5,
         "has_errors": name in marked}
        for place, name in enumerate(steps)
    ]  # fmt: skip
    if skipped:
        row = {"step_id": ord(skipped[0]), "description": skipped, "start_time": -1.0, "end_time": -1.0}
        rows.insert(0, {**row, "has_errors": True})
    return {"activity_name": "Tea", "steps": rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine flawless recordings, one with a swap, one without a step."""
    good = {f"7_{number}": recording(["boil", "pour", "sip"]) for number in range(9)}
    bad = {
        "7_20": recording(["pour", "boil", "sip"], "pour", "boil"),
        "7_21": recording(["pour", "sip"], skipped="boil"),
    }
    home = tmp_path / "captaincook4d"
    (home / "task_graphs").mkdir(parents=True)
    (home / "complete_step_annotations.json").write_text(json.dumps(good | bad))
    edges = {"steps": {"0": "START", "1": "boil", "2": "pour", "3": "sip", "4": "END"},
             "edges": [[0, 1], [1, 2], [2, 3], [3, 4]]}  # fmt: skip
    (home / "task_graphs" / "tea.json").write_text(json.dumps(edges))
    return tmp_path


def cells(table: Any) -> dict[str, list[Any]]:
    return {row[0]: list(row[1:]) for row in table.rows}


def test_tables_by_hand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_mistakes, "LEARNERS", ["always-before"])
    monkeypatch.setattr(
        online_mistakes,
        "SETTINGS",
        [MistakeSetting("wrong"), MistakeSetting("flawless", flawless=True, everything=True)],
    )
    reported = ProgressRecorder()
    result = run(folder, ExperimentOptions(), reported)
    assert reported == ["wrong: Tea", "flawless: Tea"]
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "mistakes"
    wrong, flawless, counts = result.tables
    # Two recordings, five steps, three mistakes: pour and boil of the one, pour of the other. Both begin with theirs.
    assert cells(wrong)["all correct"] == [0, 0, 0, None, 0, 0, 50]
    # Of the swap the late step is named, which comes after the cut; a step that was left out has no place.
    assert cells(wrong)["human task graph, check"] == pytest.approx([0, 0, 0, 100, 100 / 3, 50, 200 / 3])
    assert cells(wrong)["human task graph, every deviation"] == [None, 100, None, 100, 100, 100, 100]
    # Once the swap is among the training videos, nothing is always before pour; without it, boil is.
    assert cells(wrong)["always-before: a predecessor is missing"][4] == pytest.approx(100 / 3)
    # From flawless ones both ends of the swap are found; and sip, which boil was always before, is blamed as well.
    pairs = cells(flawless)["always-before: or a successor was done"]
    assert pairs == pytest.approx([100, 100, 100, 75, 100, 600 / 7, 100 * 28.5 / 29])
    assert cells(flawless)["always-before, online"] == [100] * 7
    cells_of = result.facts["steps"]["flawless"]["always-before: or a successor was done"]
    assert cells_of["whole"] == {"found": 3, "alarms": 1, "missed": 0, "passed": 28}
    assert cells_of["cut"] == {"found": 2, "alarms": 0, "missed": 0, "passed": 27}
    assert counts.rows[0] == ["file", 11, 2, 32, 2, 2, 2, 1]
    assert result.facts["mistakes"]["time"] == {
        "7_20": {"premature": [1], "late": [2]},
        "7_21": {"premature": [1], "late": []},
    }
    assert run(folder, ExperimentOptions(), reported).to_json() == result.to_json()


def test_the_recording_is_left_out(folder: Path) -> None:
    (recipe,) = read_recipes(folder / "captaincook4d", "file")
    for test in recipe.recordings:
        others = {one.video.id for one in recipe.recordings} - {test.video.id}
        assert {video.id for video in recipe.training(test, flawless=False)} == others
        assert {video.id for video in recipe.training(test, flawless=True)} == others - {"7_20", "7_21"}


def test_a_row_without_the_mark_is_named(folder: Path) -> None:
    path = folder / "captaincook4d" / "complete_step_annotations.json"
    document = json.loads(path.read_text())
    del document["7_20"]["steps"][1]["has_errors"]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"7_20\.steps\[1\]\.has_errors: is missing"):
        read_recipes(path.parent, "file")


# -- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["file", "time"])
def test_real_recordings(data: Path, order: str) -> None:
    recipes = read_recipes(data / "captaincook4d", order)
    document = json.loads((data / "captaincook4d" / "complete_step_annotations.json").read_text())
    recordings = {one.video.id: one for recipe in recipes for one in recipe.recordings}
    assert recordings.keys() == document.keys()
    for id, one in recordings.items():
        rows = [row for row in document[id]["steps"] if row["start_time"] >= 0]
        if order == "time":
            assert [segment.start for segment in one.video.segments] == sorted(row["start_time"] for row in rows)
            marked = {(row["start_time"], row["end_time"]) for row in rows if row["has_errors"]}
            found = {(s.start, s.end) for s, mark in zip(one.video.segments, one.marked, strict=True) if mark}
            assert found == marked
        else:
            assert list(one.marked) == [row["has_errors"] for row in rows]
        if not any(row["has_errors"] for row in document[id]["steps"]):
            assert not any(one.out_of_order)


def test_the_graph_of_people_asks_for_all_parents() -> None:
    graph = SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])})
    found = annotate_recording(untimed(["a", "c", "b"]), (False, True, True), graph, False)
    assert (found.premature, found.late) == ((False, True, False), (False, False, True))
