"""Scores of a graph: accuracy, SPOC and edge F1 against the true graph, compatibility with videos; violation rate.

Scores are in 0 … 1, and None stands for "not applicable". Accuracy, SPOC and compatibility judge the preconditions as
they stand, edge scores the transitive reduction of all edges. The violation rate says how noisy labels are (Sec. 3).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, agreement
from msg2.metrics.detection import ratio
from msg2.sequences import Sequences
from msg2.task import Step, Task, Video
from msg2.text import short_repr

_CHUNK = 1000  # videos scored at once by `compatibility`, so that memory does not grow with their number


@dataclass(frozen=True, slots=True)
class EdgeScores:
    """How the edges of a graph agree with the true ones; None where there is nothing to divide by."""

    true_positives: int
    predicted: int
    actual: int

    @property
    def precision(self) -> float | None:
        """Share of the predicted edges that are true; None for a graph without edges."""
        return ratio(self.true_positives, self.predicted)

    @property
    def recall(self) -> float | None:
        """Share of the true edges that were predicted; None for a truth without edges."""
        return ratio(self.true_positives, self.actual)

    @property
    def edits(self) -> int:
        """Number of edges to add or to remove until the graphs agree."""
        return self.predicted + self.actual - 2 * self.true_positives

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None where neither graph has an edge."""
        return ratio(2 * self.true_positives, self.predicted + self.actual)


def accuracy(graph: SubtaskGraph, truth: SubtaskGraph) -> float:
    """1/N Σ_n E_c[f_n(c) = f*_n(c)], uniform over all 2^N completion vectors (Eq. accuracy), exactly.

    Parameters
    ----------
    graph, truth : SubtaskGraph
        The graph to score, as it stands, and the true one, see `match_step_names`.

    Returns
    -------
    float
        0 … 1; 1 for graphs without steps.

    Raises
    ------
    InputError
        Where the steps of the two graphs cannot be matched.

    >>> from msg2.graph import step
    >>> truth = SubtaskGraph("t", "ab", {"b": step("a")})
    >>> accuracy(SubtaskGraph("t", "ab", {}), truth)  # a agrees always, b half of the time
    0.75
    """
    graph = match_step_names(graph, truth)
    shares = [agreement(graph.precondition(name), truth.precondition(name)) for name in truth.steps]
    return float(sum(shares, Fraction(0)) / len(shares)) if shares else 1.0


def spoc(graph: SubtaskGraph, truth: SubtaskGraph) -> float:
    """Strict partial order consistency, 1/(N(N−1)) Σ_{a≠b} [R_G(a, b) = R_G*(a, b)] (Eq. graphmetric).

    With a single step there is no pair to disagree on, and the score is 1.

    Parameters
    ----------
    graph, truth : SubtaskGraph
        The graph to score, as it stands, and the true one, see `match_step_names`.

    Returns
    -------
    float
        0 … 1.

    Raises
    ------
    InputError
        Where the steps of the two graphs cannot be matched.

    >>> from msg2.graph import step
    >>> spoc(SubtaskGraph("t", "ab", {}), SubtaskGraph("t", "ab", {"b": step("a")}))
    0.5
    """
    graph = match_step_names(graph, truth)
    size = len(truth.steps)
    if size < 2:
        return 1.0
    agree = graph.ancestor_matrix_in_order(truth.steps) == truth.ancestor_matrix
    return float((agree.sum() - size) / (size * (size - 1)))  # the diagonal always agrees


