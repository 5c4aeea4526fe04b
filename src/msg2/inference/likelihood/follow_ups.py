"""What must follow, what is done again, and which parts: what whole runs say beyond the first time of each step.

Of the n runs with a, k do not do b after the last a. b *must follow* a where they lack it no more often than any step
is left out, at the rate ρ of the presence model. Steps are of one *loop* where, whenever one of them is done again, the
other was done in between; and steps after which hardly anything comes but what is done again lead *back*. Simultaneous
steps say nothing.
"""

from __future__ import annotations

import numpy as np

from msg2.graph import Formula, any_of, step
from msg2.graph.closure import Relation, transitive_reduction
from msg2.graph.graph_file import Loop
from msg2.inference.likelihood.presence import PairCounts, PresenceModel
from msg2.inference.likelihood.structure import MOST_CONTRADICTING, Structure, group_alternatives, is_chance
from msg2.sequences import LastTimes, Sequences
from msg2.task import Step

LEAST_RUNS = 5
"""What fewer runs tell is not stated."""
_LEAST_LOOP = 0.02
"""A part is a loop where at least this share of the runs with it does it again."""
_EACH_WAY_ROUND = 0.9
"""Two steps are of one loop where, so many of the times that one is done again, the other was done in between."""
_ONLY_BACK = 0.8
"""A step leads back where, so many of the times that it is done, a step of the loop is done again right after it."""


def find_responses(
    sequences: Sequences, presence: PresenceModel, structure: Structure, names: tuple[Step, ...]
) -> list[tuple[Step, Formula]]:
    """Find what must follow each step, directly and not only because it follows another one."""
    size, last = len(names), LastTimes(sequences, names)
    followed, lacking = np.zeros((2, size, size), dtype=np.int64)
    for a in range(size):
        follows, lacks, weight = last.after(a)
        followed[a], lacking[a] = weight @ follows, weight @ lacks
    must, total = np.zeros(followed.shape, dtype=np.bool_), followed + lacking
    first, second = np.nonzero((total >= LEAST_RUNS) & (followed > followed.T) & ~presence.exclusive)
    count, videos = presence.weight @ presence.shown, int(presence.weight.sum())
    pairs = PairCounts(count[second], total[first, second], followed[first, second], videos)
    must[first, second] = pairs.implied(presence.absent_rate, presence.extra_rate, presence.shares)[0] > 0
    if sequences.absent == "skipped":
        must &= lacking <= MOST_CONTRADICTING * total
    again = sequences.variants.repeated[[sequences.steps.index(name) for name in names]] > 0
    # What every run does is said already, but for steps that may be done again after it.
    said = presence.required[None, :] & ~again[:, None]
    direct = transitive_reduction(must) & ~said
    certain = [set(group) for group in structure.exclusive if not structure.optional[[*group]].any()]
    groups: list[set[frozenset[int]]] = []
    for a in range(size):
        possible = (followed[a] >= LEAST_RUNS) & (lacking[a] > 0) & ~must[a] & ~presence.required
        # Of steps that follow each other in one way on, the first one stands for all.
        later = must & presence.implied & possible[:, None]
        earliest = np.flatnonzero(possible & ~later.any(axis=0)).tolist()
        follows, lacks, weight = last.after(a)
        found, _ = group_alternatives(earliest, follows, weight, presence.absent_rate) if len(earliest) > 1 else ([], 0)
        if sequences.absent == "skipped":  # as of the needs
            found = [own for own in found if is_chance(weight @ lacks[:, [*own]].all(axis=1), weight.sum())]
        groups.append(set(found))
    told = {group for group in set().union(*groups) if any(group <= other for other in certain)}
    responses: list[tuple[Step, Formula]] = []
    for a, own in enumerate(groups):
        for group in own.difference(told, *(groups[c] for c in np.flatnonzero(must[a]).tolist())):
            direct[a] &= ~must[[*group]].all(axis=0)  # what follows each of them anyway
            responses.append((names[a], any_of(step(names[b]) for b in group)))
    return [*responses, *((names[a], step(names[b])) for a, b in np.argwhere(direct).tolist())]


