"""The one way from data to graphs: read, choose the method, learn, obey constraints, bootstrap, count the evidence.

`run_inference_on_all` does it; `run_inference`, `infer` and `infer_all` are shorter ways to call it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from msg2.errors import InputError, require
from msg2.formats.conversion import Demonstrations, read_sequences, to_task
from msg2.formats.reading import choose_task
from msg2.graph import Formula, SubtaskGraph
from msg2.graph.closure import reduce_order
from msg2.graph.evidence import WEAK_BELOW
from msg2.inference.bootstrap import GraphFrequencies, bootstrap, choose_samples, drop_uncertain_clauses
from msg2.inference.constraints import Constraints, learn_with_constraints
from msg2.inference.delta import Learner, SweepPoint, best_delta, evaluate_grid, sweep_delta
from msg2.inference.likelihood.score import NameEncoder
from msg2.inference.likelihood.statements import OrderStatements
from msg2.inference.msg2 import purity
from msg2.inference.registry import DEFAULT_METHOD, Method, MethodOptions, find_method, make_options, say_who_has_it
from msg2.inference.result import LearnedPreconditions, Statistic, step_evidence
from msg2.options import fields_to_json
from msg2.parallel import parallel_map
from msg2.progress import Progress, no_progress
from msg2.sequences import Sequences
from msg2.task import Step, Task
from msg2.text import short_repr
from msg2.text_encoders import text_encoder

_log = logging.getLogger(__name__)

_MANY_TIES = 0.05
"""Share of equal instants from which it is said what is made of them."""
SWEPT_METHOD = "msg2"
"""The default method has no δ; the paper's has."""


@dataclass(frozen=True, slots=True)
class InferenceResult:
    """A learned graph together with what it was learned from."""

    graph: SubtaskGraph
    sequences: Sequences
    learned: LearnedPreconditions
    frequencies: GraphFrequencies | None = None
    """Of bootstrap samples, where there are any."""
    notes: tuple[str, ...] = ()
    """What a user should know before trusting the graph; logged as warnings, too."""

    def statistics(self) -> Iterator[Statistic]:
        """Yield purities, scores of candidates and, with bootstrap samples, probabilities of ancestors and clauses."""
        steps, before = self.sequences.steps, self.sequences.variants.before
        shares, together = purity(self.sequences.before), before + before.T
        for m, n in np.argwhere((together > 0) | (shares.T > 0)).tolist():
            chosen = steps[n] in self.graph.parents(steps[m])
            yield Statistic("purity", steps[m], steps[n], float(shares[n, m]), int(together[n, m]), chosen)
        for name, candidates in sorted(self.learned.candidates.items()):
            videos = self.graph.step_evidence(name).videos or 0
            for rank, candidate in enumerate(candidates):
                yield Statistic("score", name, str(candidate.formula), candidate.score, videos, rank == 0)
        if self.frequencies is not None:
            for m, n in np.argwhere(self.frequencies.ancestors.T).tolist():
                chosen, share = steps[n] in self.graph.ancestors(steps[m]), float(self.frequencies.ancestors[n, m])
                yield Statistic("ancestor", steps[m], steps[n], share, int(together[n, m]), chosen)
            for name, formula in self.graph.preconditions.items():
                videos = self.graph.step_evidence(name).videos or 0
                for clause in formula.clauses():
                    share = self.frequencies.precondition(name, clause)
                    yield Statistic("clause", name, str(clause), share, videos, True)


