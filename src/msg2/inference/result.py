"""What a method returns, the evidence that is counted for a graph file, and preconditions clause by clause.

A clause of a step is a condition that holds whenever the step is eligible, also through steps that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from msg2.graph import FALSE, TRUE, Formula, SubtaskGraph, Support, all_of, step
from msg2.graph.closure import required_steps
from msg2.graph.evidence import is_weak
from msg2.graph.graph_file import Loop
from msg2.inference.carelessness import careless_shares
from msg2.sequences import LastTimes, Sequences
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.inference.bootstrap import GraphFrequencies

MAX_EXAMPLES = 8
"""Videos in which a precondition held that are named; all in which it did not are."""
TIE_TOLERANCE = 1e-9
"""Scores that differ by less are equal; ties go to fewer literals, then by name."""
EXACTLY_ONE = 0.9
"""Share of the videos with any of the interchangeable steps that show exactly one of them, at least."""
SIGNIFICANCE = 0.01
"""Chance, over all steps of a task (Bonferroni), to call a step optional; over all pairs, interchangeable."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A precondition that was considered for a step, with its score."""

    formula: Formula
    score: float


@dataclass(frozen=True, slots=True)
class LearnedPreconditions:
    """What a method has learned; all but the preconditions is optional."""

    preconditions: Mapping[Step, Formula]
    candidates: Mapping[Step, Sequence[Candidate]] = field(default_factory=dict)
    """The best alternatives where a method scores them, the chosen one first."""
    order: Sequence[tuple[Step, Step]] = ()
    """Pairs (a, b): where a run does both, a comes first; b does not need a."""
    exclusive: Sequence[tuple[Step, ...]] = ()
    """Groups of steps of which a run does at most one."""
    optional: Sequence[Step] = ()
    """Steps that a faultless run may leave out."""
    repeats: Mapping[Step, float] = field(default_factory=dict)
    """The share of the runs with a step that do it again."""
    responses: Sequence[tuple[Step, Formula]] = ()
    """Pairs (a, F): once a was done, F is done sooner or later."""
    loops: Sequence[Loop] = ()
    """Parts that are done again."""
    model: Mapping[str, object] = field(default_factory=dict)
    """What else was estimated, for the graph file: plain values."""
    gains: Mapping[tuple[Step, Step], float] = field(default_factory=dict)
    """By how much each pair (before, after) makes the videos more probable (nats); see `msg2.graph.Support`."""
    any_gains: Mapping[Step, float] = field(default_factory=dict)
    """The same of the weakest OR in the precondition of a step."""
    notes: Sequence[str] = ()
    """What the user should be told about how the result came about."""
    relearn: Callable[[Sequences], LearnedPreconditions] | None = None
    """Learns from a sample of the same videos in less time, and only what its graph says; where a method can."""

    def graph(self, steps: Iterable[Step], task: str = "", method: Mapping[str, object] | None = None) -> SubtaskGraph:
        """Make a graph of what was learned, without evidence."""
        return SubtaskGraph(
            task, steps, self.preconditions, method,
            order=self.order, exclusive=self.exclusive, optional=self.optional, repeats=self.repeats,
            responses=self.responses, loops=self.loops,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statistic:
    """One row of the statistics table that helps to choose thresholds."""

    kind: str
    step: Step
    candidate: str
    value: float
    videos: int
    chosen: bool


def rank_candidates(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return the best distinct candidates, the best first; equal scores go to fewer literals, then by name."""

    def tie_break(candidate: Candidate) -> tuple[int, list[Step], str]:
        formula = candidate.formula  # by the names of the steps: their text in a formula sorts differently
        return formula.literal_count, sorted(formula.steps), formula.kind

    left = sorted({c.formula: c for c in candidates}.values(), key=lambda c: -c.score)
    result: list[Candidate] = []
    while left and len(result) < most:
        result.append(min((c for c in left if left[0].score - c.score <= TIE_TOLERANCE), key=tie_break))
        left.remove(result[-1])
    return result


def step_evidence(
    sequences: Sequences, graph: SubtaskGraph, learned: LearnedPreconditions, shares: GraphFrequencies | None = None
) -> dict[Step, dict[str, Any]]:
    """Count what the videos say about every step of a graph, as in a graph file; `shares` are of bootstrap samples."""
    variants = sequences.variants  # support is counted in videos
    before, together = variants.before, variants.together
    related, columns = graph.pair_kinds.before | graph.pair_kinds.exclusive, [graph.index[n] for n in sequences.steps]
    together_only = variants.mostly_together & ~(related | related.T)[np.ix_(columns, columns)]
    shown, weight, last_times = sequences.shown, sequences.weight, LastTimes(sequences, sequences.steps)
    labelled = int(weight @ shown.any(axis=1))
    index = {name: position for position, name in enumerate(sequences.steps)}
    tells_kinds = bool(learned.model)  # such a method tells optional steps itself
    left_out = {} if tells_kinds else optional_steps(sequences, graph)
    groups = [] if tells_kinds else interchangeable_steps(sequences)
    instead = {name: group for group in groups for name in group}
    careless = careless_shares(sequences, graph) if sequences.absent == "skipped" else {}

    def edge_support(parent: Step, name: Step) -> Support:
        first, second = index[parent], index[name]
        ordered, gain = int(before[first, second] + before[second, first]), learned.gains.get((parent, name))
        kinds = shares.kind(parent, name) if shares is not None and tells_kinds else None
        lacking = int(weight @ (shown[:, second] & ~shown[:, first]))
        speaks_against = sequences.absent == "skipped" and step(parent) in graph.precondition(name).clauses()
        return Support(
            int(before[first, second]),
            ordered,
            lacking if tells_kinds else None,
            weak=is_weak(int(before[first, second]), ordered + lacking * speaks_against),
            probability=None if shares is None else round(shares.ancestor(parent, name), 6),
            direct=None if shares is None else round(shares.edge(parent, name), 6),
            kinds=None if kinds is None else {kind: round(share, 6) for kind, share in kinds.items() if share},
            gain=None if gain is None else round(gain, 6),
            careless=round(careless[parent, name], 6) if (parent, name) in careless else None,
            simultaneous=int(together[first, second]) or None,
        )

    entries: dict[Step, dict[str, Any]] = {}
    for name in graph.steps:
        position, formula = index[name], graph.precondition(name)
        videos, (obeying, violating) = int(weight @ shown[:, position]), _judge_runs(sequences, position, formula)
        entry = entries[name] = {"videos": videos, "holds": int(weight @ obeying)}
        if formula != TRUE:
            entry |= {
                key: [sequences.videos[place] for place in np.flatnonzero(runs[sequences.run_of_video])[:most].tolist()]
                for key, runs, most in (("examples", obeying, MAX_EXAMPLES), ("violations", violating, None))
            }
        if ors := [clause for clause in formula.clauses() if clause.kind == "any"]:
            entry["alternatives"] = [_count_alternatives(sequences, name, clause, shares) for clause in ors]
        if parents := sorted(formula.steps | graph.order_predecessors(name)):
            entry["edges"] = {parent: edge_support(parent, name).to_json() for parent in parents}
        if at_once := [sequences.steps[other] for other in np.flatnonzero(together_only[position]).tolist()]:
            entry["together"] = {o: replace(edge_support(o, name), weak=False).to_json() for o in at_once}
        if responses := [formula for first, formula in graph.responses if first == name]:
            entry["responses"] = _count_responses(sequences, last_times, name, responses, shares)
        if partners := sorted(graph.partners(name)):
            entry["exclusive"] = {
                partner: int(weight @ (shown[:, position] & shown[:, index[partner]])) for partner in partners
            }
        if name in graph.optional or name in left_out:
            entry["optional"] = {"without": labelled - videos, "videos": labelled}
        if name in learned.any_gains:
            entry["any_gain"] = round(learned.any_gains[name], 6)
        if considered := learned.candidates.get(name, ()):
            entry["score"] = round(considered[0].score, 9)
            for second in considered[1:2]:
                entry["runner_up"] = {"precondition": second.formula.to_json(), "score": round(second.score, 9)}
        if name in instead:
            entry["instead"] = [other for other in instead[name] if other != name]
        if shares is not None and partners:
            apart = {partner: round(shares.kind(partner, name)["exclusive"], 6) for partner in partners}
            entry["exclusive_probability"] = apart
        if shares is not None and formula != TRUE:
            entry["confidence"] = round(shares.precondition(name, formula), 6)
    return entries


def _judge_runs(sequences: Sequences, position: int, formula: Formula) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """In which runs with a step a formula held, and in which not, shape (runs,); where steps overlap, neither."""
    judged = []
    for or_running in (False, True):
        violating = np.zeros(len(sequences.weight), dtype=np.bool_)
        for run, completed in sequences.completed_at(position, or_running) if formula != TRUE else ():
            violating[run[~formula.evaluate_rows(completed, sequences.steps)]] = True
        judged.append(violating)
    return sequences.shown[:, position] & ~(judged[0] | judged[1]), judged[0] & judged[1]


def _count_alternatives(
    sequences: Sequences, name: Step, clause: Formula, shares: GraphFrequencies | None
) -> dict[str, object]:
    """Count as `Alternatives` says; a run without any of them tells where nothing is unlabelled."""
    held, not_held = _judge_runs(sequences, sequences.steps.index(name), clause)
    if sequences.absent != "skipped":
        not_held = not_held & sequences.shown[:, [sequences.steps.index(other) for other in clause.steps]].any(axis=1)
    count = int(sequences.weight @ held)
    share = {} if shares is None else {"confidence": round(shares.precondition(name, clause), 6)}
    return {"clause": clause.to_json(), "held": count, "videos": count + int(sequences.weight @ not_held), **share}


def _count_responses(
    sequences: Sequences, last_times: LastTimes, name: Step, formulas: list[Formula], shares: GraphFrequencies | None
) -> list[dict[str, object]]:
    """Count the videos with a step, and those in which a formula is done after the last time; ties are in neither."""
    place, responses = sequences.steps.index(name), list[dict[str, object]]()
    shown, (follows, lacks, weight) = sequences.shown[sequences.shown[:, place]], last_times.after(place)
    for formula in formulas:
        columns = [sequences.steps.index(other) for other in sorted(formula.steps)]
        held, not_held = follows[:, columns].any(axis=1), lacks[:, columns].all(axis=1)
        told, absent = int(weight @ (held | not_held)), int(weight @ ~shown[:, columns].any(axis=1))
        share = {} if shares is None else {"confidence": round(shares.response(name, formula), 6)}
        counts = {"held": int(weight @ held), "videos": told, "lacking": absent}
        responses.append({"follows": formula.to_json(), **counts, **share})
    return responses


def optional_steps(sequences: Sequences, graph: SubtaskGraph) -> dict[Step, int]:
    """Find steps that no step needs and that more videos lack than chance explains; and how many lack each."""
    from scipy.special import bdtrc

    shown = _step_presence(sequences)
    videos, needed = len(shown), {parent for parent, _ in graph.edge_pairs()}
    absent = (~shown).sum(axis=0)
    usual = np.sort(absent)[: max(1, len(absent) // 2)]
    rate = float((usual.sum() + 1) / (len(usual) * videos + 10))
    return {
        name: without
        for name, without in zip(sequences.steps, absent.tolist(), strict=True)
        if name not in needed
        and without < videos
        and bdtrc(without - 1, videos, rate) * len(sequences.steps) <= SIGNIFICANCE
    }


def interchangeable_steps(sequences: Sequences) -> list[tuple[Step, ...]]:
    """Groups of steps that take each other's place, as large as can be; a step is in one group at most."""
    shown = _step_presence(sequences)
    size = len(sequences.steps)
    both = shown.astype(np.float32).T @ shown.astype(np.float32)
    either = both.diagonal()[:, None] + both.diagonal() - both
    apart = np.triu(either - both >= EXACTLY_ONE * np.maximum(either, 1), k=1)
    pairs = {
        (a, b): chance
        for a, b in np.argwhere(apart).tolist()
        if (chance := _hypergeometric_tail(shown[:, a], shown[:, b])) * size * (size - 1) / 2 <= SIGNIFICANCE
    }
    group_of = {member: frozenset({member}) for pair in pairs for member in pair}
    for a, b in sorted(pairs, key=lambda pair: (pairs[pair], pair)):  # the clearest first
        joined = group_of[a] | group_of[b]
        counts = shown[:, sorted(joined)].sum(axis=1)
        share_with_exactly_one = (counts == 1).sum() / max(1, (counts > 0).sum())
        fits = all(pair in pairs for pair in combinations(sorted(joined), 2))
        if fits and share_with_exactly_one >= EXACTLY_ONE:
            group_of.update(dict.fromkeys(joined, joined))
    groups = sorted({group for group in group_of.values() if len(group) > 1}, key=min)
    return [tuple(sequences.steps[index] for index in sorted(group)) for group in groups]


def _step_presence(sequences: Sequences) -> NDArray[np.bool_]:
    """Which steps the labelled videos show, shape (videos, steps)."""
    shown = sequences.shown
    return np.repeat(shown, np.where(shown.any(axis=1), sequences.weight, 0), axis=0)


def _hypergeometric_tail(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """That two unrelated steps, in as many videos each, would share no more videos than these do (hypergeometric)."""
    from scipy.special import gammaln

    def log_choose(total: int, chosen: NDArray[np.int64] | int) -> NDArray[np.float64]:
        return np.asarray(gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1))

    videos, ours, theirs = len(first), int(first.sum()), int(second.sum())
    shared = np.arange(max(0, ours + theirs - videos), int((first & second).sum()) + 1)
    ways = log_choose(ours, shared) + log_choose(videos - ours, theirs - shared)
    return float(np.exp(ways - log_choose(videos, theirs)).sum())


def clauses_of(graph: SubtaskGraph, name: Step) -> list[Formula]:
    """All clauses of a step: the steps that it needs, the last ones first, then the ORs."""
    needed = [step(earlier) for earlier in reversed(graph.steps) if earlier in graph.necessary[name]]
    return [*needed, *_alternatives(graph, name)]


def has_clause(graph: SubtaskGraph, name: Step, clause: Formula) -> bool:
    """Tell whether a clause holds whenever the step is eligible; one with a NOT only where it is written so."""
    if "not" in clause.kinds:
        return clause in graph.precondition(name).clauses()
    left = clause.substitute(dict.fromkeys(graph.necessary[name], True))
    if left == TRUE:
        return True
    return clause.kind != "step" and any(  # it holds whichever branch of one of the ORs does
        all(
            left.substitute(dict.fromkeys(required_steps(branch, graph.necessary), True)) == TRUE
            for branch in alternative.operands
        )
        for alternative in _alternatives(graph, name)
    )


def _alternatives(graph: SubtaskGraph, name: Step) -> list[Formula]:
    """The ORs that hold whenever the step is eligible; one with a NOT may hold no longer, and is left out."""
    return [
        clause
        for owner in graph.steps
        if owner == name or owner in graph.necessary[name]
        for clause in graph.precondition(owner).clauses()
        if clause.kind == "any" and "not" not in clause.kinds
    ]


def keep_clauses(graph: SubtaskGraph, keep: Callable[[Step, Formula], bool]) -> dict[Step, Formula]:
    """Keep some clauses of every precondition, each as a whole; write out those implied by a clause that is gone."""
    result: dict[Step, Formula] = {}
    needed: dict[Step, frozenset[Step]] = {}
    for place, name in enumerate(graph.steps):  # a step comes after all that it needs
        result[name] = all_of(clause for clause in graph.precondition(name).clauses() if keep(name, clause))
        # Also in a branch of an OR: what all branches need is needed.
        behind = compress(graph.steps, graph.ancestor_matrix[:, place])
        touched = any(result[earlier] != graph.precondition(earlier) for earlier in (name, *behind))
        for clause in clauses_of(graph, name) if touched else ():
            if clause.kind == "step":
                there = clause.name in required_steps(result[name], needed)
            else:
                there = has_clause(SubtaskGraph("", graph.steps, result), name, clause)
            more = all_of([result[name], clause])
            if not there and keep(name, clause) and more != FALSE:  # a NOT of it may have been learnt
                result[name] = more
        needed[name] = required_steps(result[name], needed)
    return result


def replace_preconditions(
    learnt: LearnedPreconditions, steps: Iterable[Step], preconditions: Mapping[Step, Formula]
) -> LearnedPreconditions:
    """Give what was learned other preconditions; those that change lose what follows from others, and candidates."""
    graph, old = SubtaskGraph("", steps, preconditions), learnt.preconditions
    new, reduced = {name: graph.precondition(name) for name in graph.steps}, graph.transitive_reduction()
    for name, formula in new.items():
        if formula != old.get(name, TRUE) and reduced.precondition(name) != FALSE:
            new[name] = reduced.precondition(name)
    same = {name for name, formula in new.items() if formula == old.get(name, TRUE)}
    candidates = {name: tried for name, tried in learnt.candidates.items() if name in same}
    return replace(learnt, preconditions=new, candidates=candidates)
