"""The estimator behaves as scikit-learn asks, and learns what `infer` learns."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

import msg2
from msg2 import InputError, Segment, SubtaskGraphEstimator, Task, Video

SEEN = [["whisk", "dip", "fry"], ["whisk", "heat", "dip", "fry"], ["heat", "whisk", "dip", "fry"]] * 4


def test_it_learns_what_infer_learns() -> None:
    task = Task(
        "task", ["whisk", "dip", "fry", "heat"], [Video(f"{n:02}", map(Segment, s)) for n, s in enumerate(SEEN)]
    )
    expected = msg2.infer(task, "always-before", delta=0.9)
    model = SubtaskGraphEstimator("always-before", options={"delta": 0.9})
    for X in (task, task.videos, SEEN, (list(steps) for steps in SEEN)):
        assert model.fit(X) is model
        assert model.graph_.preconditions == expected.preconditions
    assert model.predict([[], ["whisk", "dip"], ["whisk", "heat", "dip", "fry"]])[1:] == ["fry", None]
    assert model.predict([["heat"]]) == [msg2.next_steps(expected, done=["heat"])[0].step]


def test_the_score_is_the_share_of_right_steps() -> None:
    model = SubtaskGraphEstimator("always-before").fit([["a", "b", "c"]] * 3)
    assert model.score([["a", "b", "c"]]) == 1
    assert model.score([["a", "c", "b"]]) == 2 / 3  # b is predicted after a, and after a and c
    assert model.score([["a", "new", "b", "c"]]) == 3 / 4
    with pytest.raises(InputError, match=r"empty"):
        model.score([])


def test_scikit_learn_can_handle_it() -> None:
    model = SubtaskGraphEstimator(method="msg2", options={"delta": 0.9})
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert copy.get_params(deep=False).keys() == set(inspect.signature(SubtaskGraphEstimator).parameters)
    assert repr(copy) == "SubtaskGraphEstimator(method='msg2', options={'delta': 0.9})"
    changed = copy.set_params(options__delta=0.5, options__alpha=0.1, seed=3).get_params()
    assert (changed["options"], changed["options__delta"], changed["seed"]) == ({"delta": 0.5, "alpha": 0.1}, 0.5, 3)
    assert model.get_params()["options__delta"] == 0.9  # the copy shares nothing that changes
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit(SEEN))
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))
    assert all(0.5 < share <= 1 for share in cross_val_score(model, SEEN, cv=3))
    search = GridSearchCV(
        SubtaskGraphEstimator(), {"method": ["msg2", "always-before"], "options__delta": [0.5, 0.9]}, cv=3
    )
    assert search.fit(SEEN).best_estimator_.predict([["heat", "whisk", "dip"]]) == ["fry"]
    assert pickle.loads(pickle.dumps(model)).graph_ == model.graph_


def test_scikit_learn_is_not_needed() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; import msg2\n"
        "model = msg2.SubtaskGraphEstimator('msg2', options={'delta': 0.9}).fit([['a', 'b']] * 3)\n"
        "print(*model.predict([['a']]), model.score([['a', 'b']]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b 1.0\n"


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InputError, match=r"nothing has been learnt yet\n  call fit\(\) first"):
        SubtaskGraphEstimator().predict([["a"]])
    with pytest.raises(InputError, match="text"):
        SubtaskGraphEstimator().fit(["ab", "ab"])
    with pytest.raises(InputError, match="there is no method 'magic'"):
        SubtaskGraphEstimator("magic").fit(SEEN)
    with pytest.raises(InputError, match="has no option 'depth'"):
        SubtaskGraphEstimator(options={"depth": 3}).fit(SEEN)
    with pytest.raises(InputError, match="the estimator has no parameter 'depth'"):
        SubtaskGraphEstimator().set_params(depth=3)
