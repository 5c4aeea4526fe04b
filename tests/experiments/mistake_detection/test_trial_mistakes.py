"""Mistakes in trials: counts by hand, nothing later and no label of a scored trial used, and a planted rule found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.bootstrap_intervals import ConfidenceInterval
from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection import trial_mistake_model, trial_mistakes
from experiments.mistake_detection.assembly_experience import EvidenceWeights, Experience, count_events
from experiments.mistake_detection.assembly_trials import (
    PREVIOUS_MISTAKE,
    Action,
    Trial,
    participant_folds,
    read_trials,
)
from experiments.mistake_detection.trial_features import describe_trial
from experiments.mistake_detection.trial_mistake_model import EVIDENCE, fit_trial_mistakes
from experiments.mistake_detection.trial_mistakes import pooled_items
from experiments.mistake_detection.trial_scorers import MODEL, control_scorers, online_scorer
from experiments.result_tables import Result
from tests.experiments.progress_recorder import ProgressRecorder

HEADER = "toy,video,participant,start_frame,end_frame,verb,this,that,label,remark\n"
EVEN = EvidenceWeights(family=0.5, other=0.1, smoothing=1.0)


def trial(words: str, wrong: Sequence[int] = (), id: str = "v", toy: str = "a02", participant: str = "p") -> Trial:
    """Every word is an action of five seconds, ten apart: "cab>base" attaches, "cab<base" detaches."""
    actions = []
    for number, word in enumerate(words.split()):
        verb, sign = ("detach", "<") if "<" in word else ("attach", ">")
        this, that = word.split(sign)
        label = "mistake" if number in wrong else "correct"
        actions.append(Action(verb, this, that, 10.0 * number, 10.0 * number + 5, label, ""))
    return Trial(id, toy, id, participant, tuple(actions))


def planted(number: int = 40) -> list[Trial]:
    """Whoever puts on the cab before the seat has made a mistake; half of both take it off and put it on again."""
    trials = []
    for place in range(number):
        early, undone = place % 2 == 0, place % 4 < 2
        words = "cab>base seat>base roof>cab" if early else "seat>base cab>base roof>cab"
        wrong = [0] if early else []
        if undone:
            words = "cab>base cab<base seat>base cab>base" if early else "seat>base cab>base cab<base cab>base"
            wrong = [0] if early else [2]
        trials.append(trial(words, wrong, f"v{place}", f"c04{'abcd'[place // 4 % 4]}", f"p{place // 4 % 10}"))
    return trials


# -- reading ------------------------------------------------------------------------------------------------------


def test_where_starts_go_back_another_recording_begins(tmp_path: Path) -> None:
    rows = [
        "a02,7-a02,7,300,330,attach,cab,base,correct,",
        "a02,7-a02,7,360,420,detach,cab,base,mistake,previous one is mistake",
        "a02,7-a02,7,30,60,attach,base,cab,correction,",
        "a04,7-a04,7,10,20,attach,cab,base,mistake,previous one is a mistake",
    ]
    path = tmp_path / "mistakes.csv"
    path.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    first, second, third = read_trials(path)
    assert [one.id for one in (first, second, third)] == ["7-a02 1", "7-a02 2", "7-a04 1"]
    assert (first.video, first.toy, first.participant, first.minutes) == ("7-a02", "a02", "7", 4 / 60)
    assert [action.cause for action in first.actions] == ["", PREVIOUS_MISTAKE]
    assert third.actions[0].cause == PREVIOUS_MISTAKE
    assert [action.mistake for action in (*first.actions, *second.actions)] == [False, True, False]
    assert first.actions[0].joint == second.actions[0].joint == ("base", "cab")
    assert [action.step for action in first.actions] == ["attach cab to base", "detach cab from base"]
    assert [segment.start for segment in first.to_video().segments] == [10, 12]


def test_folds_are_of_participants() -> None:
    trials = planted()
    fold = participant_folds(trials, 5)
    assert sorted(fold.values()) == sorted([0, 1, 2, 3, 4] * 2)
    assert set(fold) == {one.participant for one in trials}


# -- what trials teach --------------------------------------------------------------------------------------------


def test_events_by_hand() -> None:
    counts = count_events(trial("cab>base cab<base seat>base cab>base", wrong=[0]))
    cab, seat = ("base", "cab"), ("base", "seat")
    assert counts["trial",] == counts["has", cab] == counts["has", "seat"] == 1
    assert counts["rate", "attach", cab, "wrong"] == counts["rate", "attach", cab, "right"] == 1
    assert counts["rate", "detach", "cab", "right"] == 1
    assert counts["rate", "attach", "base", "right"] == 2
    assert counts["beside", cab, seat, False, "wrong"] == counts["beside", cab, seat, True, "right"] == 1
    assert counts["beside", cab, seat, True, "wrong"] == counts["beside", cab, seat, False, "right"] == 0
    assert counts["beside", "cab", "seat", True, "right"] == 1
    assert counts["beside", seat, cab, False, "right"] == 1  # it had been taken off
    assert not any(key[:3] == ("beside", "cab", "base") for key in counts)  # which it is always attached to


def test_experience_weighs_by_kinship() -> None:
    others = [
        trial("cab>base", wrong=[0], id="1", toy="c04a"),
        trial("seat>base cab>base", id="2", toy="c04b"),
        trial("cab>base seat>base", id="3", toy="a02"),
    ]
    experience = Experience.of(trial("", toy="c04a"), others, EVEN)
    cab, seat = ("base", "cab"), ("base", "seat")
    assert experience.count("rate", "attach", cab, "wrong") == 1
    assert experience.count("rate", "attach", cab, "right") == pytest.approx(0.6)
    assert experience.order_log_odds(cab, seat) == pytest.approx(np.log(1.5 / 1.1))
    assert experience.order_log_odds(seat, cab) == pytest.approx(np.log(1.1 / 1.5))
    verb = (1 + 0.2) / (1 + 2 * 0.5 + 2 * 0.1 + 1)
    parts = [(1 + verb) / (1 + n + 1) for n in (1.2, 0.6)]  # base was right four times, cab twice
    assert experience.rate("attach", cab) == pytest.approx((1 + sum(parts) / 2) / (1 + 0.6 + 1))
    other = (1 + 10 * 0.5) / (1 + 10)
    family = (1 + 2 * other) / (1 + 2)
    assert experience.presence(seat) == pytest.approx((0 + family) / (1 + 1))
    assert experience.joints == {cab, seat}


def test_features_by_hand() -> None:
    experience = Experience.of(trial("", toy="c04a"), planted(), EVEN)
    words = "cab>base seat>base cab<base roof>cab cab>base"
    first, second, off, third, again = describe_trial(trial(words, toy="c04a"), experience, [0.8, 0.1, 0.3, 0.2, 0.5])
    assert first["mistake rate without another joint"] > 0
    assert first["wrong joints"] == first["last action wrong"] == 0
    assert first["this is loose"] == first["that is loose"] == 1
    assert (second["wrong joints"], second["wrong joint at this or that"]) == (0.8, 0.8)
    assert off["attached wrongly"] == pytest.approx(np.log(4))
    assert off["right after it was attached"] == 0
    assert off["attached to it since"] == pytest.approx(np.log(2))  # the seat is on the same base
    assert (third["this is loose"], third["that is loose"]) == (1, 1)
    assert third["wrong joints"] == pytest.approx(0.1)
    assert again["was wrong last time"] == pytest.approx(0.7)
    assert again["something new since it was detached"] == 1
    assert again["right after it was detached"] == 0
    assert again["both in one piece"] == 0


# -- the model ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_trials(data: Path) -> list[Trial]:
    path = data / "assembly101-mistakes" / "mistakes.csv"
    if not path.exists():
        pytest.skip("the annotations of Assembly101's mistakes are not here")
    return [one for one in read_trials(path) if one.family in ("c04", "c12")]


def test_a_planted_rule_is_found_and_tells_corrections_from_mistakes() -> None:
    model = fit_trial_mistakes(planted(120), EVIDENCE[:1])
    early, late = "cab>base cab<base", "seat>base cab>base cab<base"
    wrong, right = (model.probabilities(trial(words, toy="c04a", participant="new")) for words in (early, late))
    assert wrong[0] > 0.7
    assert max(right[:2]) < 0.2
    assert wrong[1] < 0.4 < 0.6 < right[2]


def test_nothing_later_and_no_label_is_used(real_trials: list[Trial]) -> None:
    people = sorted({one.participant for one in real_trials})[:1]
    training = [one for one in real_trials if one.participant not in people]
    scorers = {**control_scorers(training), "online": online_scorer(training)}
    del scorers["position relative to the length, offline"]
    scorers[MODEL] = fit_trial_mistakes(training, EVIDENCE[:1]).probabilities
    for one in (one for one in real_trials if one.participant in people):
        blind = replace(one, actions=tuple(replace(action, label="correct", cause="") for action in one.actions))
        whole = {row: list(score(one)) for row, score in scorers.items()}
        for length in range(1, len(one.actions) + 1):
            now = blind.actions[length - 1].start
            known = tuple(replace(action, end=min(action.end, now)) for action in blind.actions[:length])
            for row, score in scorers.items():
                assert score(replace(blind, actions=known))[-1] == pytest.approx(whole[row][length - 1]), row


def test_what_is_known_of_a_training_trial_comes_from_other_participants(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = Experience.of

    def of(one: Trial, trials: Sequence[Trial], weights: EvidenceWeights) -> Experience:
        asked.append((one.participant, {other.participant for other in trials}))
        return original(one, trials, weights)

    monkeypatch.setattr(trial_mistake_model.Experience, "of", staticmethod(of))
    fit_trial_mistakes(planted(), EVIDENCE[:1])
    assert len(asked) == 40
    assert all(who not in others and len(others) == 9 for who, others in asked)


# -- the experiment -----------------------------------------------------------------------------------------------


def test_other_causes_are_left_out() -> None:
    one = trial("a>b c>d e>f g>h", wrong=[0, 1])
    marked = tuple(
        replace(a, cause=cause) for a, cause in zip(one.actions, ["wrong order", "other", "", ""], strict=True)
    )
    one = replace(one, actions=marked)
    items = pooled_items([one], {"v": [0.1, 0.2, 0.3, 0.4]}, "wrong order")
    assert items.truth.tolist() == [True, False, False]
    assert items.score.tolist() == [0.1, 0.3, 0.4]
    assert pooled_items([one], {"v": [0.1, 0.2, 0.3, 0.4]}, None).truth.tolist() == [True, True, False, False]


def test_controls_by_hand() -> None:
    training = [trial("a>b c>d", id="1", toy="c04a"), trial("e>f", id="2", toy="c04b", participant="q")]
    scorers = control_scorers(training)
    one = trial("a>b e>f a<b", toy="c04a", participant="r")
    assert scorers["step never seen in videos of the toy"](one) == [0, 1, 1]
    assert scorers["step never seen in any other video"](one) == [0, 0, 1]
    assert scorers["verb is detach"](one) == [0, 0, 1]
    assert scorers["position in the video, seconds so far"](one) == [0, 10, 20]
    assert scorers["position relative to the length, offline"](one) == pytest.approx([0, 0.4, 0.8])
    assert online_scorer(training)(replace(one, toy="b02a")) == [0, 0, 0]


@pytest.mark.slow
def test_a_quick_run_on_real_data(data: Path, real_trials: list[Trial]) -> None:
    reported = ProgressRecorder()
    result = trial_mistakes.run(data, ExperimentOptions.for_quick_look(), reported)
    assert reported == ["participants of fold 1", "participants of fold 2"]
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "trial-mistakes"
    truth = [action.mistake for one in real_trials for action in one.actions]
    chance = _intervals(result)["chance"]
    assert chance["average precision"]["value"] == pytest.approx(np.mean(truth))
    assert chance["AUC"]["value"] == pytest.approx(0.5)
    minutes, negatives = sum(one.minutes for one in real_trials), truth.count(False)
    assert chance["recall at 0.1 false alarms a minute"]["value"] == pytest.approx(0.1 * minutes / negatives)
    assert list(result.chart)
    assert len(result.tables) == 6


def _intervals(result: Result) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = result.facts["intervals"]["all mistakes"]
    return found


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([(0.2, 0.1), (0.1, 0.05)], "above every other row."),
        ([(0.2, 0.1), (-0.1, -0.2)], "not above: b."),
        ([(0.2, -0.1), (0.1, 0.05)], "above every other row; above, but with an interval that includes 0: a."),
    ],
)
def test_where_the_model_is_not_ahead_is_said(differences: Sequence[tuple[float, float]], expected: str) -> None:
    ahead = {row: ConfidenceInterval(value, low, 1.0) for row, (value, low) in zip("ab", differences, strict=True)}
    assert trial_mistakes._describe_lead(ahead) == f"In average precision the regressions are {expected}"