def compatibility(graph: SubtaskGraph, videos: Iterable[Video | Sequence[Step]]) -> float | None:
    """1/n Σ_j Π_{i<j, (x_j, x_i) ∈ R_G} f_{x_i}(x_1, …, x_{j−1}), averaged over sequences x (Eq. compatibility).

    In words: a step is compatible unless it comes after a step whose ancestor it is and whose precondition is still
    open. Steps count in the order of their first start, each once. Videos without labels are left out.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph to score, as it stands.
    videos : Task, or iterable of Video or of sequences of str
        What was done, in which order.

    Returns
    -------
    float or None
        0 … 1. A graph without preconditions agrees with everything, so its score says nothing: None, as for no
        labelled videos at all.

    Raises
    ------
    InputError
        Where a video has a step that the graph does not have.

    >>> from msg2.graph import any_of, step
    >>> compatibility(SubtaskGraph("t", "ABC", {"C": any_of([step("A"), step("B")])}), ["CAB", "ABC"])
    0.8333333333333333
    """
    if not graph.preconditions:
        return None
    shown = (video.sequence() if isinstance(video, Video) else tuple(dict.fromkeys(video)) for video in videos)
    sequences = [sequence for sequence in shown if sequence]
    scores = [
        score
        for first in range(0, len(sequences), _CHUNK)
        for score in _compatible_shares(graph, sequences[first : first + _CHUNK])
    ]
    return math.fsum(scores) / len(scores) if scores else None  # fsum: the order of the videos means nothing


def edge_scores(graph: SubtaskGraph, truth: SubtaskGraph, *, ends: bool) -> EdgeScores:
    """Precision, recall and F1 of the edges of both kinds, in the plain transitive reductions of the two graphs.

    Human task graphs do not tell what a step needs from what it only comes after; so both kinds of edges count alike.

    Parameters
    ----------
    graph, truth : SubtaskGraph
        The graph to score and the true one, see `match_step_names`.
    ends : bool
        Whether the edges from START and to END count too.

    Returns
    -------
    EdgeScores
        Counts, and the scores as properties.

    Raises
    ------
    InputError
        Where the steps of the two graphs cannot be matched.

    >>> from msg2.graph import step
    >>> truth = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    >>> scores = edge_scores(SubtaskGraph("t", "abc", {"b": step("a")}), truth, ends=False)
    >>> scores.precision, scores.recall
    (1.0, 0.5)
    """
    predicted = match_step_names(graph, truth).reduced_edge_pairs(ends)
    actual = truth.reduced_edge_pairs(ends)
    return EdgeScores(len(predicted & actual), len(predicted), len(actual))


@dataclass(frozen=True, slots=True)
class GraphScores:
    """All metrics of one graph against the true one; edges with START and END, and `inner` without them."""

    accuracy: float
    spoc: float
    compatibility: float | None
    edges: EdgeScores
    inner: EdgeScores

    def to_json(self) -> dict[str, float | None]:
        """Plain numbers; N/A is None."""
        values = {"accuracy": self.accuracy, "spoc": self.spoc, "compatibility": self.compatibility}
        for prefix, edges in (("", self.edges), ("inner_", self.inner)):
            values |= {prefix + score: getattr(edges, score) for score in ("precision", "recall", "f1")}
        return values


def score_graph(graph: SubtaskGraph, truth: SubtaskGraph, videos: Iterable[Video] = ()) -> GraphScores:
    """Compute every metric at once.

    Parameters
    ----------
    graph, truth : SubtaskGraph
        The graph to score, as it stands, and the true one, see `match_step_names`.
    videos : Task or iterable of Video
        For the compatibility; without any, it is None.

    Returns
    -------
    GraphScores

    Raises
    ------
    InputError
        Where the steps of the two graphs cannot be matched.
    """
    return GraphScores(
        accuracy(graph, truth),
        spoc(graph, truth),
        compatibility(graph, videos),
        edge_scores(graph, truth, ends=True),
        edge_scores(graph, truth, ends=False),
    )