def find_loops(sequences: Sequences) -> list[Loop]:
    """Find the parts that runs do again."""
    again, size, steps = sequences.is_again, len(sequences.steps), sequences.steps
    if not again.any():
        return []
    run, label, weight = sequences.run, sequences.step, sequences.weight[sequences.run].astype(np.float64)
    # How often each step is done, and how often which step is done again right after it.
    times = np.bincount(label, weight, size)
    next_again = again[1:] & (run[1:] == run[:-1])
    into = np.zeros((size, size))
    np.add.at(into, (label[:-1][next_again], label[1:][next_again]), weight[1:][next_again])
    loops = []
    for part in _components(_on_one_way_round(sequences)):
        back = [n for n in range(size) if into[n, part].sum() >= max(_ONLY_BACK * times[n], LEAST_RUNS)]
        kept = [n for n in part if n not in back]
        if len(kept) + len(back) < 2 or not kept:
            continue
        shown = np.zeros(len(sequences.weight), dtype=np.bool_)
        twice = shown.copy()
        shown[run[np.isin(label, kept)]] = True
        twice[run[again & np.isin(label, kept)]] = True
        share = float(sequences.weight @ twice) / float(sequences.weight @ shown)
        if share >= _LEAST_LOOP:
            by_rank = sorted(kept, key=lambda n: (_mean_rank(sequences, n), steps[n]))
            loops.append(Loop(steps=[steps[n] for n in by_rank], back=[steps[n] for n in back], share=round(share, 6)))
    return loops


def _on_one_way_round(sequences: Sequences) -> Relation:
    """[a, b]: between b and b again there is nearly always an a, or the other way round."""
    again, size, label = sequences.is_again, len(sequences.steps), sequences.step
    place, weight = np.arange(len(label)), sequences.weight[sequences.run]
    by_step = np.lexsort((place, label, sequences.run))
    last = np.empty(len(label), np.intp)
    last[by_step] = np.append(-1, by_step[:-1])  # where the same step of the same run was done before, if it was
    times = np.bincount(label[again], weight[again], size)
    between = np.zeros((size, size))
    for a in np.flatnonzero(times >= LEAST_RUNS).tolist():
        latest = np.maximum.accumulate(np.where(label == a, place, -1))
        latest = np.append(-1, latest[:-1])
        apart = again & (latest > last)
        between[a] = np.bincount(label[apart], weight[apart], size)
    common = times >= LEAST_RUNS
    linked = (between >= _EACH_WAY_ROUND * times) & common & common[:, None]
    return np.asarray(linked | linked.T | np.diag(common))


def _mean_rank(sequences: Sequences, step: int) -> float:
    """How many steps have ended when this one has, on average."""
    shown = sequences.shown[:, step]
    return float(np.average(sequences.rank[shown, step], weights=sequences.weight[shown]))


def _components(linked: Relation) -> list[list[int]]:
    """Steps that are linked, directly or through others; sets of one step included."""
    from scipy.sparse.csgraph import connected_components

    _, which = connected_components(linked, directed=False)
    alive = linked.diagonal()
    return [np.flatnonzero((which == part) & alive).tolist() for part in np.unique(which[alive])]


def count_repetitions(sequences: Sequences) -> dict[Step, dict[str, object]]:
    """Count for each step how often it was done, what was done `again` right after it, and `of` how many times.

    `of` counts the times that a step was done when the other one had been done already; a run that ends there counts,
    what comes next at the same time does not.
    """
    again, size, steps = sequences.is_again, len(sequences.steps), sequences.steps
    run, label, weight = sequences.run, sequences.step, sequences.weight[sequences.run]
    next_in_run = np.append(run[1:] == run[:-1], False)
    later = np.append(sequences.start[1:] >= sequences.end[:-1], False)
    instant = sequences.start == sequences.end
    later &= ~(instant & np.append(instant[1:], False) & np.append(sequences.start[1:] == sequences.start[:-1], False))
    leads = np.flatnonzero(next_in_run & later & np.append(again[1:], False))
    repeated = np.flatnonzero(sequences.variants.repeated)
    counts, chances = np.zeros((2, size, size), dtype=np.int64)
    np.add.at(counts, (label[leads], label[leads + 1]), weight[leads])
    place = np.arange(len(run))
    judged = later | ~next_in_run
    for m in repeated.tolist():
        first = np.full(len(sequences.weight), len(run))
        own = label == m
        np.minimum.at(first, run[own], place[own])
        open_to_m = judged & (place >= first[run])
        chances[:, m] = np.bincount(label[open_to_m], weight[open_to_m], size)
    times = np.bincount(label, weight, size)
    return {
        steps[n]: {
            "times": int(times[n]),
            "again": {steps[m]: int(counts[n, m]) for m in np.flatnonzero(counts[n]).tolist()},
            "of": {steps[m]: int(chances[n, m]) for m in np.flatnonzero(chances[n]).tolist()},
        }
        for n in np.flatnonzero(times).tolist()
    }
