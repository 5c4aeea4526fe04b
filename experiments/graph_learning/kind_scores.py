"""How well kinds of pairs were found: the share that is right, what was taken for what, and baselines that count.

Each pair of steps counts once, in one of six classes: a step needs the other or comes after it, in either direction,
the two are exclusive, or they are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TypeAlias

from experiments.graph_learning.process_trees import Trace
from msg2.graph import PairKind

PairMap: TypeAlias = Mapping[tuple[str, str], PairKind]
"""Of every ordered pair of steps its kind."""

FOUND = ("needs", "after", "reversed", "exclusive", "free")
"""What a pair may be taken for; `reversed`: needs or after, in the wrong direction."""


@dataclass(frozen=True, slots=True)
class KindScore:
    """How many pairs were compared, how many are right, and how many of a true kind were taken for which."""

    pairs: int
    right: int
    confusion: Mapping[str, Mapping[str, int]]
    """By true kind, then by what was found (see `FOUND`)."""


def score_kinds(found: PairMap, truth: PairMap, steps: Sequence[str]) -> KindScore:
    """Compare kinds with the true ones.

    Parameters
    ----------
    found, truth : mapping
        Of every ordered pair of steps its kind.
    steps : sequence of str
        The steps whose pairs are compared.

    Returns
    -------
    KindScore

    >>> truth = {("a", "b"): "needs", ("b", "a"): "free"}
    >>> score_kinds({("a", "b"): "free", ("b", "a"): "needs"}, truth, "ab").confusion
    {'needs': {'reversed': 1}}
    """
    confusion: dict[str, Counter[str]] = {}
    right = 0
    for a, b in combinations(steps, 2):
        (kind, first), (guess, guessed_first) = (_direct(kinds, a, b) for kinds in (truth, found))
        turned = first is not None and guessed_first is not None and guessed_first != first
        taken_for = "reversed" if turned else guess
        confusion.setdefault(kind, Counter())[taken_for] += 1
        right += taken_for == kind
    pairs = len(steps) * (len(steps) - 1) // 2
    return KindScore(pairs, right, {kind: dict(counts) for kind, counts in confusion.items()})


def _direct(kinds: PairMap, a: str, b: str) -> tuple[PairKind, str | None]:
    """The kind of a pair, and the step that comes first where there is one."""
    for first, second in ((a, b), (b, a)):
        if kinds[first, second] in ("needs", "after"):
            return kinds[first, second], first
    return kinds[a, b], None


def always_free(steps: Sequence[str]) -> dict[tuple[str, str], PairKind]:
    """The trivial answer, and the most frequent one: nothing is known of any pair."""
    return dict.fromkeys(permutations(steps, 2), "free")


def counted_kinds(traces: Sequence[Trace], steps: Sequence[str], tolerance: float) -> dict[tuple[str, str], PairKind]:
    """Take what is seen for what is meant: each kind by its definition, but for a share of exceptions.

    Parameters
    ----------
    traces : sequence of Trace
        What was seen.
    steps : sequence of str
        The steps to compare.
    tolerance : float
        The greatest share of exceptions: of the cases with the rarer step that have both (exclusive), of those with
        both in another order (after), and of those with b that have no a before (needs).

    Returns
    -------
    dict of tuple of str to PairKind
        By (a, b).

    >>> counted_kinds([("a", "b"), ("a",)], "ab", 0.0)[("a", "b")]
    'needs'
    """
    places = [{name: place for place, name in reversed(list(enumerate(trace)))} for trace in traces]
    kinds: dict[tuple[str, str], PairKind] = {}
    for a, b in permutations(steps, 2):
        with_a, with_b = (sum(name in place for place in places) for name in (a, b))
        together = [place for place in places if a in place and b in place]
        first = sum(place[a] < place[b] for place in together)
        if len(together) <= tolerance * min(with_a, with_b):
            kinds[a, b] = "exclusive"
        elif first < (1 - tolerance) * len(together):
            kinds[a, b] = "free"
        else:
            kinds[a, b] = "needs" if first >= (1 - tolerance) * with_b else "after"
    return kinds
