"""Task -> SubtaskGraph, by any method of the registry. Pure: no files, no printing.

A new method is one module with `learn(evidence, options) -> Learnt` and one line in `METHODS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from msg2.errors import InputError, shortened
from msg2.evidence import Evidence
from msg2.graph import Formula, SubtaskGraph
from msg2.inference import choice, decision, likelihood, order, precision, wording
from msg2.inference.confidence import Each, Learn, Shares, bootstrapped, confident, with_probabilities
from msg2.inference.knowledge import Knowledge, Obeying
from msg2.inference.layers import purity
from msg2.inference.learnt import Learnt, Statistic, evidence_entries
from msg2.inference.names import Encoder
from msg2.inference.roles import with_roles
from msg2.options import (
    BootstrapOptions,
    DecisionOptions,
    DeltaOptions,
    EvidenceOptions,
    InferenceOptions,
    LikelihoodOptions,
    OrderOptions,
    PrecisionOptions,
    WordingOptions,
)
from msg2.task import Step, Task

__all__ = [
    "METHODS", "Knowledge", "Method", "Shares", "Study", "SweepPoint", "infer", "method_and_options", "study", "sweep",
]  # fmt: skip

DEFAULT = InferenceOptions()

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Method:
    """A way to learn a graph: its options class and its function."""

    options: type[Any]
    learn: Callable[..., Learnt]
    reads_names: bool = False
    """Whether its function takes an `encoder` of the names of the steps."""


METHODS: Mapping[str, Method] = {
    "msg2": Method(PrecisionOptions, precision.learn),
    "msgi": Method(DecisionOptions, decision.learn_msgi),
    "msgi+": Method(DecisionOptions, decision.learn_msgi_plus),
    "always-before": Method(OrderOptions, order.learn),
    "likelihood": Method(LikelihoodOptions, likelihood.learn, reads_names=True),
    "wording": Method(WordingOptions, wording.learn, reads_names=True),
}


@dataclass(frozen=True, slots=True)
class Study:
    """A learnt graph together with what it was learnt from."""

    graph: SubtaskGraph
    evidence: Evidence
    learnt: Learnt
    shares: Shares | None = None
    """Of bootstrap samples, where there are any."""

    def statistics(self) -> Iterator[Statistic]:
        """Purity of every ordered pair and score of every candidate: what δ and α are chosen by.

        And where there are samples, the probability of every ancestor relation and of every clause.
        """
        steps, before = self.evidence.steps, self.evidence.of_first_labels().before
        shares = purity(self.evidence.before)
        for m, n in product(range(len(steps)), repeat=2):
            together = int(before[n, m] + before[m, n])
            if together or shares[n, m]:
                chosen = steps[n] in self.graph.parents(steps[m])
                yield Statistic("purity", steps[m], steps[n], float(shares[n, m]), together, chosen)
        for name, candidates in sorted(self.learnt.candidates.items()):
            videos = int(self.graph.evidence[name]["videos"])
            for rank, candidate in enumerate(candidates):
                yield Statistic("score", name, str(candidate.formula), candidate.score, videos, rank == 0)
        if self.shares is not None:
            for m, n in np.argwhere(self.shares.ancestors.T).tolist():
                chosen, share = steps[n] in self.graph.ancestors(steps[m]), float(self.shares.ancestors[n, m])
                yield Statistic("ancestor", steps[m], steps[n], share, int(before[n, m] + before[m, n]), chosen)
            for name, formula in self.graph.preconditions.items():
                videos = int(self.graph.evidence[name]["videos"])
                for clause in formula.clauses():
                    yield Statistic("clause", name, str(clause), self.shares.clause(name, clause), videos, True)


Report: TypeAlias = Callable[[str], None]
"""Is told, in words, what is being done: for work that may take long."""


def infer(
    task: Task,
    method: str = DEFAULT.method,
    *,
    seed: int = DEFAULT.seed,
    knowledge: Knowledge | None = None,
    bootstrap: BootstrapOptions | None = None,
    names: Encoder | None = None,
    **options: Any,
) -> SubtaskGraph:
    """The subtask graph of a task, with the evidence behind every precondition.

    `options` are those of the method (see `msg2.options`); `seed` shuffles the folds with which δ "auto" is chosen, and
    draws the samples of `bootstrap`, which say how sure the graph is. `knowledge` is obeyed exactly. `names` turns the
    names of steps into vectors, for methods that read them (see `msg2.media.text`).

    >>> from msg2.task import Segment, Video
    >>> task = Task("tea", ["boil", "pour"], [Video(v, [Segment("boil"), Segment("pour")]) for v in "12"])
    >>> print(infer(task, delta=0.9).precondition("pour"))
    boil
    """
    return study(task, method, seed=seed, knowledge=knowledge, bootstrap=bootstrap, names=names, **options).graph


def study(
    task: Task,
    method: str = DEFAULT.method,
    *,
    seed: int = DEFAULT.seed,
    knowledge: Knowledge | None = None,
    bootstrap: BootstrapOptions | None = None,
    names: Encoder | None = None,
    report: Report | None = None,
    each: Each | None = None,
    **options: Any,
) -> Study:
    """As `infer`, keeping what the graph was learnt from; `each` may share the samples out, see `bootstrapped`."""
    evidence = Evidence.of(task)
    how, chosen = method_and_options(method, options)
    facts: dict[str, Any] = {}
    if names is not None:
        if not how.reads_names:
            raise InputError(f"the method {method!r} does not read the names of the steps")
        how = replace(how, learn=partial(how.learn, encoder=names))
        facts["names"] = str(getattr(names, "name", "an encoder"))
    if knowledge is not None and knowledge.pairs:
        knowledge.check(task)
        how = replace(how, learn=Obeying(how.learn, knowledge))
        facts["knowledge"] = knowledge.to_json()
    if getattr(chosen, "delta", None) == "auto":
        tried = choice.trials(evidence, _learner(how, chosen, report), DeltaOptions(), seed)
        delta = choice.best(tried).delta if tried else max(DeltaOptions().grid)
        rule = "highest likelihood of held-out videos" if tried else "too few videos to hold any out: the strictest"
        chosen = replace(chosen, delta=delta)
        facts["delta_chosen"] = {
            "rule": rule,
            "fits": {f"{trial.delta:g}": round(trial.fit, 6) for trial in tried},
        }
        _log.info("%s: delta %g was chosen from the data (%s)", task.name, delta, rule)
    learn: Learn = partial(how.learn, options=chosen)
    learnt, shares = learn(evidence), None
    if bootstrap is not None:
        if report is not None:
            report(f"learning from {bootstrap.samples} samples of the videos")
        shares = bootstrapped(evidence, learn, bootstrap, seed, each)
        facts["bootstrap"] = {**asdict(bootstrap), "seed": seed}
        if bootstrap.confidence is not None:
            learnt = confident(evidence.steps, learnt, shares, bootstrap.confidence)
    made = {"name": method, "options": asdict(chosen), **facts, "videos": list(evidence.videos)}
    graph = SubtaskGraph(task.name, task.steps, learnt.preconditions, made)
    entries = with_roles(dict(evidence_entries(evidence, learnt, EvidenceOptions())), evidence, graph)
    if shares is not None:
        entries = {n: with_probabilities(entry, n, graph.precondition(n), shares) for n, entry in entries.items()}
    for note in (*learnt.notes, *_doubts(evidence, entries)):
        _log.warning("%s: %s", task.name, note)
    return Study(replace(graph, evidence={name: entries[name] for name in graph.steps}), evidence, learnt, shares)


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One δ: edges of the graph learnt from all videos, share of labels that obey it, fit of held-out videos (nats)."""

    delta: float
    edges: int
    held: float
    fit: float
    chosen: bool