def infer(
    data: Demonstrations,
    method: str = DEFAULT_METHOD,
    *,
    task: str | None = None,
    seed: int = 0,
    constraints: Constraints | None = None,
    samples: int | None = None,
    confidence: float | None = None,
    names: NameEncoder | str | None = None,
    statements: Sequence[OrderStatements] = (),
    jobs: int = 1,
    progress: Progress = no_progress,
    **options: Any,
) -> SubtaskGraph:
    """Learn the subtask graph of a task, with the evidence behind every precondition.

    Parameters
    ----------
    data : Task, path, DataFrame, sequences or mapping
        The demonstrations: a `Task`; a file or folder in any format that msg2 reads; a table of steps; a list with the
        steps of each video in their order, or a mapping from video ids to such lists.
    method : str
        A name in `msg2.inference.METHODS`.
    task : str, optional
        Which task, where `data` holds several.
    seed : int
        Shuffles the folds with which δ "auto" is chosen, and draws the bootstrap samples.
    constraints : Constraints, optional
        What is known beforehand; it is obeyed exactly.
    samples : int, optional
        Learn again from so many bootstrap samples of the videos, which say how sure every edge is.
    confidence : float, optional
        Drop what holds in a smaller share of the samples; with this and no `samples`, 200 are drawn.
    names : callable or str, optional
        Turns the names of steps into vectors, for methods that read them: an encoder, or its name ("words").
    statements : sequence of OrderStatements, optional
        Who says what of the order of the steps: a written procedure, people, a model. Each is believed as far as the
        videos show it right.
    jobs : int
        Processes that share the bootstrap samples.
    progress : Progress
        Is told what is being done.
    **options
        Options of the method: see its dataclass.

    Returns
    -------
    SubtaskGraph

    Raises
    ------
    InputError
        Where the data, the method or an option cannot be used.

    >>> graph = infer([["boil", "pour"]] * 5)
    >>> print(graph.precondition("pour"))
    boil
    >>> infer([["boil", "pour"]] * 5, "msg2", delta=0.9).method["name"]  # the paper's method, with an option of its own
    'msg2'
    """
    return run_inference(
        data, method, task=task, seed=seed, constraints=constraints, samples=samples, confidence=confidence,
        names=names, statements=statements, jobs=jobs, progress=progress, **options,
    ).graph  # fmt: skip


def infer_all(
    data: Demonstrations,
    method: str = DEFAULT_METHOD,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
    **settings: Any,
) -> list[SubtaskGraph]:
    """Learn the graph of every task in the data; as `infer`, but `jobs` processes share the tasks.

    Parameters
    ----------
    data : path, DataFrame or other demonstrations
        As in `infer`.
    method : str
        A name in `msg2.inference.METHODS`.
    jobs : int
        Tasks that are learned at the same time.
    progress : Progress
        Is told after every task.
    **settings
        `seed`, `constraints`, `samples`, `confidence`, `names` and the options of the method, as in `infer`.

    Returns
    -------
    list of SubtaskGraph
        In the order of the tasks.

    >>> from msg2.task import Segment, Task, Video
    >>> video = Video("v1", [Segment("boil"), Segment("pour")])
    >>> [graph.task for graph in infer_all([Task(name, ["boil", "pour"], [video]) for name in ("tea", "coffee")])]
    ['tea', 'coffee']
    """
    return [result.graph for result in run_inference_on_all(data, method, jobs=jobs, progress=progress, **settings)]


def run_inference(
    data: Demonstrations | Sequences,
    method: str = DEFAULT_METHOD,
    *,
    task: str | None = None,
    constraints: Constraints | None = None,
    **settings: Any,
) -> InferenceResult:
    """Learn a graph as `infer` does, and keep what it was learned from."""
    if isinstance(data, Sequences):
        chosen = data
    else:
        where = data if isinstance(data, str | Path) else "data"
        chosen = choose_task(read_sequences(data, task), task, where)
    if constraints is not None:
        constraints.check(chosen.steps, chosen.name)
    (result,) = run_inference_on_all([chosen], method, constraints=constraints, **settings)
    return result


def run_inference_on_all(
    data: Demonstrations | Sequence[Sequences],
    method: str = DEFAULT_METHOD,
    *,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
    **settings: Any,
) -> Iterator[InferenceResult]:
    """Learn the graphs of several tasks in parallel; a single task uses the processes for its bootstrap samples."""
    is_read = isinstance(data, list) and any(isinstance(item, Sequences) for item in data)
    if is_read:
        tasks = cast("list[Sequences]", data)
    else:
        tasks = read_sequences(cast(Demonstrations, data), engine=engine, jobs=jobs)
    if len(tasks) == 1:
        results = iter([_learn(tasks[0], method, jobs=jobs, engine=engine, progress=progress, **settings)])
    else:
        results = parallel_map(partial(_learn, method=method, **settings), tasks, min(jobs, max(1, len(tasks))), engine)
    for number, result in enumerate(results, start=1):
        name, delta = result.graph.task, result.graph.method.get("delta_chosen")
        if delta is not None:
            value = result.graph.method["options"]["delta"]
            _log.info("%s: delta %g was chosen from the data (%s)", name, value, delta["rule"])
        for note in result.notes:
            _log.warning("%s: %s", name, note)
        if len(tasks) > 1:
            progress(number, len(tasks), name)
        yield result


