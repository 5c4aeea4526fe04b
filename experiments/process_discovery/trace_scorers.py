"""How well a trace fits a log: by the likelihood that `check` gives it, and by simple counts as controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise, permutations
from math import log
from typing import TypeAlias

from experiments.process_discovery.contest_models import Trace, traces_of
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.inference import infer
from msg2.task import Segment, Task, Video

Scorer: TypeAlias = Callable[[Trace], float]
"""More is better."""

_RARE = 0.01
"""What is seen in less than this share of the traces in which it could be is taken for a violation."""
_START, _END = "", "."


def likelihood_scorer(task: Task) -> Scorer:
    """log p of a trace under the graph of `likelihood`, all events counted: the `fit` of `msg2 check`."""
    likelihood = SequenceLikelihood(infer(task, "likelihood", absent="skipped"))
    known = set(likelihood.graph.steps)

    def score(trace: Trace) -> float:
        return likelihood.log_probability(Video("trace", [Segment(step) for step in trace if step in known]))

    return score


def precedence_scorer(task: Task) -> Scorer:
    """The control "a precedes b in 90 % of the traces with b": rules that a trace keeps, less those it breaks."""
    traces = traces_of(task)
    count, before = Counter[str](), Counter[tuple[str, str]]()
    for trace in traces:
        firsts = list(dict.fromkeys(trace))
        count.update(firsts)
        before.update(combinations(firsts, 2))
    rules = [pair for pair in permutations(task.steps, 2) if before[pair] >= 0.9 * max(count[pair[1]], 1)]

    def score(trace: Trace) -> float:
        place = {step: number for number, step in reversed(list(enumerate(trace)))}
        found = [place.get(a, len(trace)) < place[b] for a, b in rules if b in place]
        return float(2 * sum(found) - len(found))

    return score


def bigram_scorer(task: Task) -> Scorer:
    """The control that counts which event follows which: log p of a trace as a Markov chain."""
    traces = traces_of(task)
    follows = Counter(pair for trace in traces for pair in pairwise([_START, *trace, _END]))
    times = Counter(step for trace in traces for step in (_START, *trace))
    size = len(task.steps) + 1

    def score(trace: Trace) -> float:
        return sum(log((follows[pair] + 1) / (times[pair[0]] + size)) for pair in pairwise([_START, *trace, _END]))

    return score


def count_scorer(task: Task) -> Scorer:
    """The control that counts pairs: orders, presences and direct successions that the log hardly ever shows."""
    traces = traces_of(task)
    there, both, before = Counter[str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    follows = Counter(pair for trace in traces for pair in pairwise([_START, *trace, _END]))
    times = Counter(step for trace in traces for step in (_START, *trace))
    for trace in traces:
        firsts = list(dict.fromkeys(trace))
        there.update(firsts)
        both.update(permutations(firsts, 2))
        before.update(combinations(firsts, 2))
    steps = task.steps

    def score(trace: Trace) -> float:
        firsts = list(dict.fromkeys(trace))
        shown = set(firsts)
        wrong = sum(before[pair] < _RARE * both[pair] or not both[pair] for pair in combinations(firsts, 2))
        wrong += sum(
            there[a] - both[a, b] < _RARE * there[a] for a in shown for b in steps if b not in shown and b != a
        )
        wrong += sum(there[b] > (1 - _RARE) * len(traces) for b in steps if b not in shown)
        wrong += sum(follows[pair] < _RARE * times[pair[0]] for pair in pairwise([_START, *trace, _END]))
        return -float(wrong)

    return score


SCORERS: Mapping[str, Callable[[Task], Scorer]] = {
    "a precedes b in 90 % of the traces with b": precedence_scorer,
    "bigram": bigram_scorer,
    "counts of pairs": count_scorer,
    "likelihood": likelihood_scorer,
}


def score_pairs(scorer: Scorer, pairs: Sequence[tuple[Trace, Trace]]) -> list[tuple[float, float]]:
    """Score both traces of each pair; traces that are alike once.

    Parameters
    ----------
    scorer : Scorer
        Of one trace.
    pairs : sequence of (Trace, Trace)
        The traces.

    Returns
    -------
    list of (float, float)
    """
    known = {trace: scorer(trace) for trace in {trace for pair in pairs for trace in pair}}
    return [(known[one], known[other]) for one, other in pairs]