def sweep(
    task: Task, method: str = DEFAULT.method, *, seed: int = DEFAULT.seed, report: Report | None = None, **options: Any
) -> list[SweepPoint]:
    """Edges and fit for every δ of the grid; the one that "auto" would choose is marked. Needs two videos."""
    evidence = Evidence.of(task)
    how, chosen = method_and_options(method, options)
    if not hasattr(chosen, "delta"):
        raise InputError(f"the method {method!r} has no delta to sweep over")
    learner = _learner(how, chosen, report)
    tried = choice.trials(evidence, learner, DeltaOptions(), seed)
    if not tried:
        raise InputError(f"task {task.name!r} has fewer than two videos with labels: there is nothing to hold out")
    graphs = [learner(evidence, trial.delta) for trial in tried]
    return [
        SweepPoint(
            trial.delta,
            sum(len(formula.support) for formula in formulas.values()),
            choice.held_share(formulas, evidence),
            trial.fit,
            trial == choice.best(tried),
        )
        for trial, formulas in zip(tried, graphs, strict=True)
    ]


def method_and_options(method: str, options: Mapping[str, Any]) -> tuple[Method, Any]:
    """The method of this name and its options, checked."""
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}", hint=f"the methods are {', '.join(METHODS)}")
    how = METHODS[method]
    known = [field.name for field in fields(how.options)]
    for name in options:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the method {method!r} has no option {name!r}", hint=takes)
    try:
        return how, how.options(**options)
    except TypeError as error:
        raise InputError(f"an option of the method {method!r} is of the wrong type ({error})") from error


def _learner(how: Method, options: Any, report: Report | None) -> choice.Learner:
    def learner(evidence: Evidence, delta: float) -> Mapping[Step, Formula]:
        if report is not None:
            report(f"trying δ = {delta:g}")
        return how.learn(evidence, replace(options, delta=delta)).preconditions

    return learner


def _doubts(evidence: Evidence, entries: Mapping[Step, Mapping[str, Any]]) -> Iterator[str]:
    """What a user should know before trusting the graph; `entries` as in the graph file."""
    if len(evidence.videos) < 2:
        yield f"learnt from {len(evidence.videos)} video(s): any order in it looks necessary"
    unseen = [name for name, count in zip(evidence.steps, evidence.occurrences(), strict=True) if not count]
    if unseen:
        yield f"no video shows {', '.join(shortened(name) for name in unseen[:3])}{' …' if len(unseen) > 3 else ''}"
    if len(evidence.steps) > 1 and not evidence.before.any():
        yield "no video orders any two steps, so there is nothing to learn from"
    edges = [edge for entry in entries.values() for edge in entry.get("edges", {}).values()]
    weak = sum("weak" in edge for edge in edges)
    if weak:
        yield f"{weak} of {len(edges)} edges rest on fewer than {EvidenceOptions().weak_below} videos"