def _learn(
    sequences: Sequences,
    method: str,
    *,
    seed: int = 0,
    constraints: Constraints | None = None,
    samples: int | None = None,
    confidence: float | None = None,
    names: NameEncoder | str | None = None,
    statements: Sequence[OrderStatements] = (),
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
    **options: object,
) -> InferenceResult:
    """Learn the graph of one task; see `infer`."""
    samples = choose_samples(samples, confidence)  # what cannot be used is refused before the work
    chosen_method, chosen = find_method(method), make_options(method, options)
    facts: dict[str, object] = {}
    if names is not None:
        require(chosen_method.reads_names, f"the method {method!r} does not read the names of the steps")
        if isinstance(names, str):
            names = text_encoder(names)
        chosen_method = replace(chosen_method, learn=partial(chosen_method.learn, encoder=names))
        facts["names"] = str(getattr(names, "name", "an encoder"))
    if statements:
        require(chosen_method.reads_statements, f"the method {method!r} takes no statements on the order of steps")
        chosen_method = replace(chosen_method, learn=partial(chosen_method.learn, statements=statements))
    own = None if constraints is None else constraints.about(sequences.steps)
    if own is not None and own.pairs:
        # Hints change what is counted, so δ may matter beyond the purities of the videos.
        obeying = partial(learn_with_constraints, learn=chosen_method.learn, constraints=own)
        chosen_method = replace(chosen_method, learn=obeying, compares_purity=False)
        facts["knowledge"] = own.to_json()
    if getattr(chosen, "delta", None) == "auto":
        fits = evaluate_grid(sequences, _learner_at_delta(chosen_method, chosen), seed, progress)
        rule = "highest likelihood of held-out videos" if fits else "too few videos to hold any out: the strictest"
        chosen = replace(chosen, delta=best_delta(fits))
        facts["delta_chosen"] = {"rule": rule, "fits": {f"{delta:g}": round(fit, 6) for delta, fit in fits.items()}}
    if getattr(chosen, "absent", None) == "auto":
        chosen = replace(chosen, absent=sequences.absent)
    sequences = replace(sequences, absent=getattr(chosen, "absent", sequences.absent))
    learn = partial(chosen_method.learn, options=chosen)
    told = {"progress": progress} if chosen_method.tells_progress and progress is not no_progress else {}
    learned, frequencies = learn(sequences, **told), None
    if samples is not None:
        frequencies = bootstrap(
            sequences, learned.relearn or learn, samples, seed, jobs=jobs, engine=engine, progress=progress
        )
        facts["bootstrap"] = {"samples": samples, "confidence": confidence, "seed": seed}
        if confidence is not None:
            learned = drop_uncertain_clauses(sequences.steps, learned, frequencies, confidence)
    if learned.model:
        facts["model"] = dict(learned.model)
    made = {"name": method, "options": fields_to_json(chosen), **facts, "videos": list(sequences.videos)}
    graph = learned.graph(sequences.steps, sequences.name, made)
    graph = replace(graph, order=reduce_order(graph), rules=() if own is None else own.as_rules())
    evidence = step_evidence(sequences, graph, learned, frequencies)
    edges = [support for entry in evidence.values() for support in entry.get("edges", {}).values()]
    for source in statements:
        for before, name in source.before & graph.edge_pairs():
            support = evidence[name]["edges"][before]
            support["said_by"] = [*support.get("said_by", ()), source.source]
    notes = (*learned.notes, *_doubts(sequences, len(edges), sum("weak" in support for support in edges)))
    return InferenceResult(replace(graph, evidence=evidence), sequences, learned, frequencies, notes)


