"""The scikit-learn estimator: it learns a graph and predicts the next step. You do not need scikit-learn to use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

from msg2.assist.rankers import next_steps
from msg2.errors import InputError, require
from msg2.formats.conversion import Demonstrations, to_task
from msg2.graph import SubtaskGraph
from msg2.inference import Constraints
from msg2.inference.inference import run_inference
from msg2.inference.registry import DEFAULT_METHOD
from msg2.options import OptionValue
from msg2.task import Step, Video

_NESTED = "options__"


@dataclass(eq=False, repr=False)
class SubtaskGraphEstimator:
    """Learns the graph of a task from demonstrations, and predicts which step comes next after some.

    Parameters
    ----------
    method : str
        A name in `msg2.inference.METHODS`.
    options : mapping of str to option value, optional
        Options of the method, such as ``{"delta": 0.9}``. A search over parameters calls them ``options__delta``.
    constraints : Constraints, optional
        What is known beforehand; it is obeyed exactly.
    samples : int, optional
        Bootstrap samples, which say how sure every edge is.
    confidence : float, optional
        Drop what holds in a smaller share of the samples.
    seed : int
        Of everything that is drawn at random.
    jobs : int
        Processes that share the samples.

    Attributes
    ----------
    graph_ : SubtaskGraph
        What was learned.
    steps_ : tuple of str
        The steps of the demonstrations: all that `predict` can answer.
    n_videos_ : int
        Demonstrations that were seen.

    >>> seen = [["whisk", "dip", "fry"], ["whisk", "heat", "dip", "fry"], ["heat", "whisk", "dip", "fry"]]
    >>> model = SubtaskGraphEstimator(method="msg2", options={"delta": 0.9}).fit(seen)
    >>> model.predict([["whisk"], ["heat", "whisk", "dip"]])
    ['dip', 'fry']
    """

    method: str = DEFAULT_METHOD
    _: KW_ONLY
    options: Mapping[str, OptionValue] | None = None
    constraints: Constraints | None = None
    samples: int | None = None
    confidence: float | None = None
    seed: int = 0
    jobs: int = 1
    graph_: SubtaskGraph = field(init=False)
    steps_: tuple[Step, ...] = field(init=False)
    n_videos_: int = field(init=False)

    def fit(self, X: Demonstrations, y: object = None) -> SubtaskGraphEstimator:
        """Learn `graph_`.

        Parameters
        ----------
        X : Task, path, DataFrame, sequences or mapping
            The demonstrations, as in `msg2.infer`.
        y : object
            Not used.

        Returns
        -------
        SubtaskGraphEstimator
            Itself.
        """
        settings = {**self.get_params(deep=False), **(self.options or {})}
        del settings["options"]
        result = run_inference(X, **settings)
        self.graph_, self.steps_, self.n_videos_ = result.graph, result.graph.steps, len(result.sequences.videos)
        return self

    def predict(self, X: Iterable[Sequence[Step]]) -> list[Step | None]:
        """Predict the most probable next step after each sequence of steps; None where nothing is left."""
        rankings = [next_steps(self._fitted_graph(), done) for done in X]
        return [ranking[0].step if ranking else None for ranking in rankings]

    def score(self, X: Demonstrations, y: object = None) -> float:
        """Compute the share of the steps in demonstrations that were predicted from those before them.

        Parameters
        ----------
        X : Task, path, DataFrame, sequences or mapping
            The demonstrations. Steps that `graph_` does not know are wrong predictions, and not part of what is done.
        y : object
            Not used.

        Returns
        -------
        float
            From 0 to 1; 0 where there are no steps.
        """
        known = set(self._fitted_graph().steps)
        right = [
            step in known and self.predict([[done for done in steps[:place] if done in known]]) == [step]
            for steps in map(Video.sequence, to_task(X))
            for place, step in enumerate(steps)
        ]
        return sum(right) / len(right) if right else 0.0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the constructor was given; with `deep`, every option of the method as well."""
        params = {own.name: getattr(self, own.name) for own in fields(self) if own.init}
        nested = {f"{_NESTED}{name}": value for name, value in (self.options or {}).items()} if deep else {}
        return {**params, **nested}

    def set_params(self, **params: Any) -> SubtaskGraphEstimator:
        """Change what the constructor was given; an unknown parameter is an `InputError`."""
        known = self.get_params(deep=False)
        for name, value in params.items():
            if name.startswith(_NESTED):
                self.options = {**(self.options or {}), name.removeprefix(_NESTED): value}
            elif name in known:
                setattr(self, name, value)
            else:
                hint = f"it has {', '.join(known)}; options of the method are {_NESTED}NAME"
                raise InputError(f"the estimator has no parameter {name!r}", hint=hint)
        return self

    def __repr__(self) -> str:
        defaults = SubtaskGraphEstimator().get_params()
        changed = [
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items() if value != defaults[name]
        ]
        return f"SubtaskGraphEstimator({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")

    def __sklearn_tags__(self) -> Any:
        """Only ever asked by scikit-learn itself."""
        from sklearn.utils import Tags, TargetTags  # type: ignore[import-untyped]

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _fitted_graph(self) -> SubtaskGraph:
        require(hasattr(self, "graph_"), "nothing has been learnt yet", hint="call fit() first")
        return self.graph_