def match_step_names(
    graph: SubtaskGraph, truth: SubtaskGraph, *, called: tuple[str, str] = ("graph", "truth"), partial: bool = False
) -> SubtaskGraph:
    """Rename the steps of a graph to those of the true graph.

    Names match exactly, else without regard to case and surrounding space.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph to rename.
    truth : SubtaskGraph
        The graph whose names are taken.
    called : tuple of two str
        What an error calls the two.
    partial : bool
        Whether steps may lack a partner; they keep their names.

    Returns
    -------
    SubtaskGraph
        `graph` with the step names of `truth`.

    Raises
    ------
    InputError
        Where a name has more than one partner, or none.

    >>> match_step_names(SubtaskGraph("t", ["Boil water "], {}), SubtaskGraph("t", ["boil water"], {})).steps
    ('boil water',)
    """
    if set(graph.steps) == set(truth.steps):
        return graph
    partners: defaultdict[str, tuple[list[Step], list[Step]]] = defaultdict(lambda: ([], []))
    for side, (own, other) in enumerate(((graph, truth), (truth, graph))):
        for name in own.steps:
            if name not in other.index:
                partners[name.strip().casefold()][side].append(name)
    for ours, theirs in partners.values():
        if ours and theirs and len(ours) + len(theirs) > 2:
            both = ", ".join(map(short_repr, sorted(ours + theirs)))
            owners = f"the steps of the {called[0]} and the {called[1]} cannot be matched"
            hint = "rename the steps so that each has one partner"
            raise InputError(f"{owners}: {both} differ only in case or spaces", hint=hint)
    for side in () if partial else (0, 1):
        alone = sorted(name for pair in partners.values() if not pair[1 - side] for name in pair[side])
        if alone:
            more = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
            what = f"the step {short_repr(alone[0])}{more} is in the {called[side]} but not in the {called[1 - side]}"
            raise InputError(what, hint="both must have the same steps")
    return graph.rename_steps({ours[0]: theirs[0] for ours, theirs in partners.values() if ours and theirs})


def _compatible_shares(graph: SubtaskGraph, sequences: Sequence[Sequence[Step]]) -> list[float]:
    """For each sequence the share of its steps that are compatible. A row is a place j in a sequence."""
    index = graph.index
    try:
        step = np.array([index[name] for sequence in sequences for name in sequence])  # (rows,)
    except KeyError as unknown:
        raise InputError(f"{short_repr(unknown.args[0])} is in a video but not a step of the graph") from None
    lengths = np.array([len(sequence) for sequence in sequences])
    video = np.repeat(np.arange(len(sequences)), lengths)  # (rows,)
    first_row = np.cumsum(lengths) - lengths
    place = np.arange(len(step)) - first_row[video]  # (rows,)
    place_of = np.full((len(sequences), len(index)), np.iinfo(np.int64).max)
    place_of[video, step] = place
    completed: NDArray[np.bool_] = place_of[video] < place[:, None]  # (rows, steps): x_1 … x_{j−1}
    broken = np.zeros(len(step), dtype=np.bool_)
    for name, formula in graph.preconditions.items():  # the x_i of the product
        asked = np.flatnonzero(completed[:, index[name]] & graph.ancestor_matrix[step, index[name]])
        broken[asked] |= ~formula.evaluate_rows(completed[asked], graph.steps)
    return list((np.add.reduceat(~broken, first_row, dtype=np.int64) / lengths).tolist())


def count_violations(preconditions: Mapping[Step, Formula], sequences: Sequences) -> int:
    """Count the labels that started while their precondition did not hold."""
    return sum(
        int(sequences.weight[run] @ ~preconditions[name].evaluate_rows(completed, sequences.steps))
        for index, name in enumerate(sequences.steps)
        if name in preconditions
        for run, completed in sequences.completed_at(index)
    )


def violation_rate(task: Task, graph: SubtaskGraph) -> float:
    """The share of all labels that start while their true precondition does not hold.

    Parameters
    ----------
    task : Task
        The labels.
    graph : SubtaskGraph
        The true graph.

    Returns
    -------
    float
        0 … 1; 0 without labels.

    >>> from msg2.graph import step
    >>> from msg2.task import Segment, Video
    >>> toast = SubtaskGraph("toast", ["fry", "flip"], {"flip": step("fry")})
    >>> violation_rate(Task("toast", toast.steps, [Video("v", [Segment("flip", 0, 1), Segment("fry", 2, 3)])]), toast)
    0.5
    """
    sequences = Sequences.from_task(task)
    labels = sequences.labels
    return count_violations(graph.preconditions, sequences) / labels if labels else 0.0