def sweep(
    data: Demonstrations,
    method: str = SWEPT_METHOD,
    *,
    task: str | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    **options: Any,
) -> list[SweepPoint]:
    """Learn a graph for every δ of the grid: its edges, and how well it fits held-out videos.

    Parameters
    ----------
    data : Task, path, DataFrame, sequences or mapping
        As in `infer`.
    method : str
        One that has a δ; by default the paper's, since `likelihood` has none.
    task : str, optional
        Which task, where `data` holds several.
    seed : int
        Shuffles the folds.
    progress : Progress
        Is told before every δ.
    **options
        Options of the method.

    Returns
    -------
    list of SweepPoint
        In the order of the grid; the δ that "auto" would choose is marked.

    Raises
    ------
    InputError
        Where the method has no δ, or fewer than two videos have labels.

    >>> points = sweep([["boil", "pour"], ["boil", "pour"], ["pour", "boil"], ["boil", "pour"]])
    >>> [(point.delta, point.edges) for point in points if point.delta in (0.6, 0.9)]
    [(0.6, 1), (0.9, 0)]
    """
    chosen_task = to_task(data, task)
    chosen_method, chosen = find_method(method), make_options(method, options)
    has_delta = hasattr(chosen, "delta")
    require(has_delta, f"the method {method!r} has no delta to sweep over", hint=say_who_has_it("delta"))
    points = sweep_delta(Sequences.from_task(chosen_task), _learner_at_delta(chosen_method, chosen), seed, progress)
    fault = "has fewer than two videos with labels: there is nothing to hold out"
    require(points, f"task {chosen_task.name!r} {fault}")
    return points


def keep_tasks_with_two_videos(tasks: Sequence[Task], where: str | Path) -> list[Task]:
    """Keep the tasks with at least two labelled videos, so that one can be held out; a warning names the others."""
    labelled = {task.name: sum(1 for video in task if video.segments) for task in tasks}
    if max(labelled.values(), default=0) < 2:
        raise InputError("no task has two videos with labels: none can be held out", where=where)
    for name, count in labelled.items():
        if count < 2:
            _log.warning("%s: left out, it has fewer than two videos with labels", name)
    return [task for task in tasks if labelled[task.name] > 1]


def _learner_at_delta(method: Method, options: MethodOptions) -> Learner:
    """The method with everything given but δ. Of few videos, many δ are one: what was learned is not learned again."""
    known: dict[tuple[int, bytes], tuple[Sequences, Mapping[Step, Formula]]] = {}

    def learner(sequences: Sequences, delta: float) -> Mapping[Step, Formula]:
        key = id(sequences), (purity(sequences.before) > delta).tobytes()
        if key not in known or not method.compares_purity:
            learned = method.learn(sequences, replace(options, delta=delta)).preconditions
            known[key] = sequences, learned  # kept as well: else its id could become that of another
        return known[key][1]

    return learner


def _doubts(sequences: Sequences, edges: int, weak: int) -> Iterator[str]:
    """What a user should know before trusting a graph with so many edges, some of them weak."""
    noun = "run" if sequences.absent == "skipped" else "video"
    if len(sequences.videos) < 2:
        yield f"learnt from {len(sequences.videos)} {noun}(s): any order in it looks necessary"
    unseen = [sequences.steps[place] for place in np.flatnonzero(~sequences.shown.any(axis=0))]
    if unseen:
        yield f"no {noun} shows {', '.join(short_repr(name) for name in unseen[:3])}{' …' if len(unseen) > 3 else ''}"
    if len(sequences.steps) > 1 and not sequences.variants.before.any():
        yield f"no {noun} orders any two steps, so there is nothing to learn from"
    pairs = sequences.weight[sequences.run[1:]] * (np.diff(sequences.run) == 0)
    moments = np.stack([sequences.start, sequences.end])
    tied = (np.diff(moments) == 0).all(axis=0) & (sequences.start == sequences.end)[1:]
    if pairs @ tied > _MANY_TIES * pairs.sum():
        share = pairs @ tied / pairs.sum()
        told = "nothing is assumed about their order (--ties file takes that of the file)"
        yield f"{share:.0%} of the labels are at the same instant as the one before them: {told}"
    if weak:
        yield f"{weak} of {edges} edges are weak: fewer than {WEAK_BELOW} {noun}s tell, or a quarter of them contradict"
