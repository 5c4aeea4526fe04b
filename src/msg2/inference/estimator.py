"""Learning a graph and predicting with it, in the manners of scikit-learn, which is not needed for it.

The constructor only stores, `fit` returns the estimator, what was learnt ends in an underscore: so scikit-learn can
clone it, cross-validate it and search its options.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from msg2.assist.next_step import next_steps
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.inference import DEFAULT, infer
from msg2.task import Segment, Step, Task, Video

Demonstrations: TypeAlias = Iterable[Video | Sequence[Step]]
"""Videos, or the steps of each in their order."""


class SubtaskGraphEstimator:
    """Learns the graph of a task from demonstrations, and predicts which step comes next after some.

    `method` and `options` are those of `msg2.infer`. After `fit` there is `graph_`, a `SubtaskGraph`.

    >>> seen = [["whisk", "dip", "fry"], ["whisk", "heat", "dip", "fry"], ["heat", "whisk", "dip", "fry"]]
    >>> model = SubtaskGraphEstimator(method="msg2", delta=0.9).fit(seen)
    >>> model.predict([["whisk"], ["heat", "whisk", "dip"]])
    ['dip', 'fry']
    """

    graph_: SubtaskGraph

    def __init__(self, method: str = DEFAULT.method, **options: Any) -> None:
        self.method = method
        self.options = options

    def fit(self, X: Task | Demonstrations, y: object = None) -> SubtaskGraphEstimator:
        """Learn `graph_`; `y` is not used."""
        self.graph_ = infer(X if isinstance(X, Task) else _task(X), self.method, **self.options)
        return self

    def predict(self, X: Iterable[Sequence[Step]]) -> list[Step | None]:
        """For each sequence of steps that are done, the most probable next one; None where nothing is left."""
        rankings = [next_steps(self._graph(), done) for done in X]
        return [ranking[0].step if ranking else None for ranking in rankings]

    def score(self, X: Task | Demonstrations, y: object = None) -> float:
        """The share of the steps in demonstrations that were predicted from those before them.

        Steps that `graph_` does not know are wrong predictions, and not part of what is done.
        """
        known = set(self._graph().steps)
        right = [
            step in known and self.predict([[done for done in steps[:place] if done in known]]) == [step]
            for steps in map(_steps, X)
            for place, step in enumerate(steps)
        ]
        return sum(right) / len(right) if right else 0.0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given."""
        return {"method": self.method, **self.options}

    def set_params(self, **params: Any) -> SubtaskGraphEstimator:
        """Change what the constructor was given."""
        self.method = params.pop("method", self.method)
        self.options = {**self.options, **params}
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"SubtaskGraphEstimator({given})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")

    def __sklearn_tags__(self) -> Any:
        """Only ever asked by scikit-learn itself."""
        from sklearn.utils import Tags, TargetTags  # type: ignore[import-untyped]

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _graph(self) -> SubtaskGraph:
        if not hasattr(self, "graph_"):
            raise InputError("nothing has been learnt yet", hint="call fit() first")
        return self.graph_


def _steps(demonstration: Video | Sequence[Step]) -> list[Step]:
    """The steps in their order, each once."""
    if isinstance(demonstration, Video):
        return list(demonstration.sequence())
    if isinstance(demonstration, str):
        raise InputError("a demonstration is a text, not a sequence of steps", hint="give a list of lists of steps")
    return list(dict.fromkeys(demonstration))


def _task(demonstrations: Demonstrations) -> Task:
    videos = [
        seen if isinstance(seen, Video) else Video(str(number), map(Segment, _steps(seen)))
        for number, seen in enumerate(demonstrations, start=1)
    ]
    return Task("task", {segment.step for video in videos for segment in video.segments}, videos)
